// The configuration: the file, strictly; the environment before it; each setting does what it says.
#include "src/config.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/memory.h"
#include "runtime/memory_device.h"
#include "runtime/mode_devices.h"
#include "src/logging.h"
#include "src/memory/memory_settings.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;

namespace {

bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }

std::string value_of(const rt::ConfigFile& file, rt::Setting setting) {
  const auto& value = file.values[static_cast<std::size_t>(setting)];
  return value ? value->text + " at " + std::to_string(value->line) : "none";
}

}  // namespace

TEST_CASE("a configuration file is read section by section, with the line of each value") {
  const auto file = rt::parse_config(R"({
  // what this machine needs
  "device": {"default": "cpu", "cpu_workers": 7},
  "compilation": {
    "parallelism":
      3
  },
  "kernels": {"log_bytes": 0},
  "logging": {"levels": "off,compile=info", "sink": "logs/../kiln.log"}
})",
                                     "/somewhere/kiln.json");
  REQUIRE_MESSAGE(file.has_value(), file.error().text());
  CHECK(file->path == "/somewhere/kiln.json");
  CHECK(value_of(*file, rt::Setting::Device) == "cpu at 3");
  CHECK(value_of(*file, rt::Setting::CpuWorkers) == "7 at 3");
  CHECK(file->values[static_cast<std::size_t>(rt::Setting::CpuWorkers)]->number == 7);
  CHECK(value_of(*file, rt::Setting::Parallelism) == "3 at 5");
  CHECK(value_of(*file, rt::Setting::KernelLogBytes) == "0 at 8");
  CHECK(value_of(*file, rt::Setting::Levels) == "off,compile=info at 9");
  CHECK(value_of(*file, rt::Setting::Sink) == "/somewhere/kiln.log at 9");  // a path is relative to the file
  CHECK(value_of(rt::parse_config(R"({"logging": {"sink": "stderr"}})", "/a/kiln.json").value(), rt::Setting::Sink) == "stderr at 1");
  CHECK(value_of(rt::parse_config("{}", "/a/kiln.json").value(), rt::Setting::Device) == "none");
}

TEST_CASE("what is wrong with a configuration file is told with its line, and with what is allowed") {
  const struct {
    const char* text;
    const char* place;
    const char* sentence;
  } rows[] = {
      {"", "f:1", "the configuration file is no JSON: "},
      {"{\n \"device\": {,}\n}", "f:2", "the configuration file is no JSON: "},
      {"{}\n{}", "f:2", "the configuration file is no JSON: "},
      {"[]", "f:1", "the configuration file has to be one object of sections"},
      {"3", "f:1", "the configuration file has to be one object of sections"},
      {"{\n\n\"devices\": {}}", "f:3",
       "'devices' is no section of the configuration; there are device, environment, compilation, kernels, memory, logging, profiling"},
      {"{\"device\": 4}", "f:1", "the section 'device' has to be an object of settings"},
      {"{\"device\": [4]}", "f:1", "the section 'device' has to be an object of settings"},
      {"{\"device\": {\n\"workers\": 4}}", "f:2", "'device.workers' is no setting; the section 'device' has default, cpu_workers"},
      {"{\"device\": {\"library\": \"x.so\"}}", "f:1", "'device.library' is no setting"},
      {"{\"device\": {\"cpu_workers\": 4,\n\"cpu_workers\": 5}}", "f:2", "'device.cpu_workers' is set twice in the configuration file"},
      {"{\"device\": {},\n\"device\": {}}", "f:2", "'device' is set twice in the configuration file"},
      {"{\"device\": {\"cpu_workers\": 0}}", "f:1", "'device.cpu_workers' is 0, and it takes a number from 1 to 1024"},
      {"{\"device\": {\"cpu_workers\": 1025}}", "f:1", "'device.cpu_workers' is 1025, and it takes"},
      {"{\"device\": {\"cpu_workers\": -1}}", "f:1", "'device.cpu_workers' is -1, and it takes"},
      {"{\"device\": {\"cpu_workers\": 2.5}}", "f:1", "'device.cpu_workers' is 2.5, and it takes"},
      {"{\"device\": {\"cpu_workers\": \"4\"}}", "f:1", "'device.cpu_workers' is \"4\", and it takes"},
      {"{\"device\": {\"cpu_workers\": null}}", "f:1", "'device.cpu_workers' is null, and it takes"},
      {"{\"device\": {\"cpu_workers\": true}}", "f:1", "'device.cpu_workers' is true, and it takes"},
      {"{\"device\": {\"cpu_workers\": {}}}", "f:1", "'device.cpu_workers' is an object, and it takes"},
      {"{\"device\": {\"cpu_workers\": [4]}}", "f:1", "'device.cpu_workers' is a list, and it takes"},
      {"{\"device\": {\"default\": 4}}", "f:1", "'device.default' is 4, and it takes a text"},
      {"{\"device\": {\"default\": \"\"}}", "f:1", "'device.default' is \"\", and it takes a text"},
      {"{\"logging\": {\"levels\": \"loud\"}}", "f:1",
       "'logging.levels' is \"loud\", and it takes a level (debug, info, warning, error, off)"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const auto file = rt::parse_config(row.text, "f");
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().rule() == "Configuration");
    CHECK(file.error().code() == ErrorCode::Validation);
    CHECK(file.error().data().place == row.place);
    CHECK_MESSAGE(says(file.error(), row.sentence), file.error().text());
  }
  const auto large = rt::parse_config(std::string((1 << 20) + 1, ' '), "f");
  CHECK(says(large.error(), "has more than 1048576 bytes"));
}

TEST_CASE("the file is the first kiln.json from the working directory upward, or the one that is named") {
  namespace fs = std::filesystem;
  const TempFolder folder;
  fs::create_directories(folder.path() + "/a/b/c");
  fs::create_directories(folder.path() + "/e");
  const std::string outer = folder.write("kiln.json", R"({"device": {"cpu_workers": 1}})"),
                    inner = folder.write("a/b/kiln.json", R"({"device": {"cpu_workers": 2}})"),
                    named = folder.write("a/other.json", R"({"device": {"cpu_workers": 3}})");
  const struct {
    const char* named;
    const char* directory;
    std::string path;
  } rows[] = {{"", "/a/b/c", inner}, {"", "/a/b", inner}, {"", "/a", outer}, {"", "", outer}, {"off", "/a/b", ""}};
  for (const auto& row : rows) {
    CAPTURE(row.directory);
    CHECK(rt::find_config(row.named, folder.path() + row.directory).value().path == row.path);
  }
  CHECK(rt::find_config(named, folder.path() + "/a/b").value().path == named);
  CHECK(rt::find_config("", "/").has_value());
  CHECK(rt::find_config("", "").value().path.empty());  // a working directory that is gone

  for (const std::string& missing : {folder.file("none.json"), folder.path()}) {
    const auto refused = rt::find_config(missing, folder.path());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::NotFound);
    CHECK(refused.error().rule() == "Configuration");
    CHECK(says(refused.error(), "the configuration file '" + missing + "' cannot be read: "));
    CHECK(says(refused.error(), "KILN_CONFIG takes the path of a file, or off"));
  }
  fs::create_directories(folder.path() + "/e/kiln.json");
  CHECK(says(rt::find_config("", folder.path() + "/e").error(), "it is no regular file"));
}

TEST_CASE("a configuration file that is a link to nowhere, beyond any size, or named where no folder is, is an error that says so") {
  namespace fs = std::filesystem;
  const TempFolder folder;
  for (const char* where : {"circle", "nowhere", "gone"}) fs::create_directories(folder.path() + "/" + where);
  fs::create_symlink("kiln.json", folder.path() + "/circle/kiln.json");
  fs::create_symlink("none.json", folder.path() + "/nowhere/kiln.json");
  for (const char* where : {"/circle", "/nowhere"}) {
    const auto refused = rt::find_config("", folder.path() + where);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::NotFound);
    CHECK(says(refused.error(), "kiln.json' cannot be read: "));
  }
  const std::string large = folder.write("large.json", "{}");
  fs::resize_file(large, std::uintmax_t{1} << 36);  // is not read
  CHECK(says(rt::find_config(large, "").error(), "has more than 1048576 bytes"));

  const fs::path here = fs::current_path();
  fs::current_path(folder.path() + "/gone");
  fs::remove(folder.path() + "/gone");
  const auto refused = rt::find_config("relative.json", "");
  fs::current_path(here);
  REQUIRE_FALSE(refused.has_value());
  CHECK(says(refused.error(), "the configuration file 'relative.json' cannot be read: "));
}

TEST_CASE("a variable wins over the file, the file over the default, and an empty variable is none") {
  const auto file = rt::parse_config(R"({"device": {"default": "cuda:1", "cpu_workers": 4},
"kernels": {"log_bytes": 64}})",
                                     "/x/kiln.json")
                        .value();
  std::map<std::string, std::string> environment{{"KILN_DEVICE", "cpu"}, {"KILN_CPU_WORKERS", ""}, {"KILN_CODEGEN", "/y.so"}};
  const rt::Variables variable = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  };
  const Configuration all = rt::read_configuration(file, variable).value();
  CHECK(all.file == "/x/kiln.json");
  REQUIRE(all.settings.size() == rt::kSettings);
  std::map<std::string, std::string> seen;
  for (const ConfiguredSetting& s : all.settings) seen[s.variable] = s.value + " from " + s.from;
  CHECK(seen["KILN_DEVICE"] == "cpu from KILN_DEVICE");
  CHECK(seen["KILN_CPU_WORKERS"] == "4 from /x/kiln.json:1");
  CHECK(seen["KILN_LOG_BYTES"] == "64 from /x/kiln.json:2");
  CHECK(seen["KILN_CODEGEN"] == "/y.so from KILN_CODEGEN");
  CHECK(seen["KILN_CUDA_LIBRARY"] == " from default");
  CHECK(seen["KILN_LOG"] == "warning from default");
  const struct {
    const char *name, *value, *takes;
  } wrong[] = {{"KILN_COMPILE_JOBS", "many", "a number from 1 to 1024"},
               {"KILN_COMPILE_JOBS", "0", "a number from 1 to 1024"},
               {"KILN_COMPILE_JOBS", "+4", "a number from 1 to 1024"},
               {"KILN_COMPILE_JOBS", "4 ", "a number from 1 to 1024"},
               {"KILN_LOG_BYTES", "99999999999999999999", "a number from 0 to 1099511627776"},
               {"KILN_LOG", "info,compile", "and AREA=LEVEL for areas of another (launch, compile,"}};
  for (const auto& row : wrong) {
    environment = {{row.name, row.value}};
    const auto refused = rt::read_configuration(file, variable);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == "Configuration");
    CHECK(says(refused.error(), std::string("the variable ") + row.name + " is '" + row.value + "', and it takes "));
    CHECK_MESSAGE(says(refused.error(), row.takes), refused.error().text());
  }
}

TEST_CASE("whatever opens a device says what is wrong with the configuration, and works once that is right") {
  {
    const WithVariable jobs("KILN_COMPILE_JOBS", "none");
    const auto refused = Client::open("cpu");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == "Configuration");
    CHECK(says(refused.error(), "the variable KILN_COMPILE_JOBS is 'none', and it takes a number from 1 to 1024"));
    CHECK(configuration().error().text() == refused.error().text());
  }
  CHECK(Client::open("cpu").has_value());
  CHECK(configuration().value().settings.size() == rt::kSettings);
}

TEST_CASE("a log whose file cannot be written is told when a device is opened") {
  const WithVariable sink("KILN_LOG_FILE", "/dev/null/kiln.log");
  const auto refused = Client::open("cpu");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "Configuration");
  CHECK(says(refused.error(), "the file of logging.sink (KILN_LOG_FILE) cannot be written: there is no folder for "));
  CHECK(says(refused.error(), "/dev/null/kiln.log"));
}

TEST_CASE("the sections of memory and profiling take their settings, and refuse unknown keys and other values") {
  const auto file = rt::parse_config(R"({
  "memory": {"pools": "sub_slices", "max_page_bytes": 33554432, "keep_bytes": 0,
             "persistent": "size_match", "deferred_frees": 3, "deferred_bytes": 4096},
  "profiling": {"trace": "t.json", "operations": 12}
})",
                                     "/a/kiln.json")
                        .value();
  const std::pair<rt::Setting, const char*> rows[] = {
      {rt::Setting::MemoryPools, "sub_slices at 2"}, {rt::Setting::MemoryMaxPage, "33554432 at 2"},
      {rt::Setting::MemoryKeep, "0 at 2"},           {rt::Setting::MemoryPersistent, "size_match at 3"},
      {rt::Setting::MemoryDeferred, "3 at 3"},       {rt::Setting::MemoryDeferredBytes, "4096 at 3"},
      {rt::Setting::Trace, "/a/t.json at 4"},        {rt::Setting::TraceOperations, "12 at 4"},
  };
  for (const auto& [setting, value] : rows) CHECK(value_of(file, setting) == value);
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"memory": {"pool": "sub_slices"}})",
       "'memory.pool' is no setting; the section 'memory' has pools, max_page_bytes, keep_bytes, persistent, deferred_frees, "
       "deferred_bytes"},
      {R"({"memory": {"pools": "many"}})", "'memory.pools' is \"many\", and it takes one of device, sub_slices, exclusive_pages"},
      {R"({"memory": {"pools": "sub_slices exclusive_pages"}})", "and it takes one of device, sub_slices, exclusive_pages"},
      {R"({"memory": {"persistent": true}})", "'memory.persistent' is true, and it takes one of enabled, size_match, disabled, enforced"},
      {R"({"memory": {"max_page_bytes": 4096}})", "'memory.max_page_bytes' is 4096, and it takes a number from 2097152 to"},
      {R"({"memory": {"deferred_frees": 0}})", "'memory.deferred_frees' is 0, and it takes a number from 1 to"},
      {R"({"memory": {"keep_bytes": "all"}})", "'memory.keep_bytes' is \"all\", and it takes a number from 0 to"},
      {R"({"profiling": {"operations": 0}})", "'profiling.operations' is 0, and it takes a number from 1 to"},
      {R"({"profiling": {"nvtx": "on"}})", "'profiling.nvtx' is no setting; the section 'profiling' has trace, operations"},
  };
  for (const auto& [text, sentence] : wrong) {
    CAPTURE(text);
    const auto refused = rt::parse_config(text, "f");
    REQUIRE_FALSE(refused.has_value());
    CHECK_MESSAGE(says(refused.error(), sentence), refused.error().text());
  }
  const std::pair<const char*, const char*> variables[] = {{"KILN_MEMORY_POOLS", "one of device, sub_slices, exclusive_pages"},
                                                           {"KILN_MEMORY_PERSISTENT", "one of enabled, size_match,"},
                                                           {"KILN_MEMORY_DEFERRED", "a number from 1 to 1048576"},
                                                           {"KILN_MEMORY_KEEP", "a number from 0 to"},
                                                           {"KILN_MEMORY_MAX_PAGE", "a number from 2097152 to"},
                                                           {"KILN_MEMORY_DEFERRED_BYTES", "a number from 1 to"},
                                                           {"KILN_TRACE_OPERATIONS", "a number from 1 to"}};
  for (const auto& [name, takes] : variables) {
    const WithVariable set(name, "some");
    const auto refused = Client::open("cpu");
    REQUIRE_FALSE(refused.has_value());
    CHECK_MESSAGE(says(refused.error(), std::string("the variable ") + name + " is 'some', and it takes " + takes), refused.error().text());
  }
}

TEST_CASE("a choice is one of its words: not two of them, nor a part of one, nor none") {
  const rt::SettingRow& row = rt::row(rt::Setting::MemoryPools);
  for (const char* word : {"device", "sub_slices", "exclusive_pages"}) CHECK(rt::is_word(row, word));
  for (const char* other : {"device sub_slices", "sub", "", " ", "device ", "Device"}) CHECK_FALSE(rt::is_word(row, other));
  const WithVariable two("KILN_MEMORY_POOLS", "device sub_slices");
  CHECK(Client::open("cpu").error().rule() == "Configuration");
}

TEST_CASE("a device that is opened has the memory that the settings say, until another layout is installed") {
  const auto opened = [](bool simulated) {
    return Client(simulated ? make_sim_server() : rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value()));
  };
  const auto kinds = [](const Client& client) {
    std::vector<std::pair<PoolKind, std::uint64_t>> all;
    for (const PoolReport& pool : memory_report(client).value().pools)
      if (!pool.outdated && pool.kind != PoolKind::Persistent) all.emplace_back(pool.kind, pool.page_bytes);
    return all;
  };
  const auto persistent = [](const Client& client) { return memory_report(client).value().pools.back().usage.allocations; };
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  for (const bool simulated : {false, true}) {
    CAPTURE(simulated);
    {
      const WithVariable pools("KILN_MEMORY_POOLS", "exclusive_pages"), policy("KILN_MEMORY_PERSISTENT", "enforced");
      const Client client = opened(simulated);
      CHECK(kinds(client) == std::vector<std::pair<PoolKind, std::uint64_t>>{{PoolKind::Exclusive, kAnySize}});
      const auto x = Buffer<u32>::from_host(client, {1, 2}).value();
      CHECK(persistent(client) == 1);
      CHECK(x.read().value() == std::vector<u32>{1, 2});
      REQUIRE(install_memory_pools(client, MemoryPools::exclusive_pages()).has_value());
      const auto y = Buffer<u32>::zeroed(client, 2).value();
      CHECK(persistent(client) == 1);  // the layout that is installed says otherwise
    }
    {
      const WithVariable pools("KILN_MEMORY_POOLS", "sub_slices"), page("KILN_MEMORY_MAX_PAGE", std::to_string(200 * kMiB)),
          policy("KILN_MEMORY_PERSISTENT", "disabled");
      const Client client = opened(simulated);
      CHECK(kinds(client) == std::vector<std::pair<PoolKind, std::uint64_t>>{{PoolKind::Sliced, 2 * kMiB},
                                                                             {PoolKind::Sliced, 32 * kMiB},
                                                                             {PoolKind::Sliced, 128 * kMiB},
                                                                             {PoolKind::Exclusive, kAnySize}});
      const PersistentMemory window(client);
      const auto x = Buffer<u32>::zeroed(client, 2).value();
      CHECK(persistent(client) == 0);
    }
    {
      const WithVariable policy("KILN_MEMORY_PERSISTENT", "size_match"), pools("KILN_MEMORY_POOLS", "exclusive_pages");
      const Client client = opened(simulated);
      {
        const PersistentMemory window(client);
        const auto x = Buffer<u32>::zeroed(client, 5000).value();
      }
      REQUIRE(client.sync().has_value());
      const auto other = Buffer<u32>::zeroed(client, 5001 * 2).value();
      CHECK(persistent(client) == 0);
      const auto same = Buffer<u32>::zeroed(client, 5000).value();
      CHECK(persistent(client) == 1);
    }
    for (const char* keep : {"0", "1073741824"}) {
      const WithVariable kept("KILN_MEMORY_KEEP", keep), pools("KILN_MEMORY_POOLS", "exclusive_pages"), one("KILN_MEMORY_DEFERRED", "1");
      const Client client = opened(simulated);
      (void)Buffer<u32>::uninitialised(client, 1 << 20).value();
      CHECK(memory_report(client).value().total.bytes_reserved == (*keep == '0' ? 0 : 4 * kMiB));
    }
  }
}

TEST_CASE("how many unused pages are kept back before they go to the device together is a setting, by number and by size") {
  const auto leaving = [](std::uint64_t buffers, std::uint64_t bytes) {
    MemoryDevice device(1);
    device.traits.pools.pools = {{PoolKind::Direct, 0, 0, 0, 0}};
    rt::MemorySettings settings;
    settings.deferred = {buffers, bytes};
    rt::MemoryManager manager(device, settings);
    std::vector<std::size_t> blocks;
    for (int i = 0; i < 4; ++i) {
      auto block = manager.allocate(100, {}).value();
      manager.retire(std::move(block), {});
      blocks.push_back(device.blocks());
    }
    return blocks;
  };
  CHECK(leaving(64, 64 << 20) == std::vector<std::size_t>{1, 2, 3, 4});
  CHECK(leaving(1, 64 << 20) == std::vector<std::size_t>{0, 0, 0, 0});
  CHECK(leaving(3, 64 << 20) == std::vector<std::size_t>{1, 2, 0, 1});
  CHECK(leaving(64, 200) == std::vector<std::size_t>{1, 0, 1, 0});
  const WithVariable number("KILN_MEMORY_DEFERRED", "3"), bytes("KILN_MEMORY_DEFERRED_BYTES", "500");
  const rt::MemorySettings set = rt::configured_memory({});
  CHECK(set.deferred.buffers == 3);
  CHECK(set.deferred.bytes == 500);
  CHECK_FALSE(set.pools.has_value());
  CHECK_FALSE(set.keep.has_value());
  CHECK(set.persistent == PersistentPolicy::Enabled);
}

TEST_CASE("every row of the table of settings has a name, a meaning and a default that it takes itself") {
  std::map<std::string, int> names;
  for (const rt::SettingRow& row : rt::settings()) {
    CHECK((*row.key != 0 || *row.variable != 0));
    if (*row.key != 0) CHECK(names[row.key]++ == 0);
    if (*row.variable != 0) CHECK(names[row.variable]++ == 0);
    CHECK(std::string(row.variable).starts_with("KILN_"));
    CHECK(std::string(row.meaning).size() > 20);
    CHECK_FALSE(rt::allowed(row).empty());
    if (row.kind == rt::SettingKind::Number && *row.fallback != 0) {
      const auto number = std::stoull(row.fallback);
      CHECK((number >= row.least && number <= row.most));
    }
    if (row.kind == rt::SettingKind::Choice)
      CHECK((" " + std::string(row.choices) + " ").find(" " + std::string(row.fallback) + " ") != std::string::npos);
    if (row.kind == rt::SettingKind::Levels) CHECK(rt::parse_log_levels(row.fallback).has_value());
  }
}
