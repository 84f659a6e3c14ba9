// kiln devices and kiln doctor, on whatever machine this is.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "cli/cli.h"

using namespace kiln::test;

TEST_CASE("devices lists the CPU device with its limits") {
  auto json = json_of(kiln_program({"devices", "--json"}));
  REQUIRE(json["devices"].size() >= 1);
  auto& cpu = json["devices"][0];
  CHECK(cpu["device"] == "cpu");
  CHECK(cpu["usable"] == true);
  CHECK(cpu["kind"] == "cpu");
  CHECK(cpu["max_threads_per_block"] == 1024);
  CHECK(cpu["warp_size"] == 32);
  CHECK(cpu["arch"].get<std::string>().starts_with("x86-64"));
  CHECK(kiln_program({"devices"}).out.find("cpu") != std::string::npos);
}

TEST_CASE("doctor tells what works and why the rest does not") {
  const auto result = kiln_program({"doctor", "--json"}, {"KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"});
  CHECK(result.status == 0);
  auto json = json_of(result);
  CHECK(json["ok"] == true);
  bool generator = false, driver = false;
  for (const auto& check : json["checks"]) {
    if (check["check"] == "code generator") {
      generator = true;
      CHECK(check["state"] == "ok");
      CHECK(check["text"].get<std::string>().find("LLVM 22") != std::string::npos);
    }
    if (check["check"] == "CUDA driver") {
      driver = true;
      CHECK(check["state"] == "missing");
      CHECK(check["text"].get<std::string>().find("/nonexistent/libcuda.so.1") != std::string::npos);
    }
  }
  CHECK(generator);
  CHECK(driver);
  CHECK(kiln_program({"doctor"}).status == 0);
}

TEST_CASE("what runs nothing leaves the trace of the last run alone, and a run replaces it") {
  TempFolder folder;
  const std::string file = folder.write("trace.json", "of the last run");
  const std::vector<std::string> trace{"KILN_TRACE=" + file}, none{"KILN_TRACE=" + folder.file("new.json")};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"doctor"}, {"devices"}, {"list", kSaxpy}, {"show", kSaxpy, "saxpy", "--ptx"}}) {
    CHECK(kiln_program(command, trace).status == 0);
    CHECK(read_file(file) == "of the last run");
    CHECK(kiln_program(command, none).status == 0);
  }
  CHECK(files_in(folder.path()) == std::vector<std::string>{"trace.json"});
  CHECK(kiln_program(
            {"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[5]", "--arg", "f32:1"},
            trace)
            .status == 0);
  CHECK(read_file(file).find("\"saxpy\"") != std::string::npos);
  const auto nowhere = kiln_program({"devices"}, {"KILN_TRACE=" + folder.file("none/trace.json")});
  CHECK(nowhere.err.find("KILN_TRACE: '") != std::string::npos);
  CHECK(nowhere.err.find("cannot be written") != std::string::npos);
  CHECK(files_in(folder.path()) == std::vector<std::string>{"trace.json"});
}

TEST_CASE("doctor says what is wrong with a code generator that cannot be used, and ends with 1") {
  TempFolder folder;
  const std::string fake = folder.write("fake.so", "no library");
  for (const std::string& path : {fake, folder.file("missing.so"), std::string(KILN_BINARY_DIR "/lib/libkiln_test_cli_empty.so")}) {
    const auto result = kiln_program({"doctor"}, {"KILN_CODEGEN=" + path});
    CHECK(result.status == 1);
    CHECK(result.out.find(path) != std::string::npos);
    CHECK(result.out.find("broken") != std::string::npos);
  }
}

TEST_CASE("doctor takes one line for each check, and names variables of Kiln's that nothing reads") {
  const auto result = kiln_program({"doctor"}, {"KILN_CODEGEN=/nonexistent/libkiln_codegen.so", "KILN_DEVIEC=x"});
  const std::size_t checks = json_of(kiln_program({"doctor", "--json"}))["checks"].size();
  std::size_t lines = 0;  // those below a check say what to do
  for (std::size_t at = 0; at < result.out.size(); at = result.out.find('\n', at) + 1) lines += result.out[at] != ' ' ? 1 : 0;
  CHECK(lines == checks + 2);  // the version and the verdict
  CHECK(result.out.find("KILN_DEVIEC=x (nothing reads a variable of that name)") != std::string::npos);
  CHECK(result.out.find("libkiln_codegen.so (nothing reads") == std::string::npos);
}

TEST_CASE("doctor has version and path of what is found, and what to do about what is not") {
  const TempFolder folder;
  const auto tool = [&](const std::string& name, const std::string& text) {
    chmod(folder.write(name, "#!/bin/sh\n" + text).c_str(), 0755);
  };
  tool("ptxas", "echo 'ptxas: an assembler'; echo 'Cuda compilation tools, release 13.0, V13.0.88'\n");
  tool("llvm-objdump", "exit 3\n");
  const auto result = kiln_program({"doctor", "--json"}, {"PATH=" + folder.path(), "KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"});
  CHECK(result.status == 0);
  const auto checks = json_of(result)["checks"];
  const auto check = [&](const std::string& what) {
    for (const auto& c : checks)
      if (c["check"] == what) return c;
    return nlohmann::json(nullptr);
  };
  for (const auto& c : checks) {
    CAPTURE(c.dump());
    for (const char* field : {"check", "state", "text", "version", "path", "remedy"}) CHECK(c.contains(field));
    CHECK(c["remedy"].is_null() == (c["state"] == "ok"));
  }
  CHECK(check("code generator")["version"].get<std::string>().starts_with("22"));
  CHECK(check("code generator")["path"].get<std::string>().find("libkiln_codegen.so") != std::string::npos);
  CHECK(check("ptxas")["state"] == "ok");
  CHECK(check("ptxas")["version"] == "release 13.0, V13.0.88");
  CHECK(check("ptxas")["path"] == folder.file("ptxas"));
  CHECK(check("nvdisasm")["state"] == "missing");
  CHECK(check("nvdisasm")["remedy"].get<std::string>().find("CUDA toolkit") != std::string::npos);
  CHECK(check("objdump")["state"] == "warning");
  CHECK(check("CUDA driver")["remedy"].get<std::string>().find("KILN_CUDA_LIBRARY") != std::string::npos);
  CHECK(check("kernels kept")["remedy"].get<std::string>().find("KILN_ENV") != std::string::npos);
  CHECK(check("executable memory")["state"] == "ok");
  CHECK(check("limits")["text"].get<std::string>().find("open files") != std::string::npos);
  // With next to nothing: it still says all it can.
  const auto bare = kiln_program({"doctor"}, {"PATH", "HOME", "KILN_ENV", "KILN_CODEGEN=/nonexistent/libkiln_codegen.so"});
  CHECK(bare.status == 1);
  CHECK(bare.out.find("to do: set KILN_CODEGEN") != std::string::npos);
}

TEST_CASE("doctor shows the configuration and where each value comes from, or what is wrong with it and ends with 1") {
  const TempFolder folder;
  const std::string file = folder.write("kiln.json", R"({
  "compilation": {"parallelism": 3},
  "kernels": {
    "log_bytes": 4096
  }
})");
  const auto good = kiln_program({"doctor", "--json"}, {"KILN_CONFIG=" + file, "KILN_LOG_BYTES=128", "KILN_CPU_WORKERS=3"});
  CHECK(good.status == 0);
  const auto all = json_of(good);
  const auto setting = [&](const std::string& variable) {
    for (const auto& one : all["configuration"])
      if (one["variable"] == variable) return one["value"].get<std::string>() + " from " + one["from"].get<std::string>();
    return std::string("none");
  };
  CHECK(setting("KILN_COMPILE_JOBS") == "3 from " + file + ":2");
  CHECK(setting("KILN_LOG_BYTES") == "128 from KILN_LOG_BYTES");  // the variable wins
  CHECK(setting("KILN_LOG") == "warning from default");
  CHECK(setting("KILN_CONFIG") == file + " from KILN_CONFIG");
  CHECK(good.out.find("3 workers") != std::string::npos);
  CHECK(kiln_program({"doctor"}, {"KILN_CONFIG=" + file}).out.find("kernels.log_bytes = 4096 (" + file + ":4)") != std::string::npos);

  folder.write("kiln.json", "{\n  \"compilation\": {\"jobs\": 3}\n}");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"doctor"},
        {"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[1]", "--arg", "f32:1"}}) {
    const auto bad = kiln_program(command, {"KILN_CONFIG=" + file});
    CHECK(bad.status == 1);
    const std::string text = bad.out + bad.err;
    CHECK(text.find("'compilation.jobs' is no setting; the section 'compilation' has parallelism") != std::string::npos);
    CHECK(text.find("kiln.json:2") != std::string::npos);
  }
}

TEST_CASE("what needs no compiler works without one, and what needs one says which was tried") {
  const std::vector<std::string> without{"KILN_CODEGEN=/nonexistent/libkiln_codegen.so"};
  CHECK(kiln_program({"list", kSaxpy}, without).status == 0);
  CHECK(kiln_program({"show", kSaxpy, "saxpy"}, without).status == 0);
  TempFolder folder;
  CHECK(kiln_program({"emit", kSaxpy, "--emit", "kir,json", "-o", folder.path()}, without).status == 0);
  const auto result = kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out")}, without);
  CHECK(result.status == 1);
  CHECK(result.err.find("/nonexistent/libkiln_codegen.so") != std::string::npos);
  CHECK(files_in(folder.file("out")).empty());
}

TEST_CASE("doctor says that a device named in the environment cannot be used, and ends with 1, as every program that names none would") {
  for (const std::string device : {"abacus", "cuda:9", "\n"}) {
    CAPTURE(device);
    const std::vector<std::string> environment = {"KILN_DEVICE=" + device, "KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"};
    const auto result = kiln_program({"doctor"}, environment);
    CHECK(result.status == 1);
    CHECK(result.out.find("broken   environment") != std::string::npos);
    CHECK(result.out.find("KILN_DEVICE: ") != std::string::npos);
    CHECK(kiln_program(
              {"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[1]", "--arg", "f32:1"},
              environment)
              .status == 1);
  }
}

TEST_CASE("devices and doctor say the state of the CUDA driver, with the file tried") {
  struct Row {
    std::string library, state, word;
  };
  const std::string folder = KILN_BINARY_DIR "/lib/fakecuda/libcuda_";
  const Row rows[] = {{"/nonexistent/libcuda.so.1", "no library", "/nonexistent/libcuda.so.1"},
                      {folder + "stub.so", "stub", "34"},
                      {folder + "old.so", "too old", "11.8"},
                      {folder + "incomplete.so", "symbol missing", "cuLaunchKernelEx"},
                      {folder + "broken.so", "init failed", "803"},
                      {folder + "hidden.so", "no device", "CUDA_VISIBLE_DEVICES"},
                      {folder + "null.so", "ok", "13.0"}};
  for (const Row& row : rows) {
    CAPTURE(row.library);
    auto json = json_of(kiln_program({"devices", "--json"}, {"KILN_CUDA_LIBRARY=" + row.library}));
    CHECK(json["cuda_driver"]["state"] == row.state);
    CHECK(json["cuda_driver"]["file"] == row.library);
    CHECK(json["devices"][0]["device"] == "cpu");
    CHECK(json["devices"][1]["usable"] == (row.state == "ok"));
    const auto doctor = kiln_program({"doctor"}, {"KILN_CUDA_LIBRARY=" + row.library});
    CHECK(doctor.status == 0);
    CHECK(doctor.out.find(row.library) != std::string::npos);
    CHECK(doctor.out.find(row.word) != std::string::npos);
  }
}

TEST_CASE("devices lists each GPU of the driver with its name, limits, capability and memory, and the driver's file") {
  const std::string library = KILN_BINARY_DIR "/lib/libkiln_simcuda.so";
  const std::vector<std::string> two{"KILN_CUDA_LIBRARY=" + library, "KILN_SIMCUDA_DEVICES=h200,t4"};
  const auto json = json_of(kiln_program({"devices", "--json"}, two));
  const std::string text = kiln_program({"devices"}, two).out;
  REQUIRE(json["devices"].size() == 3);
  struct Row {
    const char *device, *name, *arch, *capability;
    std::uint64_t memory, dynamic_shared, multiprocessors;
    bool clusters;
  };
  const Row rows[] = {{"cuda:0", "NVIDIA H200", "sm_90", "9.0", 150754820096, 232448, 132, true},
                      {"cuda:1", "Tesla T4", "sm_75", "7.5", 15655829504, 65536, 40, false}};
  for (std::size_t i = 0; i < 2; ++i) {
    const Row& row = rows[i];
    const auto& gpu = json["devices"][i + 1];
    CAPTURE(gpu.dump());
    CHECK(gpu["device"] == row.device);
    CHECK(gpu["usable"] == true);
    CHECK(gpu["kind"] == "cuda");
    CHECK(gpu["name"] == row.name);
    CHECK(gpu["arch"] == row.arch);
    CHECK(gpu["compute_capability"] == row.capability);
    CHECK(gpu["memory_bytes"] == row.memory);
    CHECK(gpu["workers"] == row.multiprocessors);
    CHECK(gpu["max_grid"] == nlohmann::json::array({2147483647, 65535, 65535}));
    CHECK(gpu["max_block"] == nlohmann::json::array({1024, 1024, 64}));
    CHECK(gpu["max_threads_per_block"] == 1024);
    CHECK(gpu["max_static_shared_bytes"] == 49152);
    CHECK(gpu["max_dynamic_shared_bytes"] == row.dynamic_shared);
    CHECK(gpu["clusters"] == row.clusters);
    CHECK(gpu["cooperative"] == true);
    CHECK(text.find(std::string(row.device) + " " + row.name + ", " + row.arch + ", compute capability " + row.capability) !=
          std::string::npos);
    CHECK(text.find(std::to_string(row.dynamic_shared) + " with the dynamic part") != std::string::npos);
  }
  CHECK(text.find("at most 1024 threads, (1024, 1024, 64); a grid: at most (2147483647, 65535, 65535) blocks") != std::string::npos);
  CHECK(text.find("driver " + library + ", for CUDA 13.0, 2 devices\n") != std::string::npos);
}
