#include "pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "amounts.h"
#include "child.h"
#include "jobs.h"
#include "worker.h"

namespace kiln::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLook = 100;                    // milliseconds between two looks at who died without a word, hangs or grows
constexpr std::size_t kMostSaid = 64 * 1024;  // of what a worker prints during one question

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

struct Ends {  // of a socket: the parent's and the child's
  int ours = -1, theirs = -1;
};
Ends make_ends() {
  int both[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0)
    fail(std::string("no socket to a process to compile in: ") + std::strerror(errno));
  fcntl(both[0], F_SETFL, O_NONBLOCK);
  return {both[0], both[1]};
}

std::string advice(bool in_library_code) {
  return in_library_code ? "; that is code of the kernel library, --in-process lets a debugger see it"
                         : "; this is a defect, please report it with the kernel's IR (kiln show SOURCE KERNEL --ir)";
}

}  // namespace

class Pool::Worker {
 public:
  explicit Worker(const Setup& setup) : Worker(setup, make_ends(), make_ends()) {}

  bool idle() const { return !question_; }
  std::size_t group() const { return group_; }
  int socket() const { return socket_.number(); }
  int said_end() const { return said_end_.number(); }
  bool wants_to_write() const { return sent_ < out_.size(); }
  const std::optional<Question>& question() const { return question_; }

  void ask(Question question, double seconds) {
    Json head = std::move(question.head);
    head["id"] = question.id;
    out_ = pack({std::move(head), {}});
    sent_ = 0;
    group_ = question.group;
    question_ = std::move(question);
    stage_ = "starting";
    said_.clear();
    late_ = seconds > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))
                        : Clock::time_point::max();
    write();
  }

  void write() {
    while (sent_ < out_.size()) {
      const ssize_t n = ::send(socket_.number(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // later; a dead one is found when reading
      sent_ += static_cast<std::size_t>(n);
    }
  }

  // What came; an answer, or how it ended.
  std::optional<Answer> read() {
    hear();
    char buffer[65536];
    while (true) {
      const ssize_t n = ::recv(socket_.number(), buffer, sizeof buffer, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
      if (n <= 0) return died();
      try {
        incoming_.take(buffer, static_cast<std::size_t>(n));
        while (std::optional<Message> message = incoming_.next()) {
          if (const auto stage = message->head.find("stage"); stage != message->head.end()) {
            stage_ = stage->get<std::string>();
            continue;
          }
          if (!question_ || message->head.at("id") != question_->id) return dead("sent an answer that nobody asked for" + advice(false));
          return answered(std::move(*message));
        }
      } catch (const std::exception& e) { return dead(std::string("sent something that is no answer (") + e.what() + ")" + advice(false)); }
    }
  }

  // Whether it is dead, late or too large.
  std::optional<Answer> look(const Limits& limits) {
    if (child_.ended()) {
      if (std::optional<Answer> last = read()) return last;  // it may have answered before
      return died();
    }
    if (question_ && Clock::now() > late_)
      return dead("was not done after " + seconds_text(limits.seconds) + " and was stopped; --timeout SECONDS allows more");
    if (limits.memory != 0 && child_.memory() > limits.memory)
      return dead("took more than " + size_text(limits.memory) + " of memory and was stopped; --memory SIZE allows more");
    return std::nullopt;
  }

  bool dead() const { return dead_; }

 private:
  Worker(const Setup& setup, Ends socket, Ends said)
      : socket_(socket.ours),
        said_end_(said.ours),
        theirs_(socket.theirs),
        their_said_(said.theirs),
        nothing_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
        child_(setup.program, "worker", setup.limits, {},
               {{nothing_.number(), 0}, {said.theirs, 1}, {said.theirs, 2}, {socket.theirs, kWorkerSocket}}, true) {
    theirs_.close();
    their_said_.close();
    nothing_.close();
  }

  static std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%g second%s", seconds, seconds == 1 ? "" : "s");
    return text;
  }

  // What it prints: its own messages, and those of the code that it runs.
  void hear() {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::recv(said_end_.number(), buffer, sizeof buffer, 0)) > 0) {
      said_.append(buffer, static_cast<std::size_t>(n));
      if (said_.size() > kMostSaid) said_.erase(0, said_.size() - kMostSaid);
    }
    if (n == 0) said_end_.close();
  }

  Answer answered(Message message) {
    hear();
    if (!said_.empty()) std::fwrite(said_.data(), 1, said_.size(), stderr);
    said_.clear();
    Answer answer{question_->id, std::move(message), {}};
    question_.reset();
    return answer;
  }

  std::optional<Answer> died() {
    child_.kill();
    const std::string how = child_.how_it_ended();
    return dead(how + advice(stage_ == "opening the source" || stage_ == "recording it"));
  }

  std::optional<Answer> dead(const std::string& how) {
    child_.kill();
    hear();
    dead_ = true;
    if (!question_) return std::nullopt;  // between two questions: nothing is lost
    Answer answer{question_->id, {}, question_->what + ": the process that was " + stage_ + " " + how};
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < said_.size();) {
      const std::size_t end = std::min(said_.find('\n', at), said_.size());
      if (end > at) lines.push_back(said_.substr(at, end - at));
      at = end + 1;
    }
    if (!lines.empty()) {
      for (std::size_t i = 0; i + 1 < lines.size(); ++i) std::fprintf(stderr, "%s\n", lines[i].c_str());
      *answer.death += "; the last that it said: " + lines.back().substr(0, 400);
    }
    question_.reset();
    return answer;
  }

  Descriptor socket_, said_end_, theirs_, their_said_, nothing_;
  Child child_;
  std::optional<Question> question_;
  std::size_t group_ = 0;
  Incoming incoming_;
  std::string out_, said_, stage_;
  std::size_t sent_ = 0;
  Clock::time_point late_;
  bool dead_ = false;
};

struct Pool::State {
  Setup setup;
  std::vector<std::unique_ptr<Worker>> workers;
  Jobs here;  // in_process
};

Pool::Pool(Setup setup) : state_(std::make_unique<State>()) { state_->setup = std::move(setup); }
Pool::~Pool() = default;

Answer Pool::ask(Question question) {
  std::optional<Question> one = std::move(question);
  Answer answer;
  run([&](std::size_t) { return std::exchange(one, std::nullopt); }, [&](Answer a) { answer = std::move(a); });
  return answer;
}

void Pool::run(const std::function<std::optional<Question>(std::size_t)>& next, const std::function<void(Answer)>& answered,
               const std::function<void()>& idle) {
  State& s = *state_;
  if (s.setup.in_process) {
    std::size_t group = 0;
    while (const std::optional<Question> question = next(group)) {
      group = question->group;
      answered({question->id, s.here.answer(question->head), {}});
      if (idle) idle();
    }
    return;
  }
  Clock::time_point looked = Clock::now();
  while (true) {
    for (const auto& worker : s.workers) {
      if (!worker->idle()) continue;
      std::optional<Question> question = next(worker->group());
      if (!question) break;
      worker->ask(std::move(*question), s.setup.limits.seconds);
    }
    while (s.workers.size() < s.setup.workers) {
      std::optional<Question> question = next(0);
      if (!question) break;
      s.workers.push_back(std::make_unique<Worker>(s.setup));
      s.workers.back()->ask(std::move(*question), s.setup.limits.seconds);
    }
    std::vector<pollfd> wait;
    bool busy = false;
    for (const auto& worker : s.workers) {
      busy = busy || !worker->idle();
      wait.push_back({worker->socket(), static_cast<short>(POLLIN | (worker->wants_to_write() ? POLLOUT : 0)), 0});
      wait.push_back({worker->said_end(), POLLIN, 0});
    }
    if (!busy) return;
    ::poll(wait.data(), wait.size(), kLook);
    const bool time_to_look = Clock::now() - looked > std::chrono::milliseconds(kLook);
    if (time_to_look) looked = Clock::now();
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < s.workers.size(); ++i) {
      Worker& worker = *s.workers[i];
      worker.write();
      std::optional<Answer> answer = worker.read();
      if (!answer && !worker.dead() && time_to_look) answer = worker.look(s.setup.limits);
      if (answer) answers.push_back(std::move(*answer));
    }
    std::erase_if(s.workers, [](const auto& worker) { return worker->dead(); });
    for (Answer& answer : answers) answered(std::move(answer));
    if (idle) idle();
  }
}

}  // namespace kiln::cli
