// How a value varies over the 32 lanes of a warp: the analysis that decides what is a scalar, what is base + stride * lane, and what is a
// vector.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "host/structure.h"
#include "kiln/ir/kernel.h"

namespace kiln::codegen::host {

inline constexpr unsigned kLanes = 32;

// What is known of the block when code is made, and how thread ids lie in a warp, which follows from it: of an exact shape all, of one
// that is given at launch only bounds (CompileOptions::block has the forms). What a launch says is a value of the emitter's
// (emit_threads.cpp). Lane l is in row l / width at column l % width; width is a power of two, and 32 means one row.
struct Geometry {
  // One of the forms; is_block_form() tells.
  explicit Geometry(const std::array<std::uint32_t, 3>& block);

  enum class Axis : std::uint8_t { Zero, Column, Row, Uniform, Irregular };
  std::array<std::uint32_t, 3> dim;                    // the length of an axis; where that is given at launch, the greatest there may be
  std::array<bool, 3> at_launch{false, false, false};  // per axis
  std::uint32_t most_warps;                            // with the partial one
  std::uint32_t width = kLanes;
  std::vector<unsigned> order;  // the axes that may be longer than 1, fastest first
  std::array<Axis, 3> axis{Axis::Zero, Axis::Zero, Axis::Zero};
  bool exact() const { return !at_launch[0]; }  // nothing is left to the launch
};
bool is_block_form(const std::array<std::uint32_t, 3>& block);

struct Shape {
  enum class Kind : std::uint8_t { None, Uniform, Affine, Varying } kind = Kind::None;  // None: not reached yet
  // Affine: value(l) = base + column * (l % width) + row * (l / width), modulo 2^bits.
  std::int64_t column = 0, row = 0;
  // Affine: for each active lane the formula holds without the modulo too, base taken in the type's signedness.
  bool exact = false;
  // Integers: bounds of the bit pattern read as unsigned, over the active lanes; `low` also holds for the base.
  std::uint64_t low = 0, high = ~std::uint64_t{0};
  // Integers: so many low bits of the value (of an affine one: of the base) are zero.
  unsigned zeros = 0;

  bool uniform() const { return kind == Kind::Uniform; }
  bool affine() const { return kind == Kind::Affine; }
  bool varying() const { return kind == Kind::Varying; }
  bool operator==(const Shape&) const = default;
};

struct Shapes {
  Shapes(const ir::Kernel& kernel, const Structure& structure, const Geometry& geometry);

  std::vector<Shape> value;  // per op
  std::vector<Shape> slot;   // per slot
  // Per slot: a lane that was inactive at a set never reads the slot before it sets it again. Then a set needs no mask.
  std::vector<char> coherent;
  std::vector<char> set_first;  // per slot: every way into the innermost region of all its uses begins with a set
  // Per op, for control flow: active lanes may take different ways (loops: also different numbers of iterations).
  std::vector<char> divergent;

  const Shape& operator[](ir::ValueId v) const { return value[v]; }
};

}  // namespace kiln::codegen::host
