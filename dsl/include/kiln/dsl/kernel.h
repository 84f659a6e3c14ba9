// Kernels: KILN_KERNEL(name, (parameters)) { body } defines one, at namespace scope. With a first parameter `const Cfg&` it is a family of
// variants, one per config; a space may follow: KILN_KERNEL(matmul, (const MatmulCfg& cfg, ...), matmul_space()) { ... }.
//
//   saxpy(for_num_elems(n), x, y, 2.0f);                    the calling thread's default stream, of the buffers' client
//   saxpy(stream, {{4}, {256}}, x, y, 2.0f);
//   matmul.with({.tile = 8})(stream, config, a, b, c);      one variant; without with(), the default config
//   saxpy.unchecked()(config, x, y, 2.0f);
//
// A kernel is recorded once per config, at its first use; everything here is thread-safe. A recording error is the result of every launch
// of the variant, and stays on its outputs. A launch allocates nothing after the first.
#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/dsl/control.h"
#include "kiln/dsl/launch.h"
#include "kiln/dsl/registry.h"
#include "kiln/dsl/space.h"

namespace kiln {

struct NoConfig {};

namespace dsl {

// What the macro knows of a kernel.
struct Definition {
  std::string name;        // qualified
  std::string parameters;  // "(In<f32> x, Val<f32> a)", for the names; may be empty
  Where where;
  bool registered = true;  // listed, and refused when another kernel has its name

  template <class Tag>
  static Definition of(const char* parameters, Where where = Where::current()) {
    return {kernel_name(name_of<Tag>()), parameters, where, true};
  }
  static std::string kernel_name(const std::string& tag);  // without the tag's suffix and unnamed namespaces
};

// Everything about a kernel that does not depend on its types.
class KernelCore : public KernelEntry, public LaunchedKernel {
 public:
  KernelCore(Definition definition, std::vector<ParamSpec> params, std::shared_ptr<const ConfigSpace> space);
  ~KernelCore() override;
  KernelCore(const KernelCore&) = delete;
  KernelCore& operator=(const KernelCore&) = delete;

  const std::string& name() const override;
  std::string place() const override;
  std::vector<ParamInfo> params() const override;
  const std::vector<ConfigAxis>& axes() const override;
  std::string config_type() const override;
  std::vector<std::string> configs() const override;
  Result<std::shared_ptr<const Variant>> variant(const std::string& config = "") const override;

  const ConfigSpace* config_space() const;
  // Recorded; O(variants used) after the first call. Where the host has no memory for it, a slot without a variant.
  const VariantSlot& slot(const ConfigBits& config) const;
  const VariantSlot& default_slot() const;                         // O(1) after the first call
  Result<ir::Kernel> record_bits(const ConfigBits& config) const;  // a fresh recording, not verified
  Error out_of_memory(std::span<const LaunchArg> args) const noexcept override;

 protected:
  // Runs the body under the current recorder.
  virtual void run_body(Recorder& recorder, const ConfigBits& config) const = 0;

 private:
  struct State;
  ir::Kernel signature(const ConfigBits& config) const;
  const VariantSlot& recorded_slot(const ConfigBits& config) const;  // throws std::bad_alloc
  State* state_;
};

const Variant& variant_of(const VariantSlot& slot);  // throws std::bad_alloc where the slot has none

template <class C>
std::shared_ptr<const ConfigSpace> make_space(const Space<C>& space) {
  auto erased = space.erased();
  if (erased->problem.empty() && erased->members.size() != member_count<C>()) {
    erased->problem = erased->struct_name + " has " + std::to_string(member_count<C>()) + " members, but " +
                      std::to_string(erased->members.size()) + " are named; name every one with KILN_CONFIG(" + erased->struct_name +
                      ", ...) or as an axis of the space, or variants cannot be told apart";
  }
  return erased;
}

}  // namespace dsl

// A variant of a kernel in a mode, ready to launch. Copyable; must not outlive the kernel.
template <class... P>
class Bound : public dsl::LaunchOperators<Bound<P...>, P...> {
 public:
  explicit Bound(dsl::Target target) : target_(target) {}
  Bound checked() const { return in(ir::PrepareOptions::Mode::Checked); }
  Bound unchecked() const { return in(ir::PrepareOptions::Mode::Unchecked); }
  Bound in(ir::PrepareOptions::Mode mode) const {
    dsl::Target t = target_;
    t.mode = mode;
    return Bound(t);
  }
  const dsl::Target& target() const { return target_; }
  const Variant& variant() const { return dsl::variant_of(*target_.variant); }

 private:
  dsl::Target target_;
};

template <class C, class... P>
class Kernel final : public dsl::KernelCore, public dsl::LaunchOperators<Kernel<C, P...>, P...> {
 public:
  static_assert(((!std::is_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>) && ...),
                "kiln: a kernel takes its parameters by value: In<f32> x, not In<f32>& x.");
  static constexpr bool has_config = !std::same_as<C, NoConfig>;
  using Body = std::conditional_t<has_config, void (*)(const C&, P...), void (*)(P...)>;

  Kernel(dsl::Definition definition, Body body) : Kernel(std::move(definition), body, no_space()) {}
  template <class S>
  requires std::same_as<S, C>
  Kernel(dsl::Definition definition, Body body, const Space<S>& space) : Kernel(std::move(definition), body, dsl::make_space(space)) {}

  // The variant of a config. What the space refuses is the result of each launch.
  Bound<P...> with(const C& config) const
  requires has_config {
    return Bound<P...>({this, &slot(dsl::config_bits(*config_space(), config))});
  }
  // The default config's variant, checking accesses or trusting the author whatever the kernel's own options say.
  Bound<P...> checked() const { return Bound<P...>(target()).checked(); }
  Bound<P...> unchecked() const { return Bound<P...>(target()).unchecked(); }
  dsl::Target target() const { return {this, &default_slot()}; }

  // A fresh recording of the body as IR, for tools and tests. Not verified. Errors: a recording error, a refused config.
  Result<ir::Kernel> record() const { return record_bits(has_config ? config_space()->defaults : dsl::ConfigBits{}); }
  Result<ir::Kernel> record(const C& config) const
  requires has_config {
    return record_bits(dsl::config_bits(*config_space(), config));
  }

 private:
  Kernel(dsl::Definition definition, Body body, std::shared_ptr<const dsl::ConfigSpace> space)
      : KernelCore(std::move(definition), {dsl::param_t<P>::spec...}, std::move(space)), body_(body) {}
  static std::shared_ptr<const dsl::ConfigSpace> no_space() {
    if constexpr (has_config) return dsl::make_space(Space<C>());
    else return nullptr;
  }
  void run_body(dsl::Recorder& recorder, const dsl::ConfigBits& config) const override {
    run_body(recorder, config, std::index_sequence_for<P...>());
  }
  template <std::size_t... I>
  void run_body(dsl::Recorder& recorder, [[maybe_unused]] const dsl::ConfigBits& config, std::index_sequence<I...>) const {
    const std::tuple<std::remove_cvref_t<P>...> values{dsl::param_t<P>::value(recorder, I)...};
    if constexpr (has_config) body_(dsl::config_of<C>(*config_space(), config), std::get<I>(values)...);
    else body_(std::get<I>(values)...);
  }
  Body body_;
};

namespace dsl {
template <class F>
struct KernelType;
template <class... P>
struct KernelType<void(P...)> {
  using type = Kernel<NoConfig, P...>;
};
template <class C, class... P>
requires(std::is_class_v<C> && !Dsl<C> && !requires { C::access; })
struct KernelType<void(const C&, P...)> {
  using type = Kernel<C, P...>;
};
}  // namespace dsl
// The type of a kernel with a body of type F, to declare in a header: extern const KernelOf<void(In<f32> x, InOut<f32> y)> k;
template <class F>
using KernelOf = typename dsl::KernelType<F>::type;

namespace dsl {
template <class... P>
KernelOf<void(P...)> make_local(Definition definition, void (*body)(P...)) {
  return {std::move(definition), body};
}
template <class F>
constexpr auto plain_function(F body) {
  constexpr bool plain = requires { +body; };
  static_assert(plain,
                "kiln: the body of a kernel captures nothing: a host value that decides about the code is a member of the config, one that "
                "does not is a Val.");
  if constexpr (plain) return +body;
  else return static_cast<void (*)()>(nullptr);
}
}  // namespace dsl

// A kernel that is not registered, from a lambda without captures: for tests and tools. `parameters` names them, as "(x, y)".
template <class F>
auto local_kernel(std::string name, F body, std::string parameters = "", dsl::Where where = dsl::Where::current()) {
  return dsl::make_local(dsl::Definition{std::move(name), std::move(parameters), where, false}, dsl::plain_function(body));
}
// The recording of such a body.
template <class F>
Result<ir::Kernel> record(std::string name, F body, std::string parameters = "", dsl::Where where = dsl::Where::current()) {
  return local_kernel(std::move(name), body, std::move(parameters), where).record();
}

}  // namespace kiln

#define KILN_KERNEL(NAME, PARAMS, ...)                                                            \
  static_assert(#PARAMS[0] == '(',                                                                \
                "kiln: the parameters of a kernel stand in parentheses of their own: "            \
                "KILN_KERNEL(name, (In<f32> x, Out<f32> y)) { ... }");                            \
  struct NAME##_kiln_tag;                                                                         \
  static void NAME##_kiln_body PARAMS;                                                            \
  const ::kiln::KernelOf<void PARAMS> NAME{::kiln::dsl::Definition::of<NAME##_kiln_tag>(#PARAMS), \
                                           &NAME##_kiln_body __VA_OPT__(, ) __VA_ARGS__};         \
  static void NAME##_kiln_body PARAMS
// In a header, for a kernel that a .cpp file defines.
#define KILN_DECLARE_KERNEL(NAME, PARAMS) extern const ::kiln::KernelOf<void PARAMS> NAME
