// Handles as the driver gives them out: numbers that are never given out twice, so that a dead handle is known as one for ever, and that
// are no addresses, so that nobody can follow one.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kiln::simcuda {

// The live objects of one kind. `Handle` is the driver's pointer type. Not thread-safe: with the driver's lock.
template <class Object, class Handle>
class HandleTable {
 public:
  explicit HandleTable(unsigned kind) : next_((0x5aull << 56) | (static_cast<std::uint64_t>(kind) << 48)) {}
  Handle add(std::shared_ptr<Object> object) {
    next_ += 16;
    live_.emplace(next_, std::move(object));
    return reinterpret_cast<Handle>(next_);
  }
  // Null: no live object of this kind has this handle.
  std::shared_ptr<Object> find(Handle handle) const {
    const auto it = live_.find(reinterpret_cast<std::uint64_t>(handle));
    return it == live_.end() ? nullptr : it->second;
  }
  Object* look(Handle handle) const {
    const auto it = live_.find(reinterpret_cast<std::uint64_t>(handle));
    return it == live_.end() ? nullptr : it->second.get();
  }
  bool remove(Handle handle) { return live_.erase(reinterpret_cast<std::uint64_t>(handle)) != 0; }
  template <class Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(live_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  std::size_t size() const { return live_.size(); }
  auto begin() const { return live_.begin(); }
  auto end() const { return live_.end(); }

 private:
  std::uint64_t next_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Object>> live_;
};

}  // namespace kiln::simcuda
