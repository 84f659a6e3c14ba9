#include "kiln/runtime/client.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cpu/cpu_device.h"
#include "cpu/cpu_info.h"
#include "cpu/cpu_name.h"
#include "cuda/cuda_device.h"
#include "kiln/runtime/buffer.h"
#include "src/allocation.h"
#include "src/call_order.h"
#include "src/capture/captures.h"
#include "src/config.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {
namespace {

constexpr unsigned kCpuDevices = 64;

// The process's server for a CPU device: of those of one name one. They share nothing with one another but the processor. Immortal: buffers
// of static lifetime may outlive every other static.
Result<std::shared_ptr<Server>> cpu_server(const rt::CpuName& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& servers = *new std::map<rt::CpuName, std::shared_ptr<Server>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Server>& server = servers[name];
  if (server == nullptr) {
    const auto workers = static_cast<unsigned>(rt::configured_number(rt::Setting::CpuWorkers));
    auto device = rt::make_cpu_device(
        {.workers = workers, .arch = name.level, .number = name.number, .any_block = name.any_block, .name = to_string(name)});
    if (!device.has_value()) return device.error();
    server = rt::make_server(std::move(*device));
  }
  return server;
}

// The process's server for one GPU; immortal too, since programs are compiled once a server. A failure is not kept.
Result<std::shared_ptr<Server>> cuda_server(int ordinal) {
  static std::mutex& mutex = *new std::mutex;
  static auto& servers = *new std::map<int, std::shared_ptr<Server>>;
  const cuda::Driver& driver = cuda::driver();
  const std::lock_guard lock(mutex);
  if (const auto found = servers.find(ordinal); found != servers.end()) return found->second;
  auto device = rt::make_cuda_device(driver, ordinal);
  if (!device.has_value()) return device.error();
  return servers[ordinal] = rt::make_server(std::move(*device));
}

// The first GPU that can be used; the first one's error where none can.
Result<std::shared_ptr<Server>> first_cuda_server() {
  auto server = cuda_server(0);
  for (int ordinal = 1; !server.has_value() && ordinal < cuda::driver().devices; ++ordinal) {
    if (auto other = cuda_server(ordinal); other.has_value()) return other;
  }
  return server;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<Client> open_cpu(const rt::CpuName& name) {
  if (name.number >= kCpuDevices) {
    return make_error(ErrorCode::NotFound, "NoSuchDevice",
                      "there is no device '" + to_string(name) + "'; a process can have " + std::to_string(kCpuDevices) +
                          " devices on its processor, cpu:0 (which is cpu) to cpu:" + std::to_string(kCpuDevices - 1));
  }
  const std::string best = rt::cpu_level(rt::read_cpuid());
  const auto& levels = rt::cpu_levels();
  const auto rank = [&](const std::string& level) { return std::find(levels.begin(), levels.end(), level); };
  if (!name.level.empty() && rank(name.level) > rank(best)) {
    return make_error(ErrorCode::NotFound, "NoSuchDevice",
                      "there is no device '" + to_string(name) + "'; this processor has not what " + name.level + " takes, but " + best);
  }
  auto server = cpu_server(name);
  if (!server.has_value()) return server.error();
  return Client(*server);
}

Result<Client> open_named(const std::string& device) {
  if (const auto name = rt::parse_cpu_name(device)) return open_cpu(*name);
  const bool numbered = device.starts_with("cuda:") && is_number(device.substr(5));
  if (device == "cuda" || numbered) {
    auto server = numbered ? cuda_server(std::stoi(device.substr(5))) : first_cuda_server();
    if (server.has_value()) return Client(*server);
    Error::Data data = server.error().data();
    data.message = "device '" + device + "' cannot be opened: " + data.message + "; the device cpu can always be used";
    return Error(std::move(data));
  }
  return make_error(ErrorCode::NotFound, "UnknownDevice", "there is no device '" + device + "'; the names are cpu, cpu:N, cuda and cuda:N");
}

}  // namespace

Result<Client> Client::open(const std::string& device) {
  return rt::or_no_memory([&]() -> Result<Client> {
    if (auto ok = rt::check_configuration(); !ok.has_value()) return ok.error();
    return open_named(device);
  });
}

Client Client::default_client() {
  static const Client client = [] {
    rt::check_configuration().value();
    const std::string named = rt::configured_text(rt::Setting::Device);
    if (named.empty()) {
      const auto gpu = first_cuda_server();
      return gpu.has_value() ? Client(*gpu) : open("cpu").value();
    }
    auto opened = open(named);
    if (opened.has_value()) return *opened;
    Error::Data data = opened.error().data();
    data.message = rt::configured_by(rt::Setting::Device) + ": " + data.message;
    throw Exception(Error(std::move(data)));
  }();
  return client;
}

const DeviceProperties& Client::properties() const { return server_->properties(); }
Stream Client::stream(StreamPriority priority) const { return Stream(*this, rt::new_stream_id(priority)); }
Stream Client::default_stream() const { return Stream(*this, rt::thread_stream_id()); }
Result<void> Client::sync() const { return server_->sync_all(); }
void Client::on_log(LogSink sink) const { server_->on_log(std::move(sink)); }
void Client::log_bytes(std::uint64_t bytes) const { server_->log_bytes(bytes); }

StreamPriority Stream::priority() const { return rt::stream_priority(id_); }
Result<void> Stream::sync() const { return client_.server().sync_stream(id_); }
Result<void> Stream::flush() const { return client_.server().flush(id_); }
Result<void> Stream::call(std::function<void()> function, std::source_location where) const {
  return rt::or_no_memory([&]() -> Result<void> {
    if (!function) return rt::not_issued(*this, make_error(ErrorCode::Validation, "NoFunction", "the host call has no function"));
    auto in_turn = [function = std::move(function)](const Error* lost) {
      if (lost == nullptr) function();
    };
    return client_.server().call(id_, std::move(in_turn), where);
  });
}
Event Stream::record() const {
  const Server::Point point = client_.server().record(id_);
  Event event;
  event.server_ = client_.server().shared_from_this();
  event.queue_ = point.queue;
  event.position_ = point.position;
  return event;
}
Result<void> Stream::wait(const Event& event) const {
  if (event.server_ == nullptr) return {};
  if (event.server_.get() != &client_.server()) {
    return rt::or_no_memory([&]() -> Result<void> {
      return rt::not_issued(*this, make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                                              "the event is of another device, " + event.server_->label() + ", and the stream of " +
                                                  client_.server().label() + "; wait for it on the host with sync()"));
    });
  }
  return client_.server().wait_event(id_, {event.queue_, event.position_});
}

bool Event::done() const { return server_ == nullptr || server_->event_done({queue_, position_}); }
Result<void> Event::sync() const {
  if (server_ == nullptr) return {};
  return server_->sync_event({queue_, position_});
}

Result<void> launch(const Stream& stream, const LaunchRequest& request) { return stream.client().server().launch(stream.id(), request); }

namespace rt {

std::uint64_t new_stream_id(StreamPriority priority) {
  static std::array<std::atomic<std::uint64_t>, 3> next{};  // of each priority, so that streams made one after another share no queue
  return next[static_cast<std::size_t>(priority)].fetch_add(1, std::memory_order_relaxed) | stream_priority_bits(priority);
}

std::uint64_t thread_stream_id() {
  if (const OpenCall* call = CallOrder::current()) return call_stream(call->at.queue);
  thread_local const std::uint64_t id = new_stream_id();
  return id;
}

Result<Memory> allocate(const Client& client, std::uint64_t bytes) { return client.server().allocate(bytes); }
Result<void> write(const Stream& stream, const Binding& to, const void* from) {
  return stream.client().server().write(stream.id(), to, from);
}
Result<void> fill_zero(const Stream& stream, const Binding& to) { return stream.client().server().fill_zero(stream.id(), to); }
Result<void> copy(const Stream& stream, const Binding& to, const Binding& from) {
  return stream.client().server().copy(stream.id(), to, from);
}
Result<void> read(const Stream& stream, const Binding& from, void* to) { return stream.client().server().read(stream.id(), from, to); }
Result<void> check(const Client& client, std::span<const Binding> ranges) { return client.server().check(ranges); }
Result<void> sync(const Client& client, std::span<const Binding> ranges) { return client.server().sync(ranges); }
void claim(const Binding& binding, const Error& why) noexcept {
  if (binding.memory != nullptr && !binding.range.empty()) binding.memory->server->claim(binding, why);
}
Error not_issued(const Stream& stream, Error why) {
  (void)stream.client().server().captures().watch_refused(stream.id(), why);
  return why;
}

}  // namespace rt
}  // namespace kiln
