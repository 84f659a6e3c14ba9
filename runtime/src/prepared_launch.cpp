#include "src/prepared_launch.h"

#include <utility>

#include "kiln/runtime/prepared.h"
#include "src/launch_modes.h"
#include "src/local_server.h"
#include "src/make_error.h"

namespace kiln {
namespace rt {

PreparedState::PreparedState(const Stream& on, const LaunchRequest& given)
    : stream(on), args(given.args.begin(), given.args.end()), former(args), request(given) {
  if (given.dynamic_grid != nullptr) grid = *given.dynamic_grid;
  request.args = args;
  request.dynamic_grid = grid ? &*grid : nullptr;
  request.unfit = nullptr;
}

Result<void> LocalServer::prepare_now(PreparedState& state, const Error* unfit) {
  if (state.request.variant == nullptr) return no_kernel();
  LaunchRequest request = state.request;
  request.unfit = unfit;
  CheckedLaunch checked;
  if (auto refusal = check_launch(request, checked)) return of_launch(checked.plan->facts, std::move(refusal->error));
  state.checked = checked;
  return {};
}

Result<void> LocalServer::launch_prepared_now(std::uint64_t stream, const PreparedState& state) {
  if (any_override()) {
    if (drops_launch(mode_of_launch(*this, stream))) {  // its program is there
      if (!state.checked.nothing_to_do) captures_.lacks(stream, *state.checked.plan, state.request);
      return {};
    }
  }
  return launch_checked(stream, state.request, state.checked);
}

}  // namespace rt

namespace {

Error prepared_gone() {
  return make_error(ErrorCode::Validation, "PreparedGone",
                    "the prepared launch was moved into another one, and launches from there; prepare it anew");
}

}  // namespace

PreparedLaunch::PreparedLaunch(std::unique_ptr<rt::PreparedState> state) : state_(std::move(state)) {}
PreparedLaunch::PreparedLaunch(PreparedLaunch&&) noexcept = default;
PreparedLaunch& PreparedLaunch::operator=(PreparedLaunch&&) noexcept = default;
PreparedLaunch::~PreparedLaunch() = default;

Result<PreparedLaunch> PreparedLaunch::prepare(const Stream& stream, const LaunchRequest& request) {
  return rt::or_no_memory([&]() -> Result<PreparedLaunch> {
    auto state = std::make_unique<rt::PreparedState>(stream, request);
    if (auto ok = stream.client().server().prepare(*state, request.unfit); !ok.has_value()) return ok.error();
    return PreparedLaunch(std::move(state));
  });
}

Result<void> PreparedLaunch::operator()() const {
  if (state_ == nullptr) return prepared_gone();
  return on(state_->stream);
}

Result<void> PreparedLaunch::on(const Stream& stream) const {
  if (state_ == nullptr) return prepared_gone();
  if (!(stream.client() == state_->stream.client())) {
    return rt::of_launch(state_->checked.plan->facts,
                         make_error(ErrorCode::ForeignHandle, "PreparedElsewhere",
                                    "the launch was prepared for " + state_->stream.client().server().label() +
                                        ", and the stream is one of " + stream.client().server().label() + "; prepare it for that device"));
  }
  return stream.client().server().launch_prepared(stream.id(), *state_);
}

Result<void> PreparedLaunch::rebind(std::span<const LaunchArg> args) {
  if (state_ == nullptr) return prepared_gone();
  return rt::or_no_memory([&]() -> Result<void> {
    rt::PreparedState& state = *state_;
    state.former.assign(args.begin(), args.end());
    state.args.swap(state.former);
    state.request.args = state.args;
    auto ok = state.stream.client().server().prepare(state, nullptr);
    if (!ok.has_value()) {
      state.args.swap(state.former);
      state.request.args = state.args;
    }
    for (LaunchArg& arg : state.former) arg.binding = {};  // nobody needs that memory any more
    return ok;
  });
}

const Stream& PreparedLaunch::stream() const {
  if (state_ == nullptr) throw Exception(prepared_gone());
  return state_->stream;
}
const LaunchConfig& PreparedLaunch::config() const {
  if (state_ == nullptr) throw Exception(prepared_gone());
  return state_->checked.config;
}

}  // namespace kiln
