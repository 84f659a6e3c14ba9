// Where kernels come from: a kernel library (its KILN_KERNELs), a .kir file, or this very program, seen the same way.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/dsl/registry.h"
#include "kiln/runtime/variant.h"

namespace kiln::cli {

// One kernel or family of a source.
struct SourceKernel {
  std::string name, place;
  std::vector<ParamInfo> params;
  std::vector<ConfigAxis> axes;
  std::vector<std::string> configs;
  std::string config_type;  // "ns::MatmulCfg"; empty: no config
};

class Source {
 public:
  // Where the kernels of a .kir file stand that says nothing of it: nowhere, so that its text stays what it is, or at their lines of that
  // file.
  enum class Places { AsWritten, OfSource };

  virtual ~Source() = default;
  virtual std::vector<SourceKernel> kernels() const = 0;
  // KERNEL[@param=value,...]; what is not named takes its default. Throws Failed for an unknown kernel or parameter.
  virtual std::shared_ptr<const Variant> variant(const std::string& spec) const = 0;

  // A path, or "self" or "-" for the kernels of this program. Throws Failed: no such file, no regular file, neither a library nor .kir, a
  // library that does not load or has no kernels, a program that has none; ir::IrError for a damaged .kir.
  static std::unique_ptr<Source> open(const std::string& path, Places places = Places::AsWritten);
};

// Whether this program has kernels of its own, as one has that links kiln::tool_main with its kernels: there SOURCE may be left out.
bool has_own_kernels();
// Such a program's words as if SOURCE had been given. `source` is one where it is "self", "-", a path with a '/' or ends with .so or .kir;
// else it is the first of `kernels`.
void leave_out_source(std::string& source, std::vector<std::string>& kernels);

// "In<f32, 2>", "Val<u32>".
std::string signature_type(const ir::Kernel& kernel, const ir::Param& param);
std::string signature(const std::string& name, const std::vector<ParamInfo>& params);  // "saxpy(In<f32> x, ...)"

}  // namespace kiln::cli
