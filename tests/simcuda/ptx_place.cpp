// Where an access of a kernel lands, for every space: the one place that decides what is out of range, misaligned or never written.
#include <cstring>

#include "simcuda/ptx_block.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

std::string hex(u64 v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

const char* verb(Access kind) { return kind == Access::Read ? "reads" : kind == Access::Write ? "writes" : "updates"; }
const char* verb(Touch kind) { return kind == Touch::Read ? "read" : kind == Touch::Write ? "write" : "atomic update"; }
Touch touch_of(const Op& op, Access kind) { return op.atomic ? Touch::Atomic : kind == Access::Read ? Touch::Read : Touch::Write; }

std::string bytes(unsigned n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

// A byte for each byte, 1 when written. Other workers mark other bytes meanwhile.
bool all_written(const std::uint8_t* at, unsigned size) {
  switch (size) {
    case 1: return __atomic_load_n(at, __ATOMIC_RELAXED) != 0;
    case 2: return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(at), __ATOMIC_RELAXED) == 0x0101;
    case 4: return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_RELAXED) == 0x01010101;
    default:
      for (unsigned k = 0; k < size; k += 8)
        if (__atomic_load_n(reinterpret_cast<const u64*>(at + k), __ATOMIC_RELAXED) != 0x0101010101010101u) return false;
      return true;
  }
}
void mark_written(std::uint8_t* at, unsigned size) {
  switch (size) {
    case 1: __atomic_store_n(at, 1, __ATOMIC_RELAXED); break;
    case 2: __atomic_store_n(reinterpret_cast<std::uint16_t*>(at), 0x0101, __ATOMIC_RELAXED); break;
    case 4: __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), 0x01010101, __ATOMIC_RELAXED); break;
    default:
      for (unsigned k = 0; k < size; k += 8) __atomic_store_n(reinterpret_cast<u64*>(at + k), 0x0101010101010101u, __ATOMIC_RELAXED);
  }
}

void unwritten(Warp& w, const Op& op, unsigned lane, const std::string& what) {
  LaunchState& launch = *w.block->launch;
  if (launch.options.unwritten_is_fault) stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS, what);
  launch.note(w, op, lane, 1, what);
}

[[noreturn, gnu::noinline]] void misaligned(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind,
                                            const char* space) {
  stop(w, op, lane, cuda::CUDA_ERROR_MISALIGNED_ADDRESS,
       std::string("misaligned address: ") + verb(kind) + " " + bytes(size) + " at " + space + " address " + hex(address) +
           ", which is no multiple of " + std::to_string(size));
}

std::byte* global(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind) {
  Block& b = *w.block;
  if (address % size != 0) misaligned(w, op, lane, address, size, kind, "global");
  Memory::Window& window = b.worker->windows[op.target];
  if (address < window.begin || address >= window.end || size > window.end - address) [[unlikely]] {
    const auto found = b.launch->memory->window(address);
    if (!found || size > found->end - address) {
      const bool freed = b.launch->memory->access(address, 1, Access::Read).fault == MemoryFault::Freed;
      stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
           std::string(freed ? "freed memory: " : "illegal address: ") + verb(kind) + " " + bytes(size) + " at " + hex(address) + "; " +
               b.launch->memory->describe(address));
    }
    window = *found;
  }
  if (window.written != nullptr) {
    std::uint8_t* marks = window.written + (address - window.begin);
    if (kind != Access::Write && !all_written(marks, size)) {
      // Something may have written all of it at once meanwhile.
      window = *b.launch->memory->window(address);
      if (window.written != nullptr) {
        unwritten(
            w, op, lane,
            std::string("never-written memory: reads ") + bytes(size) + " at " + hex(address) + "; " + b.launch->memory->describe(address));
      }
    }
    if (kind != Access::Read) mark_written(marks, size);
  }
  if (b.launch->global_races) [[unlikely]] {
    const GlobalRaces::Who me{b.linear, w.index * 32 + lane};
    const auto race = b.launch->global_races->access(b.races->clock(), me, address, size, touch_of(op, kind), &op, b.launch->fences);
    if (race) {
      stop(w, op, lane, cuda::CUDA_ERROR_LAUNCH_FAILED,
           std::string("race on global memory: ") + verb(kind) + " " + bytes(size) + " at " + hex(address) +
               " while nothing orders it after the " + verb(race->touch) + " by thread " + std::to_string(race->other.thread) +
               " of block " + std::to_string(race->other.block) + " at PTX line " + std::to_string(race->op->line));
    }
  }
  return window.host + (address - window.begin);
}

std::byte* shared(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind) {
  Block& b = *w.block;
  address &= 0xffffffffu;
  if (address % size != 0) misaligned(w, op, lane, address, size, kind, "shared");
  if (address + size > b.launch->shared_bytes) {
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
         std::string("illegal address: ") + verb(kind) + " " + bytes(size) + " at shared address " + hex(address) + " of a block with " +
             std::to_string(b.launch->shared_bytes) + " bytes of shared memory (" + std::to_string(b.launch->static_shared) + " static, " +
             std::to_string(b.launch->launch->dynamic_shared) + " dynamic)");
  }
  std::uint8_t* marks = b.shared_written.data() + address;
  if (kind != Access::Write && !all_written(marks, size)) {
    unwritten(w, op, lane, std::string("never-written memory: reads ") + bytes(size) + " at shared address " + hex(address));
  }
  if (kind != Access::Read) mark_written(marks, size);
  if (b.launch->options.shared_races) {
    const auto race = b.races->access(w.index * 32 + lane, address, size, touch_of(op, kind), &op);
    if (race) [[unlikely]] {
      stop(w, op, lane, cuda::CUDA_ERROR_LAUNCH_FAILED,
           std::string("race on shared memory: ") + verb(kind) + " " + bytes(size) + " at shared address " + hex(address) +
               " while nothing orders it after the " + verb(race->other_touch) + " by thread " + std::to_string(race->other_thread) +
               " of the block at PTX line " + std::to_string(race->other->line));
    }
  }
  return b.shared.data() + address;
}

std::byte* local(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind) {
  Block& b = *w.block;
  address &= kWindowMask;
  if (address % size != 0) misaligned(w, op, lane, address, size, kind, "local");
  if (address + size > b.launch->local_stride) {
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
         std::string("illegal address: ") + verb(kind) + " " + bytes(size) + " at local address " + hex(address) + " of a thread with " +
             std::to_string(b.launch->local_stride) + " bytes of local memory");
  }
  return b.local_of(w, lane) + address;
}

std::byte* param(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind) {
  Block& b = *w.block;
  address &= kWindowMask;
  if (address % size != 0) misaligned(w, op, lane, address, size, kind, "parameter");
  if (kind != Access::Read || address + size > b.launch->param_bytes) {
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
         std::string("illegal address: ") + verb(kind) + " " + bytes(size) + " at parameter address " + hex(address) +
             " of a kernel with " + std::to_string(b.launch->param_bytes) + " bytes of parameters");
  }
  return const_cast<std::byte*>(b.launch->launch->params) + address;
}

// What cvta makes of an address of shared memory, of local memory or of a parameter.
bool is_generic(u64 address) {
  const u64 window = address >> 48;
  return window == kSharedWindow >> 48 || window == kLocalWindow >> 48 || window == kParamWindow >> 48;
}

}  // namespace

bool in_shared(const Op& op, u64 address) {
  return op.space == Space::Shared || (op.space == Space::Generic && address >> 48 == kSharedWindow >> 48);
}

std::byte* place(Warp& w, const Op& op, unsigned lane, u64 address, unsigned size, Access kind) {
  if ((op.space == Space::Shared || op.space == Space::Local) && is_generic(address)) [[unlikely]] {
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
         std::string("illegal address: ") + verb(kind) + " " + bytes(size) + " at " + (op.space == Space::Shared ? "shared" : "local") +
             " address " + hex(address) + ", which is a generic address");
  }
  switch (op.space) {
    case Space::Global:
    case Space::Const: return global(w, op, lane, address, size, kind);
    case Space::Shared: return shared(w, op, lane, address, size, kind);
    case Space::Local: return local(w, op, lane, address, size, kind);
    case Space::Param: return op.entry_param ? param(w, op, lane, address, size, kind) : local(w, op, lane, address, size, kind);
    default: break;
  }
  switch (address >> 48) {
    case kSharedWindow >> 48: return shared(w, op, lane, address, size, kind);
    case kLocalWindow >> 48: return local(w, op, lane, address, size, kind);
    case kParamWindow >> 48: return param(w, op, lane, address, size, kind);
    default: return global(w, op, lane, address, size, kind);
  }
}

}  // namespace kiln::simcuda::ptx
