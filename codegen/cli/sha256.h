// SHA-256 (FIPS 180-4), as `sha256sum` prints it: what somebody who gets files can check with what is on every machine.
#pragma once
#include <string>
#include <string_view>

namespace kiln::cli {

std::string sha256(std::string_view bytes);  // 64 hexadecimal digits

}  // namespace kiln::cli
