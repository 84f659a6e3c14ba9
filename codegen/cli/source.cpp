#include "source.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "command.h"
#include "files.h"
#include "kiln/ir/text.h"
#include "limits.h"
#include "names.h"

namespace kiln::cli {
namespace {

constexpr std::uint64_t kLargestText = std::uint64_t{64} << 20;  // as ir::parse

class TextSource : public Source {
 public:
  TextSource(const std::string& path, Places places) : path_(path) {
    const std::string text = read_file(path, kLargestText);
    for (ir::Kernel& kernel : ir::parse(text, places == Places::OfSource ? path : ""))
      variants_.push_back(std::make_shared<Variant>(std::move(kernel)));
    if (variants_.empty()) fail("'" + path + "' holds no kernel");
  }
  std::vector<SourceKernel> kernels() const override {
    std::vector<SourceKernel> all;
    for (const auto& variant : variants_) {
      const ir::Kernel& k = variant->recorded();
      SourceKernel one{k.name, ir::to_string(k, k.loc), {}, {}, {""}, ""};
      for (const ir::Param& p : k.params) one.params.push_back({p.name, signature_type(k, p)});
      all.push_back(std::move(one));
    }
    return all;
  }
  std::shared_ptr<const Variant> variant(const std::string& spec) const override {
    std::vector<std::string> names;
    for (const auto& variant : variants_) {
      if (variant->name() == spec) return variant;
      names.push_back(variant->name());
    }
    if (spec.empty()) usage("an empty kernel name; '" + path_ + "' holds " + quoted_list(names));
    usage(unknown("kernel", spec, names) + " (in '" + path_ + "')");
  }

 private:
  std::string path_;
  std::vector<std::shared_ptr<const Variant>> variants_;
};

// Kernels of the registry.
class RegisteredSource : public Source {
 public:
  RegisteredSource(std::string where, std::vector<const KernelEntry*> entries) : where_(std::move(where)), entries_(std::move(entries)) {}
  std::vector<SourceKernel> kernels() const override {
    std::vector<SourceKernel> all;
    for (const KernelEntry* e : entries_) all.push_back({e->name(), e->place(), e->params(), e->axes(), e->configs(), e->config_type()});
    return all;
  }
  std::shared_ptr<const Variant> variant(const std::string& spec) const override {
    const std::size_t at = spec.find('@');
    const std::string name = spec.substr(0, at), config = at == std::string::npos ? "" : spec.substr(at + 1);
    std::vector<std::string> names;
    bool known = false;
    for (const KernelEntry* e : entries_) {
      names.push_back(e->name());
      known = known || e->name() == name || e->name().ends_with("::" + name);
    }
    if (!known) usage(unknown("kernel", name, names) + " (in " + where_ + ")");
    now("recording it");
    Result<const KernelEntry*> entry = Registry::instance().find(name);
    if (!entry) usage(one_line(entry.error()));
    Result<std::shared_ptr<const Variant>> variant = entry.value()->variant(config);
    if (!variant && variant.error().data().rule == "Recording") throw Exception(variant.error());  // the kernel's fault, not the caller's
    if (!variant) usage(one_line(variant.error()));
    return variant.value();
  }

 private:
  std::string where_;  // "'libkernels.so'"
  std::vector<const KernelEntry*> entries_;
};

std::unique_ptr<Source> open_library(const std::string& path) {
  const std::vector<const KernelEntry*> before = Registry::instance().kernels();
  // Never closed: its kernels stay registered.
  if (dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const char* why = dlerror();
    fail("'" + path + "' is no library that can be loaded: " + (why != nullptr ? why : "unknown reason"));
  }
  std::vector<const KernelEntry*> entries;
  for (const KernelEntry* entry : Registry::instance().kernels())
    if (std::find(before.begin(), before.end(), entry) == before.end()) entries.push_back(entry);
  if (entries.empty())
    fail("the library '" + path + "' has no kernels: no KILN_KERNEL in it, or it was linked with another copy of Kiln than this program's");
  return std::make_unique<RegisteredSource>("'" + path + "'", std::move(entries));
}

bool is_self(const std::string& source) { return source == "self" || source == "-"; }

std::unique_ptr<Source> open_self(const std::string& word) {
  std::vector<const KernelEntry*> entries = Registry::instance().kernels();
  if (entries.empty())
    usage("'" + word + "' means the kernels of the program itself, and this one has none: name a kernel library or a .kir file");
  return std::make_unique<RegisteredSource>("this program", std::move(entries));
}

}  // namespace

std::unique_ptr<Source> Source::open(const std::string& path, Places places) {
  begin_limits();
  now("opening the source");
  if (is_self(path)) return open_self(path);
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) fail("no file '" + path + "'");
  if (std::filesystem::is_directory(status)) fail("'" + path + "' is a folder; a kernel library or a .kir file is needed");
  if (!std::filesystem::is_regular_file(status))
    fail("'" + path +
         "' is no regular file; a kernel library or a .kir file is needed, so write what comes through a pipe into a file first");
  if (path.ends_with(".kir")) return std::make_unique<TextSource>(path, places);
  return open_library(path);
}

bool has_own_kernels() {
  static const bool own = !Registry::instance().kernels().empty();
  return own;
}

void leave_out_source(std::string& source, std::vector<std::string>& kernels) {
  const bool given = is_self(source) || source.find('/') != std::string::npos || source.ends_with(".so") || source.ends_with(".kir");
  if (given) return;
  if (!source.empty()) kernels.insert(kernels.begin(), source);
  source = "self";
}

std::string signature_type(const ir::Kernel& kernel, const ir::Param& param) {
  if (!param.is_buffer) return "Val<" + std::string(ir::name(param.type)) + ">";
  if (param.mem >= kernel.mems.size()) return "?";  // not verified yet
  const ir::Mem& mem = kernel.mems[param.mem];
  std::string text = mem.access == ir::Access::In ? "In<" : mem.access == ir::Access::Out ? "Out<" : "InOut<";
  text += ir::name(mem.element);
  if (mem.rank != 1 || mem.strided) text += ", " + std::to_string(mem.rank);
  if (mem.strided) text += ", Strided";
  return text + ">";
}

std::string signature(const std::string& name, const std::vector<ParamInfo>& params) {
  std::string text = name + "(";
  for (std::size_t i = 0; i < params.size(); ++i) text += (i == 0 ? "" : ", ") + params[i].type + " " + params[i].name;
  return text + ")";
}

}  // namespace kiln::cli
