#include "src/capture/instances.h"

#include <algorithm>
#include <cstring>

#include "src/fault_slots.h"

namespace kiln::rt {
namespace {

bool reported(ir::FaultRecord& record) {
  return (std::atomic_ref(record.state).load(std::memory_order_acquire) |
          std::atomic_ref(record.trapped).load(std::memory_order_acquire)) != 0;
}

void put(std::vector<std::byte>& params, std::uint32_t at, std::uint64_t value) {
  if (at != ir::kNone) std::memcpy(params.data() + at, &value, sizeof value);
}

}  // namespace

void GraphInstance::Deleter::operator()(GraphInstance* instance) const {
  instance->graph_.reset();
  for (LaunchLogMemory* log : instance->launch_logs_) instance->logs_.give_up(*log);
  delete instance;
}

Result<std::unique_ptr<GraphInstance, GraphInstance::Deleter>> GraphInstances::build(const std::shared_ptr<const GraphBody>& body) {
  std::unique_ptr<GraphInstance, GraphInstance::Deleter> instance(new GraphInstance(logs_, body));
  if (!body->launches.empty()) {
    auto records = blocks_.take(body->launches.size() * sizeof(ir::FaultRecord));
    if (!records.has_value()) return records.error();
    instance->records_ = std::move(*records);
    for (std::size_t i = 0; i < body->launches.size(); ++i) instance->record(i) = {};
  }
  std::vector<GraphNode> nodes;
  std::vector<std::vector<std::byte>> params;
  nodes.reserve(body->ops.size());
  params.reserve(body->launches.size());
  instance->launch_logs_.reserve(body->launches.size());
  for (const auto& op : body->ops) {
    GraphNode& node = nodes.emplace_back(op->node);
    if (op->program == nullptr) continue;
    const std::size_t launch = params.size();
    std::vector<std::byte>& block = params.emplace_back(op->params);
    put(block, op->fault_at, instance->records_.address() + launch * sizeof(ir::FaultRecord));
    if (!op->program->logs.empty()) {
      LaunchLogMemory& log = logs_.keep(*op->program, instance->untold_);
      instance->launch_logs_.push_back(&log);
      put(block, op->log_at, log.memory.address);
    }
    node.params = block.data();
    node.param_bytes = block.size();
    node.fault = &instance->record(launch);
  }
  auto graph = device_.make_graph(nodes, *body->label);
  if (!graph.has_value()) return graph.error();
  instance->graph_ = std::move(*graph);
  return instance;
}

const std::string& GraphInstances::keep_label(std::string label) {
  const std::lock_guard lock(mutex_);
  return *labels_.insert(std::move(label)).first;
}

Result<GraphInstance*> GraphInstances::make(const std::shared_ptr<const GraphBody>& body, GraphInstanceList& list) {
  auto built = build(body);
  if (!built.has_value()) return built.error();
  const std::lock_guard lock(mutex_);
  auto place = std::find(all_.begin(), all_.end(), nullptr);
  if (place == all_.end()) place = all_.insert(all_.end(), nullptr);
  list.reserve(list.size() + 1);
  GraphInstance& instance = **built;
  instance.number_ = static_cast<std::uint32_t>(place - all_.begin());
  instance.in_use_ = true;
  instance.used_ = ++clock_;
  list.push_back(&instance);
  *place = std::move(*built);
  return &instance;
}

GraphInstance* GraphInstances::take(const GraphInstanceList& list) {
  const std::lock_guard lock(mutex_);
  for (GraphInstance* instance : list) {
    if (instance->in_use_ || instance->untold_.load(std::memory_order_acquire) != 0) continue;
    instance->in_use_ = true;
    instance->used_ = ++clock_;
    instance->last_ = {};
    return instance;
  }
  return nullptr;
}

std::size_t GraphInstances::size(const GraphInstanceList& list) const {
  const std::lock_guard lock(mutex_);
  return list.size();
}

Event GraphInstances::oldest(const GraphInstanceList& list) const {
  const std::lock_guard lock(mutex_);
  const GraphInstance* first = nullptr;
  for (const GraphInstance* instance : list)
    if (instance->in_use_ && instance->last_.position != 0 && (first == nullptr || instance->used_ < first->used_)) first = instance;
  return first != nullptr ? first->last_ : Event{};
}

void GraphInstances::submitted(GraphInstance& instance, Event at) {
  const std::lock_guard lock(mutex_);
  instance.last_ = at;
}

void GraphInstances::hand_over_logs(GraphInstance& instance) noexcept {
  for (LaunchLogMemory* log : instance.launch_logs_) {
    if (log->memory.host != nullptr && log->header().count == 0) continue;
    instance.untold_.fetch_add(1, std::memory_order_relaxed);
    logs_.over(log);
  }
}

void GraphInstances::give_back(GraphInstance& instance) noexcept {
  const bool lost = device_.poisoned().has_value();
  const std::lock_guard lock(mutex_);
  if (lost) hand_over_logs(instance);
  instance.in_use_ = false;
}

// --- what a replay came to ------------------------------------------------------------------------------------------------------

Error GraphInstances::told(const Error& error, const GraphBody& body, std::size_t launch) {
  Error::Data data = error.data();
  data.message += " (operation " + std::to_string(body.launches[launch] + 1) + " of " + std::to_string(body.ops.size()) +
                  " in a replay of " + *body.name + ")";
  return Error(std::move(data));
}

std::optional<Error> GraphInstances::fault_of(const GraphInstance& instance, std::size_t launch) const {
  const auto fault = rt::fault_of(instance.record(launch), *instance.body_->ops[instance.body_->launches[launch]]->program);
  if (!fault) return std::nullopt;
  return told(*fault, *instance.body_, launch);
}

GraphInstances::Faults GraphInstances::over(std::uint32_t number) {
  Faults faults;
  const std::lock_guard lock(mutex_);
  GraphInstance& instance = *all_[number];
  const std::size_t launches = instance.body_->launches.size();
  bool any = false;
  for (std::size_t i = 0; i < launches; ++i) {
    if (!reported(instance.record(i))) continue;
    any = true;
    auto fault = fault_of(instance, i);
    if (fault && fault->code() == ErrorCode::Trapped && !faults.trap) faults.trap = fault;
    if (!faults.first) faults.first = std::move(fault);
  }
  if (any) {
    for (std::size_t i = 0; i < launches; ++i) instance.record(i) = {};
  }
  hand_over_logs(instance);
  instance.in_use_ = false;
  if (instance.retired_) retired_.fetch_add(1, std::memory_order_relaxed);
  return faults;
}

std::optional<Error> GraphInstances::trap() const {
  const std::lock_guard lock(mutex_);
  for (const auto& instance : all_) {
    if (instance == nullptr || !instance->in_use_) continue;
    for (std::size_t i = 0; i < instance->body_->launches.size(); ++i) {
      if (std::atomic_ref(instance->record(i).trapped).load(std::memory_order_acquire) != 0) return fault_of(*instance, i);
    }
  }
  return std::nullopt;
}

// --- the end --------------------------------------------------------------------------------------------------------------------

void GraphInstances::retire(GraphInstanceList& list) noexcept {
  const std::lock_guard lock(mutex_);
  for (GraphInstance* instance : list) {
    instance->retired_ = true;
    retired_.fetch_add(1, std::memory_order_relaxed);
  }
  list.clear();
}

void GraphInstances::sweep() noexcept {
  while (retired_.load(std::memory_order_relaxed) != 0) {
    std::unique_ptr<GraphInstance, GraphInstance::Deleter> gone;  // goes without the lock
    const std::lock_guard lock(mutex_);
    std::uint32_t untold = 0;  // nobody says when those are told
    for (auto& instance : all_) {
      if (instance == nullptr || !instance->retired_ || instance->in_use_) continue;
      if (instance->untold_.load(std::memory_order_acquire) != 0) {
        untold = 1;
        continue;
      }
      gone = std::move(instance);
      break;
    }
    if (gone != nullptr) continue;
    retired_.store(untold, std::memory_order_relaxed);
    return;
  }
}

std::size_t GraphInstances::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](const auto& instance) { return instance != nullptr; }));
}

void GraphInstances::forget() noexcept {
  for (auto& instance : all_) (void)instance.release();
  blocks_.forget();
}

}  // namespace kiln::rt
