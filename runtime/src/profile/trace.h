// What a timeline knows of operations, and its text.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::rt {

// Of a device. Times are the host's steady clock's, in nanoseconds.
struct TracedOperation {
  std::string name;       // of the kernel, or what it does
  std::string place;      // "file.cpp:12"; may be empty
  const char* kind = "";  // "launch", "copy", ...
  std::uint32_t queue = 0;
  std::uint64_t stream = 0;
  bool has_stream = false, has_grid = false, grid_on_device = false;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;  // of a graph
  std::int64_t begin = 0, end = 0;
};
// Of a thread of the host.
struct TracedSpan {
  const char* kind = "";                           // "host", or "call" for a host call
  std::string name = {}, kernel = {}, place = {};  // the last two may be empty
  std::uint64_t stream = 0;
  bool has_stream = false;
  std::uint32_t thread = 0;
  std::int64_t begin = 0, end = 0;
};
struct DeviceTrace {
  std::string label;
  std::vector<TracedOperation> operations;
  std::uint64_t dropped = 0;
};

// Chrome's trace format; `start` is time 0. Operations of a queue are sorted by their begin, and cut where one would reach into the next:
// the device runs them one after the other, and its clock is coarse.
std::string chrome_trace(std::int64_t start, std::vector<DeviceTrace>& devices, std::vector<TracedSpan>& host, std::uint64_t dropped);

std::int64_t host_nanoseconds();  // the steady clock

}  // namespace kiln::rt
