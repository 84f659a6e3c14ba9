// The transport that has nothing, and which one devices get.
#include <string>

#include "kiln/runtime/collective.h"
#include "src/collective/host_transport.h"
#include "src/local_server.h"
#include "src/make_error.h"

namespace kiln::rt {
namespace {

Error none(const char* operation) {
  return make_error(
      ErrorCode::NoDeviceTransport, "NoDeviceTransport",
      std::string("nothing carries bytes between these devices for ") + operation +
          ": collectives run between CPU devices of one process (cpu, cpu:1 ...); copy_across() goes between any two devices");
}

}  // namespace

Result<void> Transport::comm_init(const std::vector<Client>&) { return none("comm_init"); }
Result<void> Transport::all_reduce(const CollectiveCall&) { return none("all_reduce"); }
Result<void> Transport::all_gather(const CollectiveCall&) { return none("all_gather"); }
Result<void> Transport::reduce_scatter(const CollectiveCall&) { return none("reduce_scatter"); }
Result<void> Transport::broadcast(const CollectiveCall&) { return none("broadcast"); }
Result<void> Transport::all_to_all(const CollectiveCall&) { return none("all_to_all"); }
Result<void> Transport::send(const CollectiveCall&) { return none("send"); }
Result<void> Transport::recv(const CollectiveCall&) { return none("recv"); }
Result<void> Transport::barrier(const CollectiveCall&) { return none("barrier"); }
Result<void> Transport::sync(std::uint32_t, std::chrono::milliseconds) { return none("sync"); }

std::shared_ptr<Transport> make_transport(const std::vector<Client>& devices) {
  for (const Client& client : devices)
    if (!static_cast<LocalServer&>(client.server()).device().host_addressable()) return std::make_shared<Transport>();
  return std::make_shared<HostTransport>();
}

}  // namespace kiln::rt
