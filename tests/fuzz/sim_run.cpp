#include "fuzz/sim_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>

#include "kiln/runtime/compiler.h"
#include "kiln/runtime/cuda.h"
#include "support/sim.h"

namespace kiln::fuzz {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::uint8_t kPattern = 0xA5;
constexpr unsigned kKernelsOfAServer = 64;  // a server keeps its programs: after so many it is closed, and their modules are unloaded

constexpr std::array<int, 3> kOrdinals{test::kSimH200, test::kSimT4, test::kSimA100};
constexpr std::array<const char*, 3> kNames{"h200", "t4", "a100"};

// The process's code generator, which lets us see what it made last.
class Watched final : public Compiler {
 public:
  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    CompiledCode code = real().compile(kernel, options);
    last = code.code;
    return code;
  }
  std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) override { return real().llvm_ir(kernel, options); }
  const std::vector<std::string>& ptx_architectures() const override { return real().ptx_architectures(); }
  std::string llvm_version() const override { return real().llvm_version(); }
  std::string last;

 private:
  static Compiler& real() {
    const CodegenHandle& codegen = code_generator();
    if (codegen.compiler == nullptr) throw std::runtime_error(codegen.error);
    return *codegen.compiler;
  }
};
Watched& watched() {
  static Watched& compiler = *new Watched;
  return compiler;
}

const cuda::DriverEntries& call() { return test::sim_driver().call; }

void must(cuda::CUresult result, const char* what) {
  if (result != cuda::CUDA_SUCCESS) throw std::runtime_error(std::string(what) + " failed with " + std::to_string(result));
}

// One device: a server, and the context for what is done behind its back.
class Device {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {
    test::sim_driver();
    must(call().cuDevicePrimaryCtxRetain(&context_, ordinal_), "cuDevicePrimaryCtxRetain");
    server_ = rt::make_server(rt::make_cuda_device(test::sim_driver(), ordinal_).value(), &watched());
  }
  ~Device() {
    server_.reset();
    call().cuDevicePrimaryCtxRelease(ordinal_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  Client client() const { return Client(server_); }
  unsigned kernels = 0;

  class Current {
   public:
    explicit Current(const Device& device) { call().cuCtxPushCurrent(device.context_); }
    ~Current() {
      cuda::CUcontext popped = nullptr;
      call().cuCtxPopCurrent(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
  };

  // Memory of exactly this size, freed when the runtime lets go of it.
  Memory adopt(std::uint64_t bytes) const {
    cuda::CUdeviceptr address = 0;
    {
      const Current current(*this);
      must(call().cuMemAlloc(&address, bytes), "cuMemAlloc");
    }
    std::shared_ptr<const void> owner(reinterpret_cast<const void*>(address), [this, address](const void*) {
      const Current current(*this);
      call().cuMemFree(address);
    });
    return cuda::adopt_memory(client(), address, bytes, std::move(owner)).value();
  }
  // What lies there, claimed or not.
  void peek(std::uint64_t address, std::vector<std::uint8_t>& to) const {
    const Current current(*this);
    must(call().cuMemcpyDtoHAsync(to.data(), address, to.size(), nullptr), "cuMemcpyDtoHAsync");
    must(call().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }

 private:
  int ordinal_;
  cuda::CUcontext context_ = nullptr;
  std::shared_ptr<Server> server_;
};

std::map<int, std::unique_ptr<Device>>& devices() {
  static auto& all = *new std::map<int, std::unique_ptr<Device>>;
  return all;
}

Device& device(int which) {
  std::unique_ptr<Device>& d = devices()[which];
  if (d != nullptr && d->kernels++ < kKernelsOfAServer) return *d;
  d.reset();
  d = std::make_unique<Device>(kOrdinals.at(static_cast<std::size_t>(which)));
  return *d;
}

// A device that failed stays so until the driver starts anew.
void renew() {
  devices().clear();
  test::renew_sim();
}

// A buffer argument on the device.
struct Placed {
  Memory memory;
  std::uint64_t first = 0;          // of the buffer in `memory`
  std::vector<std::uint8_t> image;  // all of it, the guards too
  const std::vector<std::uint8_t>* contents = nullptr;
  Binding binding() const { return memory == nullptr ? Binding{} : Binding{memory, {first, first + contents->size()}}; }
};

Placed place(const Device& d, const std::vector<std::uint8_t>& contents, unsigned element, const SimTurn& turn) {
  Placed p;
  p.contents = &contents;
  if (contents.empty()) return p;
  const std::size_t guard = turn.memory == SimTurn::Memory::Guarded ? kGuard : 0;
  p.first = guard + (turn.aligned ? 0 : element);
  p.image.assign(p.first + contents.size() + guard, kPattern);
  std::memcpy(p.image.data() + p.first, contents.data(), contents.size());
  p.memory = guard != 0 ? rt::allocate(d.client(), p.image.size()).value() : d.adopt(p.image.size());
  rt::write(d.client().default_stream(), {p.memory, {0, p.image.size()}}, p.image.data()).value();
  return p;
}

// Looks at a buffer in two ways: past the runtime, and through it. Gives its bytes.
std::vector<std::uint8_t> look(const Device& d, const Placed& p, const std::string& name, SimOutcome& out) {
  const std::size_t size = p.contents->size();
  if (size == 0) return {};
  std::vector<std::uint8_t> image(p.image.size()), bytes(size);
  const std::uint64_t begin = cuda::device_address({p.memory, {0, image.size()}});
  const Result<void> read = rt::read(d.client().default_stream(), p.binding(), bytes.data());
  d.peek(begin, image);
  for (std::size_t i = 0; i < image.size() && out.finding.empty(); ++i)
    if ((i < p.first || i >= p.first + size) && image[i] != kPattern) out.finding = "a store outside of buffer '" + name + "'";
  const auto* at = image.data() + p.first;
  if (read.has_value()) {
    if (std::memcmp(at, bytes.data(), size) != 0 && out.finding.empty())
      out.finding = "reading '" + name + "' gives other bytes than lie on the device";
  } else if (const auto fault = [&] {
               const std::function<std::optional<BoundsFault>(const Error&)> root = [&](const Error& e) -> std::optional<BoundsFault> {
                 if (e.data().bounds) return e.data().bounds;
                 for (const Error& cause : e.causes())
                   if (auto found = root(cause)) return found;
                 return std::nullopt;
               };
               return root(read.error());
             }()) {
    out.fault = fault;
  } else if (out.finding.empty()) {
    out.finding = "reading '" + name + "': " + read.error().text();
  }
  return {at, at + size};
}

}  // namespace

SimTurn sim_turn(std::uint64_t seed) {
  static constexpr std::array<const char*, 3> orders{"forward", "reverse", "seeded"};
  SimTurn turn;
  turn.order_seed = seed;
  turn.device = static_cast<int>(seed % 3);
  seed /= 3;
  turn.order = orders[seed % 3];
  seed /= 3;
  turn.memory = seed % 2 == 0 ? SimTurn::Memory::Exact : SimTurn::Memory::Guarded;
  turn.aligned = seed / 2 % 2 == 0;
  return turn;
}

std::string text(const SimTurn& turn) {
  return std::string("sim ") + kNames.at(static_cast<std::size_t>(turn.device)) + ", " + turn.order + ", " +
         (turn.memory == SimTurn::Memory::Exact ? "exact" : "guarded") + ", " + (turn.aligned ? "aligned" : "one element off");
}

SimOutcome run_sim(const Variant& variant, const Case& c, bool checked, const SimTurn& turn) {
  SimOutcome out;
  const test::SimScript script("{\"quiet\": true, \"workers\": 1, \"global_races\": true, \"instruction_limit\": 50000000, \"order\": \"" +
                               turn.order + "\", \"seed\": " + std::to_string(turn.order_seed % 1000000007) + "}");
  watched().last.clear();
  try {
    Device& d = device(turn.device);
    const unsigned long long reports = test::sim_count("reports");
    const ir::Kernel& k = variant.recorded();
    std::vector<Placed> placed;
    std::vector<LaunchArg> args;
    std::vector<std::size_t> number(c.args.size());
    placed.reserve(c.args.size());
    for (std::size_t i = 0; i < c.args.size(); ++i) {
      const ArgData& a = c.args[i];
      LaunchArg arg;
      arg.is_buffer = a.is_buffer;
      if (a.is_buffer) {
        const ir::Mem& mem = k.mems[k.params[i].mem];
        number[i] = a.shares ? number[*a.shares] : placed.size();
        if (!a.shares) placed.push_back(place(d, a.data.bytes, ir::byte_size(mem.element), turn));
        arg.type = mem.element;
        arg.rank = static_cast<std::uint8_t>(a.data.extents.size());
        std::copy(a.data.extents.begin(), a.data.extents.end(), arg.extents.begin());
        std::copy(a.data.strides.begin(), a.data.strides.end(), arg.strides.begin());
        arg.binding = placed[number[i]].binding();
      } else {
        arg.type = k.params[i].type;
        arg.bits = a.bits;
      }
      args.push_back(arg);
    }
    LaunchRequest request;
    request.variant = &variant;
    request.config = {{c.grid[0], c.grid[1], c.grid[2]}, {c.block[0], c.block[1], c.block[2]}, c.shared_bytes};
    request.args = args;
    request.mode = checked ? ir::PrepareOptions::Mode::Checked : ir::PrepareOptions::Mode::Unchecked;
    d.client().log_bytes(std::uint64_t{16} << 20);
    d.client().on_log([&](const LogLine& l) {
      if (l.missing != 0) out.finding = l.text;
      interp::Logged line{.text = std::string(l.text)};
      std::copy_n(l.block.data(), 3, line.block);
      std::copy_n(l.thread.data(), 3, line.thread);
      out.log.push_back(std::move(line));
    });
    const Result<void> launched = launch(d.client().default_stream(), request);
    if (!launched.has_value()) out.finding = "the launch: " + launched.error().text();
    const Result<void> synced = d.client().sync();
    d.client().on_log({});
    if (!synced.has_value() && out.finding.empty()) out.finding = synced.error().text();
    if (test::sim_count("reports") != reports) out.finding = test::sim_report();
    std::size_t next = 0;
    for (std::size_t i = 0; i < c.args.size() && out.finding.empty(); ++i)
      if (c.args[i].owns()) out.buffers.push_back(look(d, placed[next++], k.params[i].name, out));
    if (test::sim_count("reports") != reports) out.finding = test::sim_report();
  } catch (const std::exception& e) { out.finding = std::string("an exception: ") + e.what(); }
  out.ptx = watched().last;
  if (!out.finding.empty()) renew();
  return out;
}

}  // namespace kiln::fuzz
