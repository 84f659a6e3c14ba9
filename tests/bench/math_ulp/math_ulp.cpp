// Measures the error of the math library in units in the last place, on all f32 arguments (or every n-th), against libm in f64, and for pow
// and the remainders on random arguments. Evaluates the expanded IR itself, many arguments at a time.
//
//   math_ulp [FUNCTION...] [--step N] [--samples N]
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "batch.h"

using namespace kiln::ir;
using kiln::bench::Batch;

namespace {

struct Function {
  const char* name;
  Opcode op;
  Type type;
  double (*exact)(double, double);
};
const Function kFunctions[] = {
    {"exp", Opcode::Exp, Type::F32, [](double x, double) { return std::exp(x); }},
    {"log", Opcode::Log, Type::F32, [](double x, double) { return std::log(x); }},
    {"sin", Opcode::Sin, Type::F32, [](double x, double) { return std::sin(x); }},
    {"cos", Opcode::Cos, Type::F32, [](double x, double) { return std::cos(x); }},
    {"tanh", Opcode::Tanh, Type::F32, [](double x, double) { return std::tanh(x); }},
    {"rsqrt", Opcode::Rsqrt, Type::F32, [](double x, double) { return 1 / std::sqrt(x); }},
    {"pow", Opcode::Pow, Type::F32, [](double x, double y) { return std::pow(x, y); }},
    {"rem", Opcode::Rem, Type::F32, [](double x, double y) { return std::fmod(x, y); }},
    {"rem_f64", Opcode::Rem, Type::F64, [](double x, double y) { return std::fmod(x, y); }},
};

// Distance in units in the last place of an f32 near `exact`; infinity where one is a number and the other is not.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::fabs(exact) >= 0x1.ffffffp127) return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  if (!std::isfinite(got)) return INFINITY;
  const int e = static_cast<int>(std::bit_cast<std::uint64_t>(exact) >> 52 & 0x7ff) - 1023;  // 2^e <= |exact|
  const int unit = std::max(e - 23, -149);
  return std::fabs(double{got} - exact) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 - unit) << 52);
}

struct Figures {
  double worst = 0, x = 0, y = 0;
  std::uint64_t count = 0, wrong = 0;  // wrong: not the correctly rounded result
  void add(double u, bool rounded, double at_x, double at_y) {
    ++count;
    wrong += !rounded;
    if (!(u <= worst)) worst = u, x = at_x, y = at_y;
  }
  void merge(const Figures& o) {
    count += o.count;
    wrong += o.wrong;
    if (o.worst > worst) worst = o.worst, x = o.x, y = o.y;
  }
};

bool same(double a, double b) { return (a != a && b != b) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

void judge(const Function& f, const Batch& b, std::size_t n, Figures& into) {
  for (std::size_t i = 0; i < n; ++i) {
    if (f.type == Type::F64) {
      const double x = std::bit_cast<double>(b.x()[i]), y = std::bit_cast<double>(b.y()[i]), got = std::bit_cast<double>(b.result()[i]);
      const bool right = same(got, f.exact(x, y));
      into.add(right ? 0 : 1, right, x, y);
      continue;
    }
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(b.x()[i])),
                y = std::bit_cast<float>(static_cast<std::uint32_t>(b.y()[i]));
    const float got = std::bit_cast<float>(static_cast<std::uint32_t>(b.result()[i]));
    const double exact = f.exact(x, y);
    into.add(ulps(got, exact), same(got, static_cast<float>(exact)), x, y);
  }
}

Figures all_arguments(const Function& f, std::uint64_t step, unsigned part, unsigned parts) {
  Batch batch(f.op, f.type);
  Figures figures;
  const std::uint64_t end = 1ull << 32;
  std::size_t n = 0;
  for (std::uint64_t i = part * step; i < end; i += parts * step) {
    batch.x()[n] = i;
    batch.y()[n++] = 0;
    if (n == Batch::kLanes || i + parts * step >= end) {
      batch.run();
      judge(f, batch, n, figures);
      n = 0;
    }
  }
  return figures;
}

Figures random_arguments(const Function& f, std::uint64_t samples, unsigned part, unsigned parts) {
  Batch batch(f.op, f.type);
  Figures figures;
  std::mt19937_64 random(17 + part);
  const auto uniform = [&](double lo, double hi) { return lo + (hi - lo) * (static_cast<double>(random() >> 11) * 0x1p-53); };
  for (std::uint64_t done = 0; done < samples / parts; done += Batch::kLanes) {
    for (std::size_t i = 0; i < Batch::kLanes; ++i) {
      if (f.type == Type::F64) {
        const double y = std::bit_cast<double>(random());
        const double x = i % 2 ? std::bit_cast<double>(random()) : y * uniform(0, 1e6);
        batch.x()[i] = std::bit_cast<std::uint64_t>(x);
        batch.y()[i] = std::bit_cast<std::uint64_t>(y);
        continue;
      }
      float x = std::bit_cast<float>(static_cast<std::uint32_t>(random())), y = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (f.op == Opcode::Pow) {
        switch (i % 4) {
          case 0: break;
          case 1: x = static_cast<float>(uniform(0, 10)), y = static_cast<float>(uniform(-40, 40)); break;
          case 2: x = static_cast<float>(1 + uniform(-1e-2, 1e-2)), y = static_cast<float>(uniform(-9000, 9000)); break;
          default:  // any positive base, a result within range
            x = std::fabs(x);
            y = static_cast<float>(uniform(-103, 88.7) / std::log(double{x}));
        }
      } else if (i % 2) {
        x = y * static_cast<float>(uniform(0, 1e6));
      }
      batch.x()[i] = std::bit_cast<std::uint32_t>(x);
      batch.y()[i] = std::bit_cast<std::uint32_t>(y);
    }
    batch.run();
    judge(f, batch, Batch::kLanes, figures);
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

void prove_rsqrt() {
  Batch batch(Opcode::Rsqrt, Type::F32);
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < (1u << 24); i += Batch::kLanes) {
    for (std::uint32_t j = 0; j < Batch::kLanes; ++j) batch.x()[j] = 0x3f800000u + i + j;
    batch.run();
    for (std::uint32_t j = 0; j < Batch::kLanes; ++j) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(batch.x()[j])),
                  y = std::bit_cast<float>(static_cast<std::uint32_t>(batch.result()[j]));
      wrong += !nearest_rsqrt(x, y);
    }
  }
  std::printf("rsqrt on all mantissas of two exponents: %llu not correctly rounded\n", static_cast<unsigned long long>(wrong));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t step = 1, samples = 100'000'000;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if ((a == "--step" || a == "--samples") && i + 1 < argc) {
      (a == "--step" ? step : samples) = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const Function& f) { return a == f.name; })) {
      names.push_back(a);
    } else {
      std::fprintf(stderr, "usage: math_ulp [exp|log|sin|cos|tanh|rsqrt|pow|rem|rem_f64]... [--step N] [--samples N]\n");
      return 2;
    }
  }
  if (step == 0 || samples == 0) return std::fprintf(stderr, "math_ulp: --step and --samples must be above 0\n"), 2;
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::printf("%-8s %14s %10s %22s   at\n", "function", "arguments", "worst ulp", "not correctly rounded");
  for (const Function& f : kFunctions) {
    if (!names.empty() && std::find(names.begin(), names.end(), f.name) == names.end()) continue;
    const bool two = f.op == Opcode::Pow || f.op == Opcode::Rem;
    std::vector<Figures> results(parts);
    std::vector<std::thread> threads;
    for (unsigned p = 0; p < parts; ++p) {
      threads.emplace_back([&, p] { results[p] = two ? random_arguments(f, samples, p, parts) : all_arguments(f, step, p, parts); });
    }
    for (std::thread& t : threads) t.join();
    Figures all;
    for (const Figures& r : results) all.merge(r);
    std::printf("%-8s %14llu %10.4f %21.4f%%   %.9g", f.name, static_cast<unsigned long long>(all.count), all.worst,
                100.0 * static_cast<double>(all.wrong) / static_cast<double>(all.count), all.x);
    std::printf(two ? ", %.9g\n" : "\n", all.y);
    std::fflush(stdout);
  }
  if (names.empty() || std::find(names.begin(), names.end(), "rsqrt") != names.end()) prove_rsqrt();
  return 0;
}
