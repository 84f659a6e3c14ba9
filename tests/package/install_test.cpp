// What is installed and packed: an install tree that may be moved, kiln.pc, Debian packages and the archive.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "package/package.h"

using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

const char* const kProgram = R"(#include <kiln/kiln.h>

#include <cstdio>
#include <vector>
using namespace kiln;

KILN_KERNEL(twice, (InOut<f32> y)) {
  If (global_id().x < y.size()) { y[global_id().x] = y[global_id().x] * 2; }
}

int main() {
  Buffer<f32> y(std::vector<f32>(10, 21));
  twice(for_num_elems(10), y);
  std::printf("%g\n", y.read().value()[9]);
}
)";

// The files of a package or an archive, without folders, sorted.
std::set<std::string> files_of(const std::string& listing) {
  std::set<std::string> all;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    std::size_t at = line.find(" ./");
    if (at == std::string::npos) continue;
    std::string name = line.substr(at + 3);
    name = name.substr(0, name.find(" -> "));
    if (!name.empty() && name.back() != '/') all.insert(name);
  }
  return all;
}

std::string the_file(const std::string& folder, const std::string& beginning) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(beginning)) return entry.path().string();
  FAIL("no file '" << beginning << "...' in " << folder);
  return "";
}

}  // namespace

TEST_CASE("kiln.pc is enough to build a program, also where the install tree was moved") {
  if (!has_program("pkg-config")) return;
  const TempFolder folder;
  fs::copy(installed(), folder.file("moved"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::string source = folder.write("a.cpp", kProgram), program = folder.file("a"), libraries = folder.file("moved/lib");
  const std::vector<std::string> around{"PKG_CONFIG_PATH=" + libraries + "/pkgconfig"};
  const auto flags = run_process({"pkg-config", "--cflags", "--libs", "kiln"}, around);
  check_done(flags);
  std::vector<std::string> words{KILN_CXX_COMPILER, "-std=c++23", source, "-o", program, "-Wl,-rpath," + libraries};
  std::istringstream more(std::string(KILN_CXX_FLAGS " ") + flags.out);
  for (std::string word; more >> word;) words.push_back(word);
  check_done(run_process(words, {}, 300));
  const auto result = run_process({program}, {"KILN_DEVICE=cpu", "KILN_ENV=off", "KILN_CODEGEN", "LD_LIBRARY_PATH"});
  check_done(result);
  CHECK(result.out == "42\n");
  CHECK(run_process({"pkg-config", "--modversion", "kiln"}, around).out ==
        run_process({"sh", "-c", "'" + folder.file("moved/bin/kiln") + "' --version"}).out.substr(5));
}

TEST_CASE("no installed file names the folder that Kiln was built in, and the libraries carry a version") {
  for (const auto& entry : fs::recursive_directory_iterator(installed())) {
    if (!entry.is_regular_file() || entry.path().extension() == ".a" || entry.path().extension() == ".so") continue;
    const std::string name = entry.path().string();
    CAPTURE(name);
    if (entry.path().extension() == ".cmake" || entry.path().extension() == ".pc" || entry.path().extension() == ".h")
      CHECK_FALSE(says(read_file(name), KILN_BINARY_DIR));
  }
  for (const char* library : {"ir", "runtime", "dsl"}) {
    const std::string name = installed() + "/lib/libkiln_" + library + ".so";
    CAPTURE(name);
    CHECK(fs::read_symlink(name).string().starts_with(std::string("libkiln_") + library + ".so."));
    CHECK(says(run_process({"readelf", "-d", name}).out, "SONAME"));
  }
}

TEST_CASE("cpack makes a package for programs that needs no LLVM, one with the compiler, one for developers, and an archive of all") {
  if (!has_program("cpack") || !has_program("dpkg-shlibdeps") || !has_program("file")) return;
  const TempFolder folder;
  // CPack's own scratch folder is of the build folder; the packages are not.
  check_done(run_process({"cpack", "--config", KILN_BINARY_DIR "/CPackConfig.cmake", "-B", folder.path()}, {}, 300));
  const std::string runtime = the_file(folder.path(), "kiln-runtime_"), jit = the_file(folder.path(), "kiln-jit_"),
                    dev = the_file(folder.path(), "kiln-dev_"), archive = the_file(folder.path(), "kiln-0");
  const auto field = [](const std::string& package, const char* name) { return run_process({"dpkg-deb", "-f", package, name}).out; };
  const auto files = [](const std::string& package) { return files_of(run_process({"dpkg-deb", "-c", package}).out); };
  CHECK_FALSE(says(field(runtime, "Depends"), "llvm"));
  for (const char* needed : {"libc6", "libstdc++6", "libsqlite3-0", "libzstd1"}) CHECK(says(field(runtime, "Depends"), needed));
  CHECK(says(field(jit, "Depends"), "kiln-runtime (= "));
  CHECK(says(field(dev, "Depends"), "kiln-jit (= "));
  const std::set<std::string> in_runtime = files(runtime), in_jit = files(jit), in_dev = files(dev);
  const std::set<std::string> wanted_runtime{"usr/bin/kiln",
                                             "usr/lib/libkiln_dsl.so.0.1",
                                             "usr/lib/libkiln_runtime.so.0.1",
                                             "usr/lib/libkiln_ir.so.0.1",
                                             "usr/share/doc/kiln/LICENSE",
                                             "usr/share/man/man1/kiln.1",
                                             "usr/share/bash-completion/completions/kiln"};
  for (const std::string& name : wanted_runtime) CHECK_MESSAGE(in_runtime.contains(name), name);
  CHECK(in_jit == std::set<std::string>{"usr/lib/libkiln_codegen.so"});
  for (const char* name :
       {"usr/include/kiln/kiln.h", "usr/lib/libkiln_tool_main.a", "usr/lib/libkiln_runtime.so", "usr/lib/cmake/kiln/kilnConfig.cmake",
        "usr/lib/cmake/kiln/KilnKernels.cmake", "usr/lib/pkgconfig/kiln.pc", "usr/include/kiln/dsl/embedded.h"})
    CHECK_MESSAGE(in_dev.contains(name), name);
  for (const std::string& name : in_dev) CHECK_MESSAGE((!in_runtime.contains(name) && !in_jit.contains(name)), name);
  // The archive has all of it, and nothing else.
  std::size_t archived = 0;
  std::istringstream lines(run_process({"tar", "-tzf", archive}).out);
  for (std::string line; std::getline(lines, line);) archived += line.ends_with("/") ? 0 : 1;
  CHECK(archived == in_runtime.size() + in_jit.size() + in_dev.size());
}
