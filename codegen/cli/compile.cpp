#include "compile.h"

#include <algorithm>
#include <new>

#include "limits.h"
#include "names.h"

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

TargetKind parse_kind(const std::string& name) {
  const std::vector<std::string>& hosts = host_levels();
  return std::find(hosts.begin(), hosts.end(), name) != hosts.end() ? TargetKind::Host : TargetKind::Ptx;
}

Arch parse_arch(const std::string& name) {
  const std::vector<std::string>& hosts = host_levels();
  if (parse_kind(name) == TargetKind::Host) return {name, TargetKind::Host};
  std::vector<std::string> all = compiler().ptx_architectures();
  if (std::find(all.begin(), all.end(), name) != all.end()) return {name, TargetKind::Ptx};
  all.insert(all.end(), hosts.begin(), hosts.end());
  usage(unknown("architecture", name, all));
}

const ir::Prepared& prepared(const Variant& variant, Mode mode) {
  now("in the passes over its IR");
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

namespace {

// Runs `work` on the code generator; whatever it throws names the kernel and the architecture.
template <class Work>
auto generated(const ir::Prepared& kernel, const CompileOptions& options, Work&& work) {
  now("in the code generator");
  const std::string who = "kernel '" + kernel.kernel.name + "' for " + options.arch + ": ";
  try {
    return work(compiler());
  } catch (const Failed&) { throw; } catch (const CompileError& e) {
    fail(who + e.what());
  } catch (const std::bad_alloc&) { fail(who + out_of_memory()); } catch (const std::exception& e) {
    fail(who + "the code generator failed: " + e.what());
  } catch (...) { fail(who + "the code generator failed, and threw what is no exception of C++"); }
}

}  // namespace

CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) {
  return generated(kernel, options, [&](Compiler& c) { return c.compile(kernel, options); });
}

std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) {
  return generated(kernel, options, [&](Compiler& c) { return c.llvm_ir(kernel, options); });
}

TargetReasons reasons(const ir::Prepared& kernel, const CompileOptions& options) {
  return generated(kernel, options, [&](Compiler& c) { return c.reasons(kernel, options); });
}

}  // namespace kiln::cli
