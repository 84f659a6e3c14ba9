// What a worker and its parent send each other: a JSON document and byte strings that go with it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "command.h"

namespace kiln::cli {

struct Message {
  Json head;
  std::vector<std::string> blobs;
};

std::string pack(const Message& message);

// Bytes as they come, messages as they are whole. Who sends may be damaged: what cannot be a message throws Failed.
class Incoming {
 public:
  void take(const char* bytes, std::size_t count) { bytes_.append(bytes, count); }
  std::optional<Message> next();

 private:
  std::string bytes_;
  std::size_t read_ = 0;
};

}  // namespace kiln::cli
