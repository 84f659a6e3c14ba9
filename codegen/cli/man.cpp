// kiln man: the manual page, made of the table of commands.
#include <cstdio>

#include "command_table.h"
#include "kiln/runtime/configuration.h"

namespace kiln::cli {
namespace {

// Text as roff takes it: nothing of it is a request or an escape, and a hyphen can be copied as one.
std::string roff(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out;
}

std::string with_stop(const std::string& sentence) { return sentence.ends_with('.') ? sentence : sentence + "."; }

std::string option_text(const OptionSpec& o) {
  std::string text = ".TP\n";
  if (o.positional()) {
    text += ".I " + roff(o.name) + (o.takes == Takes::Several ? " ..." : "");
  } else {
    text += ".B ";
    std::string names;
    for (const std::string& s : o.spellings()) names += (names.empty() ? "" : ", ") + s;
    text += roff(names);
    if (o.takes != Takes::Nothing) text += " \\fI" + roff(o.value) + "\\fR";
  }
  text += "\n" + roff(with_stop(o.what));
  if (o.takes == Takes::Each && !o.positional()) text += " May be given several times.";
  return text + "\n";
}

std::string command_text(const CommandSpec& c) {
  std::string text = ".SS " + roff(usage_line(c)) + "\n" + roff(with_stop(c.summary)) + "\n";
  if (!c.about.empty()) text += roff(c.about) + "\n";
  for (const OptionSpec& o : c.options) text += option_text(o);
  text += ".PP\nExamples:\n";
  for (const Example& e : c.examples)
    text += ".PP\n.EX\n.in +4n\n" + roff(e.line) + "\n.in\n.EE\n.RS 8n\n" + roff(with_stop(e.what)) + "\n.RE\n";
  return text;
}

std::string page() {
  std::string text = ".\\\" Made by 'kiln man'.\n.TH KILN 1 \"\" \"kiln " KILN_VERSION "\" \"User Commands\"\n.nh\n";
  text += ".SH NAME\nkiln \\- kernels from C++, compiled and run without a toolkit\n";
  text += ".SH SYNOPSIS\n.B kiln\n.I COMMAND\n.RI [ OPTIONS ]\n";
  text += ".SH DESCRIPTION\n";
  text += roff(
      "SOURCE is a kernel library (a shared library with kernels in it) or a file of kernels as text, whose name ends in .kir.\n"
      "KERNEL is a kernel's qualified name or, where that is unique, its last part; KERNEL@tile=16,unroll=2 fixes parameters of a family,\n"
      "and what is not named takes its default.\n");
  text += ".PP\n" + roff(
                        "Every command takes --json, and then prints one JSON document, and --help.\n"
                        "kiln help COMMAND is kiln COMMAND --help; kiln --version prints the version.\n");
  text += ".SH COMMANDS\n";
  for (const CommandSpec& c : commands()) text += command_text(c);
  text += ".SH EXIT STATUS\n";
  for (const std::string& code : exit_codes()) text += ".TP\n.B " + code.substr(0, 1) + "\n" + roff(with_stop(code.substr(3))) + "\n";
  text += ".SH ENVIRONMENT\n";
  if (const Result<Configuration> c = configuration())
    for (const ConfiguredSetting& s : c->settings)
      if (!s.variable.empty()) text += ".TP\n.B " + roff(s.variable) + "\n" + roff(with_stop(s.meaning)) + "\n";
  text += ".SH FILES\n.TP\n.I kiln.json\n" + roff("The configuration: in the working directory or above it, or where KILN_CONFIG says.\n");
  return text;
}

Json option_json(const OptionSpec& o) {
  return {{"name", o.name},
          {"value", o.value},
          {"what", o.what},
          {"required", o.required},
          {"positional", o.positional()},
          {"takes_value", o.takes != Takes::Nothing}};
}

Json document() {
  Json all = Json::array();
  for (const CommandSpec& c : commands()) {
    Json options = Json::array(), examples = Json::array();
    options.push_back(option_json(json_option()));
    for (const OptionSpec& o : c.options) options.push_back(option_json(o));
    for (const Example& e : c.examples) examples.push_back({{"line", e.line}, {"what", e.what}});
    all.push_back({{"name", c.name},
                   {"usage", usage_line(c)},
                   {"summary", c.summary},
                   {"about", c.about},
                   {"options", options},
                   {"examples", examples}});
  }
  Json groups_json = Json::array();
  for (const GroupSpec& g : groups()) groups_json.push_back({{"name", g.name}, {"summary", g.summary}});
  return {{"program", "kiln"},          {"version", KILN_VERSION}, {"summary", one_line_about()},
          {"exit_codes", exit_codes()}, {"groups", groups_json},   {"commands", all}};
}

}  // namespace

int man_command(const Options& options) {
  if (options.json) {
    print_json(document());
  } else {
    const std::string text = page();
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return kDone;
}

}  // namespace kiln::cli
