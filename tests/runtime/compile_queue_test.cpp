// The compile queue: one batch, each kernel once, each failure told once; and the statistics of what was obtained.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/mode_devices.h"
#include "src/statistics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Bench {
  std::unique_ptr<ModeDevice> device;
  Client client;
  Stream stream;
  Buffer<u32> y;
  StatisticsCollector collector;
  explicit Bench(bool simulated)
      : device(mode_device(simulated)), client(device->client), stream(client.stream()), y(Buffer<u32>::zeroed(client, 1).value()) {}
  int compilations() const { return device->compiler.compilations.load(); }
  CompilationStatistics counted() const { return collector.reader().read().compilation; }

  void queue(const Variant& kernel) {
    const StreamModeOverride discard(stream, StreamMode::Discard);
    REQUIRE(go(stream, kernel, y).has_value());
  }
  // What is queued here stays so until the override goes.
  ProcessModeOverride counting() { return ProcessModeOverride::open(ProcessMode::Execute, collector).value(); }
};

CompilationStatistics numbers(std::uint64_t registered, std::uint64_t compiled, std::uint64_t loaded, std::uint64_t failed,
                              std::uint64_t abandoned = 0, std::uint64_t refused = 0) {
  CompilationStatistics s;
  s.registered = registered;
  s.compiled = compiled;
  s.loaded = loaded;
  s.failed = failed;
  s.abandoned = abandoned;
  s.refused = refused;
  return s;
}

}  // namespace

namespace doctest {
template <>
struct StringMaker<CompilationStatistics> {
  static String convert(const CompilationStatistics& s) {
    return ("registered " + std::to_string(s.registered) + ", compiled " + std::to_string(s.compiled) + ", loaded " +
            std::to_string(s.loaded) + ", failed " + std::to_string(s.failed) + ", abandoned " + std::to_string(s.abandoned) +
            ", refused " + std::to_string(s.refused) + ", stored " + std::to_string(s.stored))
        .c_str();
  }
};
}  // namespace doctest

TEST_CASE("three queued kernels and the launch of a fourth are one batch of four; a failure is told once, the launch after that retries") {
  for (const bool simulated : {false, true}) {
    Bench b(simulated);
    CAPTURE(b.device->name);
    const auto open = b.counting();
    const auto one = writes("one", 1), bad = writes("bad", 2), three = writes("three", 3), four = writes("four", 4);
    for (const auto& kernel : {one, bad, three}) b.queue(*kernel);
    b.queue(*one);  // queued already
    CHECK(b.compilations() == 0);
    CHECK(b.counted() == numbers(3, 0, 0, 0));
    REQUIRE(go(b.stream, *four, b.y).has_value());
    CHECK(b.compilations() == 4);
    CHECK(b.y.read().value() == std::vector<u32>{4});
    CHECK(b.counted() == numbers(4, 3, 0, 1, 0, 1));
    for (const auto& kernel : {one, three}) REQUIRE(go(b.stream, *kernel, b.y).has_value());
    CHECK(b.y.read().value() == std::vector<u32>{3});
    CHECK(b.compilations() == 4);

    const auto told = go(b.stream, *bad, b.y);
    REQUIRE_FALSE(told.has_value());
    CHECK(told.error().code() == ErrorCode::CompileUnsupported);
    CHECK(told.error().kernel() == "bad");
    CHECK(b.compilations() == 4);
    CHECK_FALSE(b.y.read().has_value());  // a real launch claims
    CHECK_FALSE(go(b.stream, *bad, b.y).has_value());
    CHECK(b.compilations() == 5);
    CHECK_FALSE(go(b.stream, *bad, b.y).has_value());
    CHECK(b.compilations() == 5);  // that was no queued one: it stays
    CHECK(b.counted() == numbers(5, 3, 0, 2, 0, 2));
  }
}

TEST_CASE("a kernel whose failure was told is well when the reason is gone by the next launch") {
  Bench b(false);
  const auto open = b.counting();
  const auto bad = writes("bad", 2);
  b.queue(*bad);
  REQUIRE(compile_queued(b.client).has_value());
  CHECK(b.compilations() == 1);
  CHECK_FALSE(go(b.stream, *bad, b.y).has_value());
  b.device->compiler.mended = true;
  CHECK(go(b.stream, *bad, b.y).has_value());
  CHECK(b.y.read().value() == std::vector<u32>{2});
  CHECK(b.compilations() == 2);
}

TEST_CASE("queueing a kernel forgets its failure, and so does the next batch") {
  Bench b(false);
  const auto open = b.counting();
  const auto bad = writes("bad", 2), other = writes("other", 3);
  b.queue(*bad);
  REQUIRE(compile_queued(b.client).has_value());
  b.device->compiler.mended = true;
  SUBCASE("queued anew") {
    b.queue(*bad);
    REQUIRE(compile_queued(b.client).has_value());
    CHECK(b.compilations() == 2);
  }
  SUBCASE("a batch of another") {
    b.queue(*other);
    REQUIRE(compile_queued(b.client).has_value());
    CHECK(b.compilations() == 2);
  }
  CHECK(go(b.stream, *bad, b.y).has_value());
  CHECK(b.y.read().value() == std::vector<u32>{2});
}

TEST_CASE("five kernels of one source are compiled once; where that fails each of them tells it") {
  for (const bool simulated : {false, true}) {
    Bench b(simulated);
    CAPTURE(b.device->name);
    const auto open = b.counting();
    std::vector<std::shared_ptr<const Variant>> same, bad;
    for (int i = 0; i < 5; ++i) same.push_back(writes("same", 7)), bad.push_back(writes("bad", 7));
    for (const auto& kernel : same) b.queue(*kernel);
    CHECK(b.counted() == numbers(5, 0, 0, 0));
    REQUIRE(compile_queued(b.client).has_value());
    CHECK(b.compilations() == 1);
    CHECK(b.counted() == numbers(5, 1, 4, 0));
    for (const auto& kernel : same) {
      Buffer<u32> y = Buffer<u32>::zeroed(b.client, 1).value();
      CHECK(go(b.stream, *kernel, y).has_value());
      CHECK(y.read().value() == std::vector<u32>{7});
    }
    CHECK(b.compilations() == 1);
    CHECK(b.counted() == numbers(5, 1, 4, 0));
    for (const auto& kernel : bad) b.queue(*kernel);
    REQUIRE(compile_queued(b.client).has_value());
    CHECK(b.compilations() == 2);
    for (const auto& kernel : bad) CHECK_FALSE(go(b.stream, *kernel, b.y).has_value());
    CHECK(b.compilations() == 2);
    CHECK(b.counted() == numbers(10, 1, 4, 5, 0, 5));
  }
}

TEST_CASE("four kernels are four programs, and a sixth launch of one of them obtains nothing") {
  Bench b(false);
  const auto open = b.counting();
  for (u32 i = 0; i < 4; ++i) b.queue(*writes("k" + std::to_string(i), i));  // the variant is gone before anything is compiled
  REQUIRE(compile_queued(b.client).has_value());
  CHECK(b.compilations() == 4);
  CHECK(b.counted() == numbers(4, 4, 0, 0));
  const auto again = writes("k2", 2);
  for (int i = 0; i < 3; ++i) CHECK(go(b.stream, *again, b.y).has_value());
  b.queue(*again);
  CHECK(b.compilations() == 4);
  CHECK(b.counted() == numbers(5, 4, 1, 0));  // an equal kernel, had without compiling
}

TEST_CASE("a batch compiles on as many threads as the configuration says, and on no more than there are kernels") {
  const struct {
    const char* jobs;
    int kernels, at_a_time;
  } rows[] = {{"1", 4, 1}, {"2", 5, 2}, {"8", 3, 3}};
  for (const auto& row : rows) {
    CAPTURE(row.jobs);
    const WithVariable jobs("KILN_COMPILE_JOBS", row.jobs);
    Bench b(false);
    const auto open = b.counting();
    b.device->compiler.meet = row.at_a_time;  // hangs where there are fewer
    for (int i = 0; i < row.kernels; ++i) b.queue(*writes("p" + std::to_string(i), 1));
    REQUIRE(compile_queued(b.client).has_value());
    CHECK(b.compilations() == row.kernels);
    CHECK(b.device->compiler.most.load() == row.at_a_time);
    CHECK(b.device->compiler.threads().size() == static_cast<std::size_t>(row.at_a_time));
  }
}

TEST_CASE("the first launch of a pass that tunes compiles the whole queue of the pass before") {
  Bench b(false);
  const StreamModeOverride keeps_the_queue(b.client.stream(), StreamMode::Execute);
  {
    const auto first = ProcessModeOverride::open(ProcessMode::CompileOnly).value();
    for (u32 i = 0; i < 3; ++i) CHECK(go(b.stream, *writes("k" + std::to_string(i), i), b.y).has_value());
  }
  CHECK(b.compilations() == 0);
  const auto second = ProcessModeOverride::open(ProcessMode::CompileAndAutotune, b.collector).value();
  CHECK(go(b.stream, *writes("k3", 3), b.y).has_value());
  CHECK(b.compilations() == 4);
  CHECK(b.counted() == numbers(1, 1, 0, 0));  // those of the first pass were issued when nobody counted
  CHECK(b.y.read().value() == std::vector<u32>{0});
}

TEST_CASE("a kernel counts to the override under which it was launched, also when it is settled later") {
  Bench b(false);
  const StreamModeOverride keeps_the_queue(b.client.stream(), StreamMode::Execute);
  {
    const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly, b.collector).value();
    CHECK(go(b.stream, *writes("late", 1), b.y).has_value());
  }
  CHECK(b.counted() == numbers(1, 0, 0, 0));
  CHECK(b.counted().settled() == 0);
  const StatisticsCollector later;
  const auto other = ProcessModeOverride::open(ProcessMode::Execute, later).value();
  REQUIRE(compile_queued(b.client).has_value());
  CHECK(b.counted() == numbers(1, 1, 0, 0));
  CHECK(later.reader().read() == ExecutionStatistics{});
}

TEST_CASE("what is queued on a device that goes away is abandoned") {
  StatisticsCollector collector;
  const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value();
  {
    const auto device = mode_device(false);
    Buffer<u32> y = Buffer<u32>::zeroed(device->client, 1).value();
    for (u32 i = 0; i < 2; ++i) CHECK(go(device->client.default_stream(), *writes("k" + std::to_string(i), i), y).has_value());
    CHECK(collector.reader().read().compilation == numbers(2, 0, 0, 0));
  }
  CHECK(collector.reader().read().compilation == numbers(2, 0, 0, 0, 2));
}

TEST_CASE("threads that queue and launch the same kernels at the same time have each compiled once") {
  Bench b(false);
  const auto open = b.counting();
  std::vector<std::shared_ptr<const Variant>> kernels;
  for (u32 i = 0; i < 6; ++i) kernels.push_back(writes("t" + std::to_string(i), i));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Stream stream = b.client.stream();
      Buffer<u32> y = Buffer<u32>::zeroed(b.client, 1).value();
      for (u32 i = 0; i < 6; ++i) {
        const u32 k = (i + t) % 6;
        if (t % 2 == 0) {
          const StreamModeOverride discard(stream, StreamMode::Discard);
          if (!go(stream, *kernels[k], y).has_value()) ++wrong;
          if (i == 3 && !compile_queued(b.client).has_value()) ++wrong;
        } else if (!go(stream, *kernels[k], y).has_value() || y.read().value() != std::vector<u32>{k}) {
          ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(compile_queued(b.client).has_value());
  CHECK(wrong.load() == 0);
  CHECK(b.compilations() == 6);
  CHECK(b.counted() == numbers(6, 6, 0, 0));
}

TEST_CASE("registrations are counted as they are settled, and what goes away unsettled is abandoned") {
  const StatisticsCollector collector;
  const StatisticsReader reader = collector.reader();
  const auto open = ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value();
  const Error refusal(ErrorCode::CompileUnsupported, "no"), panic(ErrorCode::CompilePanicked, "no");
  {
    KernelRegistration compiled, loaded, failed, waiting;
    compiled.compiled(true);
    loaded.loaded();
    failed.failed(refusal);
    failed.failed(refusal);  // told twice counts once
    compiled.failed(panic);  // it is settled
    CompilationStatistics expected = numbers(4, 1, 1, 1, 0, 1);
    expected.stored = 1;
    CHECK(reader.read().compilation == expected);
    CHECK(reader.read().compilation.settled() == 3);
    KernelRegistration moved = std::move(waiting);
    waiting.loaded();
    CHECK(reader.read().compilation == expected);
  }
  CompilationStatistics expected = numbers(4, 1, 1, 1, 1, 1);
  expected.stored = 1;
  CHECK(reader.read().compilation == expected);
  CHECK(reader.read().compilation.settled() == 4);
  KernelRegistration panicked;
  panicked.failed(panic);
  CHECK(reader.read().compilation.refused == 1);
}

TEST_CASE("tunes are counted the same way") {
  const StatisticsCollector collector;
  const auto open = ProcessModeOverride::open(ProcessMode::CompileAndAutotune, collector).value();
  const auto counts = [&] { return collector.reader().read().autotune; };
  {
    TuneRegistration persisted, measured, failed, abandoned;
    persisted.measured(true);
    measured.measured();
    measured.failed();
    failed.failed();
    CHECK(counts() == AutotuneStatistics{4, 2, 1, 0, 1});
    CHECK(counts().settled() == 3);
    abandoned = TuneRegistration();  // what it held is abandoned
    CHECK(counts() == AutotuneStatistics{5, 2, 1, 1, 1});
  }
  CHECK(counts() == AutotuneStatistics{5, 2, 1, 2, 1});
  CHECK(collector.reader().read().compilation == CompilationStatistics{});
}

TEST_CASE("what no collector is open for is counted nowhere") {
  const StatisticsCollector collector;
  { const KernelRegistration none; }
  const auto open = ProcessModeOverride::open(ProcessMode::Execute).value();
  { const TuneRegistration none; }
  CHECK(collector.reader().read() == ExecutionStatistics{});
}
