#include "ptxas.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "command.h"
#include "limits.h"

namespace kiln::cli {
namespace {

// A file without a name: nothing is left behind, whatever ends this process.
class Unnamed {
 public:
  explicit Unnamed(const char* what) : number_(memfd_create(what, 0)) {  // to be inherited
    if (number_ < 0) fail(std::string("no memory for a file of ptxas: ") + std::strerror(errno));
  }
  ~Unnamed() { ::close(number_); }
  Unnamed(const Unnamed&) = delete;
  int number() const { return number_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }
  void write(const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(number_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(std::string("cannot hand the PTX to ptxas: ") + std::strerror(errno));
      done += static_cast<std::size_t>(n);
    }
  }
  std::string read() const {
    std::string bytes;
    char buffer[65536];
    ssize_t n = 0;
    while ((n = ::pread(number_, buffer, sizeof buffer, static_cast<off_t>(bytes.size()))) > 0)
      bytes.append(buffer, static_cast<std::size_t>(n));
    return bytes;
  }

 private:
  int number_;
};

// Runs it to its end, both its outputs in `said`; the status as of waitpid.
int run_tool(std::vector<std::string> words, const Unnamed& said) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Not posix_spawn: the tool has to end with this process.
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail("cannot start '" + words[0] + "': " + std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(said.number(), 1) < 0 || dup2(said.number(), 2) < 0) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

std::string line_of(const std::string& text, const char* with = "") {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos && line.find(with) != std::string::npos) return line;
  return {};
}

// The number before `unit` in a line such as "0 bytes stack frame, 12 bytes spill stores".
std::uint64_t number_before(const std::string& line, const std::string& unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string::npos) return 0;
  const std::size_t end = line.find_last_of("0123456789", at);
  if (end == std::string::npos) return 0;
  std::size_t first = end;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
  std::uint64_t n = 0;
  std::from_chars(line.data() + first, line.data() + end + 1, n);
  return n;
}

// The lines about the functions, each behind "Function properties for NAME"; those of the entry have "Used N registers".
void read_figures(const std::string& said, Assembled& a) {
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("bytes stack frame") != std::string::npos) {
      a.stack_bytes = std::max(a.stack_bytes, number_before(line, " bytes stack frame"));
      a.spill_stores += number_before(line, " bytes spill stores");
      a.spill_loads += number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string::npos && line.find(" registers") != std::string::npos) {
      a.registers = std::max(a.registers, number_before(line, " registers"));
      a.barriers = std::max(a.barriers, number_before(line, " barriers"));
      a.static_shared_bytes = std::max(a.static_shared_bytes, number_before(line, " bytes smem"));
      a.constant_bytes = std::max(a.constant_bytes, number_before(line, " bytes cmem[0]"));
    }
  }
}

}  // namespace

std::string find_ptxas() {
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    const std::string program = (folder.empty() ? "." : folder) + "/ptxas";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::string ptxas_version() {
  static const std::string version = [] {
    const std::string program = find_ptxas();
    if (program.empty()) return std::string();
    const Unnamed said("ptxas says");
    if (run_tool({program, "--version"}, said) != 0) return std::string();
    const std::string line = line_of(said.read(), ", V");
    const std::size_t at = line.find(", V");
    return at == std::string::npos ? std::string() : line.substr(at + 3, line.find_first_not_of("0123456789.", at + 3) - at - 3);
  }();
  return version;
}

Assembled assemble(const std::string& ptx, const std::string& arch) {
  const std::string program = find_ptxas();
  if (program.empty()) fail("a cubin needs ptxas of the CUDA toolkit, and there is none on PATH; PTX (--emit ptx) needs nothing");
  now("in ptxas");
  Unnamed in("kernel.ptx");
  const Unnamed out("kernel.cubin"), said("ptxas says");
  in.write(ptx);
  // Always with -v: the cubin names the options.
  const int status = run_tool({program, "-v", "-arch=" + arch, "-o", out.path(), in.path()}, said);
  const std::string words = said.read();
  if (WIFSIGNALED(status)) {
    const char* const name = strsignal(WTERMSIG(status));
    fail("ptxas crashed on the PTX for " + arch + " with signal " + std::to_string(WTERMSIG(status)) + " (" +
         (name != nullptr ? name : "?") + "): " + program);
  }
  if (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127) fail("cannot start '" + program + "'");
  if (WEXITSTATUS(status) != 0) {
    std::string first = line_of(words, "error");
    if (first.empty()) first = line_of(words, "fatal");
    if (first.empty()) first = line_of(words);
    fail("ptxas refused the PTX for " + arch + ": " + (first.empty() ? "without a word" : first));
  }
  Assembled assembled;
  assembled.cubin = out.read();
  if (assembled.cubin.empty()) fail("ptxas wrote nothing for " + arch + ", and said that all is well: " + program);
  read_figures(words, assembled);
  return assembled;
}

}  // namespace kiln::cli
