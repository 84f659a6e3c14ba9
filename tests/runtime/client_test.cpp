#include "kiln/runtime/client.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cpu/cpu_info.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/compiler.h"
#include "support/devices.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("a device is opened by name, once, and what cannot be opened says why and what there is") {
  const Client cpu = Client::open("cpu").value();
  CHECK(cpu == Client::open("cpu").value());
  CHECK(cpu.properties().kind == "cpu");
  CHECK_FALSE(cpu.properties().name.empty());
  CHECK(cpu.properties().workers >= 1);
  CHECK(cpu.properties().arch == rt::cpu_level(rt::read_cpuid()));
  for (const char* name : {"", "gpu", "CPU", "cpu:", "cpu:x", "cuda:", "cuda:x", "cuda:-1", "cuda:12345"}) {
    CAPTURE(name);
    const auto opened = Client::open(name);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().rule() == "UnknownDevice");
    CHECK(opened.error().text().find("cpu, cpu:N, cuda and cuda:N") != std::string::npos);
  }
  for (const char* name : {"cuda", "cuda:1"}) {
    const auto opened = Client::open(name);
    if (opened.has_value()) continue;
    CHECK(opened.error().rule() != "UnknownDevice");
    CHECK(opened.error().text().find("CUDA") != std::string::npos);
  }
}

TEST_CASE("every stream has a number of its own; a thread's default stream stays the same") {
  const Client cpu = Client::open("cpu").value();
  std::set<std::uint64_t> ids{cpu.default_stream().id()};
  CHECK(cpu.default_stream().id() == *ids.begin());
  for (int i = 0; i < 100; ++i) CHECK(ids.insert(cpu.stream().id()).second);
  std::thread([&] { CHECK(ids.insert(cpu.default_stream().id()).second); }).join();
  CHECK(cpu.stream().client() == cpu);
}

TEST_CASE("the level of a processor asks for every feature of the level and for the system's support of its registers") {
  rt::CpuidWords all;
  all.leaf1_ecx = all.leaf1_edx = all.leaf7_ebx = all.ext1_ecx = 0xffffffffu;
  all.xcr0 = 0xff;
  CHECK(rt::cpu_level(all) == "x86-64-v4");
  CHECK(rt::cpu_level({}) == "x86-64");
  const auto without = [&](auto change) {
    rt::CpuidWords w = all;
    change(w);
    return rt::cpu_level(w);
  };
  using W = rt::CpuidWords;
  CHECK(without([](W& w) { w.xcr0 = 0x7; }) == "x86-64-v3");  // zmm state is not saved
  CHECK(without([](W& w) { w.xcr0 = 0x3; }) == "x86-64-v2");  // nor ymm
  for (const unsigned bit : {16u, 17u, 28u, 30u, 31u}) CHECK(without([&](W& w) { w.leaf7_ebx &= ~(1u << bit); }) == "x86-64-v3");
  for (const unsigned bit : {3u, 5u, 8u}) CHECK(without([&](W& w) { w.leaf7_ebx &= ~(1u << bit); }) == "x86-64-v2");
  for (const unsigned bit : {12u, 22u, 27u, 28u, 29u}) CHECK(without([&](W& w) { w.leaf1_ecx &= ~(1u << bit); }) == "x86-64-v2");
  CHECK(without([](W& w) { w.ext1_ecx &= ~(1u << 5); }) == "x86-64-v2");
  for (const unsigned bit : {0u, 9u, 13u, 19u, 20u, 23u}) CHECK(without([&](W& w) { w.leaf1_ecx &= ~(1u << bit); }) == "x86-64");
  CHECK(without([](W& w) { w.ext1_ecx &= ~1u; }) == "x86-64");
}

// --- with compiled kernels ----------------------------------------------------------------------------------------------------

namespace {

ir::Kernel saxpy() {
  return ir::parse_kernel(R"kir(kir 1
kernel "saxpy" {
  buffer x : f32[*] in
  buffer y : f32[*] inout
  scalar a : f32
  body {
    %nx = size x
    %ny = size y
    %enough = ge %nx, %ny
    require %enough, "x.size() >= y.size()"
    %i = global_id.x
    %inside = lt %i, %ny
    if %inside {
      %a = param a
      %x = load x[%i]
      %ax = mul %a, %x
      %y = load y[%i]
      %sum = add %ax, %y
      store y[%i], %sum
    }
  }
}
)kir");
}

// Each thread of the grid stores to y[id], whether that is inside or not.
ir::Kernel unguarded() {
  return ir::parse_kernel(R"kir(kir 1
kernel "unguarded" {
  buffer y : u32[*] out
  body {
    %i = global_id.x
    store y[%i], %i
  }
}
)kir");
}

std::vector<f32> ramp(std::size_t n, f32 from) {
  std::vector<f32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = from + static_cast<f32>(i) * 0.37f;
  return v;
}

}  // namespace

TEST_CASE("saxpy gives the same bits at every level of the processor and in the interpreter, whatever the size and the block") {
  const Variant variant(saxpy());
  for (const std::size_t n : {0u, 1u, 31u, 32u, 33u, 255u, 256u, 1000u}) {
    for (const std::uint32_t block : {1u, 7u, 32u, 48u, 256u}) {
      for (const auto mode : {ir::PrepareOptions::Mode::Checked, ir::PrepareOptions::Mode::Unchecked}) {
        CAPTURE(n);
        CAPTURE(block);
        LaunchConfig config;
        config.block = Dim3(block);
        config.grid = Dim3((n + block - 1) / block);
        const std::vector<Arg> args{buffer(ramp(n + 5, 1)), buffer(ramp(n, -3)), value(1.7f)};
        const auto outcomes = run_everywhere(variant, config, args, {.mode = mode, .all_levels = block == 48 && n == 1000});
        CHECK(differences(outcomes, args) == "");
        for (const auto& o : outcomes) CHECK_FALSE(o.fault);
        if (n == 1000) CHECK(elements<f32>(outcomes.back(), 1)[3] == std::fma(1.7f, ramp(n + 5, 1)[3], ramp(n, -3)[3]));
      }
    }
  }
}

TEST_CASE("a checked kernel that writes too far is found, with the place, and its stores inside are done") {
  const Variant variant(unguarded());
  const std::vector<Arg> args{room(ir::Type::U32, {70})};
  LaunchConfig config;
  config.block = Dim3(32);
  config.grid = Dim3(3);
  const auto outcomes = run_everywhere(variant, config, args, {.all_levels = true});
  CHECK(differences(outcomes, args) == "");
  for (const auto& o : outcomes) {
    CAPTURE(o.device);
    REQUIRE(o.fault);
    CHECK(o.fault->memory == "y");
    CHECK(o.fault->operation == "store");
    CHECK(o.fault->extent == 70);
    CHECK(o.fault->index >= 70);
    CHECK(o.fault->index < 96);
    CHECK(o.fault->block[0] == 2);
    CHECK(o.fault->thread[0] == o.fault->index - 64);
    CHECK(elements<u32>(o, 0)[69] == 69);
  }
}

TEST_CASE("eight threads launch compiled kernels at the same time") {
  const Client client = test::each_client();
  const Variant variant(saxpy());
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Buffer<f32> x = Buffer<f32>::from_host(client, std::vector<f32>(1000, 1)).value();
      Buffer<f32> y = Buffer<f32>::from_host(client, std::vector<f32>(1000, 0)).value();
      LaunchArg a;
      a.type = ir::Type::F32;
      a.bits = std::bit_cast<u32>(static_cast<f32>(t + 1));
      const LaunchArg args[] = {x.arg(), y.arg(), a};
      const LaunchRequest request{&variant, for_num_elems(1000), args};
      for (int i = 0; i < 100; ++i) CHECK(launch(client.default_stream(), request).has_value());
      CHECK(y.read().value() == std::vector<f32>(1000, static_cast<f32>(100 * (t + 1))));
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_CASE(
    "what was queued on the output of a compiled kernel that wrote too far reports it, and bytes the host wrote afterwards are good") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  const Variant bad(unguarded());
  for (const bool fused : {false, true}) {  // the fault may be known or unknown when the next launches are enqueued
    Buffer<u32> y = Buffer<u32>::zeroed(client, 70).value(), z = Buffer<u32>::zeroed(client, 70).value();
    const LaunchArg args[] = {y.arg()};
    LaunchRequest request{&bad, {}, args};
    request.config.block = Dim3(32);
    request.config.grid = Dim3(3);
    CHECK(launch(stream, request).has_value());
    if (fused) CHECK(stream.sync().has_value());
    const auto copied = rt::copy(stream, z.binding(), y.binding());
    if (fused) CHECK_FALSE(copied.has_value());
    REQUIRE(z.slice(10, 2).write(stream, {7, 8}).has_value());
    const auto read = z.read(stream);
    REQUIRE_FALSE(read.has_value());
    const std::string text = read.error().text();
    CAPTURE(text);
    for (const char* part : {"out of range: store of 'y'", "unguarded", "copy", "failure #"}) CHECK(text.find(part) != std::string::npos);
    CHECK(z.slice(10, 2).read().value() == std::vector<u32>{7, 8});
    CHECK_FALSE(y.read().has_value());
    request.config.grid = Dim3(2);
    REQUIRE(launch(stream, request).has_value());  // an Out: written whole by contract, so the claim ends
    CHECK(y.read().value()[63] == 63);
  }
}

TEST_CASE("a requirement that does not hold is refused with both sides, before anything runs") {
  const Client client = test::each_client();
  const Variant variant(saxpy());
  Buffer<f32> x = Buffer<f32>::from_host(client, std::vector<f32>(10, 1)).value();
  Buffer<f32> y = Buffer<f32>::from_host(client, std::vector<f32>(11, 2)).value();
  LaunchArg a;
  a.type = ir::Type::F32;
  const LaunchArg args[] = {x.arg(), y.arg(), a};
  const auto result = launch(client.default_stream(), {&variant, for_num_elems(11), args});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().rule() == "SizeRequirementViolated");
  CHECK(result.error().text().find("10 >= 11 is false") != std::string::npos);
  CHECK(y.read().value() == std::vector<f32>(11, 2));
}

TEST_CASE("a refused launch leaves an InOut as it was and an Out unreadable until a launch writes it") {
  const Client client = test::each_client();
  const Stream stream = client.default_stream();
  const Variant variant(
      ir::parse_kernel("kir 1\nkernel \"fill\" {\nbuffer x : u32[*] in\nbuffer o : u32[*] out\nbuffer io : u32[*] inout\nbody {\n"
                       "%i = global_id.x\n%n = size o\n%nx = size x\n%ok = ge %nx, %n\nrequire %ok, \"sizes\"\n%in = lt %i, %n\n"
                       "if %in {\n%v = load x[%i]\nstore o[%i], %v\nstore io[%i], %v\n}\n}\n}\n"));
  Buffer<u32> x = Buffer<u32>::from_host(client, std::vector<u32>(8, 5)).value();
  Buffer<u32> shorter = Buffer<u32>::from_host(client, std::vector<u32>(7, 5)).value();
  Buffer<u32> o = Buffer<u32>::uninitialised(client, 8).value();
  Buffer<u32> io = Buffer<u32>::from_host(client, std::vector<u32>(8, 1)).value();
  struct Row {
    const char* rule;
    LaunchConfig config;
    LaunchArg first;
  };
  const Row rows[] = {{"SizeRequirementViolated", {{1}, {32}}, shorter.arg()},
                      {"DeviceThreadsPerBlockExceeded", {{1}, {1024, 2}}, x.arg()},
                      {"ZeroDimension", {{1}, {0}}, x.arg()}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.rule));
    const LaunchArg bad[] = {row.first, o.arg(), io.arg()};
    const auto refused = launch(stream, {&variant, row.config, bad});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == row.rule);
    const auto read = o.read();
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().text().find(refused.error().data().message) != std::string::npos);
    CHECK(io.read().value() == std::vector<u32>(8, 1));
    const LaunchArg good[] = {x.arg(), o.arg(), io.arg()};
    REQUIRE(launch(stream, {&variant, LaunchConfig{{1}, {32}}, good}).has_value());
    CHECK(o.read().value() == std::vector<u32>(8, 5));
    REQUIRE(io.write(std::vector<u32>(8, 1)).has_value());
  }
  // Bytes that are an input, too, are nobody's to claim.
  const LaunchArg aliased[] = {x.arg(), x.arg(), io.arg()};
  CHECK(launch(stream, {&variant, LaunchConfig{{1}, {32}}, aliased}).error().rule() == "AliasingArguments");
  CHECK(x.read().value() == std::vector<u32>(8, 5));
}

TEST_CASE("in_place allows the same bytes and refuses shifted ones") {
  const Client client = test::each_client();
  const Stream stream = client.default_stream();
  const Variant variant(
      ir::parse_kernel("kir 1\nkernel \"inc\" {\nbuffer y : u32[*] out\nbuffer x : u32[*] in\nin_place y, x\nbody {\n"
                       "%i = global_id.x\n%n = size y\n%in = lt %i, %n\nif %in {\n%v = load x[%i]\n%one = const 1 : u32\n%w = add %v, "
                       "%one\nstore y[%i], %w\n}\n}\n}\n"));
  Buffer<u32> b = Buffer<u32>::from_host(client, std::vector<u32>(64, 1)).value();
  Buffer<u32> lo = b.slice(0, 32), shifted = b.slice(1, 32), hi = b.slice(32, 32);
  const LaunchArg overlapping[] = {shifted.arg(), lo.arg()}, same[] = {lo.arg(), lo.arg()}, apart[] = {hi.arg(), lo.arg()};
  const auto refused = launch(stream, {&variant, LaunchConfig{{1}, {32}}, overlapping});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "AliasingArguments");
  CHECK(b.read().value() == std::vector<u32>(64, 1));
  CHECK(launch(stream, {&variant, LaunchConfig{{1}, {32}}, same}).has_value());
  CHECK(launch(stream, {&variant, LaunchConfig{{1}, {32}}, apart}).has_value());
  std::vector<u32> expected(32, 2);
  expected.resize(64, 3);
  CHECK(b.read().value() == expected);
}
