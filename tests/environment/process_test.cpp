// Programs that obtain their kernels from an environment.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment/made_up.h"
#include "environment/stress.h"
#include "kiln/runtime/environment.h"

using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

const std::string kChild = KILN_BINARY_DIR "/lib/environment/kiln_environment_child";

ProcessResult child(const std::vector<std::string>& words, std::vector<std::string> environment, const std::string& folder = "") {
  std::vector<std::string> argv{kChild};
  argv.insert(argv.end(), words.begin(), words.end());
  environment.insert(environment.begin(), {"KILN_CPU_WORKERS=1", "KILN_LOG", "KILN_CODEGEN"});
  return run_process(argv, environment, 120, folder);
}

void check_ran(const ProcessResult& r, const std::string& out, std::size_t warnings = 0, const std::string& said = "") {
  CAPTURE(r.out);
  CAPTURE(r.err);
  CHECK(r.status == 0);
  CHECK(r.out == out);
  CHECK(static_cast<std::size_t>(std::count(r.err.begin(), r.err.end(), '\n')) == warnings);
  CHECK(r.err.find(said) != std::string::npos);
  if (warnings > 0) CHECK(r.err.find("KILN_ENV") != std::string::npos);
}

const char* const kCompiled = "compiled 2 loaded 0 stored 2\n";
const char* const kNotKept = "compiled 2 loaded 0 stored 0\n";
const char* const kLoaded = "compiled 0 loaded 2 stored 0\n";

// As a user who may do no more than others: root may write everywhere.
std::vector<std::string> as_user() {
  return geteuid() == 0 ? std::vector<std::string>{"run", "2", "--as", "65534"} : std::vector<std::string>{"run", "2"};
}

std::vector<std::string> all_below(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) all.push_back(entry.path().string());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a second process has its kernels from the environment, without the code generator") {
  const TempFolder folder;
  const std::string env = "KILN_ENV=" + folder.file("env");
  check_ran(child({"run", "2"}, {env}), kCompiled);
  check_ran(child({"run", "2"}, {env}), kLoaded);
  check_ran(child({"run", "2"}, {env, "KILN_CODEGEN=/nowhere/libnone.so"}), kLoaded);
  const auto more = child({"run", "3"}, {env, "KILN_CODEGEN=/nowhere/libnone.so"});
  CHECK(more.status == 1);  // the third one is not there
  CHECK(more.err.find("the code generator could not be opened") != std::string::npos);
  check_ran(child({"run", "3"}, {env}), "compiled 1 loaded 2 stored 1\n");
  check_ran(child({"run", "2"}, {"KILN_ENV=off"}), kNotKept);
}

TEST_CASE("kernels of one name that captured other constants are not mixed up, also in a process that compiles none") {
  const TempFolder folder;
  const std::string env = "KILN_ENV=" + folder.path();
  check_ran(child({"addk", "4", "8", "4"}, {env}), "5 9 5 \n");
  check_ran(child({"addk", "4", "8", "4"}, {env, "KILN_CODEGEN=/nowhere/libnone.so"}), "5 9 5 \n");
  check_ran(child({"addk", "8", "5", "4"}, {env}), "9 6 5 \n");
}

TEST_CASE("two processes, whose memory lies elsewhere, make the same keys and the same bytes") {
  const TempFolder one, two;
  check_ran(child({"run", "3"}, {"KILN_ENV=" + one.path(), "MALLOC_PERTURB_=85"}), "compiled 3 loaded 0 stored 3\n");
  check_ran(child({"run", "3", "--shuffle"}, {"KILN_ENV=" + two.path(), "MALLOC_PERTURB_=171", "LONG=" + std::string(5000, 'x')}),
            "compiled 3 loaded 0 stored 3\n");
  const auto entries = [](const TempFolder& folder) {
    std::set<std::vector<std::string>> all;
    rt::StoreFile file(file_in(folder), rt::StoreFile::As::Write);
    file.each("", [&](const rt::StoreRow& row) {
      all.insert({row.entry.hash, row.entry.kernel, row.entry.arch, row.entry.key, row.entry.code, row.entry.checksum});
      return true;
    });
    return all;
  };
  CHECK(entries(one).size() == 3);
  CHECK(entries(one) == entries(two));
}

TEST_CASE("why a kernel is not in the environment is told at level debug") {
  const TempFolder folder;
  const std::string env = "KILN_ENV=" + folder.path(), log = "KILN_LOG=off,environment=debug";
  const auto first = child({"addk", "4"}, {env, log});
  CHECK(first.err.find("kernel 'addk' for x86-64") != std::string::npos);
  CHECK(first.err.find("is not in the environment: there is no entry of that kernel") != std::string::npos);
  const auto second = child({"addk", "8"}, {env, log});
  CHECK(second.err.find("is not in the environment: the kernel's text from line ") != std::string::npos);
  CHECK(child({"addk", "8"}, {env, log}).err.empty());
}

TEST_CASE(
    "without a folder that can be used kernels are compiled, with one warning that names the variable, and nothing is written elsewhere") {
  const TempFolder outer;
  chmod(outer.path().c_str(), 0755);
  const std::string cwd = outer.file("cwd");
  fs::create_directory(cwd);
  const auto unused = [&](const std::vector<std::string>& words, const std::vector<std::string>& environment, const std::string& why) {
    CAPTURE(why);
    const auto before = all_below(outer.path());
    check_ran(child(words, environment, cwd), kNotKept, 1, why);
    CHECK(all_below(outer.path()) == before);
  };
  SUBCASE("(a) HOME is not set") {
    unused({"run", "2"}, {"KILN_ENV", "HOME", "XDG_CACHE_HOME"}, "neither HOME nor XDG_CACHE_HOME says where");
  }
  SUBCASE("(b) HOME is no folder") {
    unused({"run", "2"}, {"KILN_ENV", "HOME=" + outer.file("none"), "XDG_CACHE_HOME"}, "cannot be made");
    unused({"run", "2"}, {"KILN_ENV=" + outer.file("none/env")}, "cannot be made");
  }
  SUBCASE("(c) the folder is only read, and empty") {
    const std::string folder = outer.file("env");
    fs::create_directory(folder);
    chmod(folder.c_str(), 0555);
    unused(as_user(), {"KILN_ENV=" + folder}, "it cannot be written, and there is nothing in it");
  }
  SUBCASE("(d) the folder is only read, and filled: that is no trouble") {
    const std::string folder = outer.file("env");
    check_ran(child({"run", "2"}, {"KILN_ENV=" + folder}), kCompiled);
    chmod((folder + "/environment.db").c_str(), 0444);
    chmod(folder.c_str(), 0555);
    const auto before = all_below(outer.path());
    check_ran(child(as_user(), {"KILN_ENV=" + folder, "KILN_CODEGEN=/nowhere/libnone.so"}, cwd), kLoaded);
    auto more = as_user();
    more[1] = "3";
    check_ran(child(more, {"KILN_ENV=" + folder}, cwd), "compiled 1 loaded 2 stored 0\n");
    CHECK(all_below(outer.path()) == before);
  }
  SUBCASE("(e) it is a file") {
    const std::string file = outer.write("file", "something");
    unused({"run", "2"}, {"KILN_ENV=" + file}, "it is a file, and has to be a folder");
    unused({"run", "2"}, {"KILN_ENV", "XDG_CACHE_HOME=" + file}, "cannot be");
    CHECK(read_file(file) == "something");
  }
  SUBCASE("(f) the folder is another user's") {
    if (geteuid() != 0) return;  // nobody else can give a folder away
    const std::string folder = outer.file("env");
    fs::create_directory(folder);
    REQUIRE(chown(folder.c_str(), 65534, 65534) == 0);
    unused({"run", "2"}, {"KILN_ENV=" + folder}, "it belongs to another user");
    REQUIRE(chown(folder.c_str(), 0, 0) == 0);
    unused({"run", "2", "--as", "65534"}, {"KILN_ENV=" + folder}, "it cannot be written, and there is nothing in it");
  }
}

TEST_CASE("on a full disk kernels are compiled and run, with one warning, and nothing half made is left") {
  if (run_process({"unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"}).status != 0) {
    MESSAGE("not tested: no file system can be mounted here");
    return;
  }
  const TempFolder folder;
  for (const char* kib : {"4", "64", "120"}) {
    CAPTURE(kib);
    const auto r = run_process({"unshare", "-rm", "sh", "-c",
                                "mount -t tmpfs -o size=" + std::string(kib) + "k none " + folder.path() + " && " + kChild + " run 20 && " +
                                    kChild + " run 20 && ls " + folder.path()},
                               {"KILN_CPU_WORKERS=1", "KILN_LOG", "KILN_CODEGEN", "KILN_ENV=" + folder.path()});
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.status == 0);
    CHECK(r.out.starts_with("compiled 20 loaded 0 stored "));
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') <= 2);  // one of each process
    CHECK(r.out.find("environment.db.damaged") == std::string::npos);
  }
}

TEST_CASE("processes that begin together with an empty environment all have right results, while some are killed and entries are removed") {
  for (const Removed removed : {Removed::Nothing, Removed::Rows, Removed::Files}) {
    CAPTURE(static_cast<int>(removed));
    const StressResult result = stress_round({.processes = 5, .kernels = 6, .kills = 2, .removed = removed}, 7);
    CHECK(result.killed <= 2);
    for (const std::string& text : result.wrong) FAIL_CHECK(text);
  }
}
