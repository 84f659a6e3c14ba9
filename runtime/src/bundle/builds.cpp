#include "src/bundle/builds.h"

namespace kiln::rt {
namespace {

std::string build_text(const std::string& version, const std::string& build, const std::string& llvm, std::uint32_t interface_version) {
  return "Kiln " + version + " (build " + build + ", LLVM " + llvm + ", interface " + std::to_string(interface_version) + ")";
}

}  // namespace

std::string own_kiln_version() { return KILN_VERSION; }

std::string foreign_text(const BundleInfo& info, const std::string& module) {
  const CodegenIdentity& own = expected_codegen_identity();
  return "the code in '" + module + "' was made by " +
         build_text(info.kiln_version, info.build_id, info.llvm_version, info.interface_version) + ", and this program runs with " +
         build_text(own_kiln_version(), own.build_id, own.llvm_version, own.interface_version) + ": emit it anew with this Kiln";
}

}  // namespace kiln::rt
