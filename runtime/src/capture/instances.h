// Instances of graphs: a graph that is replayed again before its last replay is confirmed needs fault records and logs of its own for each.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/capture/mapped_blocks.h"
#include "src/capture/recording.h"
#include "src/launch_logs.h"

namespace kiln::rt {

// What all instances of a graph have in common. Names no memory that the graph keeps for its buffers' sake, so it may outlive the graph.
struct GraphBody {
  std::uint64_t id = 0;
  std::shared_ptr<const std::string> name;  // "graph 3"
  std::string place;                        // where it was captured: "file.cpp:12"
  const std::string* label = nullptr;       // "a graph of add, fill", for the device; lives as long as the server
  RecordedOps ops;
  std::vector<std::uint32_t> launches;  // numbers of those of ops that are launches: the one with fault record i
};

class GraphInstances;

// One of a graph that can be submitted.
class GraphInstance {
 public:
  const DeviceGraph* device_graph() const { return graph_.get(); }
  std::uint32_t number() const { return number_; }

 private:
  friend class GraphInstances;
  GraphInstance(LaunchLogs& logs, std::shared_ptr<const GraphBody> body) : logs_(logs), body_(std::move(body)) {}
  ir::FaultRecord& record(std::size_t i) const { return reinterpret_cast<ir::FaultRecord*>(records_.host())[i]; }
  struct Deleter {
    void operator()(GraphInstance* instance) const;
  };

  LaunchLogs& logs_;
  std::shared_ptr<const GraphBody> body_;
  MappedBlock records_;
  std::vector<LaunchLogMemory*> launch_logs_;  // of those launches that log
  std::unique_ptr<DeviceGraph> graph_;
  std::atomic<std::uint32_t> untold_{0};  // logs that were handed over and are not told
  // Guarded by the lock of the instances.
  std::uint32_t number_ = 0;
  bool in_use_ = false;     // held for a replay, or its replay is not confirmed
  bool retired_ = false;    // the graph is gone
  Event last_;              // of the replay that has it
  std::uint64_t used_ = 0;  // when it was last taken; larger is later
};

// The instances of one graph, for the graph.
using GraphInstanceList = std::vector<GraphInstance*>;

// All instances of a device. Thread-safe; its lock is taken after all others but that of the logs, and held for a moment.
class GraphInstances {
 public:
  GraphInstances(Device& device, LaunchLogs& logs) : device_(device), logs_(logs), blocks_(device) {}
  GraphInstances(const GraphInstances&) = delete;
  GraphInstances& operator=(const GraphInstances&) = delete;

  MappedBlocks& blocks() { return blocks_; }
  const std::string& keep_label(std::string label);

  // A free one of the list, in use from now on; or null. Allocates nothing.
  GraphInstance* take(const GraphInstanceList& list);
  // One more for the list, in use from now on. Takes its time: call it without a lock.
  Result<GraphInstance*> make(const std::shared_ptr<const GraphBody>& body, GraphInstanceList& list);
  std::size_t size(const GraphInstanceList& list) const;
  // The event of the replay of the list that was submitted first of those that are not confirmed; nothing where there is none.
  Event oldest(const GraphInstanceList& list) const;
  void submitted(GraphInstance& instance, Event at);  // by whoever holds it
  // It was not submitted, or it may have been and the device is lost: then its lines are told.
  void give_back(GraphInstance& instance) noexcept;

  // The replay of that instance is over: what it reported is found, its logs are handed over, and it is free again.
  struct Faults {
    std::optional<Error> first;  // in the order of the operations
    std::optional<Error> trap;   // of whichever
  };
  Faults over(std::uint32_t number);
  // The trap that a launch of a replay in use came to, if any did.
  std::optional<Error> trap() const;

  // The graph is gone: its instances go once they are not in use. Neither waits nor allocates.
  void retire(GraphInstanceList& list) noexcept;
  // Frees what retired and is not in use. Call it without a lock, now and then.
  void sweep() noexcept;
  std::size_t size() const;  // for tests: instances that there are
  void forget() noexcept;    // the device is another process's

 private:
  Result<std::unique_ptr<GraphInstance, GraphInstance::Deleter>> build(const std::shared_ptr<const GraphBody>& body);
  std::optional<Error> fault_of(const GraphInstance& instance, std::size_t launch) const;
  static Error told(const Error& error, const GraphBody& body, std::size_t launch);
  void hand_over_logs(GraphInstance& instance) noexcept;

  Device& device_;
  LaunchLogs& logs_;
  MappedBlocks blocks_;  // outlives the instances
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<GraphInstance, GraphInstance::Deleter>> all_;  // by number; null: free
  std::set<std::string> labels_;                                             // few: graphs of the same kernels have the same
  std::uint64_t clock_ = 0;
  std::atomic<std::uint32_t> retired_{0};  // how many may be to be freed
};

}  // namespace kiln::rt
