#include "fuzz/runtime/program.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuzz/runtime/world.h"
#include "src/local_server.h"

namespace kiln::fuzz {

ProgramOutcome run_program(const Client& client, const ProgramOptions& options) {
  ProgramOutcome outcome;
  std::mutex report;
  std::atomic<bool> stop{false};
  const auto fail = [&](const std::string& what) {
    const std::lock_guard lock(report);
    if (outcome.wrong.empty()) outcome.wrong = what;
    stop = true;
  };
  std::vector<Stream> streams;
  for (unsigned i = 0; i < options.streams; ++i) streams.push_back(client.stream());
  {
    World::Options own{.seed = options.seed, .driver_faults = options.driver_faults};
    own.name = "the shared world";
    World shared(client, streams, own);
    std::mutex turn;
    std::vector<std::unique_ptr<World>> worlds;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < options.threads; ++t) {
      own.seed = options.seed * 1000 + t + 1;
      own.name = "the world of thread " + std::to_string(t);
      worlds.push_back(std::make_unique<World>(client, streams, own));
    }
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
          }
          worlds[t]->finish();
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
  }
  // Everything is freed: no failure is left, nothing waits to be confirmed.
  const Result<void> last = client.sync();
  if (outcome.wrong.empty() && !last.has_value() && !options.driver_faults) outcome.wrong = "the last sync gave: " + last.error().text();
  if (auto* server = dynamic_cast<rt::LocalServer*>(&client.server()); server != nullptr && outcome.wrong.empty()) {
    if (!server->failures().empty())
      outcome.wrong = std::to_string(server->failures().size()) + " failures are left where all memory is freed";
    if (server->unconfirmed() != 0) outcome.wrong = std::to_string(server->unconfirmed()) + " operations are left unconfirmed after a sync";
  }
  return outcome;
}

}  // namespace kiln::fuzz
