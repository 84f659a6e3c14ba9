#include "compile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "files.h"
#include "names.h"

extern char** environ;

namespace kiln::cli {

Compiler& compiler() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr) fail("no code generator: " + handle.error);
  return *handle.compiler;
}

const std::vector<std::string>& host_levels() {
  static const std::vector<std::string> levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return levels;
}

std::string host_level() {
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
  return "x86-64";
}

Arch parse_arch(const std::string& name) {
  const std::vector<std::string>& hosts = host_levels();
  if (std::find(hosts.begin(), hosts.end(), name) != hosts.end()) return {name, TargetKind::Host};
  std::vector<std::string> all = compiler().ptx_architectures();
  if (std::find(all.begin(), all.end(), name) != all.end()) return {name, TargetKind::Ptx};
  all.insert(all.end(), hosts.begin(), hosts.end());
  usage(unknown("architecture", name, all));
}

const ir::Prepared& prepared(const Variant& variant, Mode mode) {
  const Result<const ir::Prepared*> result = variant.prepared(mode);
  if (!result) throw Exception(result.error());
  return *result.value();
}

CompileOptions compile_options(const ir::Prepared& kernel, const Arch& arch, const std::array<std::uint32_t, 3>& block) {
  const ir::Kernel& k = kernel.kernel;
  const bool given = block[0] != 0;
  const auto text = [](const std::array<std::uint32_t, 3>& b) {
    return std::to_string(b[0]) + "," + std::to_string(b[1]) + "," + std::to_string(b[2]);
  };
  if (given && k.has_block_size() && block != k.block_size)
    usage("--block " + text(block) + " is not the block size that kernel '" + k.name + "' declares: " + text(k.block_size));
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  const std::uint64_t most = k.max_threads != 0 ? std::min<std::uint64_t>(k.max_threads, 1024) : 1024;
  if (given && threads > most)
    usage("--block " + text(block) + " has " + std::to_string(threads) + " threads; kernel '" + k.name + "' takes at most " +
          std::to_string(most));
  CompileOptions options;
  options.target = arch.kind;
  options.arch = arch.name;
  if (arch.kind == TargetKind::Host) {
    options.block = given ? block : k.block_size;
    if (options.block[0] == 0)
      usage("code for " + arch.name + " is made for one block shape, and kernel '" + k.name + "' declares none: give --block X,Y,Z");
  } else {
    if (k.has_block_size()) options.block = k.block_size;
    const std::array<std::uint32_t, 3>& shape = given ? block : k.block_size;
    options.block_multiple_of_32 = shape[0] != 0 && std::uint64_t{shape[0]} * shape[1] * shape[2] % 32 == 0;
  }
  return options;
}

CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) {
  try {
    return compiler().compile(kernel, options);
  } catch (const CompileError& e) { fail("kernel '" + kernel.kernel.name + "' for " + options.arch + ": " + e.what()); }
}

std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) {
  try {
    return compiler().llvm_ir(kernel, options);
  } catch (const CompileError& e) { fail("kernel '" + kernel.kernel.name + "' for " + options.arch + ": " + e.what()); }
}

std::string find_ptxas() {
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    const std::string program = (folder.empty() ? "." : folder) + "/ptxas";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

namespace {

// A folder for the assembler's files.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail(std::string("no temporary folder: ") + std::strerror(errno));
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

std::string assemble(const std::string& ptx, const std::string& arch) {
  const std::string program = find_ptxas();
  if (program.empty()) fail("a cubin needs ptxas of the CUDA toolkit, and there is none on PATH; PTX (--emit ptx) needs nothing");
  const Scratch scratch;
  const std::string in = scratch.file("kernel.ptx"), out = scratch.file("kernel.cubin"), log = scratch.file("log");
  std::ofstream(in, std::ios::binary) << ptx;
  std::vector<std::string> words{program, "-arch=" + arch, "-o", out, in};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int started = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) fail("cannot start '" + program + "': " + std::strerror(started));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::ifstream said(log);
    std::string first;
    std::getline(said, first);
    fail("ptxas refused the PTX for " + arch + ": " + (first.empty() ? "without a word" : first));
  }
  return read_file(out, std::uint64_t{1} << 30);
}

}  // namespace kiln::cli
