#include "interp/memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

namespace kiln::interp {
namespace {

using ir::Space;

// Elements from the first to the last, or more than any memory has.
unsigned __int128 span_of(const Binding& b, unsigned rank) {
  unsigned __int128 last = 0;
  for (unsigned d = 0; d < rank; ++d) {
    if (b.extents[d] == 0) return 0;
    last += static_cast<unsigned __int128>(b.extents[d] - 1) * b.strides[d];
  }
  return last + 1;
}

void dense_strides(Binding& b, unsigned rank) {
  std::uint64_t stride = 1;
  for (unsigned d = rank; d-- > 0; stride *= b.extents[d]) b.strides[d] = stride;
}

}  // namespace

bool Touch::ordered_before(const Who& w) const {
  if (block == kNobody) return true;
  if (block != w.block) return false;
  if (phase != w.phase || thread == w.thread) return true;
  return warp == w.warp && warp_phase != w.warp_phase;
}

void Touch::note(const Who& w) {
  if (block != kNobody && block != w.block) {
    block = kMany;
    return;
  }
  const bool fresh = block == kNobody || phase != w.phase || (warp == w.warp && warp_phase != w.warp_phase);
  if (fresh || thread == w.thread) {
    *this = {w.block, w.phase, w.thread, w.warp, w.warp_phase, w.op};
    return;
  }
  thread = kMany;
  if (warp != w.warp) warp = kMany;
}

Memory::Memory(const ir::Kernel& kernel, const Launch& launch, Report& report)
    : k_(kernel), report_(report), bindings_(kernel.mems.size()) {
  bind_buffers(launch);
  if (!report_.stopped()) bind_blocks_own(launch);
}

void Memory::fail(const std::string& message) {
  report_.misuse("launch", ir::kNone, ir::kNone, message);
  report_.stop();
}

void Memory::bind_buffers(const Launch& launch) {
  if (launch.args.size() != k_.params.size())
    return fail("launched with " + std::to_string(launch.args.size()) +
                (launch.args.size() == 1 ? " argument; it has " : " arguments; it has ") + std::to_string(k_.params.size()) +
                " parameters");
  std::vector<bool> written(k_.mems.size(), false);
  for (const ir::Op& op : k_.ops) {
    if (ir::is_access(op.code) && op.code != ir::Opcode::Load) written[op.index] = true;
  }
  std::map<const void*, std::shared_ptr<Storage>> storages;  // by vector
  std::map<const void*, bool> tracked;
  for (std::size_t p = 0; p < k_.params.size(); ++p) {
    const ir::Param& param = k_.params[p];
    const Arg& arg = launch.args[p];
    if (arg.is_buffer != param.is_buffer) return fail("argument '" + param.name + "' must be a " + (param.is_buffer ? "buffer" : "scalar"));
    if (!param.is_buffer) continue;
    const ir::Mem& mem = k_.mems[param.mem];
    Binding& b = bindings_[param.mem];
    if (arg.extents.size() != mem.rank || (mem.strided && arg.strides.size() != mem.rank))
      return fail("argument '" + param.name + "' needs " + std::to_string(mem.rank) + " extents" + (mem.strided ? " and strides" : ""));
    std::copy(arg.extents.begin(), arg.extents.end(), b.extents.begin());
    dense_strides(b, mem.rank);
    if (mem.strided) std::copy(arg.strides.begin(), arg.strides.end(), b.strides.begin());
    b.byte_offset = arg.byte_offset;
    const std::uint64_t size = arg.bytes != nullptr ? arg.bytes->size() : 0;
    const unsigned element = ir::byte_size(mem.element);
    const unsigned __int128 elements = span_of(b, mem.rank);
    if (elements > 0 && elements * element + arg.byte_offset > size)
      return fail("argument '" + param.name + "' reaches beyond the " + std::to_string(size) + " bytes that it lies in");
    std::shared_ptr<Storage>& storage = storages[arg.bytes];
    if (!storage) {
      storage = std::make_shared<Storage>();
      storage->bytes = arg.bytes != nullptr ? arg.bytes->data() : nullptr;
      storage->size = size;
      storage->granule = 0;
    }
    storage->granule =
        static_cast<std::uint32_t>(std::gcd(std::gcd(std::uint64_t{storage->granule}, std::uint64_t{element}), arg.byte_offset));
    tracked[arg.bytes] = tracked[arg.bytes] || written[param.mem];
    b.storage = storage;
  }
  for (auto& [bytes, storage] : storages) {
    storage->granule = std::max(storage->granule, 1u);
    if (tracked[bytes]) storage->cells.resize((storage->size + storage->granule - 1) / storage->granule);
  }
}

void Memory::bind_blocks_own(const Launch& launch) {
  for (std::size_t i = 0; i < k_.mems.size(); ++i) {
    const ir::Mem& mem = k_.mems[i];
    if (mem.space == Space::Global) continue;
    Binding& b = bindings_[i];
    const unsigned element = ir::byte_size(mem.element);
    b.extents = mem.extents;
    if (mem.dynamic) b.extents = {launch.dynamic_shared_bytes / element};
    dense_strides(b, mem.rank);
    const std::uint64_t bytes = static_cast<std::uint64_t>(span_of(b, mem.rank)) * element;
    if (mem.space == Space::Local) {
      b.lane_bytes = bytes;
      continue;
    }
    b.storage = std::make_shared<Storage>();
    b.storage->granule = element;
    b.storage->size = bytes;
  }
}

static void fresh(Storage& s, std::uint64_t size) {
  s.size = size;
  s.own.assign(size, 0xff);
  s.bytes = s.own.data();
  s.written.assign(size, 0);
}

void Memory::start_block() {
  for (std::size_t i = 0; i < k_.mems.size(); ++i) {
    if (k_.mems[i].space != Space::Shared) continue;
    Storage& s = *bindings_[i].storage;
    fresh(s, s.size);
    s.cells.assign(s.size / s.granule, Cell{});
  }
}

void Memory::start_local(std::uint32_t mem, Storage& storage) const { fresh(storage, 32 * bindings_[mem].lane_bytes); }

void Memory::note(std::uint32_t mem, Storage& s, std::uint64_t byte, unsigned size, const Who& who, AccessKind kind) {
  if (s.cells.empty()) return;
  for (std::uint64_t at = byte / s.granule; at < (byte + size + s.granule - 1) / s.granule; ++at) {
    Cell& cell = s.cells[at];
    const Touch* against[3] = {&cell.write, nullptr, nullptr};
    if (kind != AccessKind::Read) against[1] = &cell.read;
    if (kind != AccessKind::Atomic) against[2] = &cell.atomic;
    for (const Touch* t : against) {
      if (t == nullptr || t->ordered_before(who)) continue;
      const bool blocks = t->block != who.block;
      report_.misuse("race", who.op, t->op,
                     "race: " + report_.describe(who.op) + " of '" + k_.mems[mem].name + "' by thread " + std::to_string(who.thread) +
                         " of block " + std::to_string(who.block) + " and " + report_.describe(t->op) + " by another thread touch byte " +
                         std::to_string(byte) + (blocks ? " from different blocks" : " with no barrier between"));
    }
    Touch& mine = kind == AccessKind::Read ? cell.read : kind == AccessKind::Write ? cell.write : cell.atomic;
    mine.note(who);
  }
}

std::uint64_t Memory::read(std::uint32_t mem, Storage& s, std::uint64_t byte, const Who& who, AccessKind kind) {
  const ir::Type type = k_.mems[mem].element;
  const unsigned size = ir::byte_size(type);
  note(mem, s, byte, size, who, kind);
  if (!s.written.empty() && s.written[byte] == 0) {
    report_.misuse("unwritten", who.op, ir::kNone,
                   report_.describe(who.op) + " of '" + k_.mems[mem].name + "' by thread " + std::to_string(who.thread) + " of block " +
                       std::to_string(who.block) + " reads what was never written");
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, s.bytes + byte, size);
  return ir::is_bool(type) ? bits != 0 : bits;
}

void Memory::write(std::uint32_t mem, Storage& s, std::uint64_t byte, std::uint64_t bits, const Who& who, AccessKind kind) {
  const unsigned size = ir::byte_size(k_.mems[mem].element);
  if (kind == AccessKind::Write) note(mem, s, byte, size, who, kind);
  if (!s.written.empty()) std::fill_n(s.written.begin() + static_cast<std::ptrdiff_t>(byte), size, std::uint8_t{1});
  std::memcpy(s.bytes + byte, &bits, size);
}

}  // namespace kiln::interp
