// Recording a lambda as a kernel, for tests of what the language records.
#pragma once
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include <kiln/kiln.h>

#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

// Evaluates the text once: it may check something itself.
#define HAS(haystack, needle)                                                                                                          \
  do {                                                                                                                                 \
    const std::string has_text = (haystack);                                                                                           \
    CHECK_MESSAGE(has_text.find(needle) != std::string::npos, "in:\n" << has_text << "\nnot found: " << std::string(needle));                   \
  } while (false)

namespace recording {

// The kernel of a body; the test fails when it cannot be recorded. Parameters are named a, b, c ...
template <class F>
kiln::ir::Kernel of(F body) {
  auto kernel = kiln::record("k", body, "(a, b, c, d)");
  if (!kernel) FAIL(kernel.error().text());
  return *kernel;
}

// The operations of the body, one a line, without indentation, numbers kept; no locations.
inline std::string body_text(const kiln::ir::Kernel& kernel) {
  std::istringstream in(kiln::ir::print(kernel, false));
  std::string line, text;
  bool inside = false;
  while (std::getline(in, line)) {
    const std::size_t start = line.find_first_not_of(' ');
    if (line == "  body {") inside = true;
    else if (line == "  }") inside = false;
    else if (inside && start != std::string::npos) text += line.substr(4) + "\n";
  }
  return text;
}
template <class F>
std::string text(F body) {
  return body_text(of(body));
}

// What the verifier says of a body; empty: good.
template <class F>
std::string verified(F body) {
  return kiln::ir::to_string(kiln::ir::verify(of(body)));
}

// How often `what` occurs in `text`.
inline int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// The recording error of a body: its message; `line` is checked to be named. The test fails when it records.
template <class F>
std::string refused(F body, unsigned line) {
  auto kernel = kiln::record("k", body, "(a, b, c, d)");
  if (kernel) {
    FAIL_CHECK("recorded:\n" << kiln::ir::print(*kernel, false));
    return "";
  }
  CHECK(kernel.error().code() == kiln::ErrorCode::CompileValidation);
  const std::string& place = kernel.error().data().place;
  INFO(kernel.error().text());
  CHECK(place.substr(place.find_last_of(':') + 1) == std::to_string(line));
  return kernel.error().data().message;
}

}  // namespace recording
