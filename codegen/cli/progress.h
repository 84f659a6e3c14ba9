// A bar on a terminal that says how far a long command is: on stderr, and only where that is a terminal.
#pragma once
#include <chrono>
#include <string>

namespace kiln::cli {

class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  void expect(std::size_t more) { total_ += more; }
  void expect_less(std::size_t less) { total_ -= less; }
  void step(const std::string& what);  // one more is done
  void clear();                        // before something else is printed, and at the end

 private:
  bool shown_, drawn_ = false;
  std::size_t total_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace kiln::cli
