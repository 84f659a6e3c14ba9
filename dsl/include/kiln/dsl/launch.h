// The typed launch: what each kernel parameter takes on the host, and a sentence for what it does not take.
#pragma once
#include <array>
#include <concepts>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/dsl/memory.h"
#include "kiln/dsl/registry.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/prepared.h"
#include "kiln/runtime/strided.h"

namespace kiln {

// A grid that the device holds: the first three numbers of a buffer are x, y and z, read when the launch's turn comes, so that a kernel
// before it decides. The launch is skipped where they carry a failure; numbers beyond the device's limits are a failure of the launch,
// which its outputs carry; with a 0 among them nothing happens. On a GPU the host waits for the numbers.
class DynamicGrid {
 public:
  const Binding& counts() const { return counts_; }
  const LaunchConfig& config() const { return config_; }  // all but the grid

 private:
  friend DynamicGrid dynamic_grid(const Buffer<u32>& counts, Dim3 block, std::uint32_t shared_bytes);
  struct Made {
    explicit Made(const Buffer<u32>& buffer) : counts(buffer.binding()) {}
    Binding counts;
  };
  // Not of anything in braces: those are a LaunchConfig.
  DynamicGrid(Made made, const LaunchConfig& config, Made* /*none*/) : counts_(std::move(made.counts)), config_(config) {}
  Binding counts_;
  LaunchConfig config_;
};
inline DynamicGrid dynamic_grid(const Buffer<u32>& counts, Dim3 block, std::uint32_t shared_bytes = 0) {
  LaunchConfig config;
  config.block = block;
  config.shared_bytes = shared_bytes;
  return {DynamicGrid::Made(counts), config, nullptr};
}

namespace dsl {
// The first number of a launch that does not fit its parameter.
struct Unfit {
  unsigned argument = 0;  // from 1; 0: all fit
  bool is_float = false;
  double value = 0;            // of a float
  std::int64_t negative = 0;   // of an integer, or 0
  std::uint64_t positive = 0;  // of another integer
};
}  // namespace dsl

// A scalar argument: T itself, or any host number that is exact in T (a fraction rounds to f32 or less, as in C++, and may not overflow).
// What does not fit is refused by the launch, with the argument's name. No conversion between bool and numbers, none from a fraction to an
// integer.
template <Scalar T>
class HostValue {
 public:
  template <class H>
  requires(std::same_as<H, T> ||
           (dsl::Host<H> && !std::same_as<T, bool> && !std::same_as<H, bool> && (Floating<T> || IsFloat8<T> || std::integral<H>)))
  HostValue(H value) : value_(static_cast<T>(value)) {
    if constexpr (std::same_as<H, T>) {
      fits_ = true;
    } else if constexpr (Integer<T>) {
      fits_ = std::in_range<T>(value);
    } else if constexpr (std::integral<H>) {
      fits_ = static_cast<long double>(value_) == static_cast<long double>(value);  // exact: a long double holds every 64-bit integer
    } else {
      fits_ = !ir::overflows(ir_type<T>, static_cast<double>(value));
    }
    if (fits_) return;
    if constexpr (!std::integral<H>) {
      unfit_.is_float = true, unfit_.value = static_cast<double>(value);
    } else if constexpr (std::is_signed_v<H>) {
      if (value < 0) unfit_.negative = value;
      else unfit_.positive = static_cast<std::uint64_t>(value);
    } else {
      unfit_.positive = value;
    }
  }
  bool fits() const { return fits_; }
  const dsl::Unfit& unfit() const { return unfit_; }  // the number, where it does not fit
  std::uint64_t bits() const {
    std::uint64_t b = 0;
    if constexpr (std::same_as<T, bool>) b = value_ ? 1 : 0;
    else std::memcpy(&b, &value_, sizeof(T));
    return b;
  }

 private:
  T value_;
  bool fits_ = true;
  dsl::Unfit unfit_;
};

namespace dsl {

// A parameter of a signature, as data.
struct ParamSpec {
  bool is_buffer = false;
  ir::Type type = ir::Type::Void;
  std::uint8_t rank = 0;
  ir::Access access = ir::Access::In;
  bool strided = false;
  bool operator==(const ParamSpec&) const = default;
};

enum class Mismatch { None, Const, Element, Rank, NoBuffer, Number };

template <class A>
struct BufferTraits {
  static constexpr bool is_buffer = false;
};
template <class T, unsigned R>
struct BufferTraits<Buffer<T, R>> {
  static constexpr bool is_buffer = true;
  using element = T;
  static constexpr unsigned rank = R;
};

// Param<P>: the specification of parameter P, the type it takes on the host, and its value while recording.
template <class P>
struct Param {
  static_assert(never<P>, "kiln: the parameters of a kernel are In, Out, InOut and Val; a config comes first, as const Cfg&.");
};
template <class T, unsigned R, ir::Access A, Layout L>
struct Param<View<T, R, A, L>> {
  static_assert(Scalar<T>, "kiln: the elements of a kernel's memory are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3 and e5m2.");
};
template <Scalar T, unsigned R, ir::Access A, Layout L>
struct Param<View<T, R, A, L>> {
  static constexpr ParamSpec spec{true, ir_type<T>, R, A, L == Layout::Strided};
  using Dense = std::conditional_t<A == ir::Access::In, const Buffer<T, R>&, Buffer<T, R>&>;
  using Host = std::conditional_t<L == Layout::Strided, const StridedView<T, R>&, Dense>;
  static View<T, R, A, L> value(Recorder& recorder, std::uint32_t number) { return {recorder.kernel().params[number].mem, number}; }
  template <class G>
  static constexpr Mismatch mismatch() {
    using B = BufferTraits<std::remove_cvref_t<G>>;
    if constexpr (std::is_convertible_v<G, Host>) return Mismatch::None;
    else if constexpr (!B::is_buffer) return Mismatch::NoBuffer;
    else if constexpr (B::rank != R) return Mismatch::Rank;
    else if constexpr (!std::same_as<typename B::element, T>) return Mismatch::Element;
    else return Mismatch::Const;
  }
};
template <class T>
struct Param<Val<T>> {
  static constexpr ParamSpec spec{false, ir_type<T>, 0, ir::Access::In, false};
  using Host = HostValue<T>;
  static Val<T> value(Recorder& recorder, std::uint32_t number) { return Val<T>(recorder.handle(recorder.here().param(number))); }
  template <class G>
  static constexpr Mismatch mismatch() {
    return std::is_convertible_v<G, Host> ? Mismatch::None : Mismatch::Number;
  }
};
template <class P>
using param_t = Param<std::remove_cvref_t<P>>;
template <class P>
using host_t = typename param_t<P>::Host;

template <class T, unsigned R>
LaunchArg argument(const Buffer<T, R>& buffer) {
  return buffer.arg();
}
template <class T, unsigned R>
LaunchArg argument(const StridedView<T, R>& view) {
  return view.arg();
}
template <class T>
LaunchArg argument(const HostValue<T>& value) {
  LaunchArg a;
  a.type = ir_type<T>;
  a.bits = value.bits();
  return a;
}
template <class A>
const Client* client_of(const A& a) {
  if constexpr (requires { a.client(); }) return &a.client();
  else return nullptr;
}
template <class A>
bool fits(const A& a, unsigned argument, Unfit& unfit) {
  if constexpr (requires { a.fits(); }) {
    if (!a.fits()) unfit = a.unfit(), unfit.argument = argument;
  }
  return unfit.argument == 0;
}

// The sentence for argument I (from 1).
template <unsigned I, Mismatch M>
constexpr void explain_argument() {
#define KILN_SAY(N)                                                                                                                 \
  static_assert(I != N || M != Mismatch::Const,                                                                                     \
                "kiln: argument " #N " of this launch is const or a temporary, but the kernel writes it.");                         \
  static_assert(I != N || M != Mismatch::Element,                                                                                   \
                "kiln: argument " #N " of this launch is a buffer of another element type than the kernel's parameter.");           \
  static_assert(I != N || M != Mismatch::Rank,                                                                                      \
                "kiln: argument " #N " of this launch is a buffer of another rank than the kernel's parameter; see Buffer::view."); \
  static_assert(I != N || M != Mismatch::NoBuffer,                                                                                  \
                "kiln: argument " #N " of this launch is not a Buffer, but the kernel's parameter is one.");                        \
  static_assert(I != N || M != Mismatch::Number,                                                                                    \
                "kiln: argument " #N " of this launch is no host number that the kernel's Val<T> takes; write static_cast<T>(x).");
  // clang-format off
  KILN_SAY(1) KILN_SAY(2) KILN_SAY(3) KILN_SAY(4) KILN_SAY(5) KILN_SAY(6) KILN_SAY(7) KILN_SAY(8)
  KILN_SAY(9) KILN_SAY(10) KILN_SAY(11) KILN_SAY(12) KILN_SAY(13) KILN_SAY(14) KILN_SAY(15) KILN_SAY(16)
  // clang-format on
#undef KILN_SAY
  static_assert(I <= 16 || M == Mismatch::None, "kiln: an argument of this launch after the 16th does not fit the kernel's parameter.");
}

// The sentence for a wrong number of arguments. A message of static_assert is a literal, so there is one for each pair.
template <std::size_t Has, std::size_t Takes>
constexpr void explain_count() {
#define KILN_SAY(HAS, WORD, TAKES)                            \
  static_assert(Has != HAS || Takes != TAKES || Has == Takes, \
                "kiln: this launch has " #HAS WORD ", and the kernel takes " #TAKES " (a config does not count).");
  // clang-format off
#define KILN_SAY_ALL(HAS, WORD)                                                                                                      \
  KILN_SAY(HAS, WORD, 0) KILN_SAY(HAS, WORD, 1) KILN_SAY(HAS, WORD, 2) KILN_SAY(HAS, WORD, 3) KILN_SAY(HAS, WORD, 4)                 \
  KILN_SAY(HAS, WORD, 5) KILN_SAY(HAS, WORD, 6) KILN_SAY(HAS, WORD, 7) KILN_SAY(HAS, WORD, 8) KILN_SAY(HAS, WORD, 9)                 \
  KILN_SAY(HAS, WORD, 10) KILN_SAY(HAS, WORD, 11) KILN_SAY(HAS, WORD, 12)
  KILN_SAY_ALL(0, " arguments") KILN_SAY_ALL(1, " argument") KILN_SAY_ALL(2, " arguments") KILN_SAY_ALL(3, " arguments")
  KILN_SAY_ALL(4, " arguments") KILN_SAY_ALL(5, " arguments") KILN_SAY_ALL(6, " arguments") KILN_SAY_ALL(7, " arguments")
  KILN_SAY_ALL(8, " arguments") KILN_SAY_ALL(9, " arguments") KILN_SAY_ALL(10, " arguments") KILN_SAY_ALL(11, " arguments")
  KILN_SAY_ALL(12, " arguments")
  // clang-format on
#undef KILN_SAY_ALL
#undef KILN_SAY
  static_assert(Has == Takes || (Has <= 12 && Takes <= 12),
                "kiln: the launch has another number of arguments than the kernel has parameters (a config does not count).");
}

// Whether the arguments of a call begin with a configuration, after a stream where there is one.
template <class... A>
inline constexpr bool configured = false;
template <class A, class... R>
inline constexpr bool configured<A, R...> = std::is_convertible_v<A, LaunchConfig> || std::is_convertible_v<A, DynamicGrid>;
template <class A, class B, class... R>
inline constexpr bool configured<A, B, R...> = configured<A> || (std::is_convertible_v<A, const Stream&> && configured<B>);

template <class... P>
struct Arguments {
  template <class... A>
  static constexpr bool take() {
    if constexpr (sizeof...(A) != sizeof...(P)) return false;
    else return ((param_t<P>::template mismatch<A>() == Mismatch::None) && ...);
  }
  template <class... A>
  static constexpr void explain() {
    constexpr bool stream = (std::same_as<std::remove_cvref_t<A>, Stream> || ...);
    static_assert(!stream, "kiln: the stream of a launch comes before its configuration: k(stream, config, x, y).");
    if constexpr (!stream) explain_count<sizeof...(A), sizeof...(P)>();
    if constexpr (!stream && sizeof...(A) == sizeof...(P)) {
      []<std::size_t... I>(std::index_sequence<I...>) {
        (explain_argument<I + 1, param_t<P>::template mismatch<A>()>(), ...);
      }(std::index_sequence_for<P...>{});
    }
  }
};

struct VariantSlot;

// What a launch asks of its kernel, be that recorded here or embedded.
class LaunchedKernel {
 public:
  virtual const std::string& name() const = 0;
  virtual std::string place() const = 0;
  virtual std::vector<ParamInfo> params() const = 0;
  // Where the host has no memory for a launch: what it was to write is claimed. The error of the launch.
  virtual Error out_of_memory(std::span<const LaunchArg> args) const noexcept = 0;

 protected:
  ~LaunchedKernel() = default;
};

// What is launched: a variant of a kernel, in a mode.
struct Target {
  const LaunchedKernel* kernel = nullptr;
  const VariantSlot* variant = nullptr;
  ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel;
};
// stream null: the calling thread's default stream of `client`, or of the default client where that is null too. Never throws, but for a
// launch inside the body of a kernel.
struct Call {
  Target target;
  const Stream* stream = nullptr;
  const Client* client = nullptr;
  const LaunchConfig& config;
  const Binding* counts = nullptr;  // of a dynamic grid
  std::span<const LaunchArg> args;
  const Unfit& unfit;
};
Result<void> launch(const Call& call);
Result<PreparedLaunch> prepare(const Call& call);
Result<void> rebind(const Target& target, PreparedLaunch& prepared, std::span<const LaunchArg> args, const Unfit& unfit);

// The arguments of a call, and what the launch needs to know of them.
template <class... A>
struct CallArguments {
  std::array<LaunchArg, sizeof...(A)> list;
  Unfit unfit;
  const Client* client = nullptr;

  explicit CallArguments(const A&... args) : list{argument(args)...} {
    [[maybe_unused]] unsigned number = 0;
    (void)(fits(args, ++number, unfit) && ...);
    ((client = client ? client : client_of(args)), ...);
  }
};

}  // namespace dsl

// A launch of a kernel with these parameters, checked once: go() enqueues it again, on the same stream, at little more than the cost of
// enqueueing. As PreparedLaunch (prepared.h), with typed arguments; must not outlive the kernel.
template <class... P>
class Prepared {
 public:
  Prepared(dsl::Target target, PreparedLaunch launch) : target_(target), launch_(std::move(launch)) {}
  Result<void> operator()() const { return launch_(); }
  Result<void> on(const Stream& stream) const { return launch_.on(stream); }  // another stream of the device
  // Other arguments, checked as the first ones were. On an error the former ones stay.
  Result<void> rebind(dsl::host_t<P>... args) {
    const dsl::CallArguments<std::remove_cvref_t<dsl::host_t<P>>...> given(args...);
    return dsl::rebind(target_, launch_, given.list, given.unfit);
  }
  const LaunchConfig& config() const { return launch_.config(); }

 private:
  dsl::Target target_;
  PreparedLaunch launch_;
};

namespace dsl {

// The call operators of Self, which has target(). Not templates over the arguments, so that an editor shows the signature; the templates
// beside them only explain what does not fit.
template <class Self, class... P>
class LaunchOperators {
 public:
  Result<void> operator()(const Stream& stream, const LaunchConfig& config, host_t<P>... args) const {
    return go(&stream, config, nullptr, args...);
  }
  Result<void> operator()(const LaunchConfig& config, host_t<P>... args) const { return go(nullptr, config, nullptr, args...); }
  Result<void> operator()(const Stream& stream, const DynamicGrid& grid, host_t<P>... args) const {
    return go(&stream, grid.config(), &grid.counts(), args...);
  }
  Result<void> operator()(const DynamicGrid& grid, host_t<P>... args) const { return go(nullptr, grid.config(), &grid.counts(), args...); }

  // The same launch, to be enqueued later and often. Errors are those of the launch; nothing is claimed.
  Result<Prepared<P...>> prepare(const Stream& stream, const LaunchConfig& config, host_t<P>... args) const {
    return made_ready(&stream, config, nullptr, args...);
  }
  Result<Prepared<P...>> prepare(const LaunchConfig& config, host_t<P>... args) const {
    return made_ready(nullptr, config, nullptr, args...);
  }
  Result<Prepared<P...>> prepare(const Stream& stream, const DynamicGrid& grid, host_t<P>... args) const {
    return made_ready(&stream, grid.config(), &grid.counts(), args...);
  }

  template <class... A>
  requires(!Arguments<P...>::template take<A...>())
  Result<void> operator()(const Stream&, const LaunchConfig&, A&&...) const {
    Arguments<P...>::template explain<A...>();
    return {};
  }
  template <class... A>
  requires(!Arguments<P...>::template take<A...>())
  Result<void> operator()(const LaunchConfig&, A&&...) const {
    Arguments<P...>::template explain<A...>();
    return {};
  }
  template <class... A>
  requires(!Arguments<P...>::template take<A...>())
  Result<void> operator()(const Stream&, const DynamicGrid&, A&&...) const {
    Arguments<P...>::template explain<A...>();
    return {};
  }
  template <class... A>
  requires(!Arguments<P...>::template take<A...>())
  Result<void> operator()(const DynamicGrid&, A&&...) const {
    Arguments<P...>::template explain<A...>();
    return {};
  }
  template <class... A>
  requires(!Arguments<P...>::template take<A...>())
  Result<Prepared<P...>> prepare(const Stream&, const LaunchConfig&, A&&...) const {
    Arguments<P...>::template explain<A...>();
    return rt::no_host_memory();
  }
  template <class... A>
  requires(!configured<A...>)
  Result<void> operator()(A&&...) const {
    static_assert(
        never<A...>,
        "kiln: a launch needs its configuration before the arguments: k(config, x, y) or k(stream, config, x, y), where config is "
        "for_num_elems(n), cover({columns, rows}, block) or {{blocks}, {threads}}.");
    return {};
  }

 private:
  template <class... A>
  Result<void> go(const Stream* stream, const LaunchConfig& config, const Binding* counts, const A&... args) const {
    const CallArguments<A...> given(args...);
    return launch({static_cast<const Self&>(*this).target(), stream, given.client, config, counts, given.list, given.unfit});
  }
  template <class... A>
  Result<Prepared<P...>> made_ready(const Stream* stream, const LaunchConfig& config, const Binding* counts, const A&... args) const {
    const CallArguments<A...> given(args...);
    const Target target = static_cast<const Self&>(*this).target();
    auto prepared = dsl::prepare({target, stream, given.client, config, counts, given.list, given.unfit});
    if (!prepared.has_value()) return prepared.error();
    return Prepared<P...>(target, std::move(*prepared));
  }
};

}  // namespace dsl
}  // namespace kiln
