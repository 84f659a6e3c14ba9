// Launches take their code from bundles, on every device.
#include <doctest/doctest.h>

#include <atomic>
#include <regex>
#include <thread>

#include "bundle/made_up.h"
#include "bundle/module.h"
#include "kiln/kiln.h"
#include "kiln/runtime/statistics.h"
#include "src/logging.h"
#include "support/each_client.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const int anchor = 0;
using Block = std::array<std::uint32_t, 3>;

// The log of programs, while one lives.
class CompileLog {
 public:
  CompileLog() : path_(folder_.file("log")) { REQUIRE(rt::set_up_logging("compile=info", path_).has_value()); }
  ~CompileLog() { (void)rt::set_up_logging("warning", "stderr"); }
  bool has(const std::string& text) const { return lines(text) > 0; }
  std::size_t lines(const std::string& text) const {
    const std::string all = read_file(path_);
    std::size_t n = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
    return n;
  }
  std::string text() const { return read_file(path_); }

 private:
  TempFolder folder_;
  std::string path_;
};

BundleItem compiled(const Variant& variant, Mode mode, BundleItem::Kind kind, const CompileOptions& options) {
  const CodegenHandle& handle = code_generator();
  REQUIRE(handle.compiler != nullptr);
  return {kind, options, handle.compiler->compile(*variant.prepared(mode).value(), options)};
}
CompileOptions for_cpu(const std::string& level, const Block& block, bool aligned = false) {
  CompileOptions options;
  options.arch = level;
  options.block = block;
  options.aligned16 = aligned;
  return options;
}
CompileOptions for_gpu(const std::string& arch, bool aligned = false, const Block& block = {0, 0, 0}) {
  CompileOptions options;
  options.target = TargetKind::Ptx;
  options.arch = arch;
  options.aligned16 = aligned;
  options.block = block;
  return options;
}
// For every device that tests run on: PTX, and objects for these blocks.
std::vector<BundleItem> everywhere(const Variant& variant, Mode mode, const std::vector<Block>& blocks) {
  std::vector<BundleItem> items;
  const Block declared = variant.recorded().block_size;
  for (const char* arch : {"sm_75", "sm_80"})
    items.push_back(compiled(variant, mode, BundleItem::Kind::Ptx, for_gpu(arch, false, declared)));
  for (const Block& block : blocks) items.push_back(compiled(variant, mode, BundleItem::Kind::Object, for_cpu("x86-64", block)));
  return items;
}

// Launches adding() on 100 numbers, the first of which lie `shift` elements into the memory; what became of the last one.
Result<u32> launch_adding(const Client& client, const Variant& variant, std::uint32_t block_x, std::uint32_t block_y = 1,
                          std::uint64_t shift = 0, Mode mode = Mode::AsKernel) {
  const auto memory = Buffer<u32>::zeroed(client, 100 + shift).value();
  const auto view = memory.slice(shift, 100);
  LaunchArg a;
  a.type = ir::Type::U32;
  const LaunchArg args[] = {view.arg(), a};
  LaunchRequest request;
  request.variant = &variant;
  request.args = args;
  request.config.grid = Dim3((100 + block_x - 1) / block_x);
  request.config.block = Dim3(block_x, block_y);
  request.mode = mode;
  const Result<void> launched = launch(client.default_stream(), request);
  if (!launched.has_value()) return launched.error();
  return view.read().value().at(99);
}

// How kernels were had while `work` ran.
template <class Work>
CompilationStatistics counted(Work&& work) {
  const StatisticsCollector collector;
  {
    const auto open = ProcessModeOverride::open(ProcessMode::Execute, collector).value();
    work();
  }
  return collector.reader().read().compilation;
}

std::string is_cpu(const Client& client) { return client.properties().kind == "cpu" ? "cpu" : "gpu"; }

// The kernel that embedded ones are held against.
KILN_KERNEL(watched, (In<f32> x, Out<f32> y, Val<u32> reach))
{
  require(x.size() == y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i + reach] * 2; }
}

}  // namespace

TEST_CASE("a launch takes its code from the bundle of its kernel, and compiles where there is none") {
  const Client client = each_client();
  const std::string name = "taken_" + is_cpu(client) + client.properties().arch;
  const std::string text = adding_text(name, 5);
  const auto again = [&] { return Variant(ir::parse_kernel(text)); };
  const CompileLog log;
  {
    const Module module(write_bundle(again(), Mode::AsKernel, everywhere(again(), Mode::AsKernel, {{64, 1, 1}, {32, 1, 1}})).value());
    const CompilationStatistics s = counted([&] { CHECK(launch_adding(client, again(), 64).value() == 5); });
    CHECK(s.compiled == 0);
    CHECK(s.loaded == 1);
    CHECK(log.has("kernel '" + name + "' loaded from the " + (is_cpu(client) == "cpu" ? "object x86-64 (64x1x1)" : "PTX sm_")));
    // Another kernel of that name is not this one.
    const CompilationStatistics other = counted([&] { CHECK(launch_adding(client, adding(name, 6), 64).value() == 6); });
    CHECK(other.compiled == 1);
    CHECK(log.has("kernel '" + name + "': what is embedded is not used: the kernel in '"));
    CHECK(log.has("is not the one that this program recorded: the kernel's text from line "));
    CHECK(counted([&] { CHECK(launch_adding(client, adding(name, 7), 64).value() == 7); }).compiled == 1);
    CHECK(log.lines("what is embedded is not used") == 1);  // it is said once
    // The other mode is not embedded.
    CHECK(counted([&] { CHECK(launch_adding(client, again(), 64, 1, 0, Mode::Unchecked).value() == 5); }).compiled == 1);
  }
  // A kernel that was loaded stays, though its module is gone; a new shape of it is compiled.
  CHECK(counted([&] { CHECK(launch_adding(client, again(), 64).value() == 5); }).compiled == 0);
  if (is_cpu(client) == "cpu") CHECK(counted([&] { CHECK(launch_adding(client, again(), 32).value() == 5); }).compiled == 1);
}

TEST_CASE(
    "the block of a launch decides on the CPU between code for it, for a row of threads and for any block, and all give its results") {
  const Client client = Client::open("cpu").value();
  // The first block writes to element y * block_dim.x + x its y, and 1000 for each row of the block.
  const Variant variant(ir::parse_kernel(R"x(kir 1
kernel "run_time_blocks" {
  buffer y : u32[*] inout
  scalar a : u32
  body {
    %x = thread_id.x
    %t = thread_id.y
    %w = block_dim.x
    %r = mul %t, %w
    %i = add %r, %x
    %n = size y
    %in = lt %i, %n
    %b = block_id.x
    %zero = const 0 : u32
    %first = eq %b, %zero
    barrier
    if %in {
      if %first {
        %h = block_dim.y
        %k = const 1000 : u32
        %m = mul %h, %k
        %v = add %m, %t
        store y[%i], %v
      }
    }
  }
}
)x"));
  const Module module(
      write_bundle(variant, Mode::AsKernel, everywhere(variant, Mode::AsKernel, {{128, 1, 1}, {0, 1, 1}, {0, 0, 0}})).value());
  struct Row {
    std::uint32_t x, y, expected;
    const char* item;
  };
  const Row rows[] = {{128, 1, 1000, "128x1x1"},    {100, 1, 1000, "any row"},   {1024, 1, 1000, "any row"},   {64, 2, 2001, "any block"},
                      {10, 10, 10009, "any block"}, {7, 16, 16014, "any block"}, {1, 100, 100099, "any block"}};
  for (const Row& row : rows) {
    CAPTURE(row.x);
    CAPTURE(row.y);
    const CompileLog log;
    const CompilationStatistics s = counted([&] { CHECK(launch_adding(client, variant, row.x, row.y).value() == row.expected); });
    CHECK(s.compiled == 0);
    CHECK(s.loaded == 1);
    CHECK_MESSAGE(log.has("loaded from the object x86-64 (" + std::string(row.item) + ")"), log.text());
  }
}

TEST_CASE("what a dropped launch queued comes from its bundle, too") {
  const Client client = each_client();
  const std::string name = "queued_" + client.properties().arch;
  const Variant variant = adding(name, 8);
  const Module module(write_bundle(variant, Mode::AsKernel, everywhere(variant, Mode::AsKernel, {{64, 1, 1}})).value());
  const StatisticsCollector collector;
  {
    const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value();
    const auto y = Buffer<u32>::zeroed(client, 100).value();
    LaunchArg a;
    a.type = ir::Type::U32;
    const LaunchArg args[] = {y.arg(), a};
    LaunchRequest request;
    request.variant = &variant;
    request.args = args;
    request.config = {{2}, {64}};
    CHECK(launch(client.default_stream(), request).has_value());
  }
  const CompilationStatistics s = collector.reader().read().compilation;
  CHECK(s.compiled == 0);
  CHECK(s.loaded == 1);
}

TEST_CASE("code for aligned arguments is taken for aligned arguments only") {
  const Client client = each_client();
  const bool cpu = is_cpu(client) == "cpu";
  const std::string name = "aligned_" + client.properties().arch;
  const Variant variant = adding(name, 3);
  std::vector<BundleItem> items;
  for (const bool aligned : {false, true}) {
    const auto options = cpu ? for_cpu("x86-64", {64, 1, 1}, aligned) : for_gpu("sm_75", aligned);
    items.push_back(compiled(variant, Mode::AsKernel, cpu ? BundleItem::Kind::Object : BundleItem::Kind::Ptx, options));
  }
  const Module module(write_bundle(variant, Mode::AsKernel, items).value());
  const CompileLog log;
  CHECK(counted([&] { CHECK(launch_adding(client, variant, 64, 1, 0).value() == 3); }).loaded == 1);
  CHECK(log.has("aligned arguments) in '"));
  CHECK(counted([&] { CHECK(launch_adding(client, variant, 64, 1, 1).value() == 3); }).compiled == 0);
  CHECK(log.lines("loaded from the ") == 2);
  CHECK(log.lines("aligned arguments) in '") == 1);
}

TEST_CASE("a damaged item is not used: another one is, or the kernel is compiled, with one warning") {
  const Client client = each_client();
  const bool cpu = is_cpu(client) == "cpu";
  const std::string name = "damaged_" + client.properties().arch;
  const Variant variant = adding(name, 4);
  std::vector<BundleItem> items = everywhere(variant, Mode::AsKernel, {{64, 1, 1}});
  std::string bytes = write_bundle(variant, Mode::AsKernel, items).value();
  // What lies last before the padding: the object; of a GPU, flip all that is packed.
  const std::size_t last = bytes.find_last_not_of('\0');
  const std::size_t first = cpu ? last - 8 : bytes.size() / 2;
  for (std::size_t i = first; i <= last; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 1);
  const Module module(bytes);
  const CompileLog log;
  CHECK(counted([&] { CHECK(launch_adding(client, variant, 64).value() == 4); }).settled() == 1);
  CHECK(counted([&] { CHECK(launch_adding(client, adding(name, 4), 64).value() == 4); }).compiled == 0);
  if (cpu) {
    CHECK(log.lines("kernel '" + name + "': what is embedded is not used: in '") == 1);
    CHECK(log.has("the checksum is not that of the bytes of its object x86-64 (64x1x1)"));
  }
}

TEST_CASE("a cubin that the driver refuses gives way to PTX, which is said") {
  const Client client = each_client();
  if (is_cpu(client) == "cpu") return;
  const std::string name = "refused_" + client.properties().arch;
  const Variant variant = adding(name, 9);
  std::vector<BundleItem> items = everywhere(variant, Mode::AsKernel, {});
  items.push_back(cubin_item("sm_" + std::to_string(client.properties().compute_capability),
                             "\x7f"
                             "ELF of nobody"));
  const Module module(write_bundle(variant, Mode::AsKernel, items).value());
  const CompileLog log;
  const CompilationStatistics s = counted([&] { CHECK(launch_adding(client, variant, 64).value() == 9); });
  CHECK(s.loaded == 1);
  CHECK(s.compiled == 0);
  CHECK(log.lines("is refused: ") == 1);
  CHECK(log.has("kernel '" + name + "': the cubin sm_"));
  CHECK(log.has("kernel '" + name + "' loaded from the PTX sm_"));
}

TEST_CASE("an embedded kernel is launched, refused and told of as a recorded one") {
  const Client client = each_client();
  const auto recorded = static_cast<const KernelEntry&>(watched).variant("").value();
  std::string bytes;
  for (const Mode mode : {Mode::Checked, Mode::Unchecked})
    bytes += write_bundle(*recorded, mode, everywhere(*recorded, mode, {{64, 1, 1}})).value();
  const Module module(bytes);
  const EmbeddedKernel<In<f32>, Out<f32>, Val<u32>> embedded{recorded->name().c_str(), &anchor};
  const LaunchConfig config{{2}, {64}};
  std::vector<f32> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(static_cast<f32>(i));
  const auto x = Buffer<f32>::from_host(client, numbers).value();
  const auto out = [&] { return Buffer<f32>::zeroed(client, 100).value(); };

  const auto all = [&](const auto& kernel) {
    std::vector<std::string> told;
    const auto error = [&](const Result<void>& result) { told.push_back(result.has_value() ? "no error" : result.error().text()); };
    auto y = out();
    error(kernel(config, x, y, 0));
    told.push_back(std::to_string(y.read().value().at(99)));
    error(kernel.unchecked()(config, x, y, 0));
    error(kernel.checked()(config, x, y, 0));
    auto prepared = kernel.prepare(config, x, y, 0u);
    error(prepared.value()());
    auto small = Buffer<f32>::zeroed(client, 10).value();
    error(kernel(config, x, small, 0));  // the require()
    error(small.read().error().root().code() == ErrorCode::Validation ? Result<void>() : small.read().error());
    error(kernel({{1}, {2048}}, x, y, 0));  // the device's limit
    error(kernel(config, x, y, -1));        // what does not fit its Val
    auto faulty = out();
    error(kernel(config, x, faulty, 1));  // out of range, in one thread
    const auto read = faulty.read();
    told.push_back(read.has_value() ? "read" : read.error().root().text());
    auto behind = out();
    error(kernel(config, faulty, behind, 0));  // reads what is claimed
    const auto none = behind.read();
    told.push_back(none.has_value() ? "read" : none.error().root().text());
    return told;
  };
  std::vector<std::string> theirs, ours;
  const CompilationStatistics s = counted([&] { theirs = all(embedded); });
  CHECK(s.compiled == 0);
  CHECK(s.loaded >= 1);
  ours = all(watched);
  REQUIRE(theirs.size() == ours.size());
  // But for the numbers of memories and failures.
  const std::regex number("(memory |#)[0-9]+");
  bool line = false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(std::regex_replace(theirs[i], number, "$1") == std::regex_replace(ours[i], number, "$1"));
    line =
        line || theirs[i].find(
                    "out of range: load of 'x' at index 100 of dimension 0, whose extent is 100, by thread (35, 0, 0) of block (1, 0, 0)\n"
                    "  kernel: watched\n  at: tests/bundle/launch_test.cpp:") != std::string::npos;
  }
  CHECK(line);
  CHECK(theirs[1] == "198.000000");
}

TEST_CASE("an embedded kernel is launched by many threads at once, at its first launch too") {
  const Client client = each_client();
  const std::string name = "many_" + client.properties().arch;
  const Variant variant = adding(name, 2);
  const Module module(write_bundle(variant, Mode::AsKernel, everywhere(variant, Mode::AsKernel, {{64, 1, 1}})).value());
  const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{name.c_str(), &anchor};
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      auto y = Buffer<u32>::zeroed(client, 100).value();
      for (int i = 0; i < 5; ++i) kernel({{2}, {64}}, y, 1u).value();
      right += y.read().value() == std::vector<u32>(100, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
}
