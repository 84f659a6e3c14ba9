#include "sleef.h"

#ifdef KILN_WITH_SLEEF
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
extern "C" {
__m512 Sleef_expf16_u10avx512f(__m512);
__m512 Sleef_logf16_u10avx512f(__m512);
__m512 Sleef_sinf16_u10avx512f(__m512);
__m512 Sleef_tanhf16_u10avx512f(__m512);
}
namespace {
template <__m512 (*F)(__m512)>
void map512(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 16) _mm512_storeu_ps(y + i, F(_mm512_loadu_ps(x + i)));
}
}  // namespace
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
extern "C" {
__m256 Sleef_expf8_u10avx2(__m256);
__m256 Sleef_logf8_u10avx2(__m256);
__m256 Sleef_sinf8_u10avx2(__m256);
__m256 Sleef_tanhf8_u10avx2(__m256);
}
namespace {
template <__m256 (*F)(__m256)>
void map256(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 8) _mm256_storeu_ps(y + i, F(_mm256_loadu_ps(x + i)));
}
}  // namespace
#pragma GCC pop_options

namespace kiln::bench {

Sleef sleef() {
  if (__builtin_cpu_supports("avx512f")) {
    return {map512<Sleef_expf16_u10avx512f>,  map512<Sleef_logf16_u10avx512f>,  map512<Sleef_sinf16_u10avx512f>,
            map512<Sleef_tanhf16_u10avx512f>, "SLEEF u10, AVX-512, one thread", ""};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {map256<Sleef_expf8_u10avx2>,  map256<Sleef_logf8_u10avx2>,   map256<Sleef_sinf8_u10avx2>,
            map256<Sleef_tanhf8_u10avx2>, "SLEEF u10, AVX2, one thread", ""};
  }
  Sleef none;
  none.why = "the row needs AVX2 and FMA";
  return none;
}

}  // namespace kiln::bench
#else
namespace kiln::bench {
Sleef sleef() {
  Sleef none;
  none.why = "built without SLEEF (Debian: libsleef-dev; then run CMake again)";
  return none;
}
}  // namespace kiln::bench
#endif
