// Runs a kernel given as .kir text in the interpreter, as recorded and as prepared, and holds the two against each other.
#pragma once
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "kiln/ir/text.h"

namespace kiln::interp::testing {

class Case {
 public:
  // `body` goes into a kernel with these declarations.
  Case(const std::string& declarations, const std::string& body)
      : Case("kir 1\nkernel \"k\" {\nfile \"k.cpp\"\n" + declarations + "\nbody {\n" + body + "\n}\n}\n") {}
  explicit Case(const std::string& text) : kernel_(ir::parse_kernel(text)) {}

  Launch launch;
  bool verified = true;  // false: only as recorded, without the verifier

  template <class T>
  Case& buffer(const std::vector<T>& values, std::vector<std::uint64_t> extents = {}, std::vector<std::uint64_t> strides = {}) {
    buffers_.push_back(std::make_unique<std::vector<std::uint8_t>>(values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(buffers_.back()->data(), values.data(), buffers_.back()->size());
    if (extents.empty()) extents = {values.size()};
    launch.args.push_back(
        {.is_buffer = true, .bytes = buffers_.back().get(), .extents = std::move(extents), .strides = std::move(strides)});
    return *this;
  }
  Case& scalar(std::uint64_t bits) {
    launch.args.push_back({.is_buffer = false, .extents = {}, .strides = {}, .bits = bits});
    return *this;
  }
  Case& threads(std::uint32_t block_x, std::uint32_t grid_x = 1) {
    launch.block[0] = block_x;
    launch.grid[0] = grid_x;
    return *this;
  }

  Outcome run() {
    ir::Prepared recorded;
    recorded.kernel = kernel_;
    ir::contract(recorded.kernel);  // part of the meaning, unlike the other passes
    ir::decide_bounds(recorded.kernel);
    if (!verified) return interp::run(recorded, launch);
    std::vector<std::vector<std::uint8_t>> before, after;
    for (const auto& b : buffers_) before.push_back(*b);
    interp::run(recorded, launch);
    for (const auto& b : buffers_) after.push_back(*b);
    for (std::size_t i = 0; i < before.size(); ++i) std::copy(before[i].begin(), before[i].end(), buffers_[i]->begin());
    const Outcome outcome = interp::run(ir::prepare(kernel_), launch);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == *buffers_[i]);
    return outcome;
  }
  // Runs and expects neither a fault nor misuse.
  Case& good() {
    const Outcome o = run();
    CHECK_FALSE(o.fault.has_value());
    CHECK_MESSAGE(o.misuse.empty(), (o.misuse.empty() ? "" : o.misuse[0]));
    return *this;
  }
  // All misuse, one a line.
  std::string misuse() {
    std::string all;
    for (const std::string& m : run().misuse) all += (all.empty() ? "" : "\n") + m;
    return all;
  }

  template <class T>
  std::vector<T> values(std::size_t buffer = 0) const {
    std::vector<T> v(buffers_[buffer]->size() / sizeof(T));
    std::memcpy(v.data(), buffers_[buffer]->data(), v.size() * sizeof(T));
    return v;
  }

 private:
  ir::Kernel kernel_;
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> buffers_;
};

inline std::vector<std::uint32_t> u32s(std::size_t n, std::uint32_t v = 0) { return std::vector<std::uint32_t>(n, v); }
inline std::uint64_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }

}  // namespace kiln::interp::testing
