#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/fake_kernels.h"
#include "src/programs.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("threads that launch one kernel at the same time compile it once, and the others wait") {
  FakeServer s;
  static std::atomic<int> compiling{0};
  static std::atomic<bool> go{false};
  go = false;
  s.compiler.on_compile = [](const ir::Prepared&) {
    ++compiling;
    while (!go.load()) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Buffer<u32> y = s.buffer({0});
      CHECK(run(s.client.default_stream(), s.fill, y.arg(), scalar(4)).has_value());
      CHECK(y.read().value() == std::vector<u32>{4});
    });
  }
  while (compiling.load() == 0) std::this_thread::yield();
  // While one kernel compiles, other work of the server goes on.
  Buffer<u32> x = s.buffer({1, 2});
  CHECK(x.read().value() == std::vector<u32>{1, 2});
  go = true;
  for (std::thread& t : threads) t.join();
  CHECK(s.compiler.compilations.load() == 1);
}

TEST_CASE("variants with the same kernel share a program, another block shape or mode is another") {
  FakeServer s;
  const Variant twin(fill_ir()), renamed(fill_ir("fill2"));
  s.compiler.define("fill2", fill_code);
  Buffer<u32> y = s.buffer({0});
  const LaunchArg args[] = {y.arg(), scalar(1)};
  LaunchRequest request{&s.fill, {}, args};
  const auto compilations_after = [&] {
    REQUIRE(launch(s.client.default_stream(), request).has_value());
    return s.compiler.compilations.load();
  };
  CHECK(compilations_after() == 1);
  request.variant = &twin;
  CHECK(compilations_after() == 1);
  request.variant = &renamed;
  CHECK(compilations_after() == 2);
  request.config.block = Dim3(32, 2);
  CHECK(compilations_after() == 3);
  request.config.block = Dim3(2, 32);
  CHECK(compilations_after() == 4);
  request.config.grid = Dim3(7);
  request.config.shared_bytes = 100;
  CHECK(compilations_after() == 4);
}

TEST_CASE("what a compiler throws becomes an error with the kernel's name, whatever it is") {
  struct Thrower final : Compiler {
    int what = 0;
    CompiledCode compile(const ir::Prepared&, const CompileOptions&) override {
      switch (what) {
        case 0: throw CompileError("needs more", true);
        case 1: throw CompileError("went wrong", false);
        case 2: throw std::runtime_error("surprise");
        case 3: throw 7;
        default: return {};  // no object at all
      }
    }
    std::string llvm_ir(const ir::Prepared&, const CompileOptions&) override { return {}; }
    const std::vector<std::string>& ptx_architectures() const override { return none; }
    std::string llvm_version() const override { return {}; }
    std::vector<std::string> none;
  } thrower;
  const auto server = rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value(), &thrower);
  const Client client(server);
  const struct {
    ErrorCode code;
    const char* text;
    bool refusal;
  } rows[] = {{ErrorCode::CompileUnsupported, "needs more", true},
              {ErrorCode::CompileGeneric, "went wrong", true},
              {ErrorCode::CompilePanicked, "surprise", false},
              {ErrorCode::CompilePanicked, "no exception", false},
              {ErrorCode::CompileGeneric, "cannot be loaded", true}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const Variant variant(fill_ir("k" + std::to_string(thrower.what)));
    Buffer<u32> y = Buffer<u32>::zeroed(client, 1).value();
    const auto result = run(client.default_stream(), variant, y.arg(), scalar(1));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == row.code);
    CHECK(result.error().is_refusal() == row.refusal);
    CHECK(result.error().kernel() == variant.name());
    CHECK(result.error().text().find(row.text) != std::string::npos);
    ++thrower.what;
  }
}

TEST_CASE("after the first launch of a program, launching allocates nothing") {
  FakeServer s(2);
  Buffer<u32> x = s.buffer(std::vector<u32>(64, 0)), y = s.buffer(std::vector<u32>(64, 0));
  const Stream stream = s.client.stream();
  const LaunchArg adds[] = {x.arg(), scalar(1)}, copies[] = {x.arg(), y.arg()};
  LaunchRequest add{&s.add, {}, adds}, copy{&s.copy, {}, copies};
  add.config.grid = copy.config.grid = Dim3(64);
  bool good = true;
  const auto both = [&] { good = launch(stream, add).has_value() && launch(stream, copy).has_value() && good; };
  // The log grows to the largest backlog there ever was; so let there be one, with a kernel that holds the device back.
  Gate gate;
  Buffer<u32> hold = s.buffer({0});
  REQUIRE(run(stream, s.gated, hold.arg(), scalar(1), scalar64(gate.address())).has_value());
  for (int i = 0; i < 400; ++i) both();
  gate.open = true;
  REQUIRE(s.client.sync().has_value());
  const std::uint64_t before = allocations();
  for (int i = 0; i < 300; ++i) both();
  const std::uint64_t after = allocations();
  CHECK(after == before);
  CHECK(good);
  CHECK(x.read().value() == std::vector<u32>(64, 700));
}

TEST_CASE("a handle to a code generator says where it looked") {
  const CodegenHandle& handle = code_generator();
  CHECK((handle.compiler != nullptr) == handle.error.empty());
  if (handle.compiler == nullptr) CHECK(handle.error.find("libkiln_codegen.so") != std::string::npos);
  CHECK(&handle == &code_generator());
  CHECK(std::string(expected_codegen_identity().build_id).size() == 40);
}
