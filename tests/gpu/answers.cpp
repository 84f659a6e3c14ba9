// What the driver answers to misuse, by itself: nothing of Kiln's stands before it. Each row in a process of its own, since some lose the
// device. The simulated driver answers the same list: where they differ, it has to learn.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "cuda/errors.h"
#include "measures.h"
#include "support/misused_ptx.h"

namespace kiln::gpu {

using namespace kiln::cuda;

namespace {

constexpr unsigned kLimit = 20;  // seconds a row

struct Rig {
  const DriverEntries& call = driver().call;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr memory = 0;  // 4096 bytes
  unsigned sm = 0;
  std::string notes;  // lines that go with the answer

  // The first answer that is no success.
  CUresult open() {
    if (!driver().ok()) return CUDA_ERROR_NO_DEVICE;
    int major = 0, minor = 0;
    call.cuDeviceGet(&device, 0);
    call.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    call.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    sm = static_cast<unsigned>(major * 10 + minor);
    CUresult r = call.cuDevicePrimaryCtxRetain(&context, device);
    if (r == CUDA_SUCCESS) r = call.cuCtxPushCurrent(context);
    if (r == CUDA_SUCCESS) r = call.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (r == CUDA_SUCCESS) r = call.cuMemAlloc(&memory, 4096);
    if (r == CUDA_SUCCESS) r = call.cuMemsetD8Async(memory, 0, 4096, stream);
    if (r == CUDA_SUCCESS) r = load(test::misused_ptx(header(), sm >= 90));
    return r;
  }
  std::string header(const std::string& version = {}, const std::string& target = {}) const {
    // Versions that every driver which Kiln takes can read.
    return test::ptx_header(!version.empty() ? version : "8.0", !target.empty() ? target : sm >= 90 ? "sm_90" : "sm_75");
  }
  CUresult load(const std::string& text) {
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    const CUresult r = call.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    for (char* c = log; r != CUDA_SUCCESS && *c != 0; ++c) {
      if (c == log) notes += "\n    log: ";
      notes += *c == '\n' ? ' ' : *c;
    }
    return r;
  }
  CUfunction function(const char* name) {
    CUfunction f = nullptr;
    call.cuModuleGetFunction(&f, module, name);
    return f;
  }
  struct Shape {
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0, cluster[3] = {0, 0, 0};
    bool cooperative = false;
  };
  CUresult launch(const char* entry, const Shape& s, CUdeviceptr at, CUstream on) {
    CUlaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (s.cluster[0] != 0) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count++].value.clusterDim = {s.cluster[0], s.cluster[1], s.cluster[2]};
    }
    if (s.cooperative) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attributes[count++].value.cooperative = 1;
    }
    const CUlaunchConfig config{s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.shared, on, attributes, count};
    void* params[] = {&at};
    return call.cuLaunchKernelEx(&config, function(entry), params, nullptr);
  }
  CUresult launch(const char* entry, const Shape& s) { return launch(entry, s, memory, stream); }
  // What the wait says, and then each way of letting go.
  CUresult fault(const char* entry, CUdeviceptr at) {
    if (const CUresult r = launch(entry, {}, at, stream); r != CUDA_SUCCESS) return r;
    const CUresult r = call.cuStreamSynchronize(stream);
    CUdeviceptr more = 0;
    const CUresult then[] = {launch("add", {}),
                             call.cuStreamQuery(stream),
                             call.cuMemAlloc(&more, 64),
                             call.cuMemFree(memory),
                             call.cuModuleUnload(module),
                             call.cuStreamDestroy(stream),
                             call.cuDevicePrimaryCtxRelease(device),
                             call.cuDevicePrimaryCtxRetain(&context, device)};
    constexpr const char* what[] = {"launch",         "query", "allocate", "free", "unload", "destroy the stream", "release the context",
                                    "retain it again"};
    notes += "\n    then:";
    for (std::size_t i = 0; i < std::size(what); ++i) notes += std::string(i != 0 ? ", " : " ") + what[i] + " " + std::to_string(then[i]);
    return r;
  }
};

struct Row {
  const char* what;
  std::function<CUresult(Rig&)> run;
};

const char* const kAssert = R"(
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 text[3] = {109, 101, 0};
.visible .entry asserted(.param .u64 asserted_y)
{
  .reg .b64 %rd<3>;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd2, %rd1;
  {
    .param .b64 p0; st.param.b64 [p0], %rd2;
    .param .b64 p1; st.param.b64 [p1], %rd2;
    .param .b32 p2; st.param.b32 [p2], 7;
    .param .b64 p3; st.param.b64 [p3], %rd2;
    .param .b64 p4; st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4);
  }
  ret;
}
)";

std::vector<Row> rows() {
  const auto at = [](const char* entry, Rig::Shape shape) { return [=](Rig& r) { return r.launch(entry, shape); }; };
  return {
      {"a right launch, and the wait",
       [](Rig& r) {
         const CUresult launched = r.launch("add", {});
         return launched != CUDA_SUCCESS ? launched : r.call.cuStreamSynchronize(r.stream);
       }},
      {"a grid extent of 0", at("add", {.grid = {0, 1, 1}})},
      {"a grid extent over the limit", at("add", {.grid = {1, 65536, 1}})},
      {"a block extent of 0", at("add", {.block = {0, 1, 1}})},
      {"a block of 1025", at("add", {.block = {1025, 1, 1}})},
      {"a block of depth 65", at("add", {.block = {1, 1, 65}})},
      {"another shape than .reqntid", at("shaped", {.block = {64, 2, 1}})},
      {"fewer threads than .reqntid", at("shaped", {.block = {32, 1, 1}})},
      {"more threads than .maxntid", at("narrow", {.block = {65, 1, 1}})},
      {"more registers than there are",
       [](Rig& r) {
         int registers = 0, threads = 0;
         r.call.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, r.function("hungry"));
         r.call.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, r.function("hungry"));
         r.notes += "\n    registers: " + std::to_string(registers) + ", threads at most: " + std::to_string(threads);
         return r.launch("hungry", {.block = {1024, 1, 1}});
       }},
      {"48 KiB and 1 of dynamic shared memory, not asked for", at("add", {.shared = 48 * 1024 + 1})},
      {"asking for more shared memory than there is",
       [](Rig& r) { return r.call.cuFuncSetAttribute(r.function("add"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20); }},
      {"a cluster that does not divide the grid", at("add", {.grid = {3, 1, 1}, .cluster = {2, 1, 1}})},
      {"a cluster of 32", at("add", {.grid = {32, 1, 1}, .cluster = {32, 1, 1}})},
      {"a cluster of 16, not asked for", at("add", {.grid = {16, 1, 1}, .cluster = {16, 1, 1}})},
      {"another cluster than the entry's", at("clustered", {.grid = {4, 1, 1}, .cluster = {4, 1, 1}})},
      {"a grid that the entry's cluster does not divide", at("clustered", {.grid = {3, 1, 1}})},
      {"a cooperative launch that does not fit", at("add", {.grid = {1 << 20, 1, 1}, .block = {256, 1, 1}, .cooperative = true})},
      {"an entry that is not there",
       [](Rig& r) {
         CUfunction f = nullptr;
         return r.call.cuModuleGetFunction(&f, r.module, "sub");
       }},
      {"parameters behind the last",
       [](Rig& r) {
         std::size_t offset = 0, size = 0;
         return r.call.cuFuncGetParamInfo != nullptr ? r.call.cuFuncGetParamInfo(r.function("add"), 1, &offset, &size)
                                                     : CUDA_ERROR_NOT_SUPPORTED;
       }},
      {"a target newer than the device", [](Rig& r) { return r.load(test::misused_ptx(r.header("8.8", "sm_121"), false)); }},
      {"a PTX version newer than the driver", [](Rig& r) { return r.load(test::misused_ptx(r.header("9.9"), false)); }},
      {"damaged PTX", [](Rig& r) { return r.load(r.header() + ".visible .entry e()\n{\n  mud.s32;\n}\n"); }},
      {"text that is no PTX", [](Rig& r) { return r.load("hello"); }},
      {"a call of a function that nobody has",
       [](Rig& r) { return r.load(r.header() + ".extern .func nobody();\n.visible .entry e()\n{\n  call.uni nobody;\n  ret;\n}\n"); }},
      {"time between events made without timing",
       [](Rig& r) {
         CUevent a = nullptr, b = nullptr;
         float ms = 0;
         r.call.cuEventCreate(&a, CU_EVENT_DISABLE_TIMING);
         r.call.cuEventCreate(&b, CU_EVENT_DISABLE_TIMING);
         r.call.cuEventRecord(a, r.stream);
         r.call.cuEventRecord(b, r.stream);
         r.call.cuStreamSynchronize(r.stream);
         return r.call.cuEventElapsedTime(&ms, a, b);
       }},
      {"a stream of another device",
       [](Rig& r) {
         CUcontext other = nullptr;
         CUstream theirs = nullptr;
         if (driver().devices < 2) return CUDA_ERROR_NO_DEVICE;
         r.call.cuDevicePrimaryCtxRetain(&other, 1);
         r.call.cuCtxPushCurrent(other);
         r.call.cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING);
         r.call.cuCtxPopCurrent(&other);
         return r.launch("add", {}, r.memory, theirs);
       }},
      {"freeing 0", [](Rig& r) { return r.call.cuMemFree(0); }},
      {"freeing twice",
       [](Rig& r) {
         r.call.cuMemFree(r.memory);
         return r.call.cuMemFree(r.memory);
       }},
      {"a copy of no bytes", [](Rig& r) { return r.call.cuMemcpyDtoDAsync(r.memory, r.memory, 0, r.stream); }},
      {"a copy that leaves its allocation by 16 MiB",
       [](Rig& r) {
         const CUresult c = r.call.cuMemcpyDtoDAsync(r.memory, r.memory + 2048, 16 << 20, r.stream);
         return c != CUDA_SUCCESS ? c : r.call.cuStreamSynchronize(r.stream);
       }},
      {"more memory than there is",
       [](Rig& r) {
         CUdeviceptr p = 0;
         return r.call.cuMemAlloc(&p, std::size_t{1} << 46);
       }},
      {"a pointer to nowhere", [](Rig& r) { return r.fault("add", 0xdead0000); }},
      {"memory that was freed",
       [](Rig& r) {
         CUdeviceptr large = 0;
         r.call.cuMemAlloc(&large, 64 << 20);
         r.call.cuMemFree(large);
         return r.fault("add", large + (32 << 20));
       }},
      {"an access of 16 bytes at an odd word", [](Rig& r) { return r.fault("wide", r.memory + 4); }},
      {"a trap", [](Rig& r) { return r.fault("trapped", r.memory); }},
      {"an assertion",
       [](Rig& r) {
         if (const CUresult c = r.load(r.header() + kAssert); c != CUDA_SUCCESS) return c;
         return r.fault("asserted", r.memory);
       }},
  };
}

}  // namespace

int answers() {
  int status = 0;
  for (const Row& row : rows()) {
    const pid_t child = fork();  // before anything of CUDA is touched in this process
    if (child == 0) {
      alarm(kLimit);
      Rig rig;
      const CUresult opened = rig.open();
      if (opened != CUDA_SUCCESS) say("%s: not asked, opening gives %s", row.what, result_text(opened).c_str());
      else {
        const std::string answer = result_text(row.run(rig));
        say("%s: %s%s", row.what, answer.c_str(), rig.notes.c_str());
      }
      _exit(opened == CUDA_SUCCESS ? 0 : 1);
    }
    int ended = 0;
    if (child < 0 || waitpid(child, &ended, 0) != child) {
      say("%s: no process for it", row.what);
      status = 1;
    } else if (WIFSIGNALED(ended)) {
      say("%s: %s", row.what, WTERMSIG(ended) == SIGALRM ? "no answer within 20 s" : strsignal(WTERMSIG(ended)));
      status = 1;
    } else if (WEXITSTATUS(ended) != 0) {
      status = 1;
    }
  }
  return status;
}

}  // namespace kiln::gpu
