// What the random programs know of each element: its value, or the failures that may lie on it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::fuzz {

// Failures by the names of their roots.
using Roots = std::set<std::string>;

// What tells the root of a failure from all others: each operation that is made to fail has a number of its own. What a driver or a lost
// device answers has none.
std::string root_name(const Error& error);
bool is_injected(const std::string& root);  // a driver's or a lost device's
// The roots of a read or a check that was refused.
Roots roots_named(const Error& error);
bool all_injected(const Roots& roots);

// An element as the model knows it.
struct Cell {
  bool known = true;  // else nobody wrote it yet, or it is claimed
  u32 value = 0;
  // The failure that lies on it; empty: none. Several where it is open which one: a launch that is skipped passes on one of those that its
  // inputs carry, the first of those that are known by then.
  Roots roots;
  // What lay on it before a failure that may not be known yet, of an operation that ends no claims: an operation behind it may still be
  // skipped for that.
  Roots older;
};

// One memory with the model of its elements, and a name for the trace.
struct Tracked {
  std::optional<Buffer<u32>> buffer;  // none: it was freed, and graphs have it, or it is a picture of how it was
  std::vector<Cell> cells;
  unsigned name = 0;
};
using TrackedPtr = std::shared_ptr<Tracked>;

// Elements of a memory, `count` from `first` on, each `step` behind the one before.
struct Part {
  TrackedPtr of;
  std::uint64_t first = 0, count = 0, step = 1;

  Cell& cell(std::uint64_t i) const { return of->cells[first + i * step]; }
  Buffer<u32> view() const { return of->buffer->slice(first, count); }  // dense ones
  StridedView<u32, 1> strided() const { return StridedView<u32, 1>(*of->buffer).range(0, first, count, step); }
  void set(std::uint64_t i, u32 value) const { cell(i) = {true, value, {}, {}}; }
  std::string text() const;
};
bool written(const Part& p);    // every element is known or carries a failure
Roots roots_of(const Part& p);  // that a read says
Roots older_of(const Part& p);  // that lay there before failures that may not be known yet
Part picture(const Part& p);    // as it is now, of no memory

// An operation as the model knows it.
struct Action {
  std::vector<Part> covers;      // what it overwrites whole
  std::vector<Part> writes;      // what else it writes
  std::vector<Part> reads;       // what it reads, of `writes` too
  std::function<void()> values;  // what it leaves where it goes well
  std::string fails = {};        // the root of the failure that shows when it runs; empty: it goes well
};
using Actions = std::vector<Action>;

// The failures for which operations that are one, a replay, may be skipped. `before`: what was recorded before them and trusted.
Roots met_in(std::span<const Action> actions, std::span<const Action> before = {});
// Whether all that they read before they overwrite it, and all that they write in part, was written.
bool may_run(std::span<const Action> actions);
// They were enqueued, as one.
void run(std::span<const Action> actions);
// They were not, which was known at once: all that they were to write carries one of these.
void claim_all(std::span<const Action> actions, const Roots& roots);
void claim(const Part& p, const Roots& roots);

}  // namespace kiln::fuzz
