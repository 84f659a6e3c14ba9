// Every operation of the table with every type in each of its places: either it runs, on the interpreter, on the lowest level of the CPU
// and as executed PTX, or the verifier refuses it, naming the operation, its line and what would be needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "fuzz/runner.h"
#include "kiln/ir/builder.h"
#include "kiln/ir/floats.h"
#include "kiln/ir/passes.h"
#include "kiln/ir/verify.h"
#include "kiln/runtime/compiler.h"

using namespace kiln;
using ir::Access;
using ir::Form;
using ir::Op;
using ir::Opcode;
using ir::Type;
using ir::ValueId;

namespace {

constexpr unsigned kThreads = 32;
constexpr std::uint32_t kLine = 77;  // of the operation under test

std::vector<Type> types(bool with_void) {
  std::vector<Type> v;
  for (int t = with_void ? 0 : 1; t < ir::kTypeCount; ++t) v.push_back(static_cast<Type>(t));
  return v;
}
const std::vector<Type> kTypes = types(false), kResults = types(true);

// Small numbers of both signs where there are two, none of them NaN.
std::uint64_t bits_of(Type t, unsigned i) {
  if (ir::is_bool(t)) return i & 1;
  if (ir::is_real(t)) return ir::float_bits(t, 0.25 * static_cast<int>(i % 13) - 0.75);
  return (i * 37 + 5) & ir::value_mask(t);
}

// A kernel of 32 threads that grows by operations under test, each with operands from memory and its result in a buffer of its own.
class Bench {
 public:
  Bench() : b(c.kernel) {
    c.kernel.name = "combinations";
    c.block = {kThreads, 1, 1};
    b.loc = {b.file("combinations.cpp"), 1};
    thread_ = b.query(Opcode::ThreadId, 0);
  }

  ValueId thread() const { return thread_; }
  std::uint32_t buffer(Type t, Access access, bool strided = false) {
    fuzz::ArgData a;
    a.is_buffer = true;
    a.data.extents = {kThreads};
    if (strided) a.data.strides = {1};
    for (unsigned i = 0; i < kThreads; ++i) {
      for (unsigned k = 0; k < ir::byte_size(t); ++k) a.data.bytes.push_back(static_cast<std::uint8_t>(bits_of(t, i) >> (8 * k)));
    }
    c.args.push_back(std::move(a));
    return b.buffer(name(), t, 1, access, strided);
  }
  ValueId scalar(Type t, std::uint64_t bits) {
    fuzz::ArgData a;
    a.bits = bits;
    c.args.push_back(a);
    return b.scalar(name(), t);
  }
  std::string name() { return "m" + std::to_string(names_++); }
  ValueId in(Type t) {
    const auto [at, is_new] = inputs_.try_emplace(t, 0);
    if (is_new) at->second = b.load(buffer(t, Access::In), {thread_});
    return at->second;
  }
  void out(ValueId v) {
    const Type t = c.kernel.op(v).type;
    if (t != Type::Void) b.store(buffer(t, Access::Out), {thread_}, v);
  }
  // The operation under test.
  ValueId test(Op op) {
    op.loc = {0, kLine};
    return b.append(std::move(op));
  }
  template <class F>
  void in_region(ir::OpId op, unsigned number, F&& f) {
    const ir::RegionId before = b.region();
    b.set_region(c.kernel.op(op).regions[number]);
    f();
    b.set_region(before);
  }
  // A count that goes up where control comes by.
  std::uint32_t counter() { return b.slot(name(), Type::U32); }
  void count(std::uint32_t slot) { b.set(slot, b.binary(Opcode::Add, b.get(slot), b.const_u32(1))); }

  fuzz::Case c;
  ir::Builder b;

 private:
  std::map<Type, ValueId> inputs_;
  ValueId thread_ = ir::kNone;
  unsigned names_ = 0;
};

struct Combination {
  std::string title;
  std::function<void(Bench&)> build;
  bool last = false;  // nothing may follow in the same kernel
};
using Combinations = std::vector<Combination>;

std::string title(Opcode code, std::initializer_list<Type> operands, Type result = Type::Void) {
  std::string s(ir::info(code).mnemonic);
  for (const Type t : operands) s += " " + std::string(ir::name(t));
  return s + " -> " + std::string(ir::name(result));
}

// Operands from memory, a result of `result`.
Combination plain(Opcode code, std::vector<Type> operands, Type result, unsigned attr = 0) {
  std::string s(ir::info(code).mnemonic);
  if (ir::info(code).form == Form::WarpCombine) s += "." + std::string(ir::name(static_cast<ir::Combine>(attr)));
  for (const Type t : operands) s += " " + std::string(ir::name(t));
  return {s + " -> " + std::string(ir::name(result)), [=](Bench& k) {
            std::vector<ValueId> v;
            for (const Type t : operands) v.push_back(k.in(t));
            k.out(k.test({.code = code, .type = result, .attr = static_cast<std::uint8_t>(attr), .operands = v}));
          }};
}

// All operands of one type with any result, and each operand of each type beside the others' with the right result.
void operands_of_one_type(Combinations& all, Opcode code, std::size_t count, const std::function<Type(Type)>& result) {
  for (const Type t : kTypes) {
    for (const Type r : kResults) all.push_back(plain(code, std::vector<Type>(count, t), r));
    for (std::size_t at = 0; at < count && count > 1; ++at) {
      for (const Type u : kTypes) {
        if (u == t) continue;
        std::vector<Type> mixed(count, t);
        mixed[at] = u;
        all.push_back(plain(code, mixed, result(mixed[0])));
      }
    }
  }
}

enum class Where : std::uint8_t { In, Out, InOut, Shared, Dynamic, Local };
constexpr Where kPlaces[] = {Where::In, Where::Out, Where::InOut, Where::Shared, Where::Dynamic, Where::Local};
const char* name(Where w) {
  constexpr const char* names[] = {"in", "out", "inout", "shared", "dynamic", "local"};
  return names[static_cast<int>(w)];
}
std::uint32_t memory(Bench& k, Where w, Type t) {
  switch (w) {
    case Where::In: return k.buffer(t, Access::In);
    case Where::Out: return k.buffer(t, Access::Out);
    case Where::InOut: return k.buffer(t, Access::InOut);
    case Where::Shared: return k.b.shared(k.name(), t, {kThreads});
    case Where::Local: return k.b.local(k.name(), t, {kThreads});
    case Where::Dynamic: break;
  }
  k.c.shared_bytes = kThreads * ir::byte_size(t);
  return k.b.dynamic_shared(k.name(), t);
}

// An access to memory of elements `element`, with an index and values of these types. Each thread has its own element.
Combination access(Opcode code, Where w, Type element, Type index, std::vector<Type> values, Type result) {
  std::string s = title(code, {element, index}, result) + " " + name(w);
  for (const Type t : values) s += " " + std::string(ir::name(t));
  return {s,
          [=](Bench& k) {
            const std::uint32_t m = memory(k, w, element);
            const bool written_first = w == Where::Shared || w == Where::Dynamic || w == Where::Local;
            if (written_first) k.b.store(m, {k.thread()}, k.in(element));
            std::vector<ValueId> operands;
            operands.push_back(index == Type::U32 ? k.thread() : ir::is_integer(index) ? k.b.cast(index, k.thread()) : k.in(index));
            for (const Type t : values) operands.push_back(k.in(t));
            k.out(k.test({.code = code, .type = result, .index = m, .operands = operands}));
            if (written_first) k.out(k.b.load(m, {k.thread()}));
          },
          w == Where::Dynamic};
}

void accesses(Combinations& all, Opcode code, Form form) {
  const std::size_t values = form == Form::Load ? 0 : form == Form::AtomicCas ? 2 : 1;
  const auto result = [&](Type t) { return form == Form::Store ? Type::Void : t; };
  for (const Type t : kTypes) {
    for (const Where w : kPlaces) all.push_back(access(code, w, t, Type::U32, std::vector<Type>(values, t), result(t)));
    for (const Type u : kTypes) {
      if (u != t) all.push_back(access(code, Where::InOut, Type::U32, u, std::vector<Type>(values, Type::U32), result(Type::U32)));
      if (u != t && values > 0) all.push_back(access(code, Where::InOut, t, Type::U32, std::vector<Type>(values, u), result(t)));
      if (u != t && form != Form::Store) all.push_back(access(code, Where::InOut, t, Type::U32, std::vector<Type>(values, t), u));
    }
  }
}

void queries(Combinations& all, Opcode code) {
  for (const Type r : kResults) {
    if (code == Opcode::Param) {
      for (const Type t : kTypes)
        all.push_back({title(code, {t}, r), [=](Bench& k) {
                         const std::uint32_t number = k.scalar(t, bits_of(t, 3));
                         k.out(k.test({.code = code, .type = r, .index = number}));
                       }});
      continue;
    }
    const bool of_memory = code == Opcode::Size || code == Opcode::Extent || code == Opcode::Stride;
    all.push_back({title(code, {}, r), [=](Bench& k) {
                     const std::uint32_t m = of_memory ? k.buffer(Type::F32, Access::In, code == Opcode::Stride) : ir::kNone;
                     const ValueId v = k.test({.code = code, .type = r, .index = m});
                     const bool differs = r == Type::U64 && ir::info(code).effect == ir::Effect::Time;  // from run to run
                     k.out(differs ? k.b.binary(Opcode::Ge, v, v) : v);
                   }});
  }
}

void control(Combinations& all, Opcode code, Form form) {
  for (const Type t : kTypes) {
    if (form == Form::If) {
      all.push_back({title(code, {t}), [=](Bench& k) {
                       const std::uint32_t n = k.counter();
                       const ValueId v = k.in(t);
                       const ir::OpId op = k.test({.code = code, .operands = {v}, .regions = {k.b.new_region(), k.b.new_region()}});
                       k.in_region(op, 0, [&] { k.count(n); });
                       k.out(k.b.get(n));
                     }});
    } else if (form == Form::For) {
      for (const Type u : kTypes)
        for (unsigned at = 0; at < (u == t ? 1u : 3u); ++at)
          all.push_back({title(code, {t, u}, t) + " " + std::to_string(at), [=](Bench& k) {
                           const std::uint32_t n = k.counter();
                           std::vector<ValueId> v;
                           for (unsigned i = 0; i < 3; ++i) v.push_back(k.b.constant(i == at ? u : t, i == 0 ? 1 : i == 1 ? 7 : 2));
                           const ir::OpId op = k.test({.code = code, .type = t, .operands = v, .regions = {k.b.new_region()}});
                           k.in_region(op, 0, [&] { k.count(n); });
                           k.out(k.b.get(n));
                         }});
    } else if (form == Form::Switch) {
      all.push_back({title(code, {t}), [=](Bench& k) {
                       const std::uint32_t n = k.counter();
                       const ValueId v = k.in(t);
                       const ir::OpId op = k.test(
                           {.code = code, .operands = {v}, .regions = {k.b.new_region(), k.b.new_region()}, .cases = {bits_of(t, 2)}});
                       k.in_region(op, 0, [&] { k.count(n); });
                       k.out(k.b.get(n));
                     }});
    } else if (form == Form::Yield) {
      all.push_back({title(code, {t}), [=](Bench& k) {
                       const std::uint32_t n = k.counter();
                       const ValueId other = k.in(t);
                       const ir::OpId op = k.b.while_();
                       k.in_region(op, 0, [&] {
                         const ValueId below = k.b.binary(Opcode::Lt, k.b.get(n), k.b.const_u32(3));
                         k.test({.code = code, .operands = {ir::is_bool(t) ? below : other}});
                       });
                       k.in_region(op, 1, [&] { k.count(n); });
                       k.out(k.b.get(n));
                     }});
    } else if (form == Form::Check) {
      for (const Type u : kTypes)
        all.push_back({title(code, {t, u}), [=](Bench& k) {
                         const ValueId v = ir::is_bool(t) ? k.b.binary(Opcode::Lt, k.thread(), k.b.const_u32(kThreads)) : k.in(t);
                         const ValueId shown = k.in(u);
                         k.b.loc.line = kLine;
                         if (code == Opcode::Assume) k.b.assume(v, "it");
                         else k.b.check(v, "{} and {}", {shown, shown});
                         k.b.loc.line = 1;
                       }});
    } else if (code == Opcode::LogText) {
      all.push_back({title(code, {t}), [=](Bench& k) {
                       const ValueId v = k.in(t);
                       k.b.loc.line = kLine;
                       k.b.log_text("{} and {}", {v, k.thread()});
                       k.b.loc.line = 1;
                     }});
    } else if (form == Form::Require) {
      all.push_back({title(code, {t}), [=](Bench& k) {
                       const ValueId v = k.b.param(k.scalar(t, 1));
                       k.b.loc.line = kLine;
                       k.b.require(v, "it");
                       k.b.loc.line = 1;
                     }});
    }
  }
}

// What leaves a loop or the kernel, in a loop whose body counts before and after.
Combination leave(Opcode code) {
  return {title(code, {}),
          [=](Bench& k) {
            const std::uint32_t n = k.counter();
            const ir::OpId loop = k.b.for_(k.b.const_u32(0), k.b.const_u32(5), k.b.const_u32(1));
            k.in_region(loop, 0, [&] {
              k.count(n);
              const ir::OpId choice = k.b.if_(k.b.binary(Opcode::Lt, k.thread(), k.b.const_u32(7)));
              k.in_region(choice, 0, [&] { k.test({.code = code}); });
              k.count(n);
            });
            k.out(k.b.get(n));
          },
          code == Opcode::Return};
}

// In a thread that there is not: the device would be lost.
Combination trap() {
  return {title(Opcode::Trap, {}), [](Bench& k) {
            const ir::OpId choice = k.b.if_(k.b.binary(Opcode::Gt, k.thread(), k.b.const_u32(kThreads)));
            k.in_region(choice, 0, [&] {
              k.b.loc.line = kLine;
              k.b.trap("it");
              k.b.loc.line = 1;
            });
          }};
}

Combinations combinations(Opcode code) {
  Combinations all;
  const Form form = ir::info(code).form;
  switch (form) {
    case Form::Const:
      for (const Type r : kResults)
        all.push_back({title(code, {}, r), [=](Bench& k) { k.out(k.test({.code = code, .type = r, .imm = bits_of(r, 2)})); }});
      break;
    case Form::Query: queries(all, code); break;
    case Form::Unary: operands_of_one_type(all, code, 1, [](Type t) { return t; }); break;
    case Form::Binary: operands_of_one_type(all, code, 2, [](Type t) { return t; }); break;
    case Form::Ternary: operands_of_one_type(all, code, 3, [](Type t) { return t; }); break;
    case Form::Compare: operands_of_one_type(all, code, 2, [](Type) { return Type::Bool; }); break;
    case Form::IntegerPower:
    case Form::Shuffle:
      for (const Type t : kTypes)
        for (const Type u : kTypes) {
          all.push_back(plain(code, {t, u}, t));
          if (u != t) all.push_back(plain(code, {t, form == Form::Shuffle ? Type::U32 : Type::I32}, u));
        }
      break;
    case Form::Select:
      for (const Type t : kTypes)
        for (const Type u : kTypes) {
          all.push_back(plain(code, {u, t, t}, t));
          all.push_back(plain(code, {Type::Bool, t, u}, t));
          if (u != t) all.push_back(plain(code, {Type::Bool, t, t}, u));
        }
      break;
    case Form::Convert:
      for (const Type t : kTypes)
        for (const Type r : kResults) all.push_back(plain(code, {t}, r));
      break;
    case Form::BlockVote:
    case Form::WarpVote:
      for (const Type t : kTypes)
        for (const Type r : {Type::Bool, Type::U32}) all.push_back(plain(code, {t}, r));
      break;
    case Form::WarpCombine:
      for (unsigned how = 0; how < 7; ++how)
        for (const Type t : kTypes) {
          all.push_back(plain(code, {t}, t, how));
          all.push_back(plain(code, {t}, t == Type::U64 ? Type::U32 : Type::U64, how));
        }
      break;
    case Form::SlotGet:
    case Form::SlotSet:
      for (const Type t : kTypes)
        for (const Type u : kTypes)
          all.push_back({title(code, {t}, u), [=](Bench& k) {
                           const std::uint32_t s = k.b.slot(k.name(), t);
                           if (form == Form::SlotSet) {
                             const ValueId v = k.in(u);
                             k.test({.code = code, .index = s, .operands = {v}});
                             k.out(k.b.get(s));
                           } else {
                             k.b.set(s, k.in(t));
                             k.out(k.test({.code = code, .type = u, .index = s}));
                           }
                         }});
      break;
    case Form::Load:
    case Form::Store:
    case Form::Atomic:
    case Form::AtomicCas: accesses(all, code, form); break;
    case Form::Barrier: all.push_back({title(code, {}), [=](Bench& k) { k.test({.code = code}); }}); break;
    case Form::Leave: all.push_back(leave(code)); break;
    case Form::While:  // by its yield
      all.push_back({title(code, {}), [=](Bench& k) {
                       const std::uint32_t n = k.counter();
                       const ir::OpId op = k.test({.code = code, .regions = {k.b.new_region(), k.b.new_region()}});
                       k.in_region(op, 0, [&] { k.b.yield(k.b.binary(Opcode::Lt, k.b.get(n), k.thread())); });
                       k.in_region(op, 1, [&] { k.count(n); });
                       k.out(k.b.get(n));
                     }});
      break;
    default:
      if (code == Opcode::Trap) all.push_back(trap());
      else control(all, code, form);
  }
  return all;
}

// Ways in which a refusal says what would be needed.
constexpr const char* kNeeds[] = {"; it takes ",
                                  "cast<f32>(x)",
                                  "cast one of them",
                                  "cast to f32 and back",
                                  " gives ",
                                  " needs a bool",
                                  " needs a result type",
                                  " takes an exponent of i32",
                                  " takes a lane or distance of u32",
                                  " chooses by a bool",
                                  " asks about a bool",
                                  " runs over integers",
                                  " needs an integer",
                                  ", not an integer",
                                  ", the elements are ",
                                  ", which holds ",
                                  "a load needs In or InOut",
                                  "a store needs Out or InOut",
                                  "an atomic reads and writes",
                                  "keep the value in an element of 32 bits",
                                  "atomics work on buffers and shared memory"};

// What goes wrong in a kernel of these, or nothing.
std::string run(const Combination* first, const Combination* last) {
  Bench k;
  for (; first != last; ++first) first->build(k);
  fuzz::CheckOptions options;
  options.levels = {fuzz::host_levels().front()};
  options.unchecked = false;
  options.ptx = true;
  options.assemble = false;
  if (const auto wrong = fuzz::check(k.c, options)) return *wrong;
  // The architectures that are not executed take turns.
  static std::size_t turn = 0;
  Compiler& compiler = *code_generator().compiler;
  const std::vector<std::string>& architectures = compiler.ptx_architectures();
  for (int i = 0; i < 3; ++i) {
    const std::string& arch = architectures[turn++ % architectures.size()];
    try {
      compiler.compile(ir::prepare(k.c.kernel), {.target = TargetKind::Ptx, .arch = arch});
    } catch (const std::exception& e) { return arch + ": " + e.what(); }
  }
  return "";
}

}  // namespace

TEST_CASE("every operation on every type runs everywhere, or is refused with its line and what would be needed") {
  std::size_t accepted = 0, refused = 0;
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    const auto code = static_cast<Opcode>(i);
    const std::string mnemonic(ir::info(code).mnemonic);
    Combinations good;
    for (Combination& one : combinations(code)) {
      Bench k;
      one.build(k);
      const ir::Diagnostics found = ir::verify(k.c.kernel);
      if (found.empty()) {
        good.push_back(std::move(one));
        continue;
      }
      ++refused;
      CAPTURE(one.title);
      for (const ir::Diagnostic& d : found) {
        CAPTURE(d.message);
        CHECK(d.place == "combinations.cpp:77");
        CHECK(d.message.starts_with(mnemonic));
        CHECK(std::any_of(std::begin(kNeeds), std::end(kNeeds), [&](const char* n) { return d.message.find(n) != std::string::npos; }));
      }
    }
    CHECK_MESSAGE(!good.empty(), mnemonic);
    accepted += good.size();
    // Many in one kernel; one by one where that fails.
    for (std::size_t from = 0; from < good.size();) {
      std::size_t to = from;
      while (to < good.size() && to < from + 16 && !good[to++].last) {}
      const Combination* const list = good.data();
      if (const std::string wrong = run(list + from, list + to); !wrong.empty()) {
        bool told = false;
        for (std::size_t at = from; at < to; ++at) {
          const std::string alone = run(list + at, list + at + 1);
          CHECK_MESSAGE(alone.empty(), good[at].title << ": " << alone);
          told = told || !alone.empty();
        }
        CHECK_MESSAGE(told, good[from].title << " to " << good[to - 1].title << ": " << wrong);
      }
      from = to;
    }
  }
  MESSAGE(accepted << " combinations run, " << refused << " are refused");
  CHECK(accepted > 1000);
  CHECK(refused > 10000);
}
