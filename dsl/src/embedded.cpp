#include "kiln/dsl/embedded.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "errors.h"
#include "kiln/runtime/bundle.h"
#include "variant_slot.h"

namespace kiln::dsl {

// A variant that was looked for.
struct EmbeddedCore::Found {
  explicit Found(const ConfigBits& config) : slot(config) {}
  VariantSlot slot;
  ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel;  // of a launch that names none
  std::uint64_t generation = 0;                                        // of what was looked into
};

struct EmbeddedCore::State {
  explicit State(const char* name_) : name(name_) {}
  const std::string name;
  std::atomic<const Found*> last{nullptr};  // found, and not an error
  std::shared_mutex mutex;                  // guards the list only, never held while anything is looked for
  std::deque<std::unique_ptr<Found>> all;   // of one config the latest is the last
};

namespace {

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("p" + std::to_string(i));
  return names;
}

ParamSpec spec_of(const BundleParam& p) { return {p.is_buffer, p.type, p.rank, p.is_buffer ? p.access : ir::Access::In, p.strided}; }

std::string signature(std::span<const ParamSpec> params) {
  std::string text;
  for (const ParamSpec& p : params) text += (text.empty() ? "" : ", ") + type_text(p);
  return "(" + text + ")";
}

}  // namespace

Result<std::string> config_text(const ConfigSpace& space, const ConfigBits& config) {
  if (!space.problem.empty()) return make_error(ErrorCode::Validation, "Config", space.problem);
  return space.text(config);
}

EmbeddedCore::State& EmbeddedCore::state() const {
  if (State* made = state_.load(std::memory_order_acquire)) return *made;
  auto made = std::make_unique<State>(name_);
  State* first = nullptr;
  if (state_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *first;
}

const std::string& EmbeddedCore::name() const { return state().name; }

std::string EmbeddedCore::place() const {
  const Found* const last = state().last.load(std::memory_order_acquire);
  if (last == nullptr || last->slot.variant == nullptr) return {};
  const ir::Kernel& kernel = last->slot.variant->recorded();
  return kernel.loc.line != 0 ? ir::to_string(kernel, kernel.loc) : std::string();
}

std::vector<ParamInfo> EmbeddedCore::params() const {
  const Found* const last = state().last.load(std::memory_order_acquire);
  const std::vector<std::string> numbers = numbered(specs_.size());
  std::vector<ParamInfo> list;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const bool known = last != nullptr && i < last->slot.variant->recorded().params.size();
    list.push_back({known ? last->slot.variant->recorded().params[i].name : numbers[i], type_text(specs_[i])});
  }
  return list;
}

Error EmbeddedCore::out_of_memory(std::span<const LaunchArg> args) const noexcept { return claim_outputs(specs_, args); }

std::unique_ptr<EmbeddedCore::Found> EmbeddedCore::look(const ConfigBits& config) const {
  using Mode = ir::PrepareOptions::Mode;
  auto made = std::make_unique<Found>(config);
  made->generation = embedded_generation();
  std::string full = name_;
  std::optional<Error> error;
  if (text_ != nullptr) {
    const Result<std::string> text = text_(config);
    if (text.has_value()) full += "@" + *text;
    else error = make_error(text.error().code(), text.error().rule(), text.error().data().message, full);
  }
  if (!error) {
    auto embedded = embedded_variant(full);
    if (!embedded.has_value()) {
      if (embedded.error().code() == ErrorCode::OutOfMemory) throw std::bad_alloc();
      error = embedded.error();
    } else {
      std::vector<ParamSpec> theirs;
      for (const BundleParam& p : embedded->params) theirs.push_back(spec_of(p));
      if (!std::equal(theirs.begin(), theirs.end(), specs_.begin(), specs_.end())) {
        error = make_error(ErrorCode::Validation, "EmbeddedSignature",
                           "the kernel that is embedded takes " + signature(theirs) + ", and this program calls it as " +
                               signature(specs_) + ": the header and the bundles were not made together; build both anew",
                           full);
      } else {
        const bool own = embedded->variant->recorded().options.checked;
        if (!(own ? embedded->checked : embedded->unchecked)) made->mode = own ? Mode::Unchecked : Mode::Checked;
        made->slot.variant = std::move(embedded->variant);
      }
    }
  }
  if (error) {
    made->slot.error = error;
    made->slot.variant = std::make_shared<Variant>(signature_kernel(full, specs_, numbered(specs_.size()), Where{}), *error);
  }
  return made;
}

const EmbeddedCore::Found& EmbeddedCore::found(const ConfigBits& config) const {
  State& s = state();
  if (const Found* last = s.last.load(std::memory_order_acquire); last != nullptr && (text_ == nullptr || last->slot.key == config))
    return *last;
  const auto known = [&]() -> const Found* {
    for (auto at = s.all.rbegin(); at != s.all.rend(); ++at) {
      if ((*at)->slot.key != config) continue;
      return !(*at)->slot.error || (*at)->generation == embedded_generation() ? at->get() : nullptr;
    }
    return nullptr;
  };
  const Found* result = nullptr;
  {
    const std::shared_lock lock(s.mutex);
    result = known();
  }
  if (result == nullptr) {
    auto made = look(config);
    const std::unique_lock lock(s.mutex);
    result = known();  // another thread may have been first
    if (result == nullptr) result = s.all.emplace_back(std::move(made)).get();
  }
  if (!result->slot.error) s.last.store(result, std::memory_order_release);
  return *result;
}

Target EmbeddedCore::target(const ConfigBits& config) const {
  try {
    const Found& variant = found(config);
    return {this, &variant.slot, variant.mode};
  } catch (const std::bad_alloc&) { return {this, &no_slot(), ir::PrepareOptions::Mode::AsKernel}; }
}

}  // namespace kiln::dsl
