#include "kiln/runtime/variant.h"

#include <array>
#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "src/make_error.h"

namespace kiln {
namespace {

std::uint64_t next_variant_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// The sentences of the IR as one error. A single finding keeps its place as a field; several are listed one a line.
Error from_diagnostics(const std::string& kernel, const ir::Diagnostics& found) {
  const std::string place = found.empty() ? std::string() : found.front().place;
  std::string message;
  if (found.size() == 1) {
    message = found.front().message;
  } else {
    message = "the kernel is not valid: " + std::to_string(found.size()) + " findings";
    for (const ir::Diagnostic& d : found) message += "\n  " + (d.place.empty() ? std::string("?") : d.place) + ": " + d.message;
  }
  return make_error(ErrorCode::CompileValidation, "InvalidKernel", std::move(message), {.kernel = kernel, .place = place});
}

Error prepare_failed(const std::string& kernel, const std::string& what) {
  return make_error(ErrorCode::CompilePanicked, {}, "preparing the kernel failed: " + what, {.kernel = kernel});
}

}  // namespace

struct Variant::State {
  struct Slot {
    std::once_flag once;
    std::optional<ir::Prepared> prepared;
    std::optional<Error> error;
  };
  std::optional<Error> recording_error;
  std::array<Slot, 2> slots;  // unchecked, checked
};

Variant::Variant(ir::Kernel recorded) : recorded_(std::move(recorded)), id_(next_variant_id()), state_(std::make_unique<State>()) {}

Variant::Variant(ir::Kernel signature_only, Error error) : Variant(std::move(signature_only)) {
  state_->recording_error = std::move(error);
}

Variant::~Variant() = default;

Result<const ir::Prepared*> Variant::prepared(ir::PrepareOptions::Mode mode) const {
  using Mode = ir::PrepareOptions::Mode;
  if (state_->recording_error) return *state_->recording_error;
  if (mode == Mode::AsKernel) mode = recorded_.options.checked ? Mode::Checked : Mode::Unchecked;
  State::Slot& slot = state_->slots[mode == Mode::Checked];
  std::call_once(slot.once, [&] {
    try {
      slot.prepared = ir::prepare(recorded_, {.mode = mode});
    } catch (const ir::IrError& e) { slot.error = from_diagnostics(recorded_.name, e.diagnostics()); } catch (const std::bad_alloc&) {
      throw;  // there may be memory the next time
    } catch (const std::exception& e) { slot.error = prepare_failed(recorded_.name, e.what()); }
  });
  if (slot.error) return *slot.error;
  return &*slot.prepared;
}

}  // namespace kiln
