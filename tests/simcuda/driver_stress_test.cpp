// Random programs over streams and events against a naive model: whatever the order in which the driver starts what is ready, the bytes are
// those of the program done one call after the other, as long as the program orders its conflicts.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>

#include "simcuda/driver_fixture.h"

using namespace kiln::simcuda::test;

namespace {

// What the model knows of the order: for each operation the set of those that are certainly done before it.
class Order {
 public:
  using Set = std::vector<bool>;
  std::size_t add(Set before) {
    before.resize(before_.size());
    before_.push_back(std::move(before));
    return before_.size() - 1;
  }
  Set up_to(std::size_t operation) const {
    Set s = before_[operation];
    s.resize(operation + 1);
    s[operation] = true;
    return s;
  }
  static void merge(Set& into, const Set& more) {
    if (into.size() < more.size()) into.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i)
      if (more[i]) into[i] = true;
  }
  static bool has(const Set& set, std::size_t operation) { return operation < set.size() && set[operation]; }

 private:
  std::vector<Set> before_;
};

class Program {
 public:
  Program(std::uint64_t seed, int steps) : random_(seed) {
    streams_.push_back({nullptr, true, {}});
    for (int i = 0; i < 4; ++i) streams_.push_back({make_stream(i < 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING), i < 2, {}});
    for (int i = 0; i < 6; ++i) buffers_.push_back({allocate(kWords * 4), 0, {}, {}});
    for (int i = 0; i < 3; ++i) events_.push_back({make_event(), {}, false});
    for (Buffer& b : buffers_) write(0, b, 1000 + below(1000));
    for (int i = 0; i < steps; ++i) step();
    for (Buffer& b : buffers_) check(below(streams_.size()), b);
    KILN_OK(library().cuCtxSynchronize());
  }

 private:
  static constexpr std::size_t kWords = 64;
  struct Stream {
    CUstream handle;
    bool blocking;
    Order::Set done_before_next;
  };
  struct Buffer {
    CUdeviceptr address;
    std::uint32_t value;
    std::vector<std::size_t> writes, reads;  // the last write and the reads since
  };
  struct Event {
    CUevent handle;
    Order::Set done;
    bool recorded;
  };

  std::size_t below(std::size_t n) { return random_() % n; }

  // What is done before the next operation of the stream, with the null stream's rule.
  Order::Set before(std::size_t stream) const {
    Order::Set set = streams_[stream].done_before_next;
    if (stream == 0) {
      for (const Stream& s : streams_)
        if (s.blocking) Order::merge(set, s.done_before_next);
    } else if (streams_[stream].blocking) {
      Order::merge(set, streams_[0].done_before_next);
    }
    return set;
  }

  // Orders the stream behind an operation, by an event where nothing else does.
  void order_behind(std::size_t stream, std::size_t operation) {
    if (Order::has(before(stream), operation)) return;
    for (std::size_t other = 0; other < streams_.size(); ++other) {
      if (!Order::has(before(other), operation)) continue;
      Event& event = events_[below(events_.size())];
      record(other, event);
      wait(stream, event);
      return;
    }
    FAIL("an operation that no stream is behind of");
  }
  void record(std::size_t stream, Event& event) {
    KILN_OK(library().cuEventRecord(event.handle, streams_[stream].handle));
    event.done = before(stream);
    event.recorded = true;
    streams_[stream].done_before_next = event.done;
  }
  void wait(std::size_t stream, const Event& event) {
    KILN_OK(library().cuStreamWaitEvent(streams_[stream].handle, event.handle, 0));
    // A wait is an operation of its stream only where there is something to wait for, so the null stream's rule is not counted on.
    if (event.recorded) Order::merge(streams_[stream].done_before_next, event.done);
  }
  std::size_t did(std::size_t stream) {
    const std::size_t operation = order_.add(before(stream));
    streams_[stream].done_before_next = order_.up_to(operation);
    return operation;
  }
  void before_write(std::size_t stream, const Buffer& buffer) {
    for (const std::size_t o : buffer.writes) order_behind(stream, o);
    for (const std::size_t o : buffer.reads) order_behind(stream, o);
  }

  void write(std::size_t stream, Buffer& buffer, std::size_t value) {
    before_write(stream, buffer);
    KILN_OK(library().cuMemsetD32Async(buffer.address, static_cast<unsigned>(value), kWords, streams_[stream].handle));
    buffer.value = static_cast<std::uint32_t>(value);
    buffer.writes = {did(stream)};
    buffer.reads.clear();
  }
  void copy(std::size_t stream, Buffer& to, Buffer& from) {
    if (&to == &from) return;
    before_write(stream, to);
    for (const std::size_t o : from.writes) order_behind(stream, o);
    KILN_OK(library().cuMemcpyDtoDAsync(to.address, from.address, kWords * 4, streams_[stream].handle));
    const std::size_t operation = did(stream);
    to.value = from.value;
    to.writes = {operation};
    to.reads.clear();
    from.reads.push_back(operation);
  }
  void check(std::size_t stream, Buffer& buffer) {
    for (const std::size_t o : buffer.writes) order_behind(stream, o);
    std::vector<std::uint32_t> host(kWords);
    KILN_OK(library().cuMemcpyDtoHAsync(host.data(), buffer.address, kWords * 4, streams_[stream].handle));
    buffer.reads.push_back(did(stream));
    CHECK(host == std::vector<std::uint32_t>(kWords, buffer.value));
  }

  void step() {
    const std::size_t stream = below(streams_.size());
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return write(stream, buffers_[below(buffers_.size())], below(1u << 20));
      case 3:
      case 4:
      case 5:
      case 6: return copy(stream, buffers_[below(buffers_.size())], buffers_[below(buffers_.size())]);
      case 7: return record(stream, events_[below(events_.size())]);
      case 8: return wait(stream, events_[below(events_.size())]);
      case 9: return check(stream, buffers_[below(buffers_.size())]);
      case 10: return (void)library().cuStreamQuery(streams_[stream].handle);
      default: {
        Event& event = events_[below(events_.size())];
        KILN_OK(library().cuEventSynchronize(event.handle));
        KILN_CALL(library().cuEventQuery(event.handle), CUDA_SUCCESS);
      }
    }
  }

  std::mt19937_64 random_;
  Order order_;
  std::vector<Stream> streams_;
  std::vector<Buffer> buffers_;
  std::vector<Event> events_;
};

}  // namespace

TEST_CASE("random programs over streams and events end with the bytes of the naive model, in whatever order ready work starts") {
  const char* schedules[] = {"oldest", "newest", "seeded"};
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const DeviceSession session("{\"schedule\": \"" + std::string(schedules[seed % 3]) + "\", \"seed\": " + std::to_string(seed) + "}");
    const Program program(seed, 80);
  }
}

TEST_CASE("random programs are right on slow streams and with late events, too") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const DeviceSession session(R"({"slow": [{"stream": 1, "ms": 0.4}, {"stream": 3, "ms": 1.1}], "late_events_ms": 0.3})");
    const Program program(1000 + seed, 50);
  }
}

TEST_CASE("threads use the driver at once, each with its own streams") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      CUcontext context = nullptr;
      const auto must = [&](CUresult r) { wrong += r != CUDA_SUCCESS; };
      must(lib.cuDevicePrimaryCtxRetain(&context, t % 2));
      must(lib.cuCtxPushCurrent(context));
      CUstream stream = nullptr;
      CUevent event = nullptr;
      must(lib.cuStreamCreate(&stream, static_cast<unsigned>(t / 2)));
      must(lib.cuEventCreate(&event, CU_EVENT_DEFAULT));
      for (unsigned i = 0; i < 60; ++i) {
        CUdeviceptr a = 0;
        must(lib.cuMemAlloc(&a, 256));
        must(lib.cuMemsetD32Async(a, i, 64, stream));
        must(lib.cuEventRecord(event, stream));
        must(lib.cuStreamWaitEvent(nullptr, event, 0));
        std::vector<unsigned> host(64);
        must(lib.cuMemcpyDtoHAsync(host.data(), a, 256, stream));
        wrong += host != std::vector<unsigned>(64, i);
        must(lib.cuEventSynchronize(event));
        must(lib.cuMemFree(a));
      }
      must(lib.cuEventDestroy(event));
      must(lib.cuStreamDestroy(stream));
      must(lib.cuCtxSetCurrent(nullptr));
      must(lib.cuDevicePrimaryCtxRelease(t % 2));
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}
