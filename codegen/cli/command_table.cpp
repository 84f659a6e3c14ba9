#include "command_table.h"

#include <algorithm>

namespace kiln::cli {

std::vector<std::string> OptionSpec::spellings() const {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find(',', at), name.size());
    all.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return all;
}
std::string OptionSpec::long_name() const { return spellings().back(); }

const std::vector<std::string>& gpu_architectures() {
  static const std::vector<std::string> all{"sm_75",   "sm_80",   "sm_86",   "sm_87",   "sm_88",   "sm_89",   "sm_90",  "sm_90a",
                                            "sm_100",  "sm_100a", "sm_100f", "sm_103",  "sm_103a", "sm_103f", "sm_110", "sm_110a",
                                            "sm_110f", "sm_120",  "sm_120a", "sm_120f", "sm_121",  "sm_121a", "sm_121f"};
  return all;
}

bool CommandSpec::opens_source() const {
  return std::any_of(options.begin(), options.end(), [](const OptionSpec& o) { return o.words == Words::Source; });
}

const std::vector<CommandSpec>& commands() {
  static const std::vector<CommandSpec> all = command_rows();
  return all;
}

const std::vector<GroupSpec>& groups() {
  static const std::vector<GroupSpec> all{{"env", "The environment, where compiled kernels are kept (KILN_ENV)"}};
  return all;
}

const OptionSpec& json_option() {
  static const OptionSpec option{"--json", "", "Print one JSON document", &Options::json, Takes::Nothing};
  return option;
}

std::string one_line_about() { return "Kiln: kernels from C++, compiled and run without a toolkit"; }

const std::vector<std::string>& exit_codes() {
  static const std::vector<std::string> all{"0  done", "1  failed, or something is wrong that was looked for",
                                            "2  the command line is wrong"};
  return all;
}

std::string usage_line(const CommandSpec& command) {
  std::string text = "kiln " + command.name + " [OPTIONS]";
  for (const OptionSpec& o : command.options) {
    if (!o.positional()) continue;
    const std::string word = o.name + (o.takes == Takes::Several ? "..." : "");
    text += " " + (o.required ? word : "[" + word + "]");
  }
  return text;
}

std::string help_footer(const CommandSpec& command) {
  std::string text;
  if (!command.about.empty()) text += command.about + "\n\n";
  text += "Examples:\n";
  for (const Example& e : command.examples) text += "  " + e.line + "\n      " + e.what + "\n";
  text += "\nExit codes:\n";
  for (const std::string& code : exit_codes()) text += "  " + code + "\n";
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace kiln::cli
