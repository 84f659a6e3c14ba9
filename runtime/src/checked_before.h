// What the calling thread's last launches were checked with: one that says the same again need not be checked again. A cache; what it does
// not know is checked.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "src/allocation.h"
#include "src/prepared_launch.h"

namespace kiln::rt {

class CheckedBefore {
 public:
  static constexpr std::size_t kArgs = 8;       // launches with more of them are always checked
  static constexpr std::size_t kLaunches = 32;  // a thread remembers

  // Whether a launch of `plan` (which is the server's) with the same arguments, in the same memory, and the same config was checked, found
  // right, and has something to do; then that is `checked`. `moves`: how often the server's memory was moved. The request has no grid on
  // the device and nothing unfit.
  static bool find(const Server& server, const LaunchPlan& plan, const LaunchRequest& request, std::uint64_t moves,
                   CheckedLaunch& checked) {
    if (mine_ == nullptr || request.args.size() > kArgs) return false;
    const Launch& launch = mine_->launches[place(plan, request)];
    if (launch.plan != plan.number || launch.moves != moves || !(launch.given == request.config)) return false;
    std::uint64_t other = launch.count ^ request.args.size();
    if (other != 0) return false;
    for (std::size_t i = 0; i < request.args.size(); ++i) other |= differs(launch.args[i], request.args[i], server);
    if (other != 0) return false;
    checked = launch.checked;
    return true;
  }
  static void keep(const LaunchPlan& plan, const LaunchRequest& request, std::uint64_t moves, const CheckedLaunch& checked) noexcept;

 private:
  struct Arg {
    std::uint64_t memory = 0, begin = 0, end = 0;  // its id, 0: none
    std::array<std::uint64_t, ir::kMaxRank> extents{}, strides{};
    std::uint64_t bits = 0, mask = 0;  // of those that decide anything
    std::uint32_t kind = 0;
    std::uint8_t rank = 0;  // of extents; of a scalar 0
    bool strided = false;   // strides say something
  };
  struct Launch {
    std::uint64_t plan = 0;  // its number; 0: none
    std::uint64_t moves = 0, count = 0;
    LaunchConfig given;
    CheckedLaunch checked;
    std::array<Arg, kArgs> args;
  };
  struct Mine {
    std::array<Launch, kLaunches> launches;
  };
  struct Owner;

  static std::uint64_t id_of(const LaunchArg& arg) { return arg.binding.memory != nullptr ? arg.binding.memory->id : 0; }
  static std::uint32_t kind_of(const LaunchArg& arg) {
    return static_cast<std::uint32_t>(arg.type) | std::uint32_t{arg.rank} << 8 | std::uint32_t{arg.is_buffer} << 16;
  }
  static std::size_t place(const LaunchPlan& plan, const LaunchRequest& request) {
    std::uint64_t sum = plan.number;
    for (const LaunchArg& arg : request.args) sum = sum * 31 + id_of(arg);
    return sum % kLaunches;
  }
  static std::uint64_t differs(const Arg& a, const LaunchArg& arg, const Server& server) {
    std::uint64_t other = ((a.bits ^ arg.bits) & a.mask) | (a.kind ^ kind_of(arg));
    if (!arg.is_buffer) return other;
    const Allocation* const memory = arg.binding.memory.get();
    other |= (a.begin ^ arg.binding.range.begin) | (a.end ^ arg.binding.range.end);
    for (unsigned d = 0; d < a.rank; ++d) other |= a.extents[d] ^ arg.extents[d];
    if (a.strided)
      for (unsigned d = 0; d < a.rank; ++d) other |= a.strides[d] ^ arg.strides[d];
    if (memory == nullptr) return other | a.memory;
    other |= a.memory ^ memory->id;
    return memory->server.get() != &server ? ~std::uint64_t{0} : other;  // ids are numbers of a server's
  }

  inline static constinit thread_local Mine* mine_ [[gnu::tls_model("initial-exec")]] = nullptr;
};

}  // namespace kiln::rt
