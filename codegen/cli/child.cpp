#include "child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "command.h"

extern char** environ;

namespace kiln::cli {
namespace {

constexpr const char* kSelf = "/proc/self/exe";  // what runs now, wherever it lies by now

template <class Number>
Number number(const char* text) {
  Number n = 0;
  std::from_chars(text, text + std::strlen(text), n);
  return n;
}

}  // namespace

ChildRole enter_child(int argc, char** argv) {
  constexpr int words = 4;
  if (argc <= words || std::strcmp(argv[1], kChildWord) != 0) return {};
  enter_limits(number<std::uint64_t>(argv[3]), number<int>(argv[4]));
  return {argv[2], words};
}

Child::Child(const std::string& program, const std::string& role, const Limits& limits, const std::vector<std::string>& words,
             const std::vector<Handed>& handed, bool apart)
    : apart_(apart) {
  std::vector<std::string> all{program, kChildWord, role, std::to_string(limits.memory), std::to_string(getpid())};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (const Handed& h : handed) posix_spawn_file_actions_adddup2(&actions, h.from, h.to);
  if (apart) {
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  }
  const int error = posix_spawn(&pid_, kSelf, &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pid_ = -1;
    fail(std::string("no process can be started to compile in (") + kSelf + ": " + std::strerror(error) +
         "); --in-process does without, and without protection");
  }
}

Child::~Child() {
  if (pid_ < 0 || reaped_) return;
  kill();
  wait(true);
}

void Child::kill() {
  if (pid_ < 0) return;
  if (apart_) ::kill(-pid_, SIGKILL);  // also when it is gone itself: what it started may live
  if (!reaped_) ::kill(pid_, SIGKILL);
}

bool Child::wait(bool block) {
  if (reaped_) return true;
  pid_t got = 0;
  do got = waitpid(pid_, &status_, block ? 0 : WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got == 0) return false;
  if (got < 0) status_ = 0;  // somebody else waited for it
  reaped_ = true;
  return true;
}

bool Child::ended() { return wait(false); }

int Child::exit_code() {
  wait(true);
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

int Child::ending_signal() {
  wait(true);
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

std::string Child::how_it_ended() {
  wait(true);
  if (WIFEXITED(status_)) return "ended itself with exit code " + std::to_string(WEXITSTATUS(status_));
  const int signal = WTERMSIG(status_);
  const char* const name = strsignal(signal);
  std::string text = "crashed with signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
  if (signal == SIGKILL) text = "was killed with signal 9, by somebody or by the system because memory ran out,";
  return text;
}

std::uint64_t Child::memory() const {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid_));
  unsigned long long all = 0, resident = 0;
  if (std::FILE* file = std::fopen(path, "re"); file != nullptr) {
    if (std::fscanf(file, "%llu %llu", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace kiln::cli
