#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/ir/builder.h"
#include "src/allocation.h"
#include "src/launch_validation.h"
#include "src/requirements.h"

using namespace kiln;

namespace {

rt::LaunchFacts facts() {
  rt::LaunchFacts f;
  f.kernel = "ns::k";
  return f;
}

rt::ParamFacts buffer_param(const char* name, ir::Access access, unsigned rank = 1, bool strided = false) {
  rt::ParamFacts p;
  p.name = name;
  p.is_buffer = true;
  p.type = ir::Type::F32;
  p.rank = static_cast<std::uint8_t>(rank);
  p.access = access;
  p.strided = strided;
  return p;
}

struct Invented : Server {  // a server that is only an owner of memory
  DeviceProperties p;
  const DeviceProperties& properties() const override { return p; }
  std::string label() const override { return "invented"; }
  Result<Memory> allocate(std::uint64_t bytes) override {
    auto storage = std::make_unique<rt::Storage>();
    storage->bytes = bytes;
    return std::make_shared<Allocation>(shared_from_this(), ++next, std::move(storage));
  }
  Result<void> write(std::uint64_t, const Binding&, const void*) override { return {}; }
  Result<void> fill_zero(std::uint64_t, const Binding&) override { return {}; }
  Result<void> copy(std::uint64_t, const Binding&, const Binding&) override { return {}; }
  Result<void> read(std::uint64_t, const Binding&, void*) override { return {}; }
  Result<void> check(std::span<const Binding>) override { return {}; }
  Result<void> sync(std::span<const Binding>) override { return {}; }
  Result<void> launch(std::uint64_t, const LaunchRequest&) override { return {}; }
  Result<void> prepare(rt::PreparedState&, const Error*) override { return {}; }
  Result<void> launch_prepared(std::uint64_t, const rt::PreparedState&) override { return {}; }
  Result<std::uint64_t> start_profile(std::uint64_t, bool) override { return 0; }
  Result<std::chrono::nanoseconds> end_profile(std::uint64_t, std::uint64_t) override { return std::chrono::nanoseconds(0); }
  Result<void> abandon_profile(std::uint64_t) override { return {}; }
  Result<void> sync_stream(std::uint64_t) override { return {}; }
  Result<void> sync_all() override { return {}; }
  Result<void> compile_queued() override { return {}; }
  Result<void> flush(std::uint64_t) override { return {}; }
  Result<void> call(std::uint64_t, HostCall, const std::source_location&) override { return {}; }
  Point record(std::uint64_t) override { return {}; }
  Result<void> wait_event(std::uint64_t, const Point&) override { return {}; }
  bool event_done(const Point&) override { return true; }
  Result<void> sync_event(const Point&) override { return {}; }
  Result<void> when_over(const Point&, std::move_only_function<void()>) override { return {}; }
  Result<void> read_later(std::uint64_t, const Binding&, void*, ReadDone) override { return {}; }
  Result<std::unique_ptr<Written>> written(std::span<const Binding>) override { return std::unique_ptr<Written>(); }
  void on_log(LogSink) override {}
  void log_bytes(std::uint64_t) override {}
  void free(Allocation&) noexcept override {}
  void claim(const Binding&, const Error&) noexcept override {}
  rt::Captures& captures() override { throw std::logic_error("nothing is captured here"); }
  std::uint64_t next = 0;
};

LaunchArg buffer_arg(const Memory& memory, std::uint64_t begin, std::vector<std::uint64_t> extents,
                     std::vector<std::uint64_t> strides = {}) {
  LaunchArg a;
  a.is_buffer = true;
  a.type = ir::Type::F32;
  a.rank = static_cast<std::uint8_t>(extents.size());
  std::uint64_t n = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) n *= a.extents[d] = extents[d];
  for (std::size_t d = 0; d < strides.size(); ++d) a.strides[d] = strides[d];
  a.binding = {memory, {begin, strides.empty() ? begin + 4 * n : memory->storage->bytes}};
  return a;
}

std::string rule(const std::optional<Error>& error) { return error ? error->rule() : "none"; }

}  // namespace

TEST_CASE("each rule of the launch table refuses its own bad config, with the numbers, in the table's order") {
  constexpr std::uint32_t kMax = 0xffffffffu;
  struct Row {
    const char* what;
    std::function<void(rt::LaunchFacts&)> kernel;
    LaunchConfig config;
    const char* rule;
    std::optional<std::uint64_t> requested, limit;
  };
  const auto plain = [](rt::LaunchFacts&) {};
  const auto counts32 = [](rt::LaunchFacts& f) { f.global_id32 = {true, false, false}; };
  const auto exact = [](rt::LaunchFacts& f) { f.block_size = {32, 4, 1}; };
  const auto row_of_128 = [](rt::LaunchFacts& f) { f.block_size = {128, 1, 1}; };
  const auto at_most = [](rt::LaunchFacts& f) { f.max_threads = 256; };
  const auto shared = [](std::uint64_t bytes) { return [bytes](rt::LaunchFacts& f) { f.static_shared = bytes; }; };
  const std::vector<Row> rows = {
      {"plain", plain, {{4}, {256}}, "none", {}, {}},
      {"an empty grid is no error", plain, {{0, 5}, {256}}, "none", {}, {}},
      {"an empty grid hides no bad block", plain, {{0}, {0}}, "ZeroDimension", {}, {}},
      {"grid product", plain, {{kMax, kMax, 2}, {1}}, "DimensionProductOverflow", {}, {}},
      {"the product is judged before the block", plain, {{kMax, kMax, 2}, {0}}, "DimensionProductOverflow", {}, {}},
      {"block 0", plain, {{1}, {8, 0, 0}}, "ZeroDimension", {}, {}},
      {"block product", plain, {{1}, {kMax, kMax, 2}}, "DimensionProductOverflow", {}, {}},
      {"2^31 x 2 positions fit", counts32, {{0x80000000u}, {2}}, "DeviceDimensionExceeded", 0x80000000u, 0x7fffffffu},
      {"one more does not", counts32, {{0x80000001u}, {2}}, "CoordinateRangeExceedsU32", 4294967298u, 4294967296u},
      {"nobody counts", plain, {{0x7fffffffu}, {1024}}, "none", {}, {}},
      {"exact block", exact, {{1}, {32, 4}}, "none", {}, {}},
      {"another row of threads", row_of_128, {{1}, {256}}, "BlockShapeMismatch", 256, 128},
      {"same product, other shape", exact, {{1}, {64, 2}}, "BlockShapeMismatch", {}, {}},
      {"block at most", at_most, {{1}, {16, 16}}, "none", {}, {}},
      {"block above", at_most, {{1}, {17, 16}}, "BlockThreadsExceedContract", 272, 256},
      {"cluster 0", plain, {{4}, {32}, 0, {1, 0, 1}}, "ZeroDimension", {}, {}},
      {"cluster divides", plain, {{4}, {32}, 0, {3}}, "ClusterDoesNotDivideGrid", 4, 3},
      {"grid x", plain, {{0x80000000u}, {32}}, "DeviceDimensionExceeded", 0x80000000u, 0x7fffffffu},
      {"grid y at the limit", plain, {{1, 65535}, {32}}, "none", {}, {}},
      {"grid y", plain, {{1, 65536}, {32}}, "DeviceDimensionExceeded", 65536, 65535},
      {"grid z", plain, {{1, 1, 70000}, {32}}, "DeviceDimensionExceeded", 70000, 65535},
      {"block x", plain, {{1}, {1025}}, "DeviceDimensionExceeded", 1025, 1024},
      {"block z", plain, {{1}, {1, 1, 65}}, "DeviceDimensionExceeded", 65, 64},
      {"block threads", plain, {{1}, {32, 33}}, "DeviceThreadsPerBlockExceeded", 1056, 1024},
      {"1024 threads", plain, {{1}, {32, 32}}, "none", {}, {}},
      {"shared overflow", shared(16), {{1}, {32}, kMax}, "SharedMemoryTotalOverflow", std::uint64_t{kMax} + 16, kMax},
      {"dynamic at the limit", plain, {{1}, {32}, 227 * 1024}, "none", {}, {}},
      {"dynamic above", plain, {{1}, {32}, 227 * 1024 + 1}, "DeviceSharedMemoryExceeded", 227 * 1024 + 1, 227 * 1024},
      {"static counts too", shared(4), {{1}, {32}, 227 * 1024}, "DeviceSharedMemoryExceeded", 227 * 1024 + 16, 227 * 1024},
      {"49152 dynamic beside static", shared(4), {{1}, {32}, 49152}, "none", {}, {}},
      {"static at the limit", shared(48 * 1024), {{1}, {32}}, "none", {}, {}},
      {"static above", shared(48 * 1024 + 1), {{1}, {32}}, "DeviceSharedMemoryExceeded", 48 * 1024 + 1, 48 * 1024},
      {"clusters on the CPU", plain, {{4}, {32}, 0, {2}}, "ClusterLaunchUnsupported", {}, {}},
  };
  DeviceProperties device;
  device.kind = "cpu";
  device.name = "a processor";
  for (const Row& row : rows) {
    CAPTURE(row.what);
    rt::LaunchFacts f = facts();
    row.kernel(f);
    const auto error = rt::validate_config(f, row.config, device);
    CHECK(rule(error) == row.rule);
    if (!error) continue;
    CHECK(error->kernel() == "ns::k");
    CHECK(error->data().requested == row.requested);
    CHECK(error->data().limit == row.limit);
    const std::string name = row.rule;
    const bool of_device = name.starts_with("Device") || name == "SharedMemoryTotalOverflow" || name == "ClusterLaunchUnsupported";
    CHECK(error->is_refusal() == of_device);
    CHECK_FALSE(error->is_device_poisoned());
  }
}

TEST_CASE("what a launch breaks is told with what to do instead") {
  DeviceProperties device;
  device.name = "a device";
  const auto says = [&](auto change, const LaunchConfig& config) {
    rt::LaunchFacts f = facts();
    change(f);
    return rt::validate_config(f, config, device).value().text();
  };
  const std::string row = says([](rt::LaunchFacts& f) { f.block_size = {128, 1, 1}; }, {{1}, {256}});
  CHECK(row.find("use automatic(n), or a block of (128, 1, 1)") != std::string::npos);
  CHECK(row.find("given: 256, expected: 128") != std::string::npos);
  const std::string tile = says([](rt::LaunchFacts& f) { f.block_size = {32, 4, 1}; }, {{1}, {64, 2}});
  CHECK(tile.find("; use a block of (32, 4, 1)") != std::string::npos);
  CHECK(tile.find("automatic") == std::string::npos);  // which lays blocks along x
  const std::string fixed = says([](rt::LaunchFacts& f) { f.static_shared = 80000; }, {{1}, {32}});
  CHECK(fixed.find("80000") != std::string::npos);
  CHECK(fixed.find("at most 49152; use dynamic shared memory (DynamicShared), of which it has up to 232448") != std::string::npos);
}

TEST_CASE("of two rules that a launch breaks the one that comes first in the table is told") {
  constexpr std::uint32_t kMax = 0xffffffffu;
  using Break = std::function<void(rt::LaunchFacts&, LaunchConfig&)>;
  struct Rule {
    const char* name;
    Break breaks;
  };
  // In the table's order. Each leaves alone what the others need, as far as that can be.
  const std::vector<Rule> table = {
      {"DimensionProductOverflow", [](auto&, auto& c) { c.grid = {kMax, kMax, 2}; }},
      {"ZeroDimension", [](auto&, auto& c) { c.block.y = 0; }},
      {"DimensionProductOverflow", [](auto&, auto& c) { c.block = {kMax, kMax, 2}; }},
      {"CoordinateRangeExceedsU32", [](auto& f, auto& c) { f.global_id32[0] = true, c.grid.x = 0x80000001u, c.block.x = 2; }},
      {"BlockShapeMismatch", [](auto& f, auto&) { f.block_size = {32, 4, 1}; }},
      {"BlockThreadsExceedContract", [](auto& f, auto&) { f.max_threads = 1; }},
      {"ZeroDimension", [](auto&, auto& c) { c.cluster.x = 0; }},
      {"ClusterDoesNotDivideGrid", [](auto&, auto& c) { c.cluster.y = 3; }},
      {"DeviceDimensionExceeded", [](auto&, auto& c) { c.grid.z = 70000; }},
      {"DeviceDimensionExceeded", [](auto&, auto& c) { c.block.z = 66; }},
      {"DeviceThreadsPerBlockExceeded", [](auto&, auto& c) { c.block.x = 1024, c.block.y = 2; }},
      {"SharedMemoryTotalOverflow",
       [](auto& f, auto& c) { f.static_shared = std::max<std::uint64_t>(f.static_shared, 16), c.shared_bytes = kMax; }},
      {"DeviceSharedMemoryExceeded", [](auto& f, auto&) { f.static_shared = 48 * 1024 + 1; }},
      {"DeviceSharedMemoryExceeded", [](auto&, auto& c) { c.shared_bytes = std::max<std::uint32_t>(c.shared_bytes, 227 * 1024 + 1); }},
      {"ClusterLaunchUnsupported", [](auto&, auto& c) { c.cluster.z = 2; }},
  };
  DeviceProperties device;
  device.name = "a processor";
  const auto told = [&](std::initializer_list<const Rule*> rules) {
    rt::LaunchFacts f = facts();
    LaunchConfig config{{4, 1, 2}, {32, 1, 2}};
    for (const Rule* broken : rules) broken->breaks(f, config);
    return rule(rt::validate_config(f, config, device));
  };
  CHECK(told({}) == "none");
  for (std::size_t first = 0; first < table.size(); ++first) {
    CAPTURE(table[first].name);
    CHECK(told({&table[first]}) == table[first].name);
    for (std::size_t second = first + 1; second < table.size(); ++second) {
      CAPTURE(table[second].name);
      CHECK(told({&table[second], &table[first]}) == table[first].name);
    }
  }
}

TEST_CASE("arguments are held against the signature by number, kind, type, rank, extents and alignment") {
  const auto server = std::make_shared<Invented>();
  const Memory memory = server->allocate(400).value();
  rt::LaunchFacts f = facts();
  f.params = {buffer_param("x", ir::Access::In, 2), {}};
  f.params[1].name = "a";
  f.params[1].type = ir::Type::F32;
  LaunchArg a;
  a.type = ir::Type::F32;
  const LaunchArg good = buffer_arg(memory, 0, {10, 10});
  const auto check = [&](std::vector<LaunchArg> args) { return rule(rt::validate_arguments(f, args)); };
  CHECK(check({good, a}) == "none");
  CHECK(check({good}) == "ArgumentCount");
  CHECK(check({good, a, a}) == "ArgumentCount");
  CHECK(check({a, good}) == "ArgumentKind");
  LaunchArg other = a;
  other.type = ir::Type::U32;
  CHECK(check({good, other}) == "ArgumentType");
  other = good;
  other.type = ir::Type::I32;
  CHECK(check({other, a}) == "ArgumentType");
  CHECK(check({buffer_arg(memory, 0, {100}), a}) == "ArgumentRank");
  other = good;
  other.extents[0] = 11;
  CHECK(check({other, a}) == "ArgumentExtents");
  other.extents = {std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  CHECK(check({other, a}) == "ArgumentExtents");
  other.extents = {std::uint64_t{1} << 63, 0};
  CHECK(check({other, a}) == "none");  // no elements at all
  other = good;
  other.binding.range = {2, 402};
  CHECK(check({other, a}) == "ArgumentAlignment");
  other = buffer_arg(nullptr, 0, {0, 7});
  CHECK(check({other, a}) == "none");
  other.extents = {1, 7};
  CHECK(check({other, a}) == "ArgumentExtents");
}

TEST_CASE("a refused argument is counted from 1 and named, with the kernel, where it is defined and the numbers as the rule has them") {
  const auto server = std::make_shared<Invented>();
  const Memory memory = server->allocate(400).value();
  rt::LaunchFacts f = facts();
  f.place = "k.cpp:7";
  f.params = {buffer_param("x", ir::Access::In), buffer_param("y", ir::Access::Out)};
  const LaunchArg x = buffer_arg(memory, 0, {10});
  LaunchArg y = buffer_arg(memory, 40, {100});
  y.binding.range.end = 400;
  const auto extents = rt::validate_arguments(f, std::vector<LaunchArg>{x, y});
  REQUIRE(extents.has_value());
  CHECK(extents->data().message.starts_with("argument 2 ('y') has extents"));
  CHECK(extents->kernel() == "ns::k");
  CHECK(extents->data().place == "k.cpp:7");
  const auto count = rt::validate_arguments(f, std::vector<LaunchArg>{x});
  REQUIRE(count.has_value());
  CHECK(count->numbers() == "given: 1, expected: 2");
  DeviceProperties device;
  const auto cluster = rt::validate_config(f, {{4}, {32}, 0, {3}}, device);
  REQUIRE(cluster.has_value());
  CHECK(cluster->rule() == "ClusterDoesNotDivideGrid");
  CHECK(cluster->numbers() == "");
  CHECK(cluster->data().place == "k.cpp:7");
}

TEST_CASE("a strided buffer is held against the last element it can reach") {
  const auto server = std::make_shared<Invented>();
  const Memory memory = server->allocate(400).value();
  rt::LaunchFacts f = facts();
  f.params = {buffer_param("x", ir::Access::In, 2, true)};
  const auto check = [&](std::vector<std::uint64_t> extents, std::vector<std::uint64_t> strides) {
    const std::vector<LaunchArg> args{buffer_arg(memory, 0, extents, strides)};
    return rule(rt::validate_arguments(f, args));
  };
  CHECK(check({10, 5}, {10, 2}) == "none");
  CHECK(check({10, 5}, {10, 3}) == "ArgumentExtents");  // 90 + 12 >= 100
  CHECK(check({1000, 1000}, {0, 0}) == "none");         // one element seen a million times
  CHECK(check({3, 1}, {std::uint64_t{1} << 63, 1}) == "ArgumentExtents");
  CHECK(check({0, 5}, {~std::uint64_t{0}, 1}) == "none");
}

TEST_CASE("a strided buffer that is written names each element once") {
  const auto server = std::make_shared<Invented>();
  const Memory memory = server->allocate(400).value();
  struct Row {
    std::vector<std::uint64_t> extents, strides;
    bool twice;
  };
  const Row rows[] = {
      {{10, 5}, {10, 2}, false}, {{5, 10}, {2, 10}, false}, {{10, 5}, {0, 1}, true}, {{10, 5}, {1, 1}, true},
      {{10, 5}, {4, 1}, true},   {{10, 5}, {5, 1}, false},  {{1, 5}, {0, 1}, false}, {{0, 5}, {0, 0}, false},
  };
  for (const ir::Access access : {ir::Access::In, ir::Access::Out, ir::Access::InOut}) {
    rt::LaunchFacts f = facts();
    f.params = {buffer_param("x", access, 2, true)};
    for (const Row& row : rows) {
      CAPTURE(row.strides[0]);
      CAPTURE(row.strides[1]);
      const std::vector<LaunchArg> args{buffer_arg(memory, 0, row.extents, row.strides)};
      const auto error = rt::validate_arguments(f, args);
      CHECK(rule(error) == (row.twice && access != ir::Access::In ? "OverlappingStrides" : "none"));
      if (error) CHECK(error->code() == ErrorCode::UnsupportedStrides);
    }
  }
}

TEST_CASE("an output may not share bytes with another argument unless the kernel says in_place; inputs may") {
  const auto server = std::make_shared<Invented>();
  const Memory memory = server->allocate(400).value(), other = server->allocate(400).value();
  using A = ir::Access;
  struct Row {
    A x, y;
    std::uint64_t y_begin;
    bool same, in_place;
    const char* rule;
  };
  const Row rows[] = {
      {A::In, A::In, 0, true, false, "none"},
      {A::In, A::Out, 0, true, false, "AliasingArguments"},
      {A::Out, A::In, 0, true, false, "AliasingArguments"},
      {A::In, A::InOut, 0, true, false, "AliasingArguments"},
      {A::Out, A::Out, 0, true, false, "AliasingArguments"},
      {A::In, A::Out, 0, true, true, "none"},
      {A::In, A::Out, 0, false, false, "none"},
      {A::In, A::Out, 40, true, false, "none"},               // touching
      {A::In, A::Out, 36, true, false, "AliasingArguments"},  // one element
  };
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.x));
    CAPTURE(static_cast<int>(row.y));
    CAPTURE(row.y_begin);
    rt::LaunchFacts f = facts();
    f.params = {buffer_param("x", row.x), buffer_param("y", row.y)};
    if (row.in_place) f.in_place = {{1, 0}};
    const std::vector<LaunchArg> args{buffer_arg(memory, 0, {10}), buffer_arg(row.same ? memory : other, row.y_begin, {10})};
    const auto error = rt::validate_aliasing(f, args);
    CHECK(rule(error) == row.rule);
    if (!error) continue;
    CHECK(error->data().message.find("'x'") != std::string::npos);
    CHECK(error->data().message.find("'y'") != std::string::npos);
  }
  // Interleaved columns of one matrix overlap as hulls: refused.
  rt::LaunchFacts f = facts();
  f.params = {buffer_param("x", A::In, 1, true), buffer_param("y", A::Out, 1, true)};
  const std::vector<LaunchArg> columns{buffer_arg(memory, 0, {10}, {10}), buffer_arg(memory, 4, {10}, {10})};
  CHECK(rule(rt::validate_aliasing(f, columns)) == "AliasingArguments");
  // An empty one overlaps nothing.
  f.params = {buffer_param("x", A::In), buffer_param("y", A::Out)};
  const std::vector<LaunchArg> empty{buffer_arg(memory, 0, {10}), buffer_arg(memory, 0, {0})};
  CHECK(rule(rt::validate_aliasing(f, empty)) == "none");
}

TEST_CASE("an extent or a size that the kernel reads as 32 bit must fit") {
  constexpr std::uint64_t big = std::uint64_t{1} << 32;
  rt::LaunchFacts f = facts();
  f.params = {buffer_param("x", ir::Access::In, 2)};
  f.params[0].extent32 = {false, true};
  LaunchArg a;
  a.is_buffer = true;
  a.rank = 2;
  const auto check = [&](std::uint64_t rows, std::uint64_t cols) {
    a.extents = {rows, cols};
    return rule(rt::validate_extents(f, {&a, 1}));
  };
  CHECK(check(big, 1) == "none");
  CHECK(check(1, big - 1) == "none");
  CHECK(check(1, big) == "ExtentExceedsU32");
  f.params[0].extent32 = {};
  f.params[0].size32 = true;
  CHECK(check(big - 1, 1) == "none");
  CHECK(check(1 << 16, 1 << 16) == "SizeExceedsU32");
}

TEST_CASE("a requirement is evaluated from sizes, extents, scalars and the launch's shape; a false one shows both sides") {
  using ir::Opcode;
  ir::Kernel k;
  k.name = "k";
  ir::Builder b(k);
  b.loc = {b.file("k.cpp"), 7};
  const auto x = b.buffer("x", ir::Type::F32, 2, ir::Access::In);
  const auto n = b.scalar("n", ir::Type::I32);
  // require(x.extent(1) * 2 >= x.size() && n >= -3), require(block_dim.x % 32 == 0), require(grid_dim.y < 4)
  const auto left = b.binary(Opcode::Ge, b.binary(Opcode::Mul, b.extent(x, 1), b.const_u32(2)), b.size(x));
  const auto right = b.binary(Opcode::Ge, b.param(n), b.const_i32(-3));
  b.require(b.binary(Opcode::And, left, right), "x.extent(1) * 2 >= x.size() && n >= -3");
  b.loc.line = 8;
  b.require(b.binary(Opcode::Eq, b.binary(Opcode::Rem, b.query(Opcode::BlockDim), b.const_u32(32)), b.const_u32(0)),
            "block_dim().x % 32 == 0");
  b.require(b.binary(Opcode::Lt, b.query(Opcode::GridDim, 1), b.const_u32(4)), "grid_dim().y < 4");
  const rt::Requirements requirements = rt::Requirements::of(k).value();

  LaunchArg args[2];
  args[0].is_buffer = true;
  args[0].rank = 2;
  args[0].extents = {2, 10};
  args[1].type = ir::Type::I32;
  args[1].bits = 0xfffffffdu;  // -3
  LaunchConfig config;
  config.block = Dim3(64);
  CHECK_FALSE(requirements.check(config, args));

  args[0].extents = {3, 10};
  auto error = requirements.check(config, args);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::Validation);
  CHECK(error->rule() == "SizeRequirementViolated");
  CHECK(error->data().place == "k.cpp:7");
  CHECK(error->data().message.find("x.extent(1) * 2 >= x.size() && n >= -3") != std::string::npos);
  CHECK(error->data().message.find("20 >= 30 is false") != std::string::npos);

  args[0].extents = {2, 10};
  args[1].bits = 0xfffffffcu;  // -4
  error = requirements.check(config, args);
  REQUIRE(error);
  CHECK(error->data().message.find("-4 >= -3 is false") != std::string::npos);

  args[1].bits = 0;
  config.block = Dim3(33);
  error = requirements.check(config, args);
  REQUIRE(error);
  CHECK(error->data().place == "k.cpp:8");
  CHECK(error->data().message.find("1 == 0 is false") != std::string::npos);

  config = {};
  config.block = Dim3(32);
  config.grid = Dim3(1, 4);
  error = requirements.check(config, args);
  REQUIRE(error);
  CHECK(error->data().message.find("4 < 4 is false") != std::string::npos);
}

TEST_CASE("a requirement on what only a thread knows is an error of the kernel") {
  ir::Kernel k;
  k.name = "k";
  ir::Builder b(k);
  b.require(b.binary(ir::Opcode::Lt, b.query(ir::Opcode::ThreadId), b.const_u32(4)), "thread_id().x < 4");
  const auto requirements = rt::Requirements::of(k);
  REQUIRE_FALSE(requirements.has_value());
  CHECK(requirements.error().code() == ErrorCode::CompileValidation);
}

TEST_CASE("a requirement of more operations than fit a stack frame is evaluated all the same") {
  ir::Kernel k;
  k.name = "k";
  ir::Builder b(k);
  const auto n = b.scalar("n", ir::Type::U64);
  auto v = b.param(n);
  for (std::uint64_t i = 0; i < 500; ++i) v = b.binary(ir::Opcode::Add, v, b.const_u64(i + 1));
  b.require(b.binary(ir::Opcode::Eq, v, b.const_u64(125250)), "sum");
  const rt::Requirements requirements = rt::Requirements::of(k).value();
  LaunchArg arg;
  arg.type = ir::Type::U64;
  CHECK_FALSE(requirements.check({}, {&arg, 1}));
  arg.bits = 1;
  CHECK(requirements.check({}, {&arg, 1}));
}
