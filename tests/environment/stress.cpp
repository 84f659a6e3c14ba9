#include "environment/stress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <thread>

#include "kiln/runtime/environment.h"
#include "support/process.h"

namespace kiln::test {
namespace {

const std::string kChild = KILN_BINARY_DIR "/lib/environment/kiln_environment_child";

pid_t start(std::vector<std::string> words, const std::string& folder, const std::string& out, const std::string& err) {
  words.insert(words.begin(), kChild);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  setenv("KILN_ENV", folder.c_str(), 1);
  setenv("KILN_CPU_WORKERS", "1", 1);
  unsetenv("KILN_LOG");
  unsetenv("KILN_CODEGEN");
  execv(argv[0], argv.data());
  _exit(127);
}

struct Running {
  pid_t pid;
  std::string out, err;
};

}  // namespace

StressResult stress_round(const Stress& stress, unsigned seed) {
  const TempFolder files, environment;
  StressResult result;
  std::mt19937 random(seed);
  const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto wrong = [&](const std::string& what) {
    if (result.wrong.size() < 10) result.wrong.push_back(what);
  };
  int number = 0;
  std::vector<Running> running;
  const auto start_one = [&] {
    const std::string name = files.file(std::to_string(number++));
    running.push_back({0, name + ".out", name + ".err"});
    running.back().pid =
        start({"run", std::to_string(stress.kernels), "--shuffle"}, environment.path(), running.back().out, running.back().err);
  };
  for (int i = 0; i < stress.processes; ++i) start_one();
  pid_t remover = 0;
  if (stress.removed != Removed::Nothing)
    remover = start({"delete", environment.path(), stress.removed == Removed::Rows ? "rows" : "files"}, environment.path(),
                    files.file("r.out"), files.file("r.err"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (!running.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + up_to(15)));
    if (result.killed < stress.kills && up_to(1) == 0) {
      const std::size_t victim = static_cast<std::size_t>(up_to(static_cast<int>(running.size()) - 1));
      kill(running[victim].pid, SIGKILL);
      int status = 0;
      waitpid(running[victim].pid, &status, 0);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(victim));
      ++result.killed;
      start_one();
    }
    for (std::size_t i = 0; i < running.size();) {
      int status = 0;
      if (waitpid(running[i].pid, &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      const std::string said = read_file(running[i].out), errors = read_file(running[i].err);
      unsigned long long compiled = 0, loaded = 0, stored = 0;
      const bool told = std::sscanf(said.c_str(), "compiled %llu loaded %llu stored %llu", &compiled, &loaded, &stored) == 3;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !told)
        wrong("a process ended with status " + std::to_string(status) + ": " + said + errors);
      else if (compiled + loaded != static_cast<unsigned long long>(stress.kernels))
        wrong("a process compiled " + std::to_string(compiled) + " and loaded " + std::to_string(loaded) + " kernels");
      const auto lines = static_cast<unsigned long long>(std::count(errors.begin(), errors.end(), '\n'));
      // Only where files are taken away is there anything to say, once for each kind of trouble.
      if (lines > (stress.removed == Removed::Files ? 3u : 0u)) wrong("a process said: " + errors);
      result.warnings += lines;
      if (lines != 0) result.warning = errors;
      result.compiled += compiled;
      result.loaded += loaded;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (std::chrono::steady_clock::now() > deadline) {
      wrong("processes hang");
      for (const Running& r : running) {
        int status = 0;
        kill(r.pid, SIGKILL);
        waitpid(r.pid, &status, 0);
      }
      running.clear();
    }
  }
  if (remover != 0) {
    int status = 0;
    kill(remover, SIGKILL);
    waitpid(remover, &status, 0);
  }
  // Whatever is left there, the next program runs.
  const auto after = run_process({kChild, "run", std::to_string(stress.kernels)}, {"KILN_ENV=" + environment.path(), "KILN_CPU_WORKERS=1"});
  if (after.status != 0 || (stress.removed != Removed::Files && !after.err.empty()))
    wrong("the next program failed: " + after.out + after.err);
  for (const auto& entry : std::filesystem::directory_iterator(environment.path())) {
    const std::string name = entry.path().filename().string();
    const bool expected = name == "environment.db" || name == "environment.db-wal" || name == "environment.db-shm" ||
                          (name == "environment.db.damaged" && stress.removed == Removed::Files);
    if (!expected) wrong("there is a file '" + name + "' left");
  }
  if (std::filesystem::exists(environment.file("environment.db"))) {
    const auto file = EnvironmentFile::open(environment.path());
    if (!file.has_value()) {
      if (stress.removed != Removed::Files) wrong(file.error().text());
    } else if (const auto bad = file->verify(); stress.removed != Removed::Files) {
      if (!bad.has_value()) wrong(bad.error().text());
      else
        for (const EnvironmentEntry& e : *bad) wrong("damaged: " + e.kernel + ": " + e.wrong);
    } else if (bad.has_value()) {
      for (const EnvironmentEntry& e : *bad)
        if (!e.id.empty()) wrong("damaged: " + e.kernel + ": " + e.wrong);
    }
  } else if (stress.removed != Removed::Files) {
    wrong("there is no environment at the end");
  }
  return result;
}

}  // namespace kiln::test
