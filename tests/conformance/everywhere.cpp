#include "conformance/everywhere.h"

#include <cinttypes>
#include <cstdio>

#include "conformance/everywhere_ptx.h"
#include "cpu/cpu_device.h"
#include "kiln/ir/diagnostic.h"
#include "kiln/ir/floats.h"
#include "kiln/ir/text.h"
#include "src/local_server.h"
#include "support/clients.h"
#include "support/launch_blocks.h"
#include "support/sim.h"

namespace kiln::test {
namespace {

using Mode = ir::PrepareOptions::Mode;

std::string mode_name(Mode mode) { return mode == Mode::Unchecked ? "unchecked" : "checked"; }

std::uint64_t elements(const std::vector<std::uint64_t>& extents) {
  std::uint64_t n = 1;
  for (std::uint64_t e : extents) n *= e;
  return n;
}

// The bounds fault at the root of an error.
std::optional<BoundsFault> root_fault(const Error& error) {
  if (error.data().bounds) return error.data().bounds;
  for (const Error& cause : error.causes()) {
    if (auto fault = root_fault(cause)) return fault;
  }
  return {};
}

Outcome run_interpreter(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args, Mode mode) {
  Outcome out;
  out.where = "interpreter, " + mode_name(mode);
  const auto prepared = variant.prepared(mode);
  if (!prepared.has_value()) {
    out.error = prepared.error();
    return out;
  }
  CopiedLaunch copied(config, args, false);
  copied.finish(interp::run(**prepared, copied.launch()), **prepared, out);
  return out;
}

Outcome run_device(const Client& client, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args, Mode mode,
                   bool off) {
  Outcome out;
  out.where = client.properties().kind + " " + client.properties().arch + ", " + mode_name(mode) + (off ? ", off by one element" : "");
  if (client == client_of(LaunchBlocks::Rows)) out.where += ", rows given at launch";
  if (client == client_of(LaunchBlocks::Any)) out.where += ", blocks given at launch";
  const Stream stream = client.default_stream();
  std::vector<LaunchArg> launch_args;
  std::vector<Binding> all;
  for (const Arg& arg : args) {
    LaunchArg a;
    a.type = arg.type;
    a.bits = arg.bits;
    Binding whole;
    if (arg.is_buffer) {
      a.is_buffer = true;
      a.rank = static_cast<std::uint8_t>(arg.extents.size());
      const std::uint64_t size = ir::byte_size(arg.type), before = off ? size : 0;
      if (arg.shares) {
        whole = all[*arg.shares];
      } else {
        auto memory = rt::allocate(client, arg.bytes.size() + before);
        REQUIRE_MESSAGE(memory.has_value(), memory.error().text());
        whole = {*memory, {before, before + arg.bytes.size()}};
        const auto wrote = rt::write(stream, whole, arg.bytes.data());
        REQUIRE_MESSAGE(wrote.has_value(), wrote.error().text());
      }
      std::uint64_t last = elements(arg.extents);  // one past the last element of the view
      for (std::size_t d = 0; d < arg.extents.size(); ++d) {
        a.extents[d] = arg.extents[d];
        if (!arg.strides.empty()) a.strides[d] = arg.strides[d];
      }
      if (!arg.strides.empty() && last != 0) {
        last = 1;
        for (std::size_t d = 0; d < arg.extents.size(); ++d) last += (arg.extents[d] - 1) * arg.strides[d];
      }
      if (last != 0) {
        const std::uint64_t begin = whole.range.begin + arg.first * size;
        a.binding = {whole.memory, {begin, begin + last * size}};
      }
    }
    all.push_back(whole);
    launch_args.push_back(a);
  }
  const Listening listening(client, out.log);
  const auto launched = launch(stream, {&variant, config, launch_args, mode});
  if (!launched.has_value()) {
    out.error = launched.error();
    return out;
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::vector<std::uint8_t> bytes(all[i].range.end - all[i].range.begin);
    if (const auto read = rt::read(stream, all[i], bytes.data()); !read.has_value()) {
      out.error = read.error();
      out.fault = root_fault(read.error());
      out.bytes.clear();
      return out;
    }
    out.bytes.push_back(std::move(bytes));
  }
  if (const auto waited = stream.sync(); !waited.has_value()) out.error = waited.error();  // of a kernel without outputs, too
  return out;
}

}  // namespace

std::vector<Client> devices() {
  std::vector<Client> all = clients();
  // The same processor with fewer of its instructions, too: what has a vector instruction on one level is made of others on the next.
  if (asked_for("cpu")) {
    static const Client& lowest = *new Client(rt::make_server(rt::make_cpu_device({.workers = 3, .arch = "x86-64"}).value()));
    all.push_back(lowest);
    all.push_back(client_of(LaunchBlocks::Rows));
  }
  return all;
}

std::shared_ptr<const Variant> made(Result<ir::Kernel> recorded) {
  REQUIRE_MESSAGE(recorded.has_value(), recorded.error().text());
  return std::make_shared<Variant>(std::move(*recorded));
}

std::shared_ptr<const Variant> from_text(const std::string& text) {
  try {
    return std::make_shared<Variant>(ir::parse(text).at(0));
  } catch (const ir::IrError& e) {
    FAIL(std::string(e.what()));
    throw;
  }
}

std::vector<Outcome> run_on(const std::vector<Client>& clients, const Variant& variant, const LaunchConfig& config,
                            const std::vector<Arg>& args, Mode mode, bool off) {
  std::vector<Outcome> outcomes{run_interpreter(variant, config, args, mode)};
  for (const Client& client : clients) outcomes.push_back(run_device(client, variant, config, args, mode, off));
  return outcomes;
}

std::vector<Outcome> run_everywhere(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args, const Ways& ways) {
  std::vector<Outcome> outcomes;
  for (const Mode mode : {Mode::Checked, Mode::Unchecked}) {
    if (!(mode == Mode::Checked ? ways.checked : ways.unchecked)) continue;
    if (ways.interpreter) outcomes.push_back(run_interpreter(variant, config, args, mode));
    const bool off = mode == Mode::Unchecked;
    const std::vector<Client> all = devices();
    for (const Client& client : all) {
      const std::string& arch = client.properties().arch;
      if (!ways.levels && &client != &all.front() && client.properties().kind == "cpu") continue;
      if (client.properties().max_dynamic_shared < ways.shared_bytes) continue;
      const bool simulated = is_simulated(client);
      if (simulated && ((ways.ptx == Ptx::Sm75 && arch != "sm_75") || (ways.ptx == Ptx::Sm90 && arch != "sm_90"))) continue;
      // Threads in their order, and in another one.
      std::optional<SimScript> order;
      if (simulated && arch == "sm_90") order.emplace(R"({"order": "seeded", "seed": 1})");
      outcomes.push_back(run_device(client, variant, config, args, mode, off));
    }
    if (asked_for("sim")) continue;  // the PTX was executed, for both architectures
    if (ways.ptx != Ptx::Sm90) outcomes.push_back(run_as_ptx("sm_75", variant, config, args, mode, off, 0));
    if (ways.ptx != Ptx::Sm75) outcomes.push_back(run_as_ptx("sm_90", variant, config, args, mode, off, 1));
  }
  // For the newest architecture, with nothing between LLVM and its instructions.
  if (ways.unchecked && ways.ptx == Ptx::Both) outcomes.push_back(run_as_ptx("sm_121", variant, config, args, Mode::Unchecked, false, 2));
  return outcomes;
}

bool same_bits(ir::Type type, const std::uint8_t* a, const std::uint8_t* b) {
  if (std::memcmp(a, b, ir::byte_size(type)) == 0) return true;
  std::uint64_t x = 0, y = 0;
  std::memcpy(&x, a, ir::byte_size(type)), std::memcpy(&y, b, ir::byte_size(type));
  return ir::is_nan(type, x) && ir::is_nan(type, y);
}

std::string shown(ir::Type type, const std::uint8_t* value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, value, ir::byte_size(type));
  char text[80];
  if (ir::is_float(type)) {
    const double v = ir::float_value(type, bits);
    std::snprintf(text, sizeof text, "%.17g (0x%" PRIx64 ")", v, bits);
  } else if (ir::is_signed(type)) {
    std::snprintf(text, sizeof text, "%" PRId64, ir::sign_extend(type, bits));
  } else {
    std::snprintf(text, sizeof text, "%" PRIu64 " (0x%" PRIx64 ")", bits, bits);
  }
  return text;
}

void expect_success(const std::vector<Outcome>& outcomes) {
  CHECK(!outcomes.empty());
  for (const Outcome& o : outcomes) {
    CHECK_MESSAGE(!o.error, o.where << ": " << (o.error ? o.error->text() : ""));
    CHECK_MESSAGE(!o.fault, o.where << ": an access of '" << (o.fault ? o.fault->memory : "") << "' at " << (o.fault ? o.fault->place : "")
                                    << " is out of range");
  }
}

void expect_bytes(const std::vector<Outcome>& outcomes, std::size_t arg, ir::Type type, const std::vector<std::uint8_t>& wanted) {
  expect_success(outcomes);
  const std::size_t size = ir::byte_size(type), count = wanted.size() / size;
  for (const Outcome& o : outcomes) {
    if (o.error || o.fault) continue;
    const std::vector<std::uint8_t>& got = o.bytes.at(arg);
    CHECK_MESSAGE(got.size() == wanted.size(), o.where);
    if (got.size() != wanted.size()) continue;
    std::size_t wrong = 0, at = 0;
    for (std::size_t i = count; i-- > 0;) {
      if (!same_bits(type, &got[i * size], &wanted[i * size])) ++wrong, at = i;
    }
    CHECK_MESSAGE(wrong == 0, o.where << ": argument " << arg << " differs in " << wrong << " of " << count << " elements, first at [" << at
                                      << "]: " << shown(type, &got[at * size]) << " instead of " << shown(type, &wanted[at * size]));
  }
}

const std::vector<Dim3>& block_shapes() {
  static const std::vector<Dim3> shapes{{1}, {7}, {31}, {32}, {33}, {45}, {64}, {100}, {128}, {8, 4}, {5, 7}, {4, 4, 2}};
  return shapes;
}

std::string shown(const Dim3& d) { return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")"; }

}  // namespace kiln::test
