#include "simcuda/driver_settings.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "simcuda/driver_errors.h"

namespace kiln::simcuda {
namespace {

using nlohmann::json;

// Reads the members of one JSON object; a member that nobody asked for is an error, so that a misspelt fault is not silently no fault.
class Reader {
 public:
  Reader(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) fail("must be an object");
  }
  [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(place_ + " " + what); }
  const json* member(const char* name) {
    asked_.insert(name);
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }
  template <class T>
  bool read(const char* name, T& value) {
    const json* m = member(name);
    if (m == nullptr || m->is_null()) return false;
    try {
      if (!fits<T>(*m)) wrong(name, *m);
      value = m->get<T>();
    } catch (const json::exception&) { wrong(name, *m); }
    return true;
  }
  template <class T>
  void read(const char* name, std::optional<T>& value) {
    if (T v{}; read(name, v)) value = v;
  }
  void read_code(const char* name, CUresult& value) {
    const json* m = member(name);
    if (m == nullptr) return;
    if (m->is_number_integer()) return void(value = static_cast<CUresult>(m->get<int>()));
    if (m->is_string())
      if (const auto code = error_by_name(m->get<std::string>())) return void(value = *code);
    fail(std::string("has a wrong value for '") + name + "': " + m->dump() + "; a number or a name like CUDA_ERROR_OUT_OF_MEMORY");
  }
  void read_when(Countdown& when) {
    read("n", when.n);
    read("times", when.times);
    if (when.n == 0u) fail("has \"n\": 0; the first is number 1");
  }
  // One object or an array of them, each given to `each`.
  template <class Each>
  void read_list(const char* name, Each each) {
    const json* m = member(name);
    if (m == nullptr) return;
    const json list = m->is_array() ? *m : json::array({*m});
    for (std::size_t i = 0; i < list.size(); ++i) {
      Reader r(list[i], place_ + "/" + name + "[" + std::to_string(i) + "]");
      each(r);
      r.finish();
    }
  }
  void finish() const {
    for (const auto& [key, value] : object_.items())
      if (!asked_.contains(key)) fail("has an unknown member '" + key + "'");
  }

 private:
  [[noreturn]] void wrong(const char* name, const json& value) const {
    fail(std::string("has a wrong value for '") + name + "': " + value.dump());
  }
  // Numbers are not cut: a fault that never comes would look like none. Those with a fraction are times in milliseconds.
  template <class T>
  static bool fits(const json& value) {
    if constexpr (std::is_floating_point_v<T>) {
      return value.is_number() && value.get<T>() >= 0 && value.get<T>() <= 1e9;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
      return value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>());
    } else {
      return true;
    }
  }

  const json& object_;
  std::string place_;
  std::set<std::string, std::less<>> asked_;
};

json parse(const std::string& text, const std::string& place) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) { throw std::runtime_error(place + " is no JSON: " + e.what()); }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void read_kernel_fault(Reader& r, KernelFault& f) {
  std::string fault = "launch_failure";
  r.read("name", f.name);
  r.read_when(f.when);
  r.read("fault", fault);
  const std::map<std::string, CUresult> faults = {
      {"illegal_address", CUDA_ERROR_ILLEGAL_ADDRESS}, {"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
      {"launch_failure", CUDA_ERROR_LAUNCH_FAILED},    {"hang", CUDA_ERROR_LAUNCH_TIMEOUT},
      {"trap", CUDA_ERROR_ILLEGAL_INSTRUCTION},        {"assert", CUDA_ERROR_ASSERT}};
  const auto it = faults.find(fault);
  if (it == faults.end()) r.fail("has an unknown fault '" + fault + "'; illegal_address, misaligned, launch_failure, hang, trap, assert");
  f.code = it->second;
  if (f.code == CUDA_ERROR_LAUNCH_TIMEOUT) f.after_ms = 100;
  r.read("timeout_ms", f.after_ms);
  r.read("runs", f.runs);
  r.read_code("code", f.code);
}

void read_engine(Reader& r, Script& s) {
  std::string order = "forward", schedule = "oldest", unwritten = "fault";
  r.read("order", order);
  r.read("seed", s.engine.seed);
  r.read("workers", s.engine.workers);
  r.read("shared_races", s.engine.shared_races);
  r.read("global_races", s.engine.global_races);
  r.read("instruction_limit", s.engine.instruction_limit);
  r.read("unwritten", unwritten);
  r.read("schedule", schedule);
  if (order == "reverse") s.engine.order = Order::Reverse;
  else if (order == "seeded") s.engine.order = Order::Seeded;
  else if (order != "forward") r.fail("has an unknown order '" + order + "'; forward, reverse, seeded");
  if (schedule == "newest") s.schedule = Schedule::Newest;
  else if (schedule == "seeded") s.schedule = Schedule::Seeded;
  else if (schedule != "oldest") r.fail("has an unknown schedule '" + schedule + "'; oldest, newest, seeded");
  if (unwritten == "note") s.engine.unwritten_is_fault = false;
  else if (unwritten != "fault") r.fail("has an unknown value for unwritten '" + unwritten + "'; fault, note");
}

// clang-format off
#define KILN_SIMCUDA_ATTRIBUTES(A)                                                                                                     \
  A(MAX_THREADS_PER_BLOCK) A(MAX_BLOCK_DIM_X) A(MAX_BLOCK_DIM_Y) A(MAX_BLOCK_DIM_Z) A(MAX_GRID_DIM_X) A(MAX_GRID_DIM_Y)                  \
  A(MAX_GRID_DIM_Z) A(MAX_SHARED_MEMORY_PER_BLOCK) A(TOTAL_CONSTANT_MEMORY) A(WARP_SIZE) A(MAX_REGISTERS_PER_BLOCK) A(CLOCK_RATE)        \
  A(MULTIPROCESSOR_COUNT) A(INTEGRATED) A(CAN_MAP_HOST_MEMORY) A(COMPUTE_MODE) A(CONCURRENT_KERNELS) A(PCI_BUS_ID) A(PCI_DEVICE_ID)      \
  A(MEMORY_CLOCK_RATE) A(GLOBAL_MEMORY_BUS_WIDTH) A(L2_CACHE_SIZE) A(MAX_THREADS_PER_MULTIPROCESSOR) A(ASYNC_ENGINE_COUNT)               \
  A(UNIFIED_ADDRESSING) A(COMPUTE_CAPABILITY_MAJOR) A(COMPUTE_CAPABILITY_MINOR) A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)                  \
  A(MAX_REGISTERS_PER_MULTIPROCESSOR) A(COOPERATIVE_LAUNCH) A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) A(MAX_BLOCKS_PER_MULTIPROCESSOR)        \
  A(RESERVED_SHARED_MEMORY_PER_BLOCK) A(MEMORY_POOLS_SUPPORTED) A(CLUSTER_LAUNCH)
// clang-format on

}  // namespace

unsigned DeviceDescription::arch() const {
  return static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

Script parse_script(const std::string& text) {
  const json document = parse(text, "the fault script");
  Reader r(document, "the fault script");
  Script s;
  s.engine.instruction_limit = 1'000'000'000;  // a thread that executes more hangs: without a limit a wrong test would never end
  if (r.member("init") != nullptr) r.read_code("init", s.init.emplace(CUDA_ERROR_UNKNOWN));
  r.read("driver_version", s.driver_version);
  r.read("devices", s.devices);
  r.read("missing", s.missing);
  r.read_list("calls", [&](Reader& m) {
    CallFault& f = s.calls.emplace_back();
    if (!m.read("name", f.name)) m.fail("has no 'name'");
    m.read_when(f.when);
    m.read_code("code", f.code);
    m.read("sticky", f.sticky);
  });
  r.read_list("allocations", [&](Reader& m) {
    AllocationFault& f = s.allocations.emplace_back();
    m.read_when(f.when);
    m.read_code("code", f.code);
    m.read("host", f.host);
    m.read("device", f.device);
  });
  r.read_list("kernels", [&](Reader& m) { read_kernel_fault(m, s.kernels.emplace_back()); });
  r.read_list("loads", [&](Reader& m) {
    LoadFault& f = s.loads.emplace_back();
    m.read_when(f.when);
    m.read_code("code", f.code);
    m.read("log", f.log);
  });
  r.read_list("slow", [&](Reader& m) {
    SlowStream& f = s.slow.emplace_back();
    m.read("stream", f.stream);
    m.read("ms", f.ms);
  });
  r.read("late_events_ms", s.late_events_ms);
  r.read("null", s.null_launches);
  r.read("free_in_use_is_fault", s.free_in_use_is_fault);
  r.read("quiet", s.quiet);
  r.read("report", s.report);
  read_engine(r, s);
  r.finish();
  return s;
}

Script parse_script_file(const std::string& path) { return parse_script(read_file(path)); }

DeviceDescription load_device(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  const std::string path = is_path ? name : std::string(KILN_SIMCUDA_FOLDER) + "/devices/" + name + ".json";
  if (!std::filesystem::exists(path)) {
    std::string names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(KILN_SIMCUDA_FOLDER) + "/devices", none))
      if (entry.path().extension() == ".json") names += (names.empty() ? "" : ", ") + entry.path().stem().string();
    throw std::runtime_error("there is no description of a device '" + name + "' (" + path + "); there are " + names +
                             ", and a path of another one");
  }
  const json document = parse(read_file(path), path);
  Reader r(document, path);
  DeviceDescription d;
  if (!r.read("name", d.name)) r.fail("has no 'name'");
  if (!r.read("memory", d.memory) || d.memory == 0) r.fail("has no 'memory'");
  r.read("driver_version", d.driver_version);
  r.read("ptx_version", d.ptx_version);
  const json* attributes = r.member("attributes");
  if (attributes == nullptr) r.fail("has no 'attributes'");
  Reader a(*attributes, path + "/attributes");
#define KILN_SIMCUDA_READ(id) \
  if (!a.read(#id, d.attributes[CU_DEVICE_ATTRIBUTE_##id].emplace(0))) a.fail("has no " #id);
  KILN_SIMCUDA_ATTRIBUTES(KILN_SIMCUDA_READ)
#undef KILN_SIMCUDA_READ
  a.finish();
  r.finish();
  return d;
}

unsigned ptx_version_of(int driver_version) {
  struct Row {
    int driver;
    unsigned ptx;
  };
  // PTX ISA, release notes.
  constexpr Row rows[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82},
                          {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74}, {11030, 73},
                          {11020, 72}, {11010, 71}, {11000, 70}, {10020, 65}, {10010, 64}, {10000, 63}};
  for (const Row& row : rows)
    if (driver_version >= row.driver) return row.ptx;
  return 62;
}

}  // namespace kiln::simcuda
