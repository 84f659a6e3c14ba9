// Memories: subscripts of every rank and index type, atomics, shared and local arrays, extents, ids, block and warp operations.
#include "recording.h"

using namespace kiln;
using recording::count;
using recording::refused;
using recording::text;
using recording::verified;

TEST_CASE("subscripts take any integer type, and kernel and host values mixed") {
  const std::string s = text([](In<f32, 2> a, Out<f32, 3> b, InOut<f32, 4> c, Val<i64> n) {
    Var<u32> i = 1;
    b[0, i, n] = a[n, i] + a(2, n);
    b(i, i, 4294967296) = 1;
    c[0, 1, 2, i] = c(3, n, n, 4);
  });
  HAS(s, "const 4294967296 : u64");
  CHECK(count(s, "load a[") == 2);
  CHECK(count(s, "store b[") == 2);
  CHECK(count(s, "load c[") == 1);
  CHECK(verified([](In<f32, 2> a, Out<f32, 3> b, InOut<i32> c, Val<i64> n) {
    Shared<u64> places(4);
    places[0] = cast<u64>(n);
    b[c[0], places[0], n] = a[cast<i32>(n), lane_id()];
  }) == "");
}

TEST_CASE("size and extents come in 32 and 64 bit") {
  const std::string s = text([](In<f32, 2> a, Out<u64> b) {
    b[0] = a.size64() + a.extent64(1);
    b[1] = cast<u64>(a.size()) + cast<u64>(a.extent(0));
  });
  for (const char* op : {"size a : u64", "extent a.1 : u64", "size a : u32", "extent a.0 : u32"}) HAS(s, op);
  HAS(refused([](In<f32, 2> a, Out<u32> b) { b[0] = a.extent(2); }, __LINE__), "extent(2) of a buffer of rank 2");
}

TEST_CASE("every atomic records on buffers and shared memory, and gives the old value") {
  const std::string s = text([](InOut<u32> a, InOut<f32, 2> b, Val<u32> n) {
    Shared<i64> l(4);
    Val<u32> old = a.atomic_add(n, 1);
    a.atomic_sub(n, old); a.atomic_min(n, 3); a.atomic_max(n, n); a.atomic_and(0, 1); a.atomic_or(0, 1); a.atomic_xor(0, 1);
    a.atomic_exchange(0, 5);
    a[0] = a.atomic_cas(0, 1, old);
    b.atomic_add(n, 2, 0.5);
    b.atomic_min(0, n, 1);
    l.atomic_add(n % 4, -1);
    l.atomic_cas(0, -1, 1);
  });
  for (const char* op : {"atomic_add a", "atomic_sub a", "atomic_min a", "atomic_max a", "atomic_and a", "atomic_or a", "atomic_xor a", "atomic_exchange a",
                         "atomic_cas a", "atomic_add b", "atomic_min b", "atomic_add m2", "atomic_cas m2"}) {
    HAS(s, op);
  }
}

TEST_CASE("shared, dynamic shared and local arrays declare themselves with their extents") {
  const ir::Kernel k = recording::of([](Out<f32> a) {
    Shared<f32, 2> tile(8, 9u);
    DynamicShared<u32> rest;
    Local<f64, 5> mine;
    auto t = thread_id();
    tile[t.y, t.x] = 1;
    rest[t.x] = 2;
    mine[t.x % 5] = 3;
    barrier();
    a[t.x] = tile[t.x, t.y] + cast<f32>(rest[rest.size() - 1]) + cast<f32>(mine[0]);
    CHECK(tile.size() == 72);
    CHECK(tile.extent(1) == 9);
    CHECK(mine.size() == 5);
  });
  CHECK(ir::to_string(ir::verify(k)) == "");
  REQUIRE(k.mems.size() == 4);
  CHECK(k.mems[1].space == ir::Space::Shared);
  CHECK(k.mems[1].extents[0] == 8);
  CHECK(k.mems[1].extents[1] == 9);
  CHECK(k.mems[2].dynamic);
  CHECK(k.mems[3].space == ir::Space::Local);
  CHECK(k.mems[3].extents[0] == 5);
  // In errors they are called what was written, since nobody knows the variable.
  CHECK(k.mems[1].name == "Shared<f32, 2>(8, 9)");
  CHECK(k.mems[2].name == "DynamicShared<u32>");
  CHECK(k.mems[3].name == "Local<f64, 5>");
}

TEST_CASE("memory of a block beyond every device is told with its declaration, its size and its line") {
  const unsigned line = __LINE__ + 1;
  const std::string s = verified([](Out<f32> a) { Shared<f32> tile(60000); tile[0] = 1; a[0] = tile[0]; });
  HAS(s, "memory_test.cpp:" + std::to_string(line) + ": ");
  HAS(s, "shared memory 'Shared<f32>(60000)' takes 240000 bytes; at most 232448 are possible, in dynamic shared memory (DynamicShared), and 49152 in arrays of a fixed size");
  HAS(verified([](Out<f32> a) { Shared<f64> first(20000); Shared<f64> tile(20000); first[0] = 1; tile[0] = 1; a[0] = cast<f32>(tile[0] + first[0]); }),
      "'Shared<f64>(20000)', of 160000 bytes, brings the total to 320000 bytes; at most 232448 are possible");
}

TEST_CASE("an extent of shared memory that is not above 0, and a second dynamic one, are refused") {
  CHECK(refused([](Out<f32>) { Shared<f32> s(0); }, __LINE__) == "an extent of Shared is 0; it must be above 0");
  CHECK(refused([](Out<f32>) { Shared<f32, 2> s(4, -2); }, __LINE__) == "an extent of Shared is -2; it must be above 0");
  HAS(refused([](Out<f32>) { DynamicShared<f32> s; DynamicShared<u32> t; }, __LINE__), "a kernel has one DynamicShared; the other is at ");
}

TEST_CASE("strided parameters are declared so") {
  const ir::Kernel k = recording::of([](In<f32, 2, Strided> a, InOut<f32> b) { b[0] = a[1, 2]; });
  CHECK(k.mems[0].strided);
  CHECK(!k.mems[1].strided);
}

TEST_CASE("ids and dimensions, block and warp operations record") {
  const std::string s = text([](InOut<u32> a) {
    auto [x, y, z] = global_id();
    auto w = global_id64().y;
    Val<u32> v = a[x] + y * z + cast<u32>(w) + block_id().y + block_dim().z + grid_dim().x + lane_id() + warp_id();
    auto c = v > 3;
    a[0] = barrier_count(c) + cast<u32>(barrier_any(c)) + cast<u32>(barrier_all(c)) + block_uniform(v);
    a[1] = warp::shfl_idx(v, 3) + warp::shfl_up(v, 1) + warp::shfl_down(v, y) + warp::shfl_xor(v, 16);
    a[2] = warp::ballot(c) + cast<u32>(warp::any(c)) + cast<u32>(warp::all(c)) + cast<u32>(warp::elect());
    a[3] = warp::sum(v) + warp::product(v) + warp::min(v) + warp::max(v) + warp::and_(v) + warp::or_(v) + warp::xor_(v);
    a[4] = warp::inclusive_sum(v) + warp::exclusive_sum(v) + warp::inclusive_max(v) + warp::exclusive_xor_(v) + cast<u32>(warp::or_(c));
    warp::sync();
    barrier();
  });
  for (const char* op : {"global_id.x : u32", "global_id.y : u64", "block_id.y", "block_dim.z", "grid_dim.x", "lane_id", "warp_id", "barrier_count", "barrier_any",
                         "barrier_all", "block_uniform", "shuffle_idx", "shuffle_up", "shuffle_down", "shuffle_xor", "ballot", "vote_any", "vote_all",
                         "warp_reduce.add", "warp_scan.add", "warp_scan_exclusive.xor", "warp_sync", "barrier\n"}) {
    HAS(s, op);
  }
  CHECK(verified([](InOut<u32> a) {
    Val<u32> v = a[lane_id()];
    a[4] = warp::inclusive_sum(v) + warp::exclusive_sum(v) + barrier_count(v > 1) + cast<u32>(warp::elect());
  }) == "");
}

TEST_CASE("every operation carries the line it was written on") {
  const unsigned line = __LINE__ + 2;
  const ir::Kernel k = recording::of([](In<f32> a, InOut<f32> b, Val<u32> n) {
    Val<f32> v = a[n];
    Var<f32> w = 1;
    w += v;

    If (n > 3) {
      b[n] = w * 2 +
             sqrt(v);
      w = 5;
    }
    barrier();
  });
  const auto lines_of = [&](ir::Opcode code) {
    std::vector<unsigned> lines;
    for (const ir::Op& op : k.ops) {
      if (op.code == code) lines.push_back(op.loc.line - line);
    }
    return lines;
  };
  CHECK(lines_of(ir::Opcode::Load) == std::vector<unsigned>{0});
  CHECK(lines_of(*ir::parse_opcode("if")) == std::vector<unsigned>{4});
  CHECK(lines_of(ir::Opcode::Sqrt) == std::vector<unsigned>{6});
  CHECK(lines_of(ir::Opcode::Store) == std::vector<unsigned>{5});
  CHECK(lines_of(ir::Opcode::Barrier) == std::vector<unsigned>{9});
  std::vector<unsigned> sets = lines_of(ir::Opcode::Set);
  CHECK(std::count(sets.begin(), sets.end(), 1) == 1);
  CHECK(std::count(sets.begin(), sets.end(), 2) == 1);
  CHECK(std::count(sets.begin(), sets.end(), 7) == 1);
  for (const ir::Op& op : k.ops) {
    if (op.code == ir::Opcode::Param) continue;  // carries the kernel's place
    CHECK(ir::to_string(k, op.loc).find("memory_test.cpp:") != std::string::npos);
  }
}
