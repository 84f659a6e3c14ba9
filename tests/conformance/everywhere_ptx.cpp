#include "conformance/everywhere_ptx.h"

#include <map>
#include <tuple>

#include "kiln/runtime/compiler.h"
#include "src/fault_slots.h"
#include "support/run_ptx.h"

namespace kiln::test {
namespace {

using Mode = ir::PrepareOptions::Mode;

// A table asks for one kernel many times, one kernel after the other: the programs of the last kernel are kept.
const std::string& ptx_of(const Variant& variant, const ir::Prepared& prepared, Mode mode, const CompileOptions& options) {
  static std::uint64_t kernel = 0;
  static std::map<std::tuple<Mode, std::string, bool, bool>, std::string> programs;
  if (kernel != variant.id()) programs.clear();
  kernel = variant.id();
  std::string& ptx = programs[{mode, options.arch, options.block_multiple_of_32, options.aligned16}];
  if (ptx.empty()) {
    const CodegenHandle& codegen = code_generator();
    if (codegen.compiler == nullptr) throw std::runtime_error(codegen.error);
    ptx = codegen.compiler->compile(prepared, options).code;
  }
  return ptx;
}

}  // namespace

CopiedLaunch::CopiedLaunch(const LaunchConfig& config, const std::vector<Arg>& args, bool off) : args_(args) {
  for (int axis = 0; axis < 3; ++axis) {
    launch_.grid[axis] = config.grid[axis];
    launch_.block[axis] = config.block[axis];
  }
  launch_.dynamic_shared_bytes = config.shared_bytes;
  memory_.reserve(args.size());
  for (const Arg& arg : args) {
    const std::size_t before = off && arg.is_buffer ? ir::byte_size(arg.type) : 0;
    before_.push_back(before);
    memory_.emplace_back(before);
    if (!arg.shares) memory_.back().insert(memory_.back().end(), arg.bytes.begin(), arg.bytes.end());
    interp::Arg a;
    a.is_buffer = arg.is_buffer;
    a.bits = arg.bits;
    a.extents = arg.extents;
    a.strides = arg.strides;
    if (arg.is_buffer) {
      const std::size_t owner = arg.shares.value_or(memory_.size() - 1);
      a.bytes = &memory_[owner];
      a.byte_offset = before_[owner] + arg.first * ir::byte_size(arg.type);
    }
    launch_.args.push_back(std::move(a));
  }
}

void CopiedLaunch::finish(const interp::Outcome& run, const ir::Prepared& prepared, Outcome& out) {
  for (const std::string& misuse : run.misuse) FAIL_CHECK(out.where << ": " << misuse);
  for (const interp::Logged& l : run.log)
    out.log.push_back({{l.block[0], l.block[1], l.block[2]}, {l.thread[0], l.thread[1], l.thread[2]}, l.text});
  if (run.fault) {
    out.fault = rt::bounds_fault(*run.fault, prepared.sites);
    return;
  }
  for (std::size_t i = 0; i < args_.size(); ++i) {
    const std::size_t owner = args_[i].shares.value_or(i);
    out.bytes.emplace_back(memory_[owner].begin() + static_cast<std::ptrdiff_t>(before_[owner]), memory_[owner].end());
  }
}

Outcome run_as_ptx(const std::string& arch, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args, Mode mode,
                   bool off, std::uint64_t seed) {
  Outcome out;
  out.where = "PTX for " + arch + ", " + (mode == Mode::Unchecked ? "unchecked" : "checked") + (off ? ", off by one element" : "");
  const auto prepared = variant.prepared(mode);
  if (!prepared.has_value()) {
    out.error = prepared.error();
    return out;
  }
  CopiedLaunch copied(config, args, off);
  CompileOptions options;
  options.target = TargetKind::Ptx;
  options.arch = arch;
  if ((*prepared)->kernel.has_block_size()) options.block = {config.block.x, config.block.y, config.block.z};
  options.block_multiple_of_32 = config.block.x * config.block.y * config.block.z % 32 == 0;
  options.aligned16 = true;
  for (const interp::Arg& a : copied.launch().args) options.aligned16 = options.aligned16 && a.byte_offset % 16 == 0;
  try {
    copied.finish(run_ptx(ptx_of(variant, **prepared, mode, options), **prepared, copied.launch(), seed), **prepared, out);
  } catch (const std::exception& e) { FAIL_CHECK(out.where << ": " << e.what()); }
  return out;
}

}  // namespace kiln::test
