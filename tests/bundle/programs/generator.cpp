// Compiles every kernel of the program and writes one file of bundles. Usage: generator FILE TARGET..., where a target is sm_80, or
// x86-64-v3:64,1,1 with its block.
#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/dsl/registry.h"
#include "kiln/runtime/bundle.h"

using namespace kiln;

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  Compiler* const compiler = code_generator().compiler;
  if (compiler == nullptr) throw std::runtime_error(code_generator().error);
  std::ofstream out(argv[1], std::ios::binary);
  for (const KernelEntry* kernel : Registry::instance().kernels()) {
    for (const std::string& config : kernel->configs()) {
      const auto variant = kernel->variant(config).value();
      const ir::Prepared& prepared = *variant->prepared().value();
      std::vector<BundleItem> items;
      const auto add = [&](BundleItem::Kind kind, const CompileOptions& options) {
        items.push_back({kind, options, compiler->compile(prepared, options)});
      };
      for (int i = 2; i < argc; ++i) {
        const std::string target = argv[i];
        const std::size_t colon = target.find(':');
        CompileOptions options;
        options.arch = target.substr(0, colon);
        if (colon == std::string::npos) {
          options.target = TargetKind::Ptx;
          add(BundleItem::Kind::Ptx, options);
        } else {
          std::array<std::uint32_t, 3>& b = options.block;
          if (std::sscanf(target.c_str() + colon, ":%u,%u,%u", &b[0], &b[1], &b[2]) != 3) return 2;
          add(BundleItem::Kind::Object, options);
        }
      }
      out << write_bundle(*variant, ir::PrepareOptions::Mode::AsKernel, std::move(items)).value();
    }
  }
  out.flush();
  return out.good() ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "failed: %s\n", e.what());
  return 1;
}
