// The environment store: what was compiled, kept for later processes. Layers of files, the first of which may be written.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/environment/layer.h"
#include "src/program_key.h"

namespace kiln::rt {

// Thread-safe. Neither function fails: what goes wrong is a miss, and at most one warning of its kind. Nothing is opened before the first
// find().
class Environment {
 public:
  Environment(const Places& places, std::uint64_t most_bytes, const Warn& warn);

  // `key` is `fields` serialised. Why it is not there goes to the log, at level debug.
  std::optional<CompiledCode> find(const std::string& key, const std::string& kernel) noexcept;
  // Whether it is kept.
  bool store(const std::string& key, const std::string& kernel, const std::string& arch, const CompiledCode& code) noexcept;

  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  void close_idle() noexcept;

 private:
  void tell_miss(const std::string& key, const std::string& kernel);
  std::vector<std::unique_ptr<Layer>> layers_;
};

// What is nearest to a key among the entries of its kernel.
struct Nearest {
  std::uint64_t of_kernel = 0;       // entries of that name
  std::vector<std::string> reasons;  // what differs from the nearest of them; empty with of_kernel > 0: there is one of just that key
  StoreRow row;
};
// What does not matter of a key that is looked for.
struct Overlooked {
  bool alignment = false, ptx_version = false, warps = false;
};
// Adds what `file` has; a nearer one replaces what was there. Whether one did.
bool look_for_nearest(StoreFile& file, const ProgramKey& wanted, const std::string& kernel, Nearest& nearest,
                      const Overlooked& overlooked = {});

// That of this process, as its variables say now; null where there is none. What stands in its way is told once, by a warning.
std::shared_ptr<Environment> process_environment() noexcept;
// Where it lies, as the variables say now.
Places process_places();
std::uint64_t process_environment_bytes();

}  // namespace kiln::rt
