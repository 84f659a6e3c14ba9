// Whole programs with kernels in their sections, in every way that a linker has, where there is no code generator.
#include <doctest/doctest.h>

#include <filesystem>

#include "bundle/made_up.h"
#include "kiln/runtime/compiler.h"
#include "src/environment/entry.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string kFolder = KILN_BINARY_DIR "/lib/bundle/";
const std::vector<std::string> kAlone{"KILN_CODEGEN=/nowhere/libnone.so", "KILN_DEVICE=cpu", "KILN_CPU_WORKERS=2", "KILN_LOG"};

ProcessResult run(const std::string& program, const std::vector<std::string>& words = {}) {
  std::vector<std::string> argv{kFolder + program};
  argv.insert(argv.end(), words.begin(), words.end());
  return run_process(argv, kAlone);
}

const std::string kUsed =
    "scaled 3 shifted 4\n"
    "refused: a requirement of the kernel does not hold (x.size() >= y.size()): 10 >= 100 is false\n"
    "LLVM not loaded\n";

// The child's result for files of bundles.
std::string child(const std::vector<std::string>& words, const std::vector<std::string>& bundles) {
  const TempFolder folder;
  std::vector<std::string> argv{kFolder + "kiln_bundle_child"};
  argv.insert(argv.end(), words.begin(), words.end());
  for (std::size_t i = 0; i < bundles.size(); ++i) argv.push_back(folder.write("bundle" + std::to_string(i), bundles[i]));
  const ProcessResult r = run_process(argv, kAlone);
  CHECK(r.status <= 1);
  return r.out + r.err;
}
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

BundleItem object(const Variant& variant, const std::string& level, const std::array<std::uint32_t, 3>& block, bool aligned = false) {
  BundleItem item = object_item(level, block, aligned);
  item.code = code_generator().compiler->compile(*variant.prepared().value(), item.options);
  return item;
}
std::string bundle(const std::string& name, unsigned k, const std::vector<std::array<std::uint32_t, 3>>& blocks, bool aligned = false) {
  const Variant variant = adding(name, k);
  std::vector<BundleItem> items;
  for (const auto& block : blocks) items.push_back(object(variant, "x86-64", block, aligned));
  return write_bundle(variant, Mode::AsKernel, items).value();
}
// The fields of a bundle's table changed, as another build would have written them.
std::string by_another_build(std::string bytes) {
  const std::string own = expected_codegen_identity().build_id, other(own.size(), 'f');
  const std::size_t at = bytes.find(own);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, own.size(), other);
  std::uint64_t table = 0;
  for (std::size_t i = 0; i < 8; ++i) table |= std::uint64_t{static_cast<unsigned char>(bytes[24 + i])} << (8 * i);
  const auto digest = rt::digest(bytes.substr(0, 32) + bytes.substr(48, static_cast<std::size_t>(table)));
  return bytes.replace(32, 16, std::string(rt::view(digest)));
}

}  // namespace

TEST_CASE("a program runs its embedded kernels without LLVM, however it was linked") {
  for (const char* program :
       {"kiln_bundle_plain", "kiln_bundle_stripped", "kiln_bundle_fixed", "kiln_bundle_archived", "kiln_bundle_linked"}) {
    CAPTURE(program);
    const ProcessResult r = run(program);
    CHECK(r.status == 0);
    CHECK(r.out == kUsed);
    CHECK(r.err == "");
  }
}

TEST_CASE("no environment is opened for what is embedded") {
  const TempFolder folder;
  std::vector<std::string> environment = kAlone;
  environment.push_back("KILN_ENV=" + folder.file("env"));
  const ProcessResult r = run_process({kFolder + "kiln_bundle_plain"}, environment);
  CHECK(r.out == kUsed);
  CHECK(!std::filesystem::exists(folder.file("env")));
}

TEST_CASE("the bundles of a library are there while it is open, and what was loaded from them stays") {
  const ProcessResult r = run("kiln_bundle_opener", {kFolder + "libkiln_bundle_library.so"});
  CHECK(r.status == 0);
  CHECK(r.out == "before: 0 modules\n" + kUsed +
                     "open: 1 modules, 3 bundles, its path\n"
                     "closed: 0 modules\n"
                     "a block that nothing was loaded for: NoCodeGenerator\n");
}

TEST_CASE("a library comes and goes while threads look for its kernels and launch them") {
  const ProcessResult r = run("kiln_bundle_opener", {kFolder + "libkiln_bundle_library.so", "race"});
  CHECK(r.status == 0);
  CHECK(r.out == "launched some, other failures 0\n");
}

TEST_CASE("a recorded kernel is had from its bundle; where nothing fits, what is embedded and what the device is are listed") {
  const std::string exact = bundle("k", 3, {{64, 1, 1}, {8, 8, 1}});
  CHECK(child({"recorded", "k", "3", "64,1"}, {exact}) == "result 3\n");
  CHECK(child({"embedded", "k", "64,1"}, {exact}) == "result 3\n");
  CHECK(child({"shifted", "k", "3", "64,1"}, {exact}) == "result 3\n");
  const std::string none = child({"recorded", "k", "3", "32,1"}, {exact});
  CHECK(
      has(none,
          "NoEmbeddedCode\nwhat is embedded of the kernel cannot be used, and there is no code generator to compile it\n  none of what '"));
  CHECK(has(none, " (cpu), x86-64"));
  CHECK(has(none,
            ", in blocks of (32, 1, 1): object x86-64 (8x8x1), it is for blocks of (8, 8, 1); object x86-64 (64x1x1), it is for blocks of "
            "(64, 1, 1)"));
  CHECK(has(none, "the code generator could not be opened"));
  const std::string aligned = bundle("k", 3, {{64, 1, 1}}, true);
  CHECK(child({"recorded", "k", "3", "64,1"}, {aligned}) == "result 3\n");
  CHECK(has(child({"shifted", "k", "3", "64,1"}, {aligned}),
            "object x86-64 (64x1x1, aligned arguments), it is for arguments that lie at multiples of 16 bytes"));
  CHECK(has(child({"recorded", "k", "3", "64,1"}, {write_bundle(adding("k", 3), Mode::AsKernel, {ptx_item("sm_80")}).value()}),
            "PTX sm_80 (PTX 7.0), it is for a GPU"));
  // Of two modules the one that fits.
  CHECK(child({"recorded", "k", "3", "32,1"}, {exact, bundle("k", 3, {{32, 1, 1}})}) == "result 3\n");
}

TEST_CASE("code of another text, of another build, or damaged, is not used, and the error says whose it is") {
  const std::string good = bundle("k", 3, {{64, 1, 1}});
  const std::string other = child({"recorded", "k", "4", "64,1"}, {good});
  CHECK(has(other, "NoEmbeddedCode"));
  CHECK(has(other, "is not the one that this program recorded"));
  CHECK(has(other, "const 4 : u32` against `"));
  CHECK(child({"recorded", "k", "4", "64,1"}, {good, bundle("k", 4, {{64, 1, 1}})}).starts_with("result 4\n"));  // after a warning

  const std::string foreign = by_another_build(good);
  const std::string build = expected_codegen_identity().build_id;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"recorded", "k", "3", "64,1"}, {"embedded", "k", "64,1"}}) {
    const std::string said = child(words, {foreign});
    CHECK(has(said, "was made by Kiln 0.1.0 (build " + std::string(build.size(), 'f') + ", LLVM "));
    CHECK(has(said, "and this program runs with Kiln 0.1.0 (build " + build + ", LLVM "));
    CHECK(child(words, {foreign, good}).starts_with("result 3\n"));
  }
  CHECK(has(child({"embedded", "k", "64,1"}, {foreign}), "ForeignBundle\n"));

  std::string damaged = good;
  const std::size_t last = damaged.find_last_not_of('\0');
  damaged[last - 4] = static_cast<char>(damaged[last - 4] ^ 1);
  const std::string said = child({"embedded", "k", "64,1"}, {damaged});
  CHECK(has(said, "NoEmbeddedCode"));
  CHECK(has(said, "the bundle of kernel 'k' cannot be read: the checksum is not that of the bytes of its object x86-64 (64x1x1)"));
  CHECK(child({"embedded", "k", "64,1"}, {damaged, good}).starts_with("result 3\n"));
  damaged = good;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  CHECK(has(child({"embedded", "k", "64,1"}, {damaged}), "; what cannot be read may have it: in '"));
}
