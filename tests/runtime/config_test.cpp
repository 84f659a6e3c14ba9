// The configuration: the file, strictly; the environment before it; each setting does what it says.
#include "src/config.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kiln/runtime/buffer.h"
#include "runtime/mode_devices.h"
#include "src/logging.h"
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
      {"{\n\n\"devices\": {}}", "f:3", "'devices' is no section of the configuration; there are device, compilation, kernels, memory, logging, profiling"},
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
  CHECK(says(refused.error(), "the file of logging.sink cannot be written: "));
  CHECK(says(refused.error(), "/dev/null/kiln.log"));
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
    if (row.kind == rt::SettingKind::Levels) CHECK(rt::parse_log_levels(row.fallback).has_value());
  }
}
