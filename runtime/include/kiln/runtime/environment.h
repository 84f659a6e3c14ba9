// The environment: files in which compiled kernels are kept for later processes. A program needs nothing of this; it is for tools that look
// at environments, bound them, and send parts of them elsewhere. docs/environment.md says what an environment is.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/ir/passes.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/error.h"

namespace kiln {

// One compiled kernel that is kept.
struct EnvironmentEntry {
  std::string id;  // 32 hexadecimal digits: the hash of its key
  std::string kernel;
  CompileOptions options;  // what it was compiled for
  std::string build_id, llvm_version;
  bool of_this_kiln = false;           // the build and the LLVM are this one's; others are never used
  std::uint64_t bytes = 0;             // in the file
  std::uint64_t code_bytes = 0;        // of the code itself
  std::int64_t created = 0, used = 0;  // seconds since 1970; `used` to about an hour
  std::string wrong;                   // of verify(): what is wrong with it; then the rest may be empty
};

// Which entries; what is empty does not matter.
struct EnvironmentFilter {
  std::vector<std::string> kernels;  // whole names, or their last parts behind ::
  std::vector<std::string> archs;
};

// One layer of the process's environment, as its variables say now.
struct EnvironmentLayer {
  std::string path;       // the folder, or the file of a layer that is only read
  std::string file;       // where the entries are
  bool writable = false;  // new kernels go there
  bool exists = false;    // there is a file
  std::string problem;    // why it cannot be used; empty: it can, or will be made
  std::uint64_t entries = 0, bytes = 0;
};
struct EnvironmentReport {
  bool off = false;     // by KILN_ENV
  std::string problem;  // why there is none although it is not off
  std::uint64_t most_bytes = 0;
  std::vector<EnvironmentLayer> layers;
};
// Looks; makes and changes nothing.
Result<EnvironmentReport> environment_report();

// One file of an environment. Errors, of every function, have the rule Environment: the file is not there, is of another program or a newer
// Kiln, is damaged, cannot be written. Thread-safe; other processes may use the file meanwhile.
class EnvironmentFile {
 public:
  enum class For { Reading, Changing };
  // `path`: a folder with an environment, or such a file. Reading writes nothing but what SQLite keeps beside a file that others use.
  static Result<EnvironmentFile> open(const std::string& path, For purpose = For::Reading);
  // As Changing, but what is missing of the folder and the file is made.
  static Result<EnvironmentFile> make(const std::string& folder);

  const std::string& path() const;                                                         // of the file
  Result<std::vector<EnvironmentEntry>> list(const EnvironmentFilter& filter = {}) const;  // the last used first
  // The entries that are damaged, and with an empty id what is wrong with the file as a whole. O(size of the file).
  Result<std::vector<EnvironmentEntry>> verify() const;

  // The following need For::Changing. They give how many entries went or came.
  // Entries not used in the last `unused_seconds`, then the least used ones until the file has at most `most_bytes`.
  Result<std::uint64_t> prune(std::uint64_t most_bytes, std::int64_t unused_seconds);
  Result<std::uint64_t> drop_damaged();
  Result<std::uint64_t> clear();
  // All entries of another folder or file, also one that export_to() made. Its damaged entries are an error, and then none comes. An entry
  // of a key that is here already is replaced by an other one. The size bound holds.
  Result<std::uint64_t> import_from(const std::string& path);

  // A file of its own with the entries that the filter takes; `path` is there whole or as it was. Damaged entries are an error.
  Result<std::uint64_t> export_to(const std::string& path, const EnvironmentFilter& filter = {}) const;

  struct State;
  explicit EnvironmentFile(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// A launch of this kernel, compiled with these options: would it be had from the process's environment, and if not, why not? What only a
// launch and its device know need not be told.
struct EnvironmentQuestion {
  const ir::Prepared& kernel;
  CompileOptions options;
  bool any_alignment = true;    // options.aligned16 does not matter
  bool any_ptx_version = true;  // nor does options.ptx_version
  bool any_warps = false;       // nor does options.block_multiple_of_32
};
struct EnvironmentAnswer {
  bool hit = false;
  std::uint64_t of_kernel = 0;       // entries of kernels of that name
  std::string file;                  // where the nearest of them is
  EnvironmentEntry nearest;          // of a hit: it
  std::vector<std::string> reasons;  // of a miss: what differs from the nearest one, a sentence each
};
Result<EnvironmentAnswer> environment_why(const EnvironmentQuestion& question);

}  // namespace kiln
