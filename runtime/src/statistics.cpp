#include "src/statistics.h"

#include <utility>

#include "src/launch_modes.h"

namespace kiln {
namespace {

using State = std::shared_ptr<rt::StatisticsState>;

template <class Change>
void settle(State& state, Change&& change) noexcept {
  if (state == nullptr) return;
  state->count(change);
  state.reset();
}
void abandon_kernel(State& state) noexcept {
  settle(state, [](ExecutionStatistics& s) { ++s.compilation.abandoned; });
}
void abandon_tune(State& state) noexcept {
  settle(state, [](ExecutionStatistics& s) { ++s.autotune.abandoned; });
}

}  // namespace

ExecutionStatistics StatisticsReader::read() const { return state_->read(); }

StatisticsCollector::StatisticsCollector() : state_(std::make_shared<rt::StatisticsState>()) {}

KernelRegistration::KernelRegistration() : state_(rt::open_collector()) {
  if (state_ != nullptr) state_->count([](ExecutionStatistics& s) { ++s.compilation.registered; });
}
KernelRegistration& KernelRegistration::operator=(KernelRegistration&& other) noexcept {
  if (this == &other) return *this;
  abandon_kernel(state_);
  state_ = std::move(other.state_);
  return *this;
}
KernelRegistration::~KernelRegistration() { abandon_kernel(state_); }
void KernelRegistration::compiled(bool stored) noexcept {
  settle(state_, [&](ExecutionStatistics& s) {
    ++s.compilation.compiled;
    s.compilation.stored += stored;
  });
}
void KernelRegistration::loaded() noexcept {
  settle(state_, [](ExecutionStatistics& s) { ++s.compilation.loaded; });
}
void KernelRegistration::failed(const Error& error) noexcept {
  settle(state_, [&](ExecutionStatistics& s) {
    ++s.compilation.failed;
    s.compilation.refused += error.is_refusal();
  });
}

TuneRegistration::TuneRegistration() : state_(rt::open_collector()) {
  if (state_ != nullptr) state_->count([](ExecutionStatistics& s) { ++s.autotune.registered; });
}
TuneRegistration& TuneRegistration::operator=(TuneRegistration&& other) noexcept {
  if (this == &other) return *this;
  abandon_tune(state_);
  state_ = std::move(other.state_);
  return *this;
}
TuneRegistration::~TuneRegistration() { abandon_tune(state_); }
void TuneRegistration::measured(bool persisted) noexcept {
  settle(state_, [&](ExecutionStatistics& s) {
    ++s.autotune.measured;
    s.autotune.persisted += persisted;
  });
}
void TuneRegistration::failed() noexcept {
  settle(state_, [](ExecutionStatistics& s) { ++s.autotune.failed; });
}

}  // namespace kiln
