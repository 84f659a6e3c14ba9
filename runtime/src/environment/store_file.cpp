#include "src/environment/store_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace kiln::rt {
namespace {

// How long to wait for others who write. A launch may be waiting for us.
constexpr int kOpenMs = 2000, kFindMs = 250, kPutMs = 500;
constexpr std::int64_t kNoteAfter = 3600;  // seconds between two notes of one entry's use
constexpr std::uint64_t kRowBytes = 200;   // about what an entry takes beside its bytes

// What a file of this version has, word for word, in the order of the names.
constexpr const char* kSchema[] = {
    "CREATE TABLE kernels(id INTEGER PRIMARY KEY, hash BLOB NOT NULL, used INTEGER NOT NULL, created INTEGER NOT NULL, kernel TEXT NOT "
    "NULL, arch TEXT NOT NULL, bytes INTEGER NOT NULL, checksum BLOB NOT NULL, key BLOB NOT NULL, code BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX kernels_hash ON kernels(hash)",
    "CREATE INDEX kernels_kernel ON kernels(kernel)",
    "CREATE INDEX kernels_used ON kernels(used, bytes)",
};

constexpr std::int64_t kOldestVersion = 1;  // that migrate() knows

constexpr const char* kBeside[] = {"-wal", "-shm", "-journal"};  // the names of SQLite's own files, behind that of the database

constexpr const char* kColumns = "SELECT id, used, created, hash, kernel, arch, checksum, key, code FROM kernels ";

StoreRow row_of(const Statement& s) {
  StoreRow row;
  row.id = s.number(0);
  row.used = s.number(1);
  row.created = s.number(2);
  row.entry = {std::string(s.bytes(3)), std::string(s.bytes(4)), std::string(s.bytes(5)),
               std::string(s.bytes(6)), std::string(s.bytes(7)), std::string(s.bytes(8))};
  return row;
}

}  // namespace

void remove_beside(const std::string& path) {
  for (const char* end : kBeside) unlink((path + end).c_str());
}

std::optional<FileId> file_id(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) return std::nullopt;
  return FileId{s.st_dev, s.st_ino};
}

std::string distrust(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) return std::strerror(errno);
  if (s.st_uid != geteuid() && s.st_uid != 0) return "it belongs to another user";
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write what is executed from it (chmod go-w '" + path + "')";
  return {};
}

StoreFile::StoreFile(std::string path, As as, bool local) : path_(std::move(path)) {
  try {
    open(as, local);
  } catch (const SqlFailure& e) {
    if (e.damaged()) throw Unusable(std::string("the file is damaged: ") + e.what(), true);
    throw;
  }
}

void StoreFile::open(As as, bool local) {
  struct stat s{};
  const bool there = lstat(path_.c_str(), &s) == 0 && s.st_size != 0;
  if (there || as == As::Read || as == As::Write) {
    if (stat(path_.c_str(), &s) != 0) throw Unusable(std::string("it cannot be opened: ") + std::strerror(errno), false);
    if (!S_ISREG(s.st_mode)) throw Unusable("'" + path_ + "' is no regular file", false);
    if (!there) throw Unusable("'" + path_ + "' is empty", false);
  }
  if (as == As::Read) {
    // Where nobody works on it, it is read without locks and without files beside it. Else those that are there are used; where that is
    // not allowed, what is in the file itself has to do.
    const bool in_use = std::any_of(std::begin(kBeside), std::end(kBeside), [&](const char* end) { return file_id(path_ + end); });
    if (in_use) try {
        db_ = std::make_unique<Database>(path_, Database::As::Read, kOpenMs);
        (void)db_->number("PRAGMA user_version");  // reads, and so opens them
      } catch (const SqlFailure& e) {
        if (!e.cannot_open()) throw;
        db_.reset();
      }
    if (db_ == nullptr) db_ = std::make_unique<Database>(path_, Database::As::Immutable, kOpenMs);
  } else {
    if (as == As::Create) forget_unfinished();
    if (!there && as == As::Create) begin(local);
    if (!there && as == As::Exchanged) fill(path_, false);
    db_ = std::make_unique<Database>(path_, Database::As::Write, kOpenMs);
    writable_ = true;
    if (!local) try {
        db_->run("PRAGMA journal_mode=TRUNCATE");
      } catch (const SqlFailure& e) {
        if (!e.busy()) throw;  // another one has it in the other mode, and so it stays
      }
  }
  check_schema();
  // Safe against whatever happens to a process; a crash of the system may cost the file, which is noticed.
  db_->run("PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=4194304");
  db_->wait_when_busy(kFindMs);
  page_bytes_ = static_cast<std::uint64_t>(db_->number("PRAGMA page_size"));
  id_ = file_id(path_).value_or(FileId{});
}

void StoreFile::forget_unfinished() {
  const std::string unfinished = path_ + kUnfinished;
  unlink(unfinished.c_str());
  remove_beside(unfinished);
}

// Made under another name, so that what is found under its own is whole whenever a process ends.
void StoreFile::begin(bool local) {
  const std::string unfinished = path_ + kUnfinished;
  try {
    fill(unfinished, local);
    // What an earlier file of the name left beside it would be taken for this one's.
    remove_beside(path_);
    if (std::rename(unfinished.c_str(), path_.c_str()) != 0)
      throw Unusable(std::string("it cannot be made: ") + std::strerror(errno), false);
  } catch (...) {
    forget_unfinished();
    throw;
  }
}

void StoreFile::fill(const std::string& path, bool shared) {
  Database db(path, Database::As::Create, kOpenMs);
  db.run("PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
  Transaction transaction(db);
  db.run(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
  db.run(("PRAGMA user_version=" + std::to_string(kSchemaVersion)).c_str());
  for (const char* sql : kSchema) db.run(sql);
  transaction.commit();
  if (shared) db.run("PRAGMA journal_mode=WAL");  // stays with the file
}

void StoreFile::check_schema() {
  const std::int64_t id = db_->number("PRAGMA application_id"), version = db_->number("PRAGMA user_version");
  if (id != kApplicationId) throw Unusable("'" + path_ + "' is no file of Kiln's; it is left alone", false);
  if (version > kSchemaVersion)
    throw Unusable("'" + path_ + "' was made by a newer Kiln: its version is " + std::to_string(version) + ", and this Kiln knows up to " +
                       std::to_string(kSchemaVersion),
                   false);
  if (version < kOldestVersion)
    throw Unusable("'" + path_ + "' is of version " + std::to_string(version) + ", older than any that this Kiln knows; remove it", false);
  if (version < kSchemaVersion && !writable_)
    throw Unusable("'" + path_ + "' was made by an older Kiln: its version is " + std::to_string(version) +
                       ", and nothing in it is of the form that this Kiln reads; make it anew",
                   false);
  std::vector<std::string> found;
  Statement all(db_->raw(), "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name");
  while (all.step()) found.emplace_back(all.bytes(0));
  if (!std::equal(found.begin(), found.end(), std::begin(kSchema), std::end(kSchema)))
    throw Unusable("the file is damaged: its tables are not those of version " + std::to_string(version), true);
  if (version < kSchemaVersion) migrate();
}

// A new version gets its step here, from each one before it. 1 to 2: the tables are the same, and code has one more fact, which the old
// entries do not have. No key of theirs is asked for any more, as the interface version is a part of it.
void StoreFile::migrate() {
  Transaction transaction(*db_);
  if (db_->number("PRAGMA user_version") < kSchemaVersion) {  // else another process was first
    db_->run("DELETE FROM kernels");
    db_->run(("PRAGMA user_version=" + std::to_string(kSchemaVersion)).c_str());
  }
  transaction.commit();
}

Looked StoreFile::find(const std::string& key, std::int64_t now) {
  if (find_ == nullptr) find_ = std::make_unique<Statement>(db_->raw(), (std::string(kColumns) + "WHERE hash=?1").c_str());
  const Digest hash = digest(key);
  Looked looked;
  std::int64_t id = 0, used = 0;
  std::string sum;
  {
    const Finished finished(*find_);
    if (!find_->bind_blob(1, view(hash)).step()) return looked;
    id = find_->number(0);
    used = find_->number(1);
    const std::string_view stored_key = find_->bytes(7), stored_code = find_->bytes(8);
    sum = find_->bytes(6);
    looked.damaged = sum != checksum(find_->bytes(3), find_->bytes(4), find_->bytes(5), stored_key, stored_code);
    if (!looked.damaged) {
      const std::optional<std::string> its_key = unpack(stored_key);
      if (its_key && *its_key != key) return looked;  // two keys of one hash
      const std::optional<std::string> code = its_key ? unpack(stored_code) : std::nullopt;
      if (code) looked.code = read_compiled_code(*code);
      looked.damaged = !looked.code.has_value();
    }
  }
  if (!writable_) return looked;
  try {
    if (looked.damaged) {
      if (drop_ == nullptr) drop_ = std::make_unique<Statement>(db_->raw(), "DELETE FROM kernels WHERE id=?1 AND checksum=?2");
      drop_->bind(1, id).bind_blob(2, sum).run();
    } else if (now - used > kNoteAfter || used - now > kNoteAfter) {  // a clock may go back
      db_->wait_when_busy(0);
      if (touch_ == nullptr) touch_ = std::make_unique<Statement>(db_->raw(), "UPDATE kernels SET used=?2 WHERE id=?1 AND used=?3");
      touch_->bind(1, id).bind(2, now).bind(3, used).run();
    }
  } catch (const SqlFailure& e) {
    if (e.damaged()) throw;  // else the next one does it
  }
  db_->wait_when_busy(kFindMs);
  return looked;
}

bool StoreFile::put(const Entry& entry, std::int64_t now, std::uint64_t most) {
  return put(StoreRow{.id = 0, .used = now, .created = now, .entry = entry}, most);
}

bool StoreFile::put(const StoreRow& row, std::uint64_t most) {
  db_->wait_when_busy(kPutMs);
  Transaction transaction(*db_);
  const bool kept = insert(row, most);
  if (kept) transaction.commit();
  db_->wait_when_busy(kFindMs);
  return kept;
}

bool StoreFile::insert(const StoreRow& row, std::uint64_t most) {
  const Entry& e = row.entry;
  const std::uint64_t room = e.bytes() + kRowBytes;
  if (room > most / 2) return false;
  evict(room, most);
  if (insert_ == nullptr)
    insert_ = std::make_unique<Statement>(
        db_->raw(),
        "INSERT INTO kernels(hash, used, created, kernel, arch, bytes, checksum, key, code) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9) "
        "ON CONFLICT(hash) DO UPDATE SET used=max(used, excluded.used), created=excluded.created, kernel=excluded.kernel, "
        "arch=excluded.arch, bytes=excluded.bytes, checksum=excluded.checksum, key=excluded.key, code=excluded.code "
        "WHERE checksum<>excluded.checksum OR key<>excluded.key OR code<>excluded.code");
  insert_->bind_blob(1, e.hash).bind(2, row.used).bind(3, row.created).bind_text(4, e.kernel).bind_text(5, e.arch);
  insert_->bind(6, static_cast<std::int64_t>(room)).bind_blob(7, e.checksum).bind_blob(8, e.key).bind_blob(9, e.code).run();
  return true;
}

// In a transaction. More than is needed goes, so that not every entry that comes makes another one go.
void StoreFile::evict(std::uint64_t room, std::uint64_t most) {
  std::uint64_t now = bytes();
  if (now + room <= most) return;
  const std::uint64_t goal = most - most / 10;
  Statement oldest(db_->raw(), "SELECT id, bytes FROM kernels ORDER BY used, bytes LIMIT 64");
  while (now + room > goal) {
    std::vector<std::int64_t> ids;
    {
      const Finished finished(oldest);
      for (std::uint64_t freed = 0; (now + room > goal + freed) && oldest.step(); freed += static_cast<std::uint64_t>(oldest.number(1)))
        ids.push_back(oldest.number(0));
    }
    if (ids.empty()) return;
    for (const std::int64_t id : ids) drop(id);
    now = bytes();
  }
}

void StoreFile::each(const std::string& kernel, const std::function<bool(const StoreRow&)>& each) {
  Statement all(db_->raw(), (std::string(kColumns) + (kernel.empty() ? "" : "WHERE kernel=?1 ") + "ORDER BY used DESC, id").c_str());
  if (!kernel.empty()) all.bind_text(1, kernel);
  while (all.step())
    if (!each(row_of(all))) return;
}

void StoreFile::drop(std::int64_t id) {
  Statement drop(db_->raw(), "DELETE FROM kernels WHERE id=?1");
  drop.bind(1, id).run();
}

std::uint64_t StoreFile::prune(std::int64_t used_before, std::uint64_t most) {
  db_->wait_when_busy(kOpenMs);
  Transaction transaction(*db_);
  const std::uint64_t before = count();
  Statement old(db_->raw(), "DELETE FROM kernels WHERE used<?1");
  old.bind(1, used_before).run();
  if (bytes() > most) {
    // evict() leaves nine tenths of what it is given.
    evict(0, most);
  }
  const std::uint64_t gone = before - count();
  transaction.commit();
  return gone;
}

std::uint64_t StoreFile::clear() {
  db_->wait_when_busy(kOpenMs);
  const std::uint64_t gone = count();
  db_->run("DELETE FROM kernels");
  return gone;
}

std::uint64_t StoreFile::count() { return static_cast<std::uint64_t>(db_->number("SELECT count(*) FROM kernels")); }

std::uint64_t StoreFile::bytes() {
  if (pages_ == nullptr) pages_ = std::make_unique<Statement>(db_->raw(), "PRAGMA page_count");
  if (free_ == nullptr) free_ = std::make_unique<Statement>(db_->raw(), "PRAGMA freelist_count");
  const Finished pages(*pages_), unused(*free_);
  const std::int64_t all = pages_->step() ? pages_->number(0) : 0, free = free_->step() ? free_->number(0) : 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(all - free, 0)) * page_bytes_;
}

std::string StoreFile::check_pages() {
  const std::string said = db_->text("PRAGMA quick_check(1)");
  return said == "ok" ? "" : said;
}

void StoreFile::tidy() {
  db_->run("PRAGMA incremental_vacuum");
  try {
    db_->run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (const SqlFailure&) {}  // others are at work, and will do it
}

}  // namespace kiln::rt
