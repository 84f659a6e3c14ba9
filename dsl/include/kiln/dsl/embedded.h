// Kernels that this program does not record: their compiled code, signature and IR come from a bundle that a build step embedded. The
// header that the build step generates has one constant for each, and a launch is the same line as for a kernel that is recorded:
//
//   inline const kiln::EmbeddedKernel<In<f32>, InOut<f32>, Val<f32>> saxpy{"ns::saxpy", &anchor};
//   saxpy(for_num_elems(n), x, y, 2.0f);
//
// Nothing happens before the first launch; then the kernel is looked for in what the process embeds, and its signature is held against P.
// What is wrong is the result of every launch and stays on its outputs. Thread-safe; a launch allocates nothing after the first.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/dsl/kernel.h"

namespace kiln {
namespace dsl {

// Everything about an embedded kernel that does not depend on its types.
class EmbeddedCore : public LaunchedKernel {
 public:
  EmbeddedCore(const EmbeddedCore&) = delete;
  EmbeddedCore& operator=(const EmbeddedCore&) = delete;

  const std::string& name() const override;
  std::string place() const override;
  std::vector<ParamInfo> params() const override;
  Error out_of_memory(std::span<const LaunchArg> args) const noexcept override;

 protected:
  // "tile=8,unroll=2" of a config; an error where it has members that nothing names.
  using ConfigText = Result<std::string> (*)(const ConfigBits& config);
  // `name` and `params` outlive it. The anchor's address keeps the object with the bundles in the program.
  constexpr EmbeddedCore(const char* name, const void* anchor, std::span<const ParamSpec> params, ConfigText text)
      : name_(name), anchor_(anchor), specs_(params), text_(text) {}
  ~EmbeddedCore() = default;
  // O(variants used) after the first call for a config; looked for again, where it was not found, when a module came or went.
  Target target(const ConfigBits& config) const;

 private:
  struct State;
  struct Found;
  State& state() const;
  const Found& found(const ConfigBits& config) const;
  std::unique_ptr<Found> look(const ConfigBits& config) const;

  const char* name_;
  const void* anchor_;
  std::span<const ParamSpec> specs_;
  ConfigText text_;
  mutable std::atomic<State*> state_{nullptr};  // never deleted: launches may be under way when the library is unloaded
};

Result<std::string> config_text(const ConfigSpace& space, const ConfigBits& config);

template <class... P>
struct Specs {
  static constexpr std::array<ParamSpec, sizeof...(P)> list{param_t<P>::spec...};
};

}  // namespace dsl

// P as in the kernel's own parameters.
template <class... P>
class EmbeddedKernel final : public dsl::EmbeddedCore, public dsl::LaunchOperators<EmbeddedKernel<P...>, P...> {
 public:
  // The kernel's qualified name, and any address in the object that has its bundles.
  constexpr EmbeddedKernel(const char* name, const void* anchor) : EmbeddedCore(name, anchor, dsl::Specs<P...>::list, nullptr) {}

  // Launched as it is, it runs in the kernel's own mode, or in the one that it is embedded in.
  Bound<P...> checked() const { return Bound<P...>(target()).checked(); }
  Bound<P...> unchecked() const { return Bound<P...>(target()).unchecked(); }
  dsl::Target target() const { return EmbeddedCore::target({}); }
};

// The embedded variants of a kernel with a config. The members of Config are named by KILN_CONFIG, as those of the kernel's own are.
template <dsl::NamedConfig Config, class... P>
class EmbeddedFamily final : public dsl::EmbeddedCore, public dsl::LaunchOperators<EmbeddedFamily<Config, P...>, P...> {
 public:
  constexpr EmbeddedFamily(const char* name, const void* anchor) : EmbeddedCore(name, anchor, dsl::Specs<P...>::list, &text) {}

  // The variant of a config. One that is not embedded is the error of each launch, with those that are.
  Bound<P...> with(const Config& config) const { return Bound<P...>(EmbeddedCore::target(dsl::config_bits(*space(), config))); }
  Bound<P...> checked() const { return Bound<P...>(target()).checked(); }
  Bound<P...> unchecked() const { return Bound<P...>(target()).unchecked(); }
  dsl::Target target() const { return EmbeddedCore::target(space()->defaults); }

 private:
  // Never destroyed: static destructors may launch.
  static const dsl::ConfigSpace* space() {
    static const dsl::ConfigSpace* const made = new dsl::ConfigSpace(*dsl::make_space(Space<Config>()));
    return made;
  }
  static Result<std::string> text(const dsl::ConfigBits& config) { return dsl::config_text(*space(), config); }
};

}  // namespace kiln
