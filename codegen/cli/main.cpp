// The program kiln: reads the command line, runs one command, turns what it throws into one line and an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "child.h"
#include "command.h"
#include "command_table.h"
#include "kiln/ir/diagnostic.h"
#include "limits.h"
#include "names.h"
#include "source.h"
#include "supervise.h"
#include "worker.h"

namespace kiln::cli {

Mode parse_mode(const std::string& text) {
  if (text.empty()) return Mode::AsKernel;
  if (text == "checked") return Mode::Checked;
  if (text == "unchecked") return Mode::Unchecked;
  usage(unknown("--mode", text, {"checked", "unchecked"}));
}

namespace {

std::optional<std::uint32_t> whole_number(const std::string& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::uint32_t parse_count(const std::string& text, const std::string& option) {
  const std::optional<std::uint32_t> number = whole_number(text);
  if (!number) usage(option + " '" + text + "': expected a whole number from 0 to 4294967295");
  return *number;
}

std::array<std::uint32_t, 3> parse_extent(const std::string& text, const std::string& option) {
  std::array<std::uint32_t, 3> extent{1, 1, 1};
  std::size_t at = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const std::size_t comma = text.find(',', at);
    const std::optional<std::uint32_t> number = whole_number(text.substr(at, comma == std::string::npos ? comma : comma - at));
    if (!number) break;
    extent[static_cast<std::size_t>(axis)] = *number;
    if (comma == std::string::npos) return extent;
    at = comma + 1;
  }
  usage(option + " '" + text + "': expected X,Y,Z, whole numbers from 0 to 4294967295");
}

void print_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

namespace {

struct Command {
  CLI::App* app;
  const CommandSpec* spec;
};

void add_option(CLI::App& app, const OptionSpec& spec, Options& o) {
  if (const auto* to = std::get_if<bool Options::*>(&spec.into)) {
    app.add_flag(spec.name, o.**to, spec.what);
    return;
  }
  CLI::Option* option = nullptr;
  if (const auto* one = std::get_if<std::string Options::*>(&spec.into)) option = app.add_option(spec.name, o.**one, spec.what);
  else option = app.add_option(spec.name, o.*std::get<std::vector<std::string> Options::*>(spec.into), spec.what);
  // A program with kernels needs no SOURCE; what else was left out is told when the words are there (settle_source).
  const bool settled = has_own_kernels() && spec.positional() && (spec.words == Words::Source || spec.words == Words::Kernel);
  if (spec.required && !settled) option->required();
  if (!spec.value.empty()) option->type_name(spec.value);
  switch (spec.takes) {
    case Takes::Nothing:
    case Takes::Several: break;
    case Takes::One:
      if (spec.positional()) option->expected(1);
      break;
    case Takes::Each: option->expected(1)->take_all(); break;
    case Takes::List: option->delimiter(',')->expected(1)->take_all(); break;
  }
}

std::vector<Command> add_commands(CLI::App& app, Options& o) {
  for (const GroupSpec& g : groups()) app.add_subcommand(g.name, g.summary)->require_subcommand(1);
  std::vector<Command> all;
  for (const CommandSpec& spec : commands()) {
    const std::size_t space = spec.name.find(' ');
    CLI::App* above = space == std::string::npos ? &app : app.get_subcommand(spec.name.substr(0, space));
    CLI::App* sub = above->add_subcommand(space == std::string::npos ? spec.name : spec.name.substr(space + 1), spec.summary);
    add_option(*sub, json_option(), o);
    for (const OptionSpec& option : spec.options) add_option(*sub, option, o);
    sub->footer(help_footer(spec));
    all.push_back({sub, &spec});
  }
  return all;
}

// In a program with kernels of its own, as if it had been named as the source.
void settle_source(const CommandSpec& command, Options& options) {
  const OptionSpec* kernel = nullptr;
  bool source = false;
  for (const OptionSpec& o : command.options) {
    if (o.positional() && o.words == Words::Source) source = true;
    if (o.positional() && o.words == Words::Kernel) kernel = &o;
  }
  if (!source || !has_own_kernels()) return;
  leave_out_source(options.source, options.kernels);
  if (kernel == nullptr && !options.kernels.empty()) usage("'" + options.kernels.back() + "' is one word too many for " + command.name);
  if (kernel != nullptr && kernel->required && options.kernels.empty()) usage(command.name + ": KERNEL is required");
  if (kernel != nullptr && kernel->takes == Takes::One && options.kernels.size() > 1)
    usage("'" + options.kernels.back() + "' is one word too many for " + command.name);
}

// CLI11's complaint with what was probably meant.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  const bool incomplete = !at->get_subcommands(nullptr).empty();  // a command of this one is missing
  std::vector<std::string> left = at->remaining();
  if (left.empty()) left = app.remaining();
  // An unknown option first: its value may be what is one word too many.
  if (const auto option = std::find_if(left.begin(), left.end(), [](const std::string& s) { return s.starts_with("-"); });
      option != left.end()) {
    std::vector<std::string> names;
    for (const CLI::Option* known : at->get_options())
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    return unknown("option", option->substr(0, option->find('=')), names);
  }
  if ((incomplete || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) && !left.empty()) {
    std::vector<std::string> names;
    if (incomplete) {
      for (const CLI::App* sub : at->get_subcommands(nullptr)) names.push_back(sub->get_name());
      return unknown("command", left.front(), names);
    }
    return "'" + left.front() + "' is one word too many for " + at->get_name();
  }
  if (incomplete) return "a command is missing; '" + app.get_name() + " " + (at == &app ? "" : at->get_name() + " ") + "--help' lists them";
  std::string text = error.what();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return at->get_name() + ": " + text;
}

// The words of the command line, the last one first, as CLI11 takes them; `help` and `help COMMAND` as the option --help.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    // Not of a word that is no command: that is told.
    const std::vector<const CLI::App*> all = app.get_subcommands(nullptr);
    const bool known = words.empty() || std::any_of(all.begin(), all.end(), [&](const CLI::App* c) { return c->get_name() == words[0]; });
    if (known) words.push_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// One line for people; with --json the same as a document on stdout.
int report(int exit_code, bool json, const std::string& text) {
  const std::string line = joined(text);
  if (json) print_json({{"error", line}, {"exit", exit_code}});
  std::fprintf(stderr, "kiln: error: %s\n", line.c_str());
  return exit_code;
}

int run(int argc, char** argv) {
  CLI::App app{one_line_about()};
  app.name(has_own_kernels() && argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "kiln");
  app.set_version_flag("--version", std::string("kiln ") + KILN_VERSION);
  app.require_subcommand(1);
  Options options;
  const std::vector<Command> all = add_commands(app, options);
  app.footer("'kiln COMMAND --help' and 'kiln help COMMAND' have the options and examples of one.");
  bool json = false;  // as far as can be told when the rest does not parse
  for (int i = 1; i < argc; ++i) json = json || std::string_view(argv[i]) == "--json";
  if (argc < 2) std::fputs(app.help().c_str(), stderr);
  try {
    app.parse(words_of(app, argc, argv));
  } catch (const CLI::Success& asked) { return app.exit(asked); } catch (const CLI::ParseError& error) {
    return report(kUsage, json, complaint(app, error));
  }
  try {
    for (const Command& command : all) {
      if (!command.app->parsed()) continue;
      settle_source(*command.spec, options);
      // emit has a process for each compilation, and itself opens nothing.
      const bool apart = command.spec->opens_source() && command.spec->run != emit_command && to_supervise(options);
      options.program = argc > 0 ? argv[0] : "kiln";
      const int exit_code = apart ? supervise(argc, argv, options, command.spec->name) : command.spec->run(options);
      // What did not reach the reader was not done.
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return report(kFailed, false, "the output could not be written to the standard output");
      return exit_code;
    }
  } catch (const Failed& e) { return report(e.exit_code(), options.json, e.what()); } catch (const Exception& e) {
    return report(kFailed, options.json, one_line(e.error()));
  } catch (const ir::IrError& e) {
    return report(kFailed, options.json, (options.source.ends_with(".kir") ? options.source + ": " : "") + e.what());
  } catch (const std::bad_alloc&) { return report(kFailed, options.json, out_of_memory()); } catch (const std::exception& e) {
    return report(kFailed, options.json, e.what());
  }
  return kUsage;
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  using namespace kiln::cli;
  const ChildRole child = enter_child(argc, argv);
  if (child.role.empty()) return run(argc, argv);
  if (child.role == "worker") return worker_main();
  // A command with limits: the words behind the child's own.
  tell_parent();
  argv[child.words] = argv[0];
  const int exit_code = run(argc - child.words, argv + child.words);
  tell_parent_the_end();
  return exit_code;
}
