#include "supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "amounts.h"
#include "child.h"

namespace kiln::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStages = 3;  // the descriptor in the child
constexpr int kLook = 50;   // milliseconds between two looks at it
bool is_child = false;
int stages = -1;

void tell_line(const std::string& line) {
  while (::write(stages, line.data(), line.size()) < 0 && errno == EINTR) {}
}

// A mark, the stage.
void tell(const char* stage, Mark mark) {
  constexpr const char* kMarks = "-*>!";
  tell_line(std::string(1, kMarks[static_cast<int>(mark)]) + stage + "\n");
}

// What is told by the child, line by line.
class Stages {
 public:
  explicit Stages(int end) : end_(end) {}
  ~Stages() { ::close(end_); }
  Stages(const Stages&) = delete;
  void read() {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(end_, buffer, sizeof buffer)) > 0) rest_.append(buffer, static_cast<std::size_t>(n));
    open_ = n != 0;
    for (std::size_t end = 0; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
      switch (rest_[0]) {
        case '*': memory_limited_ = true; break;
        case '>': limited_ = true, since_ = Clock::now(); break;
        case '!': limited_ = memory_limited_ = false; break;
        case '=': done_ = true; break;
        default: break;
      }
      if (!done_) stage_ = rest_.substr(1, end - 1);
    }
  }
  void wait() const {
    pollfd fd{open_ ? end_ : -1, POLLIN, 0};
    ::poll(&fd, 1, open_ ? kLook : 1);  // nobody at the other end: it is about to be gone
  }
  bool limited() const { return limited_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }  // that the limit of time counts
  bool memory_limited() const { return memory_limited_; }
  bool done() const { return done_; }
  const std::string& stage() const { return stage_; }

 private:
  int end_;
  Clock::time_point since_ = Clock::now();
  std::string rest_, stage_ = "starting";
  bool limited_ = true, memory_limited_ = false, open_ = true, done_ = false;
};

}  // namespace

bool to_supervise(const Options& options) { return !options.in_process && !is_child; }

void tell_parent() {
  is_child = true;
  stages = fcntl(kStages, F_DUPFD_CLOEXEC, 100);
  ::close(kStages);
  if (stages >= 0) tell_stages(tell);
}

void tell_parent_the_end() {
  if (stages >= 0) tell_line("=\n");
}

int supervise(int argc, char** argv, const Options& options, const std::string& command) {
  const Limits limits = parse_limits(options);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(std::string("no pipe to a process to compile in: ") + std::strerror(errno));
  Stages told(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Child child(argv[0], "command", limits, {argv + 1, argv + argc}, {{ends[1], kStages}}, false);
  ::close(ends[1]);
  const std::string what = command + " of " + (options.kernels.empty() ? "" : "kernel '" + options.kernels[0] + "' in ") + "'" +
                           options.source + "': the process that was ";
  const auto stop = [&](const std::string& why) {
    child.kill();
    fail(what + told.stage() + " " + why);
  };
  std::uint64_t memory_before = 0;  // what it had before the limit began
  while (!child.ended()) {
    told.wait();
    told.read();
    if (!told.limited()) continue;
    if (limits.seconds > 0 && told.seconds() > limits.seconds) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", limits.seconds);
      stop(std::string("was not done after ") + text + " seconds and was stopped; --timeout SECONDS allows more");
    }
    if (!told.memory_limited()) {
      memory_before = child.memory();
      continue;
    }
    if (limits.memory != 0 && child.memory() > memory_before + limits.memory)
      stop("took more than " + size_text(limits.memory) + " of memory and was stopped; --memory SIZE allows more");
  }
  told.read();
  const int exit_code = child.exit_code();
  if (exit_code >= 0 && told.done()) return exit_code;
  // Ended by whoever reads the output or sits at the terminal, not by what it did: so ends this process.
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (child.ending_signal() != signal) continue;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  fail(what + told.stage() + " " + child.how_it_ended() + "; --in-process lets a debugger see it");
}

}  // namespace kiln::cli
