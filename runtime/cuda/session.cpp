#include "cuda/session.h"

#include <algorithm>
#include <array>

namespace kiln::cuda {

Result<std::unique_ptr<Session>> Session::open(const Driver& driver, int ordinal) {
  const std::string doing = "opening device cuda:" + std::to_string(ordinal);
  CUdevice device = 0;
  if (const CUresult r = driver.call.cuDeviceGet(&device, ordinal); r != CUDA_SUCCESS) return driver_error(r, Phase::Open, doing);
  std::unique_ptr<Session> session(new Session(driver, device));
  std::array<char, 256> name{};
  driver.call.cuDeviceGetName(name.data(), static_cast<int>(name.size() - 1), device);
  session->name_ = name[0] != 0 ? name.data() : "CUDA device " + std::to_string(ordinal);
  if (const CUresult r = driver.call.cuDevicePrimaryCtxRetain(&session->context_, device); r != CUDA_SUCCESS) {
    session->context_ = nullptr;
    return driver_error(r, Phase::Open, doing + " (" + session->name_ + ")");
  }
  return session;
}

Session::~Session() {
  if (context_ != nullptr) call().cuDevicePrimaryCtxRelease(device_);
}

int Session::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  return call().cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
}

void Session::poison(CUresult result, const std::string& doing) {
  const std::lock_guard lock(mutex_);
  if (first_) return;
  std::vector<std::string> kernels;
  if (suspects_) kernels = suspects_();
  Error::Data data = driver_error(result, Phase::Wait, doing).data();
  if (const auto trap = trap_ ? trap_() : std::nullopt) {
    const std::string rule = data.rule;
    data = trap->data();
    data.rule = rule;
    data.message += " (the CUDA driver answers " + rule + ")";
    kernels.clear();  // it is known
  }
  std::vector<std::string> distinct;
  for (const std::string& kernel : kernels)
    if (std::find(distinct.begin(), distinct.end(), kernel) == distinct.end()) distinct.push_back(kernel);
  if (distinct.size() == 1) {
    data.kernel = distinct.front();
  } else if (!distinct.empty()) {
    constexpr std::size_t kNamed = 8;
    data.message += "; the kernels that were not known to be over, in the order of their launches:";
    for (std::size_t i = 0; i < distinct.size() && i < kNamed; ++i) data.message += (i != 0 ? ", `" : " `") + distinct[i] + "`";
    if (distinct.size() > kNamed) data.message += " and " + std::to_string(distinct.size() - kNamed) + " more";
  }
  first_ = Error(std::move(data));
  poisoned_.store(true, std::memory_order_release);
}

Error Session::failed(CUresult result, Phase phase, const std::string& doing, const std::string& kernel) {
  if (is_sticky(result)) poison(result, doing);
  return poisoned() ? lost(phase) : driver_error(result, phase, doing, kernel);
}

Error Session::fatal(CUresult result, Phase phase, const std::string& doing) {
  poison(result, doing);
  return lost(phase);
}

std::optional<Error> Session::first_failure() const {
  if (!poisoned()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return first_;
}

Error Session::lost(Phase phase) const { return poisoned_error(*first_failure(), phase, label()); }

}  // namespace kiln::cuda
