#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace kiln::cli {
namespace {

bool can_draw() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(bool wanted) : shown_(wanted && can_draw()) {}

void Progress::step(const std::string& what) {
  ++done_;
  if (!shown_ || total_ < 2) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && done_ < total_ && now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  drawn_ = true;
  constexpr std::size_t kWidth = 24;
  const std::size_t filled = std::min(kWidth, kWidth * done_ / std::max<std::size_t>(1, total_));
  std::string line = "[" + std::string(filled, '#') + std::string(kWidth - filled, ' ') + "] " + std::to_string(done_) + "/" +
                     std::to_string(total_) + " " + what;
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';  // names may hold anything
  line.resize(std::min(line.size(), columns() - 1));
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace kiln::cli
