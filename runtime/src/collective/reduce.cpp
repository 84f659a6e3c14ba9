#include <concepts>
#include <cstring>
#include <type_traits>

#include "kiln/runtime/scalar.h"
#include "src/collective/host_transport.h"

namespace kiln::rt {
namespace {

template <class T>
T element(const std::byte* from, std::uint64_t i) {
  T v;
  std::memcpy(&v, from + i * sizeof(T), sizeof(T));
  return v;
}

// Rounded once to T: a sum of two floats of 16 bits is exact enough as an f32, whose rounding cannot change the second one.
template <class T>
T add(T a, T b) {
  if constexpr (std::integral<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else if constexpr (std::floating_point<T>) return a + b;
  else return T(static_cast<float>(a) + static_cast<float>(b));
}

template <class T>
T over(T sum, std::size_t n) {
  if constexpr (std::floating_point<T>) return sum / static_cast<T>(n);
  else return T(static_cast<double>(static_cast<float>(sum)) / static_cast<double>(n));
}

__extension__ using Wide = __int128;

template <class T>
T mean(const std::vector<const std::byte*>& sources, std::uint64_t i) {
  Wide sum = 0;
  for (const std::byte* source : sources) sum += element<T>(source, i);
  return static_cast<T>(sum / static_cast<Wide>(sources.size()));
}

template <class T>
void reduce_as(Reduction reduction, const std::vector<const std::byte*>& sources, std::byte* out, std::uint64_t elements) {
  for (std::uint64_t i = 0; i < elements; ++i) {
    T result = element<T>(sources[0], i);
    for (std::size_t r = 1; r < sources.size(); ++r) result = add(result, element<T>(sources[r], i));
    if (reduction == Reduction::Mean) {
      if constexpr (std::integral<T>) result = mean<T>(sources, i);
      else result = over(result, sources.size());
    }
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

void reduce(ir::Type type, Reduction reduction, const std::vector<const std::byte*>& sources, std::byte* out, std::uint64_t elements) {
  using enum ir::Type;
  switch (type) {
    case I8: return reduce_as<i8>(reduction, sources, out, elements);
    case U8: return reduce_as<u8>(reduction, sources, out, elements);
    case I16: return reduce_as<i16>(reduction, sources, out, elements);
    case U16: return reduce_as<u16>(reduction, sources, out, elements);
    case I32: return reduce_as<i32>(reduction, sources, out, elements);
    case U32: return reduce_as<u32>(reduction, sources, out, elements);
    case I64: return reduce_as<i64>(reduction, sources, out, elements);
    case U64: return reduce_as<u64>(reduction, sources, out, elements);
    case F16: return reduce_as<f16>(reduction, sources, out, elements);
    case BF16: return reduce_as<bf16>(reduction, sources, out, elements);
    case F32: return reduce_as<f32>(reduction, sources, out, elements);
    case F64: return reduce_as<f64>(reduction, sources, out, elements);
    case Void:
    case Bool:
    case E4M3:
    case E5M2: return;  // refused before
  }
}

}  // namespace kiln::rt
