#include "cuda/graph.h"

#include <vector>

#include "cuda/program.h"

namespace kiln::cuda {
namespace {

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// A stream that is captured while this lives.
class CapturedStream {
 public:
  explicit CapturedStream(const DriverEntries& call) : call_(call) {}
  ~CapturedStream() {
    CUgraph dropped = nullptr;
    if (capturing_ && call_.cuStreamEndCapture(stream_, &dropped) == CUDA_SUCCESS && dropped != nullptr) call_.cuGraphDestroy(dropped);
    if (made_) call_.cuStreamDestroy(stream_);
  }
  CapturedStream(const CapturedStream&) = delete;

  CUresult begin() {
    CUresult r = call_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    made_ = r == CUDA_SUCCESS;
    if (r == CUDA_SUCCESS) r = call_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
    capturing_ = r == CUDA_SUCCESS;
    return r;
  }
  CUresult end(CUgraph* graph) {
    capturing_ = false;
    return call_.cuStreamEndCapture(stream_, graph);
  }
  CUstream stream() const { return stream_; }

 private:
  const DriverEntries& call_;
  CUstream stream_ = nullptr;
  bool made_ = false, capturing_ = false;
};

CUresult issue(const DriverEntries& call, const rt::GraphNode& node, CUstream stream, std::vector<void*>& fields) {
  switch (node.kind) {
    case rt::Task::Kind::Launch: {
      const auto& program = static_cast<const Program&>(*node.program);
      fields.clear();
      for (const std::uint32_t offset : program.offsets()) fields.push_back(const_cast<std::byte*>(node.params) + offset);
      CUlaunchAttribute attributes[2];
      const CUlaunchConfig config =
          driver_config(node.grid, node.block, node.cluster, node.cooperative, node.dynamic_shared, stream, attributes);
      return call.cuLaunchKernelEx(&config, program.function(), fields.data(), nullptr);
    }
    case rt::Task::Kind::Copy: return call.cuMemcpyDtoDAsync(address(node.to), address(node.from), node.bytes, stream);
    case rt::Task::Kind::Zero: return call.cuMemsetD8Async(address(node.to), 0, node.bytes, stream);
    case rt::Task::Kind::Upload: return call.cuMemcpyHtoDAsync(address(node.to), node.from, node.bytes, stream);
    case rt::Task::Kind::Download:
    case rt::Task::Kind::Host:
    case rt::Task::Kind::Marker:
    case rt::Task::Kind::Call:
    case rt::Task::Kind::Graph: break;  // no node of a graph
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

Result<std::unique_ptr<CudaGraph>> CudaGraph::make(Session& session, std::span<const rt::GraphNode> nodes, const std::string& name) {
  if (session.poisoned()) return session.lost(Phase::Launch);
  const DriverEntries& call = session.call();
  std::unique_ptr<CudaGraph> made(new CudaGraph(session, name));  // first: what the driver makes must not be lost
  std::vector<void*> fields;
  const Session::Current current(session);
  CUgraph graph = nullptr;
  {
    CapturedStream captured(call);
    if (const CUresult r = captured.begin(); r != CUDA_SUCCESS) return session.failed(r, Phase::Launch, "capturing " + name);
    for (const rt::GraphNode& node : nodes) {
      if (const CUresult r = issue(call, node, captured.stream(), fields); r != CUDA_SUCCESS) {
        const std::string kernel = node.program != nullptr ? static_cast<const Program&>(*node.program).kernel() : std::string();
        return session.failed(r, Phase::Launch, "adding an operation to " + name, kernel);
      }
    }
    if (const CUresult r = captured.end(&graph); r != CUDA_SUCCESS) return session.failed(r, Phase::Launch, "capturing " + name);
  }
  const CUresult r = call.cuGraphInstantiate(&made->exec_, graph, 0);
  call.cuGraphDestroy(graph);  // the executable one is a copy
  if (r == CUDA_SUCCESS) return made;
  made->exec_ = nullptr;
  return session.failed(r, Phase::Launch, "instantiating " + name);
}

CudaGraph::~CudaGraph() {
  if (exec_ == nullptr) return;
  const Session::Current current(session_);
  session_.call().cuGraphExecDestroy(exec_);
}

}  // namespace kiln::cuda
