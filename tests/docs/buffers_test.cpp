// The examples of docs/buffers.md and docs/devices.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_buffers {

// example: pitched
KILN_KERNEL(doubled, (In<f32, 2, Strided> x, Out<f32, 2, Strided> y))
{
  auto [c, r, z] = global_id();
  If (r < y.extent(0) && c < y.extent(1) && r < x.extent(0) && c < x.extent(1)) { y[r, c] = 2 * x[r, c]; }
}

std::vector<f32> twice(const Client& client, const std::vector<f32>& picture, u64 rows, u64 columns) {
  const auto x = PitchedBuffer<f32, 2>::from_host(client, picture, {rows, columns}).value();
  auto y = PitchedBuffer<f32, 2>::uninitialised(client, {rows, columns}).value();
  doubled(cover({columns, rows}, {16, 16}), x, y);
  return y.read().value();  // without the padding
}
// end

}  // namespace docs_buffers

TEST_CASE("docs/buffers: views and layouts") {
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    CHECK(docs_buffers::twice(client, made_of<f32>(15, [](auto i) { return i; }), 3, 5)[14] == 28);
    // example: views
    auto m = Buffer<i32, 2>::from_host(client, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4}).value();
    StridedView<i32, 2> odd = StridedView(m).range(1, 1, 2, 2);       // columns 1 and 3: 1 3 5 7 9 11
    const auto corner = StridedView(m).box({1, 2}, {2, 2});           // 6 7 10 11
    const auto turned = corner.transposed();                          // 6 10 7 11
    const auto rows = StridedView(m).range(0, 2, 1).broadcast(0, 5);  // the last row, five times: for inputs only
    odd.write({-1, -3, -5, -7, -9, -11});                             // leaves all other elements alone
    odd.range(0, 0, 1).copy_from(corner.range(0, 1, 1));              // on the device, whatever the strides
    // end
    CHECK(corner.read().value() == std::vector<i32>{6, -7, 10, -11});
    CHECK(turned.read().value() == std::vector<i32>{6, 10, -7, -11});
    CHECK(rows.size() == 20);
    CHECK(odd.read().value() == std::vector<i32>{10, -11, -5, -7, -9, -11});
  }
}

TEST_CASE("docs/buffers: host memory") {
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const Stream stream = client.stream();
    auto x = Buffer<f32>::uninitialised(client, 1000).value();
    // example: staging
    auto in = HostBuffer<f32>::make(client, 1000).value(), out = HostBuffer<f32>::make(client, 1000).value();
    for (f32& v : in.write().value()) v = 1;                // waits for uploads from it that are under way
    in.upload(stream, x);                                   // returns at once
    out.download(stream, x);                                // so does this
    const std::span<const f32> there = out.read().value();  // waits; refuses what came of claimed bytes
    // end
    CHECK(there[999] == 1);
  }
  const Client cpu = Client::open("cpu").value();
  const auto b = Buffer<f32>::from_host(cpu, {1, 2, 3}).value();
  // example: view
  const auto view = host_view(b).value();  // on the CPU: the bytes themselves
  f32 sum = 0;
  for (const f32 v : view) sum += v;
  // end
  CHECK(sum == 6);
}

TEST_CASE("docs/buffers: memory of others") {
  const Client cpu = Client::open("cpu").value();
  // example: import
  auto owner = std::make_shared<std::vector<f32>>(100, 2.0f);
  auto x = import_buffer(cpu, owner->data(), owner->size(), owner).value();  // keeps it until the last task on it is over
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(x).value();             // for others: they call its deleter
  const auto back = from_dlpack<f32, 1>(cpu, tensor).value();                // ours now
  // end
  CHECK(back.read().value() == *owner);
  CHECK(x.binding().memory == back.binding().memory);
}

TEST_CASE("docs/devices: copies and collectives") {
  // example: devices
  const Client a = Client::open("cpu").value(), b = Client::open("cpu:1").value();
  const auto x = Buffer<f32>::from_host(a, {1, 2, 3}).value();
  auto y = to_device(b, x).value();  // a copy there
  copy_across(y, x);                 // to one that is there; waits for x
  // end
  // example: collectives
  const Communicator group = Communicator::init({a, b}).value();  // ranks 0 and 1
  auto x_sum = Buffer<f32>::uninitialised(a, 3).value(), y_sum = Buffer<f32>::uninitialised(b, 3).value();
  group.all_reduce(x, x_sum, Reduction::Sum);
  group.all_reduce(y, y_sum, Reduction::Sum);  // all have called: it is done
  group.sync(a);                               // what a thread that calls for one device does
  // end
  CHECK(x_sum.read().value() == std::vector<f32>{2, 4, 6});
  CHECK(y_sum.read().value() == std::vector<f32>{2, 4, 6});
}
