// Holds a stream until it is opened, on any device.
#pragma once
#include <doctest/doctest.h>

#include <latch>
#include <memory>
#include <utility>

#include "kiln/runtime/client.h"

namespace kiln::test {

class Held {
 public:
  explicit Held(const Stream& stream) {
    REQUIRE(stream.call([gate = gate_] { gate->wait(); }).has_value());
  }
  ~Held() { open(); }
  Held(const Held&) = delete;
  void open() {
    if (!std::exchange(opened_, true)) gate_->count_down();
  }

 private:
  std::shared_ptr<std::latch> gate_ = std::make_shared<std::latch>(1);
  bool opened_ = false;
};

}  // namespace kiln::test
