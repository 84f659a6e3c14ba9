// Beside other CUDA code: modules that Kiln did not compile, streams and memory of somebody else's, over the simulated driver.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>

#include "cuda/ptx_target.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/cuda.h"
#include "kiln/runtime/graph.h"
#include "kiln/runtime/modes.h"
#include "runtime/add_one.h"
#include "src/local_server.h"
#include "support/process.h"
#include "support/sim.h"

using namespace kiln;
using cuda::LoadedModule;
using cuda::Param;
using test::make_sim_server;
using test::sim_driver;

namespace {

bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }

// add(u32* y, u32 n, u32 v): y[i] += v; and an entry that takes a struct by value.
std::string module_text(const std::string& version = "7.0", const std::string& target = "sm_75") {
  return ".version " + version + "\n.target " + target + R"(
.address_size 64
.visible .entry add(
  .param .u64 .ptr .global .align 4 add_y,
  .param .u32 add_n,
  .param .u32 add_v
)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [add_y];
  ld.param.u32 %r1, [add_n];
  ld.param.u32 %r2, [add_v];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.s32 %r8, %r7, %r2;
  st.global.u32 [%rd4], %r8;
done:
  ret;
}
.visible .entry pair(
  .param .u64 pair_y,
  .param .align 8 .b8 pair_s[16]
)
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [pair_y];
  ld.param.u64 %rd2, [pair_s+8];
  cvta.to.global.u64 %rd3, %rd1;
  st.global.u64 [%rd3], %rd2;
  ret;
}
)";
}

struct Pair {
  u32 a;
  u64 b;
};

}  // namespace

TEST_CASE("an entry of PTX from memory or a file runs with arguments by its parameters") {
  const Client client(make_sim_server());
  test::TempFolder folder;
  for (const LoadedModule& module : {LoadedModule::from_memory(client, module_text()).value(),
                                     LoadedModule::from_file(client, folder.write("add.ptx", module_text())).value()}) {
    auto y = Buffer<u32>::from_host(client, std::vector<u32>(100, 5)).value();
    const Param args[] = {Param::inout(y), Param::value(u32{90}), Param::value(u32{7})};
    for (int i = 0; i < 3; ++i) CHECK(module.launch(client.default_stream(), "add", for_num_elems(100), args).has_value());
    std::vector<u32> wanted(100, 26);
    std::fill(wanted.begin() + 90, wanted.end(), 5);
    CHECK(y.read().value() == wanted);
    auto z = Buffer<u64>::zeroed(client, 1).value();
    const Param by_value[] = {Param::out(z), Param::value(Pair{1, 99})};
    CHECK(module.launch(client.stream(), "pair", {{1}, {1}}, by_value).has_value());
    CHECK(z.read().value() == std::vector<u64>{99});
  }
}

TEST_CASE("a launch of PTX does not run where launches are dropped, and is checked all the same") {
  const Client client(make_sim_server());
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  auto y = Buffer<u32>::from_host(client, std::vector<u32>(10, 5)).value();
  const Param args[] = {Param::inout(y), Param::value(u32{10}), Param::value(u32{7})};
  {
    const auto pass = ProcessModeOverride::open(ProcessMode::CompileAndAutotune).value();
    CHECK(module.launch(client.default_stream(), "add", for_num_elems(10), args).has_value());
    const Param whole[] = {Param::out(y), Param::value(u32{10}), Param::value(u32{7})};
    CHECK_FALSE(module.launch(client.default_stream(), "add", {{1}, {0}}, whole).has_value());
    CHECK(y.read().value() == std::vector<u32>(10, 5));  // nothing is claimed either
    // A graph cannot hold it, and does not lack it unnoticed.
    const Stream stream = client.stream();
    const auto graph = capture(stream, [&] { CHECK_FALSE(module.launch(stream, "add", for_num_elems(10), whole).has_value()); });
    REQUIRE_FALSE(graph.has_value());
    CHECK(graph.error().root().rule() == "NotInCapture");
    CHECK(y.read().value() == std::vector<u32>(10, 5));
  }
  CHECK(module.launch(client.default_stream(), "add", for_num_elems(10), args).has_value());
  CHECK(y.read().value() == std::vector<u32>(10, 12));
}

TEST_CASE("with a driver that does not tell the parameters of an entry they are those of the text") {
  static const cuda::Driver& silent = *new cuda::Driver([] {
    cuda::Driver driver = sim_driver();
    driver.call.cuFuncGetParamInfo = nullptr;  // came with CUDA 12.4
    return driver;
  }());
  const Client client(rt::make_server(rt::make_cuda_device(silent, test::kSimH200).value()));
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  auto y = Buffer<u32>::from_host(client, std::vector<u32>(10, 5)).value();
  const Param args[] = {Param::inout(y), Param::value(u32{9}), Param::value(u32{7})};
  CHECK(module.launch(client.default_stream(), "add", for_num_elems(10), args).has_value());
  CHECK(y.read().value() == std::vector<u32>{12, 12, 12, 12, 12, 12, 12, 12, 12, 5});
  auto z = Buffer<u64>::zeroed(client, 1).value();
  const Param by_value[] = {Param::out(z), Param::value(Pair{1, 99})};
  CHECK(module.launch(client.default_stream(), "pair", {{1}, {1}}, by_value).has_value());
  CHECK(z.read().value() == std::vector<u64>{99});
  const Param small[] = {Param::out(z), Param::value(u64{1})};
  const auto refused = module.launch(client.default_stream(), "pair", {{1}, {1}}, small);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "ArgumentSize");
  CHECK(says(refused.error(), "16 bytes"));
}

TEST_CASE("a program that is cut anywhere is refused with the reason, or loaded where nothing of it is missing, and the device goes on") {
  const Client client(make_sim_server());
  const test::SimScript quiet(R"({"quiet": true})");
  const std::string text = module_text();
  std::size_t loaded = 0;
  for (std::size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    const auto module = LoadedModule::from_memory(client, text.substr(0, n));
    if (module.has_value()) {
      ++loaded;
      continue;
    }
    const Error& error = module.error();
    CHECK(error.code() == ErrorCode::CompileUnsupported);
    CHECK((error.rule() == "NotAProgram" || error.rule() == "CUDA_ERROR_INVALID_PTX"));
    if (error.rule() == "CUDA_ERROR_INVALID_PTX") CHECK(says(error, "line "));
  }
  CHECK(loaded < text.size() / 2);
  CHECK(client.sync().has_value());
  CHECK(LoadedModule::from_memory(client, text).has_value());
}

TEST_CASE("launches of loaded modules are confirmed now and then, so that no log grows when nobody ever waits") {
  const auto server = make_sim_server();
  const Client client(server);
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  auto y = Buffer<u32>::from_host(client, std::vector<u32>(10, 0)).value();
  const Param args[] = {Param::inout(y), Param::value(u32{10}), Param::value(u32{1})};
  for (int i = 0; i < 5000; ++i) REQUIRE(module.launch(client.default_stream(), "add", for_num_elems(10), args).has_value());
  CHECK(static_cast<rt::LocalServer&>(*server).unconfirmed() < 1000);  // at most 512 are outstanding
  y.read().value();
}

TEST_CASE("an output of a module's launch that is refused, for whatever reason, cannot be read as data") {
  const Client client(make_sim_server()), other(make_sim_server());
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  const auto refused = [&](const char* why, const Stream& stream, const char* entry, const LaunchConfig& config, const Param& second) {
    CAPTURE(why);
    auto z = Buffer<u64>::from_host(client, {7}).value();
    auto kept = Buffer<u64>::from_host(client, {8}).value();
    const Param args[] = {Param::out(z), second};
    CHECK_FALSE(module.launch(stream, entry, config, args).has_value());
    CHECK_FALSE(z.read().has_value());
    const Param inout[] = {Param::inout(kept), second};
    CHECK_FALSE(module.launch(stream, entry, config, inout).has_value());
    CHECK(kept.read().value() == std::vector<u64>{8});
  };
  const Param good = Param::value(Pair{1, 99});
  refused("the stream of another device", other.default_stream(), "pair", {{1}, {1}}, good);
  refused("no such entry", client.default_stream(), "nothing", {{1}, {1}}, good);
  refused("the size of an argument", client.default_stream(), "pair", {{1}, {1}}, Param::value(u32{1}));
  refused("the number of arguments", client.default_stream(), "add", {{1}, {1}}, good);
  refused("the block", client.default_stream(), "pair", {{1}, {4096}}, good);
  refused("shared memory", client.default_stream(), "pair", LaunchConfig{.grid = {1}, .block = {1}, .shared_bytes = 0x7fffffff}, good);
  const auto foreign = Buffer<u64>::zeroed(other, 1).value();
  refused("memory of another device", client.default_stream(), "pair", {{1}, {1}}, Param::in(foreign));
}

TEST_CASE("a module's launch that is wrong and would be dropped says what is wrong, and claims nothing") {
  const Client client(make_sim_server()), other(make_sim_server());
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  const auto foreign = Buffer<u64>::zeroed(other, 1).value();
  auto z = Buffer<u64>::from_host(client, {7}).value();
  const Param good = Param::value(Pair{1, 99});
  struct Row {
    const char* rule;
    const char* entry;
    LaunchConfig config;
    Param second;
  };
  const Row rows[] = {{"CUDA_ERROR_NOT_FOUND", "nothing", {{1}, {1}}, good},
                      {"ArgumentSize", "pair", {{1}, {1}}, Param::value(u32{1})},
                      {"ArgumentCount", "add", {{1}, {1}}, good},
                      {"ForeignHandle", "pair", {{1}, {1}}, Param::in(foreign)},
                      {"ZeroDimension", "pair", {{1}, {0}}, good}};
  for (const bool process : {true, false}) {
    std::optional<ProcessModeOverride> pass;
    std::optional<StreamModeOverride> discards;
    if (process) pass = ProcessModeOverride::open(ProcessMode::CompileOnly).value();
    else discards.emplace(client.default_stream(), StreamMode::Discard);
    for (const Row& row : rows) {
      CAPTURE(row.rule);
      const Param args[] = {Param::out(z), row.second};
      const auto refused = module.launch(client.default_stream(), row.entry, row.config, args);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().rule() == row.rule);
      CHECK(z.read().value() == std::vector<u64>{7});
    }
  }
  const Param args[] = {Param::out(z), Param::value(u32{1})};
  CHECK_FALSE(module.launch(client.default_stream(), "pair", {{1}, {1}}, args).has_value());
  CHECK_FALSE(z.read().has_value());  // where launches run, it is claimed
}

TEST_CASE("a wrong entry, number or size of arguments, shape or stream is an error before anything runs") {
  const Client client(make_sim_server());
  const LoadedModule module = LoadedModule::from_memory(client, module_text(), "made up").value();
  auto y = Buffer<u32>::from_host(client, std::vector<u32>(10, 5)).value();
  const Stream stream = client.default_stream();
  const LaunchConfig config = for_num_elems(10);
  const std::vector<Param> good{Param::inout(y), Param::value(u32{10}), Param::value(u32{1})};
  const auto refused = [&](const Result<void>& result, ErrorCode code, const std::string& rule, std::initializer_list<const char*> words) {
    REQUIRE_FALSE(result.has_value());
    CAPTURE(result.error().text());
    CHECK(result.error().code() == code);
    CHECK(result.error().rule() == rule);
    for (const char* word : words) CHECK(says(result.error(), word));
  };
  refused(module.launch(stream, "sub", config, good), ErrorCode::NotFound, "CUDA_ERROR_NOT_FOUND",
          {"'sub'", "made up", "check the name", "kernel: sub"});
  refused(module.launch(stream, "add", config, std::vector<Param>(good.begin(), good.begin() + 2)), ErrorCode::Validation, "ArgumentCount",
          {"takes 3 arguments", "given 2", "given: 2, expected: 3", "kernel: add"});
  refused(module.launch(stream, "add", config, std::vector<Param>{Param::inout(y), Param::value(u64{10}), Param::value(u32{1})}),
          ErrorCode::Validation, "ArgumentSize", {"argument 2 has 8 bytes", "has 4", "given: 8, expected: 4"});
  refused(module.launch(stream, "add", config, std::vector<Param>{Param::value(u32{1}), Param::value(u32{10}), Param::value(u32{1})}),
          ErrorCode::Validation, "ArgumentSize", {"argument 1 has 4 bytes", "has 8", "given: 4, expected: 8"});
  refused(module.launch(stream, "add", {{1}, {0}}, good), ErrorCode::Validation, "ZeroDimension", {"block"});
  refused(module.launch(stream, "add", {{1}, {1025}}, good), ErrorCode::TooManyResources, "DeviceDimensionExceeded", {"1025", "1024"});
  refused(module.launch(stream, "add", {{1}, {32}, 300 * 1024}, good), ErrorCode::TooManyResources, "DeviceSharedMemoryExceeded",
          {"232448"});
  const Client other(make_sim_server(test::kSimT4));
  refused(module.launch(other.default_stream(), "add", config, good), ErrorCode::ForeignHandle, "ForeignHandle", {"T4"});
  auto foreign = Buffer<u32>::from_host(other, std::vector<u32>(10, 5)).value();
  refused(module.launch(stream, "add", config, std::vector<Param>{Param::inout(foreign), Param::value(u32{10}), Param::value(u32{1})}),
          ErrorCode::ForeignHandle, "ForeignHandle",
          {"argument 1 belongs to another device, Tesla T4 (cuda:1), not to NVIDIA H200 (cuda:0)", "kernel: add"});
  CHECK(module.launch(stream, "add", {{0}, {32}}, good).has_value());
  CHECK(y.read().value() == std::vector<u32>(10, 5));
  CHECK(module.launch(stream, "add", config, good).has_value());
  CHECK(y.read().value() == std::vector<u32>(10, 6));
}

TEST_CASE("what a device or driver is too old for, or what is no program, is said before the driver is asked") {
  const Client h200(make_sim_server()), t4(make_sim_server(test::kSimT4));
  const auto why = [](const Client& client, const std::string& image) {
    const auto module = LoadedModule::from_memory(client, image, "it");
    return module.has_value() ? std::string("loaded") : module.error().rule() + ": " + module.error().text();
  };
  CHECK(why(h200, module_text()) == "loaded");
  CHECK(why(h200, "// a comment\n" + module_text("7.8", "sm_90")) == "loaded");
  for (const char* word : {"TargetMismatch", "PTX 7.8 and sm_90", "7.5", "Tesla T4"})
    CHECK_MESSAGE(why(t4, module_text("7.8", "sm_90")).find(word) != std::string::npos, word);
  for (const char* word : {"TargetMismatch", "PTX 9.9", "up to 9.0", "update the NVIDIA driver"})
    CHECK_MESSAGE(why(h200, module_text("9.9", "sm_90")).find(word) != std::string::npos, word);
  CHECK(why(h200, module_text("8.6", "sm_100")).find("sm_100") != std::string::npos);
  CHECK(why(h200, module_text("8.0", "sm_80a")).find("that architecture only") != std::string::npos);
  for (const std::string& image :
       {std::string(), std::string("hello"), std::string(".version 7.0"), std::string(".version x\n.target sm_80")})
    CHECK(why(h200, image).find("NotAProgram") == 0);
  // Damaged PTX: the driver's answer, with the log of its compiler.
  std::string damaged = module_text();
  damaged.replace(damaged.find("mad.lo.s32"), 10, "mud.lo.s32");
  CHECK(why(h200, damaged).find("CUDA_ERROR_INVALID_PTX (218)") != std::string::npos);
  CHECK(why(h200, damaged).find("mud") != std::string::npos);
  CHECK(why(Client::open("cpu").value(), module_text()).find("NotOfThisDevice") == 0);
}

TEST_CASE("an input that is claimed skips the launch of a module too, and its failure lies on what it was to write") {
  const Client client(make_sim_server());
  const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
  auto x = Buffer<u32>::from_host(client, std::vector<u32>(10, 5)).value();
  auto& failures = static_cast<rt::LocalServer&>(client.server()).failures();
  const rt::MemoryRange range = rt::memory_range(x.binding());
  rt::ExecuteScope::failed_writing(failures, {&range, 1}, Error(ErrorCode::Generic, "made up"));
  const Param args[] = {Param::inout(x), Param::value(u32{10}), Param::value(u32{1})};
  const auto skipped = module.launch(client.default_stream(), "add", for_num_elems(10), args);
  REQUIRE_FALSE(skipped.has_value());
  CHECK(skipped.error().code() == ErrorCode::Skipped);
  CHECK(says(skipped.error(), "made up"));
  CHECK_FALSE(x.read().has_value());
}

TEST_CASE("work on an adopted stream is in its order, and a stream of another context is refused") {
  const Client client(make_sim_server());
  const cuda::DriverEntries& call = sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  cuda::CUstream theirs = nullptr;
  REQUIRE(call.cuStreamCreate(&theirs, cuda::CU_STREAM_NON_BLOCKING) == cuda::CUDA_SUCCESS);
  {
    const Stream adopted = cuda::adopt_stream(client, theirs).value();
    CHECK(cuda::adopt_stream(client, theirs).value().id() == adopted.id());
    auto y = Buffer<u32>::from_host(client, std::vector<u32>(100, 5)).value();
    const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
    const Param args[] = {Param::inout(y), Param::value(u32{100}), Param::value(u32{1})};
    CHECK(module.launch(adopted, "add", for_num_elems(100), args).has_value());
    // Their own work behind ours on the stream, and ours behind theirs.
    const cuda::CUdeviceptr address = cuda::device_address(y.binding());
    CHECK(call.cuMemsetD32Async(address, 50, 100, theirs) == cuda::CUDA_SUCCESS);
    CHECK(module.launch(adopted, "add", for_num_elems(100), args).has_value());
    CHECK(adopted.sync().has_value());
    CHECK(y.read(adopted).value() == std::vector<u32>(100, 51));
    CHECK(cuda::release_stream(adopted).has_value());
    CHECK_FALSE(y.write(adopted, std::vector<u32>(100, 1)).has_value());
    CHECK_FALSE(cuda::release_stream(client.stream()).has_value());

    const Client t4(make_sim_server(test::kSimT4));
    const auto refused = cuda::adopt_stream(t4, theirs);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == "ContextMismatch");
    CHECK_FALSE(cuda::adopt_stream(Client::open("cpu").value(), theirs).has_value());
  }
  call.cuStreamDestroy(theirs);
}

TEST_CASE("the null stream can be adopted too, four streams at a time, and a place that was released is free again") {
  const Client client(make_sim_server());
  const cuda::DriverEntries& call = sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  std::array<cuda::CUstream, 4> theirs{};
  for (cuda::CUstream& stream : theirs) REQUIRE(call.cuStreamCreate(&stream, cuda::CU_STREAM_DEFAULT) == cuda::CUDA_SUCCESS);
  {
    const Stream null = cuda::adopt_stream(client, nullptr).value();
    auto y = Buffer<u32>::from_host(client, std::vector<u32>(100, 5)).value();
    REQUIRE(client.sync().has_value());
    // Work of theirs on a stream of which the null stream waits, ours behind it.
    CHECK(call.cuMemsetD32Async(cuda::device_address(y.binding()), 50, 100, theirs[0]) == cuda::CUDA_SUCCESS);
    const LoadedModule module = LoadedModule::from_memory(client, module_text()).value();
    const Param args[] = {Param::inout(y), Param::value(u32{100}), Param::value(u32{1})};
    CHECK(module.launch(null, "add", for_num_elems(100), args).has_value());
    CHECK(y.read().value() == std::vector<u32>(100, 51));
    std::vector<Stream> adopted;
    for (std::size_t i = 0; i < 3; ++i) adopted.push_back(cuda::adopt_stream(client, theirs[i]).value());
    const auto refused = cuda::adopt_stream(client, theirs[3]);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == "TooManyAdoptedStreams");
    CHECK(says(refused.error(), "no more than 4"));
    CHECK(cuda::release_stream(adopted[1]).has_value());
    const Stream last = cuda::adopt_stream(client, theirs[3]).value();
    CHECK(module.launch(last, "add", for_num_elems(100), args).has_value());
    CHECK(y.read().value() == std::vector<u32>(100, 52));
  }
  for (const cuda::CUstream stream : theirs) call.cuStreamDestroy(stream);
}

TEST_CASE("memory of others is a buffer's memory, kept by its owner, and never twice in part") {
  const Client client(make_sim_server());
  const cuda::DriverEntries& call = sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  cuda::CUdeviceptr theirs = 0;
  REQUIRE(call.cuMemAlloc(&theirs, 4096) == cuda::CUDA_SUCCESS);
  {
    std::atomic<bool> gone{false};
    std::shared_ptr<const void> owner(new int, [&](const int* p) {
      delete p;
      gone = true;
    });
    Memory memory = cuda::adopt_memory(client, theirs, 4096, std::move(owner)).value();
    CHECK(cuda::adopt_memory(client, theirs, 4096).value() == memory);
    CHECK(cuda::adopt_memory(client, theirs + 512, 512).error().rule() == "AliasingArguments");
    CHECK(cuda::adopt_memory(client, theirs, 8192).error().rule() == "BindingRange");
    const Error nowhere = cuda::adopt_memory(client, 12345, 16).error();
    CHECK(nowhere.rule() == "ForeignHandle");
    CHECK(says(nowhere, "is not device memory of NVIDIA H200 (cuda:0): the driver does not know the address"));
    CHECK_FALSE(cuda::adopt_memory(Client(make_sim_server(test::kSimT4)), theirs, 4096).has_value());
    std::vector<u32> numbers(1024), back(1024);
    std::iota(numbers.begin(), numbers.end(), 3);
    Binding all{memory, {0, 4096}};
    CHECK(rt::write(client.default_stream(), all, numbers.data()).has_value());
    CHECK(rt::read(client.default_stream(), all, back.data()).has_value());
    CHECK(back == numbers);
    CHECK(cuda::device_address(all) == theirs);
    {  // as a buffer, for launches too
      const auto numbers_there = Buffer<u32>::over(client, memory, {1000}, 96).value();
      const LaunchArg arg = numbers_there.arg();
      LaunchRequest request;
      request.variant = &test::add_one();
      request.config = for_num_elems(1000);
      request.args = {&arg, 1};
      CHECK(launch(client.default_stream(), request).has_value());
      const auto more = numbers_there.read().value();
      CHECK(more.front() == numbers[24] + 1);
      CHECK(more.back() == numbers[1023] + 1);
    }
    CHECK_FALSE(gone);
    all.memory.reset();
    memory.reset();
    CHECK(client.sync().has_value());
    auto other = rt::allocate(client, 16).value();  // lets go of what is over
    CHECK(gone);

    gone = false;  // an owner may be a deleter alone
    memory = cuda::adopt_memory(client, theirs, 4096, std::shared_ptr<const void>(nullptr, [&](const void*) { gone = true; })).value();
    CHECK_FALSE(gone);
    memory.reset();
    CHECK(client.sync().has_value());
    other = rt::allocate(client, 16).value();
    CHECK(gone);
  }
  CHECK(call.cuMemFree(theirs) == cuda::CUDA_SUCCESS);  // still theirs
}

TEST_CASE("the architecture to compile for is the newest that device and driver take, one that the code generator knows") {
  const std::vector<std::string>& known = code_generator().compiler->ptx_architectures();
  for (const int version : {12000, 12040, 12080, 12090, 13000, 13010}) {
    for (const unsigned capability : {75u, 80u, 86u, 87u, 88u, 89u, 90u, 100u, 103u, 110u, 120u, 121u, 130u}) {
      const std::string target = cuda::best_target(capability, cuda::ptx_of_driver(version));
      CAPTURE(version);
      CAPTURE(capability);
      CAPTURE(target);
      CHECK(std::find(known.begin(), known.end(), target) != known.end());
    }
  }
  CHECK(cuda::best_target(90, 90) == "sm_90");
  CHECK(cuda::best_target(121, 87) == "sm_120");
  CHECK(cuda::best_target(120, 80) == "sm_90");
  CHECK(cuda::best_target(88, 80) == "sm_87");
  CHECK(cuda::best_target(70, 90).empty());
}

TEST_CASE("a device compiles for its architecture and for what its driver reads") {
  struct Row {
    int version, ordinal;
    const char* arch;
    std::uint32_t ptx;
  };
  for (const Row& row : {Row{12000, test::kSimH200, "sm_90", 80}, Row{12040, test::kSimT4, "sm_75", 84},
                         Row{12080, test::kSimA100, "sm_80", 87}, Row{13000, test::kSimH200, "sm_90", 90}}) {
    CAPTURE(row.version);
    cuda::Driver driver = sim_driver();
    driver.version = row.version;
    const auto device = rt::make_cuda_device(driver, row.ordinal).value();
    CHECK(device->properties().arch == row.arch);
    ir::Kernel kernel;
    kernel.name = "k";
    const CompileOptions options = device->compile_options(kernel, Dim3(33), true);
    CHECK(options.target == TargetKind::Ptx);
    CHECK(options.arch == row.arch);
    CHECK(options.ptx_version == row.ptx);
    CHECK_FALSE(options.block_multiple_of_32);
    CHECK(options.aligned16);
  }
}

TEST_CASE("the parameters of an entry are read from its text") {
  const auto sizes = [](const std::string& entry) {
    std::string out;
    for (const cuda::PtxParam& p : cuda::read_ptx_params(module_text(), entry).value_or(std::vector<cuda::PtxParam>{{999, 1}}))
      out += std::to_string(p.size) + "/" + std::to_string(p.align) + " ";
    return out;
  };
  CHECK(sizes("add") == "8/8 4/4 4/4 ");
  CHECK(sizes("pair") == "8/8 16/8 ");
  CHECK(sizes("none") == "999/1 ");
}
