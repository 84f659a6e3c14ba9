// One launch on the interpreter, on every device there is and as executed PTX, checked and unchecked, with its results as bytes.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::test {

// An argument and what it holds before the launch. A buffer is a view into `bytes`, so that a test sees what lies around it too.
struct Arg {
  bool is_buffer = false;
  ir::Type type = ir::Type::Void;
  std::vector<std::uint64_t> extents, strides;  // strides only of strided buffers
  std::vector<std::uint8_t> bytes;              // the whole allocation
  std::uint64_t first = 0;                      // the view's first element in it
  std::optional<std::size_t> shares;            // the number of an earlier argument with the same memory
  std::uint64_t bits = 0;                       // scalars
};

template <class T>
std::vector<std::uint8_t> to_bytes(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if constexpr (std::same_as<T, bool>) {
    for (std::size_t i = 0; i < values.size(); ++i) bytes[i] = values[i];
  } else if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}
template <class T>
std::vector<T> from_bytes(const std::vector<std::uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if constexpr (std::same_as<T, bool>) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bytes[i] != 0;
  } else if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

template <class T>
Arg buffer(const std::vector<T>& values, std::vector<std::uint64_t> extents = {}) {
  Arg a;
  a.is_buffer = true;
  a.type = ir_type<T>;
  a.extents = extents.empty() ? std::vector<std::uint64_t>{values.size()} : std::move(extents);
  a.bytes = to_bytes(values);
  return a;
}
// `count` elements of `values` from `first` on.
template <class T>
Arg view(const std::vector<T>& values, std::uint64_t first, std::vector<std::uint64_t> extents) {
  Arg a = buffer(values, std::move(extents));
  a.first = first;
  return a;
}
template <class T>
Arg filled(std::uint64_t count, auto value) {
  return buffer(std::vector<T>(count, static_cast<T>(value)));
}
template <class T>
Arg scalar(T value) {
  Arg a;
  a.type = ir_type<T>;
  if constexpr (std::same_as<T, bool>) a.bits = value;
  else std::memcpy(&a.bits, &value, sizeof value);
  return a;
}

// A recorded kernel. A recording error fails the test.
std::shared_ptr<const Variant> made(Result<ir::Kernel> recorded);
template <class F>
std::shared_ptr<const Variant> kernel(const char* name, F body) {
  return made(record(name, body));
}
template <class F, class C>
std::shared_ptr<const Variant> kernel(const char* name, F body, const C& config) {
  return made(local_kernel(name, +body).record(config));
}
// The first kernel of a .kir text.
std::shared_ptr<const Variant> from_text(const std::string& text);

// A line that a thread logged.
struct Line {
  std::array<std::uint32_t, 3> block{}, thread{};
  std::string text;
  bool operator==(const Line&) const = default;
  auto operator<=>(const Line&) const = default;
};
// Gets what kernels of the client's device log, while it lives.
class Listening {
 public:
  Listening(const Client& client, std::vector<Line>& to) : client_(client) {
    client.on_log([&to](const LogLine& l) { to.push_back({l.block, l.thread, std::string(l.text)}); });
  }
  ~Listening() { client_.on_log({}); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  Client client_;
};

// What one way of running gave.
struct Outcome {
  std::string where;                 // "interpreter, checked", "cpu x86-64, unchecked, off by one element", "PTX for sm_90, checked"
  std::optional<Error> error;        // of the launch, or of the first read that failed
  std::optional<BoundsFault> fault;  // an access out of range that was reported
  std::vector<std::vector<std::uint8_t>> bytes;  // per argument; not there after an error
  std::vector<Line> log;
};

// The architectures whose PTX is executed. Both differ in warp reductions and in min and max; a large table may take one for each part.
enum class Ptx : std::uint8_t { Both, Sm75, Sm90 };

struct Ways {
  bool checked = true, unchecked = true;
  bool interpreter = true;  // false for what the interpreter has no part in (host rules) or is too slow for
  Ptx ptx = Ptx::Both;
  bool levels = true;              // false: of the CPU only its own level, with code for the launch's block
  std::uint32_t shared_bytes = 0;  // that the launch needs in a block; devices that have less take no part
};

// The interpreter, then each device that was asked for (support/clients.h; of the CPU the processor as it is, with code for the launch's
// block and with code whose block is given at launch, and its lowest level); without
// simulated devices, which execute it, the PTX on their engine too. Checked with every buffer aligned, unchecked with every buffer one
// element further. What a correct program never does, as the interpreter sees it, fails the test.
std::vector<Outcome> run_everywhere(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                                    const Ways& ways = {});

// The interpreter, then these devices, in one mode; with `off`, every buffer begins one element further.
std::vector<Outcome> run_on(const std::vector<Client>& clients, const Variant& variant, const LaunchConfig& config,
                            const std::vector<Arg>& args, ir::PrepareOptions::Mode mode, bool off);

// The devices that run_everywhere uses. Asked for anew each time: a simulated one that a kernel poisoned is replaced by one that is well.
std::vector<Client> devices();

bool same_bits(ir::Type type, const std::uint8_t* a, const std::uint8_t* b);  // all NaN are equal
std::string shown(ir::Type type, const std::uint8_t* value);                  // "1.5 (0x3fc00000)"

// Every outcome holds exactly this in argument `arg`, which is the whole allocation. One report per outcome, with the first difference.
void expect_bytes(const std::vector<Outcome>& outcomes, std::size_t arg, ir::Type type, const std::vector<std::uint8_t>& wanted);
template <class T>
void expect(const std::vector<Outcome>& outcomes, std::size_t arg, const std::vector<T>& wanted) {
  expect_bytes(outcomes, arg, ir_type<T>, to_bytes(wanted));
}
// No error anywhere.
void expect_success(const std::vector<Outcome>& outcomes);

// run_everywhere and expect of one output.
template <class T>
void check_run(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args, std::size_t arg,
               const std::vector<T>& wanted, const Ways& ways = {}) {
  expect(run_everywhere(variant, config, args, ways), arg, wanted);
}

// The block shapes of the systematic tables: whole warps, parts of warps, and warps that cross rows and planes.
const std::vector<Dim3>& block_shapes();
inline std::uint32_t threads(const Dim3& d) { return d.x * d.y * d.z; }
std::string shown(const Dim3& d);

// The linear number of the thread in its block, which decides warp and lane.
inline Val<u32> linear_thread() {
  auto [x, y, z] = thread_id();
  auto [bx, by, bz] = block_dim();
  return x + y * bx + z * bx * by;
}

}  // namespace kiln::test
