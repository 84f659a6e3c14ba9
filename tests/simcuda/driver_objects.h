// What the driver's handles stand for.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "simcuda/driver_scheduler.h"

namespace kiln::simcuda {

struct Capture;

struct Stream {
  Context* context = nullptr;
  unsigned number = 0;  // in the order of creation; 0: a null stream
  bool is_null = false;
  bool blocking = true;  // waits for the null stream and the null stream for it
  int priority = 0;      // kept, and of no effect
  OperationPtr tail;     // the last of its operations, or null
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> capture_after;  // the nodes that the next captured operation depends on
};

// A device and its primary context, the only one there is. It lives as long as the driver; `active` while somebody retains it.
struct Context {
  int ordinal = 0;
  DeviceDescription description;
  CUcontext handle = nullptr;
  unsigned retained = 0;
  CUresult poison = CUDA_SUCCESS;  // sticky: what ended the first work that failed. Stays when the context is released
  std::shared_ptr<Memory> memory;  // while active
  std::uint64_t allocations = 0;   // of the caller, live
  std::shared_ptr<Stream> null_stream;
  std::vector<std::pair<OperationPtr, bool>> orphans;  // last operations of destroyed streams; whether the stream was a blocking one
  bool active() const { return retained != 0; }
};

struct Event {
  Context* context = nullptr;
  bool timing = true;
  OperationPtr recorded;             // by the last record, outside of captures
  std::shared_ptr<Capture> capture;  // of the last record, inside of one
  std::vector<std::size_t> capture_after;
};

struct LoadedModule {
  Context* context = nullptr;
  CUmodule handle = nullptr;
  std::shared_ptr<Memory> memory;  // outlives the module, whose globals are in it
  std::shared_ptr<Module> code;
  int ptx_version = 0;
  bool unloaded = false;                        // by the caller; work and graphs may still hold it
  std::map<std::string, CUfunction> functions;  // those that were asked for
};

struct Function {
  std::shared_ptr<LoadedModule> module;
  std::size_t entry = 0;
  int max_dynamic_shared = 0;
  std::array<int, 3> required_cluster{};
  bool cluster_is_compiled = false;
  bool non_portable_cluster = false;
  const EntryInfo& info() const { return entries(*module->code)[entry]; }
};

struct GraphNode {
  std::shared_ptr<const Work> work;
  std::vector<std::size_t> after;
};
using GraphNodes = std::vector<GraphNode>;  // a node depends on earlier ones only

struct Capture {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  bool ended = false, invalidated = false;
  GraphNodes nodes;
  std::set<Stream*> streams;
};

struct Graph {
  std::shared_ptr<const GraphNodes> nodes;
};
struct GraphExec {
  std::shared_ptr<const GraphNodes> nodes;
  OperationPtr last;  // end of its last launch
};

// Page-locked host memory.
struct Pinned {
  Context* context = nullptr;
  std::uint64_t bytes = 0;
};

}  // namespace kiln::simcuda
