// What kernels log: who gets it, and how much of it a launch has room for.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace kiln {

// A line that a thread of a kernel logged, or that lines of a launch are missing. The texts live as long as the call that gives it.
struct LogLine {
  std::string_view kernel, text;  // without a newline
  std::string_view file;          // of the log(); empty where it is not known
  std::uint32_t line = 0;
  std::array<std::uint32_t, 3> block{}, thread{};
  std::uint64_t missing = 0;  // 0: an ordinary line; else how many lines of the launch are not here, of which the text tells
};

// Takes the lines of a device's kernels, one at a time: those of a launch after those of the launches before it on its stream, those of a
// thread in their order. It is called by the threads that wait for the device (read, sync, a launch that waits for room), after they have
// waited. It may use the client, but what the client delivers meanwhile comes after it returns, and must not wait for another thread that
// uses it. What it throws is lost with the line.
using LogSink = std::function<void(const LogLine&)>;

}  // namespace kiln
