// The file of an environment and what can happen to it.
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment/made_up.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

void sql(const std::string& file, const std::string& text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  CHECK_MESSAGE(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK, sqlite3_errmsg(db));
  sqlite3_close(db);
}

void remove_all_in(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
}

// Where many small files cost little, if there is such a place.
struct InMemory {
  InMemory() {
    if (const char* set = std::getenv("TMPDIR")) old = set;
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  }
  ~InMemory() {
    if (old.empty()) unsetenv("TMPDIR");
    else setenv("TMPDIR", old.c_str(), 1);
  }
  std::string old;
};
TempFolder in_memory() {
  const InMemory here;
  return TempFolder();
}

// The bytes of a file of two entries, as small as there is one.
std::string small_file(const std::string& with = "") {
  const TempFolder folder;
  {
    Opened env(folder.path());
    REQUIRE(env.store(made_up_key("one"), "code of one"));
    REQUIRE(env.store(made_up_key("two"), "code of two"));
  }
  sql(file_in(folder), "PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM;" + with);
  return read_file(file_in(folder));
}

}  // namespace

TEST_CASE("what is stored is found by a later process, with every fact, whether it was packed or not") {
  const TempFolder folder;
  const std::string codes[] = {"", "short", std::string(100'000, 'x'), noise(5000), std::string("nul\0inside", 10)};
  {
    Opened env(folder.path());
    CHECK(env.find(made_up_key("0")) == "");
    for (std::size_t i = 0; i < std::size(codes); ++i) CHECK(env.store(made_up_key(std::to_string(i)), codes[i]));
    CHECK(env.warnings.empty());
  }
  CHECK(fs::file_size(file_in(folder)) < 60'000);  // what can be packed is
  Opened env(folder.path());
  for (std::size_t i = 0; i < std::size(codes); ++i) {
    const auto code = env.environment.find(rt::serialise(made_up_key(std::to_string(i))), "k");
    REQUIRE(code.has_value());
    CHECK(same(*code, made_up_code(codes[i])));
  }
}

TEST_CASE("at the end of all there is one file, and nothing beside it") {
  const TempFolder folder;
  {
    Opened one(folder.path()), two(folder.path());
    CHECK(one.store(made_up_key(), "code"));
    CHECK(two.find(made_up_key()) == "code");
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename().string());
  CHECK(names == std::vector<std::string>{rt::kStoreName});
  struct stat s{};
  REQUIRE(stat(file_in(folder).c_str(), &s) == 0);
  CHECK((s.st_mode & 022) == 0);
}

TEST_CASE("a file that is damaged anywhere is never wrong code, and never more than one warning of a kind") {
  const std::string whole = small_file();
  const TempFolder folder = in_memory();
  std::size_t hits = 0, misses = 0, tried = 0;
  const auto look_at = [&](const std::string& bytes) {
    remove_all_in(folder.path());
    folder.write(rt::kStoreName, bytes);
    Opened env(folder.path());
    for (const char* kernel : {"one", "two"}) {
      const std::string found = env.find(made_up_key(kernel));
      if (found != "" && found != std::string("code of ") + kernel) FAIL_CHECK("wrong code: " << found);
      ++(found.empty() ? misses : hits);
    }
    // And it goes on as it should: kept, or not, but never something else.
    if (tried % 4 == 0 && env.store(made_up_key("one"), "code of one")) {
      const std::string again = env.find(made_up_key("one"));
      if (again != "" && again != "code of one") FAIL_CHECK("wrong code after storing: " << again);
    }
    if (env.warnings.size() > 2) FAIL_CHECK("warned " << env.warnings.size() << " times, last of: " << env.warnings.back());
    ++tried;
  };
  SUBCASE("cut") {
    for (std::size_t n = 0; n < whole.size(); n += n < 128 ? 1 : 61) look_at(whole.substr(0, n));
  }
  SUBCASE("with a bit that is another one") {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      // Pages hold their contents at the end; of the zeros between, a few are enough.
      if (whole[at] == 0 && at > 600 && at % 16 != 0) continue;
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      look_at(bytes);
    }
  }
  CAPTURE(whole.size());
  CHECK(tried > 100);
  CHECK(hits > 0);
  CHECK(misses > 0);
}

TEST_CASE("a damaged entry is a miss with a warning, goes, and is there again when it is stored anew") {
  const TempFolder folder;
  {
    Opened env(folder.path());
    CHECK(env.store(made_up_key("one"), "code of one"));
    CHECK(env.store(made_up_key("two"), "code of two"));
  }
  sql(file_in(folder), "UPDATE kernels SET code=zeroblob(40) WHERE arch='x86-64-v3' AND id=1");
  Opened env(folder.path());
  CHECK(env.find(made_up_key("one")) == "");
  REQUIRE(env.warnings.size() == 1);
  CHECK(env.warnings[0].find("is damaged; its kernel is compiled anew") != std::string::npos);
  CHECK(env.find(made_up_key("one")) == "");
  CHECK(env.warnings.size() == 1);
  CHECK(env.find(made_up_key("two")) == "code of two");
  CHECK(env.store(made_up_key("one"), "code of one"));
  CHECK(env.find(made_up_key("one")) == "code of one");
}

TEST_CASE("an entry under another entry's name is not taken for it") {
  const TempFolder folder;
  {
    Opened env(folder.path());
    CHECK(env.store(made_up_key("one"), "code of one"));
    CHECK(env.store(made_up_key("two"), "code of two"));
  }
  SUBCASE("as a whole") {
    sql(file_in(folder),
        "CREATE TABLE t AS SELECT hash FROM kernels WHERE id=1; DELETE FROM kernels WHERE id=1; UPDATE kernels SET hash=(SELECT "
        "hash FROM t) WHERE id=2; DROP TABLE t");
  }
  SUBCASE("its code only") { sql(file_in(folder), "UPDATE kernels SET code=(SELECT code FROM kernels WHERE id=2) WHERE id=1"); }
  SUBCASE("code and key") {
    sql(file_in(folder),
        "UPDATE kernels SET code=(SELECT code FROM kernels WHERE id=2), key=(SELECT key FROM kernels WHERE id=2) WHERE id=1");
  }
  Opened env(folder.path());
  CHECK(env.find(made_up_key("one")) == "");
}

TEST_CASE("a damaged file is set aside with one warning, and a new one is begun") {
  const TempFolder folder;
  const std::string rubbish(5000, 'r');
  folder.write(rt::kStoreName, rubbish);
  {
    Opened env(folder.path());
    CHECK(env.find(made_up_key()) == "");
    REQUIRE(env.warnings.size() == 1);
    CHECK(env.warnings[0].find("set aside as '" + file_in(folder) + ".damaged'") != std::string::npos);
    CHECK(env.store(made_up_key(), "code"));
    CHECK(env.find(made_up_key()) == "code");
    CHECK(env.warnings.size() == 1);
  }
  CHECK(read_file(file_in(folder) + ".damaged") == rubbish);
  Opened later(folder.path());
  CHECK(later.find(made_up_key()) == "code");
  CHECK(later.warnings.empty());
}

TEST_CASE("files of others, of a newer Kiln and of versions that are unknown are refused with one warning and left as they are") {
  const struct {
    const char* change;
    const char* said;
  } rows[] = {{"PRAGMA application_id=1", "is no file of Kiln's; it is left alone"},
              {"PRAGMA user_version=3", "was made by a newer Kiln: its version is 3, and this Kiln knows up to 2"},
              {"PRAGMA user_version=0", "is of version 0, older than any that this Kiln knows; remove it"}};
  for (const auto& row : rows) {
    CAPTURE(row.change);
    const TempFolder folder;
    const std::string bytes = small_file(row.change);
    folder.write(rt::kStoreName, bytes);
    {
      Opened env(folder.path());
      CHECK(env.find(made_up_key("one")) == "");
      CHECK_FALSE(env.store(made_up_key("one"), "code of one"));
      CHECK(env.find(made_up_key("one")) == "");
      REQUIRE(env.warnings.size() == 1);
      CHECK_MESSAGE(env.warnings[0].find(row.said) != std::string::npos, env.warnings[0]);
      CHECK(env.warnings[0].find("KILN_ENV") != std::string::npos);
    }
    CHECK(read_file(file_in(folder)) == bytes);
  }
  // Tables that are not those of the version: damage.
  const TempFolder folder;
  folder.write(rt::kStoreName, small_file("DROP INDEX kernels_kernel"));
  Opened env(folder.path());
  CHECK(env.find(made_up_key("one")) == "");
  CHECK(env.warnings.size() == 1);
  CHECK(env.store(made_up_key("one"), "code of one"));
}

TEST_CASE("a file of version 1, whose code lacks a fact, is emptied and used on, and refused with one warning where it is only read") {
  const TempFolder folder;
  const std::string bytes = small_file("PRAGMA user_version=1");
  folder.write(rt::kStoreName, bytes);
  {
    const TempFolder own;
    Opened env(own.path() + ":" + folder.path());
    CHECK(env.find(made_up_key("one")) == "");
    REQUIRE(env.warnings.size() == 1);
    CHECK_MESSAGE(env.warnings[0].find("was made by an older Kiln: its version is 1") != std::string::npos, env.warnings[0]);
    CHECK(env.store(made_up_key("one"), "code of one"));
    CHECK(env.find(made_up_key("one")) == "code of one");
    CHECK(read_file(file_in(folder)) == bytes);
  }
  {
    Opened env(folder.path());
    CHECK(env.find(made_up_key("one")) == "");
    CHECK(env.store(made_up_key("two"), "other code of two"));
    CHECK(env.warnings.empty());
  }
  Opened later(folder.path());
  CHECK(later.find(made_up_key("one")) == "");
  CHECK(later.find(made_up_key("two")) == "other code of two");
  CHECK(later.warnings.empty());
}

TEST_CASE("the file stays within its bound: what was not used for longest goes, and what is too large is not kept") {
  const TempFolder folder;
  constexpr std::uint64_t most = 300'000;
  {
    rt::StoreFile file(file_in(folder), rt::StoreFile::As::Create);
    const auto key = [](int i) { return rt::serialise(made_up_key(std::to_string(i))); };
    for (int i = 0; i < 100; ++i) {
      CHECK(file.put(rt::make_entry(key(i), "k", "x", made_up_code(std::to_string(i) + noise(10'000))), 1'000'000 + i, most));
      CHECK(file.bytes() <= most);
      CHECK(file.find(key(0), 2'000'000 + i * 7200).code.has_value());  // this one is used all the time
    }
    CHECK(file.count() > 15);
    CHECK(file.count() < 30);
    CHECK(file.find(key(99), 0).code.has_value());
    CHECK_FALSE(file.find(key(1), 0).code.has_value());
    const std::uint64_t before = file.count();
    CHECK_FALSE(file.put(rt::make_entry(key(200), "k", "x", made_up_code(noise(160'000))), 3'000'000, most));
    CHECK(file.count() == before);
    CHECK(file.check_pages() == "");
  }
  CHECK(fs::file_size(file_in(folder)) <= most + 8192);
}

TEST_CASE("a hit writes nothing, but for a note of its use once in an hour") {
  const TempFolder folder;
  rt::StoreFile file(file_in(folder), rt::StoreFile::As::Create);
  const std::string key = rt::serialise(made_up_key());
  CHECK(file.put(rt::make_entry(key, "k", "x", made_up_code("c")), 1'000'000, 1 << 20));
  const auto used = [&] {
    std::int64_t at = 0;
    file.each("", [&](const rt::StoreRow& row) {
      at = row.used;
      return true;
    });
    return at;
  };
  const struct {
    std::int64_t now, used;
  } rows[] = {{1'000'001, 1'000'000}, {1'003'600, 1'000'000}, {1'003'601, 1'003'601}, {1'003'700, 1'003'601}, {5, 5}};
  for (const auto& row : rows) {
    CAPTURE(row.now);
    CHECK(file.find(key, row.now).code.has_value());
    CHECK(used() == row.used);
  }
}

TEST_CASE("entries that others remove are misses, and a file that others remove is begun anew") {
  const TempFolder folder;
  Opened env(folder.path());
  CHECK(env.store(made_up_key("one"), "code of one"));
  CHECK(env.store(made_up_key("two"), "code of two"));
  {
    rt::StoreFile other(file_in(folder), rt::StoreFile::As::Write);
    std::int64_t first = 0;
    other.each("", [&](const rt::StoreRow& row) {
      first = row.id;
      return true;
    });
    other.drop(first);
  }
  CHECK((env.find(made_up_key("one")) == "") != (env.find(made_up_key("two")) == ""));
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(file_in(folder) + end);
  CHECK(env.store(made_up_key("one"), "code of one"));
  CHECK(env.find(made_up_key("one")) == "code of one");
  CHECK(Opened(folder.path()).find(made_up_key("one")) == "code of one");  // it is in the new file
  fs::remove_all(folder.path());
  fs::create_directory(folder.path());
  fs::permissions(folder.path(), fs::perms::owner_all);
  CHECK(env.store(made_up_key("two"), "code of two"));
  CHECK(Opened(folder.path()).find(made_up_key("two")) == "code of two");
  CHECK(env.warnings.empty());
}

TEST_CASE("threads use one environment at the same time") {
  const TempFolder folder;
  Opened env(folder.path());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, kept{0}, found{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const std::string name = std::to_string((i * 7 + t) % 20);
        const std::string there = env.find(made_up_key(name));
        if (there != "" && there != "code of " + name) ++wrong;
        if (there == "") kept += env.store(made_up_key(name), "code of " + name);
        else ++found;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(kept >= 20);
  CHECK(found > 0);
  CHECK(env.warnings.empty());
}

TEST_CASE("without memory of the host a kernel is not found or not kept, and nothing else happens") {
  if (!allocations_counted()) return;
  const TempFolder folder;
  const std::string key = rt::serialise(made_up_key("one")), other = rt::serialise(made_up_key("two"));
  const CompiledCode code = made_up_code("code of one");
  int kept = 0, found = 0, wrong = 0, refused = 0;
  for (std::uint64_t after = 0; after < 80; ++after) {
    fs::remove(file_in(folder));
    Opened env(folder.path());
    bool stored = false;
    std::optional<CompiledCode> one, two;
    {
      const NoMemory none(after);
      stored = env.environment.store(key, "k", "x86-64-v3", code);
      one = env.environment.find(key, "k");
      two = env.environment.find(other, "k");
    }
    kept += stored;
    refused += !stored;
    found += one.has_value();
    wrong += two.has_value() || (one && !same(*one, code));
    if (stored) CHECK(env.find(made_up_key("one")) == "code of one");
  }
  CHECK(wrong == 0);
  CHECK(kept > 10);
  CHECK(found > 10);
  CHECK(refused > 10);
}

TEST_CASE("where processes cannot share memory the file does without") {
  const TempFolder folder;
  {
    rt::StoreFile one(file_in(folder), rt::StoreFile::As::Create, false), two(file_in(folder), rt::StoreFile::As::Create, false);
    const std::string key = rt::serialise(made_up_key());
    CHECK(one.put(rt::make_entry(key, "k", "x", made_up_code("c")), 1, 1 << 20));
    CHECK(two.find(key, 1).code.has_value());
    CHECK_FALSE(fs::exists(file_in(folder) + "-shm"));
    CHECK_FALSE(fs::exists(file_in(folder) + "-wal"));
  }
}
