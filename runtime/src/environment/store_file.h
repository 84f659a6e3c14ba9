// One file of an environment: a SQLite database of kernels. All of it throws SqlFailure, Unusable or std::bad_alloc; layer.h catches them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "src/environment/entry.h"
#include "src/environment/sqlite.h"

namespace kiln::rt {

inline constexpr const char* kStoreName = "environment.db";
// Behind the name: of a file that was replaced; of one that is being made.
inline constexpr const char *kSetAside = ".damaged", *kUnfinished = ".new";
// "KILN". A file of another id is not ours and never touched. The version is that of the tables and of what stands in them, the forms of
// keys and code among it; a file of a newer one is refused, one of an older one is migrated (see migrate()) or refused.
inline constexpr std::int64_t kApplicationId = 0x4b494c4e, kSchemaVersion = 2;

// The file cannot be used; nothing is wrong with the process.
class Unusable : public std::runtime_error {
 public:
  Unusable(const std::string& why, bool damaged) : std::runtime_error(why), damaged_(damaged) {}
  bool damaged() const { return damaged_; }  // it is ours, and no longer what it was

 private:
  bool damaged_;
};

// Which file it is, whatever it is called.
struct FileId {
  std::uint64_t device = 0, node = 0;
  bool operator==(const FileId&) const = default;
};
std::optional<FileId> file_id(const std::string& path);  // none: there is none

void remove_beside(const std::string& path);  // SQLite's own files of a database that is gone

// Empty: the folder or file may be trusted with code that is executed, which is to say that only this user and root can have written it.
// Else why not: "it belongs to another user", "others may write it (chmod go-w '...')".
std::string distrust(const std::string& path);

// How a row was found, or not.
struct Looked {
  std::optional<CompiledCode> code;
  bool damaged = false;  // there was one, which is dropped now where that is possible
};

struct StoreRow {
  std::int64_t id = 0, used = 0, created = 0;
  Entry entry;
};

class StoreFile {
 public:
  enum class As {
    Create,     // made where it is missing; the folder is there, and the caller holds it (FolderLock)
    Write,      // only where it is there
    Read,       // never written, nor is anything beside it
    Exchanged,  // a file to be sent: made anew, without files beside it
  };
  // `local`: the file system is one of this machine, so that processes can share memory.
  StoreFile(std::string path, As as, bool local = true);

  // O(log entries + size). A hit may note that the entry was used, at most once in an hour of `now` (seconds since 1970).
  Looked find(const std::string& key, std::int64_t now);
  // Whether it is kept. What was not used for longest goes where it would be more than `most` bytes. An equal key's entry is replaced.
  bool put(const Entry& entry, std::int64_t now, std::uint64_t most);
  bool put(const StoreRow& row, std::uint64_t most);
  // Every entry, or those of one kernel, the last used first. `each` may end it by false.
  void each(const std::string& kernel, const std::function<bool(const StoreRow&)>& each);
  void drop(std::int64_t id);
  // Those not used since `used_before`, then the least used ones until the file has at most `most` bytes. How many went.
  std::uint64_t prune(std::int64_t used_before, std::uint64_t most);
  std::uint64_t clear();
  std::uint64_t count();
  std::uint64_t bytes();      // of the file, but for what is free in it
  std::string check_pages();  // empty: SQLite finds nothing wrong
  void tidy();                // gives free pages back to the file system, and writes what stands beside the file into it
  bool moved() const { return db_->moved(); }
  bool writable() const { return writable_; }
  FileId id() const { return id_; }

 private:
  void open(As as, bool local);
  void begin(bool local);
  void fill(const std::string& path, bool shared);
  void forget_unfinished();
  void check_schema();
  void migrate();
  bool insert(const StoreRow& row, std::uint64_t most);
  void evict(std::uint64_t room, std::uint64_t most);

  std::string path_;
  FileId id_;
  std::uint64_t page_bytes_ = 4096;
  bool writable_ = false;
  std::unique_ptr<Database> db_;
  std::unique_ptr<Statement> find_, touch_, drop_, insert_, pages_, free_;
};

}  // namespace kiln::rt
