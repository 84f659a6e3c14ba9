#include "message.h"

#include <cstring>

namespace kiln::cli {
namespace {

constexpr std::uint64_t kMostBlobs = 1 << 16, kMostHead = std::uint64_t{64} << 20, kMostBytes = std::uint64_t{2} << 30;

void put(std::string& out, std::uint64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }

}  // namespace

// Head size, number of blobs, size of each; then the bytes.
std::string pack(const Message& message) {
  std::string head, out;
  Json::to_cbor(message.head, head);  // not text: a kernel's name may be any bytes
  put(out, head.size());
  put(out, message.blobs.size());
  for (const std::string& blob : message.blobs) put(out, blob.size());
  out += head;
  for (const std::string& blob : message.blobs) out += blob;
  return out;
}

std::optional<Message> Incoming::next() {
  const auto number = [&](std::size_t i) {
    std::uint64_t n = 0;
    std::memcpy(&n, bytes_.data() + read_ + i * sizeof n, sizeof n);
    return n;
  };
  const std::uint64_t have = bytes_.size() - read_;
  if (have < 16) return std::nullopt;
  const std::uint64_t head = number(0), blobs = number(1);
  if (head > kMostHead || blobs > kMostBlobs) fail("what was sent is no message");
  if (have < 16 + blobs * 8) return std::nullopt;
  std::uint64_t size = 16 + blobs * 8 + head;
  for (std::size_t i = 0; i < blobs; ++i) {
    if (number(2 + i) > kMostBytes) fail("what was sent is no message");
    size += number(2 + i);
    if (size > kMostBytes) fail("what was sent has more than " + std::to_string(kMostBytes >> 20) + " MiB");
  }
  if (have < size) {
    bytes_.reserve(read_ + size);
    return std::nullopt;
  }
  Message message;
  const char* at = bytes_.data() + read_ + 16 + blobs * 8;
  message.head = Json::from_cbor(at, at + head, true, false);
  if (message.head.is_discarded() || !message.head.is_object()) fail("what was sent is no message");
  at += head;
  for (std::size_t i = 0; i < blobs; ++i) {
    message.blobs.emplace_back(at, number(2 + i));
    at += number(2 + i);
  }
  read_ += size;
  if (read_ == bytes_.size()) bytes_.clear(), read_ = 0;
  return message;
}

}  // namespace kiln::cli
