// A project outside of the tree that uses Kiln as others do.
#pragma once
#include <string>
#include <vector>

#include "support/process.h"

namespace kiln::test {

// Kiln as `cmake --install` leaves it, made once for this process.
const std::string& installed();
bool has_program(const std::string& name);     // on PATH
const std::vector<std::string>& linkers();     // "bfd", "gold", "lld": those that work here
void check_done(const ProcessResult& result);  // its output where it failed
bool says(const std::string& text, const std::string& word);

// A copy of tests/package/project, and its build folder.
class Project {
 public:
  // A name of its own for each, so that a compiler's cache knows the paths again.
  explicit Project(const std::string& name, std::string generator = "Ninja");
  ~Project();
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;

  ProcessResult configure(const std::vector<std::string>& options = {},
                          const std::vector<std::string>& environment = {}) const;  // on installed()
  ProcessResult build(const std::string& target, const std::vector<std::string>& environment = {}) const;
  // A program of it (or of a whole path), where there is no code generator and no environment: only what is embedded can run.
  ProcessResult run(const std::string& program, const std::vector<std::string>& arguments = {},
                    const std::vector<std::string>& environment = {}) const;
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string built(const std::string& name) const { return folder_ + "/out/" + name; }
  // Replaces the one place where `from` stands.
  void edit(const std::string& name, const std::string& from, const std::string& to) const;

 private:
  std::string folder_, generator_;
};

}  // namespace kiln::test
