// Where one launch runs: on a device, or on the interpreter of the IR, which is slow, runs on the host alone and finds what a right program
// never does.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "command.h"
#include "kiln/runtime/variant.h"

namespace kiln::cli {

struct OneLaunch {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<Argument> arguments;  // fit the signature
};

struct Outcome {
  // What is in each buffer that the kernel may write, by the number of its argument; empty for the others, and after a failure.
  std::vector<std::vector<std::uint8_t>> outputs;
  Json failure;                     // null: none
  std::string why;                  // the failure in one sentence
  std::string rule;                 // of the failure; may be empty
  Json log = Json::array();         // where it is collected
  std::vector<std::string> misuse;  // of the interpreter: races, reads of what was never written, a divergent barrier ...
  bool failed() const { return !failure.is_null(); }
};

enum class LogTo { Stderr, Outcome, Nowhere };

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const std::string& name() const = 0;  // as --device names it
  virtual std::string about() const = 0;        // "NVIDIA H200, sm_90"
  virtual bool interprets() const { return false; }
  // Throws Failed, kiln::Exception: the kernel is no valid one.
  virtual Outcome run(const Variant& variant, Mode mode, const OneLaunch& launch, LogTo log) = 0;
};

inline constexpr std::uint64_t kStepLimit = 2'000'000'000;
// "" is the default device; "interp" the interpreter, which ends a launch after so many operations (of warps). Throws kiln::Exception, or a
// usage error for a name that there is not.
std::unique_ptr<Engine> open_engine(const std::string& name, std::uint64_t step_limit = kStepLimit);

Json failure_json(const Error& error);

}  // namespace kiln::cli
