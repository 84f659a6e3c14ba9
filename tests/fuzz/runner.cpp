#include "fuzz/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "interp/interp.h"
#include "kiln/ir/floats.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"
#include "kiln/runtime/compiler.h"
#include "src/fault_slots.h"
#include "src/object_loader.h"
#include "support/inexact_float.h"
#include "support/log_memory.h"
#include "support/ptxas.h"
#include "support/run_ptx.h"

namespace kiln::fuzz {
namespace {

struct Aligned {
  explicit Aligned(std::size_t bytes) : data(static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64))) {}
  ~Aligned() { std::free(data); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  std::uint8_t* data;
};

// 64 bytes on either side of every buffer hold a pattern that nothing may change.
constexpr std::size_t kMargin = 64;
constexpr std::uint8_t kCanary = 0xA5;

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

namespace {

// Of each argument, which of the memories it is; 0 for scalars.
std::vector<std::size_t> numbers(const Case& c) {
  std::vector<std::size_t> number(c.args.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < c.args.size(); ++i)
    if (c.args[i].is_buffer) number[i] = c.args[i].shares ? number[*c.args[i].shares] : next++;
  return number;
}

// Runs `how` on a fresh copy of the case's buffers.
template <class Run>
Outputs run_on_copy(const Case& c, Run&& how) {
  Outputs out;
  for (const ArgData& a : c.args)
    if (a.owns()) out.buffers.push_back(a.data.bytes);
  interp::Launch launch;
  for (int i = 0; i < 3; ++i) launch.grid[i] = c.grid[i], launch.block[i] = c.block[i];
  launch.dynamic_shared_bytes = c.shared_bytes;
  const std::vector<std::size_t> number = numbers(c);
  for (std::size_t i = 0; i < c.args.size(); ++i) {
    const ArgData& a = c.args[i];
    interp::Arg arg;
    arg.is_buffer = a.is_buffer;
    if (a.is_buffer) {
      arg.bytes = &out.buffers[number[i]];
      arg.extents = a.data.extents;
      arg.strides = a.data.strides;
    } else {
      arg.bits = a.bits;
    }
    launch.args.push_back(std::move(arg));
  }
  const interp::Outcome outcome = how(launch);
  out.fault = outcome.fault;
  out.faults = outcome.faults;
  out.all_faults = outcome.all_faults;
  out.log = outcome.log;
  out.misuse = outcome.misuse;
  return out;
}

}  // namespace

Outputs run_interpreter(const ir::Prepared& kernel, const Case& c) {
  return run_on_copy(c, [&](const interp::Launch& launch) { return interp::run(kernel, launch); });
}

Outputs run_ptx(const std::string& ptx, const ir::Prepared& kernel, const Case& c, std::uint64_t seed) {
  return run_on_copy(c, [&](const interp::Launch& launch) { return test::run_ptx(ptx, kernel, launch, seed); });
}

BlockForm block_form(const Case& c, BlockForm wanted) {
  if (c.kernel.has_block_size()) return BlockForm::Exact;
  return wanted == BlockForm::Row && (c.block[1] != 1 || c.block[2] != 1) ? BlockForm::Any : wanted;
}

Outputs run_host(const ir::Prepared& kernel, const Case& c, const std::string& arch, bool aligned, BlockForm form) {
  const CodegenHandle& codegen = code_generator();
  if (!codegen.compiler) throw std::runtime_error(codegen.error);
  CompileOptions options;
  options.target = TargetKind::Host;
  options.arch = arch;
  options.block = c.block;
  if (form == BlockForm::Row) options.block = {0, 1, 1};
  if (form == BlockForm::Any) options.block = {0, 0, 0};
  options.aligned16 = aligned;
  options.block_multiple_of_32 = c.block[0] * c.block[1] * c.block[2] % 32 == 0;
  const CompiledCode code = codegen.compiler->compile(kernel, options);
  const auto object = rt::LoadedObject::load(code.code, code.symbol).value();

  std::vector<std::unique_ptr<Aligned>> storage;
  std::vector<std::uint8_t*> pointers;
  for (std::size_t i = 0; i < c.args.size(); ++i) {
    const ArgData& a = c.args[i];
    if (!a.owns()) continue;
    const std::size_t shift = aligned ? 0 : ir::byte_size(kernel.kernel.mems[kernel.kernel.params[i].mem].element);
    const std::size_t total = a.data.bytes.size() + 2 * kMargin + shift;
    storage.push_back(std::make_unique<Aligned>(total));
    std::memset(storage.back()->data, kCanary, total);
    pointers.push_back(storage.back()->data + kMargin + shift);
    if (!a.data.bytes.empty()) std::memcpy(pointers.back(), a.data.bytes.data(), a.data.bytes.size());
  }
  alignas(64) ir::FaultRecord record;
  test::LogMemory log(kernel);
  const ir::ParamLayout layout = ir::param_layout(kernel.kernel, kernel.kernel.options.checked);
  Aligned params(layout.bytes + 64);
  const std::vector<std::size_t> number = numbers(c);
  for (const ir::ParamField& f : layout.fields) {
    std::uint64_t v = 0;
    using Kind = ir::ParamField::Kind;
    switch (f.kind) {
      case Kind::Pointer: v = reinterpret_cast<std::uint64_t>(pointers[number[f.param]]); break;
      case Kind::Extent: v = c.args[f.param].data.extents[f.dimension]; break;
      case Kind::Stride: v = c.args[f.param].data.strides[f.dimension]; break;
      case Kind::Scalar: v = c.args[f.param].bits; break;
      case Kind::Fault: v = reinterpret_cast<std::uint64_t>(&record); break;
      case Kind::Log: v = reinterpret_cast<std::uint64_t>(log.data()); break;
    }
    std::memcpy(params.data + f.offset, &v, f.size);
  }
  const std::uint64_t shared = (code.static_shared_bytes + 15) / 16 * 16 + (c.shared_bytes + 63) / 64 * 64;
  const std::uint64_t warps = (c.block[0] * c.block[1] * c.block[2] + 31) / 32;
  const std::uint64_t needed = shared + code.context_bytes + warps * code.context_bytes_per_warp;
  Aligned scratch(needed + 2 * kMargin);
  std::memset(scratch.data, 0xFF, needed);
  std::memset(scratch.data + needed, kCanary, kMargin);
  const HostGrid grid{{c.grid[0], c.grid[1], c.grid[2]}, c.shared_bytes, &nanoseconds, {c.block[0], c.block[1], c.block[2]}};
  const auto entry = reinterpret_cast<HostEntry>(const_cast<void*>(object->entry()));
  entry(params.data, &grid, 0, std::uint64_t{c.grid[0]} * c.grid[1] * c.grid[2], scratch.data);

  Outputs out;
  std::size_t next = 0;
  for (const ArgData& a : c.args) {
    if (!a.owns()) continue;
    const std::uint8_t* p = pointers[next];
    out.buffers.emplace_back(p, p + a.data.bytes.size());
    for (std::size_t k = 0; k < kMargin; ++k)
      if (p[a.data.bytes.size() + k] != kCanary || p[-1 - static_cast<std::ptrdiff_t>(k)] != kCanary) {
        out.misuse.push_back("a store outside buffer " + std::to_string(next));
        break;
      }
    ++next;
  }
  if (std::any_of(scratch.data + needed, scratch.data + needed + kMargin, [](std::uint8_t b) { return b != kCanary; }))
    out.misuse.push_back("a store behind the scratch memory that the code asked for");
  if (record.state != 0) out.fault = record;
  std::string wrong;
  out.log = log.lines(wrong);
  if (!wrong.empty()) out.misuse.push_back(wrong);
  return out;
}

std::vector<std::string> host_levels() {
  std::vector<std::string> v{"x86-64"};
  if (__builtin_cpu_supports("x86-64-v2")) v.push_back("x86-64-v2");
  if (__builtin_cpu_supports("x86-64-v3")) v.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v4")) v.push_back("x86-64-v4");
  return v;
}

namespace {

// Of each thread what it said, in its order.
std::optional<std::string> log_difference(const Outputs& a, const Outputs& b) {
  using Thread = std::array<std::uint32_t, 6>;
  const auto by_thread = [](const Outputs& outputs) {
    std::map<Thread, std::vector<std::string>> said;
    for (const interp::Logged& l : outputs.log)
      said[{l.block[0], l.block[1], l.block[2], l.thread[0], l.thread[1], l.thread[2]}].push_back(l.text);
    return said;
  };
  const auto x = by_thread(a), y = by_thread(b);
  if (x == y) return std::nullopt;
  const auto describe = [](const auto& all, const Thread& t) {
    std::string text;
    if (const auto found = all.find(t); found != all.end())
      for (const std::string& line : found->second) text += (text.empty() ? "'" : ", '") + line + "'";
    return text.empty() ? std::string("nothing") : text;
  };
  for (const auto* all : {&x, &y}) {
    for (const auto& [t, lines] : *all) {
      if (describe(x, t) == describe(y, t)) continue;
      return "thread " + std::to_string(t[3]) + " " + std::to_string(t[4]) + " " + std::to_string(t[5]) + " of block " +
             std::to_string(t[0]) + " " + std::to_string(t[1]) + " " + std::to_string(t[2]) + " logs " + describe(x, t) + " against " +
             describe(y, t);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Case& c, const Outputs& a, const Outputs& b) {
  if (a.fault.has_value() != b.fault.has_value())
    return std::string("a fault is reported by ") + (a.fault ? "the first" : "the second") + " only";
  if (auto d = log_difference(a, b)) return d;
  std::size_t n = 0;
  for (std::size_t p = 0; p < c.args.size(); ++p) {
    if (!c.args[p].owns()) continue;
    const ir::Mem& mem = c.kernel.mems[c.kernel.params[p].mem];
    const std::vector<std::uint8_t>&x = a.buffers[n], &y = b.buffers[n];
    ++n;
    const unsigned size = ir::byte_size(mem.element);
    for (std::size_t i = 0; i < x.size(); i += size) {
      if (std::memcmp(&x[i], &y[i], size) == 0) continue;
      std::uint64_t u = 0, v = 0;
      std::memcpy(&u, &x[i], size);
      std::memcpy(&v, &y[i], size);
      if (ir::is_nan(mem.element, u) && ir::is_nan(mem.element, v)) continue;
      char text[160];
      std::snprintf(text, sizeof text, "%s[%zu]: 0x%llx against 0x%llx", mem.name.c_str(), i / size, static_cast<unsigned long long>(u),
                    static_cast<unsigned long long>(v));
      return text;
    }
  }
  return std::nullopt;
}

namespace {

// The kernel as recorded with a check on every access: what may change nothing is left out.
ir::Prepared as_recorded(const ir::Kernel& k) {
  ir::Prepared p;
  p.kernel = k;
  p.kernel.options.checked = true;
  ir::contract(p.kernel);  // a part of the meaning
  ir::expand_math(p.kernel);
  ir::compact(p.kernel);
  for (ir::Op& op : p.kernel.ops) {
    if (!ir::is_access(op.code) && op.code != ir::Opcode::Check && op.code != ir::Opcode::Assume && op.code != ir::Opcode::Trap) continue;
    if (ir::is_access(op.code)) op.bounds = ir::Bounds::Checked;
    op.site = static_cast<std::uint32_t>(p.sites.size());
    p.sites.push_back({});
  }
  p.shared = ir::layout_shared(p.kernel);
  return p;
}

bool same(const ir::FaultRecord& a, const ir::FaultRecord& b) {
  return a.kind == b.kind && a.site == b.site && a.dimension == b.dimension && a.index == b.index && a.extent == b.extent &&
         std::equal(a.thread, a.thread + 3, b.thread) && std::equal(a.block, a.block + 3, b.block);
}

// A device reports some one of the faults that there are, whole and true.
std::optional<std::string> wrong_fault(const Outputs& expected, const Outputs& got) {
  if (!got.fault) return std::nullopt;
  if (got.fault->state != 2) return "a fault record that is not whole";
  for (const ir::FaultRecord& f : expected.faults)
    if (same(f, *got.fault)) return std::nullopt;
  if (!expected.all_faults) return std::nullopt;
  const ir::FaultRecord& f = *got.fault;
  char text[200];
  std::snprintf(text, sizeof text,
                "a fault that did not happen: site %u, dimension %u, index %llu, extent %llu, thread %u %u %u, block %u %u %u", f.site,
                f.dimension, static_cast<unsigned long long>(f.index), static_cast<unsigned long long>(f.extent), f.thread[0], f.thread[1],
                f.thread[2], f.block[0], f.block[1], f.block[2]);
  return text;
}

std::optional<std::string> compare(const Case& c, const Outputs& expected, const Outputs& got, const std::string& mode,
                                   const std::string& device) {
  if (!got.misuse.empty()) return mode + ", " + device + ": " + got.misuse.front();
  if (auto d = difference(c, expected, got)) return mode + ", interpreter against " + device + ": " + *d;
  if (auto d = wrong_fault(expected, got)) return mode + ", " + device + ": " + *d;
  return std::nullopt;
}

std::optional<std::string> check_ptx(const Case& c, const ir::Prepared& prepared, const Outputs& expected, const std::string& mode,
                                     bool assemble) {
  const CodegenHandle& codegen = code_generator();
  for (const char* arch : {"sm_75", "sm_90", "sm_121"}) {
    CompileOptions o;
    o.target = TargetKind::Ptx;
    o.arch = arch;
    o.block_multiple_of_32 = c.block[0] * c.block[1] * c.block[2] % 32 == 0;
    if (c.kernel.has_block_size()) o.block = c.block;
    const CompiledCode code = codegen.compiler->compile(prepared, o);
    if (auto d = compare(c, expected, run_ptx(code.code, prepared, c, c.kernel.ops.size()), mode, std::string("PTX for ") + arch)) return d;
    if (!assemble || test::no_ptxas()) continue;
    const test::Assembled assembled = test::assemble_ptx(code.code, arch);
    if (!assembled.ok) return mode + ", " + arch + ": ptxas refuses: " + assembled.messages.substr(0, 400);
  }
  return std::nullopt;
}

bool same(const ir::FaultRecord& a, const BoundsFault& b, std::span<const ir::FaultSite> sites) {
  const BoundsFault x = rt::bounds_fault(a, sites);
  return x.memory == b.memory && x.operation == b.operation && x.place == b.place && x.declared == b.declared &&
         x.dimension == b.dimension && x.index_signed == b.index_signed && x.index == b.index && x.extent == b.extent &&
         x.thread == b.thread && x.block == b.block;
}

// Through the real runtime, on a simulated device.
std::optional<std::string> check_sim(const Case& c, const Variant& variant, const ir::Prepared& prepared, const Outputs& expected,
                                     bool checked, const SimTurn& turn, const std::string& mode) {
  const std::string where = mode + ", " + text(turn);
  SimOutcome got = run_sim(variant, c, checked, turn);
  if (const auto inexact = test::inexact_float(got.ptx)) return where + ": " + *inexact;
  if (!got.finding.empty()) return where + ": " + got.finding;
  Outputs out;
  out.buffers = std::move(got.buffers);
  if (got.fault) out.fault.emplace();
  out.log = std::move(got.log);
  if (auto d = difference(c, expected, out)) return mode + ", interpreter against " + text(turn) + ": " + *d;
  if (!got.fault || !expected.all_faults) return std::nullopt;
  for (const ir::FaultRecord& f : expected.faults)
    if (same(f, *got.fault, prepared.sites)) return std::nullopt;
  const BoundsFault& f = *got.fault;
  return where + ": a fault that did not happen: " + f.operation + " of " + f.memory + " at " + f.place + ", dimension " +
         std::to_string(f.dimension) + ", index " + std::to_string(f.index) + ", extent " + std::to_string(f.extent) + ", thread " +
         std::to_string(f.thread[0]) + " " + std::to_string(f.thread[1]) + " " + std::to_string(f.thread[2]) + ", block " +
         std::to_string(f.block[0]) + " " + std::to_string(f.block[1]) + " " + std::to_string(f.block[2]);
}

std::optional<std::string> check_mode(const Case& c, const Variant& variant, const CheckOptions& options, bool checked) {
  const std::string mode = checked ? "checked" : "unchecked";
  const ir::Prepared& prepared = **variant.prepared(checked ? ir::PrepareOptions::Mode::Checked : ir::PrepareOptions::Mode::Unchecked);
  const Outputs expected = run_interpreter(prepared, c);
  if (!expected.misuse.empty()) return mode + ", interpreter: " + expected.misuse.front();
  if (expected.fault && !c.may_fault) return mode + ", interpreter: a fault in a kernel whose accesses are all in range";
  // The passes keep bits: without the optimising ones the same must come out.
  const Outputs recorded = run_interpreter(as_recorded(c.kernel), c);
  if (!recorded.misuse.empty()) return mode + ", interpreter as recorded: " + recorded.misuse.front();
  if (auto d = difference(c, recorded, expected)) return mode + ", as recorded against prepared: " + *d;
  const ir::Kernel again = ir::parse_kernel(ir::print(c.kernel));
  if (ir::print(again) != ir::print(ir::parse_kernel(ir::print(again)))) return mode + ": the text form does not round trip";
  bool aligned = options.aligned;
  const BlockForm form = block_form(c, options.block);
  const std::string of_block = form == BlockForm::Exact ? "" : form == BlockForm::Row ? " for a row" : " for any block";
  for (const std::string& level : options.levels) {
    if (auto d = compare(c, expected, run_host(prepared, c, level, aligned, form), mode, level + of_block)) return d;
    aligned = !aligned;
  }
  if (options.sim)
    if (auto d = check_sim(c, variant, prepared, expected, checked, options.sim_turn, mode)) return d;
  return options.ptx ? check_ptx(c, prepared, expected, mode, options.assemble) : std::nullopt;
}

}  // namespace

CheckOptions options_in_turn(std::uint64_t seed) {
  static const std::vector<std::string> levels = host_levels();
  const SimTurn turn = sim_turn(seed);
  CheckOptions o;
  o.levels = {levels[seed % levels.size()]};
  seed /= levels.size();
  o.checked = seed % 2 == 0;
  o.unchecked = !o.checked;
  o.aligned = seed / 2 % 2 == 0;
  constexpr std::uint64_t kOfForms = 8;
  const std::uint64_t form = seed / 4 % kOfForms;
  if (form == kOfForms - 2) o.block = BlockForm::Row;
  if (form == kOfForms - 1) o.block = BlockForm::Any;
  o.sim_turn = turn;
  return o;
}

Shape shape_in_turn(std::uint64_t seed) {
  Shape shape;
  shape.statements = 1 + static_cast<std::uint32_t>(seed % 5);
  return shape;
}

std::optional<std::string> check(const Case& c, const CheckOptions& options) {
  try {
    const ir::Diagnostics found = ir::verify(c.kernel);
    if (!found.empty()) return "the verifier refuses: " + ir::to_string(found);
    const Variant variant(c.kernel);
    if (options.checked || c.may_fault)
      if (auto d = check_mode(c, variant, options, true)) return d;
    if (options.unchecked && !c.may_fault) return check_mode(c, variant, options, false);
  } catch (const std::exception& e) { return std::string("an exception: ") + e.what(); }
  return std::nullopt;
}

// --- reduction ------------------------------------------------------------------------------------------------------
namespace {

bool valid(const Case& c) { return ir::verify(c.kernel).empty(); }

// Tries to drop operation `at` of `region`; a used result becomes a constant zero.
bool drop(Case& c, ir::RegionId region, std::size_t at) {
  ir::Kernel& k = c.kernel;
  const ir::OpId id = k.regions[region].ops[at];
  ir::Op& op = k.ops[id];
  if (op.code == ir::Opcode::Yield) return false;
  if (op.code == ir::Opcode::Const && op.imm == 0) {
    k.regions[region].ops.erase(k.regions[region].ops.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }
  if (op.type != ir::Type::Void && op.code != ir::Opcode::For) {
    ir::Op zero;
    zero.code = ir::Opcode::Const;
    zero.type = op.type;
    zero.loc = op.loc;
    op = std::move(zero);
    return true;
  }
  k.regions[region].ops.erase(k.regions[region].ops.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

// Puts the operations of an if's region in the place of the if.
bool unwrap(Case& c, ir::RegionId region, std::size_t at, unsigned which) {
  ir::Kernel& k = c.kernel;
  const ir::Op& op = k.ops[k.regions[region].ops[at]];
  if ((op.code != ir::Opcode::If && op.code != ir::Opcode::Switch) || which >= op.regions.size()) return false;
  const std::vector<ir::OpId> body = k.regions[op.regions[which]].ops;
  auto& ops = k.regions[region].ops;
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at));
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), body.begin(), body.end());
  return true;
}

// Uses of a value may be replaced by one of its operands of the same type.
bool bypass(Case& c, ir::RegionId region, std::size_t at, unsigned which) {
  ir::Kernel& k = c.kernel;
  const ir::OpId id = k.regions[region].ops[at];
  const ir::Op& op = k.ops[id];
  if (op.type == ir::Type::Void || which >= op.operands.size() || op.code == ir::Opcode::For) return false;
  const ir::ValueId by = op.operands[which];
  if (k.ops[by].type != op.type) return false;
  bool used = false;
  for (ir::Op& o : k.ops)
    for (ir::ValueId& v : o.operands)
      if (v == id) v = by, used = true;
  return used;
}

template <class Edit>
bool try_edit(Case& c, const std::function<bool(const Case&)>& fails, Edit&& edit) {
  Case candidate = c;
  if (!edit(candidate)) return false;
  ir::compact(candidate.kernel);
  if (!valid(candidate) || !fails(candidate)) return false;
  c = std::move(candidate);
  return true;
}

}  // namespace

Case reduce(Case c, const std::function<bool(const Case&)>& fails) {
  ir::compact(c.kernel);
  for (bool progress = true; progress;) {
    progress = false;
    if (c.grid != std::array<std::uint32_t, 3>{1, 1, 1}) {
      progress |= try_edit(c, fails, [](Case& x) {
        x.grid = {1, 1, 1};
        return true;
      });
    }
    for (ir::RegionId region = 0; region < c.kernel.regions.size(); ++region)
      for (std::size_t at = c.kernel.regions[region].ops.size(); at-- > 0;) {
        if (region >= c.kernel.regions.size() || at >= c.kernel.regions[region].ops.size()) continue;
        if (try_edit(c, fails, [&](Case& x) { return drop(x, region, at); })) {
          progress = true;
          continue;
        }
        for (unsigned which = 0; which < 3; ++which) {
          if (region >= c.kernel.regions.size() || at >= c.kernel.regions[region].ops.size()) break;
          if (try_edit(c, fails, [&](Case& x) { return unwrap(x, region, at, which); }) ||
              try_edit(c, fails, [&](Case& x) { return bypass(x, region, at, which); })) {
            progress = true;
            break;
          }
        }
      }
  }
  return c;
}

}  // namespace kiln::fuzz
