// Loads a host object (an ELF64 x86-64 relocatable file, as the code generator makes them and as they are stored) into executable memory.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kiln/runtime/error.h"

namespace kiln::rt {

// Code of one object in memory: text readable and executable, constants readable, nothing writable. Unmapped on destruction.
class LoadedObject {
 public:
  // Any bytes may be given: what is malformed, imports anything but memcpy, memmove and memset, carries mutable or thread-local data, or
  // uses a relocation out of range is an error (CompileGeneric, rule "BadObject") and never a crash. `object` may be dropped after return.
  // `symbol` must be a function of the object. Thread-safe. O(size).
  static Result<std::shared_ptr<const LoadedObject>> load(std::string_view object, const std::string& symbol);

  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  const void* entry() const { return entry_; }
  std::size_t mapped_bytes() const { return bytes_; }

 private:
  LoadedObject(void* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  friend class ObjectLinker;
  void* base_;
  std::size_t bytes_;
  const void* entry_ = nullptr;
};

}  // namespace kiln::rt
