// Launches: good ones and each way of failing.
#include "fuzz/runtime/kernels.h"
#include "fuzz/runtime/world_parts.h"

namespace kiln::fuzz {
namespace {

LaunchConfig grid(std::uint64_t n) { return for_num_elems(static_cast<u32>(n)); }

}  // namespace

void World::launch_good() {
  const Part y = part();
  const u32 v = static_cast<u32>(random_());
  const Stream s = stream();
  const std::string on = " on " + std::to_string(s.id());
  Buffer<u32> out = y.view();
  switch (below(5)) {
    case 0: {
      note("set_all " + y.text() + on, {y});
      return did(s,
                 Action{{y},
                        {},
                        {},
                        [=] {
                          for (u32 i = 0; i < y.count; ++i) y.set(i, v + i);
                        }},
                 set_all(s, grid(y.count), out, v));
    }
    case 1: {
      const auto found = other_part(y, y.count);
      if (!found || !written(*found)) return;
      const Part x = *found;
      note("plus " + y.text() + " from " + x.text() + on, {y}, {x});
      if (chance(5)) {  // a grid of 0: old claims survive, and nothing is recorded
        if (const auto r = plus(s, {{0}, {32}}, x.view(), out, v); !r.has_value() && !excused(r.error()))
          wrong("a grid of 0 gave: " + r.error().text());
        return;
      }
      return did(s,
                 Action{{y},
                        {},
                        {x},
                        [=] {
                          for (u32 i = 0; i < y.count; ++i) y.set(i, x.cell(i).value + v);
                        }},
                 plus(s, grid(y.count), x.view(), out, v));
    }
    case 2: {
      const auto found = other_part(y, y.count);
      if (!found || !written(*found) || !written(y)) return;
      const Part x = *found;
      note("accumulate " + y.text() + " from " + x.text() + on, {y}, {x});
      return did(s,
                 Action{{},
                        {y},
                        {x, y},
                        [=] {
                          for (u32 i = 0; i < y.count; ++i) y.set(i, y.cell(i).value * 3 + x.cell(i).value);
                        }},
                 accumulate(s, grid(y.count), x.view(), out));
    }
    case 3: {
      if (!written(y)) return;
      const u32 most = static_cast<u32>(below(y.count + 1));
      note("some " + y.text() + " to " + std::to_string(most) + on, {y});
      // Nothing is read, so nothing is skipped; and a claim does not end, since the launch is not known to write all.
      return did(s,
                 Action{{},
                        {y},
                        {},
                        [=] {
                          for (u32 i = 0; i < most; ++i)
                            if (y.cell(i).roots.empty()) y.set(i, v ^ i);
                        }},
                 some(s, grid(y.count), out, most, v));
    }
    default: {
      const auto fa = other_part(y, y.count), fb = other_part(y, y.count), fz = other_part(y, y.count);
      if (!fa || !fb || !fz || fz->of == fa->of || fz->of == fb->of || !written(*fa) || !written(*fb) || !written(*fz)) return;
      const Part a = *fa, b = *fb, z = *fz;
      Buffer<u32> counts = z.view();
      note("mix " + y.text() + " from " + a.text() + " and " + b.text() + ", counts in " + z.text() + on, {y, z}, {a, b});
      return did(s,
                 Action{{y},
                        {{z.of, z.first, y.count}},
                        {{a.of, a.first, y.count}, {b.of, b.first, y.count}, {z.of, z.first, y.count}},
                        [=] {
                          for (u32 i = 0; i < y.count; ++i) {
                            y.set(i, a.cell(i).value + 2 * b.cell(i).value);
                            z.set(i, z.cell(i).value + 1);
                          }
                        }},
                 mix(s, grid(y.count), a.view(), b.view(), out, counts));
    }
  }
}

void World::launch_bad() {
  const Part y = part();
  const auto found = other_part(y, y.count);
  const u32 number = new_number();
  const Stream s = stream();
  const std::string where = y.text() + ", number " + std::to_string(number) + " on " + std::to_string(s.id());
  const auto nothing = [] {};
  Buffer<u32> out = y.view();
  switch (below(5)) {
    case 0:
      if (!found || !written(*found)) return;
      note("outside " + where + " from " + found->text(), {y}, {*found});
      return did(s, Action{{y}, {}, {*found}, nothing, "outside " + std::to_string(number)},
                 outside(s, grid(y.count), found->view(), out, number));
    case 1:
      if (!written(y)) return;
      note("stores_outside " + where, {y});
      return did(s, Action{{}, {y}, {}, nothing, "outside " + std::to_string(number)}, stores_outside(s, {{1}, {32}}, out, number));
    case 2:
      if (!found || !written(*found)) return;
      note("checked " + where + " from " + found->text(), {y}, {*found});
      return did(s, Action{{y}, {}, {*found}, nothing, "check " + std::to_string(number)},
                 checked(s, grid(y.count), found->view(), out, number));
    case 3: {  // its inputs do not matter: it cannot run
      const auto z = other_part(y, y.count);
      if (!found || !z || z->of == found->of) return;
      Buffer<u32> second = z->view();
      note("never " + where + " and " + z->text(), {y, *z}, {*found});
      return refused(s, {y, *z}, "never", never(s, grid(y.count), found->view(), out, second), "a kernel that cannot be recorded");
    }
    default:  // the Out is claimed, an InOut keeps what it has
      note("refused " + where, {y});
      refused(s, {y}, "refused " + std::to_string(number), set_all(s, {{1}, {number}}, out, 1), "a block that is too large");
      return refused(s, {}, "refused " + std::to_string(number), stores_outside(s, {{1}, {number}}, out, 1), "a block that is too large");
  }
}

// The device is lost with this. What is not known by then may still be read.
void World::trap() {
  if (memories_.empty()) allocate();
  if (memories_.empty()) return;
  const Part y = part();
  const Stream s = streams_[below(streams_.size() - 1)];  // not in a graph
  note("trap " + y.text() + " on " + std::to_string(s.id()), {y});
  Buffer<u32> out = y.view();
  if (const auto r = traps(s, {{1}, {32}}, out, new_number()); !r.has_value()) hear(r.error());
}

}  // namespace kiln::fuzz
