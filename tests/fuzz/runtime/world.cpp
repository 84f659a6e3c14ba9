#include "fuzz/runtime/world.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "fuzz/runtime/kernels.h"

namespace kiln::fuzz {
namespace {

// Numbers of operations that fail: no index, value or size that a good one has.
u32 new_number() {
  static std::atomic<u32> next{1u << 20};
  return next.fetch_add(1, std::memory_order_relaxed);
}
constexpr std::size_t kTrace = 400;

LaunchConfig grid(std::uint64_t n) { return for_num_elems(static_cast<u32>(n)); }

}  // namespace

std::string root_name(const Error& error) {
  const Error& root = error.root();
  if (root.data().bounds)
    return (root.code() == ErrorCode::CheckFailed ? "check " : "outside ") + std::to_string(root.data().bounds->index);
  if (root.rule() == "BufferSize") return "size " + std::to_string(root.data().requested.value_or(0));
  if (root.kernel().ends_with("never")) return "never";
  if (!root.rule().empty() && root.data().requested) return "refused " + std::to_string(*root.data().requested);
  return root.text();  // the driver's
}

World::World(const Client& client, std::vector<Stream> streams, const Options& options)
    : client_(client), streams_(std::move(streams)), options_(options), random_(options.seed) {}
World::~World() = default;

void World::note(std::string what) {
  ++counts_[what.substr(0, what.find(' '))];
  trace_.push_back(std::move(what));
  if (trace_.size() > kTrace) trace_.pop_front();
}

std::string World::trace() const {
  std::string text;
  for (const std::string& line : trace_) text += "  " + line + "\n";
  return text;
}

void World::wrong(const std::string& what) const {
  throw Wrong(options_.name + " (seed " + std::to_string(options_.seed) + "): " + what + "\nthe last operations:\n" + trace());
}

// --- choosing ---------------------------------------------------------------------------------------------------------------

Tracked* World::memory() { return memories_.empty() ? nullptr : memories_[below(memories_.size())].get(); }

Part World::part() {
  Tracked* of = memory();
  const std::uint64_t n = of->cells.size();
  if (chance(50)) return {of, 0, n};
  const std::uint64_t first = below(n);
  return {of, first, 1 + below(n - first)};
}

std::optional<Part> World::other_part(const Part& than, std::uint64_t count) {
  std::vector<Tracked*> fit;
  for (const auto& m : memories_)
    if (m.get() != than.of && m->cells.size() >= count) fit.push_back(m.get());
  if (fit.empty()) return std::nullopt;
  Tracked* of = fit[below(fit.size())];
  return Part{of, below(of->cells.size() - count + 1), count};
}

bool World::written(const Part& p) {
  for (std::uint64_t i = 0; i < p.count; ++i)
    if (!p.cell(i).known && p.cell(i).roots.empty()) return false;
  return true;
}

// --- the model ----------------------------------------------------------------------------------------------------------------

Roots World::roots_of(const Part& p) {
  Roots all;
  for (std::uint64_t i = 0; i < p.count; ++i) all.insert(p.cell(i).roots.begin(), p.cell(i).roots.end());
  return all;
}

Roots World::met_in(const Part& p) {
  Roots all;
  for (std::uint64_t i = 0; i < p.count; ++i) {
    const Cell& cell = p.cell(i);
    all.insert(cell.roots.begin(), cell.roots.end());
    all.insert(cell.older.begin(), cell.older.end());
  }
  return all;
}

void World::claim(const Part& p, const Roots& roots) {
  for (std::uint64_t i = 0; i < p.count; ++i) p.cell(i) = {false, 0, roots, {}};
}

void World::claim_late(const Part& p, const Roots& roots) {
  for (std::uint64_t i = 0; i < p.count; ++i) {
    Cell& cell = p.cell(i);
    Roots older = std::move(cell.older);
    older.merge(cell.roots);
    cell = {false, 0, roots, std::move(older)};
  }
}

bool World::went(const Result<void>& result, const std::vector<Part>& covers, const std::vector<Part>& others, const Roots& skipped_by) {
  if (!skipped_by.empty()) {
    // A failure that is not known yet lets the launch out.
    if (!result.has_value() && result.error().code() != ErrorCode::Skipped && !options_.driver_faults)
      wrong("a launch with claimed inputs gave: " + result.error().text());
    for (const Part& w : covers) claim(w, skipped_by);
    for (const Part& w : others) claim_late(w, skipped_by);
    return false;
  }
  if (result.has_value()) return true;
  if (!options_.driver_faults) wrong("a good operation gave: " + result.error().text());
  for (const Part& w : covers) claim(w, {root_name(result.error())});
  for (const Part& w : others) claim(w, {root_name(result.error())});
  return false;
}

// --- operations -----------------------------------------------------------------------------------------------------------------

void World::allocate() {
  if (memories_.size() >= options_.memories) return release();
  const std::uint64_t n = 1 + below(options_.elements);
  const std::uint64_t how = below(3);
  std::vector<u32> host(how == 0 ? n : 0);
  for (u32& v : host) v = static_cast<u32>(random_());
  auto made = how == 0   ? Buffer<u32>::from_host(client_, host)
              : how == 1 ? Buffer<u32>::zeroed(client_, n)
                         : Buffer<u32>::uninitialised(client_, n);
  note("allocate " + std::to_string(n));
  if (!made.has_value()) {
    if (!options_.driver_faults) wrong("an allocation gave: " + made.error().text());
    return;
  }
  auto tracked = std::make_unique<Tracked>(Tracked{std::move(*made), std::vector<Cell>(n), next_name_++});
  for (std::uint64_t i = 0; i < n; ++i) tracked->cells[i] = {how != 2, how == 0 ? host[i] : 0, {}, {}};
  memories_.push_back(std::move(tracked));
}

void World::release() {
  if (memories_.empty()) return;
  const std::uint64_t which = below(memories_.size());
  note("free " + std::to_string(memories_[which]->name));
  memories_.erase(memories_.begin() + static_cast<std::ptrdiff_t>(which));
}

void World::launch_good() {
  Part y = part();
  const u32 v = static_cast<u32>(random_());
  const Stream& s = stream();
  const std::string where = std::to_string(y.of->name) + "[" + std::to_string(y.first) + ", +" + std::to_string(y.count) + "]";
  switch (below(5)) {
    case 0: {
      note("set_all " + where);
      if (went(set_all(s, grid(y.count), y.view, v), {y}, {}, {}))
        for (u32 i = 0; i < y.count; ++i) set(y, i, v + i);
      return;
    }
    case 1: {
      auto x = other_part(y, y.count);
      if (!x || !written(*x)) return;
      note("plus " + where + " from " + std::to_string(x->of->name) + " at " + std::to_string(x->first));
      const bool nothing = chance(5);  // a grid of 0: old claims survive
      if (nothing) {
        if (const auto r = plus(s, {{0}, {32}}, x->view, y.view, v); !r.has_value()) wrong("a grid of 0 gave: " + r.error().text());
        return;
      }
      if (went(plus(s, grid(y.count), x->view, y.view, v), {y}, {}, met_in(*x)))
        for (u32 i = 0; i < y.count; ++i) set(y, i, x->cell(i).value + v);
      return;
    }
    case 2: {
      auto x = other_part(y, y.count);
      if (!x || !written(*x) || !written(y)) return;
      note("accumulate " + where + " from " + std::to_string(x->of->name) + " at " + std::to_string(x->first));
      Roots skipped = met_in(*x);
      skipped.merge(met_in(y));
      if (went(accumulate(s, grid(y.count), x->view, y.view), {}, {y}, skipped))
        for (u32 i = 0; i < y.count; ++i) set(y, i, y.cell(i).value * 3 + x->cell(i).value);
      return;
    }
    case 3: {
      if (!written(y)) return;
      const u32 most = static_cast<u32>(below(y.count + 1));
      note("some " + where + " to " + std::to_string(most));
      // Nothing is read, so nothing is skipped; and a claim does not end, since the launch is not known to write all.
      if (went(some(s, grid(y.count), y.view, most, v), {}, {y}, {}))
        for (u32 i = 0; i < most; ++i)
          if (y.cell(i).roots.empty()) set(y, i, v ^ i);
      return;
    }
    default: {
      auto a = other_part(y, y.count), b = other_part(y, y.count), z = other_part(y, y.count);
      if (!a || !b || !z || z->of == a->of || z->of == b->of || !written(*a) || !written(*b) || !written(*z)) return;
      note("mix " + where + " from " + std::to_string(a->of->name) + " and " + std::to_string(b->of->name) + ", counts in " +
           std::to_string(z->of->name));
      Roots skipped = met_in(*a);
      skipped.merge(met_in(*b));
      skipped.merge(met_in(*z));
      if (went(mix(s, grid(y.count), a->view, b->view, y.view, z->view), {y}, {*z}, skipped)) {
        for (u32 i = 0; i < y.count; ++i) {
          set(y, i, a->cell(i).value + 2 * b->cell(i).value);
          set(*z, i, z->cell(i).value + 1);
        }
      }
    }
  }
}

void World::launch_bad() {
  Part y = part();
  auto x = other_part(y, y.count);
  const u32 number = new_number();
  const Stream& s = stream();
  const std::string where =
      std::to_string(y.of->name) + "[" + std::to_string(y.first) + ", +" + std::to_string(y.count) + "], number " + std::to_string(number);
  switch (below(5)) {
    case 0:
      if (!x || !written(*x)) return;
      note("outside " + where + " from " + std::to_string(x->of->name) + " at " + std::to_string(x->first));
      if (went(outside(s, grid(y.count), x->view, y.view, number), {y}, {}, met_in(*x))) claim(y, {"outside " + std::to_string(number)});
      return;
    case 1:
      if (!written(y)) return;
      note("stores_outside " + where);
      if (went(stores_outside(s, {{1}, {32}}, y.view, number), {}, {y}, {})) claim_late(y, {"outside " + std::to_string(number)});
      return;
    case 2:
      if (!x || !written(*x)) return;
      note("checked " + where + " from " + std::to_string(x->of->name) + " at " + std::to_string(x->first));
      if (went(checked(s, grid(y.count), x->view, y.view, number), {y}, {}, met_in(*x))) claim(y, {"check " + std::to_string(number)});
      return;
    case 3: {  // its inputs do not matter: it cannot run
      auto z = other_part(y, y.count);
      if (!x || !z || z->of == x->of) return;
      note("never " + where);
      if (never(s, grid(y.count), x->view, y.view, z->view).has_value()) wrong("a kernel that cannot be recorded was launched");
      claim(y, {"never"});
      claim(*z, {"never"});
      return;
    }
    default:  // refused: the Out is claimed, an InOut keeps what it has
      note("refused " + where);
      if (set_all(s, {{1}, {number}}, y.view, 1).has_value()) wrong("a launch with a block of " + std::to_string(number) + " went out");
      claim(y, {"refused " + std::to_string(number)});
      if (stores_outside(s, {{1}, {number}}, y.view, 1).has_value())
        wrong("a launch with a block of " + std::to_string(number) + " went out");
  }
}

void World::copy() {
  Part y = part();
  auto x = other_part(y, y.count);
  if (!x || !written(*x)) return;
  note("copy " + std::to_string(y.of->name) + "[" + std::to_string(y.first) + ", +" + std::to_string(y.count) + "] from " +
       std::to_string(x->of->name) + " at " + std::to_string(x->first));
  if (went(rt::copy(stream(), y.view.binding(), x->view.binding()), {y}, {}, met_in(*x)))
    for (std::uint64_t i = 0; i < y.count; ++i) set(y, i, x->cell(i).value);
}

void World::host_write() {
  Part y = part();
  std::vector<u32> host(y.count);
  for (u32& v : host) v = static_cast<u32>(random_());
  Buffer<u32> view = y.view;
  if (chance(10)) {
    host.resize(new_number() % 4096 + y.count + 1);
    note("write_wrong " + std::to_string(y.of->name));
    if (view.write(stream(), host).has_value()) wrong("a write of too many elements went through");
    return claim(y, {"size " + std::to_string(host.size())});
  }
  note("write " + std::to_string(y.of->name) + "[" + std::to_string(y.first) + ", +" + std::to_string(y.count) + "]");
  if (went(view.write(stream(), host), {y}, {}, {}))
    for (std::uint64_t i = 0; i < y.count; ++i) set(y, i, host[i]);
}

void World::fill() {
  Part y = part();
  note("fill " + std::to_string(y.of->name) + "[" + std::to_string(y.first) + ", +" + std::to_string(y.count) + "]");
  if (went(rt::fill_zero(stream(), y.view.binding()), {y}, {}, {}))
    for (std::uint64_t i = 0; i < y.count; ++i) set(y, i, 0);
}

void World::read_all(const Part& p, const Result<std::vector<u32>>& got, const char* what) {
  Roots wanted = roots_of(p), certain;
  for (std::uint64_t i = 0; i < p.count; ++i)
    if (p.cell(i).roots.size() == 1) certain.insert(*p.cell(i).roots.begin());
  const std::string where =
      std::string(what) + " of " + std::to_string(p.of->name) + "[" + std::to_string(p.first) + ", +" + std::to_string(p.count) + "]";
  if (got.has_value()) {
    if (!wanted.empty()) wrong(where + " gave data where " + *wanted.begin() + " lies");
    for (std::uint64_t i = 0; i < p.count; ++i)
      if (p.cell(i).known && (*got)[i] != p.cell(i).value)
        wrong(where + ": element " + std::to_string(i) + " is " + std::to_string((*got)[i]) + ", not " + std::to_string(p.cell(i).value));
    return;
  }
  if (options_.driver_faults && got.error().code() != ErrorCode::Several) return;  // the read itself
  Roots found;
  bool one_each = true;
  for (const Error& cause : got.error().causes()) {
    const std::string root = root_name(cause);
    one_each = (found.insert(root).second || root == "never") && one_each;  // each launch of it is a failure, and they look the same
  }
  if (got.error().code() != ErrorCode::Several || !one_each || found.empty() || !std::ranges::includes(wanted, found) ||
      !std::ranges::includes(found, certain)) {
    std::string text = where + " says " + got.error().text() + "\nand the model has:";
    for (const std::string& w : wanted) text += " " + w + ";";
    wrong(text);
  }
}

void World::read() {
  const Part p = part();
  if (!written(p)) return;
  note("read " + std::to_string(p.of->name) + "[" + std::to_string(p.first) + ", +" + std::to_string(p.count) + "]");
  read_all(p, p.view.read(stream()), "a read");
}

// A check may miss what is not confirmed, and invents nothing.
void World::check() {
  const Part p = part();
  note("check " + std::to_string(p.of->name));
  const auto result = client_.check(p.view);
  if (result.has_value()) return;
  if (roots_of(p).empty()) wrong("a check found a failure where there is none: " + result.error().text());
}

void World::sync() {
  switch (below(3)) {
    case 0: {
      note("sync_stream");
      if (const auto r = stream().sync(); !r.has_value() && !options_.driver_faults) wrong("a stream's sync gave: " + r.error().text());
      return;
    }
    case 1: {
      note("sync_all");
      if (const auto r = client_.sync(); !r.has_value() && !options_.driver_faults) wrong("a client's sync gave: " + r.error().text());
      return;
    }
    default: {
      const Part p = part();
      note("sync " + std::to_string(p.of->name));
      const auto result = client_.sync(p.view);
      if (result.has_value() != roots_of(p).empty() && !options_.driver_faults)
        wrong("a sync of " + std::to_string(p.of->name) + " gave " + (result.has_value() ? "success" : result.error().text()) +
              "\nand the model has " + std::to_string(roots_of(p).size()) + " failures there");
    }
  }
}

void World::step() {
  const std::uint64_t what = below(100);
  if (what < 10 || memories_.size() < 3) return allocate();
  if (what < 50) return launch_good();
  if (what < 64) return launch_bad();
  if (what < 72) return copy();
  if (what < 82) return host_write();
  if (what < 86) return fill();
  if (what < 93) return read();
  if (what < 96) return check();
  if (what < 99) return sync();
  release();
}

void World::finish() {
  for (const auto& m : memories_) {
    const Part p{m.get(), 0, m->cells.size()};
    if (written(p)) read_all(p, m->buffer.read(), "the last read");
  }
  memories_.clear();
}

}  // namespace kiln::fuzz
