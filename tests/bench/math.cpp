// `math`: the time of four functions over an array against SLEEF's, and the instructions of all f32 functions against libdevice's.
#include <bit>
#include <cmath>
#include <random>
#include <stdexcept>

#include "benches.h"
#include "cpu/cpu_device.h"
#include "kernels.h"
#include "measure.h"
#include "sleef.h"
#include "src/server.h"

namespace kiln::bench {
namespace {

// One array of arguments; a block of the L2 cache holds arguments and results of the short one, the long one is 64 MiB each.
constexpr std::size_t kShort = std::size_t{1} << 16, kLong = std::size_t{1} << 24;

struct Function {
  const char* name;
  const decltype(map_exp)& kernel;
  Sleef::Map Sleef::* peer;
  double lo, hi;     // of the sensible range
  bool logarithmic;  // its exponent is drawn evenly
};

std::vector<f32> arguments(const Function& f, std::size_t n, bool all_magnitudes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> range(f.logarithmic ? std::log(f.lo) : f.lo, f.logarithmic ? std::log(f.hi) : f.hi);
  std::vector<f32> x(n);
  for (f32& v : x) {
    if (all_magnitudes) {
      do {
        v = std::bit_cast<f32>(static_cast<std::uint32_t>(random()));
        if (f.lo > 0) v = std::abs(v);
      } while (!std::isfinite(v));
    } else {
      const double drawn = range(random);
      v = static_cast<f32>(f.logarithmic ? std::exp(drawn) : drawn);
    }
  }
  return x;
}

void check_close(const std::string& name, const std::vector<f32>& ours, const std::vector<f32>& theirs) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double gap = std::abs(double{ours[i]} - theirs[i]);
    if (!(gap <= 4e-7 * std::abs(theirs[i]) + 1e-44) && ours[i] != theirs[i])
      throw std::runtime_error("math: the results of " + name + " differ from SLEEF's");
  }
}

Row row(const Stream& stream, const Sleef& sleef, const Function& f, std::size_t n, bool all_magnitudes) {
  Row r;
  r.name = std::string(f.name) + (n == kShort ? ", 64 Ki" : ", 16 Mi") + (all_magnitudes ? ", all sizes" : "");
  r.unit = "ns/elem";
  const std::vector<f32> x = arguments(f, n, all_magnitudes);
  std::vector<f32> theirs(n);
  auto dx = Buffer<f32>::from_host(stream.client(), x).value(), dy = Buffer<f32>::zeroed(stream.client(), n).value();
  // Launches of the short array wait in a queue, so that it is their work that is measured.
  const int repeat = n == kShort ? 256 : 1;
  const auto ours = [&] {
    for (int i = 0; i < repeat; ++i) f.kernel(stream, for_num_elems(n), dx, dy).value();
    stream.sync().value();
  };
  ours();
  std::function<void()> peer;
  if (sleef.why.empty()) {
    peer = [&] {
      for (int i = 0; i < repeat; ++i) (sleef.*f.peer)(x.data(), theirs.data(), n);
    };
    peer();
    check_close(r.name, dy.read(stream).value(), theirs);
    r.peer_name = sleef.name;
  } else {
    r.why = sleef.why;
  }
  measure(r, 30, 1e9 / static_cast<double>(n) / repeat, 1, ours, peer);
  return r;
}

}  // namespace

std::vector<Row> math_on_the_cpu() {
  // A device of one thread, since a call of SLEEF is one.
  const CodegenHandle& generator = code_generator();
  if (generator.compiler == nullptr) throw std::runtime_error(generator.error);
  const Client client(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value()));
  const Stream stream = client.stream();
  const Sleef peer = sleef();
  const Function functions[] = {{"exp", map_exp, &Sleef::exp, -80, 80, false},
                                {"log", map_log, &Sleef::log, 1e-6, 1e6, true},
                                {"sin", map_sin, &Sleef::sin, -50, 50, false},
                                {"tanh", map_tanh, &Sleef::tanh, -5, 5, false}};
  std::vector<Row> rows;
  for (const Function& f : functions) {
    rows.push_back(row(stream, peer, f, kShort, false));
    rows.push_back(row(stream, peer, f, kLong, false));
    rows.push_back(row(stream, peer, f, kShort, true));
  }
  return rows;
}

std::vector<Row> math() {
  std::vector<Row> rows = math_on_the_cpu();
  for (Row& r : math_in_ptx()) rows.push_back(std::move(r));
  return rows;
}

}  // namespace kiln::bench
