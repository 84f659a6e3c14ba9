#include "src/checked_before.h"

#include <memory>
#include <new>
#include <utility>

namespace kiln::rt {

// Ends with the thread. Whoever launches later than that checks.
struct CheckedBefore::Owner {
  std::unique_ptr<Mine> mine;
  bool asked = false;
  ~Owner() { mine_ = nullptr; }
};

void CheckedBefore::keep(const LaunchPlan& plan, const LaunchRequest& request, std::uint64_t moves, const CheckedLaunch& checked) noexcept {
  if (request.args.size() > kArgs) return;
  if (mine_ == nullptr) {
    static thread_local Owner owner;
    if (std::exchange(owner.asked, true)) return;
    owner.mine.reset(new (std::nothrow) Mine());
    mine_ = owner.mine.get();
    if (mine_ == nullptr) return;
  }
  Launch& launch = mine_->launches[place(plan, request)];
  launch.plan = plan.number;
  launch.moves = moves;
  launch.count = request.args.size();
  launch.given = request.config;
  launch.checked = checked;
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    const LaunchArg& arg = request.args[i];
    launch.args[i] = {id_of(arg),
                      arg.binding.range.begin,
                      arg.binding.range.end,
                      arg.extents,
                      arg.strides,
                      arg.bits,
                      plan.requirements.reads(i) ? ~std::uint64_t{0} : 0,
                      kind_of(arg),
                      arg.is_buffer ? arg.rank : std::uint8_t{0},
                      plan.facts.params[i].strided};
  }
}

}  // namespace kiln::rt
