// Configs, spaces and families of variants.
#include "recording.h"

using namespace kiln;

namespace shapes {

struct Cfg {
  u32 tile = 16;
  i32 shift = -1;
  bool wide = false;
  f32 scale = 0.5f;
};
KILN_CONFIG(Cfg, tile, shift, wide, scale)

Space<Cfg> cfg_space() {
  return space<Cfg>()
      .axis("tile", &Cfg::tile, {8, 16, 32, 64})
      .axis("wide", &Cfg::wide, {true, false})
      .require("wide tiles are small", [](const Cfg& c) { return !c.wide || c.tile <= 16; })
      .launch([](const Cfg& c, const Extents& e) { return cover({e[0]}, {c.tile}); });
}

KILN_KERNEL(family, (const Cfg& cfg, Out<f32> y), cfg_space()) {
  for (u32 i = 0; i < cfg.tile; ++i) y[i] = cfg.scale;
}
KILN_KERNEL(free_family, (const Cfg& cfg, Out<f32> y)) { y[0] = static_cast<f32>(cfg.tile); }

struct Plain {
  u32 tile = 3;
  u32 unroll = 4;
};
KILN_KERNEL(named_by_space, (const Plain& cfg, Out<f32> y), space<Plain>().axis("tile", &Plain::tile, {1, 2}).axis("unroll", &Plain::unroll, {4})) {
  y[0] = static_cast<f32>(cfg.tile);
}
KILN_KERNEL(half_named, (const Plain& cfg, Out<f32> y), space<Plain>().axis("tile", &Plain::tile, {1, 2})) { y[0] = static_cast<f32>(cfg.tile); }
KILN_KERNEL(not_named, (const Plain& cfg, Out<f32> y)) { y[0] = static_cast<f32>(cfg.tile); }

}  // namespace shapes

TEST_CASE("a space lists the accepted configs, the default first, and says why it refuses the others") {
  const auto space = shapes::cfg_space();
  CHECK(space.configs().size() == 6);
  CHECK(space.text(space.configs().front()) == "tile=16,shift=-1,wide=false,scale=0.5");
  CHECK(space.text(space.defaults()) == "tile=16,shift=-1,wide=false,scale=0.5");
  const auto refused = space.refused();
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].reason == "the rule 'wide tiles are small' refuses tile=32,shift=-1,wide=true,scale=0.5");
  CHECK(space.launch_for({.tile = 32}, {100}) == LaunchConfig{.grid = {4}, .block = {32}, .shared_bytes = 0, .cluster = {1, 1, 1}});
}

TEST_CASE("variants are named and recorded by value, once") {
  const Variant& a = shapes::family.with({.tile = 8}).variant();
  CHECK(a.name() == "shapes::family@tile=8,shift=-1,wide=false,scale=0.5");
  CHECK(&shapes::family.with({.tile = 8}).variant() == &a);
  CHECK(&shapes::family.with({.tile = 16}).variant() != &a);
  CHECK(&shapes::family.unchecked().variant() == &shapes::family.with({}).variant());
  CHECK(shapes::family.record({.tile = 8})->ops.size() == 3 * 8);
  // The space names no value of `scale`: any is a variant.
  CHECK(shapes::family.with({.tile = 8, .scale = 0.1f}).variant().name() == "shapes::family@tile=8,shift=-1,wide=false,scale=0.1");
}

TEST_CASE("the registry takes configs as text and names what is wrong with one") {
  auto found = Registry::instance().find("shapes::family");
  REQUIRE(found.has_value());
  const KernelEntry& entry = **found;
  REQUIRE(entry.axes().size() == 4);
  CHECK(entry.axes()[0].name == "tile");
  CHECK(entry.axes()[0].values == std::vector<std::string>{"16", "8", "32", "64"});
  CHECK(entry.axes()[0].default_value == "16");
  CHECK(entry.axes()[3].values.empty());
  CHECK(entry.configs().size() == 6);
  CHECK((*entry.variant("tile=8"))->name() == "shapes::family@tile=8,shift=-1,wide=false,scale=0.5");
  CHECK((*entry.variant("tile=8")).get() == &shapes::family.with({.tile = 8}).variant());
  CHECK((*entry.variant("wide=true,shift=-7"))->name() == "shapes::family@tile=16,shift=-7,wide=true,scale=0.5");
  const std::pair<const char*, const char*> wrong[] = {
      {"depth=3", "unknown parameter 'depth'; the config has tile, shift, wide, scale"},
      {"tile", "parameter 'tile' has no value; write tile=16"},
      {"tile=8,tile=16", "parameter 'tile' is given twice"},
      {"tile=x", "'x' is no value of parameter 'tile'"},
      {"tile=", "'' is no value of parameter 'tile'"},
      {"tile=8 ", "'8 ' is no value of parameter 'tile'"},
      {"tile=4294967304", "'4294967304' is no value of parameter 'tile'"},
      {"tile=-8", "'-8' is no value of parameter 'tile'"},
      {"shift=2147483648", "'2147483648' is no value of parameter 'shift'"},
      {"wide=2", "'2' is no value of parameter 'wide'"},
      {"tile=12", "tile=12 is not in the space; it has 16, 8, 32, 64"},
      {"tile=64,wide=true", "the rule 'wide tiles are small' refuses tile=64,shift=-1,wide=true,scale=0.5"},
  };
  for (const auto& [config, message] : wrong) {
    auto variant = entry.variant(config);
    INFO(config);
    REQUIRE(!variant.has_value());
    CHECK(variant.error().data().message == message);
    CHECK(variant.error().kernel() == "shapes::family");
  }
}

TEST_CASE("a config outside the space is refused by record and by each launch, not run") {
  auto kernel = shapes::family.record({.tile = 12});
  REQUIRE(!kernel.has_value());
  CHECK(kernel.error().data().message == "tile=12 is not in the space; it has 16, 8, 32, 64");
  CHECK(!shapes::family.with({.tile = 12}).variant().prepared().has_value());
  // Its variant holds the signature, so that a launch can claim the outputs.
  CHECK(shapes::family.with({.tile = 12}).variant().recorded().params.size() == 1);
}

TEST_CASE("every member of a config must be named, or variants could not be told apart") {
  CHECK(shapes::free_family.with({.tile = 12345}).variant().name() == "shapes::free_family@tile=12345,shift=-1,wide=false,scale=0.5");
  CHECK(shapes::named_by_space.record().has_value());
  CHECK(shapes::named_by_space.unchecked().variant().name() == "shapes::named_by_space@tile=1,unroll=4");
  HAS(shapes::half_named.record().error().data().message, "shapes::Plain has 2 members, but 1 are named");
  HAS(shapes::not_named.record().error().data().message, "name every one with KILN_CONFIG(shapes::Plain, ...)");
  CHECK((*Registry::instance().find("shapes::half_named"))->configs().empty());
}
