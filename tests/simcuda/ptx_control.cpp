// Branches, calls, barriers of blocks, fences, and what stops or delays threads.
#include <algorithm>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_block.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

void nothing(Warp&, const Op&, Mask) {}

void bra(Decoder& d) {
  d.take("uni");
  if (!d.count(1)) return;
  const Operand& to = d.operand(0);
  if (to.kind != Operand::Kind::Name) return d.mismatch();
  const auto target = d.label(to.name);
  if (!target) return;
  d.op.flow = Flow::Branch;
  d.op.target = *target;
}

void brx(Decoder& d) {
  if (!d.take("idx")) return d.bad_type();
  d.take("uni");
  if (!d.count(2)) return;
  d.op.a = d.in(0, Type::U32);
  const std::vector<std::string_view>* names = d.table(d.operand(1).name);
  if (names == nullptr) return d.error("Unknown symbol '" + std::string(d.operand(1).name) + "'");
  std::vector<std::uint32_t> targets;
  for (const std::string_view name : *names) targets.push_back(d.label(name).value_or(0));
  d.op.flow = Flow::Table;
  d.op.target = static_cast<std::uint32_t>(d.function().tables.size());
  d.function().tables.push_back(std::move(targets));
}

// Arguments and results against what the callee declares.
bool call_list(Decoder& d, const Operand* list, const std::vector<std::uint64_t>& sizes, std::vector<Call::Item>& items, bool results) {
  const std::size_t given = list == nullptr ? 0 : list->parts.size();
  if (given != sizes.size()) {
    d.mismatch();
    return false;
  }
  for (std::size_t k = 0; k < given; ++k) {
    const Operand& o = list->parts[k];
    Call::Item item;
    item.bytes = static_cast<std::uint32_t>(sizes[k]);
    if (o.kind == Operand::Kind::Variable) {
      if (o.variable->space != Space::Param || o.variable->bytes != sizes[k]) {
        d.error("Type of argument does not match formal parameter of call to function");
        return false;
      }
      item.offset = d.frame_offset(*o.variable);
    } else {
      const Type t = sizes[k] == 8 ? Type::B64 : sizes[k] == 4 ? Type::B32 : Type::B16;
      item.is_register = true;
      item.slot = results ? d.out(o, t) : d.in(o, t);
    }
    items.push_back(item);
  }
  return !d.failed();
}

void call(Decoder& d) {
  d.take("uni");
  std::size_t k = 0;
  const Operand *results = nullptr, *arguments = nullptr;
  if (k < d.operands() && d.operand(k).kind == Operand::Kind::List) results = &d.operand(k++);
  if (k >= d.operands()) return d.mismatch();
  const Operand& target = d.operand(k++);
  if (k < d.operands() && d.operand(k).kind == Operand::Kind::List) arguments = &d.operand(k++);
  Call c;
  std::vector<std::uint64_t> result_sizes, argument_sizes;
  if (target.kind == Operand::Kind::Function) {
    const FunctionDecl& f = *target.function;
    if (f.entry) return d.mismatch();
    for (const auto& v : f.results) result_sizes.push_back(v->bytes);
    for (const auto& v : f.params) argument_sizes.push_back(v->bytes);
    if (f.defined) {
      c.callee = d.context().functions.at(&f);
    } else if (f.name == "vprintf") {
      c.kind = Call::Kind::Print;
    } else if (f.name == "__assertfail") {
      c.kind = Call::Kind::AssertFail;
    } else {
      return d.error("Unresolved extern function '" + f.name + "'");
    }
  } else if (target.kind == Operand::Kind::Register) {
    c.kind = Call::Kind::Indirect;
    c.address = d.in(target, Type::U64);
    if (k >= d.operands()) return d.error("Call through register requires call prototype");
    const auto it = d.decl().prototypes.find(d.operand(k++).name);
    if (it == d.decl().prototypes.end()) return d.error("Unknown symbol '" + std::string(d.operand(k - 1).name) + "'");
    for (const auto& v : it->second.results) result_sizes.push_back(v.bytes);
    for (const auto& v : it->second.params) argument_sizes.push_back(v.bytes);
  } else if (target.kind == Operand::Kind::Name) {
    return d.error("Call to '" + std::string(target.name) + "' requires call prototype");
  } else {
    return d.mismatch();
  }
  if (!call_list(d, results, result_sizes, c.results, true) || !call_list(d, arguments, argument_sizes, c.arguments, false)) return;
  d.op.flow = Flow::Call;
  d.op.target = static_cast<std::uint32_t>(d.function().calls.size());
  d.function().calls.push_back(std::move(c));
}

void ret(Decoder& d) {
  d.take("uni");
  if (d.count(0)) d.op.flow = Flow::Return;
}

void exit_thread(Decoder& d) {
  if (d.count(0)) d.op.flow = Flow::Exit;
}

template <bool Breakpoint>
void trap(Decoder& d) {
  if (!d.count(0)) return;
  d.op.flow = Flow::Stop;
  d.op.code = Breakpoint;
}

enum BarrierKind : std::uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

void barrier(Decoder& d) {
  const bool is_bar = d.name() == "bar";
  if (is_bar && d.take("warp")) {
    if (!d.take("sync") || !d.count(1)) return;
    d.op.flow = Flow::Together;
    d.op.code = static_cast<std::uint8_t>(WarpSync::Barrier);
    d.op.v[0] = d.in(0, Type::B32);
    d.function().warp_syncs = true;
    return;
  }
  if (!is_bar && d.take("cluster")) {
    d.need(90, 78);
    d.function().clusters = true;
    const bool wait = d.take("wait"), arrive = d.take("arrive");
    d.take_any({"release", "relaxed", "acquire"});
    d.take("aligned");
    if (wait == arrive || !d.count(0)) return d.bad_type();
    // The cluster is one block. All of its threads arrive, then wait: they meet where they wait.
    d.op.execute = &nothing;
    if (wait) {
      d.op.flow = Flow::Barrier;
      d.op.code = kSync;
      d.op.a = d.constant(0);
      d.op.b = d.constant(0);
    }
    return;
  }
  d.take("cta");
  const std::string_view kind = d.take_any({"sync", "arrive", "red"});
  const std::string_view reduce = kind == "red" ? d.take_any({"popc", "and", "or"}) : std::string_view();
  d.op.aligned = d.take("aligned") || is_bar;
  if (kind.empty() || (kind == "red" && reduce.empty())) return d.bad_type();
  d.op.flow = Flow::Barrier;
  d.op.code = kind == "sync" ? kSync : kind == "arrive" ? kArrive : reduce == "popc" ? kPopc : reduce == "and" ? kAnd : kOr;
  std::size_t k = 0;
  if (kind == "red") {
    const Type t = d.take_type();
    if (t != (reduce == "popc" ? Type::U32 : Type::Pred)) return d.bad_type();
    if (!d.count(3, 4)) return;
    if (reduce == "popc") d.op.d = d.out(k++, Type::U32);
    else d.op.p = d.predicate_out(d.operand(k++));
  } else if (!d.count(kind == "arrive" ? 2 : 1, 2)) {
    return;
  }
  const Operand& id = d.operand(k++);
  if (const auto n = d.integer(id); n && (*n < 0 || *n > 15)) {
    return d.error("Barrier number '" + std::to_string(*n) + "' out of range, expected to be in range [0..15]");
  }
  d.op.a = d.in(id, Type::U32);
  const bool counted = k + (kind == "red" ? 1 : 0) < d.operands();
  if (counted) {
    if (const auto n = d.integer(d.operand(k)); n && (*n < 0 || *n % 32 != 0)) {
      return d.error("Thread count '" + std::to_string(*n) + "' of a barrier must be a multiple of the warp size");
    }
  }
  d.op.b = counted ? d.in(k++, Type::U32) : d.constant(0);
  if (kind == "red") d.op.q = d.predicate_in(d.operand(k));
}

void fence(Decoder& d) {
  d.op.execute = [](Warp& w, const Op&, Mask m) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (w.block->races) lanes(m, [&](unsigned l) { w.block->races->clock().fence(w.index * 32 + l); });
  };
  d.function().fences = true;
  if (d.name() == "membar") {
    if (d.take_any({"cta", "gl", "sys"}).empty()) return d.bad_type();
  } else {
    if (d.take("proxy")) return d.unknown("a fence between proxies");
    const bool mbarrier = d.take("mbarrier_init");
    const std::string_view sem = d.take_any({"sc", "acq_rel", "acquire", "release"});
    if (mbarrier) return d.unknown("an mbarrier");
    const std::string_view scope = d.take_any({"cta", "cluster", "gpu", "sys"});
    if (scope.empty()) return d.bad_type();
    if (scope == "cluster") d.need(90, 78, ".cluster scope");
    if (sem == "acquire" || sem == "release") d.need(70, 86, "fence with .acquire or .release");
  }
  d.count(0);
}

void nanosleep(Decoder& d) {
  if (d.take_type() != Type::U32) return d.bad_type();
  if (!d.count(1)) return;
  d.op.a = d.in(0, Type::U32);
  d.op.flow = Flow::Sleep;
}

void activemask(Decoder& d) {
  if (d.take_type() != Type::B32) return d.bad_type();
  if (!d.count(1)) return;
  d.op.d = d.out(0, Type::B32);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) { r[l] = m; });
  };
}

// A piece of the stack, the same size for all threads that go together: the largest that one of them asks for.
void alloca_(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::U64 && t != Type::U32) return d.bad_type();
  d.need(52, 73);
  if (!d.count(2, 3)) return;
  const auto align = d.operands() == 3 ? d.integer(d.operand(2)) : std::optional<std::int64_t>(8);
  if (!align || *align <= 0 || (*align & (*align - 1)) != 0) return d.mismatch();
  d.op.imm = std::max<std::int64_t>(*align, 8);
  d.op.a = d.in(1, t);
  d.op.d = d.out(0, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64* a = w.in(o.a);
    u64* r = w.out(o.d);
    u64 most = 0;
    for (Mask rest = m; rest != 0; rest &= rest - 1) most = std::max(most, a[std::countr_zero(rest)]);
    const auto align_to = static_cast<u64>(o.imm);
    const u64 at = (w.frame->top + align_to - 1) / align_to * align_to;
    if (most > w.block->launch->local_stride || at + most > w.block->launch->local_stride) {
      stop(w, o, static_cast<unsigned>(std::countr_zero(m)), cuda::CUDA_ERROR_HARDWARE_STACK_ERROR,
           "stack overflow: alloca of " + std::to_string(most) + " bytes with " + std::to_string(w.block->launch->local_stride) +
               " bytes of local memory a thread");
    }
    w.frame->top = (at + most + 15) / 16 * 16;
    lanes(m, [&](unsigned l) { r[l] = at; });
  };
}

void stacksave(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::U64 && t != Type::U32) return d.bad_type();
  d.need(52, 73);
  if (!d.count(1)) return;
  d.op.d = d.out(0, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) { r[l] = w.frame->top; });
  };
}

void stackrestore(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::U64 && t != Type::U32) return d.bad_type();
  d.need(52, 73);
  if (!d.count(1)) return;
  d.op.a = d.in(0, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64* a = w.in(o.a);
    u64 most = 0;
    for (Mask rest = m; rest != 0; rest &= rest - 1) most = std::max(most, a[std::countr_zero(rest)]);
    if (most > w.block->launch->local_stride) {
      stop(w, o, static_cast<unsigned>(std::countr_zero(m)), cuda::CUDA_ERROR_HARDWARE_STACK_ERROR,
           "stack overflow: stackrestore to " + std::to_string(most) + " with " + std::to_string(w.block->launch->local_stride) +
               " bytes of local memory a thread");
    }
    w.frame->top = std::max(most, w.frame->local + w.frame->function->frame_bytes);
  };
}

// Hints to the scheduler of the device.
void hint(Decoder& d) {
  d.op.execute = &nothing;
  if (d.name() == "griddepcontrol") {
    d.need(90, 78);
    if (d.take_any({"launch_dependents", "wait"}).empty()) return d.bad_type();
    d.count(0);
  } else if (d.name() == "setmaxnreg") {
    if (d.context().module->arch_suffix == 0)
      return d.error("Instruction 'setmaxnreg' not supported on .target 'sm_" + std::to_string(d.context().module->arch) + "'");
    d.take_any({"inc", "dec"});
    d.take("sync");
    d.take("aligned");
    d.take_type();
    d.count(1);
  } else {
    d.take("mask");
    d.count(1);  // pmevent
  }
}

}  // namespace

void add_control(DecodeTable& table) {
  table["bra"] = &bra;
  table["brx"] = &brx;
  table["call"] = &call;
  table["ret"] = &ret;
  table["exit"] = &exit_thread;
  table["trap"] = &trap<false>;
  table["brkpt"] = &trap<true>;
  table["bar"] = &barrier;
  table["barrier"] = &barrier;
  table["membar"] = &fence;
  table["fence"] = &fence;
  table["nanosleep"] = &nanosleep;
  table["activemask"] = &activemask;
  table["alloca"] = &alloca_;
  table["stacksave"] = &stacksave;
  table["stackrestore"] = &stackrestore;
  table["griddepcontrol"] = &hint;
  table["setmaxnreg"] = &hint;
  table["pmevent"] = &hint;
}

}  // namespace kiln::simcuda::ptx
