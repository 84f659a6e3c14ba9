// The program kiln: reads the command line, runs one command, turns what it throws into one line and an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <map>

#include "command.h"
#include "kiln/ir/diagnostic.h"
#include "names.h"

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
  int (*run)(const Options&);
};

std::vector<Command> add_commands(CLI::App& app, Options& o) {
  std::vector<Command> commands;
  CLI::App* above = &app;
  const auto add = [&](const char* name, const char* what, int (*run)(const Options&)) {
    CLI::App* sub = above->add_subcommand(name, what);
    sub->add_flag("--json", o.json, "Print one JSON document");
    commands.push_back({sub, run});
    return sub;
  };
  const auto add_source = [&](CLI::App* sub) { sub->add_option("SOURCE", o.source, "A kernel library or a .kir file")->required(); };
  const auto add_kernel = [&](CLI::App* sub) { sub->add_option("KERNEL", o.kernels, "KERNEL[@param=value,...]")->required()->expected(1); };
  const auto add_mode = [&](CLI::App* sub) { sub->add_option("--mode", o.mode, "checked or unchecked; the kernel's own unless given"); };

  add("devices", "What can run kernels here", devices_command);
  add("doctor", "What works here and, for the rest, why not", doctor_command);
  CLI::App* list = add("list", "The kernels of a library or a .kir file", list_command);
  add_source(list);

  CLI::App* show = add("show", "One kernel: its summary, or its IR, LLVM IR, PTX or IO", show_command);
  add_source(show);
  add_kernel(show);
  add_mode(show);
  show->add_flag("--ir", o.show_ir, "The kernel as recorded, good as a .kir file");
  show->add_flag("--llvm", o.show_llvm, "The LLVM IR handed to the backend");
  show->add_flag("--ptx", o.show_ptx, "The PTX text");
  show->add_flag("--io", o.show_io, "Declared and proven IO of each buffer");
  show->add_option("--arch", o.arch, "For --llvm and --ptx; the oldest possible unless given");
  show->add_option("--block", o.block, "X,Y,Z");

  CLI::App* emit = add("emit", "Files of code for a launcher of one's own; all or nothing", emit_command);
  add_source(emit);
  emit->add_option("KERNEL", o.kernels, "KERNEL[@param=value,...]; all with their defaults unless given");
  emit->add_option("--arch", o.arch, "sm_80,sm_90,x86-64-v3 ...")->delimiter(',')->expected(1)->take_all();
  emit->add_option("--emit", o.emit, "ptx,cubin,object,llvm,kir,json")->delimiter(',')->expected(1)->take_all()->required();
  emit->add_option("--block", o.block, "X,Y,Z: the block shape that code is made for");
  emit->add_option("-o,--output", o.out_dir, "The folder to write into")->required();
  add_mode(emit);

  CLI::App* run = add("run", "One launch; prints its outputs or its failure as JSON", run_command);
  add_source(run);
  add_kernel(run);
  add_mode(run);
  run->add_option("--grid", o.grid, "X,Y,Z blocks")->required();
  run->add_option("--block", o.block, "X,Y,Z threads")->required();
  run->add_option("--shared", o.shared, "Bytes of dynamic shared memory");
  run->add_option("--arg", o.args, "in:f32:[1,2,3]  in:f32:@file  in:u32:iota:1024  out:f32:32x32  inout:...  f32:2.5")
      ->expected(1)
      ->take_all();
  run->add_option("--device", o.device, "cpu, cpu:N, cuda or cuda:N; the default device unless given");
  run->add_flag("--bits", o.bits, "Values as hexadecimal bit patterns");

  above = app.add_subcommand("env", "The environment, where compiled kernels are kept (KILN_ENV)");
  above->require_subcommand(1);
  const auto add_filter = [&](CLI::App* sub) {
    sub->add_option("--kernel", o.filter_kernels, "Only of this kernel: its whole name, or its last part")->expected(1)->take_all();
    sub->add_option("--arch", o.arch, "Only for these architectures: sm_80,x86-64-v3 ...")->delimiter(',')->expected(1)->take_all();
  };
  const auto add_paths = [&](CLI::App* sub, const char* name, const char* what) {
    return sub->add_option(name, o.paths, what)->required();
  };
  add("path", "Where it lies, and whether it can be used", env_path_command);
  add_filter(add("list", "Its entries, the last used first", env_list_command));
  add_paths(add("show", "All about an entry", env_show_command), "ENTRY", "The beginning of its id, or a kernel's name")->expected(1);
  add("verify", "Holds each entry against its checksum; exits 1 where one is damaged", env_verify_command)
      ->add_flag("--drop", o.drop, "Remove damaged entries");
  CLI::App* prune = add("prune", "Removes what was not used for longest", env_prune_command);
  prune->add_option("--max-bytes", o.most_bytes, "Down to a size: 500M, 1G");
  prune->add_option("--unused", o.unused, "What was not used for so long: 30d, 12h");
  add("clear", "Removes all entries", env_clear_command);
  CLI::App* exported = add("export", "Entries into a file, to be imported or read as a layer elsewhere", env_export_command);
  add_paths(exported, "FILE", "The file to write")->expected(1);
  add_filter(exported);
  add_paths(add("import", "Entries of exported files", env_import_command), "FILE", "Files that kiln env export wrote");
  add_paths(add("merge", "Entries of other environments", env_import_command), "FOLDER", "Folders with an environment");
  CLI::App* why = add("why", "Whether a kernel is there, and else what differs", env_why_command);
  add_source(why);
  add_kernel(why);
  add_mode(why);
  why->add_option("--arch", o.arch, "What it is compiled for; this CPU unless given")->delimiter(',')->expected(1)->take_all();
  why->add_option("--block", o.block, "X,Y,Z");
  return commands;
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
  if (incomplete) return std::string("a command is missing; 'kiln ") + (at == &app ? "" : at->get_name() + " ") + "--help' lists them";
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
  CLI::App app{"Kiln: kernels from C++, compiled and run without a toolkit"};
  app.name("kiln");
  app.set_version_flag("--version", std::string("kiln ") + KILN_VERSION);
  app.require_subcommand(1);
  Options options;
  const std::vector<Command> commands = add_commands(app, options);
  app.footer("'kiln COMMAND --help' and 'kiln help COMMAND' have the options of one.");
  bool json = false;  // as far as can be told when the rest does not parse
  for (int i = 1; i < argc; ++i) json = json || std::string_view(argv[i]) == "--json";
  if (argc < 2) std::fputs(app.help().c_str(), stderr);
  try {
    app.parse(words_of(app, argc, argv));
  } catch (const CLI::Success& asked) { return app.exit(asked); } catch (const CLI::ParseError& error) {
    return report(kUsage, json, complaint(app, error));
  }
  try {
    for (const Command& command : commands) {
      if (!command.app->parsed()) continue;
      const int exit_code = command.run(options);
      // What did not reach the reader was not done.
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return report(kFailed, false, "the output could not be written to the standard output");
      return exit_code;
    }
  } catch (const Failed& e) { return report(e.exit_code(), options.json, e.what()); } catch (const Exception& e) {
    return report(kFailed, options.json, one_line(e.error()));
  } catch (const ir::IrError& e) {
    return report(kFailed, options.json, (options.source.ends_with(".kir") ? options.source + ": " : "") + e.what());
  } catch (const std::bad_alloc&) { return report(kFailed, options.json, "out of memory"); } catch (const std::exception& e) {
    return report(kFailed, options.json, e.what());
  }
  return kUsage;
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) { return kiln::cli::run(argc, argv); }
