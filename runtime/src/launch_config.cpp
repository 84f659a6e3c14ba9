#include "kiln/runtime/launch_config.h"

#include <string>

namespace kiln {
namespace {

std::uint32_t ceil_div(std::uint32_t n, std::uint32_t d) { return n / d + (n % d != 0); }

}  // namespace

void Extent32::refuse(bool negative, std::uint64_t v) {
  Error::Data data;
  data.code = ErrorCode::Validation;
  data.rule = "ExtentOutOfRange";
  if (negative) {
    data.message = "a launch extent must not be negative, and " + std::to_string(static_cast<std::int64_t>(v)) + " is";
  } else {
    data.message = "a launch extent must be below 2^32, and " + std::to_string(v) + " is not; spread the items over more axes";
    data.requested = v;
  }
  data.limit = 0xffffffffu;
  throw Exception(Error(std::move(data)));
}

LaunchConfig for_num_elems(Extent32 n) {
  LaunchConfig config;
  config.block = Dim3(256u);
  config.grid = Dim3(ceil_div(n.value, 256u));
  return config;
}

LaunchConfig cover(Cover items, Dim3 block) {
  const auto blocks = [](Extent32 n, std::uint32_t b) {
    return b == 0 ? n.value : ceil_div(n.value, b);
  };  // a block of 0 is refused at launch
  LaunchConfig config;
  config.block = block;
  config.grid = Dim3(blocks(items.cols, block.x), blocks(items.rows, block.y), blocks(items.planes, block.z));
  return config;
}

}  // namespace kiln
