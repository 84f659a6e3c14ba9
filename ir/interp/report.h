// What a run has found: the first fault, misuse (each place once, a bounded number), and whether to stop.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "interp/interp.h"

namespace kiln::interp {

class Report {
 public:
  Report(const ir::Kernel& kernel, Outcome& outcome) : kernel_(kernel), outcome_(outcome) {}

  void fault(const ir::FaultRecord& record) {
    if (!outcome_.fault) outcome_.fault = record;
    if (outcome_.faults.size() < kMostFaults) outcome_.faults.push_back(record);
    else outcome_.all_faults = false;
  }
  void log(Logged line) { outcome_.log.push_back(std::move(line)); }
  // `kind` and the two operations say whether this was reported before.
  void misuse(const char* kind, ir::OpId op, ir::OpId other, const std::string& message) {
    if (outcome_.misuse.size() >= kMax || !seen_.emplace(kind, op, other).second) return;
    const std::string place = op < kernel_.ops.size() ? ir::to_string(kernel_, kernel_.op(op).loc) : "?";
    outcome_.misuse.push_back((place == "?" ? "" : place + ": ") + "kernel '" + kernel_.name + "': " + message);
  }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // "store (operation 12 at a.cpp:3)"
  std::string describe(ir::OpId id) const {
    const std::string place = ir::to_string(kernel_, kernel_.op(id).loc);
    return std::string(ir::info(kernel_.op(id).code).mnemonic) + " (operation " + std::to_string(id) +
           (place == "?" ? "" : " at " + place) + ")";
  }

 private:
  static constexpr std::size_t kMax = 32, kMostFaults = 100'000;
  const ir::Kernel& kernel_;
  Outcome& outcome_;
  std::set<std::tuple<std::string, ir::OpId, ir::OpId>> seen_;
  bool stopped_ = false;
};

}  // namespace kiln::interp
