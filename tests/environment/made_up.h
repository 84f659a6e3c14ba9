// Keys and code that nothing compiled, and environments over folders of a test.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "src/environment/environment.h"
#include "support/process.h"

namespace kiln::test {

inline rt::ProgramKey made_up_key(const std::string& kernel = "k", const std::string& arch = "x86-64-v3") {
  rt::ProgramKey key;
  key.kernel_text = "kernel \"" + kernel + "\" {\n  body {\n  }\n}\n";
  key.options.arch = arch;
  key.options.block = {32, 1, 1};
  return key;
}
inline CompiledCode made_up_code(const std::string& text) {
  CompiledCode code;
  code.code = text;
  code.symbol = "symbol_of_" + text.substr(0, 8);
  code.ptx_version = 63;
  code.static_shared_bytes = 128;
  code.context_bytes = 1ull << 40;
  code.context_bytes_per_warp = 192;
  return code;
}
inline bool same(const CompiledCode& a, const CompiledCode& b) {
  return a.code == b.code && a.symbol == b.symbol && a.ptx_version == b.ptx_version && a.static_shared_bytes == b.static_shared_bytes &&
         a.context_bytes == b.context_bytes && a.context_bytes_per_warp == b.context_bytes_per_warp;
}

// An environment as a process has one, at `named` (as KILN_ENV), and what it warned of.
struct Opened {
  explicit Opened(const std::string& named, std::uint64_t most = 1 << 30)
      : environment(rt::environment_places(named, "", "", "/"), most, [this](const std::string& text) { warnings.push_back(text); }) {}
  bool store(const rt::ProgramKey& key, const std::string& text, const std::string& kernel = "k") {
    return environment.store(rt::serialise(key), kernel, key.options.arch, made_up_code(text));
  }
  // What is there, as store() was given it; "" a miss.
  std::string find(const rt::ProgramKey& key, const std::string& kernel = "k") {
    const auto code = environment.find(rt::serialise(key), kernel);
    if (!code) return "";
    return same(*code, made_up_code(code->code)) ? code->code : "another one's facts";
  }
  std::vector<std::string> warnings;
  rt::Environment environment;
};

// Bytes that cannot be packed.
inline std::string noise(std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::string bytes;
  while (bytes.size() < n) bytes += static_cast<char>(random() & 0xff);
  return bytes;
}

inline std::string file_in(const TempFolder& folder) { return folder.file(rt::kStoreName); }

}  // namespace kiln::test
