#include "fuzz/runtime/program.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuzz/runtime/world.h"
#include "kiln/runtime/memory.h"
#include "src/local_server.h"
#include "support/sim.h"

namespace kiln::fuzz {
namespace {

// Ends the process when no operation has ended for a while.
class Watchdog {
 public:
  Watchdog(unsigned patience, std::function<std::string()> report)
      : patience_(patience), report_(std::move(report)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void alive() { operations_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    std::uint64_t before = ~std::uint64_t{0};
    while (!changed_.wait_for(lock, std::chrono::seconds(patience_), [this] { return over_; })) {
      const std::uint64_t now = operations_.load(std::memory_order_relaxed);
      if (now == before) {
        std::fprintf(stderr, "no operation has ended for %u seconds\n%s\n", patience_, report_().c_str());
        std::fflush(stderr);
        std::_Exit(3);
      }
      before = now;
    }
  }
  const unsigned patience_;
  const std::function<std::string()> report_;
  std::atomic<std::uint64_t> operations_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// What a device has of things that programs make, and must have again when their programs are over.
struct Left {
  std::uint64_t allocations = 0, bytes = 0, graphs = 0, slots = 0, reports = 0, device_graphs = 0;

  static Left of(const Client& client, bool simulated) {
    Left left;
    (void)client.sync();
    (void)memory_cleanup(client);
    if (const auto report = memory_report(client); report.has_value()) {
      left.allocations = report->total.allocations;
      left.bytes = report->total.bytes_in_use;
    }
    auto& server = dynamic_cast<rt::LocalServer&>(client.server());
    left.graphs = server.captures().instances().size();
    left.slots = server.fault_slots().used();
    if (simulated) {
      left.reports = test::sim_count("reports");
      left.device_graphs = test::sim_count("graphs");
    }
    return left;
  }
  std::string more_than(const Left& before) const {
    std::string text;
    const auto compare = [&](const char* what, std::uint64_t now, std::uint64_t then) {
      if (now > then) text += std::string(what) + ": " + std::to_string(now) + ", before the program " + std::to_string(then) + "; ";
    };
    compare("allocations that live", allocations, before.allocations);
    compare("bytes in use", bytes, before.bytes);
    compare("instances of graphs", graphs, before.graphs);
    compare("fault records in use", slots, before.slots);
    compare("reports of the simulated device", reports, before.reports);
    compare("graphs of the simulated device", device_graphs, before.device_graphs);
    if (reports > before.reports) text += test::sim_report();
    return text;
  }
};

}  // namespace

ProgramOutcome run_program(const Client& client, const ProgramOptions& options) {
  ProgramOutcome outcome;
  std::mutex report;
  std::atomic<bool> stop{false};
  const auto fail = [&](const std::string& what) {
    const std::lock_guard lock(report);
    if (outcome.wrong.empty()) outcome.wrong = what;
    stop = true;
  };
  const bool simulated = client.properties().kind == "cuda";  // a real one: the simulated driver counts nothing
  const Left before = Left::of(client, simulated);
  Faults faults(options.faults, client, options.seed, options.operations);
  Together together(faults);
  std::vector<Stream> streams;
  for (unsigned i = 0; i < options.streams; ++i) streams.push_back(client.stream());
  {
    World::Options own{.seed = options.seed};
    own.name = "the shared world";
    World shared(client, streams, client.stream(), together, own);
    std::mutex turn;
    std::vector<std::unique_ptr<World>> worlds;
    for (unsigned t = 0; t < options.threads; ++t) {
      own.seed = options.seed * 1000 + t + 1;
      own.name = "the world of thread " + std::to_string(t);
      worlds.push_back(std::make_unique<World>(client, streams, client.stream(), together, own));
    }
    Watchdog watchdog(options.patience, [&] {
      std::string text = "seed " + std::to_string(options.seed) + ", " + options.repeat + "\nthe shared world:\n" + shared.trace();
      for (unsigned t = 0; t < options.threads; ++t) text += "the world of thread " + std::to_string(t) + ":\n" + worlds[t]->trace();
      return text;
    });
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < options.threads; ++t) {
      threads.emplace_back([&, t] {
        try {
          for (std::uint64_t i = t; i < options.operations && !stop; i += options.threads) {
            if (i / options.threads % 3 != 0) {
              worlds[t]->step();
            } else {
              const std::lock_guard lock(turn);
              shared.step();
            }
            watchdog.alive();
          }
          if (!stop) worlds[t]->finish();
        } catch (const std::exception& e) { fail(e.what()); }
      });
    }
    for (std::thread& t : threads) t.join();
    try {
      if (!stop) shared.finish();
    } catch (const std::exception& e) { fail(e.what()); }
    worlds.push_back(nullptr);
    for (const auto& w : worlds)
      for (const auto& [what, n] : w != nullptr ? w->counts() : shared.counts()) outcome.counts[what] += n;
    faults.end();
    if (const Result<void> last = client.sync(); outcome.wrong.empty()) {  // also for the host calls
      if (last.has_value() && together.lost) outcome.wrong = "a device that was lost is well again";
      if (!last.has_value() && options.faults != FaultKind::Loss) outcome.wrong = "the last sync gave: " + last.error().text();
    }
    const std::lock_guard lock(together.mutex);
    if (outcome.wrong.empty()) outcome.wrong = together.wrong;
  }
  if (!outcome.wrong.empty()) return outcome;
  // Everything is freed: nothing of it is left, once the runtime's threads have let go of what they had in their hands.
  const auto left = [&]() -> std::string {
    const Left after = Left::of(client, simulated && options.faults != FaultKind::Loss);
    auto& server = dynamic_cast<rt::LocalServer&>(client.server());
    if (!server.failures().empty()) return std::to_string(server.failures().size()) + " failures are left where all memory is freed";
    if (server.unconfirmed() != 0) return std::to_string(server.unconfirmed()) + " operations are left unconfirmed after a sync";
    const std::string more = options.alone ? after.more_than(before) : std::string();
    return more.empty() ? more : "what is left when all is freed: " + more;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!(outcome.wrong = left()).empty() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return outcome;
}

}  // namespace kiln::fuzz
