// Bytes as the section of a module holds them, registered while it lives.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "kiln/runtime/bundle.h"

namespace kiln::test {

class Module {
 public:
  explicit Module(const std::string& content)
      : bytes_((content.size() + 15) / 16), registered_(fill(content), bytes_.data() + bytes_.size()) {}

 private:
  struct alignas(16) Block {
    char bytes[16];
  };
  const void* fill(const std::string& content) {
    if (!content.empty()) std::memcpy(bytes_.data(), content.data(), content.size());
    return bytes_.data();
  }
  std::vector<Block> bytes_;
  BundleModule registered_;
};

}  // namespace kiln::test
