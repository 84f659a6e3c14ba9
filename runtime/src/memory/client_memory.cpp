// The bodies of kiln/runtime/memory.h.
#include <string>

#include "kiln/runtime/memory.h"
#include "src/local_server.h"
#include "src/make_error.h"

namespace kiln {
namespace {

// Every server of this process is a local one.
rt::LocalServer& local(const Client& client) { return static_cast<rt::LocalServer&>(client.server()); }

}  // namespace

Result<MemoryReport> memory_report(const Client& client) { return local(client).memory_report(); }

Result<MemoryReport> memory_report(const Client& client, const Stream& stream) {
  if (stream.client() == client) return local(client).memory_report(stream.id());
  return rt::or_no_memory([&]() -> Result<MemoryReport> {
    return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                      "the stream of the memory report belongs to another device, " + stream.client().server().label() + ", not to " +
                          client.server().label() + "; ask a client of its device");
  });
}

Result<std::uint64_t> memory_cleanup(const Client& client) { return local(client).memory_cleanup(); }
Result<void> install_memory_pools(const Client& client, const MemoryPools& layout) { return local(client).install_memory_pools(layout); }

PersistentMemory::PersistentMemory(const Client& client) : client_(client) { local(client).memory().enter_persistent(); }
PersistentMemory::~PersistentMemory() { local(client_).memory().leave_persistent(); }

Result<Memory> allocate(const Stream& stream, std::uint64_t bytes) { return local(stream.client()).allocate_on(stream.id(), bytes); }

}  // namespace kiln
