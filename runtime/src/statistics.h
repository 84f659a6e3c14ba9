// What a StatisticsCollector and its readers share.
#pragma once
#include <mutex>

#include "kiln/runtime/statistics.h"

namespace kiln::rt {

// Thread-safe. Its lock is held for a count or a copy.
class StatisticsState {
 public:
  ExecutionStatistics read() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  template <class Change>
  void count(Change&& change) {
    const std::lock_guard lock(mutex_);
    change(counts_);
  }

 private:
  mutable std::mutex mutex_;
  ExecutionStatistics counts_;
};

}  // namespace kiln::rt
