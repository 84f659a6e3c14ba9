// Damaged .kir texts: each is read or refused with a place; what is read prints and reads back the same; the verifier, and for what it
// accepts prepare, never crash. Deterministic: the seeds are fixed.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln::ir;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts{read_file(KILN_SOURCE_DIR "/samples/kir/saxpy.kir"), read_file(KILN_SOURCE_DIR "/tests/ir/forms.kir")};
  texts.push_back(print(parse(texts[1])));
  return texts;
}

struct Counts {
  int read = 0, refused = 0, verified = 0;
};

void judge(const std::string& text, Counts& counts) {
  std::vector<Kernel> kernels;
  try {
    kernels = parse(text);
  } catch (const IrError& e) {
    ++counts.refused;
    REQUIRE(e.diagnostics().size() == 1);
    REQUIRE_FALSE(e.diagnostics()[0].message.empty());
    REQUIRE(e.diagnostics()[0].place.find("line ") == 0);
    return;
  }
  ++counts.read;
  const std::string printed = print(kernels);
  std::vector<Kernel> again;
  REQUIRE_NOTHROW(again = parse(printed));
  REQUIRE(print(again) == printed);
  for (const Kernel& k : kernels) {
    const Diagnostics found = verify(k);
    for (const Diagnostic& d : found) REQUIRE_FALSE(d.message.empty());
    if (!found.empty()) {
      CHECK_THROWS_AS(prepare(k), IrError);
      continue;
    }
    ++counts.verified;
    try {
      const Prepared prepared = prepare(k);
      REQUIRE(verify(prepared.kernel).empty());
      REQUIRE(print(parse_kernel(print(prepared.kernel))) == print(prepared.kernel));
    } catch (const IrError&) {}
  }
}

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : next() % n; }

 private:
  std::uint64_t state_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& l : lines) text += l + "\n";
  return text;
}

// One edit, from a flipped byte to a moved line. Edits that keep most of the form reach deeper than noise.
void edit(std::string& text, Random& random) {
  static const std::vector<std::string> words{"%0",
                                              "%zero",
                                              "%f",
                                              "x",
                                              "tile",
                                              "acc",
                                              "{",
                                              "}",
                                              "[",
                                              "]",
                                              ":",
                                              ",",
                                              "=",
                                              "@0:1",
                                              "0",
                                              "-1",
                                              "4294967296",
                                              "18446744073709551616",
                                              "0x",
                                              "1e999",
                                              "nan",
                                              "\"",
                                              "\\x",
                                              "f32",
                                              "i8",
                                              "bf16",
                                              "e4m3",
                                              "bool",
                                              "void",
                                              "u64",
                                              "if %lt {\n",
                                              "while {\n",
                                              "} do {\n",
                                              "switch %i {\n",
                                              "for %q = %zero, %one, %one {\n",
                                              "yield %t\n",
                                              "break\n",
                                              "return\n",
                                              "barrier\n",
                                              "const",
                                              "load",
                                              "store",
                                              "cast",
                                              "add",
                                              "site 4000000000",
                                              "proven",
                                              "kernel \"z\" {\nbody {\n}\n}\n",
                                              "kir 1\n"};
  const std::size_t at = random.below(text.size());
  switch (random.below(14)) {
    case 0: text[at] = static_cast<char>(random.next()); break;
    case 1: text.erase(at, 1 + random.below(8)); break;
    case 2: text.insert(at, words[random.below(words.size())]); break;
    case 3: text.insert(random.below(text.size()), text.substr(at, 1 + random.below(60))); break;
    case 4: {  // a number becomes another
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text.replace(digit, 1, std::to_string(random.below(300)));
      break;
    }
    case 5: {  // a word becomes another
      const std::size_t space = text.find(' ', at);
      if (space == std::string::npos) break;
      const std::size_t end = text.find_first_of(" \n", space + 1);
      if (end != std::string::npos) text.replace(space + 1, end - space - 1, words[random.below(words.size())]);
      break;
    }
    case 6:
    case 7:
    case 8: {  // a value becomes another: often well-formed, seldom right
      const std::size_t from = text.find('%', at), other = text.find('%', random.below(text.size()));
      if (from == std::string::npos || other == std::string::npos) break;
      const char* const ends = " ,]:\n";
      const std::string name = text.substr(other, text.find_first_of(ends, other) - other);
      text.replace(from, std::min(text.find_first_of(ends, from), text.size()) - from, name);
      break;
    }
    case 9:
    case 10: {  // an operation becomes another
      const std::size_t eq = text.find("= ", at);
      if (eq == std::string::npos) break;
      const std::size_t end = std::min(text.find_first_of(" \n.", eq + 2), text.size());
      text.replace(eq + 2, end - eq - 2, info(static_cast<Opcode>(random.below(kOpcodeCount))).mnemonic);
      break;
    }
    default: {
      std::vector<std::string> lines = lines_of(text);
      const std::size_t a = random.below(lines.size()), b = random.below(lines.size());
      if (random.below(2) == 0) {
        std::swap(lines[a], lines[b]);
      } else if (random.below(2) == 0) {
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
      } else {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(a), lines[b]);
      }
      text = joined(lines);
    }
  }
  if (text.empty()) text = "k";
}

}  // namespace

TEST_CASE("texts cut at every byte are read or refused") {
  for (const std::string& text : seeds()) {
    Counts counts;
    for (std::size_t n = 0; n < text.size(); ++n) judge(text.substr(0, n), counts);
    CHECK(counts.refused > static_cast<int>(text.size()) / 2);
    Counts whole;
    judge(text, whole);
    CHECK(whole.verified >= 1);
  }
}

TEST_CASE("texts without one of their lines are read or refused") {
  for (const std::string& text : seeds()) {
    const std::vector<std::string> lines = lines_of(text);
    Counts counts;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::vector<std::string> fewer = lines;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      judge(joined(fewer), counts);
    }
    CHECK(counts.read > 0);
    CHECK(counts.refused > 0);
  }
}

TEST_CASE("randomly edited texts are read or refused") {
  Counts counts;
  std::uint64_t seed = 1;
  for (const std::string& text : seeds()) {
    for (int round = 0; round < 5000; ++round) {
      Random random(seed++);
      std::string damaged = text;
      const std::size_t edits = random.below(3) == 0 ? 1 + random.below(4) : 1;
      for (std::size_t i = 0; i < edits; ++i) edit(damaged, random);
      CAPTURE(seed);
      judge(damaged, counts);
    }
  }
  MESSAGE("read " << counts.read << ", refused " << counts.refused << ", verified " << counts.verified);
  // Otherwise the edits are too wild or too tame to show anything.
  CHECK(counts.read > 1000);
  CHECK(counts.refused > 5000);
  CHECK(counts.verified > 1000);
}

TEST_CASE("random bytes are refused") {
  Counts counts;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::string text = seed % 2 == 0 ? "" : "kir 1\nkernel \"k\" {\nbody {\n";
    for (std::size_t i = random.below(200); i > 0; --i) text += static_cast<char>(random.next());
    judge(text, counts);
  }
  CHECK(counts.refused > 290);
}
