#include "fuzz/runtime/world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fuzz/runtime/world_parts.h"

namespace kiln::fuzz {
namespace {

constexpr std::size_t kTrace = 2000, kTold = 80;

std::set<unsigned> names(const std::vector<Part>& parts) {
  std::set<unsigned> all;
  for (const Part& p : parts) all.insert(p.of->name);
  return all;
}

}  // namespace

u32 new_number() {
  static std::atomic<u32> next{1u << 20};
  return next.fetch_add(1, std::memory_order_relaxed);
}

World::World(const Client& client, std::vector<Stream> streams, const Stream& own, Together& together, const Options& options)
    : client_(client),
      streams_(std::move(streams)),
      own_(own),
      together_(together),
      options_(options),
      random_(options.seed),
      calls_(std::make_shared<Calls>()) {
  streams_.push_back(own_);
}

World::~World() {
  if (recorded_) together_.captures.fetch_sub(1);
}

// --- the report -------------------------------------------------------------------------------------------------------------------

void World::note(std::string what, const std::vector<Part>& writes, const std::vector<Part>& reads) {
  Entry entry{std::move(what), names(writes), names(reads)};
  ++counts_[entry.text.substr(0, entry.text.find(' '))];
  entry.touches.insert(entry.writes.begin(), entry.writes.end());
  entry.text = std::to_string(++noted_) + ": " + entry.text;
  const std::lock_guard lock(trace_mutex_);
  trace_.push_back(std::move(entry));
  if (trace_.size() > kTrace) trace_.pop_front();
}

void World::note(std::string what, const Actions& actions) {
  std::vector<Part> writes, reads;
  for (const Action& a : actions) {
    writes.insert(writes.end(), a.covers.begin(), a.covers.end());
    writes.insert(writes.end(), a.writes.begin(), a.writes.end());
    reads.insert(reads.end(), a.reads.begin(), a.reads.end());
  }
  note(std::move(what), writes, reads);
}

std::string World::trace(unsigned memory) const {
  const std::lock_guard lock(trace_mutex_);
  std::vector<const Entry*> told;
  std::set<unsigned> wanted;
  if (memory != 0) wanted.insert(memory);
  std::size_t back = 0;
  for (auto at = trace_.rbegin(); at != trace_.rend() && told.size() < kTold; ++at, ++back) {
    const bool writes = std::ranges::any_of(at->writes, [&](unsigned n) { return wanted.contains(n); });
    const bool touches = writes || std::ranges::any_of(at->touches, [&](unsigned n) { return wanted.contains(n); });
    const bool late = at->touches.empty() && back < kTold / 2;  // waits, frees, captures
    if (back != 0 && !touches && !late) continue;
    if (writes || (back == 0 && memory == 0)) wanted.insert(at->touches.begin(), at->touches.end());
    told.push_back(&*at);
  }
  std::string text;
  for (auto at = told.rbegin(); at != told.rend(); ++at) text += "  " + (*at)->text + "\n";
  return text;
}

void World::wrong(const std::string& what, unsigned memory) const {
  throw Wrong(options_.name + " (seed " + std::to_string(options_.seed) + "): " + what +
              "\nthe operation and those before it that had to do with its memory:\n" + trace(memory));
}

// --- choosing ---------------------------------------------------------------------------------------------------------------------

Stream World::stream() {
  if (in_call_) return client_.default_stream();
  if (recorded_ && chance(40)) return own_;
  return streams_[below(streams_.size())];
}

Part World::part() {
  const TrackedPtr& of = memories_[below(memories_.size())];
  const std::uint64_t n = of->cells.size();
  if (chance(50)) return {of, 0, n};
  const std::uint64_t first = below(n);
  return {of, first, 1 + below(n - first)};
}

std::optional<Part> World::other_part(const Part& than, std::uint64_t count) {
  std::vector<TrackedPtr> fit;
  for (const auto& m : memories_)
    if (m != than.of && m->cells.size() >= count) fit.push_back(m);
  if (fit.empty()) return std::nullopt;
  const TrackedPtr& of = fit[below(fit.size())];
  return Part{of, below(of->cells.size() - count + 1), count};
}

std::vector<u32> World::numbers(std::uint64_t n) {
  std::vector<u32> host(n);
  for (u32& v : host) v = static_cast<u32>(random_());
  return host;
}

// --- what came of an operation ----------------------------------------------------------------------------------------------------

void World::hear(const Error& error) {
  if (error.is_device_poisoned()) together_.lost = true;
}

bool World::excused(const Error& error) {
  hear(error);
  return faults() && (error.code() == ErrorCode::Skipped || all_injected(roots_named(error)));
}

void World::doom(Roots roots) {
  for (const std::string& root : roots) repeated_.insert(root);  // what was recorded will carry it, too
  if (!recorded_->doomed) recorded_->doomed = std::move(roots);
}

void World::did(const Stream& s, const Actions& as_one, const Result<void>& result) {
  const bool recording = records(s);
  const Roots met = met_in(as_one, recording ? std::span<const Action>(recorded_->ops) : std::span<const Action>());
  if (!result.has_value()) {
    const Error& error = result.error();
    const bool skipped = error.code() == ErrorCode::Skipped;
    if (!(skipped && !met.empty()) && !excused(error)) {
      std::string text = "an operation gave: " + error.text() + "\nand what it reads has:";
      for (const std::string& root : met) text += " " + root + ";";
      wrong(text);
    }
    Roots carried = roots_named(error);
    if (recording) {
      doom(carried);
      if (skipped) return claim_all(as_one, faults() ? carried : met);
      // Some of them may be recorded, and are claimed when the capture ends. Which others are claimed now nobody says.
      if (as_one.size() > 1) {
        recorded_->ops.insert(recorded_->ops.end(), as_one.begin(), as_one.end());
        return;
      }
    }
    if (!skipped) {  // a fault: what it was to overwrite whole is claimed; it may not even have begun on the rest, which then stays
      for (const Action& a : as_one)
        for (const Part& p : a.covers) claim(p, carried);
      return;
    }
  } else if (recording) {
    for (const Action& a : as_one) {
      if (!a.fails.empty()) repeated_.insert(a.fails);  // of each replay
      recorded_->ops.push_back(a);
    }
    return;
  }
  run(as_one);
}

void World::refused(const Stream& s, const std::vector<Part>& parts, const std::string& root, const Result<void>& result,
                    const char* what) {
  if (result.has_value()) wrong(std::string(what) + " went out");
  const std::string found = root_name(result.error());
  if (found != root && !excused(result.error())) wrong(std::string(what) + " gave " + result.error().text());
  for (const Part& p : parts) claim(p, {found});
  if (records(s)) doom({found});
}

// --- the program ------------------------------------------------------------------------------------------------------------------

void World::step() {
  if (together_.faults.next()) return trap();
  struct Choice {
    unsigned weight;
    void (World::*operation)();
  };
  static constexpr Choice kChoices[] = {
      {100, &World::allocate},    {350, &World::launch_good}, {120, &World::launch_bad}, {70, &World::copy},
      {70, &World::host_write},   {10, &World::wrong_write},  {35, &World::fill},        {20, &World::strided_write},
      {20, &World::strided_copy}, {10, &World::strided_read}, {15, &World::upload},      {15, &World::download},
      {15, &World::read_later},   {60, &World::read},         {8, &World::view},         {25, &World::check},
      {25, &World::sync},         {10, &World::event},        {10, &World::call},        {6, &World::call_and_wait},
      {4, &World::cleanup},       {3, &World::install_pools}, {25, &World::capture},     {20, &World::end_capture},
      {60, &World::replay},       {8, &World::drop_graph},    {10, &World::release}};
  static constexpr unsigned kAll = [] {
    unsigned sum = 0;
    for (const Choice& c : kChoices) sum += c.weight;
    return sum;
  }();
  if (memories_.size() < 3) return allocate();
  std::uint64_t at = below(kAll);
  for (const Choice& c : kChoices) {
    if (at < c.weight) return (this->*c.operation)();
    at -= c.weight;
  }
}

void World::finish() {
  if (recorded_) end_capture();
  settle_reads();
  for (const auto& m : memories_) {
    const Part p{m, 0, m->cells.size()};
    if (!written(p)) continue;
    note("last_read " + p.text(), {}, {p});
    const bool lost = together_.lost;
    read_all(p, m->buffer->read(), "the last read", lost);
  }
  graphs_.clear();
  memories_.clear();
}

}  // namespace kiln::fuzz
