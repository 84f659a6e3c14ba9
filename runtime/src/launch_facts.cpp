#include "src/launch_facts.h"

namespace kiln::rt {

LaunchFacts launch_facts(const ir::Kernel& recorded, const ir::Prepared* prepared) {
  LaunchFacts facts;
  facts.kernel = recorded.name;
  if (recorded.loc.line != 0) facts.place = ir::to_string(recorded, recorded.loc);
  for (const ir::Param& param : recorded.params) {
    ParamFacts p;
    p.name = param.name;
    p.is_buffer = param.is_buffer;
    p.type = param.type;
    if (param.is_buffer && param.mem < recorded.mems.size()) {
      const ir::Mem& mem = recorded.mems[param.mem];
      p.type = mem.element;
      p.rank = mem.rank;
      p.access = mem.access;
      p.strided = mem.strided;
    }
    facts.params.push_back(std::move(p));
  }
  facts.block_size = recorded.block_size;
  facts.max_threads = recorded.max_threads;
  facts.in_place = recorded.in_place;
  if (prepared == nullptr) return facts;
  facts.global_id32 = prepared->index_use.global_id32;
  facts.static_shared = prepared->shared.static_bytes;
  for (std::size_t i = 0; i < facts.params.size() && i < prepared->kernel.params.size(); ++i) {
    const ir::Param& param = prepared->kernel.params[i];
    if (!param.is_buffer) continue;
    if (param.mem < prepared->index_use.extent32.size()) facts.params[i].extent32 = prepared->index_use.extent32[param.mem];
    if (param.mem < prepared->index_use.size32.size()) facts.params[i].size32 = prepared->index_use.size32[param.mem];
  }
  return facts;
}

Error of_launch(const LaunchFacts& facts, Error error) {
  if (!error.kernel().empty() && (!error.data().place.empty() || facts.place.empty())) return error;
  Error::Data data = error.data();
  if (data.kernel.empty()) data.kernel = facts.kernel;
  if (data.place.empty()) data.place = facts.place;
  return Error(std::move(data));
}

}  // namespace kiln::rt
