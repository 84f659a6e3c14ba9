// A kernel with its config and element types fixed: the unit the runtime launches. Made by the DSL (by recording) or from .kir text.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "kiln/ir/kernel.h"
#include "kiln/ir/passes.h"
#include "kiln/runtime/error.h"

namespace kiln {

// Immutable after construction; shared; thread-safe. Prepares at most once per mode; a failure is kept.
class Variant {
 public:
  // `recorded` need not be valid: what is wrong is reported by prepared() and so by each launch.
  explicit Variant(ir::Kernel recorded);
  // A variant that could not be recorded: every launch claims its declared outputs and reports `error`.
  Variant(ir::Kernel signature_only, Error error);
  ~Variant();
  Variant(const Variant&) = delete;

  const std::string& name() const { return recorded_.name; }
  const ir::Kernel& recorded() const { return recorded_; }
  std::uint64_t id() const { return id_; }  // unique in the process, never reused

  // The kernel after the device-independent passes. O(1) after the first call for a mode.
  Result<const ir::Prepared*> prepared(ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel) const;

 private:
  struct State;
  ir::Kernel recorded_;
  std::uint64_t id_;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
