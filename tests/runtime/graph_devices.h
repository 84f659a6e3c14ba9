// What the tests of graphs run on: the CPU device and the simulated driver, with kernels that are compiled for each.
#pragma once
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "kiln/runtime/graph.h"
#include "runtime/fake_kernels.h"
#include "support/sim.h"

namespace kiln::test {

// A server of the test's own on a simulated device, which is well whatever tests before did to it.
inline Client sim_server_client() {
  sim_client(kSimH200);
  return Client(make_sim_server(kSimH200));
}
// Called once in a test case, which then runs once on each: a server that no other test has. One that is to be lost is, in the simulated
// driver, the process's, so that the next test gets another.
inline Client graph_client(bool to_be_lost = false) {
  std::optional<Client> client;
  SUBCASE("cpu") { client.emplace(rt::make_server(rt::make_cpu_device({.workers = 3, .arch = {}}).value())); }
  SUBCASE("simulated CUDA") { client = to_be_lost ? sim_client(kSimH200) : sim_server_client(); }
  REQUIRE(client.has_value());
  return *client;
}
inline rt::LocalServer& local(const Client& client) { return static_cast<rt::LocalServer&>(client.server()); }

// The kernels of fake_kernels.h, but compiled. Block b works on element b.
struct GraphKernels {
  Variant fill{fill_ir()}, copy{copy_ir()}, add{add_ir()}, scatter{fill_ir("scatter", ir::Access::InOut)};
  Variant broken{copy_ir("broken"), Error(ErrorCode::CompileValidation, "recording went wrong")};
};
inline const GraphKernels& kernels() {
  static const GraphKernels& all = *new GraphKernels;
  return all;
}

// As run(), with so many blocks.
template <class... Args>
Result<void> run_blocks(const Stream& stream, const Variant& variant, u32 blocks, const Args&... args) {
  const LaunchArg all[] = {args...};
  LaunchRequest request;
  request.variant = &variant;
  request.args = all;
  request.config.grid = Dim3(blocks);
  return launch(stream, request);
}

inline Buffer<u32> made(const Client& client, std::vector<u32> host) { return Buffer<u32>::from_host(client, host).value(); }
inline std::vector<u32> of(std::size_t n, u32 value) { return std::vector<u32>(n, value); }
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The text of a read that must be refused.
inline std::string refused(const Buffer<u32>& b) {
  const auto read = b.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code() == ErrorCode::Several);
  return read.error().text();
}
template <class T>
std::string rule_of(const Result<T>& result) {
  return result.has_value() ? std::string() : result.error().rule();
}

}  // namespace kiln::test
