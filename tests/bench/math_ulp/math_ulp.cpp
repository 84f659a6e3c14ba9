// Measures the error of the math library in units in the last place: functions of one f32 on all arguments (or every n-th), the others on
// random ones. Results come from the CPU device; true values from SLEEF or libm in f64, and from long double for f64; whatever is worse
// than all before is judged by MPFR where there is one.
//
//   math_ulp [FUNCTION...] [--type f32|f64] [--step N] [--samples N] [--fast] [--table]   (--table: the rows of docs/math.md)
//
// With --fast it is the functions of f32 in kernels with fast_math, where docs/math.md gives a bound, in the unit of that bound.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "functions.h"
#include "ir/math_fast_bounds.h"
#include "judge.h"
#include "true_value.h"

namespace kiln::bench {
namespace {

constexpr std::size_t kChunk = 1 << 16;  // arguments at a time: their true values stay in the cache

struct Figures {
  double worst = -1, x = 0, y = 0;
  bool judged = true;                  // by MPFR; what it has no number for (an infinity that should be a NaN) counts as it is
  std::uint64_t count = 0, wrong = 0;  // wrong: not the correctly rounded result
  void merge(const Figures& o) {
    count += o.count;
    wrong += o.wrong;
    if (o.worst > worst) worst = o.worst, x = o.x, y = o.y;
    judged &= o.judged;
  }
};

// MPFR has the last word: on the argument that looks worst, and where a true value turns out to be wrong, on all.
template <class T, class Exact>
void find_worst(const Function& f, const std::vector<T>& x, const std::vector<double>& y, const std::vector<T>& got,
                const std::vector<Exact>& exact, Figures& into) {
  const auto look = [&](std::size_t i, double seen) {
    const auto judged = exact_error(f.op, sizeof(T) == 4 ? ir::Type::F32 : ir::Type::F64, x[i], y[i], got[i]);
    if (!judged && seen > 0 && std::isfinite(seen)) into.judged = false;
    const double error = judged.value_or(seen);
    if (error > into.worst) into.worst = error, into.x = x[i], into.y = y[i];
    return error;
  };
  std::size_t worst = 0;
  double seen = -1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (const double u = ulps(got[i], exact[i]); u > seen) seen = u, worst = i;
  }
  if (std::fabs(look(worst, seen) - seen) < 0.01) return;
  for (std::size_t i = 0; i < x.size(); ++i) look(i, ulps(got[i], exact[i]));
}

void true_values(const Function& f, const std::vector<float>& x, const std::vector<double>& y, std::vector<double>& exact) {
  if (f.many != nullptr) {
    std::vector<double> wide(x.begin(), x.end());
    f.many(wide.data(), exact.data(), wide.size());
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) exact[i] = f.narrow(x[i], y[i]);
  }
}

// Leaves out what the bound of fast_math does not speak of; in the unit of the bound.
void judge_fast(const ir::test::FastBound& bound, const std::vector<float>& x, const std::vector<double>& y, const std::vector<float>& got,
                const std::vector<double>& exact, std::size_t n, Figures& into) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!holds_for(bound, x[i], exact[i])) continue;
    ++into.count;
    into.wrong += !rounded(got[i], exact[i]);
    const double error = bound.measure == ir::test::Measure::Ulps ? ulps(got[i], exact[i]) : std::fabs(got[i] - exact[i]);
    if (!(error <= into.worst)) into.worst = error, into.x = x[i], into.y = y[i];
  }
}

Figures all_arguments(const Function& f, std::uint64_t step, bool fast, unsigned part, unsigned parts) {
  const auto evaluate = f.kernel_f32(kChunk, fast);
  Figures figures;
  std::vector<float> x(kChunk);
  std::vector<double> exact(kChunk);
  const std::vector<double> y(kChunk);
  const std::uint64_t count = ((1ull << 32) + step - 1) / step;
  for (std::uint64_t first = part * kChunk; first < count; first += parts * kChunk) {
    // Behind the last argument the last one once more.
    for (std::size_t i = 0; i < kChunk; ++i) x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(std::min(first + i, count - 1) * step));
    const std::vector<float> got = (*evaluate)(x, y);
    true_values(f, x, y, exact);
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, count - first));
    if (fast) {
      judge_fast(*ir::test::fast_bound(f.op), x, y, got, exact, n, figures);
      continue;
    }
    const ManyUlps all = judge(got.data(), exact.data(), n);
    figures.count += n;
    figures.wrong += all.wrong;
    if (all.worst > figures.worst) find_worst(f, x, y, got, exact, figures);
  }
  return figures;
}

template <class T>
Figures random_arguments(const Function& f, std::uint64_t samples, bool fast, unsigned part, unsigned parts) {
  using Exact = std::conditional_t<sizeof(T) == 4, double, long double>;
  const std::size_t chunk = std::min<std::size_t>(kChunk, std::max<std::size_t>(kVector, samples / parts / kVector * kVector));
  std::unique_ptr<Evaluator<T>> evaluate;
  if constexpr (sizeof(T) == 4) evaluate = f.kernel_f32(chunk, fast);
  else evaluate = f.kernel_f64(chunk, fast);
  Figures figures;
  Arguments<T> arguments(17 + part);
  std::vector<T> x(chunk);
  std::vector<double> y(chunk);
  std::vector<Exact> exact(chunk);
  for (std::uint64_t done = 0; done < samples / parts; done += chunk) {
    for (std::size_t i = 0; i < chunk; ++i) arguments.next(f, i, x[i], y[i]);
    const std::vector<T> got = (*evaluate)(x, y);
    if constexpr (sizeof(T) == 4) {
      true_values(f, x, y, exact);
      if (fast) {
        judge_fast(*ir::test::fast_bound(f.op), x, y, got, exact, chunk, figures);
        continue;
      }
    } else {
      for (std::size_t i = 0; i < chunk; ++i) exact[i] = f.wide(x[i], y[i]);
    }
    figures.count += chunk;
    for (std::size_t i = 0; i < chunk; ++i) figures.wrong += !rounded(got[i], exact[i]);
    find_worst(f, x, y, got, exact, figures);
  }
  return figures;
}

// Whether y is the f32 nearest to 1/sqrt(x), in integers, for x in [1, 4): y is in (1/2, 1].
bool nearest_rsqrt(float x, float y) {
  using Wide = unsigned __int128;
  const auto m = static_cast<Wide>(double{y} * 0x1p25),
             xm = static_cast<Wide>(double{x} * 0x1p23);  // half a unit in the last place of y is 1
  const Wide one = Wide{1} << 73;
  return (y == 1 || xm * (m - 1) * (m - 1) < one) && xm * (m + 1) * (m + 1) > one;
}

void prove_rsqrt(const Function& f) {
  const auto evaluate = f.kernel_f32(kChunk, false);
  std::uint64_t wrong = 0;
  std::vector<float> x(kChunk);
  const std::vector<double> y(kChunk);
  for (std::uint32_t first = 0; first < (1u << 24); first += kChunk) {
    for (std::uint32_t i = 0; i < kChunk; ++i) x[i] = std::bit_cast<float>(0x3f800000u + first + i);
    const std::vector<float> got = (*evaluate)(x, y);
    for (std::uint32_t i = 0; i < kChunk; ++i) wrong += !nearest_rsqrt(x[i], got[i]);
  }
  std::fprintf(stderr, "rsqrt on all mantissas of two exponents: %llu not correctly rounded\n", static_cast<unsigned long long>(wrong));
}

struct Request {
  std::uint64_t step = 1, samples = 100'000'000;
  bool narrow = true, wide = true, fast = false, table = false;
  std::vector<std::string> names;
  bool names_one(const Function& f) const { return names.empty() || std::find(names.begin(), names.end(), f.name) != names.end(); }
};

bool parse(int argc, char** argv, Request& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if ((a == "--step" || a == "--samples") && i + 1 < argc) {
      (a == "--step" ? o.step : o.samples) = std::strtoull(argv[++i], nullptr, 10);
    } else if (a == "--type" && i + 1 < argc) {
      const std::string t = argv[++i];
      if (t != "f32" && t != "f64") return false;
      (t == "f32" ? o.wide : o.narrow) = false;
    } else if (a == "--fast") {
      o.fast = true;
    } else if (a == "--table") {
      o.table = true;
    } else if (std::ranges::any_of(functions(), [&](const Function& f) { return a == f.name; })) {
      o.names.push_back(a);
    } else {
      return false;
    }
  }
  if (o.fast) o.wide = false;
  return o.step != 0 && o.samples != 0 && (o.narrow || o.wide);
}

template <class T>
Figures measure(const Function& f, const Request& o) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  const bool all_of_it = sizeof(T) == 4 && !f.two;
  std::vector<Figures> results(parts);
  std::vector<std::exception_ptr> errors(parts);
  std::vector<std::thread> threads;
  for (unsigned p = 0; p < parts; ++p) {
    threads.emplace_back([&, p] {
      try {
        results[p] = all_of_it ? all_arguments(f, o.step, o.fast, p, parts) : random_arguments<T>(f, o.samples, o.fast, p, parts);
      } catch (...) { errors[p] = std::current_exception(); }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  Figures all;
  for (const Figures& r : results) all.merge(r);
  return all;
}

double percent_wrong(const Figures& g) { return 100.0 * static_cast<double>(g.wrong) / static_cast<double>(g.count); }

void print_line(const Function& f, const char* type, const Figures& g) {
  std::printf("%-6s %s %14llu %10.4g%s %21.4f%%   %.9g", f.name, type, static_cast<unsigned long long>(g.count), g.worst,
              g.judged ? " " : "?", percent_wrong(g), g.x);
  std::printf(f.two ? ", %.17g\n" : "\n", g.y);
  std::fflush(stdout);
}

std::string cells(const Figures& g) {
  std::string count = std::to_string(g.count);
  for (std::size_t i = count.size(); i > 3; i -= 3) count.insert(i - 3, ",");
  char rest[64];
  const double wrong = percent_wrong(g);
  if (g.wrong == 0) std::snprintf(rest, sizeof rest, "%.4g | none", g.worst);
  else if (wrong < 0.01) std::snprintf(rest, sizeof rest, "%.4f | < 0.01 %%", g.worst);
  else std::snprintf(rest, sizeof rest, "%.3f | %.2f %%", g.worst, wrong);
  return " " + count + " | " + rest + " |";
}

int main(int argc, char** argv) {
  Request o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr,
                 "usage: math_ulp [FUNCTION...] [--type f32|f64] [--step N] [--samples N] [--fast] [--table], both N above 0; functions:");
    for (const Function& f : functions()) std::fprintf(stderr, " %s", f.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (!with_sleef()) std::fprintf(stderr, "math_ulp: built without SLEEF (libsleef-dev): every f32 takes several times as long\n");
  if (!o.table)
    std::printf("%-6s %s %14s %10s  %22s   at (? : without MPFR)\n", "", "   ", "arguments", "worst ulp", "not correctly rounded");
  for (const Function& f : functions()) {
    if (!o.names_one(f) || (o.fast && ir::test::fast_bound(f.op) == nullptr)) continue;
    std::string row = std::string("| `") + f.name + "` |";
    if (o.narrow) {
      const Figures g = measure<float>(f, o);
      o.table ? void(row += cells(g)) : print_line(f, "f32", g);
    }
    if (o.wide) {
      const Figures g = measure<double>(f, o);
      o.table ? void(row += cells(g)) : print_line(f, "f64", g);
    }
    if (o.table) std::printf("%s\n", row.c_str()), std::fflush(stdout);
    if (o.narrow && !o.fast && f.op == ir::Opcode::Rsqrt) prove_rsqrt(f);
  }
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  try {
    return kiln::bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "math_ulp: %s\n", e.what());
    return 1;
  }
}
