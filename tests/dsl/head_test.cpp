// Heads: what they declare, and that they come first.
#include "recording.h"

using namespace kiln;
using recording::refused;

TEST_CASE("heads declare the block, the options, aliases and requirements") {
  const ir::Kernel k = recording::of([](In<f32> a, InOut<f32, 2> b, Val<i32> c) {
    block_size(16, 8);
    options({.checked = false, .contraction = false, .fast_math = true});
    in_place(b, a);
    require(a.size() >= b.extent(1) * 2 && c > -3);
    require(c % 4 == 0, "the width must be a multiple of 4");
    b[0, 0] = a[0];
  });
  CHECK(k.block_size == std::array<std::uint32_t, 3>{16, 8, 1});
  CHECK(k.options == ir::Options{.checked = false, .contraction = false, .fast_math = true});
  REQUIRE(k.in_place.size() == 1);
  CHECK(k.in_place[0] == std::pair<std::uint32_t, std::uint32_t>(1, 0));
  REQUIRE(k.texts.size() == 2);
  CHECK(k.texts[0] == "(a.size() >= (b.extent(1) * 2)) && (c > -3)");
  CHECK(k.texts[1] == "the width must be a multiple of 4");
  CHECK(ir::to_string(ir::verify(k)) == "");
  CHECK(recording::of([](Out<f32> a) { max_threads(128); a[0] = 1; }).max_threads == 128);
}

TEST_CASE("the text of a condition has a bound, whatever its values are made of: parts that there is no room for are left out") {
  // Written out, each value would be twice as long as the one before it.
  const ir::Kernel k = recording::of([](Out<u32> a, Val<u32> n) {
    auto doubled = [](auto&& self, Val<u32> v, int times) -> Val<u32> { return times == 0 ? v : self(self, v + v, times - 1); };
    require(doubled(doubled, n, 24) != 7 && n > 2);
    a[0] = n;
  });
  REQUIRE(k.texts.size() == 1);
  CAPTURE(k.texts[0]);
  CHECK(k.texts[0].size() < 1000);
  CHECK(k.texts[0].find("...") != std::string::npos);
  CHECK(k.texts[0].ends_with(" != 7) && (b > 2)"));
  // What fits is whole, however deep it is.
  const ir::Kernel deep = recording::of([](Out<u32> a, Val<u32> n) {
    auto sum = [](auto&& self, Val<u32> v, u32 times) -> Val<u32> { return times == 0 ? v : self(self, v + times, times - 1); };
    require(sum(sum, n, 30) > 1);
    a[0] = n;
  });
  CHECK(deep.texts[0].find("...") == std::string::npos);
  CHECK(deep.texts[0].ends_with(" + 1) > 1"));
}

TEST_CASE("a head after the first ordinary operation is refused, and that operation is named with its line") {
  unsigned line = 0;
  const auto sentence = [&](const char* head, const char* first) {
    return std::string(head) + " belongs to the head of the body, before the first ordinary operation, which is " + first + " at " + __FILE__ + ":" + std::to_string(line);
  };
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32> a) { a[0] = 1; block_size(32); }, __LINE__) == sentence("block_size", "the store of 'a'"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32> a) { auto i = global_id().x; require(a.size() > 1); a[i] = 1; }, __LINE__) == sentence("require", "the global_id"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32> a) { Var<f32> v = 1; options({}); a[0] = v; }, __LINE__) == sentence("options", "a Var"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32> a) { If (a.size() > 1) { max_threads(32); } }, __LINE__) == sentence("max_threads", "the if"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32> a, In<f32> b) { barrier(); in_place(a, b); }, __LINE__) == sentence("in_place", "the barrier"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32>) { log("here"); max_threads(32); }, __LINE__) == sentence("max_threads", "the log"));
  line = __LINE__ + 1;
  CHECK(refused([](Out<f32>, In<f32> b) { require(b[0] > 1); }, __LINE__) == sentence("require", "the load of 'b'"));
  // The first of several, on another line; heads and what they are made of do not count.
  line = __LINE__ + 4;
  const auto later = [](Out<f32> a, In<f32> b) {
    require(a.size() > 1);
    Val<u32> n = b.size() * 2;
    a[0] = 1;
    a[1] = 2;
    require(n > 1);
  };
  CHECK(refused(later, line + 2) == sentence("require", "the store of 'a'"));
}

TEST_CASE("heads that contradict each other are refused") {
  HAS(refused([](Out<f32>) { block_size(32); block_size(32); }, __LINE__), "declared already");
  HAS(refused([](Out<f32>) { max_threads(32); block_size(32); }, __LINE__), "declared already");
  HAS(refused([](Out<f32>) { block_size(32, 0); }, __LINE__), "an axis of 0");
  HAS(refused([](Out<f32>) { max_threads(0); }, __LINE__), "at least one thread");
  HAS(refused([](Out<f32> a) { in_place(a, a); }, __LINE__), "one parameter twice");
}

TEST_CASE("a host condition that is false refuses the variant itself") {
  CHECK(refused([](Out<f32> a) { require(a.rank == 2, "two dimensions"); }, __LINE__) == "this variant is refused by its require: two dimensions");
}
