// What must not compile, with the sentence that the compiler must print, and what must. One file under cases/ is one mistake; its first line says what is
// expected: "// expect: SENTENCE", or "// expect: ok" for code that must compile without a warning. Run with the compiler of the build and, where there
// is one, with a clang that knows C++23. Each compiler reads kiln.h once, as a precompiled header.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> chunk;
  for (std::size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) outcome.output.append(chunk.data(), n);
  outcome.status = pclose(pipe);
  return outcome;
}

struct Case {
  fs::path file;
  std::string expect;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& entry : fs::directory_iterator(KILN_CASES)) {
    std::ifstream in(entry.path());
    std::string first;
    std::getline(in, first);
    const std::string prefix = "// expect: ";
    all.push_back({entry.path(), first.starts_with(prefix) ? first.substr(prefix.size()) : ""});
  }
  std::sort(all.begin(), all.end(), [](const Case& a, const Case& b) { return a.file < b.file; });
  return all;
}

// Compiles every case and checks what comes out.
void check_all(const std::string& compiler, bool clang, const std::string& name) {
  const fs::path scratch = fs::path(KILN_SCRATCH) / name;
  fs::create_directories(scratch);
  const fs::path header = scratch / "kiln_pch.h";
  std::ofstream(header) << "#include <kiln/kiln.h>\n";
  const std::string flags = " -std=c++23 -Wall -Wextra -Wshadow " KILN_INCLUDES " ";
  const std::string compiled = scratch / (clang ? "kiln_pch.pch" : "kiln_pch.h.gch");
  const Outcome pch = run(compiler + flags + "-x c++-header " + header.string() + " -o " + compiled);
  REQUIRE_MESSAGE(pch.status == 0, pch.output);
  const std::string use = clang ? " -include-pch " + compiled : " -include " + header.string();

  const std::vector<Case> all = cases();
  std::vector<Outcome> outcomes(all.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < all.size();) {
      const std::string strict = all[i].expect == "ok" ? " -Werror" : "";
      outcomes[i] = run(compiler + flags + strict + use + " -fsyntax-only " + all[i].file.string());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::clamp(std::thread::hardware_concurrency(), 1u, 8u); ++t) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();

  REQUIRE(all.size() > 70);
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(name << ": " << all[i].file.filename().string() << ", expected: " << all[i].expect << "\n" << outcomes[i].output.substr(0, 3000));
    CHECK(all[i].expect != "");
    if (all[i].expect == "ok") {
      CHECK(outcomes[i].status == 0);
    } else {
      CHECK(outcomes[i].status != 0);
      CHECK(outcomes[i].output.find(all[i].expect) != std::string::npos);
      // One mistake, one sentence: no other one is printed because of it.
      const std::string& text = outcomes[i].output;
      for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        if (line.find("error: ") != std::string::npos && line.find("kiln: ") != std::string::npos) CHECK_MESSAGE(line.find(all[i].expect) != std::string::npos, line);
      }
      // The sentence is near the top, not below a list of candidates.
      CHECK(outcomes[i].output.substr(0, outcomes[i].output.find(all[i].expect)).size() < 4000);
    }
  }
}

}  // namespace

TEST_CASE("each misuse is refused with its sentence, and what is right compiles: the compiler of the build") {
  check_all(KILN_CXX, std::string(KILN_CXX_ID).find("Clang") != std::string::npos, "build-compiler");
}

TEST_CASE("each misuse is refused with its sentence, and what is right compiles: clang") {
  if (std::string(KILN_CXX_ID).find("Clang") != std::string::npos) return;  // just done
  for (const std::string clang : {"/usr/lib/llvm-22/bin/clang++", "clang++-22"}) {
    if (run(clang + " --version").status == 0) {
      check_all(clang, true, "clang");
      return;
    }
  }
  MESSAGE("skipped: no clang 22 is installed");
}
