// Scratch memory of one worker: shared memory and carried values of the block it runs. Grows on demand, never shrinks.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace kiln::rt {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(data_); }

  // At least `bytes`, aligned to 64, contents arbitrary; null when there is no memory.
  void* at_least(std::size_t bytes) {
    if (bytes <= capacity_ && data_ != nullptr) return data_;
    std::free(data_);
    capacity_ = bytes < 4096 ? 4096 : (bytes + 63) / 64 * 64;
    data_ = std::aligned_alloc(64, capacity_);
    if (data_ == nullptr) capacity_ = 0;
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace kiln::rt
