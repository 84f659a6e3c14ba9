// One file of an environment as a process uses it: opened at its first use, by as many threads at a time as there are, given up when it
// cannot be used. Nothing that happens to it is more than a miss.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/environment/places.h"
#include "src/environment/store_file.h"

namespace kiln::rt {

// Told what a person should know, once for each kind of trouble.
using Warn = std::function<void(const std::string& text)>;

// Thread-safe. No lock of the process is held while SQLite works.
class Layer {
 public:
  Layer(LayerPlace place, std::uint64_t most_bytes, Warn warn);
  ~Layer();
  Layer(const Layer&) = delete;

  Looked find(const std::string& key) noexcept;
  bool put(const Entry& entry) noexcept;
  // The whole of it, for reports; false: it cannot be used.
  bool use(const std::function<void(StoreFile&)>& work) noexcept;

  const LayerPlace& place() const { return place_; }
  bool usable() const { return !given_up_.load(std::memory_order_acquire); }
  void close_idle() noexcept;  // what is open and used by nobody; it is opened again when it is needed

 private:
  std::unique_ptr<StoreFile> take();
  void give_back(std::unique_ptr<StoreFile> file) noexcept;
  std::unique_ptr<StoreFile> open();
  std::unique_ptr<StoreFile> open_writable();
  void after(const SqlFailure& e, std::unique_ptr<StoreFile> file);
  void after_damage(std::unique_ptr<StoreFile> file, const std::string& why);
  bool set_aside(const FileId& id);
  void tell_set_aside(const std::string& why);
  void give_up(const std::string& why, bool tell = true);
  void tell_damage(const std::string& what);

  const LayerPlace place_;
  const std::uint64_t most_bytes_;
  const Warn warn_;
  std::atomic<bool> given_up_{false}, no_writes_{false}, told_damage_{false};
  std::atomic<int> failures_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<StoreFile>> idle_;
  unsigned process_;  // by which they were opened
};

}  // namespace kiln::rt
