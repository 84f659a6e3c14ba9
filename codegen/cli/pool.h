// Workers that answer questions (jobs.h) side by side, each in a process of its own with limits. A worker that dies, hangs or takes too
// much memory costs the question it was at; another takes its place.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "limits.h"
#include "message.h"

namespace kiln::cli {

struct Question {
  std::size_t id = 0;
  std::size_t group = 0;  // questions of one group are better asked of one worker: it remembers what it recorded
  Json head;
  std::string what;  // for errors: "kernel 'ns::saxpy' for sm_80"
};

struct Answer {
  std::size_t id = 0;
  Message message;                   // as of Jobs::answer; empty when `death` says why there is none
  std::optional<std::string> death;  // one sentence that begins with Question::what
};

class Pool {
 public:
  struct Setup {
    std::string program;   // argv[0], for what the workers say
    unsigned workers = 1;  // at most
    Limits limits;
    bool in_process = false;  // no workers: everything here, one after the other, without protection
  };
  explicit Pool(Setup setup);
  ~Pool();  // ends the workers
  Pool(const Pool&) = delete;

  // Asks until `next` has nothing more and every question has its answer. next(group) gives a question, best one of that group, or nothing
  // for now: it is asked again after an answer. What `answered` throws ends the workers' work. `idle` is called now and then.
  void run(const std::function<std::optional<Question>(std::size_t group)>& next, const std::function<void(Answer)>& answered,
           const std::function<void()>& idle = {});
  // One question.
  Answer ask(Question question);

 private:
  class Worker;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::cli
