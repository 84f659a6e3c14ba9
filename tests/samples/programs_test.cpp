// The sample programs: each runs, checks itself and says so in one line; the demo on a file of ours.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "support/clients.h"
#include "support/process.h"

using kiln::test::ProcessResult;
using kiln::test::program_devices;
using kiln::test::run_process;
using kiln::test::TempFolder;

namespace {

const std::string bin = std::string(KILN_BINARY_DIR) + "/bin/sample_";

}  // namespace

TEST_CASE("every sample program finds its results right, on every device") {
  for (const auto& device : program_devices()) {
    for (const std::string name : {"saxpy", "stencil", "matmul", "reduce", "histogram", "scan", "softmax", "layer_norm", "transpose",
                                   "gather", "unit_rows", "nbody", "black_scholes"}) {
      const ProcessResult r = run_process({bin + name}, device.environment);
      INFO(name << " on " << device.name << ": " << r.out << r.err);
      CHECK(r.status == 0);
      CHECK(r.out.starts_with(name + ": ok, "));
      CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 1);
      CHECK(r.err == "");
    }
  }
}

TEST_CASE("a sample on a device that does not exist fails with one sentence") {
  const ProcessResult r = run_process({bin + "saxpy"}, {"KILN_DEVICE=abacus"});
  CHECK(r.status == 1);
  CHECK(r.out == "");
  CHECK(r.err.find("abacus") != std::string::npos);
}

TEST_CASE("the image pipeline names the pictures that it wrote, and takes one of them again") {
  for (const auto& device : program_devices()) {
    const TempFolder folder;
    const ProcessResult r = run_process({bin + "image", "--output", folder.file("first")}, device.environment);
    INFO(device.name << ": " << r.out << r.err);
    CHECK(r.status == 0);
    CHECK(r.out.starts_with("image: ok, 320 x 240 pixels, written: "));
    for (const char* name : {"picture.png", "blurred.png", "edges.png"}) {
      CHECK_MESSAGE(r.out.find(folder.file("first/") + name) != std::string::npos, name);
      CHECK(kiln::test::read_file(folder.file("first/") + name).starts_with("\x89PNG"));
    }
    const ProcessResult again =
        run_process({bin + "image", "--image", folder.file("first/edges.png"), "--output", folder.file("second")}, device.environment);
    INFO(again.out << again.err);
    CHECK(again.status == 0);
    CHECK(again.out.find("picture.png") == std::string::npos);
    CHECK(kiln::test::read_file(folder.file("second/blurred.png")) != kiln::test::read_file(folder.file("first/blurred.png")));
  }
}

TEST_CASE("the image pipeline refuses what is no picture, with the file's name") {
  const TempFolder folder;
  for (const std::string& file : {folder.file("nothing"), folder.write("text", "no picture"), folder.write("cut", "\x89PNG\r\n\x1a\n")}) {
    const ProcessResult r = run_process({bin + "image", "--image", file, "--output", folder.file("out")}, {"KILN_DEVICE=cpu"});
    INFO(r.out << r.err);
    CHECK(r.status == 1);
    CHECK(r.err.find(file) != std::string::npos);
    CHECK(r.out == "");
  }
  CHECK(run_process({bin + "image", "--output", folder.write("file", "") + "/below"}, {"KILN_DEVICE=cpu"}).status == 1);
  CHECK(run_process({bin + "image", "--picture", "x"}).status == 2);
}

TEST_CASE("the demo counts a file whose length is no multiple of a word") {
  const TempFolder folder;
  std::string bytes;
  for (int i = 0; i < 100'003; ++i) bytes += static_cast<char>(i * i >> 3);
  for (const auto& device : program_devices()) {
    const ProcessResult r = run_process({bin + "demo", "--file", folder.write("bytes", bytes)}, device.environment);
    INFO(device.name << ": " << r.out << r.err);
    CHECK(r.status == 0);
    for (const char* part :
         {"kernel samples::byte_histogram", "declared in     proven: read only", "declared inout  proven: read and written",
          "declared out    proven: written only", ".visible .entry samples$3a$3abyte_histogram", "GB/s",
          "demo: ok, all 256 counts and the entropy agree with plain C++"}) {
      CHECK_MESSAGE(r.out.find(part) != std::string::npos, part);
    }
  }
}

TEST_CASE("the demo of one byte, and of bytes that are all the same, has entropy 0") {
  const TempFolder folder;
  for (const std::string& bytes : {std::string("x"), std::string(5000, 'k')}) {
    const ProcessResult r = run_process({bin + "demo", "--file", folder.write("bytes", bytes)}, {"KILN_DEVICE=cpu"});
    INFO(r.out << r.err);
    CHECK(r.status == 0);
    CHECK(r.out.find("entropy: 0.00000 bits per byte") != std::string::npos);
  }
}

TEST_CASE("the demo refuses what it cannot read, with the file's name") {
  const TempFolder folder;
  const ProcessResult missing = run_process({bin + "demo", "--file", folder.file("nothing")});
  CHECK(missing.status == 1);
  CHECK(missing.err.find(folder.file("nothing")) != std::string::npos);
  const ProcessResult empty = run_process({bin + "demo", "--file", folder.write("empty", "")});
  CHECK(empty.status == 1);
  CHECK(empty.err.find("is empty") != std::string::npos);
  CHECK(run_process({bin + "demo", "--files", "x"}).status == 2);
}
