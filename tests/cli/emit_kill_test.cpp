// kiln emit that is ended at any moment: there is all of it or none, and what it left is cleared away by the next one.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "cli/cli.h"

using namespace kiln::test;

extern char** environ;

namespace {

std::map<std::string, std::string> bytes_of(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const std::string& name : files_in(folder)) all[name] = read_file(folder + "/" + name);
  return all;
}

std::vector<std::string> emit_into(const std::string& folder) {
  return {KILN_BINARY_DIR "/bin/kiln", "emit", kKernelLibrary, "*@*", "--arch", "sm_80,sm_90", "--emit",
          "ptx,kir,json,manifest",     "-o",   folder};
}

// Ended by the signal after so long; false when it came to its end before.
bool end_after(std::vector<std::string> words, int signal, int microseconds) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

}  // namespace

TEST_CASE("a folder that emit makes is there whole or not at all, whenever it is killed") {
  const TempFolder folder;
  const auto whole = [&](const std::string& name) {
    const auto words = emit_into(folder.file(name));
    const auto result = run_process(words);
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    return bytes_of(folder.file(name));
  };
  const auto start = std::chrono::steady_clock::now();
  const auto expected = whole("whole");
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  REQUIRE(expected.size() == 6 * (2 + 2) + 1);
  std::mt19937 random(11);
  int killed = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "out" + std::to_string(i);
    const int signal = i % 4 == 3 ? SIGTERM : SIGKILL;
    // Half of them near the end, where the files are written.
    const auto at =
        static_cast<int>(i % 2 == 0 ? random() % static_cast<unsigned>(took) : took * 3 / 4 + random() % static_cast<unsigned>(took / 2));
    killed += end_after(emit_into(folder.file(name)), signal, at);
    if (std::filesystem::exists(folder.file(name))) CHECK((bytes_of(folder.file(name)) == expected));
  }
  CHECK(killed > 0);
  // The next one clears away what was left beside the folders.
  CHECK((whole("last") == expected));
  for (const std::string& name : files_in(folder.path())) CHECK_MESSAGE(!name.starts_with('.'), name);
}

TEST_CASE("in a folder that is there each file is a whole one, old or new, whenever emit is killed, and the next one clears up") {
  const TempFolder folder;
  const std::string out = folder.file("out");
  REQUIRE(run_process(emit_into(out)).status == 0);
  const auto fresh = bytes_of(out);
  const auto make_old = [&] {
    for (const auto& [name, bytes] : fresh) folder.write("out/" + name, "old");
    folder.write("out/other", "of somebody else");
  };
  const auto start = std::chrono::steady_clock::now();
  make_old();
  REQUIRE(run_process(emit_into(out)).status == 0);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  std::mt19937 random(12);
  for (int i = 0; i < 30; ++i) {
    make_old();
    const bool by_term = i % 3 == 2;
    const auto at = static_cast<int>(took / 2 + random() % static_cast<unsigned>(took));
    const bool killed = end_after(emit_into(out), by_term ? SIGTERM : SIGKILL, at);
    std::size_t old = 0, made = 0;
    for (const auto& [name, bytes] : bytes_of(out)) {
      if (!fresh.contains(name)) continue;
      old += bytes == "old";
      made += bytes == fresh.at(name);
      CHECK((bytes == "old" || bytes == fresh.at(name)));
    }
    CHECK(old + made == fresh.size());
    // A signal that may be answered leaves one or the other, and nothing beside it.
    if (by_term && killed) CHECK((old == 0 || made == 0));
  }
  REQUIRE(run_process(emit_into(out)).status == 0);
  auto last = bytes_of(out);
  CHECK(last.erase("other") == 1);
  CHECK((last == fresh));
}
