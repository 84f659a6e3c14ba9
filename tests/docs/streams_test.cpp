// The examples of docs/streams.md.
#include "docs/examples.h"
#include "kiln/dsl/operation.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_streams {

KILN_KERNEL(scale, (In<f32> x, Out<f32> y, Val<f32> a))
{
  require(x.size() == y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i]; }
}

// example: coroutine
Operation<f32> norm(Buffer<f32> x, Buffer<f32> y) {
  (co_await op::launch(scale, for_num_elems(x.size()), x, y, 2.0f)).value();  // what value() throws is the operation's error
  const std::vector<f32> host = (co_await op::read(y)).value();
  f32 sum = 0;
  for (const f32 v : host) sum += v * v;
  co_return sum;
}
// end

}  // namespace docs_streams

TEST_CASE("docs/streams: streams, calls and events") {
  using docs_streams::scale;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    Buffer<f32> x = Buffer<f32>::from_host(c, std::vector<f32>(100, 1)).value(), y = Buffer<f32>::zeroed(c, 100).value();
    bool told = false;
    // example: streams
    const Stream work = c.stream(), urgent = c.stream(StreamPriority::High);
    scale(work, for_num_elems(100), x, y, 2.0f);
    work.call([&] { told = true; });  // on a thread of the runtime, when the launch is over; what comes behind it waits for its return
    const Event there = work.record();
    urgent.wait(there);             // what `urgent` gets from now on starts after that; for buffers the runtime sees to it
    const bool yet = there.done();  // does not wait; there.sync() does
    work.flush();                   // the device has all of it; does not wait
    c.check(y);                     // what is known of the bytes; does not wait
    c.sync(x, y);                   // waits for the work on these buffers, and says what their bytes carry
    work.sync();                    // waits for the stream; of failures it tells those of the device only
    // end
    static_cast<void>(yet);
    CHECK(told);
    CHECK(y.read().value() == std::vector<f32>(100, 2));
  }
}

TEST_CASE("docs/streams: operations") {
  using docs_streams::norm, docs_streams::scale;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    Buffer<f32> x = Buffer<f32>::from_host(c, std::vector<f32>(100, 1)).value(), y = Buffer<f32>::zeroed(c, 100).value(), z = y;
    const Buffer<f32> w = Buffer<f32>::zeroed(c, 100).value();
    Buffer<f32> v = w;
    z = Buffer<f32>::zeroed(c, 100).value();
    const LaunchConfig config = for_num_elems(100);
    // example: operations
    Operation<void> later = op::launch(scale, config, x, y, 2.0f);  // lends its buffers; nothing runs yet
    std::move(later).sync().value();                                // runs it on the calling thread's default stream, and waits
    Operation<std::vector<f32>> chain =
        op::launch_owned(scale, config, std::move(x), std::move(z), 3.0f).and_then([](Buffer<f32>, Buffer<f32> scaled) {
          return op::read(std::move(scaled));
        });
    Running<std::vector<f32>> running = std::move(chain).start(c.stream());  // does not wait
    const std::vector<f32> threes = std::move(running).sync().value();
    // end
    CHECK(threes == std::vector<f32>(100, 3));
    // example: together
    auto both = op::when_all(op::launch(scale, config, y, v, 2.0f), op::call([] { return 5; }));  // at a time, on streams of their own
    auto [nothing, five] = std::move(both).sync(StreamPolicy::round_robin(c, 4)).value();
    auto one_by_one = op::zip(op::write(y, threes), op::launch(scale, config, y, v, 2.0f));  // in order; the second not after a failure
    std::move(one_by_one).sync().value();
    // end
    CHECK(five == 5);
    CHECK(v.read().value() == std::vector<f32>(100, 6));
    CHECK(norm(y, v).sync(c.default_stream()).value() == 3600);
  }
}
