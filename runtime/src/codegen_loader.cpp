// Opens the code generator's library by name and refuses one that was not built with this runtime.
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "kiln/runtime/compiler.h"
#include "kiln_build_id.h"
#include "src/config.h"

namespace kiln {
namespace {

constexpr const char* kLibrary = "libkiln_codegen.so";

// The folder of the file that contains this function, or nothing.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&expected_codegen_identity), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

std::string field(const char* text, std::size_t capacity) { return std::string(text, strnlen(text, capacity)); }

// Empty when the library's identity is ours, else what differs.
std::string mismatch(const CodegenIdentity& theirs) {
  const CodegenIdentity& ours = expected_codegen_identity();
  if (theirs.interface_version != ours.interface_version) {
    return "it speaks interface version " + std::to_string(theirs.interface_version) + ", this runtime speaks " +
           std::to_string(ours.interface_version);
  }
  const std::string id = field(theirs.build_id, sizeof theirs.build_id), own = field(ours.build_id, sizeof ours.build_id);
  if (id != own) return "its build id is " + id + ", this runtime expects " + own + "; build both from the same sources";
  const std::string llvm = field(theirs.llvm_version, sizeof theirs.llvm_version),
                    own_llvm = field(ours.llvm_version, sizeof ours.llvm_version);
  if (llvm != own_llvm) return "it was built with LLVM " + llvm + ", this runtime expects " + own_llvm;
  return {};
}

// Tries one path. On success fills `handle`; else appends why not to `tried`.
bool open_at(const std::string& path, CodegenHandle& handle, std::string& tried) {
  // Never closed: LLVM's static state does not survive it, and objects it made may be alive.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    tried += "\n  " + path + ": " + (why != nullptr ? why : "cannot be opened");
    return false;
  }
  const auto identity = reinterpret_cast<CodegenIdentityFn>(dlsym(library, "kiln_codegen_identity"));
  const auto create = reinterpret_cast<CodegenCreateFn>(dlsym(library, "kiln_codegen_create"));
  if (identity == nullptr || create == nullptr) {
    tried += "\n  " + path + ": not a code generator of Kiln (kiln_codegen_identity or kiln_codegen_create is missing)";
    return false;
  }
  const std::string why = mismatch(*identity());
  if (!why.empty()) {
    tried += "\n  " + path + ": refused, " + why;
    return false;
  }
  Compiler* compiler = create();
  if (compiler == nullptr) {
    tried += "\n  " + path + ": it gave no compiler";
    return false;
  }
  handle.compiler = compiler;
  handle.path = path;
  return true;
}

CodegenHandle open_code_generator() {
  CodegenHandle handle;
  std::string tried;
  try {
    std::vector<std::string> paths;
    if (std::string named = rt::configured_text(rt::Setting::Codegen); !named.empty()) {
      paths = {std::move(named)};  // the user's word: nothing else is tried
    } else {
      if (const std::string folder = own_folder(); !folder.empty()) paths.push_back(folder + kLibrary);
      paths.push_back(kLibrary);
    }
    for (const std::string& path : paths) {
      if (open_at(path, handle, tried)) return handle;
    }
    handle.error = "the code generator could not be opened; tried:" + tried + "\nSet KILN_CODEGEN to the path of " + kLibrary + ".";
  } catch (const std::exception& e) {
    handle.compiler = nullptr;
    handle.error = std::string("the code generator could not be opened: ") + e.what();
  }
  return handle;
}

}  // namespace

const CodegenIdentity& expected_codegen_identity() {
  static const CodegenIdentity identity = [] {
    CodegenIdentity id;
    std::strncpy(id.build_id, KILN_BUILD_ID, sizeof id.build_id - 1);
    std::strncpy(id.llvm_version, KILN_LLVM_VERSION, sizeof id.llvm_version - 1);
    return id;
  }();
  return identity;
}

const CodegenHandle& code_generator() {
  // Immortal: programs may still be compiling while static destructors run.
  static const CodegenHandle& handle = *new CodegenHandle(open_code_generator());
  return handle;
}

}  // namespace kiln
