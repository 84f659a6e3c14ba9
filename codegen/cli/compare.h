// Where the outputs of one launch differ between two places it ran in.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "kiln/ir/kernel.h"

namespace kiln::cli {

struct Difference {
  enum class Kind { Value, Failure, Misuse } kind = Kind::Value;
  // Value: the first element, in the order of the arguments and of memory, and how many more of that buffer.
  std::size_t argument = 0;
  std::vector<std::uint64_t> index;  // one number a dimension
  std::uint64_t offset = 0;          // in elements
  std::uint64_t bits[2] = {0, 0};
  std::uint64_t differing = 0, elements = 0;
  std::string text;  // Failure, Misuse: which side, and what it said
};

// All NaN of a type are one value. `misuse` of an interpreter is a difference, too: a program that does so has no one result.
std::optional<Difference> find_difference(const ir::Kernel& kernel, const std::vector<Argument>& arguments, const Outcome (&outcomes)[2],
                                          const std::string (&names)[2]);
// Both failed, and in the same way.
bool failed_alike(const Outcome& a, const Outcome& b);

// "y[3, 7]: 0.5 (0x3f000000) on cpu, 0.25 (0x3e800000) on cuda; 12 of 64 elements differ".
std::string to_text(const Difference& difference, const ir::Kernel& kernel, const std::vector<Argument>& arguments,
                    const std::string (&names)[2]);
Json to_json(const Difference& difference, const ir::Kernel& kernel, const std::vector<Argument>& arguments);

}  // namespace kiln::cli
