#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "benches.h"
#include "measure.h"
#include "support/process.h"

namespace kiln::bench {
namespace {

const std::string kKiln = KILN_BINARY_DIR "/bin/kiln", kSamples = KILN_BINARY_DIR "/lib/libkiln_samples.so";
void run(const std::vector<std::string>& words) {
  const test::ProcessResult result = test::run_process(words, {"KILN_ENV=off", "KILN_CODEGEN"}, 600);
  if (result.status != 0) throw std::runtime_error(words[0] + " failed: " + result.err);
}

// 200 pairs: the 22 kernels of the samples with their defaults, and variants of one for what is missing.
std::vector<std::string> emit_words(const char* kind, const std::string& out) {
  std::vector<std::string> words{kKiln, "emit", kSamples, "*", "matmul@tile=8", "matmul@tile=32", "matmul@unroll=2"};
  for (const char* word : {"--arch", "sm_75,sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_120", "--jobs", "2", "--emit"})
    words.emplace_back(word);
  words.insert(words.end(), {kind, "-o", out});
  return words;
}

std::size_t count_files(const std::string& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

std::string find_llc() {
  for (const char* name : {"llc-22", "llc"})
    if (test::run_process({"sh", "-c", std::string("command -v ") + name}).status == 0) return name;
  return {};
}

}  // namespace

std::vector<Row> emit() {
  const test::TempFolder folder;
  int number = 0;
  const auto emit_all = [&](const char* kind) {
    const std::string out = folder.file("out" + std::to_string(number++));
    run(emit_words(kind, out));
    return out;
  };
  const std::string texts = emit_all("llvm");
  const std::size_t pairs = count_files(texts);

  Row many;
  many.name = std::to_string(pairs) + " pairs, 2 jobs";
  many.unit = "ms/pair";
  std::function<void()> peer;
  if (const std::string llc = find_llc(); !llc.empty()) {
    many.peer_name = llc + ", a process a pair";
    // SYMBOL.ARCH.ll
    const std::string script = "cd " + texts + " && ls *.ll | xargs -P2 -I{} sh -c 'n=${1%.ll}; exec " + llc +
                               " -O2 -march=nvptx64 -mcpu=${n##*.} -o /dev/null $1' sh {}";
    peer = [script] { run({"sh", "-c", script}); };
  } else {
    many.why = "there is no llc here";
  }
  measure(many, 5, 1e3 / static_cast<double>(pairs), 1, [&] { std::filesystem::remove_all(emit_all("ptx")); }, peer);

  Row one;
  one.name = "1 pair, whole command";
  one.unit = "ms";
  one.why = "there is no peer";
  measure(one, 20, 1e3, 1,
          [&] {
            const std::string out = folder.file("one" + std::to_string(number++));
            run({kKiln, "emit", kSamples, "saxpy", "--arch", "sm_90", "--emit", "ptx", "-o", out});
            std::filesystem::remove_all(out);
          },
          {});
  return {many, one};
}

}  // namespace kiln::bench
