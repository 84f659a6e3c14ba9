// Each fault of the driver at each point of a chain of three kernels over two streams, in a process of its own: what every later operation
// says, that nothing looks successful, that other devices go on, and that the process ends by itself.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "support/process.h"
#include "support/sim.h"

using namespace kiln;

namespace {

using Lines = std::map<std::string, std::string>;

// What the child says of each operation on a device.
struct Told {
  std::map<std::string, Lines> devices;
  std::string all;
};

Told run(const std::string& script, const std::vector<std::string>& args, const std::vector<std::string>& environment = {}) {
  std::vector<std::string> argv{KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child"};
  argv.insert(argv.end(), args.begin(), args.end());
  std::vector<std::string> env{"KILN_CUDA_LIBRARY=" + test::sim_library(), "KILN_SIMCUDA_DEVICES=h200,t4", "KILN_SIMCUDA_FAULTS=" + script,
                               "KILN_DEVICE"};
  env.insert(env.end(), environment.begin(), environment.end());
  const test::ProcessResult result = test::run_process(argv, env, 300);
  Told told;
  told.all = script + "\n" + result.out + result.err;
  CAPTURE(told.all);
  CHECK_FALSE(result.timed_out);
  CHECK(result.status == 0);  // the program's own
  std::istringstream lines(result.out);
  Lines* device = nullptr;
  bool ended = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("device ")) device = &told.devices[line.substr(7)];
    else if (line == "end") ended = true;
    else if (const std::size_t colon = line.find(": "); colon != std::string::npos && device != nullptr)
      (*device)[line.substr(0, colon)] = line.substr(colon + 2);
  }
  CHECK(ended);
  return told;
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

// The chain went well.
void expect_good(Lines lines) {
  CHECK(lines["read b"] == "ok 41");
  CHECK(lines["read c"] == "ok 42");
  CHECK(lines["read d"] == "ok 43");
  CHECK(lines["read e"] == "ok 40");
  CHECK(lines["read d again"] == "ok 71");
  CHECK(lines["sync again"] == "ok");
  CHECK(lines["make f"] == "ok");
}

}  // namespace

TEST_CASE("without faults the chain gives its results, also on slow streams and with late events") {
  for (const char* script :
       {"{}", R"({"slow": [{"ms": 5}]})", R"({"late_events_ms": 5})", R"({"order": "reverse", "schedule": "newest"})"}) {
    Told told = run(script, {"cuda:0", "cuda:1", "cpu"});
    CAPTURE(told.all);
    for (const char* device : {"cuda:0", "cuda:1", "cpu"}) expect_good(told.devices[device]);
  }
}

TEST_CASE("a fault of a kernel loses its device: every later operation names it, and other devices go on") {
  struct Fault {
    const char* name;
    const char* code;
  };
  const Fault faults[] = {{"illegal_address", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"}, {"misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS (716)"},
                          {"launch_failure", "CUDA_ERROR_LAUNCH_FAILED (719)"},    {"hang", "CUDA_ERROR_LAUNCH_TIMEOUT (702)"},
                          {"trap", "CUDA_ERROR_ILLEGAL_INSTRUCTION (715)"},        {"assert", "CUDA_ERROR_ASSERT (710)"}};
  const char* kernels[] = {"first", "second", "third"};
  // As it is found at once, behind work that takes its time, and by events that come late.
  for (const char* beside : {"", R"(, "slow": [{"ms": 2}])", R"(, "late_events_ms": 2)"}) {
    for (const Fault& fault : faults) {
      for (int at = 0; at < 3; ++at) {
        const bool sync_between = at == 2 || fault.name[0] == 'i';
        std::vector<std::string> args{"cuda:0", "cuda:1", "cpu"};
        if (sync_between) args.insert(args.begin(), "--sync");
        Told told =
            run(std::string(R"({"kernels": [{"name": ")") + kernels[at] + R"(", "n": 1, "fault": ")" + fault.name + "\"}]" + beside + "}",
                args);
        CAPTURE(told.all);
        Lines& lines = told.devices["cuda:0"];
        CHECK(lines["read e before"] == "ok 40");
        for (const char* operation :
             {"sync", "read b", "read c", "read d", "read e", "write c", "relaunch third", "read d again", "sync again", "make f"}) {
          CAPTURE(operation);
          const std::string& said = lines[operation];
          CHECK_FALSE(said.starts_with("ok"));
          CHECK(says(said, fault.code));
          CHECK(says(said, kernels[at]));
          if (operation != std::string("relaunch third")) CHECK(says(said, " poisoned "));
          else CHECK(says(said, "main.cpp:"));  // a launch tells where its kernel is
        }
        // With a wait after each launch it is known which kernel it was.
        if (sync_between) CHECK(says(lines["sync"], std::string("kernel: ") + kernels[at]));
        CHECK(says(lines["sync again"], "(cuda:0) is lost to this process"));
        // What the kernel was to write, and what was made of that, is claimed.
        if (at <= 1) CHECK(says(lines["check c"], fault.code));
        CHECK(says(lines["check d"], fault.code));
        if (sync_between && at >= 1) CHECK(lines["check b"] == "ok");
        expect_good(told.devices["cpu"]);
        // The script's fault is the first launch of that name anywhere: the second device has none left.
        expect_good(told.devices["cuda:1"]);
      }
    }
  }
}

TEST_CASE("a copy that finds the device broken loses it, and what was read before stays known") {
  Told told = run(R"({"calls": [{"name": "cuMemcpyDtoHAsync", "n": 3, "code": "CUDA_ERROR_ECC_UNCORRECTABLE", "sticky": true}]})",
                  {"cuda:0", "cuda:1", "cpu"});
  CAPTURE(told.all);
  Lines& lines = told.devices["cuda:0"];
  CHECK(lines["sync"] == "ok");
  CHECK(lines["read b"] == "ok 41");
  for (const char* operation : {"read c", "read d", "read e", "write c", "relaunch third", "read d again", "sync again", "make f"}) {
    CAPTURE(operation);
    CHECK(says(lines[operation], "CUDA_ERROR_ECC_UNCORRECTABLE (214)"));
  }
  expect_good(told.devices["cuda:1"]);
  expect_good(told.devices["cpu"]);
}

TEST_CASE("after fork() every operation of the child is an error that says so, nothing hangs, and the parent goes on") {
  Told told = run("{}", {"--fork", "cuda:0", "cpu"});
  CAPTURE(told.all);
  for (const char* device : {"cuda:0", "cpu"}) {
    CAPTURE(device);
    Lines& lines = told.devices[device];
    CHECK(lines["launch"] == "ok");
    for (const char* operation : {"child launch", "child launch of another", "child read", "child check", "child write", "child sync",
                                  "child stream sync", "child make", "child load", "child sync of the device opened again"}) {
      CAPTURE(operation);
      CHECK(says(lines[operation], " poisoned "));
      CHECK(says(lines[operation], "was opened before fork(), and its threads and its memory stay with the parent process"));
    }
    CHECK(lines["child dropped its buffers"] == "ok");
    CHECK(lines["child ended"] == "ok 0");
    CHECK(lines["launch after the child"] == "ok");
    CHECK(lines["read"] == "ok 40");
  }
}

TEST_CASE("where no thread can be started to compile on, the launch says so, and works when there is one") {
  Told told = run("{}", {"--no-threads", "cuda:0", "cpu"});
  CAPTURE(told.all);
  CHECK(says(told.devices["cuda:0"]["launch without threads"], "OutOfMemory"));
  CHECK(says(told.devices["cuda:0"]["launch without threads"], "no thread with a stack of 64 MiB could be started to compile on"));
  CHECK(says(told.devices["cuda:0"]["read"], "no thread with a stack of 64 MiB"));
  for (const char* device : {"cuda:0", "cpu"}) {
    CHECK(told.devices[device]["launch"] == "ok");
    CHECK(told.devices[device]["read again"] == "ok 41");
  }
}

TEST_CASE("a program for which the device had no room is loaded at its next launch") {
  Told told = run(R"({"loads": [{"n": 3, "code": "CUDA_ERROR_OUT_OF_MEMORY"}]})", {"cuda:0"});
  CAPTURE(told.all);
  Lines& lines = told.devices["cuda:0"];
  CHECK(says(lines["launch third"], "CUDA_ERROR_OUT_OF_MEMORY (2)"));
  CHECK(says(lines["read d"], "CUDA_ERROR_OUT_OF_MEMORY (2)"));
  CHECK(lines["read c"] == "ok 42");
  CHECK(lines["relaunch third"] == "ok");
  CHECK(lines["read d again"] == "ok 71");
}

TEST_CASE("a program that cannot be loaded fails its launch with the compiler's log, and the device goes on") {
  for (int n = 1; n <= 3; ++n) {
    Told told =
        run(R"({"loads": [{"n": )" + std::to_string(n) + R"(, "code": "CUDA_ERROR_INVALID_PTX", "log": "ptxas line 7; error : made up"}]})",
            {"cuda:0"});
    CAPTURE(told.all);
    Lines& lines = told.devices["cuda:0"];
    const char* launches[] = {"launch first", "launch second", "launch third"};
    const std::string& said = lines[launches[n - 1]];
    CHECK(says(said, "CompileUnsupported refusal"));
    CHECK(says(said, "CUDA_ERROR_INVALID_PTX (218)"));
    CHECK(says(said, "ptxas line 7; error : made up"));
    CHECK(says(said, "main.cpp:"));
    CHECK(lines["sync"] == "ok");
    CHECK(lines["read e"] == "ok 40");
    const char* reads[] = {"read b", "read c", "read d"};
    for (int i = 0; i < 3; ++i) {
      CAPTURE(reads[i]);
      if (i < n - 1) CHECK(lines[reads[i]] == "ok " + std::to_string(41 + i));
      else CHECK(says(lines[reads[i]], "CUDA_ERROR_INVALID_PTX (218)"));
    }
    if (n < 3) CHECK(lines["read d again"] == "ok 71");
    CHECK(lines["make f"] == "ok");
  }
}

TEST_CASE("a launch that the driver refuses claims what it was to write, and the device goes on") {
  for (int n = 1; n <= 3; ++n) {
    Told told =
        run(R"({"calls": [{"name": "cuLaunchKernelEx", "n": )" + std::to_string(n) + R"(, "code": "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}]})",
            {"cuda:0"});
    CAPTURE(told.all);
    Lines& lines = told.devices["cuda:0"];
    const char* launches[] = {"launch first", "launch second", "launch third"};
    CHECK(says(lines[launches[n - 1]], "TooManyResources refusal"));
    CHECK(says(lines[launches[n - 1]], "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)"));
    CHECK(says(lines[launches[n - 1]], "main.cpp:"));
    for (int later = n; later < 3; ++later) CHECK(lines[launches[later]].starts_with("Skipped"));
    const char* reads[] = {"read b", "read c", "read d"};
    for (int i = 0; i < 3; ++i) {
      CAPTURE(reads[i]);
      if (i < n - 1) CHECK(lines[reads[i]] == "ok " + std::to_string(41 + i));
      else CHECK(says(lines[reads[i]], "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)"));
    }
    CHECK(lines["read e"] == "ok 40");
    CHECK(lines["read d again"] == "ok 71");
    CHECK(lines["sync again"] == "ok");
  }
}

TEST_CASE("memory that runs out once is asked for again; for good it is an error with the numbers, and the device goes on") {
  Told once = run(R"({"allocations": [{"n": 2}]})", {"cuda:0"});
  CAPTURE(once.all);
  expect_good(once.devices["cuda:0"]);
  const char* made[] = {"make a", "make b", "make c", "make d", "make e", "make f"};
  for (int n = 1; n <= 6; ++n) {
    Told twice = run(R"({"allocations": [{"n": )" + std::to_string(n) + R"(, "times": 2}]})", {"cuda:0", "cpu"});
    CAPTURE(twice.all);
    Lines& lines = twice.devices["cuda:0"];
    for (int i = 0; i < 6; ++i) {
      if (n < 6 && i == 5) continue;  // the chain did not begin
      CAPTURE(made[i]);
      if (i != n - 1) {
        CHECK(lines[made[i]] == "ok");
        continue;
      }
      for (const char* word : {"OutOfMemory", "requested: 256", "free:", "pooled:"}) CHECK(says(lines[made[i]], word));
    }
    if (n == 6) CHECK(lines["read d again"] == "ok 71");
    expect_good(twice.devices["cpu"]);
  }
  Told staging = run(R"({"allocations": [{"host": true, "n": 2, "times": 1}]})", {"cuda:0"});
  CAPTURE(staging.all);
  CHECK(says(staging.devices["cuda:0"]["make a"], "pinned memory"));
}

TEST_CASE("a copy that the driver refuses is an error of that copy alone") {
  Told up = run(R"({"calls": [{"name": "cuMemcpyHtoDAsync", "n": 6, "code": "CUDA_ERROR_INVALID_VALUE"}]})", {"cuda:0"});
  CAPTURE(up.all);
  CHECK(says(up.devices["cuda:0"]["write c"], "CUDA_ERROR_INVALID_VALUE (1)"));
  CHECK(up.devices["cuda:0"]["relaunch third"].starts_with("Skipped"));
  CHECK(says(up.devices["cuda:0"]["read d again"], "CUDA_ERROR_INVALID_VALUE (1)"));
  CHECK(up.devices["cuda:0"]["sync again"] == "ok");
  Told down = run(R"({"calls": [{"name": "cuMemcpyDtoHAsync", "n": 2, "code": "CUDA_ERROR_INVALID_VALUE"}]})", {"cuda:0"});
  CAPTURE(down.all);
  CHECK(says(down.devices["cuda:0"]["read b"], "CUDA_ERROR_INVALID_VALUE (1)"));
  CHECK(down.devices["cuda:0"]["read c"] == "ok 42");
  CHECK(down.devices["cuda:0"]["read d again"] == "ok 71");
}

TEST_CASE("a driver that does not start, is too old or has no device leaves the CPU, and says why") {
  struct Row {
    const char* script;
    const char* words[2];
  };
  const Row rows[] = {{R"({"init": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"})", {"could not start", "803"}},
                      {R"({"driver_version": 11040})", {"11.4", "12.0"}},
                      {R"({"devices": []})", {"no GPU", "libkiln_simcuda"}},
                      {R"({"driver_version": 12000})", {"", ""}}};
  for (const Row& row : rows) {
    Told told = run(row.script, {"cuda", "cpu"});
    CAPTURE(told.all);
    const std::string& said = told.devices["cuda"]["open"];
    if (*row.words[0] == 0) {
      CHECK(said == "ok");
      expect_good(told.devices["cuda"]);
    } else {
      CHECK(said.starts_with("NotFound"));
      for (const char* word : row.words) CHECK(says(said, word));
    }
    expect_good(told.devices["cpu"]);
  }
}

TEST_CASE("without a driver's library the CPU is left, and what was tried is named") {
  Told told = run("{}", {"cuda", "cuda:1", "cpu"}, {"KILN_CUDA_LIBRARY=/nowhere/libcuda.so.1"});
  CAPTURE(told.all);
  for (const char* device : {"cuda", "cuda:1"}) {
    CHECK(told.devices[device]["open"].starts_with("NotFound"));
    for (const char* word : {"no CUDA driver was found", "/nowhere/libcuda.so.1", "install the NVIDIA driver",
                             "KILN_CUDA_LIBRARY names this library: correct it, or unset it"})
      CHECK(says(told.devices[device]["open"], word));
  }
  expect_good(told.devices["cpu"]);
}

TEST_CASE("a toolkit's stub on the library path is told from a driver, and hides none that is there under the driver's own name") {
  test::TempFolder folder;
  const auto link = [&](const std::string& name, const std::string& to) { std::filesystem::create_symlink(to, folder.file(name)); };
  const std::vector<std::string> path{"KILN_CUDA_LIBRARY", "LD_LIBRARY_PATH=" + folder.path()};
  link("libcuda.so", KILN_BINARY_DIR "/lib/fakecuda/libcuda_stub.so");
  void* const installed = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // of this machine, found before the stub
  Told alone = run("{}", {"cuda", "cpu"}, path);
  CAPTURE(alone.all);
  if (installed == nullptr) {
    CHECK(alone.devices["cuda"]["open"].starts_with("NotFound"));
    for (const std::string& word : {std::string("stub library"), folder.file("libcuda.so"), std::string("LD_LIBRARY_PATH")})
      CHECK(says(alone.devices["cuda"]["open"], word));
  } else {
    CHECK_FALSE(says(alone.devices["cuda"]["open"], "stub library"));
  }
  expect_good(alone.devices["cpu"]);
  link("libcuda.so.1", test::sim_library());
  Told beside = run("{}", {"cuda", "cpu"}, path);
  CAPTURE(beside.all);
  for (const char* device : {"cuda", "cpu"}) expect_good(beside.devices[device]);
}

TEST_CASE("libraries that are no driver leave the CPU, and are named") {
  for (const char* fake : {"nothing", "stub", "old", "incomplete", "broken", "hidden"}) {
    const std::string library = KILN_BINARY_DIR "/lib/fakecuda/libcuda_" + std::string(fake) + ".so";
    Told told = run("{}", {"cuda", "cuda:1", "cpu"}, {"KILN_CUDA_LIBRARY=" + library});
    CAPTURE(told.all);
    for (const char* device : {"cuda", "cuda:1"}) {
      CHECK(told.devices[device]["open"].starts_with("NotFound"));
      CHECK(says(told.devices[device]["open"], library));
    }
    expect_good(told.devices["cpu"]);
  }
}
