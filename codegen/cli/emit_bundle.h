// The part of `kiln emit` that makes bundles, and with --embed one file of them with the source and the header that go with it.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "command.h"
#include "compile.h"
#include "embed_text.h"
#include "files.h"
#include "kiln/runtime/bundle.h"
#include "source.h"

namespace kiln::cli {

// What is asked for. Each throws a usage error that names the option.
struct BundlePlan {
  std::vector<Arch> archs;
  std::vector<std::array<std::uint32_t, 3>> blocks;  // exact shapes, beside the general code
  std::vector<Mode> modes;
  std::string embed, header, space, depfile;

  static BundlePlan of(const Options& options, std::vector<Arch> archs);
  // Refused where no bundle is asked for.
  static void refuse_options(const Options& options);
};

// The code that a bundle of this kernel holds: for each GPU architecture PTX for any arguments, and what is better where all of them are
// 16-byte aligned, or the block is whole warps; for each CPU level code for a row of threads, for any block and for the listed ones, each
// for any and for aligned arguments. A kernel that declares its block has code for that one.
std::vector<CompileOptions> bundle_targets(const ir::Prepared& kernel, const BundlePlan& plan);

// The items without those that are the same code as a more general one of them.
std::vector<BundleItem> without_equals(std::vector<BundleItem> items);

// The files: SYMBOL.MODE.kilnb each, or with --embed all in one and what goes with it.
class BundleFiles {
 public:
  explicit BundleFiles(const BundlePlan& plan) : plan_(plan) {}
  // `kernel`: what `variant` is one of.
  void add(const SourceKernel& kernel, const Variant& variant, Mode mode, std::vector<BundleItem> items);
  void finish(const std::string& folder, std::vector<OutputFile>& files) const;

 private:
  const BundlePlan& plan_;
  std::vector<SourceKernel> kernels_;
  std::vector<OutputFile> bundles_;
};

}  // namespace kiln::cli
