// Registration: qualified names, parameters, look-up, duplicates.
#include "recording.h"

using namespace kiln;

KILN_KERNEL(outermost, (Out<f32> y)) { y[0] = 1; }

namespace outer {
namespace inner {
KILN_KERNEL(deep, (In<f32, 2> image, In<f32, 2, Strided> view, InOut<u32>, Val<i64> n, const Val<bool>& flag)) {
  (void)view;
  If (flag) { Return(); }
  require(image.size() > 0);
  (void)n;
}
namespace {
KILN_KERNEL(hidden, (Out<f32> y)) { y[0] = 1; }
}  // namespace
}  // namespace inner
KILN_KERNEL(shared_name, (Out<f32> y)) { y[0] = 1; }
}  // namespace outer
namespace other {
KILN_KERNEL(shared_name, (Out<f32> y)) { y[0] = 2; }
}  // namespace other

// Two kernels of one name: unnamed namespaces do not tell them apart.
namespace twice {
namespace one {
namespace {
KILN_KERNEL(same, (Out<f32> y)) { y[0] = 1; }
}  // namespace
}  // namespace one
}  // namespace twice
namespace twice::one {
const auto& first = same;
const unsigned first_line = __LINE__ - 6;
}  // namespace twice::one

TEST_CASE("kernels are registered by their qualified name, unnamed namespaces left out") {
  for (const char* name : {"outermost", "outer::inner::deep", "outer::inner::hidden", "outer::shared_name", "other::shared_name"}) {
    auto found = Registry::instance().find(name);
    REQUIRE_MESSAGE(found.has_value(), name);
    CHECK((*found)->name() == name);
    HAS((*found)->place(), "registry_test.cpp:");
  }
}

TEST_CASE("the last part of a name is enough where it is unique; else the candidates are named") {
  CHECK((*Registry::instance().find("deep"))->name() == "outer::inner::deep");
  auto ambiguous = Registry::instance().find("shared_name");
  REQUIRE(!ambiguous.has_value());
  HAS(ambiguous.error().data().message, "'shared_name' may be other::shared_name (");
  HAS(ambiguous.error().data().message, "outer::shared_name (");
}

TEST_CASE("an unknown name is answered with near ones") {
  auto unknown = Registry::instance().find("outermots");
  REQUIRE(!unknown.has_value());
  CHECK(unknown.error().data().message == "there is no kernel 'outermots'; did you mean outermost?");
  CHECK(Registry::instance().find("nothing_like_it_at_all").error().data().message == "there is no kernel 'nothing_like_it_at_all'");
}

TEST_CASE("parameters have their names and types from the signature") {
  const auto params = (*Registry::instance().find("outer::inner::deep"))->params();
  REQUIRE(params.size() == 5);
  const std::pair<const char*, const char*> expected[] = {
      {"image", "In<f32, 2>"}, {"view", "In<f32, 2, Strided>"}, {"p2", "InOut<u32>"}, {"n", "Val<i64>"}, {"flag", "Val<bool>"}};
  for (std::size_t i = 0; i < params.size(); ++i) {
    CHECK(params[i].name == expected[i].first);
    CHECK(params[i].type == expected[i].second);
  }
}

TEST_CASE("a kernel without a config refuses one") {
  auto variant = (*Registry::instance().find("outermost"))->variant("tile=3");
  REQUIRE(!variant.has_value());
  CHECK(variant.error().data().message == "the kernel has no config, but 'tile=3' was given");
  CHECK((*Registry::instance().find("outermost"))->configs() == std::vector<std::string>{""});
}

TEST_CASE("two kernels of one name are refused at first use, with both places") {
  auto find = [] { return Registry::instance().find("twice::one::same"); };
  REQUIRE(find().has_value());
  {
    const Kernel<NoConfig, Out<f32>> second(dsl::Definition{"twice::one::same", "(y)", std::source_location::current(), true}, [](Out<f32> y) { y[0] = 2; });
    auto both = find();
    REQUIRE(!both.has_value());
    const std::string message = both.error().data().message;
    HAS(message, "two kernels are named 'twice::one::same': at ");
    HAS(message, "registry_test.cpp:" + std::to_string(twice::one::first_line));
    HAS(message, " and ");
    auto variant = second.variant();
    REQUIRE(!variant.has_value());
    CHECK(variant.error().data().message == message);
  }
  CHECK(find().has_value());
}

TEST_CASE("a recording error is what variant() gives, with file and line") {
  const auto kernel = local_kernel("probe", [](Out<f32> y) { y[-1] = 1; });
  auto variant = kernel.variant();
  REQUIRE(!variant.has_value());
  CHECK(variant.error().code() == ErrorCode::CompileValidation);
  HAS(variant.error().text(), "registry_test.cpp:" + std::to_string(__LINE__ - 4));
  HAS(variant.error().text(), "the index -1 is negative");
}
