// kiln emit --emit bundle: which files and items there are, and the source and header that embed them.
#include <doctest/doctest.h>

#include <set>

#include "cli/cli.h"
#include "kiln/runtime/bundle.h"

using namespace kiln::test;

namespace {

std::vector<std::string> emit(const std::string& source, const std::vector<std::string>& more, const std::string& out) {
  std::vector<std::string> words{"emit", source, "--emit", "bundle", "-o", out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void check_emitted(const kiln::test::ProcessResult& result) {
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

std::string kernel_named(const std::string& name) {
  return "kernel \"" + name + "\" {\n  buffer y : u32[*] out\n  body {\n    %i = global_id.x\n    store y[%i], %i\n  }\n}\n";
}

}  // namespace

TEST_CASE("a bundle is a file for each variant and mode, and the same bytes each time") {
  const TempFolder folder;
  const std::vector<std::string> more{"scale", "repeat@*", "--arch", "sm_80", "--modes", "own,checked,unchecked"};
  check_emitted(kiln_program(emit(kKernelLibrary, more, folder.file("a"))));
  check_emitted(kiln_program(emit(kKernelLibrary, more, folder.file("b"))));
  const std::vector<std::string> files = files_in(folder.file("a"));
  // Five configs that the space accepts, and a kernel without one; own is checked.
  CHECK(files.size() == 12);
  std::set<std::string> kernels;
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string bytes = read_file(folder.file("a/" + file));
    CHECK(read_file(folder.file("b/" + file)) == bytes);
    const auto bundles = kiln::read_bundles(bytes);
    REQUIRE(bundles.has_value());
    REQUIRE(bundles->size() == 1);
    const kiln::BundleInfo& info = bundles->front().info();
    kernels.insert(info.kernel);
    CHECK(file.ends_with(info.checked ? ".checked.kilnb" : ".unchecked.kilnb"));
  }
  CHECK(kernels.size() == 6);
  CHECK(kernels.contains("cli_test::repeat@times=1,negate=true"));
}

TEST_CASE("a bundle has code for any arguments of each architecture, and better code only where it is other code") {
  const TempFolder folder;
  // Two floats side by side: one access of 8 bytes where the arguments are aligned.
  check_emitted(kiln_program(emit(kKernelLibrary, {"scale", "--arch", "sm_80,sm_90", "--embed", "all"}, folder.path())));
  const std::string bytes = read_file(folder.file("all.kilnb"));
  const auto bundles = kiln::read_bundles(bytes);
  REQUIRE(bundles.has_value());
  REQUIRE(bundles->size() == 1);
  std::set<std::string> general, codes;
  for (std::size_t i = 0; i < bundles->front().info().items.size(); ++i) {
    const auto item = bundles->front().item(i);
    REQUIRE(item.has_value());
    if (!item->options.aligned16 && !item->options.block_multiple_of_32) general.insert(item->options.arch);
    CHECK_MESSAGE(codes.insert(item->options.arch + item->code.code).second, "the same code twice");
  }
  CHECK(general == std::set<std::string>{"sm_80", "sm_90"});
}

TEST_CASE("the header has the kernels with their types and configs, and the source changes with the bundles") {
  const TempFolder folder;
  check_emitted(kiln_program(
      emit(kKernelLibrary, {"--arch", "sm_80", "--embed", "app", "--header", "kernels.h", "--depfile", "app.d"}, folder.file("a"))));
  CHECK(files_in(folder.file("a")) == std::vector<std::string>{"app.cpp", "app.d", "app.kilnb", "kernels.h"});
  CHECK(
      read_file(folder.file("a/kernels.h")) ==
      R"(// Made by `kiln emit --embed`: kernels to launch without recording or compiling them, as their own names would. Not to be edited.
#pragma once
#include <kiln/dsl/embedded.h>

extern "C" const char kiln_embedded_app[];

namespace cli_test {
inline namespace kiln_app {

struct RepeatConfig {
  ::kiln::u32 times = 2u;
  bool negate = false;
};
KILN_CONFIG(RepeatConfig, times, negate)
// cli_test::repeat(In<i32> x, Out<i32> y)
[[gnu::visibility("hidden")]] inline const ::kiln::EmbeddedFamily<::cli_test::kiln_app::RepeatConfig, ::kiln::In<::kiln::i32>, ::kiln::Out<::kiln::i32>> repeat{"cli_test::repeat", &kiln_embedded_app};
// cli_test::scale(In<f32> x, Out<f32> y, Val<f32> a)
[[gnu::visibility("hidden")]] inline const ::kiln::EmbeddedKernel<::kiln::In<::kiln::f32>, ::kiln::Out<::kiln::f32>, ::kiln::Val<::kiln::f32>> scale{"cli_test::scale", &kiln_embedded_app};

}
}
)");
  const std::string depends = read_file(folder.file("a/app.d"));
  CHECK(depends.starts_with(folder.file("a") + "/app.kilnb: "));
  CHECK(depends.find("libkiln_codegen.so\n") != std::string::npos);
  // Elsewhere, into a namespace, for another architecture.
  check_emitted(kiln_program(emit(kKernelLibrary, {"--arch", "sm_80", "--embed", "app", "--namespace", "mine::gpu"}, folder.file("b"))));
  const std::string header = read_file(folder.file("b/app.h"));
  CHECK(header.find("\nnamespace mine::gpu {\ninline namespace kiln_app {\n") != std::string::npos);
  CHECK(header.find("EmbeddedFamily<::mine::gpu::kiln_app::RepeatConfig, ") != std::string::npos);
  CHECK(header.find("{\"cli_test::scale\", &kiln_embedded_app}") != std::string::npos);
  CHECK(read_file(folder.file("b/app.kilnb")) == read_file(folder.file("a/app.kilnb")));
  check_emitted(kiln_program(emit(kKernelLibrary, {"--arch", "sm_90", "--embed", "app"}, folder.file("c"))));
  const auto anchor = [](const std::string& source) { return source.substr(source.find("kiln_embedded_app[] = "), 60); };
  CHECK(anchor(read_file(folder.file("a/app.cpp"))) == anchor(read_file(folder.file("b/app.cpp"))));
  CHECK(anchor(read_file(folder.file("a/app.cpp"))) != anchor(read_file(folder.file("c/app.cpp"))));
}

TEST_CASE("what cannot be a bundle, or cannot be embedded, is refused, and nothing is written") {
  const TempFolder folder;
  const std::string odd = folder.write("odd.kir", "kir 1\n" + kernel_named("scale<float, 3>")),
                    twins = folder.write("twins.kir", "kir 1\n" + kernel_named("a::twin") + kernel_named("b::twin")),
                    out = folder.file("out"), colon = folder.file("a\"b\\c");
  struct Row {
    std::string source;
    std::vector<std::string> more;
    int status;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {kSaxpy, {}, 2, {"--emit bundle needs --arch"}},
      {kSaxpy, {"--arch", "sm_80", "--block", "32"}, 2, {"--block", "--blocks"}},
      {kSaxpy, {"--arch", "sm_80", "--blocks", "0"}, 2, {"--blocks 0"}},
      {kSaxpy, {"--arch", "sm_80", "--blocks", "8,x"}, 2, {"--blocks '8,x'"}},
      {kSaxpy, {"--arch", "sm_80", "--modes", "chekced"}, 2, {"'chekced'"}},
      {kSaxpy, {"--arch", "sm_80", "--modes", "checked", "--mode", "checked"}, 2, {"--modes"}},
      {kSaxpy, {"--arch", "sm_80", "--embed", "a-b"}, 2, {"--embed a-b"}},
      {kSaxpy, {"--arch", "sm_80", "--header", "a.h"}, 2, {"--header needs --embed"}},
      {kSaxpy, {"--arch", "sm_80", "--embed", "a", "--header", "b/a.h"}, 2, {"b/a.h"}},
      {kSaxpy, {"--arch", "sm_80", "--embed", "a", "--namespace", "::b"}, 2, {"--namespace ::b"}},
      {kSaxpy, {"--arch", "sm_80", "--variant", "saxpy@*"}, 2, {"saxpy@*", "no config"}},
      {kSaxpy, {"--arch", "sm_80", "--variant", "saxpi@*"}, 2, {"saxpi", "did you mean"}},
      {odd, {"--arch", "sm_80", "--embed", "a"}, 1, {"scale<float, 3>", "C++"}},
      {twins, {"--arch", "sm_80", "--embed", "a", "--namespace", "n"}, 1, {"a::twin", "b::twin", "n::twin"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words[0]);
    check_refused(kiln_program(emit(row.source, row.more, out)), row.status, row.words);
    CHECK(files_in(out).empty());
  }
  for (const char* option : {"--blocks", "--modes", "--embed", "--header", "--namespace", "--depfile"}) {
    CAPTURE(option);
    check_refused(kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "-o", out, option, "1"}), 2, {option, "--emit bundle"});
  }
  check_emitted(kiln_program(emit(odd, {"--arch", "sm_80"}, out)));
  // A path with quotes is a path.
  check_emitted(kiln_program(emit(kSaxpy, {"--arch", "sm_80", "--embed", "a"}, colon)));
  CHECK(read_file(colon + "/a.cpp").find(R"(.incbin \")" + folder.path() + R"(/a\\\"b\\\\c/a.kilnb\"\n")") != std::string::npos);
}

TEST_CASE("only a program with kernels of its own may be asked for them") {
  for (const char* word : {"self", "-"}) check_refused(kiln_program({"list", word}), 2, {std::string("'") + word + "'", "has none"});
}
