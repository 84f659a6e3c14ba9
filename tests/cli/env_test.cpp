// kiln env: looking at an environment, bounding and sharing it; and kiln run, which fills it.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cli/cli.h"

using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

std::string with_itself(const std::string& kernel, const std::string& operation) {
  return "kernel \"" + kernel + R"(" {
  buffer y : f32[*] inout
  body {
    %i = global_id.x
    %n = size y
    %in = lt %i, %n
    if %in {
      %v = load y[%i]
      %w = )" +
         operation + R"( %v, %v
      store y[%i], %w
    }
  }
}
)";
}
// `kiln run` of two kernels into an environment.
const std::string kTwo = "kir 1\n" + with_itself("one", "add") + with_itself("two", "mul");

ProcessResult run_kernel(const std::string& source, const std::string& kernel, const std::vector<std::string>& environment) {
  return kiln_program({"run", source, kernel, "--grid", "1", "--block", "32", "--arg", "inout:f32:[3]"}, environment);
}

// In one entry, where SQLite does not look: the architecture.
std::string damaged(std::string bytes) {
  const std::size_t at = bytes.rfind("x86-64");
  REQUIRE(at != std::string::npos);
  bytes[at] = 'y';
  return bytes;
}

struct Filled {
  explicit Filled(const std::string& source_text = kTwo)
      : source(folder.write("two.kir", source_text)), variable("KILN_ENV=" + folder.file("env")) {
    for (const char* kernel : {"one", "two"}) {
      const auto r = run_kernel(source, kernel, {variable});
      CHECK_MESSAGE(r.status == 0, r.err);
    }
  }
  ProcessResult env(std::vector<std::string> words) const {
    words.insert(words.begin(), "env");
    return kiln_program(words, {variable});
  }
  nlohmann::json json(std::vector<std::string> words) const {
    words.push_back("--json");
    const auto r = env(words);
    CHECK_MESSAGE(r.status == 0, r.err);
    return json_of(r);
  }
  TempFolder folder;
  std::string source, variable;
};

}  // namespace

TEST_CASE("env list and show tell what is kept") {
  const Filled f;
  const auto list = f.json({"list"})["entries"];
  REQUIRE(list.size() == 2);
  for (const auto& e : list) {
    CHECK((e["kernel"] == "one" || e["kernel"] == "two"));
    CHECK(e["arch"].get<std::string>().starts_with("x86-64"));
    CHECK(e["block"] == nlohmann::json{32, 1, 1});
    CHECK(e["of_this_kiln"] == true);
    CHECK(e["id"].get<std::string>().size() == 32);
    CHECK(e["code_bytes"] > 100);
    CHECK(e["used"] > 1'600'000'000);
  }
  CHECK(f.json({"list", "--kernel", "two"})["entries"].size() == 1);
  CHECK(f.json({"list", "--arch", "sm_90"})["entries"].empty());
  CHECK(f.env({"list"}).out.find("two") != std::string::npos);
  const std::string id = list[0]["id"];
  CHECK(f.json({"show", id.substr(0, 8)})["entries"][0] == list[0]);
  CHECK(f.env({"show", "one"}).out.find("this Kiln") != std::string::npos);
  check_refused(f.env({"show", "three"}), 1, {"entry or kernel 'three'", "one"});
  const auto path = f.json({"path"});
  CHECK(path["off"] == false);
  CHECK(path["layers"][0]["entries"] == 2);
  CHECK(path["layers"][0]["path"] == f.folder.file("env"));
}

TEST_CASE("env verify finds a damaged entry, and drops it when it is asked to") {
  const Filled f;
  CHECK(f.json({"verify"})["ok"] == true);
  f.folder.write("env/environment.db", damaged(read_file(f.folder.file("env/environment.db"))));
  auto r = f.env({"verify", "--json"});
  CHECK(r.status == 1);
  auto json = json_of(r);
  REQUIRE(json["wrong"].size() == 1);
  CHECK(json["wrong"][0]["wrong"] == "its checksum is not that of its bytes");
  check_refused(f.env({"export", f.folder.file("x")}), 1, {"is damaged: its checksum"});
  CHECK_FALSE(fs::exists(f.folder.file("x")));
  r = f.env({"verify", "--drop"});
  CHECK(r.status == 0);
  CHECK(r.out.find("2 entries, 1 damaged, 1 dropped") != std::string::npos);
  CHECK(f.json({"verify"})["entries"] == 1);
}

TEST_CASE("env prune and clear remove entries") {
  const Filled f;
  check_refused(f.env({"prune"}), 2, {"--max-bytes", "--unused"});
  check_refused(f.env({"prune", "--max-bytes", "1T"}), 2, {"--max-bytes '1T'", "B, K, M, G"});
  check_refused(f.env({"prune", "--unused", "-1d"}), 2, {"--unused '-1d'"});
  CHECK(f.json({"prune", "--unused", "1d", "--max-bytes", "100M"})["removed"] == 0);
  CHECK(f.json({"prune", "--max-bytes", "1K"})["removed"] == 2);
  CHECK(f.json({"list"})["entries"].empty());
  CHECK(run_kernel(f.source, "one", {f.variable}).status == 0);
  CHECK(f.env({"clear"}).out.starts_with("1 entry removed: "));
  CHECK(f.json({"path"})["layers"][0]["entries"] == 0);
}

TEST_CASE("env export takes a part elsewhere, where it is imported, merged, or read as a layer") {
  const Filled f;
  const std::string file = f.folder.file("some.kernels"), none = "KILN_CODEGEN=/nowhere/libnone.so";
  CHECK(f.json({"export", file, "--kernel", "one"})["exported"] == 1);
  CHECK(files_in(f.folder.path()) == std::vector<std::string>{"env", "some.kernels", "two.kir"});
  check_refused(f.env({"export", f.folder.file("x"), "--kernel", "nine"}), 1, {"no entry of", "these kernels"});
  check_refused(f.env({"export", f.folder.file("no/x")}), 1, {"no/x", "cannot be used"});

  const std::string other = f.folder.file("other");
  auto r = kiln_program({"env", "import", file}, {"KILN_ENV=" + other});
  CHECK_MESSAGE(r.status == 0, r.err);
  CHECK(run_kernel(f.source, "one", {"KILN_ENV=" + other, none}).status == 0);
  CHECK(run_kernel(f.source, "two", {"KILN_ENV=" + other, none}).status == 1);
  r = kiln_program({"env", "merge", f.folder.file("env"), "--json"}, {"KILN_ENV=" + other});
  CHECK(json_of(r)["imported"] == 2);
  CHECK(run_kernel(f.source, "two", {"KILN_ENV=" + other, none}).status == 0);

  const std::string layered = "KILN_ENV=" + f.folder.file("third") + ":" + file;
  CHECK(run_kernel(f.source, "one", {layered, none}).status == 0);
  CHECK(run_kernel(f.source, "two", {layered, none}).status == 1);
  CHECK(run_kernel(f.source, "two", {layered}).status == 0);
  CHECK(json_of(kiln_program({"env", "list", "--json"}, {layered}))["entries"].size() == 2);

  // What is no environment, or damaged, brings nothing.
  const std::string bytes = damaged(read_file(file));
  const std::string fourth = "KILN_ENV=" + f.folder.file("fourth");
  check_refused(kiln_program({"env", "import", f.folder.write("bad", bytes)}, {fourth}), 1, {"is damaged: its checksum"});
  check_refused(kiln_program({"env", "import", f.source}, {fourth}), 1, {"two.kir", "the file is damaged"});
  check_refused(kiln_program({"env", "import", f.folder.file("missing")}, {fourth}), 1, {"there is no environment"});
  CHECK(json_of(kiln_program({"env", "path", "--json"}, {fourth}))["layers"][0]["entries"] == 0);
}

TEST_CASE("env why says hit, or what differs") {
  const Filled f;
  const auto why = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"why", f.source});
    return f.json(words);
  };
  CHECK(why({"one", "--block", "32"})["hit"] == true);
  const struct {
    std::vector<std::string> words;
    std::string reason;
  } rows[] = {{{"one", "--block", "64"}, "block 64,1,1 against 32,1,1"},
              {{"one", "--block", "32", "--arch", "x86-64"}, "arch x86-64 against x86-64-v"},
              {{"one", "--block", "32", "--mode", "unchecked"}, "the kernel's text from line "}};
  for (const auto& row : rows) {
    const auto answer = why(row.words);
    CHECK(answer["hit"] == false);
    REQUIRE(answer["reasons"].size() == 1);
    CHECK_MESSAGE(answer["reasons"][0].get<std::string>().starts_with(row.reason), answer.dump());
    CHECK(answer["entries_of_kernel"] == 1);
  }
  CHECK(why({"one", "--arch", "sm_90"})["reasons"].size() >= 2);
  std::string edited = kTwo;
  edited.replace(edited.find("add %v"), 3, "sub");
  f.folder.write("two.kir", edited);
  const auto text = f.env({"why", f.source, "one", "--block", "32"});
  CHECK(text.out.find("miss\n  the kernel's text from line") != std::string::npos);
  CHECK(text.out.find("sub") != std::string::npos);
  f.env({"clear"});
  CHECK(why({"two", "--block", "32"})["reasons"][0] == "there is no entry of that kernel");
}

TEST_CASE("without an environment the commands say so, and an empty one is no error") {
  const auto off = kiln_program({"env", "path"});
  CHECK(off.status == 0);
  CHECK(off.out == "off (KILN_ENV)\n");
  for (const char* command : {"list", "verify", "clear"}) check_refused(kiln_program({"env", command}), 1, {"KILN_ENV is off"});
  check_refused(kiln_program({"env"}), 2, {"a command is missing", "kiln env --help"});
  check_refused(kiln_program({"env", "lisst"}), 2, {"'lisst'", "did you mean 'list'"});
  check_refused(kiln_program({"env", "export"}), 2, {"FILE"});
  TempFolder folder;
  const std::string variable = "KILN_ENV=" + folder.file("env");
  CHECK(json_of(kiln_program({"env", "list", "--json"}, {variable}))["entries"].empty());
  CHECK(json_of(kiln_program({"env", "clear", "--json"}, {variable}))["removed"] == 0);
  check_refused(kiln_program({"env", "export", folder.file("x")}, {variable}), 1, {"nothing was kept yet"});
  CHECK(files_in(folder.path()).empty());  // nothing is made by looking
  const std::string doctor = kiln_program({"doctor"}, {variable}).out;
  CHECK(doctor.find(folder.file("env") + ": nothing yet") != std::string::npos);
  check_refused(kiln_program({"env", "list"}, {"KILN_ENV", "HOME", "XDG_CACHE_HOME"}), 1, {"neither HOME nor XDG_CACHE_HOME"});
  check_refused(kiln_program({"env", "list"}, {"KILN_ENV=" + folder.write("file", "x")}), 1, {"it is a file, and has to be a folder"});
}
