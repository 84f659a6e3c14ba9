// Faults of the driver that random programs are run under, and the clients that stand them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "kiln/runtime/client.h"

namespace kiln::test {
class SimScript;
}

namespace kiln::fuzz {

enum class FaultKind : std::uint8_t {
  None,
  Refusals,  // single calls of the driver fail, and the device goes on (simulated devices)
  Loss       // at some moment the device is lost
};
const char* name(FaultKind kind);

// A client for a program under such faults: "cpu", "h200" and "t4" (simulated), "cuda". For a Loss it is of no use afterwards, and the
// simulated driver starts anew with the next one. Throws kiln::Exception; std::invalid_argument where the device cannot have the faults.
Client fault_client(const std::string& device, FaultKind kind);

// Thread-safe.
class Faults {
 public:
  Faults(FaultKind kind, const Client& client, std::uint64_t seed, std::uint64_t operations);
  ~Faults();
  FaultKind kind() const { return kind_; }
  bool any() const { return kind_ != FaultKind::None; }
  // Before each operation of a program. Gives true once, where the program is to lose the device by a kernel of its own.
  bool next();
  void end();  // no more from now on

 private:
  std::string refusal();
  std::string loss();
  const FaultKind kind_;
  const bool simulated_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::uint64_t until_ = 0;  // operations before the next script
  std::unique_ptr<test::SimScript> script_;
};

}  // namespace kiln::fuzz
