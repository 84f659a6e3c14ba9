// kiln/runtime/cuda.h: the driver's state, modules of others, adopted streams and memory.
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <system_error>

#include "cuda/driver.h"
#include "kiln/runtime/cuda.h"
#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"

namespace kiln::cuda {
namespace {

// Every server of this process is a local one.
rt::LocalServer& local(const Client& client) { return static_cast<rt::LocalServer&>(client.server()); }

}  // namespace

DriverReport driver_report() {
  const Driver& d = driver();
  return {d.ok(), name(d.state), d.file, d.sentence, d.version, d.devices};
}

std::uint64_t device_address(const Binding& binding) {
  if (binding.memory == nullptr || binding.range.empty()) return 0;
  // Every server of this process is a local one.
  if (!static_cast<rt::LocalServer&>(*binding.memory->server).pin_address(binding).has_value()) return 0;
  return reinterpret_cast<std::uint64_t>(rt::address(binding));
}

Result<Memory> adopt_memory(const Client& client, std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner) {
  return local(client).adopt(address, bytes, std::move(owner));
}

Result<Stream> adopt_stream(const Client& client, void* stream) {
  return rt::or_no_memory([&]() -> Result<Stream> {
    const auto device = local(client).reachable_device();
    if (!device.has_value()) return device.error();
    const auto queue = (*device)->adopt_stream(stream);
    if (!queue.has_value()) return queue.error();
    return Stream(client, rt::kAdoptedStream | *queue);
  });
}

Result<void> release_stream(const Stream& adopted) {
  return rt::or_no_memory([&]() -> Result<void> {
    if (!rt::is_adopted(adopted.id())) return make_error(ErrorCode::Validation, "NotAdopted", "the stream was not adopted");
    const auto device = local(adopted.client()).reachable_device();
    if (!device.has_value()) return device.error();
    return (*device)->release_stream(rt::queue_of(adopted.id()));
  });
}

// --- modules ---------------------------------------------------------------------------------------------------------------

struct LoadedModule::State {
  struct Entry {
    rt::ModuleEntry entry;
    std::shared_ptr<const std::string> name;
  };
  State(Client c, std::shared_ptr<rt::DeviceModule> m) : client(std::move(c)), module(std::move(m)) {}
  // The driver does not take a module away from under its launches.
  ~State() {
    if (const auto device = local(client).reachable_device(); device.has_value()) {
      used.for_each([&](rt::Event e) { (*device)->wait(e); });
    } else {
      new auto(std::move(entries));  // a forked child's driver cannot unload them
      new auto(std::move(module));
    }
  }

  const Client client;
  std::shared_ptr<rt::DeviceModule> module;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries;  // guarded, as is what follows
  rt::After used;
};

Result<LoadedModule> LoadedModule::from_memory(const Client& client, const std::string& image, const std::string& name) {
  return rt::or_no_memory([&]() -> Result<LoadedModule> {
    const auto device = local(client).reachable_device();
    if (!device.has_value()) return device.error();
    auto module = (*device)->load_module(image, name);
    if (!module.has_value()) return module.error();
    return LoadedModule(std::make_shared<State>(client, std::move(*module)));
  });
}

Result<LoadedModule> LoadedModule::from_file(const Client& client, const std::string& path) {
  return rt::or_no_memory([&]() -> Result<LoadedModule> {
    // Of a known size: others may have no end, or block.
    std::error_code failed;
    const bool is_file = std::filesystem::is_regular_file(path, failed);
    const std::uintmax_t bytes = is_file ? std::filesystem::file_size(path, failed) : 0;
    std::string image;
    std::ifstream in;
    if (is_file && !failed) {
      image.resize(bytes);
      in.open(path, std::ios::binary);
      in.read(image.data(), static_cast<std::streamsize>(bytes));
    }
    if (!is_file || failed || !in) {
      return make_error(
          ErrorCode::NotFound, "NoSuchFile",
          "'" + path + "' cannot be read" + (is_file || !std::filesystem::exists(path, failed) ? "" : ": it is no regular file"));
    }
    return from_memory(client, image, "'" + path + "'");
  });
}

Result<void> LoadedModule::launch(const Stream& stream, const std::string& entry, const LaunchConfig& config,
                                  std::span<const Param> params) const try {
  std::vector<rt::LocalServer::Use> uses;
  for (const Param& param : params)
    if (param.is_buffer()) uses.push_back({param.binding(), param.access()});
  rt::LaunchFacts facts;
  facts.kernel = entry;
  const auto refused = [&](Error error) {
    return local(state_->client).refused_loaded(stream.id(), uses, rt::of_launch(facts, std::move(error)));
  };
  if (!(stream.client() == state_->client)) {
    return refused(make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                              "the stream belongs to " + stream.client().server().label() + ", the module to " +
                                  state_->client.server().label() + "; use a stream of that device, or load the module there too"));
  }
  const auto device = local(state_->client).reachable_device();
  if (!device.has_value()) return device.error();
  const State::Entry* found = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    auto at = state_->entries.find(entry);
    if (at == state_->entries.end()) {
      auto looked_up = (*device)->entry(state_->module, entry);
      if (!looked_up.has_value()) return refused(looked_up.error());
      at = state_->entries
               .emplace(entry,
                        std::make_unique<State::Entry>(State::Entry{std::move(*looked_up), std::make_shared<const std::string>(entry)}))
               .first;
    }
    found = at->second.get();
  }
  const std::vector<rt::ModuleEntry::Param>& wanted = found->entry.params;
  if (params.size() != wanted.size()) {
    return refused(make_error(ErrorCode::Validation, "ArgumentCount",
                              "the entry takes " + std::to_string(wanted.size()) + (wanted.size() == 1 ? " argument" : " arguments") +
                                  " and was given " + std::to_string(params.size()) + "; compare with its .param list",
                              {.kernel = entry, .requested = params.size(), .limit = wanted.size(), .numbers = Error::Numbers::NotEqual}));
  }
  std::vector<std::byte> block(found->entry.bytes);
  for (std::size_t i = 0; i < params.size(); ++i) {
    std::uint64_t address = 0;
    std::span<const std::byte> bytes = params[i].bytes();
    const std::string argument = "argument " + std::to_string(i + 1);
    if (params[i].is_buffer()) {
      if (auto ok = local(state_->client).usable(params[i].binding(), argument); !ok.has_value()) return refused(ok.error());
      if (auto ok = local(state_->client).pin_address(params[i].binding()); !ok.has_value()) return refused(ok.error());
      address = device_address(params[i].binding());
      bytes = std::as_bytes(std::span(&address, 1));
    }
    if (bytes.size() != wanted[i].size) {
      return refused(
          make_error(ErrorCode::Validation, "ArgumentSize",
                     argument + " has " + std::to_string(bytes.size()) + " bytes" + (params[i].is_buffer() ? " (a buffer's address)" : "") +
                         ", and the entry's parameter there has " + std::to_string(wanted[i].size) + " bytes; compare with its .param list",
                     {.kernel = entry, .requested = bytes.size(), .limit = wanted[i].size, .numbers = Error::Numbers::NotEqual}));
    }
    std::memcpy(block.data() + wanted[i].offset, bytes.data(), bytes.size());
  }
  const auto event = local(state_->client).launch_loaded(stream.id(), {*found->entry.program, found->name, config, block, uses});
  if (!event.has_value()) return event.error();
  const std::lock_guard lock(state_->mutex);
  state_->used.add(*event);
  return {};
} catch (const std::bad_alloc&) {
  for (const Param& param : params)
    if (param.is_buffer() && param.access() != ir::Access::In) rt::claim(param.binding(), rt::no_host_memory());
  return rt::no_host_memory();
}

}  // namespace kiln::cuda
