#include "src/profile/time_marks.h"

#include <string>

#include "src/device.h"

namespace kiln::rt {

TimeMarks::~TimeMarks() {
  if (forgotten_) return;
  for (TimeMark& mark : all_) device_.drop_mark(mark);
}

Result<TimeMark*> TimeMarks::take() {
  const std::lock_guard lock(mutex_);
  if (free_ == nullptr) {
    if (all_.size() == kMost)
      return Error(ErrorCode::Generic, "no more than " + std::to_string(kMost) + " points in time of a device are kept at a time");
    all_.emplace_back();
    if (auto ok = device_.make_mark(all_.back()); !ok.has_value()) {
      all_.pop_back();
      return ok.error();
    }
    free_ = &all_.back();
  }
  TimeMark* mark = free_;
  free_ = mark->next;
  mark->next = nullptr;
  mark->users = 1;
  mark->time.store(0, std::memory_order_relaxed);
  return mark;
}

void TimeMarks::share(TimeMark& mark) {
  const std::lock_guard lock(mutex_);
  ++mark.users;
}

void TimeMarks::give_back(TimeMark* mark) noexcept {
  if (mark == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (--mark->users != 0) return;
  mark->next = free_;
  free_ = mark;
}

}  // namespace kiln::rt
