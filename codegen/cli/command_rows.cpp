// The rows of the table of commands.
#include "command_table.h"

namespace kiln::cli {
namespace {

using O = Options;

const std::vector<std::string> kModes{"checked", "unchecked"}, kLevels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

const std::vector<std::string> kEngines{"cpu",           "cuda",          "cuda:0",        "interp",       "cpu:x86-64",
                                        "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:any-block"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

OptionSpec source() { return {"SOURCE", "", "A kernel library or a .kir file", &O::source, Takes::One, Words::Source, {}, true}; }
OptionSpec kernel() { return {"KERNEL", "", "KERNEL[@param=value,...]", &O::kernels, Takes::One, Words::Kernel, {}, true}; }
OptionSpec mode() {
  return {"--mode", "MODE", "checked or unchecked; the kernel's own unless given", &O::mode, Takes::One, Words::Choice, kModes};
}
OptionSpec block(const char* what) { return {"--block", "X,Y,Z", what, &O::block}; }
OptionSpec arch(Takes takes, const char* what, const std::vector<std::string>& choices) {
  return {"--arch", takes == Takes::List ? "ARCH,..." : "ARCH", what, &O::arch, takes, Words::Choice, choices};
}
OptionSpec flag(const char* name, const char* what, bool O::* into) { return {name, "", what, into, Takes::Nothing}; }
OptionSpec kernels_only() {
  return {"--kernel", "NAME", "Only of this kernel: its whole name, or its last part", &O::filter_kernels, Takes::Each};
}
OptionSpec paths(const char* name, const char* what, Takes takes, Words words) {
  return {name, "", what, &O::paths, takes, words, {}, true};
}

// Of every command that opens a source.
std::vector<OptionSpec> limits() {
  return {{"--timeout", "SECONDS", "Most time for one compilation: 30, 5m; 0: as long as it takes. 120 unless given", &O::timeout},
          {"--memory", "SIZE", "Most memory of a process that compiles: 500M, 8G; 0: all there is. 4G unless given", &O::memory},
          flag("--in-process", "Compile in this process, without limits and protection: for a debugger", &O::in_process)};
}

}  // namespace

std::vector<CommandSpec> command_rows() {
  const std::vector<std::string> archs = gpu_architectures() + kLevels;
  const OptionSpec args{"--arg", "ARG",
                        "One for each parameter, in order: in:f32:[1,2,3]  in:f32:@file  in:u32:iota:1024  in:f32:64x64:random:7  "
                        "out:f32:32x32  inout:...  f32:2.5",
                        &O::args, Takes::Each};
  std::vector<CommandSpec> all;
  all.push_back(
      {"devices", "What can run kernels here", devices_command, {}, {{"kiln devices", "The CPU device and each GPU, with limits"}}});
  all.push_back({"doctor",
                 "What works here and, for the rest, why not",
                 doctor_command,
                 {},
                 {{"kiln doctor", "Each part: found or not, its version and path, and what to do"}},
                 "Works on a machine with nothing else installed. Exits with 1 only when something that is needed is broken."});
  all.push_back({"list",
                 "The kernels of a library or a .kir file",
                 list_command,
                 {source()},
                 {{"kiln list saxpy.kir", "The kernels of a file of kernels as text"},
                  {"kiln list libkernels.so --json", "Those of a kernel library, with the configs of its families, as JSON"}}});
  all.push_back(
      {"show",
       "One kernel: its summary, its IR, LLVM IR, PTX or IO, or all side by side",
       show_command,
       {source(),
        kernel(),
        mode(),
        flag("--ir", "The kernel as recorded, good as a .kir file", &O::show_ir),
        flag("--llvm", "The LLVM IR handed to the backend", &O::show_llvm),
        flag("--ptx", "The PTX text", &O::show_ptx),
        flag("--io", "Declared and proven IO of each buffer", &O::show_io),
        flag("--side", "C++, IR, PTX and machine code side by side, by the lines of the source", &O::show_side),
        {"--html", "FILE", "The same as a page of HTML, with nothing outside of it", &O::html, Takes::One, Words::File},
        {"--source-root", "DIR", "For --side and --html: a folder to look for sources in", &O::source_roots, Takes::Each, Words::Folder},
        arch(Takes::Each, "For --llvm, --ptx, --side and --html; the oldest possible unless given", archs),
        block("The block shape that code is made for")},
       {{"kiln show saxpy.kir saxpy", "A summary: IO, blocks, shared memory, what is tested at run time"},
        {"kiln show saxpy.kir saxpy --ptx --arch sm_90", "Its PTX"},
        {"kiln show saxpy.kir saxpy --llvm --arch x86-64-v3 --block 128", "The LLVM IR of its code for CPUs"},
        {"kiln show saxpy.kir saxpy --side --arch sm_90", "Which code is made of which line"},
        {"kiln show libkernels.so samples::saxpy --html saxpy.html --arch sm_90", "A page to look at in a browser"}}});
  all.push_back(
      {"emit",
       "Files of code for a launcher of one's own; all or nothing",
       emit_command,
       {source(),
        {"KERNEL", "", "KERNEL[@param=value,...], KERNEL@* for all variants; all kernels with their defaults unless given", &O::kernels,
         Takes::Several, Words::Kernel},
        arch(Takes::List, "Architectures of GPUs and levels of CPUs: sm_80,sm_90,x86-64-v3 ...", archs),
        {"--emit",
         "KIND,...",
         "What is made: ptx,cubin,object,llvm,kir,json,bundle,manifest",
         &O::emit,
         Takes::List,
         Words::Choice,
         {"ptx", "cubin", "object", "llvm", "kir", "json", "bundle", "manifest"}},
        block("The block shape that code is made for"),
        {"-o,--output", "DIR", "The folder to write into", &O::out_dir, Takes::One, Words::Folder},
        mode(),
        {"--variant", "KERNEL", "One more KERNEL@param=value,...; as KERNEL", &O::variants, Takes::Each},
        {"--modes",
         "MODE,...",
         "Of bundles: own,checked,unchecked",
         &O::modes,
         Takes::List,
         Words::Choice,
         {"own", "checked", "unchecked"}},
        {"--blocks", "X,Y,Z", "CPU code for this block in bundles, beside that for any block", &O::blocks, Takes::Each},
        {"--embed", "NAME", "All bundles in NAME.kilnb, with NAME.cpp that embeds them and a header to launch them from", &O::embed},
        {"--header", "NAME", "The name of that header; NAME.h unless given", &O::embed_header},
        {"--namespace", "NAME", "The namespace of the header's kernels; each one's own unless given", &O::embed_namespace},
        {"--depfile", "NAME", "A file in --output of what the bundles depend on, for a build system", &O::depfile},
        flag("--explain", "Why each code is as it is, and what it takes of a GPU; needs neither --emit nor -o", &O::explain),
        {"--jobs", "N", "Processes that compile side by side; as many as the machine has hardware threads unless given", &O::jobs}},
       {{"kiln emit saxpy.kir --arch sm_80,sm_90 --emit ptx,json -o out", "PTX for two architectures, and a manifest of the kernel"},
        {"kiln emit saxpy.kir saxpy --arch x86-64-v3 --block 128 --emit object -o out", "An object for CPUs, for blocks of 128 threads"},
        {"kiln emit saxpy.kir --arch sm_80,x86-64,x86-64-v3 --emit bundle -o out", "A bundle, which holds code for several machines"},
        {"kiln emit libkernels.so '*@*' --arch sm_90 --emit ptx,manifest -o out",
         "Every kernel and every variant, and a manifest of all files"},
        {"kiln emit saxpy.kir --arch sm_90 --explain", "What forced the architecture and the PTX version; registers where ptxas is found"}},
       "In KERNEL, * stands for any characters and ? for one: KERNEL@* is every variant of a family, KERNEL@tile=8,* every one with "
       "tile=8, "
       "KERNEL@tile=* those that differ from the default in tile only. Each kernel is compiled in a process of its own with limits; when "
       "one "
       "crashes, hangs or takes too much memory, the error names it, and nothing is written."});
  all.push_back({"run",
                 "One launch; prints its outputs or its failure as JSON",
                 run_command,
                 {source(),
                  kernel(),
                  mode(),
                  {"--grid", "X,Y,Z", "Blocks", &O::grid, Takes::One, Words::Any, {}, true},
                  {"--block", "X,Y,Z", "Threads of a block", &O::block, Takes::One, Words::Any, {}, true},
                  {"--shared", "BYTES", "Bytes of dynamic shared memory", &O::shared},
                  args,
                  {"--device", "DEVICE", "cpu, cpu:N, cuda, cuda:N, or interp, the interpreter; the default device unless given",
                   &O::device, Takes::One, Words::Choice, kEngines},
                  flag("--bits", "Values as hexadecimal bit patterns", &O::bits)},
                 {{"kiln run saxpy.kir saxpy --grid 1 --block 32 --arg in:f32:[1,2,3] --arg inout:f32:[10,20,30] --arg f32:2.5",
                   "One launch with values given; prints the outputs"},
                  {"kiln run saxpy.kir saxpy --grid 4 --block 256 --arg in:f32:iota:1024 --arg inout:f32:zero:1024 --arg f32:0.5 "
                   "--device cpu --bits",
                   "0, 1, 2 ... as input; outputs as bit patterns"}}});

  all.push_back(
      {"check",
       "Kernels on two devices with generated inputs, outputs compared bit by bit",
       check_command,
       {source(),
        {"KERNEL", "", "KERNEL[@param=value,...], or KERNEL@* for every config; all with their defaults unless given", &O::kernels,
         Takes::Several, Words::Kernel},
        {"--on", "DEVICE", "cpu, cuda, interp, a level as cpu:x86-64, cpu:any-block ...; cpu unless given", &O::on, Takes::One,
         Words::Choice, kEngines},
        {"--against", "DEVICE", "The other one; a GPU if there is one, else interp", &O::against, Takes::One, Words::Choice, kEngines},
        {"--seed", "N", "What the inputs are drawn from; 1 unless given", &O::seed},
        {"--runs", "N", "How many launches of each kernel are compared; 20 unless given", &O::runs},
        {"--grid", "X,Y,Z", "Blocks, instead of drawn ones", &O::grid},
        {"--block", "X,Y,Z", "Threads of a block, instead of drawn ones", &O::block},
        {"--shared", "BYTES", "Bytes of dynamic shared memory", &O::shared},
        {"--arg", "ARG", "As of run, one for each parameter; _ for one that is drawn", &O::args, Takes::Each},
        mode()},
       {{"kiln check saxpy.kir", "Every kernel, on the CPU against a GPU or the interpreter"},
        {"kiln check saxpy.kir saxpy --on cpu --against cpu:x86-64 --runs 50", "Code for this processor against code for every one"},
        {"kiln check saxpy.kir saxpy --against interp --grid 2 --block 64 --arg in:f32:iota:100 --arg _ --arg f32:nan",
         "Some parts given, the rest drawn"}},
       "Sizes, values and shapes are drawn within the declared block and the require()s of the kernel. NaN and NaN are equal, whatever "
       "their bits. "
       "An input on which both fail alike is drawn anew. A difference is told with its smallest index, both values, and the commands that "
       "repeat it; the exit code is 1 then."});
  all.push_back({"completions",
                 "What a shell needs to complete command lines of kiln",
                 completions_command,
                 {{"SHELL", "", "bash, zsh or fish", &O::shell, Takes::One, Words::Choice, {"bash", "zsh", "fish"}, true}},
                 {{"kiln completions bash > kiln.bash", "To be read by .bashrc, or put into share/bash-completion/completions as kiln"},
                  {"kiln completions zsh > _kiln", "Into a folder of fpath"},
                  {"kiln completions fish > kiln.fish", "Into ~/.config/fish/completions"}},
                 "Kernel names are completed for .kir files; a kernel library would have to be loaded for them."});
  all.push_back({"man",
                 "The manual page, for man",
                 man_command,
                 {},
                 {{"kiln man > kiln.1", "To be read with man ./kiln.1"}},
                 "With --json the commands, their options and examples as a document."});

  all.push_back({"env path", "Where it lies, and whether it can be used", env_path_command, {}, {{"kiln env path", "Layer by layer"}}});
  all.push_back({"env list",
                 "Its entries, the last used first",
                 env_list_command,
                 {kernels_only(), arch(Takes::List, "Only for these architectures: sm_80,x86-64-v3 ...", archs)},
                 {{"kiln env list --kernel saxpy", "What is kept of one kernel"}}});
  all.push_back({"env show",
                 "All about an entry",
                 env_show_command,
                 {paths("ENTRY", "The beginning of its id, or a kernel's name", Takes::One, Words::Any)},
                 {{"kiln env show saxpy", "All about what is kept of a kernel"}}});
  all.push_back({"env verify",
                 "Holds each entry against its checksum; exits 1 where one is damaged",
                 env_verify_command,
                 {flag("--drop", "Remove damaged entries", &O::drop)},
                 {{"kiln env verify --drop", "Removes what is damaged"}}});
  all.push_back({"env prune",
                 "Removes what was not used for longest",
                 env_prune_command,
                 {{"--max-bytes", "SIZE", "Down to a size: 500M, 1G", &O::most_bytes},
                  {"--unused", "TIME", "What was not used for so long: 30d, 12h", &O::unused}},
                 {{"kiln env prune --unused 30d --max-bytes 500M", "Keeps what is of use"}}});
  all.push_back({"env clear", "Removes all entries", env_clear_command, {}, {{"kiln env clear", "Begins anew"}}});
  all.push_back({"env export",
                 "Entries into a file, to be imported or read as a layer elsewhere",
                 env_export_command,
                 {paths("FILE", "The file to write", Takes::One, Words::File), kernels_only(),
                  arch(Takes::List, "Only for these architectures: sm_80,x86-64-v3 ...", archs)},
                 {{"kiln env export kernels.kenv --kernel saxpy", "What is kept of one kernel, for another machine"}}});
  all.push_back({"env import",
                 "Entries of exported files",
                 env_import_command,
                 {paths("FILE", "Files that kiln env export wrote", Takes::Several, Words::File)},
                 {{"kiln env import kernels.kenv", "Adds what another machine compiled"}}});
  all.push_back({"env merge",
                 "Entries of other environments",
                 env_import_command,
                 {paths("FOLDER", "Folders with an environment", Takes::Several, Words::Folder)},
                 {{"kiln env merge other", "Adds what the environment in a folder has"}}});
  all.push_back({"env why",
                 "Whether a kernel is there, and else what differs",
                 env_why_command,
                 {source(), kernel(), mode(), arch(Takes::List, "What it is compiled for; this CPU unless given", archs),
                  block("The block shape of the launch")},
                 {{"kiln env why saxpy.kir saxpy --block 32", "Why a launch compiles, or that it does not"}}});
  for (CommandSpec& spec : all)
    if (spec.opens_source())
      for (OptionSpec& option : limits()) spec.options.push_back(std::move(option));
  return all;
}

}  // namespace kiln::cli
