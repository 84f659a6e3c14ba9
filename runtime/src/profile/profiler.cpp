#include "src/profile/profiler.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "src/make_error.h"
#include "src/profile/ranges.h"

namespace kiln::rt {
namespace {

constexpr std::size_t kHarvest = 1024;                    // operations that are pending before somebody looks which are over
constexpr std::int64_t kRebase = 1'000'000'000;           // a device's clock counts in floats of milliseconds: exact over a second
constexpr std::uint64_t kRange = std::uint64_t{1} << 63;  // in a note: a range was begun

const char* kind_of(const Task& task) {
  switch (task.kind) {
    case Task::Kind::Launch: return "launch";
    case Task::Kind::Copy: return "copy";
    case Task::Kind::Zero: return "fill";
    case Task::Kind::Upload: return "upload";
    case Task::Kind::Download: return "download";
    case Task::Kind::Host: return task.to != nullptr ? "upload" : "download";
    case Task::Kind::Graph: return "graph";
    case Task::Kind::Marker:
    case Task::Kind::Call: break;
  }
  return "";
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Error not_measured(const char* why) {
  return make_error(ErrorCode::NotMeasured, "NotMeasured", std::string("the profile window has no time: ") + why);
}

}  // namespace

Profiler::Profiler(Device& device, EnqueueLock& enqueue) : device_(device), enqueue_(enqueue), marks_(device) { update(); }

Profiler::~Profiler() { device_.watch(nullptr); }

void Profiler::update() {
  const bool watches = recording_.load(std::memory_order_relaxed) != 0 || waiting_ != 0 || range_sink() != nullptr;
  device_.watch(watches ? this : nullptr);
}

// --- windows -----------------------------------------------------------------------------------------------------------------

std::uint64_t Profiler::open(std::uint32_t queue, TimeMark* mark, Event begun) {
  const std::lock_guard lock(mutex_);
  sweep();
  Window window;
  window.number = next_number();
  window.queue = queue;
  window.begin = mark;
  window.begun = begun;
  window.position = begun.position;
  windows_.push_back(std::move(window));
  open_.fetch_add(1, std::memory_order_relaxed);
  return windows_.back().number;
}

std::uint64_t Profiler::open_at_launch(std::uint32_t queue) {
  const std::lock_guard lock(mutex_);
  sweep();
  Window window;
  window.number = next_number();
  window.queue = queue;
  windows_.push_back(std::move(window));
  open_.fetch_add(1, std::memory_order_relaxed);
  ++waiting_;
  update();
  return windows_.back().number;
}

std::vector<Profiler::Window>::iterator Profiler::find(std::uint64_t number) {
  return std::find_if(windows_.begin(), windows_.end(), [&](const Window& w) { return w.number == number; });
}

void Profiler::drop(std::vector<Window>::iterator window) {
  if (window->begin == nullptr) --waiting_;
  else release(window->begin, window->begun);
  windows_.erase(window);
  open_.fetch_sub(1, std::memory_order_relaxed);
  update();
}

// A task that is not over will still note its time there.
void Profiler::release(TimeMark* mark, Event noted) {
  if (device_.done(noted)) marks_.give_back(mark);
  else retired_.push_back({mark, noted});
}

void Profiler::sweep() {
  std::erase_if(retired_, [&](const Retired& r) {
    const bool over = device_.done(r.noted);
    if (over) marks_.give_back(r.mark);
    return over;
  });
}

std::optional<Profiler::Ending> Profiler::ending(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto window = find(number);
  if (window == windows_.end() || window->ending) return std::nullopt;
  window->ending = true;
  return Ending{window->queue, window->begin != nullptr, window->error};
}

void Profiler::ends_at(std::uint64_t number, Event end) {
  const std::lock_guard lock(mutex_);
  if (const auto window = find(number); window != windows_.end()) window->last = end.position;
}

Result<std::chrono::nanoseconds> Profiler::close(std::uint64_t number, TimeMark* mark) {
  const std::lock_guard lock(mutex_);
  const auto window = find(number);
  const auto verdict = [&]() -> Result<std::chrono::nanoseconds> {
    if (window->error) return *window->error;
    if (window->begin == nullptr) return not_measured("it waited for a launch, and there was none");
    if (mark == nullptr) return not_measured("its end could not be timed");
    auto time = device_.nanoseconds(*window->begin, *mark);
    if (!time.has_value()) return time.error();
    if (*time <= 0) return not_measured("the device's clock did not go on between its start and its end");
    return std::chrono::nanoseconds(*time);
  };
  auto result = verdict();
  drop(window);
  return result;
}

bool Profiler::abandon(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto window = find(number);
  if (window == windows_.end() || window->ending) return false;
  drop(window);
  return true;
}

// `position` ~0: it was never submitted.
void Profiler::mark_failed(std::uint32_t queue, std::uint64_t position, const Error& error) noexcept {
  const std::lock_guard lock(mutex_);
  for (Window& w : windows_) {
    if (w.queue != queue || w.error) continue;
    const bool now = position == ~std::uint64_t{0};
    const bool within = now ? w.last == ~std::uint64_t{0} : w.begin != nullptr && position > w.position && position <= w.last;
    if (within) w.error = error;
  }
}

// --- watching ----------------------------------------------------------------------------------------------------------------

// The task's mark, which it may have for somebody else already.
bool Profiler::set_mark(TimeMark*& mark, TimeMark*& mine) {
  if (mark == nullptr) {
    auto taken = marks_.take();
    if (!taken.has_value()) return false;
    mark = *taken;
  } else {
    marks_.share(*mark);
  }
  mine = mark;
  return true;
}

bool Profiler::begin_windows(Task& task, std::uint32_t queue, std::uint64_t note) {
  bool any = false;
  for (Window& w : windows_) {
    if (w.queue != queue || w.begin != nullptr || w.ending) continue;
    if (!set_mark(task.begin, w.begin)) {
      if (!w.error) w.error = Error(ErrorCode::NotMeasured, "the profile window has no time: the device has no event for its start");
      continue;
    }
    w.note = note;
    w.position = ~std::uint64_t{0};  // not known yet
    --waiting_;
    any = true;
  }
  return any;
}

bool Profiler::record(Task& task, std::uint32_t queue, std::uint64_t note) {
  if (pending_.size() >= kHarvest && pending_.size() % kHarvest == 0) harvest();
  Pending p;
  const bool room = held_ < capacity_;
  bool timed = room && set_mark(task.begin, p.begin);
  if (timed && !set_mark(task.end, p.end)) {
    marks_.give_back(std::exchange(p.begin, nullptr));
    timed = false;
  }
  if (!timed) {
    ++trace_.dropped;
    return false;
  }
  p.note = note;
  p.timeline = recording_.load(std::memory_order_relaxed);
  TracedOperation& o = p.operation;
  o.kind = kind_of(task);
  o.name = task.label.name != nullptr ? *task.label.name : std::string(o.kind);
  if (task.label.place != nullptr) o.place = *task.label.place;
  o.queue = queue;
  o.stream = task.label.stream;
  o.has_stream = task.label.known;
  o.has_grid = task.kind == Task::Kind::Launch;
  o.grid_on_device = task.dynamic_grid != nullptr;
  o.grid = task.grid;
  o.block = task.block;
  o.operations = task.label.operations;
  o.bytes = task.kind == Task::Kind::Graph ? 0 : task.bytes * task.rows;
  pending_.push_back(std::move(p));
  ++held_;
  return true;
}

std::uint64_t Profiler::submitting(Task& task, std::uint32_t queue) noexcept {
  if (task.kind == Task::Kind::Marker || task.kind == Task::Kind::Call) return 0;
  std::uint64_t note = 0;
  const RangeSink* const ranges = range_sink();
  if (ranges != nullptr) {
    ranges->push(task.label.name != nullptr ? task.label.name->c_str() : kind_of(task));
    note = kRange;
  }
  const std::lock_guard lock(mutex_);
  try {
    const std::uint64_t mine = ++notes_;
    const bool launches = task.kind == Task::Kind::Launch || task.kind == Task::Kind::Graph;
    bool used = launches && waiting_ != 0 && begin_windows(task, queue, mine);
    if (recording_.load(std::memory_order_relaxed) != 0) used = record(task, queue, mine) || used;
    if (used) note |= mine;
  } catch (const std::bad_alloc&) { ++trace_.dropped; }
  return note;
}

void Profiler::submitted(std::uint64_t note, const Result<Event>& outcome) noexcept {
  if ((note & kRange) != 0) range_sink()->pop();
  note &= ~kRange;
  if (note == 0) return;
  const std::lock_guard lock(mutex_);
  for (Window& w : windows_) {
    if (w.note != note) continue;
    w.note = 0;
    if (outcome.has_value()) {
      w.begun = *outcome;
      w.position = outcome->position - 1;
    } else {  // it waits on: the failure has marked it
      marks_.give_back(std::exchange(w.begin, nullptr));
      ++waiting_;
    }
  }
  for (auto p = pending_.rbegin(); p != pending_.rend(); ++p) {
    if (p->note != note) continue;
    p->note = 0;
    if (outcome.has_value()) {
      p->event = *outcome;
    } else {
      if (p->timeline == recording_.load(std::memory_order_relaxed)) --held_;
      marks_.give_back(p->begin);
      marks_.give_back(p->end);
      pending_.erase(std::next(p).base());
    }
    break;
  }
  update();
}

// --- the timeline -------------------------------------------------------------------------------------------------------------

Result<void> Profiler::attach(std::uint64_t timeline, std::size_t capacity) {
  {
    const std::lock_guard lock(mutex_);
    if (recording_.load(std::memory_order_relaxed) == timeline) return {};
  }
  auto mark = marks_.take();
  if (!mark.has_value()) return mark.error();
  std::uint32_t queue = 0;  // one that has nothing to do, if there is any
  while (queue + 1 < kOwnQueues && device_.busy(queue, {})) ++queue;
  HeldTask task(device_);
  task->kind = Task::Kind::Marker;
  task->end = *mark;
  const Result<Event> event = [&] {
    const std::lock_guard lock(enqueue_);
    return task.submit(queue, {});
  }();
  if (!event.has_value()) {
    marks_.give_back(*mark);
    return event.error();
  }
  device_.wait(*event);
  const std::int64_t now = host_nanoseconds();
  const std::lock_guard lock(mutex_);
  harvest();  // of an earlier one, if any
  marks_.give_back(std::exchange(base_, *mark));
  const auto clock = static_cast<std::int64_t>((*mark)->time.load(std::memory_order_acquire));
  base_time_ = clock != 0 ? clock : now;  // where the device has the host's clock it is exact
  trace_ = {};
  held_ = 0;
  capacity_ = capacity;
  recording_.store(timeline, std::memory_order_relaxed);
  update();
  return {};
}

void Profiler::stop(std::uint64_t timeline) noexcept {
  const std::lock_guard lock(mutex_);
  if (recording_.load(std::memory_order_relaxed) != timeline) return;
  recording_.store(0, std::memory_order_relaxed);
  trace_ = {};
  update();
}

DeviceTrace Profiler::finish(std::uint64_t timeline, const std::string& label) {
  After open;
  {
    const std::lock_guard lock(mutex_);
    if (recording_.load(std::memory_order_relaxed) != timeline) return {};
    for (const Pending& p : pending_) open.add(p.event);
  }
  open.for_each([&](Event e) { device_.wait(e); });
  const std::lock_guard lock(mutex_);
  harvest();
  for (const Pending& p : pending_) trace_.dropped += p.timeline == timeline;  // enqueued by others meanwhile
  recording_.store(0, std::memory_order_relaxed);
  update();
  trace_.label = label;
  return std::exchange(trace_, {});
}

// Takes the times of what is over.
void Profiler::harvest() {
  sweep();
  After not_over;  // a queue runs in order: what comes behind a task that is not over need not be asked for
  std::deque<Pending> left;
  for (Pending& p : pending_) {
    const bool waits = p.event.position == 0 || not_over.has(p.event.queue) || !device_.done(p.event);
    if (waits) {
      not_over.add(p.event);
      left.push_back(std::move(p));
    } else {
      settle(p);
    }
  }
  pending_ = std::move(left);
}

void Profiler::settle(Pending& pending) {
  const bool mine = pending.timeline == recording_.load(std::memory_order_relaxed) && base_ != nullptr;
  if (mine) {
    auto begin = device_.nanoseconds(*base_, *pending.begin);
    auto length = device_.nanoseconds(*pending.begin, *pending.end);
    if (begin.has_value() && length.has_value()) {
      TracedOperation& o = pending.operation;
      o.begin = base_time_ + *begin;
      o.end = o.begin + *length;
      trace_.operations.push_back(std::move(o));
      if (*begin > kRebase) {
        base_time_ += *begin;
        marks_.give_back(std::exchange(base_, std::exchange(pending.begin, nullptr)));
      }
    } else {
      ++trace_.dropped;  // the device was lost
      --held_;
    }
  }
  marks_.give_back(pending.begin);
  marks_.give_back(pending.end);
}

}  // namespace kiln::rt
