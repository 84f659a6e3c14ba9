#include "src/environment/sqlite.h"

#include <sqlite3.h>

#include <array>

namespace kiln::rt {
namespace {

// What a URI gives a meaning to is written as its code.
std::string uri(const std::string& path, bool immutable) {
  std::string out = "file:";
  constexpr const char* digits = "0123456789abcdef";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || c == '?' || c == '#' || byte < 0x20) out += {'%', digits[byte >> 4], digits[byte & 15]};
    else out += c;
  }
  return out + (immutable ? "?immutable=1" : "");
}

[[noreturn]] void fail_of(sqlite3* db, int code) {
  throw SqlFailure(code, db != nullptr && (sqlite3_errcode(db) & 0xff) == (code & 0xff) ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

}  // namespace

bool SqlFailure::busy() const { return (code_ & 0xff) == SQLITE_BUSY || (code_ & 0xff) == SQLITE_LOCKED; }
bool SqlFailure::damaged() const { return (code_ & 0xff) == SQLITE_CORRUPT || (code_ & 0xff) == SQLITE_NOTADB; }
bool SqlFailure::moved() const { return code_ == SQLITE_READONLY_DBMOVED; }
bool SqlFailure::full() const { return ((code_ & 0xff) == SQLITE_FULL || (code_ & 0xff) == SQLITE_READONLY) && !moved(); }
bool SqlFailure::cannot_open() const { return ((code_ & 0xff) == SQLITE_CANTOPEN || (code_ & 0xff) == SQLITE_READONLY) && !moved(); }

Statement::Statement(sqlite3* db, const char* sql) : db_(db) {
  const int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) fail_of(db, code);
}
Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::fail(int code) const { fail_of(db_, code); }

Statement& Statement::bind(int parameter, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_, parameter, value); code != SQLITE_OK) fail(code);
  return *this;
}
Statement& Statement::bind_text(int parameter, std::string_view text) {
  const int code = sqlite3_bind_text64(statement_, parameter, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) fail(code);
  return *this;
}
Statement& Statement::bind_blob(int parameter, std::string_view bytes) {
  const char* data = bytes.data() != nullptr ? bytes.data() : "";  // null would be NULL, not an empty blob
  const int code = sqlite3_bind_blob64(statement_, parameter, data, bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) fail(code);
  return *this;
}
bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  fail(code);
}
void Statement::run() {
  const Finished finished(*this);
  while (step()) {}
}
void Statement::finish() noexcept {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}
std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }
std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr) {
    if (sqlite3_errcode(db_) == SQLITE_NOMEM) throw std::bad_alloc();
    return {};
  }
  return {data, static_cast<std::size_t>(size)};
}

Database::Database(const std::string& path, As as, int busy_ms) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  switch (as) {
    case As::Create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE; break;
    case As::Write: flags |= SQLITE_OPEN_READWRITE; break;
    case As::Read:
    case As::Immutable: flags |= SQLITE_OPEN_READONLY; break;
  }
  const int code = sqlite3_open_v2(uri(path, as == As::Immutable).c_str(), &db_, flags, nullptr);
  try {
    if (code != SQLITE_OK) fail_of(db_, code);
    // What is in the file is data, also where somebody has put other things there.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    wait_when_busy(busy_ms);
    run("PRAGMA cell_size_check=ON");
  } catch (...) {
    sqlite3_close_v2(db_);
    throw;
  }
}
Database::~Database() { sqlite3_close_v2(db_); }

void Database::run(const char* sql) {
  if (const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) fail_of(db_, code);
}
std::int64_t Database::number(const char* sql) {
  Statement statement(db_, sql);
  return statement.step() ? statement.number(0) : 0;
}
std::string Database::text(const char* sql) {
  Statement statement(db_, sql);
  return statement.step() ? std::string(statement.bytes(0)) : std::string();
}
void Database::wait_when_busy(int ms) { sqlite3_busy_timeout(db_, ms); }
bool Database::moved() const {
  int moved = 0;
  return sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}
std::int64_t Database::changes() const { return sqlite3_changes64(db_); }

Transaction::~Transaction() {
  if (open_) sqlite3_exec(db_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);  // a failure has undone it already
}
void Transaction::commit() {
  db_.run("COMMIT");
  open_ = false;
}

}  // namespace kiln::rt
