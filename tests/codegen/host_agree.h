// Runs a kernel on the CPU at every level, checked and unchecked, and holds every buffer against the interpreter's, bit for bit.
#pragma once
#include "codegen/host_harness.h"
#include "interp/interp.h"

namespace kiln::host_test {

class Agree {
 public:
  Agree(const std::string& declarations, const std::string& body)
      : text_("kernel \"k\" {\nfile \"k.cpp\"\n" + declarations + "\nbody {\n" + body + "\n}\n}\n") {}

  std::array<std::uint32_t, 3> block{64, 1, 1}, grid{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  bool faults = false;  // expected to; the interpreter's record is compared for its site only

  template <class T>
  Agree& buffer(const std::vector<T>& values, std::vector<std::uint64_t> extents = {}, std::vector<std::uint64_t> strides = {}) {
    Given g;
    g.bytes.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(g.bytes.data(), values.data(), g.bytes.size());
    if (extents.empty()) extents = {values.size()};
    g.is_buffer = true;
    g.extents = std::move(extents);
    g.strides = std::move(strides);
    given_.push_back(std::move(g));
    return *this;
  }
  template <class T>
  Agree& scalar(T v) {
    Given g;
    std::memcpy(&g.bits, &v, sizeof v);
    g.size = sizeof v;
    given_.push_back(std::move(g));
    return *this;
  }

  // For each block shape in turn: the first at every level and with code whose block is given at launch, the others (and everything
  // unchecked) at the highest.
  Agree& at(const std::vector<std::array<std::uint32_t, 3>>& blocks) {
    for (const auto& b : blocks) {
      block = b;
      check(&b == &blocks.front());
    }
    return *this;
  }

  Agree& check(bool every_level = true) {
    CAPTURE(text_);
    CAPTURE(block[0]);
    CAPTURE(block[1]);
    CAPTURE(block[2]);
    using Mode = ir::PrepareOptions::Mode;
    for (const Mode mode : {Mode::Checked, Mode::Unchecked}) {
      if (faults && mode == Mode::Unchecked) continue;
      const std::vector<std::vector<std::uint8_t>> expected = interpret(mode);
      std::vector<std::pair<std::string, std::array<std::uint32_t, 3>>> codes;
      for (const std::string& level : every_level&& mode == Mode::Checked ? levels() : std::vector<std::string>{levels().back()})
        codes.emplace_back(level, block);
      if (text_.find("block_size") == std::string::npos) {
        if (every_level && (mode == Mode::Unchecked || faults)) codes.push_back({levels().back(), {0, 0, 0}});
        if (every_level && mode == Mode::Checked && block[1] == 1 && block[2] == 1) codes.push_back({levels().back(), {0, 1, 1}});
      }
      for (const auto& [level, form] : codes) {
        CAPTURE(level);
        CAPTURE(form[0]);
        CAPTURE(form[1]);
        CAPTURE(static_cast<int>(mode));
        const Kernel kernel(text_, form, level, mode);
        std::vector<std::vector<std::uint8_t>> bytes;
        std::vector<Argument> arguments;
        for (const Given& g : given_) bytes.push_back(g.bytes);
        for (std::size_t i = 0; i < given_.size(); ++i) {
          const Given& g = given_[i];
          Argument a;
          if (g.is_buffer) {
            a.words.push_back(reinterpret_cast<std::uint64_t>(bytes[i].data()));
            a.words.insert(a.words.end(), g.extents.begin(), g.extents.end());
            a.words.insert(a.words.end(), g.strides.begin(), g.strides.end());
          } else {
            a.words.push_back(g.bits);
            a.bytes = g.size;
          }
          arguments.push_back(std::move(a));
        }
        const ir::FaultRecord record = kernel.run(grid, arguments, dynamic_shared, true, block);
        CHECK((record.state == 2) == faults);
        for (std::size_t i = 0; i < given_.size(); ++i) {
          CAPTURE(i);
          compare(bytes[i], expected[i]);
        }
        last_ = std::move(bytes);
        record_ = record;
      }
    }
    return *this;
  }

  template <class T>
  std::vector<T> values(std::size_t argument) const {  // of the last run
    std::vector<T> v(last_[argument].size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), last_[argument].data(), v.size() * sizeof(T));
    return v;
  }
  const ir::FaultRecord& record() const { return record_; }

 private:
  struct Given {
    bool is_buffer = false;
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> extents, strides;
    std::uint64_t bits = 0;
    unsigned size = 8;
  };

  std::vector<std::vector<std::uint8_t>> interpret(ir::PrepareOptions::Mode mode) const {
    std::vector<std::vector<std::uint8_t>> bytes;
    for (const Given& g : given_) bytes.push_back(g.bytes);
    interp::Launch launch;
    for (unsigned a = 0; a < 3; ++a) launch.grid[a] = grid[a], launch.block[a] = block[a];
    launch.dynamic_shared_bytes = dynamic_shared;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const Given& g = given_[i];
      launch.args.push_back({.is_buffer = g.is_buffer, .bytes = &bytes[i], .extents = g.extents, .strides = g.strides, .bits = g.bits});
    }
    const interp::Outcome outcome = interp::run(ir::prepare(ir::parse_kernel("kir 1\n" + text_), {mode}), launch);
    CHECK(outcome.fault.has_value() == faults);
    CHECK_MESSAGE(outcome.misuse.empty(), (outcome.misuse.empty() ? "" : outcome.misuse[0]));
    return bytes;
  }

  static void compare(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want) {
    if (got == want) return;
    int shown = 0;
    for (std::size_t i = 0; i + 4 <= got.size() && shown < 6; i += 4) {
      std::uint32_t g, w;
      std::memcpy(&g, &got[i], 4);
      std::memcpy(&w, &want[i], 4);
      if (g == w) continue;
      ++shown;
      CAPTURE(i / 4);
      CHECK(g == w);
    }
    CHECK(got == want);
  }

  std::string text_;
  std::vector<Given> given_;
  std::vector<std::vector<std::uint8_t>> last_;
  ir::FaultRecord record_;
};

inline std::vector<std::uint32_t> iota(std::size_t n, std::uint32_t first = 0) {
  std::vector<std::uint32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + static_cast<std::uint32_t>(i);
  return v;
}
// Numbers without a pattern.
inline std::vector<std::uint32_t> noise(std::size_t n, std::uint32_t below = 0) {
  std::vector<std::uint32_t> v(n);
  std::uint64_t state = 88172645463325252ull;
  for (auto& x : v) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x = static_cast<std::uint32_t>(state >> 20);
    if (below) x %= below;
  }
  return v;
}
inline std::vector<float> reals(std::size_t n) {
  std::vector<float> v(n);
  const std::vector<std::uint32_t> bits = noise(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>(static_cast<std::int32_t>(bits[i])) * 1e-6f;
  return v;
}

}  // namespace kiln::host_test
