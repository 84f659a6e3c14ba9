// Graphs of the driver.
#pragma once
#include <span>
#include <string>

#include "cuda/session.h"
#include "src/device.h"

namespace kiln::cuda {

// Operations in one executable graph. Launching it is up to the queues.
class CudaGraph final : public rt::DeviceGraph {
 public:
  // Issues the operations to a stream that is captured and used by nobody else, so that they are what they are when they are not in a
  // graph. `name` outlives the session.
  static Result<std::unique_ptr<CudaGraph>> make(Session& session, std::span<const rt::GraphNode> nodes, const std::string& name);
  ~CudaGraph() override;  // it may be running: the driver keeps it for that long

  CUgraphExec exec() const { return exec_; }
  const std::string& name() const { return name_; }

 private:
  CudaGraph(Session& session, const std::string& name) : session_(session), name_(name) {}
  Session& session_;
  const std::string& name_;
  CUgraphExec exec_ = nullptr;
};

}  // namespace kiln::cuda
