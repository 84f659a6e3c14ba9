// The head of a body: what the variant declares about its launches. Heads come first; after the first ordinary operation one is a
// recording error. They may use the config.
#pragma once
#include <string_view>

#include "kiln/dsl/memory.h"
#include "kiln/runtime/launch_config.h"

namespace kiln {

using Options = ir::Options;

// The exact block shape of every launch, or the most threads a block may have.
void block_size(Extent32 x, Extent32 y = 1, Extent32 z = 1, dsl::Where w = dsl::Where::current());
void max_threads(Extent32 n, dsl::Where w = dsl::Where::current());

// A condition over extents, scalars and constants. The host checks it at launch and refuses the launch with the condition's text (or the
// one given); the prover of accesses knows it. A host bool that is false refuses the variant itself.
void require(Use<bool> condition, std::string_view text = {});
void require(bool condition, std::string_view text = {}, dsl::Where w = dsl::Where::current());

// The options of the variant: options({.checked = false, .contraction = false, .fast_math = true}).
void options(const Options& options, dsl::Where w = dsl::Where::current());

namespace dsl {
void may_alias(std::uint32_t a, std::uint32_t b, const Where& w);
}
// These two parameters may be the same memory; no other Out or InOut may overlap anything.
template <class T, unsigned R, ir::Access A, Layout L, class U, unsigned S, ir::Access B, Layout M>
void in_place(const View<T, R, A, L>& out, const View<U, S, B, M>& in, dsl::Where w = dsl::Where::current()) {
  static_assert(A != ir::Access::In || B != ir::Access::In, "kiln: in_place is about a written parameter; two In may alias anyway.");
  dsl::may_alias(out.param(), in.param(), w);
}

}  // namespace kiln
