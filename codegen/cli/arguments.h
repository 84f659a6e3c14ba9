// The arguments of `kiln run`: in:f32:[1,2,3]  in:f32:@file.bin  in:u32:iota:1024  in:f32:32x32:iota  in:f32:32x32:random:7  out:f32:32x32
// inout:...  f32:2.5
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "command.h"
#include "kiln/ir/kernel.h"

namespace kiln::cli {

struct Argument {
  std::string text;  // as written
  bool is_buffer = false;
  ir::Access access = ir::Access::In;  // buffers
  ir::Type type = ir::Type::Void;
  std::vector<std::uint64_t> extents;  // buffers
  std::vector<std::uint8_t> bytes;     // buffers: the contents before the launch; zero for `out`
  std::uint64_t bits = 0;              // scalars
};

// Throws a usage error that quotes the text and says what is wrong with it; Failed when a file cannot be read or has the wrong size.
Argument parse_argument(const std::string& text);

// Holds the arguments against the kernel's signature: number, kinds, element types, ranks. Throws a usage error that names the first that
// differs.
void match_arguments(const ir::Kernel& kernel, const std::vector<Argument>& arguments);

}  // namespace kiln::cli
