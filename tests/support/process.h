// Running a program from a test: its output, its errors and how it ended.
#pragma once
#include <string>
#include <vector>

namespace kiln::test {

struct ProcessResult {
  int status = -1;  // exit status, or 128 + the signal that ended it
  bool timed_out = false;
  std::string out, err;
};

// Runs argv[0] (a path, or a name found on PATH) with stdin at end of file and `environment` ("NAME=value", "NAME" removes it) changed for
// it. Killed after `seconds`. Never throws for what the program does; throws std::runtime_error when no process could be made.
ProcessResult run_process(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {}, int seconds = 120,
                          const std::string& folder = {});

// A fresh folder below the system's temporary folder, removed with everything in it at the end of the scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Writes bytes into a file of the folder and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);  // throws std::runtime_error when it cannot be read

}  // namespace kiln::test
