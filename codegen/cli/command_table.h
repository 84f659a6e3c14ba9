// The command line as one table: what is parsed, what --help says, what the man page and the completions of the shells are made of.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "command.h"

namespace kiln::cli {

// What a word of the command line stands for: what a shell may offer in its place.
enum class Words : std::uint8_t { Any, Source, Kernel, File, Folder, Choice };

// How many values an option or a positional takes. Each: one value each time it is given. List: the same, with commas between several.
// Several: a positional of any number of words.
enum class Takes : std::uint8_t { Nothing, One, Each, List, Several };

struct OptionSpec {
  std::string name;   // "--grid", "-o,--output"; a positional: "SOURCE"
  std::string value;  // what stands for the value in texts: "X,Y,Z"; empty for flags and positionals
  std::string what;   // one line, without a full stop
  std::variant<bool Options::*, std::string Options::*, std::vector<std::string> Options::*> into;
  Takes takes = Takes::One;
  Words words = Words::Any;
  std::vector<std::string> choices = {};  // Words::Choice: all there are, or those that are usual
  bool required = false;

  bool positional() const { return !name.starts_with("-"); }
  std::string long_name() const;               // "--output"
  std::vector<std::string> spellings() const;  // "-o", "--output"
};

// A whole command line that works where `saxpy.kir` and `libkernels.so` lie, and what it is for.
struct Example {
  std::string line, what;
};

struct CommandSpec {
  std::string name;     // "run", "env list"
  std::string summary;  // one line
  int (*run)(const Options&) = nullptr;
  std::vector<OptionSpec> options = {};  // positionals in their order; --json, which every command has, is not among them
  std::vector<Example> examples = {};
  std::string about = {};  // sentences more, for --help and the man page

  bool opens_source() const;  // what may come from somebody else, and be compiled: it has the options of limits.h
};

// Words that only lead to commands: "env".
struct GroupSpec {
  std::string name, summary;
};

std::vector<CommandSpec> command_rows();  // made anew; commands() keeps them
const std::vector<CommandSpec>& commands();
const std::vector<GroupSpec>& groups();
const OptionSpec& json_option();
std::string one_line_about();                         // of the program
const std::vector<std::string>& exit_codes();         // "0  done"
const std::vector<std::string>& gpu_architectures();  // for completions; what is compiled for is asked of the code generator
std::string usage_line(const CommandSpec& command);   // "kiln run [OPTIONS] SOURCE KERNEL"
std::string help_footer(const CommandSpec& command);  // what --help says below the options

}  // namespace kiln::cli
