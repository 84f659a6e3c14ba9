// Host calls, as the server's end needs them.
#pragma once

namespace kiln::rt {

class Device;

// The server goes away within a call of its own: that call counts as over from now on.
void end_own_call(const Device& device) noexcept;

}  // namespace kiln::rt
