#include "support/run_ptx.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "cuda/ptx_target.h"
#include "simcuda/engine.h"
#include "support/inexact_float.h"
#include "support/log_memory.h"

namespace kiln::test {
namespace {

constexpr std::uint64_t kRoom = std::uint64_t{1} << 26;  // beside the buffers: a module's own variables, and allocations' rounding

// The buffers of a launch as allocations of exactly their size. Arguments on one vector share its allocation.
class DeviceBuffers {
 public:
  DeviceBuffers(const interp::Launch& launch, simcuda::Memory& memory) : memory_(memory) {
    for (const interp::Arg& arg : launch.args) {
      if (!arg.is_buffer || arg.bytes->empty() || addresses_.count(arg.bytes) != 0) continue;
      const std::uint64_t address = memory_.allocate(arg.bytes->size()).value();
      addresses_[arg.bytes] = address;
      std::memcpy(memory_.range(address, arg.bytes->size(), simcuda::Access::Write).host, arg.bytes->data(), arg.bytes->size());
    }
  }
  // Null for an empty buffer, as the runtime passes it.
  std::uint64_t address(const interp::Arg& arg) const {
    const auto found = addresses_.find(arg.bytes);
    return found == addresses_.end() ? 0 : found->second + arg.byte_offset;
  }
  void copy_back() {
    for (const auto& [bytes, address] : addresses_)
      std::memcpy(bytes->data(), memory_.range(address, bytes->size(), simcuda::Access::Read).host, bytes->size());
  }

 private:
  simcuda::Memory& memory_;
  std::map<std::vector<std::uint8_t>*, std::uint64_t> addresses_;
};

std::vector<std::byte> parameter_block(const ir::Kernel& k, const simcuda::EntryInfo& entry, const interp::Launch& launch,
                                       const DeviceBuffers& buffers, std::uint64_t record, std::uint64_t log) {
  const ir::ParamLayout layout = ir::param_layout(k, k.options.checked);
  if (layout.fields.size() != entry.params.size()) throw std::runtime_error("the entry has another number of parameters than the layout");
  std::vector<std::byte> block(entry.param_bytes);
  for (std::size_t n = 0; n < layout.fields.size(); ++n) {
    const ir::ParamField& field = layout.fields[n];
    const interp::Arg* arg = field.param != ir::kNone ? &launch.args.at(field.param) : nullptr;
    std::uint64_t v = 0;
    switch (field.kind) {
      case ir::ParamField::Kind::Fault: v = record; break;
      case ir::ParamField::Kind::Log: v = log; break;
      case ir::ParamField::Kind::Pointer: v = buffers.address(*arg); break;
      case ir::ParamField::Kind::Extent: v = arg->extents.at(field.dimension); break;
      case ir::ParamField::Kind::Stride: v = arg->strides.at(field.dimension); break;
      case ir::ParamField::Kind::Scalar: v = arg->bits; break;
    }
    if (field.size != entry.params[n].size) throw std::runtime_error("a parameter has another size than in the layout");
    std::memcpy(block.data() + entry.params[n].offset, &v, field.size);
  }
  return block;
}

simcuda::Options options_for(std::uint64_t seed, std::uint64_t step_limit) {
  simcuda::Options options;
  options.order = seed == 0 ? simcuda::Order::Forward : seed == 1 ? simcuda::Order::Reverse : simcuda::Order::Seeded;
  options.seed = seed;
  options.workers = 1;
  options.global_races = true;
  options.instruction_limit = step_limit;
  return options;
}

}  // namespace

interp::Outcome run_ptx(const std::string& ptx, const ir::Prepared& prepared, const interp::Launch& launch, std::uint64_t seed) {
  interp::Outcome outcome;
  const ir::Kernel& k = prepared.kernel;
  const auto misuse = [&](const std::string& what) { outcome.misuse.push_back("PTX of kernel '" + k.name + "': " + what); };
  if (const auto wrong = inexact_float(ptx)) misuse(*wrong);
  try {
    std::uint64_t bytes = kRoom;
    for (const interp::Arg& arg : launch.args) bytes += arg.is_buffer ? arg.bytes->size() : 0;
    simcuda::Memory memory(bytes);
    const auto header = cuda::read_ptx_header(ptx);
    const simcuda::LoadResult loaded = simcuda::load(ptx, {.arch = header ? header->sm : 0, .ptx_version = 90}, memory);
    if (loaded.module == nullptr) throw std::runtime_error(loaded.failure.log);
    const std::vector<simcuda::EntryInfo>& entries = simcuda::entries(*loaded.module);
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == ir::symbol_name(k.name); });
    if (entry == entries.end()) throw std::runtime_error("it has no entry '" + ir::symbol_name(k.name) + "'");

    DeviceBuffers buffers(launch, memory);
    alignas(64) ir::FaultRecord record;
    memory.map_host(&record, sizeof record);  // host memory that kernels write, as on a device
    LogMemory log(prepared);
    memory.map_host(log.data(), log.bytes());
    const std::vector<std::byte> params =
        parameter_block(k, *entry, launch, buffers, reinterpret_cast<std::uint64_t>(&record), reinterpret_cast<std::uint64_t>(log.data()));
    simcuda::Launch what;
    what.module = loaded.module.get();
    what.entry = static_cast<std::size_t>(entry - entries.begin());
    std::copy_n(launch.grid, 3, what.grid.begin());
    std::copy_n(launch.block, 3, what.block.begin());
    what.dynamic_shared = launch.dynamic_shared_bytes;
    what.params = params.data();
    const simcuda::RunResult ran = simcuda::run(what, memory, options_for(seed, launch.step_limit));
    if (ran.violation) misuse(ran.violation->text());
    for (const std::string& note : ran.notes) misuse(note);
    buffers.copy_back();
    if (record.state != 0) outcome.fault = record;
    std::string wrong;
    outcome.log = log.lines(wrong);
    if (!wrong.empty()) misuse(wrong);
  } catch (const std::exception& e) { misuse(e.what()); }
  return outcome;
}

}  // namespace kiln::test
