// What a server's operations say in the log. Called when they are over, without a lock, and only where the level asks for it.
#pragma once
#include <chrono>
#include <cstdint>
#include <string_view>

#include "kiln/runtime/client.h"
#include "src/launch_modes.h"
#include "src/logging.h"
#include "src/server.h"

namespace kiln::rt {

struct GraphBody;  // capture/instances.h

// `config`: what was launched; or as it was asked for, where it did not come to that.
void tell_launch(const Server& device, std::uint64_t stream, const LaunchRequest& request, const LaunchConfig& config,
                 const Result<void>& result, bool dropped) noexcept;
void tell_allocation(const Server& device, std::uint64_t bytes, const Result<Memory>& result) noexcept;
void tell_free(const Server& device, std::uint64_t memory, std::uint64_t bytes) noexcept;
void tell_wait(const Server& device, const std::uint64_t* stream) noexcept;  // null: all streams
void tell_capture(const Server& device, std::uint64_t stream, const char* what) noexcept;
void tell_graph(const Server& device, std::uint64_t stream, const GraphBody& graph) noexcept;
void tell_no_graph(const Server& device, std::uint64_t stream, const Error& why) noexcept;
void tell_replay(const Server& device, std::uint64_t stream, const GraphBody& graph, const Result<void>& result, bool dropped) noexcept;
// A profile window that was opened, ended or abandoned; null: it has no time.
void tell_window(const Server& device, std::uint64_t stream, std::uint64_t window, const char* what,
                 const Result<std::chrono::nanoseconds>* time) noexcept;
// Of operations that write nothing: no read will ever give it.
void tell_unheard(const Server& device, const Error& error) noexcept;
// `lost`: the device is, and it was not told yet.
void tell_failure(const Server& device, const Error& error, bool lost) noexcept;

}  // namespace kiln::rt
