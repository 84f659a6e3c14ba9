#include "src/server.h"

#include <atomic>
#include <string>

#include "src/allocation.h"
#include "src/make_error.h"

namespace kiln {
namespace {

Error bad_range(std::string message) { return make_error(ErrorCode::Validation, "BindingRange", std::move(message)); }

}  // namespace

Server::Server()
    : number_([] {
        static std::atomic<std::uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;
      }()) {}

bool Server::is_usable(const Binding& binding) const {
  if (binding.range.begin > binding.range.end) return false;
  if (binding.memory == nullptr) return binding.range.empty();
  return binding.memory->server.get() == this && (binding.range.empty() || binding.range.end <= binding.memory->storage->bytes);
}

Result<void> Server::usable(const Binding& binding, std::string_view name, std::string_view remedy) const {
  if (is_usable(binding)) return {};
  const std::string what(name);
  if (binding.range.begin > binding.range.end) {
    return bad_range(what + " begins at byte " + std::to_string(binding.range.begin) + " and ends before it, at byte " +
                     std::to_string(binding.range.end));
  }
  if (binding.memory == nullptr) {
    if (binding.range.empty()) return {};
    return bad_range(what + " names bytes of no memory");
  }
  if (binding.memory->server.get() != this) {
    return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                      what + " belongs to another device, " + binding.memory->server->label() + ", not to " + label() + "; " +
                          (remedy.empty() ? std::string("copy it there with to_device() or copy_across(), or use a stream of its device")
                                          : std::string(remedy)));
  }
  if (!binding.range.empty() && binding.range.end > binding.memory->storage->bytes) {
    return bad_range(what + " ends at byte " + std::to_string(binding.range.end) + " of a memory of " +
                     std::to_string(binding.memory->storage->bytes) + " bytes");
  }
  return {};
}

}  // namespace kiln
