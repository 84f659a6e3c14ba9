#include "scope.h"

#include <string>

namespace kiln::rt {

ExecuteScope::ExecuteScope(FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                           std::span<const MemoryRange> writes, std::span<const MemoryRange> covers, ScopeObserver* observer)
    : store_(store), name_(name), writes_(writes), covers_(covers), observer_(observer) {
  FailureStore::Entered entered = store_.enter(name, reads, writes);
  stamp_ = entered.stamp;
  claimed_ = std::move(entered.claimed);
  if (!claimed_) return;
  open_ = false;
  if (observer_) observer_->on_failure(claimed_->error);
}

ExecuteScope ExecuteScope::over(FailureStore& store, std::span<const MemoryRange> writes, std::span<const MemoryRange> covers,
                                ScopeObserver* observer) {
  return ExecuteScope(store, {}, {}, writes, covers, observer);
}

ExecuteScope ExecuteScope::launching(FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                                     std::span<const MemoryRange> writes, std::span<const MemoryRange> covers, ScopeObserver* observer) {
  return ExecuteScope(store, name, reads, writes, covers, observer);
}

Error ExecuteScope::failed_writing(FailureStore& store, std::span<const MemoryRange> writes, Error error, ScopeObserver* observer) {
  ExecuteScope scope = over(store, writes, {}, observer);
  scope.settle_failure(error);
  return error;
}

ExecuteScope::~ExecuteScope() {
  if (!open_) return;
  store_.fail(stamp_, writes_, torn_down());
  if (observer_) observer_->on_failure(torn_down());
}

Error ExecuteScope::skip_error() const {
  Error::Data data;
  data.code = ErrorCode::Skipped;
  data.kernel = std::string(name_);
  data.message = "Skipped `" + std::string(short_name(name_)) + "`: it needs " +
                 memory_text(claimed_->memory, claimed_->parameter != nullptr ? *claimed_->parameter : std::string()) +
                 ", which carries failure #" + std::to_string(claimed_->failure);
  data.failure = claimed_->failure;
  data.causes.push_back(claimed_->error);
  return Error(std::move(data));
}

void ExecuteScope::settle_success() {
  open_ = false;
  store_.succeed(stamp_, covers_);
}

void ExecuteScope::settle_failure(const Error& error) {
  open_ = false;
  store_.fail(stamp_, writes_, error);
  if (observer_) observer_->on_failure(error);
}

}  // namespace kiln::rt
