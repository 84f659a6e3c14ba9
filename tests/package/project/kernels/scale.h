#pragma once

namespace demo {

enum class Side : unsigned char { Left, Right };
struct ScaleCfg {
  bool twice = false;
  unsigned factor = 2;
  Side side = Side::Left;
};

}  // namespace demo
