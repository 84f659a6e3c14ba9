#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "command.h"

namespace kiln::cli {
namespace fs = std::filesystem;

std::string read_start(const std::string& path, std::uint64_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail("no file '" + path + "'");
  if (fs::is_directory(status)) fail("'" + path + "' is a folder, not a file");
  std::ifstream in;
  in.rdbuf()->pubsetbuf(nullptr, 0);  // so that exactly what is asked for is read
  in.open(path, std::ios::binary);
  if (!in) fail("cannot read '" + path + "': " + std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  while (bytes.size() < most &&
         (in.read(buffer, static_cast<std::streamsize>(std::min<std::uint64_t>(sizeof buffer, most - bytes.size()))) || in.gcount() > 0))
    bytes.append(buffer, static_cast<std::size_t>(in.gcount()));
  if (in.bad()) fail("cannot read '" + path + "': " + std::strerror(errno));
  return bytes;
}

std::string read_file(const std::string& path, std::uint64_t most) {
  std::string bytes = read_start(path, most + 1);
  if (bytes.size() > most) fail("'" + path + "' has more than " + std::to_string(most) + " bytes");
  return bytes;
}

namespace {

constexpr std::string_view kTemporary = ".kiln-tmp";

[[noreturn]] void cannot_write(const fs::path& path, int error) { fail("cannot write '" + path.string() + "': " + std::strerror(error)); }

// An open file or folder, closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

// What was done so far: undone at the end of the scope, unless told that all went well.
class Undo {
 public:
  ~Undo() {
    std::error_code ignored;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (kept_) {
        if (!step->old.empty()) fs::remove(step->old, ignored);
      } else if (step->old.empty()) {
        fs::remove(step->made, ignored);
      } else {
        fs::rename(step->old, step->made, ignored);
      }
    }
  }
  // `made` is new; what it replaced, if anything, is kept as `old`.
  void add(fs::path made, fs::path old = {}) { steps_.push_back({std::move(made), std::move(old)}); }
  void keep() { kept_ = true; }

 private:
  struct Step {
    fs::path made, old;
  };
  std::vector<Step> steps_;
  bool kept_ = false;
};

void make_folder(const fs::path& folder, Undo& undo) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  make_folder(folder.parent_path(), undo);
  if (fs::create_directory(folder, error)) undo.add(folder);
  if (std::error_code ignored; !fs::is_directory(folder, ignored))
    fail("cannot make the folder '" + folder.string() + "': " + (error ? error.message() : "something else has that name"));
}

// ".PID-N.kiln-tmp", as create_temporary makes it.
bool is_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporary)) return false;
  name = name.substr(1, name.size() - 1 - kTemporary.size());
  const std::size_t dash = name.find('-');
  const auto number = [](std::string_view part) { return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos; };
  return dash != std::string_view::npos && number(name.substr(0, dash)) && number(name.substr(dash + 1));
}

// Held by everybody who writes into the folder. Who finds nobody else there removes what killed ones left behind. The kernel ends the lock
// of a process that dies, so this needs no file and trusts no process id. A file system without locks, or a folder that cannot be read, is
// written into all the same; nothing is removed there.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_.number() < 0) return;
    if (::flock(folder_.number(), LOCK_EX | LOCK_NB) == 0) remove_temporaries(folder);
    while (::flock(folder_.number(), LOCK_SH) != 0 && errno == EINTR) {  // waits at most while somebody else removes
    }
  }

 private:
  static void remove_temporaries(const fs::path& folder) {
    std::error_code ignored;
    std::vector<fs::path> stale;
    for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
      if (is_temporary(it->path().filename().string())) stale.push_back(it->path());
    for (const fs::path& path : stale) fs::remove_all(path, ignored);
  }
  Descriptor folder_;
};

// While it lives, a signal that asks this process to end waits until what was begun is undone or done.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&ending_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending_, signal);
    pthread_sigmask(SIG_BLOCK, &ending_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }  // which ends the process, if one came
  HeldSignals(const HeldSignals&) = delete;
  void check() const {
    sigset_t pending;
    if (sigpending(&pending) != 0) return;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      if (sigismember(&pending, signal) == 1 && sigismember(&before_, signal) == 0) fail("interrupted; nothing was written");
  }

 private:
  sigset_t ending_, before_;
};

void write_bytes(const Descriptor& file, const fs::path& path, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file.number(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_write(path, errno);
    done += static_cast<std::size_t>(n);
  }
}

// Not every kind of file can be synchronised; a full disk shows here at the latest.
void check_synchronised(int result, const fs::path& path) {
  if (result != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS) cannot_write(path, errno);
}

// What was written is on the disk behind this. One by one it takes a disk ten milliseconds a file.
constexpr std::size_t kFewFiles = 4;
void synchronise(const fs::path& folder, const std::vector<fs::path>& files) {
  const Descriptor all(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (files.size() > kFewFiles && all.number() >= 0) return check_synchronised(::syncfs(all.number()), folder);
  for (const fs::path& path : files) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) cannot_write(path, errno);
    check_synchronised(::fsync(file.number()), path);
  }
}

// A new name for a file or folder of ours in `folder`: `make` makes it, or fails with EEXIST.
template <class Make>
fs::path new_temporary(const fs::path& folder, std::size_t& number, const std::string& what, Make&& make) {
  fs::path path;
  bool made = false;
  do {
    path = folder / ("." + std::to_string(getpid()) + "-" + std::to_string(number++) + std::string(kTemporary));
    made = make(path);
  } while (!made && (errno == EEXIST || errno == EINTR));
  if (!made) fail(what + ": " + std::strerror(errno));
  return path;
}

void write_file(const fs::path& path, const std::string& bytes, int flags) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666));
  if (file.number() < 0) cannot_write(path, errno);
  write_bytes(file, path, bytes);
  if (file.close() != 0 && errno != EINTR) cannot_write(path, errno);
}

// The temporary file gets its name. An older file of that name takes the temporary one, so that it can come back.
void put_in_place(const fs::path& temporary, const fs::path& target, Undo& undo) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return undo.add(target, temporary);
  std::error_code ignored;
  // Where the file system cannot exchange, the new file replaces the old one, and a later failure leaves it in place.
  const bool is_new = errno == ENOENT || fs::symlink_status(target, ignored).type() == fs::file_type::not_found;
  if (::rename(temporary.c_str(), target.c_str()) != 0) cannot_write(target, errno);
  if (is_new) undo.add(target);
}

bool holds(const fs::path& path, const std::string& bytes) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  return in && all << in.rdbuf() && all.str() == bytes;
}

// Into a folder that is there: each file under a temporary name, then all get their names.
void write_into(const fs::path& folder, const std::vector<OutputFile>& files, const HeldSignals& signals, Undo& undo) {
  std::error_code ignored;
  for (const OutputFile& file : files)
    if (fs::is_directory(folder / file.name, ignored)) fail("cannot write '" + (folder / file.name).string() + "': a folder has that name");
  const FolderLock lock(folder);
  std::vector<fs::path> temporary, targets;
  std::size_t number = 0;
  for (const OutputFile& file : files) {
    signals.check();
    if (file.keep_equal && holds(folder / file.name, file.bytes)) continue;
    targets.push_back(folder / file.name);
    temporary.push_back(new_temporary(folder, number, "cannot write into the folder '" + folder.string() + "'", [&](const fs::path& path) {
      const Descriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      return made.number() >= 0;
    }));
    undo.add(temporary.back());
    write_file(temporary.back(), file.bytes, 0);
  }
  synchronise(folder, temporary);
  for (std::size_t i = 0; i < temporary.size(); ++i) {
    signals.check();
    put_in_place(temporary[i], targets[i], undo);
  }
}

// A folder that is not there yet is made whole beside its place, and then takes it in one step: whatever ends this process, there is all of
// it or none. False when somebody else made one meanwhile.
bool write_new(const fs::path& folder, const std::vector<OutputFile>& files, const HeldSignals& signals, Undo& undo) {
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : ".";
  const FolderLock lock(above);
  std::size_t number = 0;
  const fs::path stage = new_temporary(above, number, "cannot make the folder '" + folder.string() + "'",
                                       [](const fs::path& path) { return ::mkdir(path.c_str(), 0777) == 0; });
  undo.add(stage);
  std::vector<fs::path> made;
  for (const OutputFile& file : files) {
    signals.check();
    made.push_back(stage / file.name);
    undo.add(made.back());
    write_file(made.back(), file.bytes, O_EXCL);
  }
  synchronise(stage, made);
  signals.check();
  if (::renameat2(AT_FDCWD, stage.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    // A file system that cannot take care itself; an empty folder is replaced there, which nobody misses.
    if (errno != EINVAL || ::rename(stage.c_str(), folder.c_str()) != 0) {
      if (errno == EEXIST || errno == ENOTEMPTY) return false;
      cannot_write(folder, errno);
    }
  }
  undo.keep();
  return true;
}

}  // namespace

void write_all(const std::string& folder_text, const std::vector<OutputFile>& files) {
  fs::path folder = fs::path(folder_text).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  const HeldSignals signals;
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) {
    Undo above;  // the folders above it, which go again when it fails
    make_folder(folder.parent_path(), above);
    Undo undo;
    if (write_new(folder, files, signals, undo)) return above.keep();
    above.keep();
  }
  Undo undo;
  make_folder(folder, undo);
  write_into(folder, files, signals, undo);
  undo.keep();
}

}  // namespace kiln::cli
