// Everything that one `kiln emit` makes, before anything of it is written: questions to the workers, their answers in order.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "emit_bundle.h"
#include "kiln/runtime/bundle.h"
#include "pool.h"
#include "source.h"

namespace kiln::cli {

struct EmitPlan {
  std::string source, mode;
  std::vector<std::string> kinds, archs;
  std::array<std::uint32_t, 3> block{};
  bool explain = false;
  const BundlePlan* bundles = nullptr;  // where they are asked for
  bool has(const char* kind) const;
};

// Code of one kernel for one architecture, of one kind.
struct EmittedItem {
  std::string kind;       // "ptx"
  std::string extension;  // ".ptx"
  CompileOptions options;
  CompiledCode code;  // with the bytes of the file
};
struct EmittedKernel {
  std::string name, symbol;
  SourceKernel of;  // the kernel or family that it is one of
  bool checked = false;
  std::string recorded;            // canonical text, good as a .kir file
  Json manifest;                   // of the kernel, without targets
  std::vector<EmittedItem> items;  // in order of the architectures
  std::vector<Json> explanations;  // one an architecture, where asked for
  std::vector<std::pair<Mode, BundleItem>> bundle_items;
};

struct Emitted {
  std::vector<EmittedKernel> kernels;
  std::string llvm_version;  // empty where nothing was compiled
};

// Compiles all that the words choose, and the words in `more`, where no word is nothing. Throws Failed with everything that is wrong,
// kernel by kernel and in their order, however many workers there are; and with a usage error before that.
Emitted emit_all(const EmitPlan& plan, const std::vector<std::string>& words, const std::vector<std::string>& more, Pool& pool,
                 bool progress);

}  // namespace kiln::cli
