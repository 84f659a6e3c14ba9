// Kernels compiled by a build system into somebody else's programs and libraries.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "package/package.h"

using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

const std::string kEverything = "own 5\narchive 2000\nlinked 1\nopened 5\ngone\nopened 6\n";

// The project with all that it has, for tests that leave it as it is.
const Project& built_project() {
  static const Project project("project");
  static const bool built = [] {
    check_done(project.configure());
    check_done(project.build("all"));
    return true;
  }();
  REQUIRE(built);
  return project;
}

std::string sections(const std::string& file) {
  const auto result = run_process({"readelf", "-S", "-W", file});
  check_done(result);
  return result.out;
}

}  // namespace

TEST_CASE("a program runs the kernels that its build system compiled, with neither compiler nor LLVM, on the CPU and on a GPU") {
  const Project& project = built_project();
  const std::string wanted = "saxpy 5\ndefault 2\nvariant 6\n";
  const auto cpu = project.run("program");
  CAPTURE(cpu.out);
  CAPTURE(cpu.err);
  CHECK(cpu.status == 0);
  CHECK(cpu.out.starts_with(wanted));
  CHECK(says(cpu.out, "\ncompiler not loaded\n"));
  // What is not embedded is told with what is.
  for (const char* word : {"demo::scale", "factor=3,twice=false,side=1", "factor=2,twice=false,side=0", "factor=3,twice=true,side=0"})
    CHECK(says(cpu.out, word));
  const auto gpu = project.run("program", {}, {"KILN_DEVICE=cuda", "KILN_CUDA_LIBRARY=" KILN_BINARY_DIR "/lib/libkiln_simcuda.so"});
  CAPTURE(gpu.out);
  CAPTURE(gpu.err);
  CHECK(gpu.out.starts_with(wanted));
  CHECK(says(gpu.out, "\ncompiler not loaded\n"));
}

TEST_CASE("the tool that compiles a project's kernels is a command line of them, without a source to name") {
  const Project& project = built_project();
  const auto tool = [&](const std::vector<std::string>& words) {
    return project.run("kiln-tools/program_kernels_tool", words, {"KILN_CODEGEN"});
  };
  for (const std::vector<std::string>& words : {std::vector<std::string>{"list"}, {"list", "self"}, {"list", "-"}}) {
    const auto list = tool(words);
    check_done(list);
    CHECK(says(list.out, "demo::saxpy(In<f32> x, InOut<f32> y, Val<f32> a)\n    at kernels/saxpy.cpp:"));
    CHECK(says(list.out, "demo::scale(In<f32> x, Out<f32> y)\n"));
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"show", "saxpy", "--ir"}, {"show", "self", "demo::saxpy", "--ir"}})
    CHECK(says(tool(words).out, "kernel \"demo::saxpy\""));
  const auto run =
      tool({"run", "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[2]", "--arg", "f32:3"});
  check_done(run);
  CHECK(says(run.out, "[5"));
  struct Row {
    std::vector<std::string> words;
    std::string told;
  };
  const Row rows[] = {{{"show"}, "KERNEL is required"},
                      {{"show", "saxpy", "scale"}, "'scale' is one word too many"},
                      {{"list", "saxpy"}, "'saxpy' is one word too many"},
                      {{"show", "saxpi", "--ir"}, "did you mean 'demo::saxpy'?"},
                      {{"list", "./saxpy"}, "no file './saxpy'"}};
  for (const Row& row : rows) {
    CAPTURE(row.told);
    const auto result = tool(row.words);
    CHECK(result.status != 0);
    CHECK(says(result.err, row.told));
  }
}

TEST_CASE("a build with nothing to do does nothing, a changed kernel is compiled anew, and a changed signature does not compile") {
  const Project project("edited");
  check_done(project.configure());
  check_done(project.build("program"));
  CHECK(says(project.build("program").out, "no work to do"));
  // What the tool makes is the same each time.
  const std::string made = project.built("kiln/program_kernels/program_kernels.kilnb"), before = read_file(made);
  fs::last_write_time(project.built("kiln-tools/program_kernels_tool"), fs::file_time_type::clock::now());
  const auto again = project.build("program");
  CAPTURE(again.out);
  CHECK(says(again.out, "Compiling the kernels of program"));
  CHECK_FALSE(says(again.out, "Building CXX"));
  CHECK_FALSE(says(again.out, "Linking"));
  CHECK(read_file(made) == before);
  CHECK(says(project.build("program").out, "no work to do"));

  project.edit("kernels/saxpy.cpp", "a * x[i] + y[i]", "a * x[i] - y[i]");
  check_done(project.build("program"));
  CHECK(project.run("program").out.starts_with("saxpy 1\n"));
  project.edit("kernels/saxpy.cpp", "Val<f32> a)", "Val<f32> a, Val<u32> count)");
  project.edit("kernels/saxpy.cpp", ">= y.size()", ">= count");
  const auto changed = project.build("program");
  CAPTURE(changed.out);
  CHECK(changed.status != 0);
  CHECK(says(changed.out, "kiln: this launch has 3 arguments, and the kernel takes 4 (a config does not count)."));
  project.edit("kernels/saxpy.cpp", "In<f32> x, InOut<f32> y, Val<f32> a, Val<u32> count)", "In<f32> x, InOut<u32> y, Val<f32> a)");
  project.edit("kernels/saxpy.cpp", "a * x[i] - y[i]", "y[i] + cast<u32>(a)");
  project.edit("kernels/saxpy.cpp", ">= count", ">= y.size()");
  const auto other = project.build("program");
  CAPTURE(other.out);
  CHECK(other.status != 0);
  CHECK(says(other.out, "kiln: argument 2 of this launch is a buffer of another element type than the kernel's parameter."));
  // A kernel that does not compile fails the build, and what was there stays.
  const std::string kept = read_file(made);
  project.edit("kernels/saxpy.cpp", "y[i] + cast<u32>(a)", "y[i] + a");
  CHECK(project.build("program").status != 0);
  CHECK(read_file(made) == kept);
}

TEST_CASE("embedded kernels survive every linker, strip and --gc-sections, in archives, objects and libraries, linked and opened") {
  const Project& project = built_project();
  const TempFolder folder;
  const std::string opened = project.built("opened.so"), stripped = folder.file("opened.so");
  fs::copy_file(opened, stripped);
  check_done(run_process({"strip", "--strip-unneeded", stripped}));
  CHECK(!linkers().empty());
  for (const std::string& linker : linkers())
    for (const std::string pie : {"pie", "no-pie"}) {
      const std::string program = project.built("everything_" + linker + "_" + pie), bare = folder.file(linker + pie);
      fs::copy_file(program, bare);
      check_done(run_process({"strip", "--strip-all", bare}));
      for (const auto& [file, library] : {std::pair{program, opened}, {bare, stripped}}) {
        CAPTURE(file);
        const auto result = project.run(file, {library});
        CAPTURE(result.out);
        CAPTURE(result.err);
        CHECK(result.status == 0);
        CHECK(result.out.starts_with(kEverything));
        CHECK(says(sections(file), " kiln_bundles "));
        // Two modules with a kernel of one name that is not the same kernel: which of them is meant cannot be known.
        for (const std::string& word : {std::string("clash -1"), std::string("clash::value"), library, std::string("liblinked.so")})
          CHECK(says(result.out, word));
      }
    }
}

TEST_CASE("kernels of another build of Kiln are not run, and the error names both sides") {
  const Project& project = built_project();
  // The same Kiln with another build id.
  const TempFolder folder;
  for (const char* other : {"libkiln_ir.so.0.1", "libkiln_dsl.so.0.1"}) fs::copy_file(installed() + "/lib/" + other, folder.file(other));
  std::string bytes = read_file(installed() + "/lib/libkiln_runtime.so");
  const std::string id = read_file(KILN_BINARY_DIR "/generated/kiln_build_id.h");
  const std::string ours = id.substr(id.find("KILN_BUILD_ID \"") + 15, 40), theirs = std::string(40, 'f');
  // A compiler stores it in pieces.
  std::size_t places = 0;
  for (std::size_t piece = 0; piece < 32; piece += 8)
    for (std::size_t at = bytes.find(ours.substr(piece, 8)); at != std::string::npos;
         at = bytes.find(ours.substr(piece, 8), at + 1), ++places)
      bytes.replace(at, 8, theirs, 0, 8);
  REQUIRE(places >= 4);
  folder.write("libkiln_runtime.so.0.1", bytes);
  const auto result = project.run("program", {}, {"LD_LIBRARY_PATH=" + folder.path()});
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status != 0);
  for (const std::string& word : {ours.substr(0, 8), theirs.substr(0, 8), std::string("demo::saxpy"), project.built("program")})
    CHECK(says(result.out + result.err, word));
}

TEST_CASE("with Unix Makefiles the kernels are compiled once, and again when their source changes") {
  if (!has_program("make")) return;
  const Project project("make", "Unix Makefiles");
  check_done(project.configure());
  check_done(project.build("program"));
  CHECK(project.run("program").out.starts_with("saxpy 5\n"));
  const auto again = project.build("program");
  check_done(again);
  for (const char* word : {"Compiling the kernels", "Building", "Linking"}) CHECK_FALSE(says(again.out, word));
  project.edit("kernels/saxpy.cpp", "a * x[i] + y[i]", "a * x[i] - y[i]");
  check_done(project.build("program"));
  CHECK(project.run("program").out.starts_with("saxpy 1\n"));
}

TEST_CASE("a project for another machine takes the tools of its build for this one, and says so when they are missing") {
  const Project there("there");
  // For CMake this is another machine, whatever the compiler makes.
  const std::string other = "-DCMAKE_SYSTEM_NAME=Linux";
  const auto missing = there.configure({other});
  CHECK(missing.status != 0);
  for (const char* word : {"kiln_add_kernels(program)", "KILN_HOST_TOOLS", "kiln-tools"}) CHECK(says(missing.err, word));
  const auto nothing = there.configure({other, "-DKILN_HOST_TOOLS=/nowhere"});
  CHECK(nothing.status != 0);
  CHECK(says(nothing.err, "/nowhere/program_kernels_tool"));
  check_done(there.configure({other, "-DKILN_HOST_TOOLS=" + built_project().built("kiln-tools")}));
  check_done(there.build("program"));
  CHECK_FALSE(fs::exists(there.built("kiln-tools")));
  CHECK(there.run("program").out.starts_with("saxpy 5\n"));
}

TEST_CASE("a project finds Kiln in its build tree too, and what kiln_add_kernels cannot do is an error of the configuration") {
  const Project project("tree");
  const std::string tree = "-Dkiln_DIR=" KILN_BINARY_DIR;
  struct Row {
    std::string call, word;
  };
  const Row rows[] = {
      {"kiln_add_kernels(program)", "SOURCES names no file"},
      {"kiln_add_kernels(program kernels/saxpy.cpp)", "'kernels/saxpy.cpp' belongs to no keyword"},
      {"kiln_add_kernels(program SOURCES kernels/saxpy.cpp ARCHS)", "nothing follows ARCHS"},
      {"kiln_add_kernels(program SOURCES kernels/saxpy.cpp HEADER a/b.h)", "no header's name"},
      {"kiln_add_kernels(program SOURCES kernels/saxpy.cpp)\nkiln_add_kernels(program SOURCES kernels/scale.cpp)", "a second time"},
      {"kiln_add_kernels(kiln::kiln SOURCES kernels/saxpy.cpp)", "no executable and no library that is built here"},
  };
  const std::string lists = read_file(project.file("CMakeLists.txt"));
  for (const Row& row : rows) {
    CAPTURE(row.call);
    std::ofstream(project.file("CMakeLists.txt")) << "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES CXX)\n"
                                                     "find_package(kiln REQUIRED)\nadd_executable(program program.cpp)\n"
                                                  << row.call << "\n";
    const auto result = project.configure({tree});
    CHECK(result.status != 0);
    std::string line = result.err;
    for (char& c : line) c = c == '\n' ? ' ' : c;
    while (line.find("  ") != std::string::npos) line.erase(line.find("  "), 1);  // CMake breaks lines
    CAPTURE(line);
    CHECK(says(line, row.word));
  }
  std::ofstream(project.file("CMakeLists.txt")) << lists;
  check_done(project.configure({tree}));
  check_done(project.build("sums"));
}
