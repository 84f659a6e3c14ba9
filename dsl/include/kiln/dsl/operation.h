// Launches as operations (kiln/runtime/operation.h):
//
//   Operation<void> later = op::launch(saxpy, config, x, y, 2.0f);                          borrows its buffers
//   auto owned = op::launch_owned(saxpy, config, std::move(x), std::move(y), 2.0f);         hands them back: std::tuple<Buffer, Buffer>
//
// The kernel, or what with(), checked() and unchecked() make of one, must outlive the operation. Everything else that a launch tests is
// tested when it runs. After a failure owned buffers are gone with it; keep a copy, which is another name of the same memory.
#pragma once
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kiln/dsl/kernel.h"
#include "kiln/runtime/operation.h"

namespace kiln::op {
namespace detail {

// What parameter P takes by value, to keep.
template <class P>
struct Owned {
  using type = std::remove_cvref_t<dsl::host_t<P>>;
  static constexpr bool is_buffer = dsl::param_t<P>::spec.is_buffer;
};
template <class P>
using owned_t = typename Owned<P>::type;
template <class P>
using owned_argument_t = std::conditional_t<Owned<P>::is_buffer, owned_t<P>&&, owned_t<P>>;

// A tuple of the buffers among the arguments.
template <class P>
auto if_buffer(owned_t<P>& argument) {
  if constexpr (Owned<P>::is_buffer) return std::tuple<owned_t<P>>(std::move(argument));
  else return std::tuple<>();
}

// What a launch wrote, or was to.
inline void note_writes(const Context& context, std::span<const dsl::ParamSpec> specs, std::span<const LaunchArg> args) {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (specs[i].is_buffer && specs[i].access != ir::Access::In) context.run->wrote(args[i].binding);
}

// A launch whose buffers may be gone when it runs.
template <class... P>
class BorrowedLaunch {
 public:
  static constexpr std::size_t kCount = sizeof...(P);
  static constexpr std::array<dsl::ParamSpec, kCount> kSpecs{dsl::param_t<P>::spec...};

  template <class... A>
  BorrowedLaunch(const dsl::Target& target, const LaunchConfig& config, const A&... args)
      : target_(target), config_(config), args_{dsl::argument(args)...} {
    [[maybe_unused]] unsigned number = 0;
    (void)(dsl::fits(args, ++number, unfit_) && ...);
    for (LaunchArg& a : args_) {
      lent_.emplace_back(a.binding);
      a.binding.memory.reset();
    }
  }

  Result<void> operator()(const Context& context) const {
    std::array<LaunchArg, kCount> args = args_;
    std::size_t missing = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (!args[i].is_buffer) continue;
      if (auto binding = lent_[i].lock()) args[i].binding = std::move(*binding);
      else if (missing == 0) missing = i + 1;
    }
    if (missing != 0) {  // as any launch that is refused: what it was to write whole has nothing for anybody to read
      const Error error = borrowed_gone(target_.kernel->name().c_str(), missing);
      for (std::size_t i = 0; i < kCount; ++i)
        if (kSpecs[i].is_buffer && kSpecs[i].access == ir::Access::Out && !kSpecs[i].strided) rt::claim(args[i].binding, error);
      return rt::not_issued(context.stream, error);
    }
    note_writes(context, kSpecs, args);
    return dsl::launch({target_, &context.stream, nullptr, config_, nullptr, args, unfit_});
  }

 private:
  dsl::Target target_;
  LaunchConfig config_;
  std::array<LaunchArg, kCount> args_;
  std::vector<Borrowed> lent_;
  dsl::Unfit unfit_;
};

template <class A>
std::optional<Client> client_of(const A& a) {
  if constexpr (requires { a.client(); }) return a.client();
  else return std::nullopt;
}

}  // namespace detail

template <class Self, class... P>
Operation<void> launch(const dsl::LaunchOperators<Self, P...>& kernel, const LaunchConfig& config,
                       std::type_identity_t<dsl::host_t<P>>... args) {
  return detail::issue<void>(detail::first_client({detail::client_of(args)...}),
                             detail::BorrowedLaunch<P...>(static_cast<const Self&>(kernel).target(), config, args...));
}

template <class Self, class... P>
auto launch_owned(const dsl::LaunchOperators<Self, P...>& kernel, const LaunchConfig& config,
                  std::type_identity_t<detail::owned_argument_t<P>>... args) {
  using Buffers = decltype(std::tuple_cat(detail::if_buffer<P>(std::declval<detail::owned_t<P>&>())...));
  auto client = detail::first_client({detail::client_of(args)...});
  return detail::issue<Buffers>(std::move(client),
                                [target = static_cast<const Self&>(kernel).target(), config,
                                 kept = std::tuple<detail::owned_t<P>...>(std::move(args)...)](const detail::Context& context) mutable {
                                  return std::apply(
                                      [&](auto&... each) -> Result<Buffers> {
                                        const std::array<LaunchArg, sizeof...(P)> list{dsl::argument(each)...};
                                        dsl::Unfit unfit;
                                        [[maybe_unused]] unsigned number = 0;
                                        (void)(dsl::fits(each, ++number, unfit) && ...);
                                        detail::note_writes(context, detail::BorrowedLaunch<P...>::kSpecs, list);
                                        const auto ok = dsl::launch({target, &context.stream, nullptr, config, nullptr, list, unfit});
                                        if (!ok.has_value()) return ok.error();
                                        return std::tuple_cat(detail::if_buffer<P>(each)...);
                                      },
                                      kept);
                                });
}
// Only to explain.
template <class Self, class... P, class... A>
requires((std::is_lvalue_reference_v<A> && dsl::BufferTraits<std::remove_cvref_t<A>>::is_buffer) || ...)
Operation<void> launch_owned(const dsl::LaunchOperators<Self, P...>&, const LaunchConfig&, A&&...) {
  static_assert(detail::never<A...>, "kiln: launch_owned() takes its buffers away: write std::move(buffer), or op::launch() to lend them.");
  return nothing();
}

}  // namespace kiln::op
