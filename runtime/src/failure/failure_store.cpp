#include "failure_store.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace kiln::rt {

// Counts allocations in the nodes; a failure on none is forgotten.
class FailureStore::Tags : public TagSink {
 public:
  explicit Tags(std::map<FailureId, Node>& nodes) : nodes_(nodes) {}
  void tag(FailureId failure, int change) override {
    const auto found = nodes_.find(failure);
    if (found == nodes_.end()) return;
    Node& node = found->second;
    assert(change > 0 || node.tagged > 0);
    if (change > 0) ++node.tagged;
    else if (node.tagged > 0 && --node.tagged == 0) nodes_.erase(found);
  }

 private:
  std::map<FailureId, Node>& nodes_;
};

namespace {

const Error& lost_track() {
  static const Error error(ErrorCode::OutOfMemory,
                           "There was no host memory left to note which bytes a failure concerns; to be safe, all memory that this device "
                           "had then counts as unwritten; make the buffers anew");
  return error;
}
// Made while there is memory, since it is needed where there is none.
[[maybe_unused]] const Error& lost_track_ready = lost_track();

template <class... Args>
std::string join(const Args&... args) {
  std::string text;
  (text.append(args), ...);
  return text;
}

Error::Data blank(ErrorCode code, std::string message) {
  Error::Data data;
  data.code = code;
  data.message = std::move(message);
  return data;
}

Error unwritten(std::string message, FailureId failure, std::uint64_t claimed, std::vector<std::string> chain, const Error& root) {
  Error::Data data = blank(ErrorCode::Unwritten, std::move(message));
  data.failure = failure;
  data.claimed_buffers = claimed;
  data.chain = std::move(chain);
  data.causes.push_back(root);
  return Error(std::move(data));
}

}  // namespace

const Error& torn_down() {
  static const Error error(ErrorCode::TornDown, "The operation that was to write these bytes was torn down before it was enqueued");
  return error;
}
[[maybe_unused]] static const Error& torn_down_ready = torn_down();

std::string memory_text(std::uint64_t memory, const std::string& parameter) {
  const std::string number = "memory " + std::to_string(memory);
  return parameter.empty() ? number : "'" + parameter + "' (" + number + ")";
}

std::string_view short_name(std::string_view kernel) {
  const std::size_t colons = kernel.substr(0, kernel.find('@')).rfind("::");
  return colons == std::string_view::npos ? kernel : kernel.substr(colons + 2);
}

// --- queries ----------------------------------------------------------------------------------------------------------

std::optional<Claimed> FailureStore::find(std::span<const MemoryRange> ranges, Stamp before) const {
  if (lost_below_ != 0) {
    for (const MemoryRange& range : ranges)
      if (is_lost(range)) return Claimed{0, range.memory, lost_track(), range.parameter};
  }
  if (claims_.empty()) return std::nullopt;
  for (const MemoryRange& range : ranges)
    if (const Claim* claim = claims_.find(range, before))
      return Claimed{claim->failure, range.memory, nodes_.at(claim->failure).error, range.parameter};
  return std::nullopt;
}

std::optional<Claimed> FailureStore::read_failure(std::span<const MemoryRange> ranges) const {
  const std::lock_guard lock(mutex_);
  return find(ranges, kEver);
}

Result<void> FailureStore::ensure_written(std::span<const MemoryRange> ranges) const {
  const std::lock_guard lock(mutex_);
  std::vector<Error> errors;
  std::vector<FailureId> seen;
  std::vector<std::uint64_t> missing;
  bool any_lost = false;
  for (const MemoryRange& range : ranges) {
    if (range.empty()) continue;
    if (is_lost(range)) {
      if (!std::exchange(any_lost, true)) errors.push_back(unwritten("The bytes may never have been written", 0, 0, {}, lost_track()));
      continue;
    }
    const ByteRange bytes = range.bytes();
    bool any = false;
    for (const Claim& claim : claims_.of(range.memory)) {
      if (claim.range.begin >= bytes.end || claim.range.end <= bytes.begin) continue;
      any = true;
      if (std::find(seen.begin(), seen.end(), claim.failure) != seen.end()) continue;
      seen.push_back(claim.failure);
      errors.push_back(describe(claim.failure, range.memory));
    }
    if (!any && !range.allocated && std::find(missing.begin(), missing.end(), range.memory) == missing.end()) {
      missing.push_back(range.memory);
      errors.emplace_back(ErrorCode::NotFound,
                          join("Memory ", std::to_string(range.memory), " was never allocated: the reservation behind it failed"));
    }
  }
  if (errors.empty()) return {};
  return unreadable(std::move(errors));
}

Error FailureStore::unreadable(std::vector<Error> errors) {
  Error::Data data =
      blank(ErrorCode::Several, errors.size() == 1 ? "The memory cannot be read"
                                                   : join("The memory cannot be read, for ", std::to_string(errors.size()), " reasons"));
  data.causes = std::move(errors);
  return Error(std::move(data));
}

Error FailureStore::describe(FailureId failure, std::uint64_t memory) const {
  const auto found = nodes_.find(failure);
  if (found == nodes_.end())
    return unwritten(join("Failure #", std::to_string(failure), " lies on no bytes any more"), failure, 0, {},
                     Error(ErrorCode::Generic, "The failure is not known any more"));
  const Node& node = found->second;
  std::vector<std::string> chain;
  std::uint64_t target = memory;
  for (std::size_t upper = node.skipped.size(); upper > 0;) {
    std::size_t at = upper;
    while (at > 0 && std::find(node.skipped[at - 1].produced.begin(), node.skipped[at - 1].produced.end(), target) ==
                         node.skipped[at - 1].produced.end())
      --at;
    if (at == 0) break;
    const Skip& skip = node.skipped[at - 1];
    const std::string needed = memory_text(skip.needed, skip.parameter);
    if (skip.how == Propagation::Skipped)
      chain.push_back(join("skipped `", skip.name, "`: it needed ", needed, ", which carried the failure"));
    else chain.push_back(join("voided `", skip.name, "`: it had been enqueued, and read ", needed, ", which carried the failure"));
    target = skip.needed;
    upper = at - 1;
  }
  if (!chain.empty() && node.skipped_total > node.skipped.size()) {
    const std::size_t dropped = node.skipped_total - node.skipped.size();
    chain.push_back(join("(", std::to_string(dropped), " older skip record", dropped == 1 ? " was" : "s were",
                         " dropped; the walk may stop before the root)"));
  }
  return unwritten(join("The bytes were never written (failure #", std::to_string(failure), ", still claiming ",
                        std::to_string(node.tagged), node.tagged == 1 ? " buffer)" : " buffers)"),
                   failure, node.tagged, std::move(chain), node.error);
}

Error FailureStore::report(FailureId failure, std::uint64_t memory) const {
  const std::lock_guard lock(mutex_);
  return describe(failure, memory);
}

std::optional<Error> FailureStore::error(FailureId failure) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(failure);
  if (found == nodes_.end()) return std::nullopt;
  return found->second.error;
}

std::vector<Claim> FailureStore::claims(std::uint64_t memory) const {
  const std::lock_guard lock(mutex_);
  const std::span<const Claim> claims = claims_.of(memory);
  return {claims.begin(), claims.end()};
}

std::vector<ByteRange> FailureStore::ranges(FailureId failure, std::uint64_t memory) const {
  std::vector<ByteRange> result;
  for (const Claim& claim : claims(memory)) {
    if (claim.failure != failure) continue;
    if (!result.empty() && result.back().end == claim.range.begin) result.back().end = claim.range.end;
    else result.push_back(claim.range);
  }
  return result;
}

std::uint64_t FailureStore::tagged(FailureId failure) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(failure);
  return found == nodes_.end() ? 0 : found->second.tagged;
}

std::size_t FailureStore::size() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

// --- changes ----------------------------------------------------------------------------------------------------------

FailureId FailureStore::mint(Error error) {
  const FailureId failure = last_failure_ + 1;
  nodes_.emplace(failure, Node{std::move(error), 0, {}, 0});
  return last_failure_ = failure;
}

void FailureStore::put(FailureId failure, std::span<const MemoryRange> ranges, Stamp stamp) {
  if (!nodes_.contains(failure)) return;
  Tags tags(nodes_);
  for (const MemoryRange& range : ranges) claims_.taint(range, failure, stamp, &tags);
}

void FailureStore::drop_if_bare(FailureId failure) {
  const auto found = nodes_.find(failure);
  if (found != nodes_.end() && found->second.tagged == 0) nodes_.erase(found);
}

void FailureStore::add_skip(FailureId failure, std::string_view name, std::uint64_t needed, const std::string* parameter,
                            std::span<const MemoryRange> produced, Propagation how) {
  const auto found = nodes_.find(failure);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  Skip skip{std::string(short_name(name)), needed, parameter != nullptr ? *parameter : std::string(), {}, how};
  for (const MemoryRange& range : produced)
    if (!range.empty()) skip.produced.push_back(range.memory);
  node.skipped.push_back(std::move(skip));
  if (node.skipped.size() > kKeptSkips) node.skipped.pop_front();
  ++node.skipped_total;
}

FailureId FailureStore::insert(Error error) {
  const Change change(*this);
  return mint(std::move(error));
}

void FailureStore::taint(FailureId failure, std::span<const MemoryRange> ranges) {
  const Change change(*this);
  put(failure, ranges, next_stamp());
}

void FailureStore::written(std::span<const MemoryRange> ranges) {
  const Change change(*this);
  Tags tags(nodes_);
  for (const MemoryRange& range : ranges) claims_.release(range, kEver, &tags);
}

void FailureStore::clear(std::uint64_t memory) noexcept {
  if (quiet_.load(std::memory_order_acquire)) return;  // whoever named the memory has done so before
  const Change change(*this);
  Tags tags(nodes_);
  claims_.clear(memory, &tags);
}

void FailureStore::replace(FailureId failure, Error error) {
  const Change change(*this);
  const auto found = nodes_.find(failure);
  if (found != nodes_.end()) found->second.error = std::move(error);
}

void FailureStore::prune(FailureId failure) {
  const Change change(*this);
  drop_if_bare(failure);
}

// --- scopes and the launch log ----------------------------------------------------------------------------------------

std::optional<Claimed> FailureStore::pass_on(Stamp stamp, std::string_view name, std::span<const MemoryRange> reads,
                                             std::span<const MemoryRange> writes) noexcept {
  const Change change(*this);
  std::optional<Claimed> claimed = find(reads, kEver);
  if (!claimed) return claimed;
  try {
    give_number(*claimed);
    add_skip(claimed->failure, name, claimed->memory, claimed->parameter, writes, Propagation::Skipped);
    put(claimed->failure, writes, stamp);
    drop_if_bare(claimed->failure);
  } catch (...) { lose(); }
  return claimed;
}

// What lies on memory that the store has lost track of has no number until it is passed on to other memory.
void FailureStore::give_number(Claimed& claimed) {
  if (claimed.failure == 0) claimed.failure = mint(claimed.error);
}

void FailureStore::end_claims(Stamp stamp, std::span<const MemoryRange> covers) noexcept {
  const Change change(*this);
  try {
    Tags tags(nodes_);
    for (const MemoryRange& range : covers) claims_.release(range, stamp, &tags);
  } catch (...) {  // no memory to split a claim: it stays whole, which errs on the loud side
  }
}

FailureId FailureStore::fail(Stamp stamp, std::span<const MemoryRange> writes, Error error) noexcept {
  const Change change(*this);
  if (std::all_of(writes.begin(), writes.end(), [](const MemoryRange& range) { return range.empty(); })) return 0;
  try {
    const FailureId failure = mint(std::move(error));
    put(failure, writes, stamp);
    const bool claims = nodes_.at(failure).tagged > 0;
    drop_if_bare(failure);
    return claims ? failure : 0;
  } catch (...) {
    lose();
    return 0;
  }
}

void FailureStore::claim(FailureId failure, std::span<const MemoryRange> ranges, Stamp stamp) {
  const Change change(*this);
  put(failure, ranges, stamp);
}

void FailureStore::record(FailureId failure, std::string_view name, const MemoryRange& needed, std::span<const MemoryRange> produced,
                          Propagation how) {
  const Change change(*this);
  add_skip(failure, name, needed.memory, needed.parameter, produced, how);
}

bool FailureStore::reconsider(std::string_view name, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
                              std::span<const MemoryRange> covers, Stamp stamp) noexcept {
  const Change change(*this);
  try {
    if (std::optional<Claimed> claimed = find(reads, stamp)) {
      give_number(*claimed);
      add_skip(claimed->failure, name, claimed->memory, claimed->parameter, writes, Propagation::Voided);
      put(claimed->failure, writes, stamp);
      return true;
    }
    Tags tags(nodes_);
    for (const MemoryRange& range : covers) claims_.release(range, stamp, &tags);
  } catch (...) { lose(); }
  return false;
}

bool FailureStore::lost(std::span<const MemoryRange> ranges) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(ranges.begin(), ranges.end(), [this](const MemoryRange& range) { return is_lost(range); });
}

void FailureStore::lose_track() noexcept {
  const Change change(*this);
  lose();
}

void FailureStore::lose() noexcept {
  lost_below_ = next_memory_ != nullptr ? next_memory_->load(std::memory_order_relaxed) : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace kiln::rt
