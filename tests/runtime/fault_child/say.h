// What the program says of each operation: a line.
#pragma once
#include <kiln/kiln.h>

#include <cstdio>
#include <string>

// A line "what: ok ..." or "what: CODE [poisoned] [refusal] text with | for line breaks".
inline void say(const char* what, const kiln::Error& error) {
  std::string text = error.text();
  for (char& c : text)
    if (c == '\n') c = '|';
  std::printf("%s: %s%s%s %s\n", what, name(error.code()), error.is_device_poisoned() ? " poisoned" : "",
              error.is_refusal() ? " refusal" : "", text.c_str());
}
inline void say(const char* what, const kiln::Result<void>& result) {
  if (result.has_value()) std::printf("%s: ok\n", what);
  else say(what, result.error());
}
inline void say_read(const char* what, const kiln::Buffer<kiln::u32>& buffer) {
  const auto read = buffer.read();
  if (!read.has_value()) return say(what, read.error());
  bool same = true;
  for (const kiln::u32 v : *read) same = same && v == (*read)[0];
  std::printf("%s: ok %s%u\n", what, same ? "" : "mixed ", (*read)[0]);
}
inline void say_check(const char* what, const kiln::Buffer<kiln::u32>& buffer) {
  const kiln::Binding binding = buffer.binding();
  say(what, kiln::rt::check(buffer.client(), {&binding, 1}));
}
