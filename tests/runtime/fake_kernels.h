// Kernels whose code is a C++ function of the test: the real server, loader and CPU device run them, without a code generator. So a test
// can hold a kernel back, look at it while it runs, and let it fault where it likes.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cpu/cpu_device.h"
#include "kiln/ir/builder.h"
#include "kiln/runtime/buffer.h"
#include "runtime/object_writer.h"
#include "src/local_server.h"

namespace kiln::test {

// An object whose only function jumps to `target`.
inline std::string trampoline(const std::string& symbol, HostEntry target) {
  ObjectWriter w;
  const auto address = reinterpret_cast<std::uint64_t>(target);
  w.text = std::string("\x48\xb8", 2) + std::string(reinterpret_cast<const char*>(&address), 8) +
           std::string("\xff\xe0", 2);  // mov rax, target; jmp rax
  w.symbols.push_back({symbol, kFunction, 1});
  return w.bytes();
}

// "Compiles" a kernel to the function registered under its name; one that has none does not compile.
class FakeCompiler final : public Compiler {
 public:
  void define(const std::string& kernel, HostEntry entry) { entries_[kernel] = entry; }
  std::atomic<int> compilations{0};
  std::uint64_t context_bytes = 0, context_bytes_per_warp = 0;
  void (*on_compile)(const ir::Prepared&) = nullptr;

  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    compilations.fetch_add(1);
    if (on_compile != nullptr) on_compile(kernel);
    const auto found = entries_.find(kernel.kernel.name);
    if (found == entries_.end()) throw CompileError("no code for " + options.arch, true);
    CompiledCode code;
    code.symbol = "entry";
    code.code = trampoline(code.symbol, found->second);
    code.static_shared_bytes = kernel.shared.static_bytes;
    code.context_bytes = context_bytes;
    code.context_bytes_per_warp = context_bytes_per_warp;
    return code;
  }
  std::string llvm_ir(const ir::Prepared&, const CompileOptions&) override { return {}; }
  const std::vector<std::string>& ptx_architectures() const override { return architectures_; }
  std::string llvm_version() const override { return "none"; }

 private:
  std::map<std::string, HostEntry> entries_;
  std::vector<std::string> architectures_;
};

// A field of a parameter block.
template <class T>
T param(const void* params, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(params) + offset, sizeof value);
  return value;
}

// --- the kernels: block b works on element b -----------------------------------------------------------------------------------

// fill(Out<u32> y, Val<u32> v)
inline ir::Kernel fill_ir(const std::string& name = "fill", ir::Access access = ir::Access::Out) {
  ir::Kernel k;
  k.name = name;
  ir::Builder b(k);
  b.loc = {b.file("fake.cpp"), 10};
  const auto y = b.buffer("y", ir::Type::U32, 1, access);
  const auto v = b.scalar("v", ir::Type::U32);
  b.store(y, {b.query(ir::Opcode::GlobalId)}, b.param(v));
  return k;
}
inline void fill_code(const void* params, const HostGrid*, std::uint64_t first, std::uint64_t last, void*) {
  auto* y = param<std::uint32_t*>(params, 0);
  const auto n = param<std::uint64_t>(params, 8);
  for (std::uint64_t b = first; b < last && b < n; ++b) y[b] = param<std::uint32_t>(params, 16);
}

// copy(In<u32> x, Out<u32> y)
inline ir::Kernel copy_ir(const std::string& name = "copy_k") {
  ir::Kernel k;
  k.name = name;
  ir::Builder b(k);
  b.loc = {b.file("fake.cpp"), 20};
  const auto x = b.buffer("x", ir::Type::U32, 1, ir::Access::In), y = b.buffer("y", ir::Type::U32, 1, ir::Access::Out);
  const auto i = b.query(ir::Opcode::GlobalId);
  b.store(y, {i}, b.load(x, {i}));
  return k;
}
inline void copy_code(const void* params, const HostGrid*, std::uint64_t first, std::uint64_t last, void*) {
  const auto* x = param<const std::uint32_t*>(params, 0);
  auto* y = param<std::uint32_t*>(params, 16);
  for (std::uint64_t b = first; b < last && b < param<std::uint64_t>(params, 24); ++b) y[b] = x[b];
}

// add(InOut<u32> y, Val<u32> v)
inline ir::Kernel add_ir(const std::string& name = "add") {
  ir::Kernel k;
  k.name = name;
  ir::Builder b(k);
  b.loc = {b.file("fake.cpp"), 30};
  const auto y = b.buffer("y", ir::Type::U32, 1, ir::Access::InOut);
  const auto v = b.scalar("v", ir::Type::U32);
  const auto i = b.query(ir::Opcode::GlobalId);
  b.store(y, {i}, b.binary(ir::Opcode::Add, b.load(y, {i}), b.param(v)));
  return k;
}
inline void add_code(const void* params, const HostGrid*, std::uint64_t first, std::uint64_t last, void*) {
  auto* y = param<std::uint32_t*>(params, 0);
  for (std::uint64_t b = first; b < last && b < param<std::uint64_t>(params, 8); ++b) y[b] += param<std::uint32_t>(params, 16);
}

// A gate that a kernel waits at, and what happened so far.
struct Gate {
  std::atomic<bool> entered{false}, open{false};
  std::uint64_t address() { return reinterpret_cast<std::uint64_t>(this); }
  void await_entered() const {
    while (!entered.load()) std::this_thread::yield();
  }
};
// gated_fill(Out<u32> y, Val<u32> v, Val<u64> gate): waits for the gate, then fills.
inline ir::Kernel gated_ir(const std::string& name = "gated", ir::Access access = ir::Access::Out) {
  ir::Kernel k = fill_ir(name, access);
  ir::Builder b(k);
  b.scalar("gate", ir::Type::U64);
  return k;
}
inline void gated_code(const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
  auto* gate = reinterpret_cast<Gate*>(param<std::uint64_t>(params, 24));
  gate->entered = true;
  while (!gate->open.load()) std::this_thread::yield();
  fill_code(params, grid, first, last, scratch);
}

// The last block reports an access out of range, as a checked kernel does that writes one element too far. (Out<u32> y, Val<u32> v),
// checked.
inline void fault_code(const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
  fill_code(params, grid, first, last, scratch);
  if (last != grid->grid[0]) return;
  auto* record = param<ir::FaultRecord*>(params, 24);
  std::uint32_t expected = 0;
  if (!std::atomic_ref(record->state).compare_exchange_strong(expected, 1)) return;
  record->kind = 1;
  record->site = 0;
  record->dimension = 0;
  record->index = record->extent = param<std::uint64_t>(params, 8);
  record->block[0] = grid->grid[0] - 1;
  std::atomic_ref(record->state).store(2);
}

// --- a server of the test's own ---------------------------------------------------------------------------------------------------

struct FakeServer {
  FakeCompiler compiler;  // outlives the server
  std::shared_ptr<Server> server;
  Client client;

  explicit FakeServer(unsigned workers = 4)
      : server(rt::make_server(rt::make_cpu_device({.workers = workers, .arch = {}}).value(), &compiler)), client(server) {
    compiler.define("fill", fill_code);
    compiler.define("copy_k", copy_code);
    compiler.define("add", add_code);
    compiler.define("gated", gated_code);
    compiler.define("fault", fault_code);
  }
  rt::LocalServer& local() { return static_cast<rt::LocalServer&>(*server); }

  Variant fill{fill_ir()}, copy{copy_ir()}, add{add_ir()}, gated{gated_ir()}, fault{fill_ir("fault")}, broken{copy_ir("broken")};

  Buffer<u32> buffer(std::vector<u32> host) { return Buffer<u32>::from_host(client, host).value(); }
};

inline LaunchArg scalar(u32 v) {
  LaunchArg a;
  a.type = ir::Type::U32;
  a.bits = v;
  return a;
}
inline LaunchArg scalar64(u64 v) {
  LaunchArg a;
  a.type = ir::Type::U64;
  a.bits = v;
  return a;
}

// One block a element of the first buffer.
template <class... Args>
Result<void> run(const Stream& stream, const Variant& variant, const Args&... args) {
  const LaunchArg all[] = {args...};
  LaunchRequest request;
  request.variant = &variant;
  request.args = all;
  request.config.grid = Dim3(all[0].extents[0]);
  return launch(stream, request);
}

}  // namespace kiln::test
