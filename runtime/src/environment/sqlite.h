// SQLite as this folder uses it: a connection, its statements, and failures as exceptions, which never leave the folder.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace kiln::rt {

class SqlFailure : public std::exception {
 public:
  SqlFailure(int code, std::string what) : code_(code), what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }
  bool busy() const;     // others work on the file; it may go well the next time
  bool damaged() const;  // the file's contents are not what SQLite wrote
  bool moved() const;    // the file was removed, or another one took its place
  bool full() const;     // the disk is, or the file may not be written
  bool cannot_open() const;

 private:
  int code_;
  std::string what_;
};

class Statement {
 public:
  Statement(sqlite3* db, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Parameters count from 1. Bytes are not copied: they live until finish().
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind_text(int parameter, std::string_view text);
  Statement& bind_blob(int parameter, std::string_view bytes);
  bool step();  // whether there is a row
  void run();   // to the end, and finish()
  void finish() noexcept;
  // Columns count from 0. What is given lives until the next step() or finish().
  std::int64_t number(int column) const;
  std::string_view bytes(int column) const;

 private:
  [[noreturn]] void fail(int code) const;
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

// The statement is at its end when the scope is, whatever happens.
class Finished {
 public:
  explicit Finished(Statement& statement) : statement_(statement) {}
  ~Finished() { statement_.finish(); }
  Finished(const Finished&) = delete;

 private:
  Statement& statement_;
};

// One connection, used by one thread at a time.
class Database {
 public:
  enum class As { Create, Write, Read, Immutable };  // Immutable: nobody changes the file meanwhile; no locks, no other files
  Database(const std::string& path, As as, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3* raw() const { return db_; }
  void run(const char* sql);
  std::int64_t number(const char* sql);  // of the first row and column
  std::string text(const char* sql);
  void wait_when_busy(int ms);
  bool moved() const;  // the file at the path is another one now, or none
  std::int64_t changes() const;

 private:
  sqlite3* db_ = nullptr;
};

// A transaction that writes; it is undone unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) { db_.run("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace kiln::rt
