// Streams, events, host functions: what is done in which order, and what the driver says meanwhile.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "simcuda/driver_fixture.h"

using namespace kiln::simcuda::test;

namespace {

// A host function that appends a number to a list.
struct Note {
  std::vector<int>* list;
  int number;
  static void write(void* data) {
    auto* note = static_cast<Note*>(data);
    note->list->push_back(note->number);
  }
};

struct FlagNote {
  std::atomic<bool> done{false};
  static void write(void* data) { static_cast<FlagNote*>(data)->done = true; }
};

}  // namespace

TEST_CASE("a stream does its work in order") {
  const DeviceSession session;
  Library& lib = library();
  for (const CUstream stream : {CUstream{nullptr}, make_stream(CU_STREAM_DEFAULT), make_stream(CU_STREAM_NON_BLOCKING)}) {
    std::vector<int> list;
    std::vector<Note> notes;
    for (int i = 0; i < 200; ++i) notes.push_back({&list, i});
    for (Note& n : notes) KILN_OK(lib.cuLaunchHostFunc(stream, Note::write, &n));
    KILN_OK(lib.cuStreamSynchronize(stream));
    std::vector<int> expected(200);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(list == expected);
  }
}

TEST_CASE("streams do not wait for each other") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream a = make_stream(), b = make_stream();
  const Gate gate(a);
  KILN_CALL(lib.cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  KILN_CALL(lib.cuStreamQuery(b), CUDA_SUCCESS);
  FlagNote note;
  KILN_OK(lib.cuLaunchHostFunc(b, FlagNote::write, &note));
  KILN_OK(lib.cuStreamSynchronize(b));
  CHECK(note.done);
  KILN_CALL(lib.cuStreamQuery(a), CUDA_ERROR_NOT_READY);
}

TEST_CASE("a stream has the priority that it was made with, within the device's range, and 0 without one") {
  const DeviceSession session;
  Library& lib = library();
  int least = 1, greatest = 1, priority = 1;
  KILN_OK(lib.cuCtxGetStreamPriorityRange(&least, &greatest));
  CHECK(least == 0);
  CHECK(greatest == -5);
  KILN_OK(lib.cuCtxGetStreamPriorityRange(nullptr, nullptr));
  for (const auto& [wanted, got] : {std::pair{0, 0}, {-3, -3}, {-5, -5}, {-9, -5}, {4, 0}}) {
    CUstream stream = nullptr;
    KILN_OK(lib.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, wanted));
    KILN_OK(lib.cuStreamGetPriority(stream, &priority));
    CHECK(priority == got);
    FlagNote note;
    KILN_OK(lib.cuLaunchHostFunc(stream, FlagNote::write, &note));
    KILN_OK(lib.cuStreamSynchronize(stream));
    CHECK(note.done);
    KILN_OK(lib.cuStreamDestroy(stream));
  }
  KILN_OK(lib.cuStreamGetPriority(make_stream(), &priority));
  CHECK(priority == 0);
  KILN_OK(lib.cuStreamGetPriority(nullptr, &priority));
  CHECK(priority == 0);
  KILN_CALL(lib.cuStreamGetPriority(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuStreamCreateWithPriority(nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  CUstream made = nullptr;
  KILN_CALL(lib.cuStreamCreateWithPriority(&made, 2, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the null stream waits for the blocking streams and they for it, non-blocking streams do neither") {
  const DeviceSession session;
  Library& lib = library();
  for (const CUstream null : {CUstream{nullptr}, reinterpret_cast<CUstream>(1)}) {
    const CUstream blocking = make_stream(CU_STREAM_DEFAULT), free_running = make_stream(CU_STREAM_NON_BLOCKING);
    FlagNote after_blocking, in_free, after_null;
    {
      const Gate gate(blocking);
      KILN_OK(lib.cuLaunchHostFunc(null, FlagNote::write, &after_blocking));
      KILN_OK(lib.cuLaunchHostFunc(free_running, FlagNote::write, &in_free));
      KILN_OK(lib.cuStreamSynchronize(free_running));
      CHECK(in_free.done);
      KILN_CALL(lib.cuStreamQuery(null), CUDA_ERROR_NOT_READY);
      CHECK(!after_blocking.done);
    }
    KILN_OK(lib.cuStreamSynchronize(null));
    CHECK(after_blocking.done);
    {
      const Gate gate(null);
      const CUstream younger = make_stream(CU_STREAM_DEFAULT);
      KILN_OK(lib.cuLaunchHostFunc(younger, FlagNote::write, &after_null));
      KILN_CALL(lib.cuStreamQuery(younger), CUDA_ERROR_NOT_READY);
      CHECK(!after_null.done);
    }
    KILN_OK(lib.cuCtxSynchronize());
    CHECK(after_null.done);
  }
}

TEST_CASE("an event is done when what was in its stream at the record is done, not later") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  KILN_CALL(lib.cuEventQuery(event), CUDA_SUCCESS);  // never recorded: an empty set of work
  KILN_CALL(lib.cuEventSynchronize(event), CUDA_SUCCESS);
  Gate first(stream);
  KILN_OK(lib.cuEventRecord(event, stream));
  Gate second(stream);
  KILN_CALL(lib.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  first.open();
  KILN_OK(lib.cuEventSynchronize(event));
  KILN_CALL(lib.cuEventQuery(event), CUDA_SUCCESS);
  KILN_CALL(lib.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  second.open();
  KILN_OK(lib.cuStreamSynchronize(stream));
}

TEST_CASE("a wait takes the event's state at the call, and a later record does not change it") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream a = make_stream(), b = make_stream();
  const CUevent event = make_event();
  FlagNote note;
  Gate first(a);
  KILN_OK(lib.cuEventRecord(event, a));
  KILN_OK(lib.cuStreamWaitEvent(b, event, 0));
  KILN_OK(lib.cuLaunchHostFunc(b, FlagNote::write, &note));
  Gate second(a);
  KILN_OK(lib.cuEventRecord(event, a));  // b does not wait for this one
  CHECK(!note.done);
  KILN_CALL(lib.cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  first.open();
  KILN_OK(lib.cuStreamSynchronize(b));
  CHECK(note.done);
  KILN_CALL(lib.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  second.open();
  KILN_OK(lib.cuEventSynchronize(event));
}

TEST_CASE("a wait outlives the event that it waits for, and work outlives its stream") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream a = make_stream(), b = make_stream();
  const CUevent event = make_event();
  FlagNote note;
  {
    const Gate gate(a);
    KILN_OK(lib.cuEventRecord(event, a));
    KILN_OK(lib.cuStreamWaitEvent(b, event, 0));
    KILN_OK(lib.cuEventDestroy(event));
    KILN_OK(lib.cuLaunchHostFunc(b, FlagNote::write, &note));
    KILN_OK(lib.cuStreamDestroy(b));
    CHECK(!note.done);
  }
  KILN_OK(lib.cuCtxSynchronize());  // waits for streams that are no more, too
  CHECK(note.done);
  KILN_CALL(lib.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuStreamQuery(b), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("waiting for an event that was never recorded is no wait") {
  const DeviceSession session;
  const CUstream stream = make_stream();
  KILN_CALL(library().cuStreamWaitEvent(stream, make_event(), 0), CUDA_SUCCESS);
  KILN_CALL(library().cuStreamQuery(stream), CUDA_SUCCESS);
}

TEST_CASE("elapsed time is positive and not less than the time that passed") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent start = make_event(CU_EVENT_DEFAULT), end = make_event(CU_EVENT_DEFAULT);
  const auto wait = [](void* time) {
    const auto from = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    *static_cast<double*>(time) = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  };
  double inside = 0;
  float milliseconds = -1;
  KILN_OK(lib.cuEventRecord(start, stream));
  KILN_OK(lib.cuLaunchHostFunc(stream, wait, &inside));
  KILN_OK(lib.cuEventRecord(end, stream));
  KILN_OK(lib.cuEventSynchronize(end));
  KILN_OK(lib.cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= inside);
  KILN_OK(lib.cuEventElapsedTime(&milliseconds, end, start));
  CHECK(milliseconds < 0);
  for (int i = 0; i < 100; ++i) {  // nothing between them
    KILN_OK(lib.cuEventRecord(start, stream));
    KILN_OK(lib.cuEventRecord(end, stream));
    KILN_OK(lib.cuEventSynchronize(end));
    KILN_OK(lib.cuEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0);
  }
}

TEST_CASE("elapsed time is refused for events without timing, not recorded or not done") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent a = make_event(CU_EVENT_DEFAULT), b = make_event(CU_EVENT_DEFAULT), untimed = make_event(CU_EVENT_DISABLE_TIMING);
  float ms = 0;
  KILN_CALL(lib.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
  KILN_OK(lib.cuEventRecord(a, stream));
  KILN_OK(lib.cuEventRecord(untimed, stream));
  KILN_CALL(lib.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuEventElapsedTime(&ms, untimed, a), CUDA_ERROR_INVALID_HANDLE);
  {
    const Gate gate(stream);
    KILN_OK(lib.cuEventRecord(b, stream));
    KILN_CALL(lib.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
  }
  KILN_OK(lib.cuEventSynchronize(b));
  KILN_CALL(lib.cuEventElapsedTime(nullptr, a, b), CUDA_ERROR_INVALID_VALUE);
  CUcontext t4 = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  const CUevent other = make_event(CU_EVENT_DEFAULT);
  KILN_OK(lib.cuEventRecord(other, nullptr));
  KILN_OK(lib.cuEventSynchronize(other));
  KILN_CALL(lib.cuEventElapsedTime(&ms, a, other), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("streams and events across devices: records need one context, waits do not") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  const CUstream here = make_stream();
  const CUevent mine = make_event();
  CUcontext t4 = nullptr, found = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  const CUstream there = make_stream();
  KILN_CALL(lib.cuEventRecord(mine, there), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuEventRecord(mine, nullptr), CUDA_ERROR_INVALID_HANDLE);
  FlagNote note;
  {
    const Gate gate(here);
    KILN_CALL(lib.cuEventRecord(mine, here), CUDA_SUCCESS);  // though another context is current
    KILN_CALL(lib.cuStreamWaitEvent(there, mine, 0), CUDA_SUCCESS);
    KILN_OK(lib.cuLaunchHostFunc(there, FlagNote::write, &note));
    KILN_CALL(lib.cuStreamQuery(there), CUDA_ERROR_NOT_READY);
    CHECK(!note.done);
  }
  KILN_OK(lib.cuStreamSynchronize(there));
  CHECK(note.done);
  KILN_CALL(lib.cuStreamSynchronize(here), CUDA_SUCCESS);
  KILN_OK(lib.cuStreamGetCtx(here, &found));
  CHECK(found == session.context);
  KILN_OK(lib.cuStreamGetCtx(nullptr, &found));
  CHECK(found == t4);
}

TEST_CASE("handles that are none, that are dead or that stand for something else are refused") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  KILN_OK(lib.cuStreamDestroy(stream));
  KILN_OK(lib.cuEventDestroy(event));
  int local = 0;
  CUcontext context = nullptr;
  for (const CUstream bad :
       {stream, reinterpret_cast<CUstream>(&local), reinterpret_cast<CUstream>(make_event()), reinterpret_cast<CUstream>(2)}) {
    KILN_CALL(lib.cuStreamSynchronize(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamQuery(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamDestroy(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamGetCtx(bad, &context), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamWaitEvent(bad, make_event(), 0), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuEventRecord(make_event(), bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuLaunchHostFunc(bad, FlagNote::write, &local), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuMemsetD8Async(0, 0, 0, bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamBeginCapture(bad, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_INVALID_HANDLE);
  }
  KILN_CALL(lib.cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);  // the null stream is nobody's to destroy
  for (const CUevent bad : {event, CUevent{nullptr}, reinterpret_cast<CUevent>(&local), reinterpret_cast<CUevent>(make_stream())}) {
    KILN_CALL(lib.cuEventQuery(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuEventSynchronize(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuEventDestroy(bad), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuEventRecord(bad, nullptr), CUDA_ERROR_INVALID_HANDLE);
    KILN_CALL(lib.cuStreamWaitEvent(nullptr, bad, 0), CUDA_ERROR_INVALID_HANDLE);
    float ms = 0;
    KILN_CALL(lib.cuEventElapsedTime(&ms, bad, bad), CUDA_ERROR_INVALID_HANDLE);
  }
  CUstream made = nullptr;
  CUevent made_event = nullptr;
  KILN_CALL(lib.cuStreamCreate(&made, 2), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuEventCreate(&made_event, 16), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuStreamWaitEvent(nullptr, make_event(), 8), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuLaunchHostFunc(nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a handle is never given out again") {
  const DeviceSession session;
  Library& lib = library();
  const CUevent first = make_event();
  KILN_OK(lib.cuEventDestroy(first));
  for (int i = 0; i < 100; ++i) {
    const CUevent next = make_event();
    CHECK(next != first);
    KILN_OK(lib.cuEventDestroy(next));
  }
  KILN_CALL(lib.cuEventQuery(first), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("without a current context nothing of a context can be used") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  CUcontext popped = nullptr;
  KILN_OK(lib.cuCtxPopCurrent(&popped));
  CUstream made = nullptr;
  CUevent made_event = nullptr;
  CUdeviceptr address = 0;
  void* pointer = nullptr;
  KILN_CALL(lib.cuStreamCreate(&made, 0), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuEventCreate(&made_event, 0), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuMemAlloc(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuMemHostAlloc(&pointer, 4, 0), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuStreamDestroy(stream), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuEventRecord(event, stream), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuEventDestroy(event), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  KILN_OK(lib.cuCtxPushCurrent(popped));
  KILN_CALL(lib.cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_CASE("a host function must not call the driver") {
  const DeviceSession session;
  Library& lib = library();
  struct Answers {
    CUresult sync, alloc, name;
  } answers{};
  const auto call = [](void* data) {
    auto& a = *static_cast<Answers*>(data);
    CUdeviceptr address = 0;
    const char* name = nullptr;
    a.sync = library().cuCtxSynchronize();
    a.alloc = library().cuMemAlloc(&address, 4);
    a.name = library().cuGetErrorName(a.sync, &name);
  };
  KILN_OK(lib.cuLaunchHostFunc(nullptr, call, &answers));
  KILN_OK(lib.cuStreamSynchronize(nullptr));
  CHECK(answers.sync == CUDA_ERROR_NOT_PERMITTED);
  CHECK(answers.alloc == CUDA_ERROR_NOT_PERMITTED);
  CHECK(answers.name == CUDA_SUCCESS);
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_CASE("a slow stream is slow, the others are not") {
  const DeviceSession session(R"({"slow": [{"stream": 1, "ms": 30}]})");
  Library& lib = library();
  const CUstream slow = make_stream(), fast = make_stream();
  FlagNote in_slow, in_fast;
  const auto from = std::chrono::steady_clock::now();
  KILN_OK(lib.cuLaunchHostFunc(slow, FlagNote::write, &in_slow));
  KILN_OK(lib.cuLaunchHostFunc(fast, FlagNote::write, &in_fast));
  KILN_OK(lib.cuStreamSynchronize(fast));
  CHECK(in_fast.done);
  KILN_OK(lib.cuStreamSynchronize(slow));
  CHECK(in_slow.done);
  CHECK(std::chrono::steady_clock::now() - from >= std::chrono::milliseconds(30));  // at least the delay: no matter of speed
}

TEST_CASE("late events come late, and their stream waits for them") {
  const DeviceSession session(R"({"late_events_ms": 20})");
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  const auto from = std::chrono::steady_clock::now();
  KILN_OK(lib.cuEventRecord(event, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  KILN_CALL(lib.cuEventQuery(event), CUDA_SUCCESS);
  CHECK(std::chrono::steady_clock::now() - from >= std::chrono::milliseconds(20));
}

TEST_CASE("any entry point fails the n-th time that the fault script names") {
  const DeviceSession session(R"({"calls": [{"name": "cuEventRecord", "n": 2, "code": 999}, {"name": "cuStreamCreate", "code": 2}]})");
  Library& lib = library();
  const CUevent event = make_event();
  KILN_CALL(lib.cuEventRecord(event, nullptr), CUDA_SUCCESS);
  KILN_CALL(lib.cuEventRecord(event, nullptr), CUDA_ERROR_UNKNOWN);
  KILN_CALL(lib.cuEventRecord(event, nullptr), CUDA_SUCCESS);
  CUstream stream = nullptr;
  KILN_CALL(lib.cuStreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_CALL(lib.cuStreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("a wrong fault script is refused with its place, and the old one stays") {
  const Session session(R"({"driver_version": 12020})");
  Library& lib = library();
  struct Row {
    const char* script;
    const char* says;
  };
  for (const Row& row : {Row{"{", "no JSON"}, Row{"[]", "must be an object"}, Row{R"({"allocs": []})", "'allocs'"},
                         Row{R"({"kernels": [{"name": "k", "fault": "boom"}]})", "kernels[0] has an unknown fault 'boom'"},
                         Row{R"({"allocations": [{"n": 0}]})", "the first is number 1"}, Row{R"({"allocations": [{"n": "x"}]})", "'n'"},
                         Row{R"({"init": "CUDA_ERROR_NONE"})", "CUDA_ERROR_NONE"}, Row{R"({"order": "sideways"})", "sideways"},
                         Row{R"({"allocations": [{"n": -1}]})", "'n': -1"}, Row{R"({"allocations": [{"n": 1.5}]})", "'n': 1.5"},
                         Row{R"({"workers": 4294967296})", "'workers': 4294967296"},
                         Row{R"({"driver_version": 4294967296})", "'driver_version'"}, Row{R"({"slow": [{"ms": 1e300}]})", "'ms'"},
                         Row{R"({"slow": [{"ms": -5}]})", "'ms': -5"}, Row{R"({"late_events_ms": 1e18})", "'late_events_ms'"},
                         Row{R"({"calls": [{}]})", "calls[0] has no 'name'"}, Row{"@/no/such/file.json", "/no/such/file.json"}}) {
    CAPTURE(row.script);
    CHECK(lib.configure(row.script) == 1);
    CHECK_MESSAGE(std::string(lib.last_report()).find(row.says) != std::string::npos, lib.last_report());
    int version = 0;
    KILN_OK(lib.cuDriverGetVersion(&version));
    CHECK(version == 12020);
  }
}
