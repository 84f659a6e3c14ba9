#include "support/devices.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "cpu/cpu_device.h"
#include "cpu/cpu_info.h"
#include "interp/interp.h"
#include "kiln/ir/floats.h"
#include "src/local_server.h"
#include "support/clients.h"
#include "support/sim.h"

namespace kiln::test {
namespace {

constexpr const char* kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
constexpr unsigned kWorkers = 3;

// The servers of the tests, one a level; immortal.
Result<Client> cpu_at(const std::string& level) {
  static std::mutex& mutex = *new std::mutex;
  static auto& servers = *new std::map<std::string, std::shared_ptr<Server>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Server>& server = servers[level];
  if (server == nullptr) {
    auto device = rt::make_cpu_device({.workers = kWorkers, .arch = level});
    if (!device.has_value()) return device.error();
    server = rt::make_server(std::move(*device));
  }
  return Client(server);
}

Result<Client> open(const std::string& device) {
  if (device.starts_with("cpu ")) return cpu_at(device.substr(4));
  for (const SimDevice& sim : kSimDevices)
    if (device == sim.name) return sim_client(sim.ordinal);
  return Client::open(device);
}

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  std::string text = "0x";
  for (std::size_t i = size; i-- > 0;) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

std::uint64_t bits_of(ir::Type type, const std::uint8_t* bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, ir::byte_size(type));
  return bits;
}

std::string element_text(ir::Type type, const std::uint8_t* bytes) {
  std::string text = hex(bytes, ir::byte_size(type));
  if (ir::is_float(type)) text += " (" + std::to_string(ir::float_value(type, bits_of(type, bytes))) + ")";
  return text;
}

bool is_nan(ir::Type type, const std::uint8_t* bytes) { return ir::is_nan(type, bits_of(type, bytes)); }

// Differences of one buffer, at most three of them named.
void compare(const std::string& who, std::size_t arg, ir::Type type, const std::vector<std::uint8_t>& expected,
             const std::vector<std::uint8_t>& got, std::string& out) {
  const std::size_t size = ir::byte_size(type);
  if (expected.size() != got.size()) {
    out += who + ": argument " + std::to_string(arg) + " has " + std::to_string(got.size()) + " bytes instead of " +
           std::to_string(expected.size()) + "\n";
    return;
  }
  std::size_t different = 0;
  for (std::size_t i = 0; i + size <= got.size(); i += size) {
    const std::uint8_t *e = expected.data() + i, *g = got.data() + i;
    if (std::memcmp(e, g, size) == 0 || (is_nan(type, e) && is_nan(type, g))) continue;
    if (++different <= 3) {
      out += who + ": argument " + std::to_string(arg) + "[" + std::to_string(i / size) + "] is " + element_text(type, g) + " instead of " +
             element_text(type, e) + "\n";
    }
  }
  if (different > 3) out += who + ": argument " + std::to_string(arg) + " differs in " + std::to_string(different) + " elements\n";
}

std::uint64_t view_bytes(const Arg& a) {
  std::uint64_t n = ir::byte_size(a.type);
  for (const std::uint64_t e : a.extents) n *= e;
  return n;
}

}  // namespace

std::vector<std::string> device_names(bool all_levels) {
  const std::string own = rt::cpu_level(rt::read_cpuid());
  std::vector<std::string> names;
  for (const char* level : kLevels) {
    if (all_levels || level == own || level == kLevels[0]) names.push_back(std::string("cpu ") + level);
    if (level == own) break;
  }
  std::reverse(names.begin(), names.end());
  if (asked_for("sim"))
    for (const SimDevice& sim : kSimDevices) names.emplace_back(sim.name);
  if (asked_for("cuda")) names.emplace_back("cuda");
  return names;
}

DeviceOutcome run_on_interpreter(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                                 const EverywhereOptions& options) {
  DeviceOutcome out;
  out.device = "interpreter";
  const auto prepared = variant.prepared(options.mode);
  if (!prepared.has_value()) {
    out.error = prepared.error();
    return out;
  }
  out.memory.resize(args.size());
  interp::Launch launch;
  for (int a = 0; a < 3; ++a) launch.grid[a] = config.grid[a], launch.block[a] = config.block[a];
  launch.dynamic_shared_bytes = config.shared_bytes;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Arg& from = args[i];
    interp::Arg arg;
    arg.is_buffer = from.is_buffer;
    arg.bits = from.bits;
    arg.extents = from.extents;
    arg.strides = from.strides;
    arg.byte_offset = from.byte_offset;
    if (from.is_buffer) {
      if (!from.same_as) out.memory[i] = from.bytes;
      arg.bytes = &out.memory[from.same_as.value_or(i)];
    }
    launch.args.push_back(std::move(arg));
  }
  const bool empty = config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0;
  if (empty) return out;
  const interp::Outcome outcome = interp::run(**prepared, launch);
  if (outcome.fault) out.fault = rt::bounds_fault(*outcome.fault, (*prepared)->sites);
  out.misuse = outcome.misuse;
  return out;
}

namespace {

DeviceOutcome run_once(const std::string& device, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                       const EverywhereOptions& options) {
  DeviceOutcome out;
  out.device = device;
  const auto opened = open(device);
  if (!opened.has_value()) {
    out.error = opened.error();
    return out;
  }
  const Client& client = *opened;
  const Stream stream = client.default_stream();
  std::vector<LaunchArg> launch_args(args.size());
  std::vector<Memory> memory(args.size());
  const auto failed = [&](const Error& error) {
    out.error = error;
    return out;
  };
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Arg& from = args[i];
    LaunchArg& to = launch_args[i];
    to.is_buffer = from.is_buffer;
    to.type = from.type;
    to.bits = from.bits;
    if (!from.is_buffer) continue;
    to.rank = static_cast<std::uint8_t>(from.extents.size());
    std::copy(from.extents.begin(), from.extents.end(), to.extents.begin());
    std::copy(from.strides.begin(), from.strides.end(), to.strides.begin());
    if (from.same_as) {
      memory[i] = memory[*from.same_as];
    } else {
      auto made = rt::allocate(client, from.bytes.size());
      if (!made.has_value()) return failed(made.error());
      memory[i] = *made;
      const Binding all{memory[i], {0, from.bytes.size()}};
      if (auto ok = rt::write(stream, all, from.bytes.data()); !ok.has_value()) return failed(ok.error());
    }
    if (memory[i] == nullptr) continue;
    const std::uint64_t end = from.strides.empty() ? from.byte_offset + view_bytes(from) : args[from.same_as.value_or(i)].bytes.size();
    to.binding = {memory[i], {from.byte_offset, end}};
  }
  LaunchRequest request;
  request.variant = &variant;
  request.config = config;
  request.args = launch_args;
  request.mode = options.mode;
  if (auto ok = launch(stream, request); !ok.has_value()) return failed(ok.error());
  if (auto ok = stream.sync(); !ok.has_value()) return failed(ok.error());

  // A fault claims what the launch writes. Its bytes are specified all the same (a store out of range is dropped), so they are compared
  // too: once the claim was seen it is taken off.
  out.memory.resize(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (memory[i] == nullptr || args[i].same_as) continue;
    const Binding all{memory[i], {0, args[i].bytes.size()}};
    if (auto ok = rt::check(client, {&all, 1}); !ok.has_value()) {
      const Error& root = ok.error().causes().at(0).causes().at(0);
      if (!root.data().bounds) return failed(ok.error());
      out.fault = root.data().bounds;
      const rt::MemoryRange range = rt::memory_range(all);
      static_cast<rt::LocalServer&>(client.server()).failures().written({&range, 1});
    }
    out.memory[i].resize(args[i].bytes.size());
    if (auto ok = rt::read(stream, all, out.memory[i].data()); !ok.has_value()) return failed(ok.error());
  }
  return out;
}

}  // namespace

DeviceOutcome run_on_device(const std::string& device, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                            const EverywhereOptions& options) {
  DeviceOutcome out = run_once(device, variant, config, args, options);
  if (!out.error || !out.error->is_device_poisoned() || !device.starts_with("cuda sim ")) return out;
  // What the simulated device found says more than the driver's answer.
  Error::Data data = out.error->data();
  data.message += "; the simulated device reports: " + sim_report();
  out.error = Error(std::move(data));
  return out;
}

std::vector<DeviceOutcome> run_everywhere(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                                          const EverywhereOptions& options) {
  std::vector<DeviceOutcome> outcomes{run_on_interpreter(variant, config, args, options)};
  for (const std::string& device : device_names(options.all_levels))
    outcomes.push_back(run_on_device(device, variant, config, args, options));
  return outcomes;
}

std::vector<DeviceOutcome> run_everywhere(const ir::Kernel& kernel, const LaunchConfig& config, const std::vector<Arg>& args,
                                          const EverywhereOptions& options) {
  return run_everywhere(Variant(kernel), config, args, options);
}

std::string differences(const std::vector<DeviceOutcome>& outcomes, const std::vector<Arg>& args) {
  std::string out;
  for (const DeviceOutcome& o : outcomes) {
    if (o.error) out += o.device + ": " + o.error->text() + "\n";
    for (const std::string& sentence : o.misuse) out += o.device + ": " + sentence + "\n";
  }
  if (!out.empty() || outcomes.empty()) return out;
  const DeviceOutcome& first = outcomes.front();
  for (const DeviceOutcome& o : outcomes) {
    if (o.fault.has_value() != first.fault.has_value()) {
      const auto say = [](const DeviceOutcome& d) {
        return d.device + (d.fault ? " reports an access out of range of '" + d.fault->memory + "' at " + d.fault->place : " reports none");
      };
      out += say(o) + ", " + say(first) + "\n";
    }
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i].is_buffer && !args[i].same_as) compare(o.device, i, args[i].type, first.memory.at(i), o.memory.at(i), out);
    }
  }
  return out;
}

}  // namespace kiln::test
