#include "kiln/dsl/kernel.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "errors.h"
#include "kiln/ir/decimal.h"
#include "kiln/ir/floats.h"
#include "variant_slot.h"

namespace kiln::dsl {

const Variant& variant_of(const VariantSlot& slot) {
  if (slot.variant == nullptr) throw std::bad_alloc();
  return *slot.variant;
}

const VariantSlot& no_slot() {
  static const VariantSlot slot{ConfigBits{}};
  return slot;
}

std::string type_text(const ParamSpec& p) {
  const std::string element(ir::name(p.type));
  if (!p.is_buffer) return "Val<" + element + ">";
  std::string text = p.access == ir::Access::In ? "In<" : p.access == ir::Access::Out ? "Out<" : "InOut<";
  text += element;
  if (p.rank != 1 || p.strided) text += ", " + std::to_string(p.rank);
  if (p.strided) text += ", Strided";
  return text + ">";
}

ir::Kernel signature_kernel(const std::string& name, std::span<const ParamSpec> params, const std::vector<std::string>& names,
                            const Where& where) {
  ir::Kernel kernel;
  kernel.name = name;
  ir::Builder builder(kernel);
  if (where.line() != 0) builder.loc = {builder.file(where.file_name()), where.line()};
  kernel.loc = builder.loc;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ParamSpec& p = params[i];
    if (p.is_buffer) builder.buffer(names[i], p.type, p.rank, p.access, p.strided);
    else builder.scalar(names[i], p.type);
  }
  return kernel;
}

Error claim_outputs(std::span<const ParamSpec> params, std::span<const LaunchArg> args) noexcept {
  const Error error = rt::no_host_memory();
  for (std::size_t i = 0; i < args.size() && i < params.size(); ++i)
    if (args[i].is_buffer && params[i].access != ir::Access::In) rt::claim(args[i].binding, error);
  return error;
}

struct KernelCore::State {
  std::string name, place;
  Where where;
  bool registered;
  std::vector<ParamSpec> params;
  std::vector<std::string> param_names;
  std::shared_ptr<const ConfigSpace> space;
  std::vector<ConfigAxis> axes;
  std::atomic<const VariantSlot*> default_slot{nullptr};
  std::shared_mutex mutex;        // guards the lists only, never held while recording
  std::deque<VariantSlot> slots;  // addresses are stable
};

namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// The declared name in one parameter's text; nothing where it has none.
std::string declared_name(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n')) text.remove_suffix(1);
  std::size_t start = text.size();
  while (start > 0 && is_word(text[start - 1])) --start;
  const bool alone = text.substr(0, start).find_first_not_of(" \t\n") == std::string_view::npos;
  if (start == text.size() || alone || (text[start] >= '0' && text[start] <= '9')) return "";
  return std::string(text.substr(start));
}

// "(In<f32, 2> x, Val<f32> a)" -> x, a.
std::vector<std::string> declared_names(std::string_view text) {
  std::vector<std::string> names;
  int depth = 0;
  std::size_t start = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if ((c == ',' && depth == 1) || (c == ')' && depth == 0)) {
      const std::string_view piece = text.substr(start, i - start);
      if (piece.find_first_not_of(" \t\n") != std::string_view::npos) {
        // "(x, y)" names without types, as local_kernel takes them.
        const std::size_t first = piece.find_first_not_of(" \t\n"), last = piece.find_last_not_of(" \t\n");
        const std::string_view trimmed = piece.substr(first, last - first + 1);
        bool word = true;
        for (char w : trimmed) word &= is_word(w);
        names.push_back(word ? std::string(trimmed) : declared_name(piece));
      }
      start = i + 1;
    }
  }
  return names;
}

// Launches, and the variants that are made for them, belong to the host.
void refuse_in_body(const std::string& kernel) {
  if (!Recorder::active()) return;
  Recorder& recorder = Recorder::current(Where::current());
  std::string message =
      "kernel '" + kernel + "' is launched inside the body of a kernel; call a C++ function instead, launches belong to the host";
  // The line before the launch; where there is none yet, the kernel's.
  if (recorder.last().line() == 0) recorder.fail(std::move(message), recorder.kernel().loc);
  recorder.fail(std::move(message), recorder.last());
}

}  // namespace

std::string Definition::kernel_name(const std::string& tag) {
  std::string name = tag;
  for (const std::string unnamed : {"{anonymous}::", "(anonymous namespace)::", "<unnamed>::"}) {
    for (std::size_t at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed)) name.erase(at, unnamed.size());
  }
  constexpr std::string_view suffix = "_kiln_tag";
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

KernelCore::KernelCore(Definition definition, std::vector<ParamSpec> params, std::shared_ptr<const ConfigSpace> space) : state_(new State) {
  State& s = *state_;
  s.name = std::move(definition.name);
  s.where = definition.where;
  s.place = dsl::place(definition.where);
  s.registered = definition.registered;
  s.params = std::move(params);
  s.space = std::move(space);
  if (s.space) s.axes = s.space->axes();
  std::vector<std::string> names = declared_names(definition.parameters);
  if (s.space && names.size() == s.params.size() + 1) names.erase(names.begin());  // the config
  names.resize(s.params.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool twice = std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
                       names.begin() + static_cast<std::ptrdiff_t>(i);
    if (names[i].empty() || twice) names[i] = "p" + std::to_string(i);
  }
  s.param_names = std::move(names);
  if (s.registered) Registry::instance().add(this);
}

// A registered kernel dies when its library is unloaded or the process ends: launches may still be under way then, so what they name stays.
KernelCore::~KernelCore() {
  if (state_->registered) {
    Registry::instance().remove(this);
    static std::vector<State*>& immortal = *new std::vector<State*>;
    static std::mutex& mutex = *new std::mutex;
    const std::lock_guard lock(mutex);
    immortal.push_back(state_);
  } else {
    delete state_;
  }
}

const std::string& KernelCore::name() const { return state_->name; }
std::string KernelCore::place() const { return state_->place; }
const std::vector<ConfigAxis>& KernelCore::axes() const { return state_->axes; }
std::string KernelCore::config_type() const { return state_->space ? state_->space->struct_name : ""; }
const ConfigSpace* KernelCore::config_space() const { return state_->space.get(); }

std::vector<ParamInfo> KernelCore::params() const {
  std::vector<ParamInfo> list;
  for (std::size_t i = 0; i < state_->params.size(); ++i) list.push_back({state_->param_names[i], type_text(state_->params[i])});
  return list;
}

std::vector<std::string> KernelCore::configs() const {
  if (!state_->space) return {""};
  std::vector<std::string> list;
  if (!state_->space->problem.empty()) return list;
  state_->space->each([&](const ConfigBits& bits) {
    if (!state_->space->refusal(bits)) list.push_back(state_->space->text(bits));
  });
  return list;
}

Result<std::shared_ptr<const Variant>> KernelCore::variant(const std::string& config) const {
  ConfigBits bits{};
  if (state_->space) {
    if (!state_->space->problem.empty()) return make_error(ErrorCode::Validation, "Config", state_->space->problem, name(), place());
    Result<ConfigBits> parsed = state_->space->parse(config);
    if (!parsed) { return make_error(ErrorCode::Validation, "Config", parsed.error().data().message, name(), place()); }
    bits = *parsed;
    if (auto why = state_->space->refusal(bits)) return make_error(ErrorCode::Validation, "Config", *why, name(), place());
  } else if (!config.empty()) {
    return make_error(ErrorCode::Validation, "Config", "the kernel has no config, but '" + config + "' was given", name(), place());
  }
  const VariantSlot& s = slot(bits);
  if (s.error) return *s.error;
  if (s.variant == nullptr) return rt::no_host_memory();
  return s.variant;
}

// --- recording ----------------------------------------------------------------------------------------------------------

ir::Kernel KernelCore::signature(const ConfigBits& config) const {
  std::string full = state_->name;
  if (state_->space && state_->space->problem.empty()) full += "@" + state_->space->text(config);
  return signature_kernel(full, state_->params, state_->param_names, state_->where);
}

Result<ir::Kernel> KernelCore::record_bits(const ConfigBits& config) const {
  ir::Kernel kernel = signature(config);
  if (state_->space) {
    if (!state_->space->problem.empty()) return make_error(ErrorCode::Validation, "Config", state_->space->problem, kernel.name, place());
    if (auto why = state_->space->refusal(config)) return make_error(ErrorCode::Validation, "Config", *why, kernel.name, place());
  }
  {
    Recorder recorder(kernel);
    std::optional<Error> error;
    try {
      run_body(recorder, config);
    } catch (const Exception& e) { error = e.error(); } catch (const std::bad_alloc&) {
      throw;  // there may be memory the next time
    } catch (const std::exception& e) {
      error = make_error(ErrorCode::CompileValidation, "Recording", std::string("the body of the kernel threw: ") + e.what(), kernel.name,
                         place());
    } catch (...) {
      error = make_error(ErrorCode::CompileValidation, "Recording", "the body of the kernel threw something that is no std::exception",
                         kernel.name, place());
    }
    if (recorder.exhausted()) throw std::bad_alloc();
    if (recorder.failure()) return *recorder.failure();
    if (error) return *error;
  }
  ir::compact(kernel);
  return kernel;
}

const VariantSlot& KernelCore::slot(const ConfigBits& config) const {
  refuse_in_body(state_->name);  // recording this very kernel would wait for itself
  try {
    return recorded_slot(config);
  } catch (const std::bad_alloc&) { return no_slot(); }
}

const VariantSlot& KernelCore::recorded_slot(const ConfigBits& config) const {
  const VariantSlot* found = nullptr;
  {
    const std::shared_lock lock(state_->mutex);
    for (const VariantSlot& s : state_->slots) {
      if (s.key == config) found = &s;
    }
  }
  if (!found) {
    const std::unique_lock lock(state_->mutex);
    for (const VariantSlot& s : state_->slots) {
      if (s.key == config) found = &s;
    }
    if (!found) found = &state_->slots.emplace_back(config);
  }
  std::call_once(found->once, [&] {
    // Two kernels of one name: neither runs.
    if (state_->registered) {
      if (auto own = Registry::instance().find(state_->name); !own && own.error().rule() == "DuplicateKernel") found->error = own.error();
    }
    if (!found->error) {
      Result<ir::Kernel> recorded = record_bits(config);
      if (recorded) found->variant = std::make_shared<Variant>(std::move(*recorded));
      else found->error = recorded.error();
    }
    if (found->error) found->variant = std::make_shared<Variant>(signature(config), *found->error);
  });
  return *found;
}

const VariantSlot& KernelCore::default_slot() const {
  if (const VariantSlot* s = state_->default_slot.load(std::memory_order_acquire)) return *s;
  const VariantSlot& s = slot(state_->space ? state_->space->defaults : ConfigBits{});
  if (&s == &no_slot()) return s;
  state_->default_slot.store(&s, std::memory_order_release);
  return s;
}

Error KernelCore::out_of_memory(std::span<const LaunchArg> args) const noexcept { return claim_outputs(state_->params, args); }

// --- launch -----------------------------------------------------------------------------------------------------------------

// "argument 2 ('by') is 300, which does not fit Val<u8>: it takes 0 to 255".
static std::string unfit_text(const Unfit& unfit, ir::Type type, const ParamInfo& param) {
  const std::string value = unfit.is_float        ? ir::shortest_decimal(ir::Type::F64, std::bit_cast<std::uint64_t>(unfit.value))
                            : unfit.negative != 0 ? std::to_string(unfit.negative)
                                                  : std::to_string(unfit.positive);
  std::string takes;
  if (ir::is_integer(type)) {
    const std::uint64_t top = ir::is_signed(type) ? ir::value_mask(type) >> 1 : ir::value_mask(type);
    takes = (ir::is_signed(type) ? "-" + std::to_string(top + 1) : "0") + " to " + std::to_string(top);
  } else if (unfit.is_float) {
    // Of a narrow type as it is: the shortest decimal that is read as it would round it.
    const std::uint64_t top = ir::is_narrow(type) ? ir::narrow_format(type).largest : 0x7f7fffff;
    takes = "numbers up to " + (type == ir::Type::F32
                                    ? ir::shortest_decimal(type, top)
                                    : ir::shortest_decimal(ir::Type::F64, std::bit_cast<std::uint64_t>(ir::float_value(type, top))));
  } else {
    takes = "integers that are exact in it, such as all up to 2^" + std::to_string(ir::precision(type));
  }
  return "argument " + std::to_string(unfit.argument) + " ('" + param.name + "') is " + value + ", which does not fit " + param.type +
         ": it takes " + takes;
}

static Error unfit_error(const Target& target, const std::string& kernel, std::span<const LaunchArg> args, const Unfit& unfit) {
  return make_error(ErrorCode::Validation, "ArgumentValue",
                    unfit_text(unfit, args[unfit.argument - 1].type, target.kernel->params()[unfit.argument - 1]), kernel,
                    target.kernel->place());
}

namespace {

// Calls `use(stream, request)` with the request of the call; where that cannot be made it is `lost(why)`, null for want of memory.
template <class Use, class Lost>
auto with_request(const Call& call, Use&& use, Lost&& lost) -> decltype(lost(nullptr)) {
  if (Recorder::active()) refuse_in_body(call.target.kernel->name());
  try {
    std::optional<Error> error;
    LaunchRequest request{.variant = &variant_of(*call.target.variant), .config = call.config, .args = call.args, .mode = call.target.mode};
    request.dynamic_grid = call.counts;
    if (call.unfit.argument != 0) {
      error = unfit_error(call.target, request.variant->name(), call.args, call.unfit);
      request.unfit = &*error;
    }
    if (call.stream) return use(*call.stream, request);
    if (call.client) return use(call.client->default_stream(), request);
    return use(Client::default_client().default_stream(), request);
  } catch (const Exception& e) { return lost(&e.error()); } catch (const std::bad_alloc&) {
    return lost(nullptr);
  }
}

}  // namespace

Result<void> launch(const Call& call) {
  return with_request(
      call, [](const Stream& stream, const LaunchRequest& request) { return kiln::launch(stream, request); },
      [&](const Error* why) -> Result<void> {
        const Error error = why != nullptr ? *why : call.target.kernel->out_of_memory(call.args);
        return call.stream ? rt::not_issued(*call.stream, error) : error;
      });
}

Result<PreparedLaunch> prepare(const Call& call) {
  return with_request(
      call, [](const Stream& stream, const LaunchRequest& request) { return PreparedLaunch::prepare(stream, request); },
      [](const Error* why) -> Result<PreparedLaunch> { return why != nullptr ? *why : rt::no_host_memory(); });
}

Result<void> rebind(const Target& target, PreparedLaunch& prepared, std::span<const LaunchArg> args, const Unfit& unfit) {
  try {
    if (unfit.argument != 0) return unfit_error(target, variant_of(*target.variant).name(), args, unfit);
    return prepared.rebind(args);
  } catch (const std::bad_alloc&) { return rt::no_host_memory(); }
}

}  // namespace kiln::dsl
