// Work that waits for a call of the host is given to the driver when its turn comes, by whichever thread is there then.
#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <string>
#include <thread>

#include "kiln/kiln.h"
#include "kiln/runtime/memory.h"
#include "kiln/runtime/operation.h"
#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// A call of the host that lasts until it is let go.
class LongCall {
 public:
  explicit LongCall(const Stream& stream) {
    stream.call([open = open_.get_future().share()] { open.wait(); }).value();
  }
  ~LongCall() { let_go(); }
  void let_go() {
    if (!std::exchange(gone_, true)) open_.set_value();
  }

 private:
  std::promise<void> open_;
  bool gone_ = false;
};

}  // namespace

TEST_CASE("work behind a host call that the driver refuses when its turn comes is refused, and the device goes on") {
  struct Work {
    const char* entry;
    std::function<Result<void>(const Stream&, const Buffer<u32>& from, Buffer<u32>& to)> enqueue;
  };
  const Work table[] = {
      {"cuLaunchKernelEx",
       [](const Stream& s, const Buffer<u32>& from, Buffer<u32>& to) { return run(s, kernels().copy, from.arg(), to.arg()); }},
      {"cuMemcpyDtoDAsync",
       [](const Stream& s, const Buffer<u32>& from, Buffer<u32>& to) { return rt::copy(s, to.binding(), from.binding()); }},
      {"cuMemsetD8Async", [](const Stream& s, const Buffer<u32>&, Buffer<u32>& to) { return rt::fill_zero(s, to.binding()); }},
      {"cuMemcpyHtoDAsync", [](const Stream& s, const Buffer<u32>&, Buffer<u32>& to) { return to.write(s, of(4, 0)); }},
  };
  for (const Work& work : table) {
    CAPTURE(work.entry);
    const Client client = sim_server_client();
    const Stream stream = client.stream();
    const auto from = made(client, of(4, 0));
    auto x = made(client, of(4, 7)), y = made(client, of(4, 8));
    work.enqueue(stream, from, x).value();  // it is compiled
    client.sync().value();
    {
      LongCall call(stream);
      REQUIRE(work.enqueue(stream, from, x).has_value());
      REQUIRE(work.enqueue(stream, from, y).has_value());
      const SimScript script(R"({"calls": [{"name": ")" + std::string(work.entry) + R"(", "n": 1, "code": 2}]})");
      call.let_go();
      CHECK(stream.sync().has_value());  // the call's thread finds out
    }
    CHECK(has(refused(x), "CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(y.read().value() == of(4, 0));
    CHECK(client.sync().has_value());
  }
}

TEST_CASE("a read behind a host call that the driver refuses when its turn comes gives no bytes, whatever way it reads") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  const auto x = made(client, of(8, 7));
  auto pinned = HostBuffer<u32>::make(client, 8).value();
  const std::function<Result<void>()> reads[] = {[&]() -> Result<void> {
                                                   auto got = x.read(stream);
                                                   return got.has_value() ? Result<void>() : got.error();
                                                 },
                                                 [&]() -> Result<void> {
                                                   auto got = StridedView<u32, 1>(x).range(0, 0, 4, 2).read(stream);
                                                   return got.has_value() ? Result<void>() : got.error();
                                                 },
                                                 [&]() -> Result<void> {
                                                   auto got = op::read(x).sync(stream);
                                                   return got.has_value() ? Result<void>() : got.error();
                                                 },
                                                 [&]() -> Result<void> {
                                                   pinned.download(stream, x).value();
                                                   auto got = pinned.read();
                                                   return got.has_value() ? Result<void>() : got.error();
                                                 }};
  for (const auto& read : reads) {
    client.sync().value();
    LongCall call(stream);
    const SimScript script(R"({"calls": [{"name": "cuMemcpyDtoHAsync", "n": 1, "code": 2}]})");
    std::thread later([&] { call.let_go(); });  // most often once the read waits; it is the same before
    const auto got = read();
    later.join();
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().rule() == "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(read().has_value());
    CHECK(client.sync().has_value());
  }
}

TEST_CASE("memory that a cleanup could not move behind a host call, as the driver refused the copy, is not read as what it was to hold") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  const auto x = made(client, of(8, 7));
  client.sync().value();
  install_memory_pools(client, MemoryPools::exclusive_pages()).value();
  {
    LongCall call(stream);
    rt::fill_zero(stream, x.binding()).value();  // what moves it comes behind this
    const SimScript script(R"({"calls": [{"name": "cuMemcpyDtoDAsync", "n": 1, "code": 2}]})");
    std::thread later([&] { call.let_go(); });
    (void)memory_cleanup(client);
    later.join();
    CHECK(client.sync().has_value());
  }
  const auto got = x.read();
  if (got.has_value()) CHECK(*got == of(8, 0));  // refused at once: it is where it was
  else CHECK(has(got.error().text(), "CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_CASE("where the driver has no stream or event for work behind a host call, the work is refused, and the device goes on") {
  for (const char* entry : {"cuStreamCreateWithPriority", "cuEventCreate"}) {
    CAPTURE(entry);
    const Client client = sim_server_client();
    // Its queue is not that of the default stream, whatever streams there were before: nothing was done there yet.
    const Stream stream = client.stream(StreamPriority::High);
    const auto x = made(client, of(4, 7)), y = made(client, of(4, 8));
    client.sync().value();
    {
      LongCall call(stream);
      const SimScript script(R"({"calls": [{"name": ")" + std::string(entry) + R"(", "n": 1, "code": 2}]})");
      static_cast<void>(rt::fill_zero(stream, x.binding()));  // known at once, or when its turn comes
      static_cast<void>(rt::fill_zero(stream, y.binding()));
      call.let_go();
      CHECK(stream.sync().has_value());
    }
    CHECK(has(refused(x), "CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(y.read().value() == of(4, 0));
    CHECK(client.sync().has_value());
  }
}
