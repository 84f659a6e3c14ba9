// Calls: arguments go from the caller's frame in local memory to the callee's, results back. And the two functions of the system that
// kernels call: vprintf and __assertfail.
#include "simcuda/ptx_call.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simcuda/ptx_block.h"
#include "simcuda/ptx_loaded.h"
#include "simcuda/ptx_schedule.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

constexpr std::size_t kMaxDepth = 4096;
constexpr std::int64_t kWidest = 4096;  // of what printf pads

u64 argument(Warp& w, const Fragment& f, const Call::Item& item, unsigned lane) {
  if (item.is_register) return w.in(item.slot)[lane];
  u64 v = 0;
  std::memcpy(&v, w.block->local_of(w, lane) + f.frame.local + item.offset, std::min<std::size_t>(item.bytes, 8));
  return v;
}

void give(Warp& w, const Fragment& f, const Call::Item& item, unsigned lane, u64 v) {
  if (item.is_register) {
    w.out(item.slot)[lane] = v;
  } else {
    std::memcpy(w.block->local_of(w, lane) + f.frame.local + item.offset, &v, std::min<std::size_t>(item.bytes, 8));
  }
}

Op byte_access(const Op& op) {
  Op o = op;
  o.space = Space::Generic;
  o.bytes = 1;
  return o;
}

// A string of the device. `op` needs a number among the memory instructions; 0 does, its window is only a guess.
std::string text_at(Warp& w, const Op& op, unsigned lane, u64 address) {
  if (address == 0) return "(null)";
  Op o = byte_access(op);
  o.target = 0;
  std::string s;
  for (char c = 0; s.size() < 1u << 16; s += c) {
    c = static_cast<char>(*place(w, o, lane, address + s.size(), 1, Access::Read));
    if (c == 0) break;
  }
  return s;
}

// printf as the device does it: the arguments lie one behind the other, each aligned to its size; floats came as doubles.
std::string format(Warp& w, const Op& op, unsigned lane, const std::string& pattern, u64 arguments, int& count) {
  std::string out;
  u64 at = 0;
  Op o = byte_access(op);
  o.target = 0;
  const auto take = [&](unsigned size) {
    at = (at + size - 1) / size * size;
    u64 v = 0;
    for (unsigned k = 0; k < size; ++k) v |= static_cast<u64>(*place(w, o, lane, arguments + at + k, 1, Access::Read)) << (8 * k);
    at += size;
    ++count;
    return v;
  };
  for (std::size_t k = 0; k < pattern.size(); ++k) {
    if (pattern[k] != '%') {
      out += pattern[k];
      continue;
    }
    if (k + 1 < pattern.size() && pattern[k + 1] == '%') {
      out += '%';
      ++k;
      continue;
    }
    std::string spec = "%";
    unsigned size = 4;
    std::size_t at_spec = k + 1;
    const auto here = [&] { return at_spec < pattern.size() ? pattern[at_spec] : '\0'; };
    const auto number = [&](bool precision) {  // digits, or an argument
      std::int64_t n = 0;
      bool given = here() == '*';
      if (given) {
        ++at_spec;
        n = static_cast<std::int32_t>(take(4));
      }
      for (; here() >= '0' && here() <= '9'; ++at_spec, given = true) n = std::min<std::int64_t>(n * 10 + (here() - '0'), kWidest);
      n = std::clamp(n, -kWidest, kWidest);
      if (given && (n >= 0 || !precision)) spec += (precision ? "." : "") + std::to_string(n);
      else if (precision && !given) spec += '.';
    };
    for (; here() != '\0' && std::strchr("-+ #0", here()) != nullptr; ++at_spec) spec += here();
    number(false);
    if (here() == '.') {
      ++at_spec;
      number(true);
    }
    for (; here() != '\0' && std::strchr("hljzt", here()) != nullptr; ++at_spec)
      if (here() != 'h') size = 8;
    const char kind = here();
    if (kind == '\0' || std::strchr("diouxXcfFeEgGaAsp", kind) == nullptr) {  // no conversion of a device
      out += '%';
      continue;
    }
    k = at_spec;
    const auto print = [&](const char* infix, auto value) {
      const std::string s = spec + infix + kind;
      std::string text(static_cast<std::size_t>(std::max(0, std::snprintf(nullptr, 0, s.c_str(), value))), ' ');
      std::snprintf(text.data(), text.size() + 1, s.c_str(), value);
      out += text;
    };
    switch (kind) {
      case 'd':
      case 'i': {
        const u64 v = take(size);
        print("ll", size == 8 ? static_cast<long long>(v) : static_cast<long long>(static_cast<std::int32_t>(v)));
        break;
      }
      case 'o':
      case 'u':
      case 'x':
      case 'X': print("ll", static_cast<unsigned long long>(take(size))); break;
      case 'c': print("", static_cast<int>(take(4))); break;
      case 's': {
        const std::string s = text_at(w, op, lane, take(8));
        print("", s.c_str());
        break;
      }
      case 'p': print("", reinterpret_cast<void*>(take(8))); break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': print("", std::bit_cast<double>(take(8))); break;
      default: break;
    }
  }
  return out;
}

void system_call(Warp& w, Fragment& f, const Op& op, const Call& c) {
  for (const std::uint8_t l : w.order) {
    if ((f.lanes >> l & 1) == 0) continue;
    const auto arg = [&](std::size_t k) { return k < c.arguments.size() ? argument(w, f, c.arguments[k], l) : 0; };
    if (c.kind == Call::Kind::AssertFail) {
      const std::string message = text_at(w, op, l, arg(0)), file = text_at(w, op, l, arg(1)), function = text_at(w, op, l, arg(3));
      const auto& block = w.block->index;
      const auto& thread = w.tid[l];
      stop(w, op, l, cuda::CUDA_ERROR_ASSERT,
           file + ":" + std::to_string(static_cast<std::uint32_t>(arg(2))) + ": " + function + ": block: [" + std::to_string(block[0]) +
               "," + std::to_string(block[1]) + "," + std::to_string(block[2]) + "], thread: [" + std::to_string(thread[0]) + "," +
               std::to_string(thread[1]) + "," + std::to_string(thread[2]) + "] Assertion `" + message + "` failed.");
    }
    int count = 0;
    w.block->launch->print(format(w, op, l, text_at(w, op, l, arg(0)), arg(1), count));
    if (!c.results.empty()) give(w, f, c.results[0], l, static_cast<u64>(count));
  }
  ++f.frame.pc;
}

const Function* by_address(const Warp& w, u64 address) {
  const auto& functions = w.block->launch->code->functions;
  const u64 k = (address - kCodeBase) / 16;
  return address >= kCodeBase && address % 16 == 0 && k < functions.size() ? functions[k].get() : nullptr;
}

bool same_sizes(const std::vector<Function::Piece>& declared, const std::vector<Call::Item>& given) {
  return std::equal(declared.begin(), declared.end(), given.begin(), given.end(),
                    [](const Function::Piece& p, const Call::Item& i) { return p.bytes == i.bytes; });
}

}  // namespace

void call(Warp& w, Fragment& f, const Op& op) {
  const Call& c = f.frame.function->calls[op.target];
  const Function* callee = c.callee;
  const auto first = static_cast<unsigned>(std::countr_zero(f.lanes));
  if (c.kind == Call::Kind::Print || c.kind == Call::Kind::AssertFail) return system_call(w, f, op, c);
  if (c.kind == Call::Kind::Indirect) {
    const u64* address = w.in(c.address);
    Mask same = 0;
    for (Mask rest = f.lanes; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(rest));
      same |= static_cast<Mask>(address[l] == address[first]) << l;
    }
    callee = by_address(w, address[first]);
    if (callee == nullptr || !same_sizes(callee->params, c.arguments) || !same_sizes(callee->results, c.results)) {
      stop(w, op, first, cuda::CUDA_ERROR_INVALID_PC, "invalid program counter: a call through a pointer that is no function of this kind");
    }
    if (same != f.lanes) {  // the others call on their own
      Fragment other = f;
      other.lanes = f.lanes & ~same;
      f.lanes = same;
      w.fragments.push_back(std::move(other));
    }
  }
  LaunchState& launch = *w.block->launch;
  Frame next;
  next.function = callee;
  next.registers = f.frame.registers + f.frame.function->slots;
  next.predicates = f.frame.predicates + f.frame.function->predicates;
  next.local = (f.frame.top + 15) / 16 * 16;
  next.top = next.local + std::max<u64>(callee->frame_bytes, launch.code->recursive ? 64 : 0);
  if (next.top > launch.local_stride || f.callers.size() >= kMaxDepth) {
    stop(w, op, first, cuda::CUDA_ERROR_HARDWARE_STACK_ERROR,
         "stack overflow: a call at depth " + std::to_string(f.callers.size() + 1) + " needs " + std::to_string(next.top) +
             " bytes of stack, a thread has " + std::to_string(launch.local_stride));
  }
  // Arguments, before the registers may move.
  for (Mask rest = f.lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    std::byte* local = w.block->local_of(w, l);
    for (std::size_t k = 0; k < c.arguments.size(); ++k) {
      const Call::Item& item = c.arguments[k];
      const Function::Piece& to = callee->params[k];
      if (item.is_register) {
        std::memcpy(local + next.local + to.offset, &w.in(item.slot)[l], std::min<std::size_t>(to.bytes, 8));
      } else {
        std::memcpy(local + next.local + to.offset, local + f.frame.local + item.offset, to.bytes);
      }
    }
  }
  Frame caller = f.frame;
  caller.call = op.target;
  ++caller.pc;
  f.callers.push_back(caller);
  f.frame = next;
  if (w.register_file.size() < std::size_t{32} * (next.registers + callee->slots))
    w.register_file.resize(std::size_t{64} * (next.registers + callee->slots));
  if (w.predicate_file.size() < next.predicates + callee->predicates)
    w.predicate_file.resize(std::size_t{2} * (next.predicates + callee->predicates));
  enter(w, f);
}

bool return_from(Warp& w, Fragment& f) {
  if (f.callers.empty()) return false;
  const Frame callee = f.frame;
  f.frame = f.callers.back();
  f.callers.pop_back();
  enter(w, f);
  const Call& c = f.frame.function->calls[f.frame.call];
  for (Mask rest = f.lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    std::byte* local = w.block->local_of(w, l);
    for (std::size_t k = 0; k < c.results.size(); ++k) {
      const Call::Item& item = c.results[k];
      const Function::Piece& from = callee.function->results[k];
      if (item.is_register) {
        u64 v = 0;
        std::memcpy(&v, local + callee.local + from.offset, std::min<std::size_t>(from.bytes, 8));
        w.out(item.slot)[l] = v;
      } else {
        std::memcpy(local + f.frame.local + item.offset, local + callee.local + from.offset, from.bytes);
      }
    }
  }
  f.frame.call = 0;
  return true;
}

}  // namespace kiln::simcuda::ptx
