#include "worker.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "jobs.h"
#include "limits.h"
#include "message.h"

namespace kiln::cli {
namespace {

int out = -1;

bool send_all(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::send(out, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

int worker_main() {
  // Not at a number that the code of a library might take for its own, and not for what this process starts.
  out = fcntl(kWorkerSocket, F_DUPFD_CLOEXEC, 100);
  if (out < 0) return kFailed;
  ::close(kWorkerSocket);
  tell_stages([](const char* stage, Mark) { send_all(pack({{{"stage", stage}}, {}})); });
  Jobs jobs;
  Incoming incoming;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(out, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return kDone;
    incoming.take(buffer, static_cast<std::size_t>(n));
    while (const std::optional<Message> question = incoming.next()) {
      Message answer = jobs.answer(question->head);
      answer.head["id"] = question->head.at("id");
      if (!send_all(pack(answer))) return kDone;
    }
  }
}

}  // namespace kiln::cli
