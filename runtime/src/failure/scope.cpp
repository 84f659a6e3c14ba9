#include "scope.h"

#include <string>

namespace kiln::rt {

void ExecuteScope::pass_on(std::span<const MemoryRange> reads) {
  claimed_ = store_.pass_on(stamp_, name_, reads, writes_);
  if (!claimed_) return;
  open_ = false;
  if (observer_) observer_->on_failure(claimed_->error);
}

Error ExecuteScope::failed_writing(FailureStore& store, std::span<const MemoryRange> writes, Error error, ScopeObserver* observer) {
  ExecuteScope scope = over(store, writes, {}, observer);
  scope.settle_failure(error);
  return error;
}

void ExecuteScope::tear_down() noexcept {
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

void ExecuteScope::settle_failure(const Error& error) {
  open_ = false;
  store_.fail(stamp_, writes_, error);
  if (observer_) observer_->on_failure(error);
}

}  // namespace kiln::rt
