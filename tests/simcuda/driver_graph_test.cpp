// Stream capture with its rules, and graphs.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "simcuda/driver_ptx.h"

using namespace kiln::simcuda::test;

namespace {

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kThread = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

std::uint32_t read_word(CUdeviceptr from, CUstream stream = nullptr) {
  std::uint32_t word = 0;
  KILN_OK(library().cuMemcpyDtoHAsync(&word, from, 4, stream));
  return word;
}

void fill(CUdeviceptr to, unsigned value, CUstream stream) { KILN_OK(library().cuMemsetD32Async(to, value, 1, stream)); }

CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  KILN_OK(library().cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  KILN_OK(library().cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  KILN_OK(library().cuStreamIsCapturing(stream, &status));
  return status;
}

// Ends the capture of a stream and says with which answer.
void check_end(CUstream stream, CUresult code) {
  CUgraph graph = reinterpret_cast<CUgraph>(1);
  KILN_CALL(library().cuStreamEndCapture(stream, &graph), code);
  if (code != CUDA_SUCCESS) CHECK(graph == nullptr);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

}  // namespace

TEST_CASE("what is captured runs when the graph is launched, each time") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4), b = allocate(4);
  fill(a, 1, stream);
  fill(b, 2, stream);
  KILN_OK(lib.cuStreamSynchronize(stream));
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  fill(a, 7, stream);
  KILN_OK(lib.cuMemcpyDtoDAsync(b, a, 4, stream));
  const CUgraph graph = end(stream);
  CHECK(read_word(a) == 1);  // nothing has run yet
  CHECK(read_word(b) == 2);
  const CUgraphExec exec = instantiate(graph);
  KILN_OK(lib.cuGraphDestroy(graph));  // the executable graph is a copy
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  CHECK(read_word(b) == 7);
  fill(b, 3, stream);
  KILN_OK(lib.cuStreamSynchronize(stream));  // the null stream does not wait for a non-blocking one
  KILN_OK(lib.cuGraphLaunch(exec, nullptr));
  KILN_OK(lib.cuCtxSynchronize());
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  CHECK(read_word(b) == 7);
  KILN_CALL(lib.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  KILN_CALL(lib.cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  CHECK(lib.count("graphs") == 0);
}

TEST_CASE("an empty capture is an empty graph, and a launch of it keeps the order") {
  const DeviceSession session;
  const CUstream stream = make_stream();
  KILN_OK(library().cuStreamBeginCapture(stream, kGlobal));
  const CUgraphExec exec = instantiate(end(stream));
  const Gate gate(stream);
  KILN_OK(library().cuGraphLaunch(exec, stream));
  KILN_CALL(library().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
}

TEST_CASE("a capture forks to other streams and joins them through events") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream origin = make_stream(), side = make_stream();
  const CUevent forked = make_event(), joined = make_event();
  const CUdeviceptr a = allocate(4), b = allocate(4), c = allocate(4);
  KILN_OK(lib.cuStreamBeginCapture(origin, kGlobal));
  fill(a, 5, origin);
  KILN_OK(lib.cuEventRecord(forked, origin));
  KILN_OK(lib.cuStreamWaitEvent(side, forked, 0));
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  KILN_OK(lib.cuMemcpyDtoDAsync(b, a, 4, side));
  fill(a + 0, 5, origin);
  KILN_OK(lib.cuEventRecord(joined, side));
  KILN_OK(lib.cuStreamWaitEvent(origin, joined, 0));
  KILN_OK(lib.cuMemcpyDtoDAsync(c, b, 4, origin));
  const CUgraphExec exec = instantiate(end(origin));
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  KILN_OK(lib.cuGraphLaunch(exec, origin));
  KILN_OK(lib.cuStreamSynchronize(origin));
  CHECK(read_word(c) == 5);
  KILN_CALL(lib.cuStreamSynchronize(side), CUDA_SUCCESS);
}

TEST_CASE("branches of a graph that do not depend on each other run at once") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream origin = make_stream(), side = make_stream();
  const CUevent forked = make_event(), joined = make_event();
  // Each branch waits for the other one: in a row they would wait for ever.
  struct Meeting {
    std::atomic<int> here{0};
    static void arrive(void* data) {
      auto& m = *static_cast<Meeting*>(data);
      for (++m.here; m.here < 2;) std::this_thread::yield();
    }
  } meeting;
  KILN_OK(lib.cuStreamBeginCapture(origin, kGlobal));
  KILN_OK(lib.cuEventRecord(forked, origin));
  KILN_OK(lib.cuStreamWaitEvent(side, forked, 0));
  KILN_OK(lib.cuLaunchHostFunc(origin, Meeting::arrive, &meeting));
  KILN_OK(lib.cuLaunchHostFunc(side, Meeting::arrive, &meeting));
  KILN_OK(lib.cuEventRecord(joined, side));
  KILN_OK(lib.cuStreamWaitEvent(origin, joined, 0));
  const CUgraphExec exec = instantiate(end(origin));
  KILN_OK(lib.cuGraphLaunch(exec, origin));
  KILN_OK(lib.cuStreamSynchronize(origin));
  CHECK(meeting.here == 2);
}

TEST_CASE("launches of one executable graph come one after the other, on whichever streams") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream a = make_stream(), b = make_stream();
  struct Inside {
    std::atomic<int> now{0}, most{0}, times{0};
    static void enter(void* data) {
      auto& i = *static_cast<Inside*>(data);
      const int n = ++i.now;
      int most = i.most;
      while (n > most && !i.most.compare_exchange_weak(most, n)) {}
      std::this_thread::yield();
      ++i.times;
      --i.now;
    }
  } inside;
  KILN_OK(lib.cuStreamBeginCapture(a, kGlobal));
  KILN_OK(lib.cuLaunchHostFunc(a, Inside::enter, &inside));
  const CUgraphExec exec = instantiate(end(a));
  for (int i = 0; i < 20; ++i) KILN_OK(lib.cuGraphLaunch(exec, i % 2 == 0 ? a : b));
  KILN_OK(lib.cuGraphExecDestroy(exec));  // what was launched still runs
  KILN_OK(lib.cuCtxSynchronize());
  CHECK(inside.times == 20);
  CHECK(inside.most == 1);
}

TEST_CASE("a graph launched into a capture becomes part of it") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4), b = allocate(4);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuMemcpyDtoDAsync(b, a, 4, stream));
  const CUgraphExec inner = instantiate(end(stream));
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  fill(a, 9, stream);
  KILN_OK(lib.cuGraphLaunch(inner, stream));
  fill(a, 10, stream);
  const CUgraphExec outer = instantiate(end(stream));
  KILN_OK(lib.cuGraphExecDestroy(inner));
  KILN_OK(lib.cuGraphLaunch(outer, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  CHECK(read_word(a) == 10);
  CHECK(read_word(b) == 9);
}

TEST_CASE("a captured copy from host memory reads it at each launch") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4);
  std::uint32_t pageable = 1;
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuMemcpyHtoDAsync(a, &pageable, 4, stream));
  const CUgraphExec exec = instantiate(end(stream));
  for (std::uint32_t value : {11u, 12u}) {
    pageable = value;
    KILN_OK(lib.cuGraphLaunch(exec, stream));
    KILN_OK(lib.cuStreamSynchronize(stream));
    CHECK(read_word(a) == value);
  }
}

TEST_CASE("a graph whose memory was freed ends as on a device: with an illegal address") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  fill(a, 1, stream);
  const CUgraphExec exec = instantiate(end(stream));
  KILN_OK(lib.cuMemFree(a));
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(std::string(lib.last_report()).find("freed") != std::string::npos);
}

TEST_CASE("a graph whose page-locked memory was freed does not touch it") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4);
  void* pinned = allocate_pinned(4);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuMemcpyDtoHAsync(pinned, a, 4, stream));
  const CUgraphExec exec = instantiate(end(stream));
  KILN_OK(lib.cuMemFreeHost(pinned));
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(std::string(lib.last_report()).find("was freed") != std::string::npos);
}

TEST_CASE("a graph whose module was unloaded is refused with a report") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUmodule module = load();
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(launch(get(module, "none"), config(1, 1, stream)));
  const CUgraphExec exec = instantiate(end(stream));
  KILN_OK(lib.cuModuleUnload(module));
  KILN_CALL(lib.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
  CHECK(std::string(lib.last_report()).find("unloaded") != std::string::npos);
}

TEST_CASE("wrong uses of capture and graphs are refused") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstreamCaptureStatus status{};
  KILN_CALL(lib.cuStreamBeginCapture(nullptr, kGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  KILN_CALL(lib.cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(3)), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  KILN_CALL(lib.cuStreamEndCapture(stream, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuStreamIsCapturing(stream, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphInstantiate(&exec, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphLaunch(nullptr, stream), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphDestroy(nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_CALL(lib.cuStreamBeginCapture(stream, kGlobal), CUDA_ERROR_ILLEGAL_STATE);
  KILN_OK(lib.cuStreamIsCapturing(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  graph = end(stream);
  KILN_CALL(lib.cuGraphInstantiate(&exec, graph, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGraphInstantiate(nullptr, graph, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("what synchronises or is unsafe breaks a capture, each in its modes") {
  // What a call of this or of another thread answers while a stream captures in each mode. Success leaves the capture alone.
  struct Row {
    const char* what;
    std::function<CUresult(CUstream capturing)> call;
    CUresult own[3];  // global, thread-local, relaxed
    CUresult other[3];
  };
  constexpr CUresult ok = CUDA_SUCCESS, no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, captured = CUDA_ERROR_CAPTURED_EVENT;
  Library& lib = library();
  static CUstream idle;
  static CUevent recorded_before, recorded_inside;
  static CUdeviceptr memory;
  static void* pinned;
  const Row rows[] = {
      {"allocating",
       [&](CUstream) {
         CUdeviceptr p = 0;
         return lib.cuMemAlloc(&p, 4);
       },
       {no, no, ok},
       {no, ok, ok}},
      {"freeing", [&](CUstream) { return lib.cuMemFree(memory); }, {no, no, ok}, {no, ok, ok}},
      {"allocating host memory",
       [&](CUstream) {
         void* p = nullptr;
         return lib.cuMemHostAlloc(&p, 4, 0);
       },
       {no, no, ok},
       {no, ok, ok}},
      {"freeing host memory", [&](CUstream) { return lib.cuMemFreeHost(pinned); }, {no, no, ok}, {no, ok, ok}},
      {"querying an idle stream", [&](CUstream) { return lib.cuStreamQuery(idle); }, {no, no, ok}, {no, ok, ok}},
      {"waiting for an idle stream", [&](CUstream) { return lib.cuStreamSynchronize(idle); }, {no, no, ok}, {no, ok, ok}},
      {"querying an event", [&](CUstream) { return lib.cuEventQuery(recorded_before); }, {no, no, ok}, {no, ok, ok}},
      {"waiting for an event", [&](CUstream) { return lib.cuEventSynchronize(recorded_before); }, {no, no, ok}, {no, ok, ok}},
      {"querying the capturing stream", [&](CUstream s) { return lib.cuStreamQuery(s); }, {no, no, no}, {no, no, no}},
      {"waiting for the capturing stream", [&](CUstream s) { return lib.cuStreamSynchronize(s); }, {no, no, no}, {no, no, no}},
      {"waiting for the context", [&](CUstream) { return lib.cuCtxSynchronize(); }, {no, no, no}, {no, no, no}},
      {"querying a captured event",
       [&](CUstream) { return lib.cuEventQuery(recorded_inside); },
       {captured, captured, captured},
       {captured, captured, captured}},
      {"waiting for a captured event",
       [&](CUstream) { return lib.cuEventSynchronize(recorded_inside); },
       {captured, captured, captured},
       {captured, captured, captured}},
      {"making a stream",
       [&](CUstream) {
         CUstream s = nullptr;
         return lib.cuStreamCreate(&s, 1);
       },
       {ok, ok, ok},
       {ok, ok, ok}},
      {"making an event",
       [&](CUstream) {
         CUevent e = nullptr;
         return lib.cuEventCreate(&e, 0);
       },
       {ok, ok, ok},
       {ok, ok, ok}},
      {"working on another stream", [&](CUstream) { return lib.cuMemsetD8Async(memory, 0, 4, idle); }, {ok, ok, ok}, {ok, ok, ok}},
      {"recording on another stream", [&](CUstream) { return lib.cuEventRecord(recorded_before, idle); }, {ok, ok, ok}, {ok, ok, ok}},
      {"the null stream beside a non-blocking one",
       [&](CUstream) { return lib.cuMemsetD8Async(memory, 0, 4, nullptr); },
       {ok, ok, ok},
       {ok, ok, ok}},
  };
  for (const Row& row : rows)
    for (const bool own : {true, false})
      for (const CUstreamCaptureMode mode : {kGlobal, kThread, kRelaxed}) {
        CAPTURE(row.what);
        CAPTURE(own);
        CAPTURE(static_cast<int>(mode));
        const DeviceSession session;
        const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
        idle = make_stream();
        recorded_before = make_event();
        recorded_inside = make_event();
        memory = allocate(4);
        pinned = allocate_pinned(4);
        KILN_OK(lib.cuEventRecord(recorded_before, idle));
        KILN_OK(lib.cuStreamBeginCapture(stream, mode));
        KILN_OK(lib.cuEventRecord(recorded_inside, stream));
        const CUresult expected = own ? row.own[mode] : row.other[mode];
        if (own) {
          KILN_CALL(row.call(stream), expected);
        } else {
          std::thread([&] {
            lib.cuCtxPushCurrent(session.context);
            KILN_CALL(row.call(stream), expected);
          }).join();
        }
        CHECK(status_of(stream) == (expected == ok ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED));
        check_end(stream, expected == ok ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_SUCCESS);  // usable again
      }
}

TEST_CASE("a thread may say how far captures forbid it things") {
  const DeviceSession session;
  Library& lib = library();
  constexpr CUresult ok = CUDA_SUCCESS, no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const auto allocating = [&](CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool by_another) {
    const CUstream stream = make_stream();
    KILN_OK(lib.cuStreamBeginCapture(stream, capture));
    CUresult code = ok;
    const auto ask = [&] {
      CUcontext context = session.context;
      KILN_OK(lib.cuCtxPushCurrent(context));
      CUstreamCaptureMode mode = thread;
      KILN_OK(lib.cuThreadExchangeStreamCaptureMode(&mode));
      CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
      CUdeviceptr p = 0;
      code = lib.cuMemAlloc(&p, 4);
      KILN_OK(lib.cuThreadExchangeStreamCaptureMode(&mode));
      CHECK(mode == thread);
      KILN_OK(lib.cuCtxPopCurrent(&context));
    };
    if (by_another) std::thread(ask).join();
    else ask();
    CUgraph graph = nullptr;
    lib.cuStreamEndCapture(stream, &graph);
    return code;
  };
  constexpr CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  for (const CUstreamCaptureMode capture : {global, local, relaxed}) {
    CHECK(allocating(capture, relaxed, false) == ok);
    CHECK(allocating(capture, relaxed, true) == ok);
    CHECK(allocating(capture, local, false) == (capture == relaxed ? ok : no));
    CHECK(allocating(capture, local, true) == ok);
    CHECK(allocating(capture, global, true) == (capture == global ? no : ok));
  }
  CHECK(lib.cuThreadExchangeStreamCaptureMode(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an invalidated capture refuses everything but its end") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream(), side = make_stream();
  const CUevent inside = make_event(), other = make_event();
  const CUdeviceptr a = allocate(4);
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuEventRecord(inside, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  constexpr CUresult broken = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  KILN_CALL(lib.cuMemsetD8Async(a, 0, 4, stream), broken);
  KILN_CALL(lib.cuEventRecord(other, stream), broken);
  KILN_CALL(lib.cuStreamWaitEvent(stream, other, 0), broken);
  KILN_CALL(lib.cuStreamWaitEvent(side, inside, 0), broken);
  KILN_CALL(lib.cuLaunchHostFunc(stream, [](void*) {}, nullptr), broken);
  KILN_CALL(lib.cuStreamSynchronize(stream), broken);
  check_end(stream, broken);
  KILN_CALL(lib.cuMemsetD8Async(a, 0, 4, stream), CUDA_SUCCESS);
}

TEST_CASE("a capture must end where and by whom it began, with all its streams joined") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream(), side = make_stream();
  const CUevent forked = make_event();
  const CUdeviceptr a = allocate(4);
  CUgraph graph = nullptr;
  for (const CUstreamCaptureMode mode : {kGlobal, kThread, kRelaxed}) {
    KILN_OK(lib.cuStreamBeginCapture(stream, mode));
    std::thread([&] {
      lib.cuCtxPushCurrent(session.context);
      KILN_CALL(lib.cuStreamEndCapture(stream, &graph), mode == kRelaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    if (mode != kRelaxed) check_end(stream, CUDA_SUCCESS);
  }
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuEventRecord(forked, stream));
  KILN_OK(lib.cuStreamWaitEvent(side, forked, 0));
  KILN_CALL(lib.cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  fill(a, 1, side);
  check_end(stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  KILN_OK(lib.cuStreamSynchronize(side));
}

TEST_CASE("captures do not take dependencies from outside, nor from each other") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream a = make_stream(), b = make_stream(), outside = make_stream();
  const CUevent recorded_outside = make_event(), in_a = make_event(), never = make_event();
  KILN_OK(lib.cuEventRecord(recorded_outside, outside));

  KILN_OK(lib.cuStreamBeginCapture(a, kRelaxed));
  KILN_CALL(lib.cuStreamWaitEvent(a, never, 0), CUDA_SUCCESS);
  KILN_CALL(lib.cuStreamWaitEvent(a, recorded_outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  check_end(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  KILN_OK(lib.cuStreamBeginCapture(a, kRelaxed));
  KILN_OK(lib.cuStreamBeginCapture(b, kRelaxed));
  KILN_OK(lib.cuEventRecord(in_a, a));
  KILN_CALL(lib.cuStreamWaitEvent(b, in_a, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  check_end(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_end(b, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  KILN_OK(lib.cuStreamBeginCapture(a, kRelaxed));
  KILN_OK(lib.cuEventRecord(in_a, a));
  check_end(a, CUDA_SUCCESS);
  KILN_CALL(lib.cuStreamWaitEvent(b, in_a, 0), CUDA_ERROR_CAPTURED_EVENT);  // its capture has ended
  KILN_CALL(lib.cuEventQuery(in_a), CUDA_ERROR_CAPTURED_EVENT);
  KILN_OK(lib.cuEventRecord(in_a, b));
  KILN_CALL(lib.cuEventQuery(in_a), CUDA_SUCCESS);
}

TEST_CASE("while a blocking stream captures the null stream cannot be used") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  const CUdeviceptr a = allocate(4);
  const CUevent event = make_event();
  std::uint32_t word = 0;
  constexpr CUresult implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CUstreamCaptureStatus status{};
  KILN_OK(lib.cuStreamBeginCapture(blocking, kRelaxed));
  KILN_CALL(lib.cuStreamIsCapturing(nullptr, &status), implicit);
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking breaks nothing
  check_end(blocking, CUDA_SUCCESS);
  const std::function<CUresult()> uses[] = {
      [&] { return lib.cuMemsetD8Async(a, 0, 4, nullptr); },
      [&] { return lib.cuMemcpyHtoDAsync(a, &word, 4, nullptr); },
      [&] { return lib.cuMemcpyDtoHAsync(&word, a, 4, nullptr); },
      [&] { return lib.cuStreamSynchronize(nullptr); },
      [&] { return lib.cuStreamQuery(nullptr); },
      [&] { return lib.cuEventRecord(event, nullptr); },
      [&] { return lib.cuStreamWaitEvent(nullptr, event, 0); },
      [&] { return lib.cuLaunchHostFunc(nullptr, [](void*) {}, nullptr); },
  };
  for (const auto& use : uses) {
    KILN_OK(lib.cuStreamBeginCapture(blocking, kRelaxed));
    KILN_CALL(use(), implicit);
    check_end(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    KILN_CALL(use(), CUDA_SUCCESS);
    KILN_OK(lib.cuCtxSynchronize());
  }
}

TEST_CASE("a captured event does not fork into the null stream") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = make_event();
  KILN_OK(lib.cuStreamBeginCapture(stream, kRelaxed));
  KILN_OK(lib.cuEventRecord(event, stream));
  KILN_CALL(lib.cuStreamWaitEvent(nullptr, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  check_end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("a stream that is destroyed while it captures takes its capture with it") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream(), side = make_stream();
  const CUevent event = make_event();
  KILN_OK(lib.cuStreamBeginCapture(stream, kGlobal));
  KILN_OK(lib.cuEventRecord(event, stream));
  KILN_OK(lib.cuStreamWaitEvent(side, event, 0));
  KILN_CALL(lib.cuStreamDestroy(stream), CUDA_SUCCESS);
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
  const CUstream again = make_stream();
  KILN_OK(lib.cuStreamBeginCapture(again, kGlobal));
  KILN_OK(lib.cuEventRecord(event, again));
  KILN_OK(lib.cuStreamWaitEvent(side, event, 0));
  KILN_CALL(lib.cuStreamDestroy(side), CUDA_SUCCESS);
  check_end(again, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
