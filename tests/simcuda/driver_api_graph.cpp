// Entry points: stream capture and graphs.
#include <algorithm>
#include <utility>

#include "simcuda/driver_state.h"

namespace kiln::simcuda {
namespace {

// Everything that the capture recorded comes before what its origin would do next.
bool joined(const Capture& capture) {
  std::vector<bool> reached(capture.nodes.size(), false);
  std::vector<std::size_t> pending = capture.origin->capture_after;
  while (!pending.empty()) {
    const std::size_t node = pending.back();
    pending.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    pending.insert(pending.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

// A graph within a graph: its nodes come in behind the capturing stream.
CUresult capture_graph(Stream& stream, const GraphNodes& nodes) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNodes& all = stream.capture->nodes;
  const std::size_t base = all.size();
  std::vector<bool> has_successor(nodes.size(), false);
  for (const GraphNode& node : nodes) {
    GraphNode copy{node.work, {}};
    for (const std::size_t before : node.after) {
      copy.after.push_back(base + before);
      has_successor[before] = true;
    }
    if (copy.after.empty()) copy.after = stream.capture_after;
    all.push_back(std::move(copy));
  }
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!has_successor[i]) last.push_back(base + i);
  if (!last.empty()) stream.capture_after = std::move(last);
  return CUDA_SUCCESS;
}

void launch_graph(Driver& driver, Stream& stream, GraphExec& exec) {
  std::vector<OperationPtr> before = driver.predecessors(stream);
  before.push_back(exec.last);  // launches of one graph come one after the other
  std::vector<OperationPtr> operations, all;
  for (const GraphNode& node : *exec.nodes) {
    std::vector<OperationPtr> after;
    for (const std::size_t n : node.after) after.push_back(operations[n]);
    OperationPtr operation = driver.operation_of(node.work, stream.number);
    driver.scheduler.submit(operation, node.after.empty() ? before : after);
    operations.push_back(std::move(operation));
  }
  all = operations;
  all.insert(all.end(), before.begin(), before.end());
  exec.last = driver.mark(stream, all, false);
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return context_entry_point(Entry::cuStreamBeginCapture, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_null) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream;
    capture->streams.insert(stream);
    stream->capture = capture;
    driver.active_captures.push_back(std::move(capture));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return context_entry_point(Entry::cuStreamEndCapture, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const bool all_joined = joined(*capture);
    driver.end_capture(capture);
    if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!all_joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto made = std::make_shared<Graph>();
    made->nodes = std::make_shared<const GraphNodes>(std::move(capture->nodes));
    *graph = driver.graphs.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry_point(Entry::cuThreadExchangeStreamCaptureMode, [&](Driver&, Lock&) -> CUresult {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, this_thread().capture_mode);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return context_entry_point(Entry::cuStreamIsCapturing, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_null && driver.captures(*stream->context, true)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;  // invalidates nothing
    *status = stream->capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph handle, unsigned long long flags) {
  return context_entry_point(Entry::cuGraphInstantiate, [&](Driver& driver, Lock&, Context&) -> CUresult {
    constexpr unsigned long long known = 1 | 8;  // auto free on launch, use node priority; device launch and upload are not simulated
    if (exec == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    const Graph* graph = driver.graphs.look(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<GraphExec>();
    made->nodes = graph->nodes;
    *exec = driver.graph_execs.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return context_entry_point(Entry::cuGraphLaunch, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    GraphExec* exec = driver.graph_execs.look(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(stream_handle, context, stream));
    for (const GraphNode& node : *exec->nodes) {
      KILN_SIMCUDA_TRY(node.work->context->poison);
      if (node.work->module == nullptr || !node.work->module->unloaded) continue;
      driver.report("a graph is launched whose kernel '" + node.work->name + "' is of a module that was unloaded");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    KILN_SIMCUDA_TRY(driver.legacy_rule(*stream));
    if (stream->capture != nullptr) return capture_graph(*stream, *exec->nodes);
    launch_graph(driver, *stream, *exec);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return entry_point(Entry::cuGraphExecDestroy, [&](Driver& driver, Lock&) -> CUresult {
    return driver.graph_execs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return entry_point(Entry::cuGraphDestroy, [&](Driver& driver, Lock&) -> CUresult {
    return driver.graphs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace kiln::cuda
