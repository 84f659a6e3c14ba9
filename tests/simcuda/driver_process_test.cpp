// The environment variables of the simulated driver, and how processes that use it end.
#include <doctest/doctest.h>

#include "simcuda/driver_fixture.h"
#include "support/process.h"

using kiln::test::ProcessResult;
using kiln::test::run_process;
using kiln::test::TempFolder;

namespace {

ProcessResult run(const std::string& scenario, std::vector<std::string> environment = {}) {
  for (const char* name : {"KILN_SIMCUDA_DEVICES", "KILN_SIMCUDA_FAULTS", "KILN_SIMCUDA_REPORT"}) {
    bool given = false;
    for (const std::string& e : environment) given = given || e.starts_with(std::string(name) + "=");
    if (!given) environment.push_back(name);
  }
  return run_process({KILN_BINARY_DIR "/bin/simcuda_process", KILN_BINARY_DIR "/lib/libkiln_simcuda.so", scenario}, environment, 60);
}

}  // namespace

TEST_CASE("the described devices come from the environment: names of descriptions or paths, an H200 by default") {
  const TempFolder folder;
  std::string own = kiln::test::read_file(KILN_SIMCUDA_FOLDER "/devices/tiny.json");
  own.replace(own.find("Kiln Tiny (simulated)"), 21, "My own");
  own.insert(own.find("\"memory\""), "\"driver_version\": 12040, ");
  const std::string path = folder.write("own.json", own);
  struct Row {
    const char* devices;
    std::string expected;
  };
  for (const Row& row : {Row{"", "version 13000\ndevice 0: NVIDIA H200\n"}, Row{"t4", "version 13000\ndevice 0: Tesla T4\n"},
                         Row{"a100,h200", "version 13000\ndevice 0: NVIDIA A100-SXM4-80GB\ndevice 1: NVIDIA H200\n"},
                         Row{path.c_str(), "version 12040\ndevice 0: My own\n"}, Row{"none", "version 13000\ncuInit: 100\n"},
                         Row{"h200,nothing", "version 13000\ncuInit: 999\n"}}) {
    CAPTURE(row.devices);
    const ProcessResult r = run("devices", {"KILN_SIMCUDA_DEVICES=" + std::string(row.devices)});
    CHECK(r.out == row.expected);
  }
  CHECK(run("devices", {"KILN_SIMCUDA_DEVICES=nothing"}).err.find("no description of a device 'nothing'") != std::string::npos);
}

TEST_CASE("the fault script comes from the environment, inline or from a file") {
  const TempFolder folder;
  const std::string file = folder.write("faults.json", R"({"driver_version": 11080, "init": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"})");
  CHECK(run("devices", {R"(KILN_SIMCUDA_FAULTS={"init": 34})"}).out == "version 13000\ncuInit: 34\n");
  CHECK(run("devices", {"KILN_SIMCUDA_FAULTS=@" + file}).out == "version 11080\ncuInit: 803\n");
}

TEST_CASE("a wrong fault script in the environment stops the driver and says what is wrong") {
  for (const char* script : {"{", R"({"inti": 34})", "@/no/such/file"}) {
    CAPTURE(script);
    const ProcessResult r = run("devices", {"KILN_SIMCUDA_FAULTS=" + std::string(script)});
    CHECK(r.out == "version 13000\ncuInit: 999\n");
    CHECK(r.err.find("KILN_SIMCUDA_FAULTS: ") != std::string::npos);
  }
}

TEST_CASE("a violation is on the standard error and in the report file") {
  const TempFolder folder;
  const ProcessResult r = run("trap", {"KILN_SIMCUDA_REPORT=" + folder.file("report")});
  const bool known = r.out == "sync: 715\ndone\n" || r.out == "sync: 719\ndone\n";
  CHECK_MESSAGE(known, r.out);
  CHECK(r.err.find("simulated driver: kernel 'k'") != std::string::npos);
  CHECK(kiln::test::read_file(folder.file("report")).find("kernel 'k'") != std::string::npos);
}

TEST_CASE("a process ends, whatever the driver is still doing") {
  for (const char* scenario : {"endless kernel", "hanging host function", "waiting thread", "much work"}) {
    CAPTURE(scenario);
    const ProcessResult r = run(scenario);
    CHECK(!r.timed_out);
    CHECK(r.status == 0);
    CHECK(r.out == "done\n");
  }
}

TEST_CASE("who outlives the driver is told so") {
  const ProcessResult r = run("owner");
  CHECK(r.status == 0);
  CHECK(r.out == "done\ndestroying at the end: 4\n");
}

TEST_CASE("a forked child has no driver, its parent still has") {
  const ProcessResult r = run("fork");
  CHECK(r.status == 0);
  CHECK(r.out == "child: 3 3\nparent: 0\ndone\n");
}
