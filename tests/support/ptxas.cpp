#include "support/ptxas.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "support/process.h"

namespace kiln::test {
namespace {

bool can_run(const std::string& path) { return !path.empty() && access(path.c_str(), X_OK) == 0; }

std::string find_ptxas() {
  if (const char* const named = std::getenv("KILN_PTXAS"); named != nullptr) return can_run(named) ? named : "";
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (can_run(folder + "/ptxas")) return folder + "/ptxas";
  }
  return can_run("/usr/local/cuda/bin/ptxas") ? "/usr/local/cuda/bin/ptxas" : "";
}

}  // namespace

const std::string& ptxas_path() {
  static const std::string path = find_ptxas();
  return path;
}

std::string no_ptxas_reason() {
  return no_ptxas()
             ? "no ptxas here (KILN_PTXAS, PATH, /usr/local/cuda/bin): PTX is checked as text only, the tests that assemble it are skipped"
             : "";
}

Assembled assemble_ptx(const std::string& ptx, const std::string& arch) {
  const TempFolder folder;
  const std::string file = folder.write("kernel.ptx", ptx);
  const ProcessResult result = run_process({ptxas_path(), "-v", "-arch=" + arch, file, "-o", folder.file("kernel.cubin")});
  Assembled assembled{.ok = result.status == 0, .messages = result.out + result.err};
  if (const std::size_t used = assembled.messages.find("Used "); used != std::string::npos) {
    assembled.registers = std::atoi(assembled.messages.c_str() + used + 5);
  }
  for (std::size_t at = 0; (at = assembled.messages.find(" bytes spill", at)) != std::string::npos; ++at) {
    if (assembled.messages[at - 1] != '0' || assembled.messages[at - 2] != ' ') assembled.spills = true;
  }
  return assembled;
}

}  // namespace kiln::test
