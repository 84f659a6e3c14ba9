// Compiles kernels in text form for the CPU and runs them in this process: the host lowering with nothing of the runtime but its loader.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/compiler.h"
#include "src/object_loader.h"

namespace kiln::host_test {

// The levels that this machine can run, lowest first.
inline std::vector<std::string> levels() {
  std::vector<std::string> r = {"x86-64"};
  if (__builtin_cpu_supports("x86-64-v2")) r.push_back("x86-64-v2");
  if (__builtin_cpu_supports("x86-64-v3")) r.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v4")) r.push_back("x86-64-v4");
  return r;
}

inline Compiler& compiler() {
  const CodegenHandle& handle = code_generator();
  INFO(handle.error);
  REQUIRE(handle.compiler != nullptr);
  return *handle.compiler;
}

struct Argument {
  std::vector<std::uint64_t> words;  // pointer and extents, or the scalar
  unsigned bytes = 8;                // of a scalar
};
template <class T>
Argument buffer(std::vector<T>& v, std::vector<std::uint64_t> extents = {}) {
  Argument a;
  a.words.push_back(reinterpret_cast<std::uint64_t>(v.data()));
  if (extents.empty()) extents.push_back(v.size());
  a.words.insert(a.words.end(), extents.begin(), extents.end());
  return a;
}
template <class T>
Argument value(T v) {
  Argument a;
  a.words.push_back(0);
  std::memcpy(a.words.data(), &v, sizeof v);
  a.bytes = sizeof v;
  return a;
}

struct Kernel {
  ir::Prepared prepared;
  CompiledCode code;
  std::shared_ptr<const rt::LoadedObject> object;

  Kernel(const std::string& text, std::array<std::uint32_t, 3> block, const std::string& level,
         ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel) {
    const std::vector<ir::Kernel> kernels = ir::parse("kir 1\n" + text);
    REQUIRE(kernels.size() == 1);
    prepared = ir::prepare(kernels[0], {mode});
    CompileOptions options;
    options.arch = level;
    options.block = block;
    load(options);
  }
  Kernel(ir::Prepared ready, const CompileOptions& options) : prepared(std::move(ready)) { load(options); }

  void load(const CompileOptions& options) {
    code = compiler().compile(prepared, options);
    auto loaded = rt::LoadedObject::load(code.code, code.symbol);
    INFO((loaded ? std::string() : loaded.error().text()));
    REQUIRE(loaded);
    object = *loaded;
  }

  // `launched`: the block of code that is told it at launch.
  ir::FaultRecord run(std::array<std::uint32_t, 3> grid, const std::vector<Argument>& arguments, std::uint32_t dynamic_shared = 0,
                      bool reports = true, std::array<std::uint32_t, 3> launched = {}) const {
    alignas(64) ir::FaultRecord record{};
    std::vector<std::uint8_t> block;
    for (const Argument& a : arguments) {
      for (const std::uint64_t w : a.words) {
        while (block.size() % a.bytes) block.push_back(0);
        const auto* p = reinterpret_cast<const std::uint8_t*>(&w);
        block.insert(block.end(), p, p + a.bytes);
      }
    }
    if (prepared.kernel.options.checked) {
      while (block.size() % 8) block.push_back(0);
      const std::uint64_t at = reports ? reinterpret_cast<std::uint64_t>(&record) : 0;
      const auto* p = reinterpret_cast<const std::uint8_t*>(&at);
      block.insert(block.end(), p, p + 8);
    }
    const HostGrid host_grid{{grid[0], grid[1], grid[2]}, dynamic_shared, nullptr, {launched[0], launched[1], launched[2]}};
    const std::size_t warps = (launched[0] * launched[1] * launched[2] + 31) / 32;
    const std::size_t bytes = (code.static_shared_bytes + 15) / 16 * 16 + (std::size_t{dynamic_shared} + 63) / 64 * 64 +
                              code.context_bytes + warps * code.context_bytes_per_warp;
    void* scratch = std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
    std::memset(scratch, 0xff, bytes + 64);
    const auto entry = reinterpret_cast<HostEntry>(const_cast<void*>(object->entry()));
    entry(block.data(), &host_grid, 0, std::uint64_t{grid[0]} * grid[1] * grid[2], scratch);
    // Nobody writes past what was asked for.
    for (std::size_t i = bytes; i < bytes + 64; ++i) CHECK(static_cast<std::uint8_t*>(scratch)[i] == 0xff);
    std::free(scratch);
    return record;
  }
};

}  // namespace kiln::host_test
