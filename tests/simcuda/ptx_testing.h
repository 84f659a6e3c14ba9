// What the engine's tests share: one instruction applied to tables of values, kernels launched on host data.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "simcuda/engine.h"

namespace kiln::simcuda::testing {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

inline Memory& memory() {
  static Memory m(std::uint64_t{1} << 36);
  return m;
}

inline std::string header(unsigned arch = 90, unsigned version = 90) {
  return ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + "\n.target sm_" + std::to_string(arch) +
         "\n.address_size 64\n";
}

// Parameters of a launch, each aligned as its type.
class Arguments {
 public:
  template <class T>
  Arguments& add(T v) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &v, sizeof(T));
    return *this;
  }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

// An array in device memory, freed with it.
template <class T>
class Device {
 public:
  explicit Device(std::vector<T> values) : bytes_(values.size() * sizeof(T)), address_(memory().allocate(bytes_).value()) {
    std::memcpy(memory().range(address_, bytes_, Access::Write).host, values.data(), bytes_);
  }
  // Never written.
  explicit Device(std::size_t count) : bytes_(count * sizeof(T)), address_(memory().allocate(bytes_).value()) {}
  ~Device() { memory().free(address_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  u64 address() const { return address_; }
  std::vector<T> get() const {
    std::vector<T> v(bytes_ / sizeof(T));
    std::memcpy(v.data(), memory().range(address_, bytes_, Access::Read).host, bytes_);
    return v;
  }

 private:
  std::size_t bytes_;
  u64 address_;
};

struct Shape {
  std::array<u32, 3> grid{1, 1, 1}, block{1, 1, 1};
  u32 dynamic_shared = 0;
};

inline LoadResult load_text(const std::string& ptx, Target target = {90, 90}) { return load(ptx, target, memory()); }

inline RunResult launch(const LoadResult& loaded, const std::string& entry, const Shape& shape, const Arguments& arguments,
                        Options options = {}) {
  INFO(loaded.failure.log);
  REQUIRE(loaded.module != nullptr);
  Launch l;
  l.module = loaded.module.get();
  const auto& list = entries(*loaded.module);
  while (l.entry < list.size() && list[l.entry].name != entry) ++l.entry;
  REQUIRE(l.entry < list.size());
  l.grid = shape.grid;
  l.block = shape.block;
  l.dynamic_shared = shape.dynamic_shared;
  l.params = arguments.data();
  return run(l, memory(), options);
}

using Inputs = std::vector<std::array<u64, 3>>;

// The body of a kernel applied to each row: %da %db %dc hold the three values, %ra.. their low 32 bits, %ha.. their low 16; %fa.., %ga..
// (f64) likewise. The result is taken from %dr, %rr, %hr, %fr, %gr or, as 0 or 1, %pr, as `kind` says.
inline std::vector<u64> evaluate(const std::string& body, char kind, const Inputs& inputs, unsigned arch = 90, unsigned version = 90) {
  std::string take;
  switch (kind) {
    case 'r': take = "cvt.u64.u32 %dr, %rr;\n"; break;
    case 'h': take = "cvt.u64.u16 %dr, %hr;\n"; break;
    case 'f': take = "mov.b32 %rr, %fr; cvt.u64.u32 %dr, %rr;\n"; break;
    case 'g': take = "mov.b64 %dr, %gr;\n"; break;
    case 'p': take = "selp.b64 %dr, 1, 0, %pr;\n"; break;
    default: break;
  }
  const std::string ptx = header(arch, version) + R"(.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {
.reg .b64 %d<4>, %da, %db, %dc, %dr, %dt<8>;
.reg .b32 %r<8>, %ra, %rb, %rc, %rr, %rt<8>;
.reg .b16 %ha, %hb, %hc, %hr, %ht<8>;
.reg .f32 %fa, %fb, %fc, %fr, %ft<8>;
.reg .f64 %ga, %gb, %gc, %gr, %gt<8>;
.reg .pred %p, %pr, %pt<8>;
ld.param.u64 %d0, [out];
ld.param.u64 %d1, [in];
ld.param.u32 %r0, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r1, %r1, %r2, %r3;
setp.ge.u32 %p, %r1, %r0;
@%p bra DONE;
mad.wide.u32 %d1, %r1, 24, %d1;
mad.wide.u32 %d0, %r1, 8, %d0;
ld.global.b64 %da, [%d1];
ld.global.b64 %db, [%d1+8];
ld.global.b64 %dc, [%d1+16];
mov.b64 {%ra, _}, %da;
mov.b64 {%rb, _}, %db;
mov.b64 {%rc, _}, %dc;
mov.b32 {%ha, _}, %ra;
mov.b32 {%hb, _}, %rb;
mov.b32 {%hc, _}, %rc;
mov.b32 %fa, %ra;
mov.b32 %fb, %rb;
mov.b32 %fc, %rc;
mov.b64 %ga, %da;
mov.b64 %gb, %db;
mov.b64 %gc, %dc;
)" + body + "\n" + take + "st.global.b64 [%d0], %dr;\nDONE: ret;\n}\n";
  const LoadResult loaded = load_text(ptx, {std::max(arch, 90u), 90});
  INFO(body);
  INFO(loaded.failure.log);
  REQUIRE(loaded.module != nullptr);
  const Device<std::array<u64, 3>> in(inputs);
  const Device<u64> out(std::vector<u64>(inputs.size(), 0xabababababababab));
  const auto n = static_cast<u32>(inputs.size());
  const RunResult r = launch(loaded, "k", {{(n + 63) / 64, 1, 1}, {64, 1, 1}}, Arguments().add(out.address()).add(in.address()).add(n));
  if (r.violation) FAIL(r.violation->text());
  return out.get();
}

// All pairs, or triples, of a list of values.
inline Inputs pairs(const std::vector<u64>& v) {
  Inputs r;
  for (const u64 a : v)
    for (const u64 b : v) r.push_back({a, b, 0});
  return r;
}
inline Inputs triples(const std::vector<u64>& v) {
  Inputs r;
  for (const u64 a : v)
    for (const u64 b : v)
      for (const u64 c : v) r.push_back({a, b, c});
  return r;
}
inline Inputs singles(const std::vector<u64>& v) {
  Inputs r;
  for (const u64 a : v) r.push_back({a, 0, 0});
  return r;
}

// Checks every row against an independent computation; at most a few failures are told.
template <class F>
void check_table(const std::string& body, char kind, const Inputs& inputs, F expected, unsigned arch = 90) {
  const std::vector<u64> got = evaluate(body, kind, inputs, arch);
  int told = 0;
  for (std::size_t k = 0; k < inputs.size() && told < 4; ++k) {
    const u64 want = static_cast<u64>(expected(inputs[k][0], inputs[k][1], inputs[k][2]));
    if (got[k] == want) continue;
    ++told;
    INFO(body << " of " << std::hex << inputs[k][0] << " " << inputs[k][1] << " " << inputs[k][2]);
    CHECK(got[k] == want);
  }
  CHECK(told == 0);
}

inline const std::vector<u64>& integer_edges() {
  static const std::vector<u64> v{0,
                                  1,
                                  2,
                                  3,
                                  7,
                                  31,
                                  32,
                                  33,
                                  63,
                                  64,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  0x7fff,
                                  0x8000,
                                  0xffff,
                                  0x10000,
                                  0x7fffffff,
                                  0x80000000,
                                  0xfffffffe,
                                  0xffffffff,
                                  0x100000000,
                                  0x7fffffffffffffff,
                                  0x8000000000000000,
                                  0xffffffffffffffff,
                                  0x123456789abcdef0,
                                  0xfedcba9876543210,
                                  0xdeadbeef};
  return v;
}
inline u64 bits32(float v) { return std::bit_cast<u32>(v); }
inline u64 bits64(double v) { return std::bit_cast<u64>(v); }
inline float float32(u64 v) { return std::bit_cast<float>(static_cast<u32>(v)); }
inline double float64(u64 v) { return std::bit_cast<double>(v); }
inline const std::vector<u64>& float_edges() {
  static const std::vector<u64> v{0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
                                  0x80800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x40490fdb, 0xc0490fdb,
                                  0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345,
                                  0x33800000, 0x4b000001, 0x0c000001, 0x3eaaaaab, 0x42c80000, 0x1e3ce508};
  return v;
}
inline const std::vector<u64>& double_edges() {
  static const std::vector<u64> v{0,
                                  0x8000000000000000,
                                  1,
                                  0x8000000000000001,
                                  0x000fffffffffffff,
                                  0x0010000000000000,
                                  0x3ff0000000000000,
                                  0xbff0000000000000,
                                  0x3ff0000000000001,
                                  0x3fefffffffffffff,
                                  0x400921fb54442d18,
                                  0x7fefffffffffffff,
                                  0xffefffffffffffff,
                                  0x7ff0000000000000,
                                  0xfff0000000000000,
                                  0x7ff8000000000000,
                                  0x7ff0000000000001,
                                  0x3fd5555555555555,
                                  0x4059000000000000,
                                  0x41dfffffffc00000,
                                  0xc1e0000000000000,
                                  0x43e0000000000000,
                                  0x3ca0000000000000,
                                  0x36a0000000000001};
  return v;
}

}  // namespace kiln::simcuda::testing
