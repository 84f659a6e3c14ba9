// The simulated driver as a program sees it: opened by name, its entry points looked up, nothing linked.
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/driver_entries.h"

namespace kiln::simcuda::test {
using namespace kiln::cuda;

struct Library : DriverEntries {
  void* handle = nullptr;
  GetProcAddress cuGetProcAddress = nullptr;
  int (*configure)(const char* json) = nullptr;
  void (*reset)() = nullptr;
  const char* (*last_report)() = nullptr;
  unsigned long long (*count)(const char* what) = nullptr;
};
// Opened once. All functions are there or the test program ends.
Library& library();
void* symbol(const char* name);  // of the library; null: none

// A driver that was just started with this fault script; forgotten at the end, with all that it was given.
class Session {
 public:
  explicit Session(const std::string& script = "{}");
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

// A session with a device's context current on this thread.
class DeviceSession : public Session {
 public:
  explicit DeviceSession(const std::string& script = "{}", int device = 0);
  ~DeviceSession();
  CUcontext context = nullptr;
};

// Shorthands for what must succeed.
CUdeviceptr allocate(std::size_t bytes);
CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent make_event(unsigned flags = CU_EVENT_DISABLE_TIMING);
void* allocate_pinned(std::size_t bytes);

// A stream does not go on until the gate is opened.
class Gate {
 public:
  explicit Gate(CUstream stream);
  ~Gate();  // opens it
  void open();

 private:
  struct State;
  State* state_;
};

}  // namespace kiln::simcuda::test

// The answer of a call, in the words of a failed test.
#define KILN_CALL(call, code) CHECK_MESSAGE(static_cast<int>(call) == static_cast<int>(code), #call)
#define KILN_OK(call) REQUIRE_MESSAGE(static_cast<int>(call) == 0, #call)
