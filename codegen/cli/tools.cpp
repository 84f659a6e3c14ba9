#include "tools.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace kiln::cli {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 20;

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string find_program(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  for (const std::string& name : names) {
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (const std::string program = (folder.empty() ? "." : folder) + "/" + name; is_program(program)) return program;
  }
  return {};
}

ProgramResult run_program(const std::vector<std::string>& argv, int seconds) {
  ProgramResult result;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return result;
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  pid_t child = 0;
  const int started = posix_spawn(&child, argv.at(0).c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  bool in_time = started == 0;
  for (char buffer[65536]; in_time;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{pipe_ends[0], POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) in_time = false;
    if (ready <= 0) break;
    const ssize_t n = read(pipe_ends[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.out.append(buffer, static_cast<std::size_t>(n));
    if (result.out.size() > kMostOutput) in_time = false;
  }
  close(pipe_ends[0]);
  if (started != 0) return result;
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (in_time && WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace kiln::cli
