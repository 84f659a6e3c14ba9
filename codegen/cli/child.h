// Child processes that run this very program, so that a crash, a loop without end or a flood of memory ends them and not their parent.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "limits.h"

namespace kiln::cli {

// The words that main() is given in a child, before those of the command line: kChildWord, a role, the limit of memory, the parent.
inline constexpr const char* kChildWord = "kiln-child";

// What a child was told in its first words.
struct ChildRole {
  std::string role;  // "worker", "command"
  int words = 0;     // how many of argv these were, the program's name not counted
};
// In a child: enters the limits and says which role it has. Elsewhere the role is empty.
ChildRole enter_child(int argc, char** argv);

// A file descriptor of the parent that becomes one of the child.
struct Handed {
  int from, to;
};

class Child {
 public:
  // Starts this program with its role, the limits and `words`. In a process group of its own (`apart`), what it starts ends with it, and
  // Ctrl-C does not reach it. Throws Failed when no process can be made. From the main thread: the child lives no longer than the thread.
  Child(const std::string& program, const std::string& role, const Limits& limits, const std::vector<std::string>& words,
        const std::vector<Handed>& handed, bool apart);
  ~Child();  // ends it
  Child(const Child&) = delete;

  // How it ended, in the words of a sentence after "the process": "crashed with signal 11 (Segmentation fault)". Waits for it.
  std::string how_it_ended();
  bool ended();                  // does not wait
  int exit_code();               // waits; -1 when a signal ended it
  int ending_signal();           // waits; 0 when none did
  void kill();                   // it, and what it started
  std::uint64_t memory() const;  // that it has in use now; 0 when that cannot be told

 private:
  bool wait(bool block);
  pid_t pid_ = -1;
  bool apart_ = false, reaped_ = false;
  int status_ = 0;
};

}  // namespace kiln::cli
