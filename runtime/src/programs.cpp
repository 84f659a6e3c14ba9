#include "src/programs.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "kiln/ir/text.h"
#include "src/bundle/modules.h"
#include "src/bundle/search.h"
#include "src/config.h"
#include "src/environment/environment.h"
#include "src/logging.h"
#include "src/make_error.h"
#include "src/profile/timelines.h"
#include "src/program_key.h"

namespace kiln::rt {
namespace {

using Mode = ir::PrepareOptions::Mode;

constexpr std::int64_t kLongCompile = 5'000'000;  // microseconds: whoever waits is told why

bool is_checked(const Variant& variant, Mode mode) {
  return mode == Mode::AsKernel ? variant.recorded().options.checked : mode == Mode::Checked;
}

Error compile_error(ErrorCode code, const std::string& kernel, std::string message, const char* rule = "") {
  return make_error(code, rule, std::move(message), {.kernel = kernel});
}

constexpr const char *kNoCodeGenerator = "NoCodeGenerator", *kNoEmbeddedCode = "NoEmbeddedCode";

// The device's room, or the host's, may be there the next time, and a library with the code; all other failures are the kernel's own, and
// stay.
bool may_change(const Result<const Program*>& outcome) {
  if (outcome.has_value()) return false;
  const Error& error = outcome.error();
  return error.code() == ErrorCode::OutOfMemory || error.rule() == kNoCodeGenerator || error.rule() == kNoEmbeddedCode;
}

// A kernel that needed no compiling of its own.
void count(const Result<const Program*>& outcome) {
  KernelRegistration registration;
  if (outcome.has_value()) registration.loaded();
  else registration.failed(outcome.error());
}

// What a bundle's text is held against. A text costs as much as the key: it is made where there is a bundle only.
std::string bundle_text(const Variant& variant) { return is_embedded(variant.name()) ? ir::print(variant.recorded()) : std::string(); }

// How a program was had.
class Told {
 public:
  Told(const std::string& kernel, const std::string& arch) : kernel_(kernel), arch_(arch) {}
  void say_it(const std::string& how, const CompiledCode& code, bool compiled) const {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin_).count();
    const bool slow = compiled && us > kLongCompile;
    const LogLevel level = slow ? LogLevel::Warning : LogLevel::Info;
    if (!logs(LogArea::Compile, level)) return;
    say(LogArea::Compile, level,
        "kernel '" + kernel_ + "' " + how + " for " + arch_ + " in " + std::to_string(us / 1000) + "." + std::to_string(us / 100 % 10) +
            " ms, " + std::to_string(code.code.size()) + " bytes" +
            (slow ? "; a loop of C++ unrolls, and range(n) stays a loop; a require() that proves indices in range saves the test of each"
                  : ""));
  }

 private:
  const std::string &kernel_, &arch_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::vector<LaunchPlan::Use> uses_of(const LaunchFacts& facts, const std::vector<ir::Visibility>& io) {
  std::vector<LaunchPlan::Use> uses;
  std::size_t buffer = 0;
  for (std::uint32_t i = 0; i < facts.params.size(); ++i) {
    const ParamFacts& param = facts.params[i];
    if (!param.is_buffer) continue;
    const ir::Visibility how = buffer < io.size() ? io[buffer] : ir::Visibility::ReadWrite;
    ++buffer;
    const bool writes = ir::writes(how);
    if (!ir::reads(how) && !writes) continue;
    const bool plain = param.rank == 1 && !param.strided;
    uses.push_back({i, ir::reads(how), writes, writes && param.access == ir::Access::Out && !param.strided,
                    plain ? ir::byte_size(param.type) : 0, &param.name});
  }
  return uses;
}

LaunchPlan::Fields fields_of(const ir::ParamLayout& layout) {
  LaunchPlan::Fields fields;
  for (const ir::ParamField& f : layout.fields) {
    switch (f.kind) {
      case ir::ParamField::Kind::Pointer: fields.pointers.push_back({f.param, 0, f.offset}); break;
      case ir::ParamField::Kind::Extent: fields.extents.push_back({f.param, f.dimension, f.offset}); break;
      case ir::ParamField::Kind::Stride: fields.strides.push_back({f.param, f.dimension, f.offset}); break;
      case ir::ParamField::Kind::Scalar: fields.scalars.push_back({f.param, f.offset, f.size, ir::value_mask(f.type)}); break;
      case ir::ParamField::Kind::Fault: fields.fault = f.offset; break;
      case ir::ParamField::Kind::Log: fields.log = f.offset; break;
    }
  }
  return fields;
}

}  // namespace

const LaunchPlan& Programs::plan(const Variant& variant, Mode mode) {
  const bool checked = is_checked(variant, mode);
  const std::uint64_t key = variant.id() * 2 + checked;
  std::atomic<const LaunchPlan*>& recent = recent_[key % kRecent];
  if (const LaunchPlan* plan = recent.load(std::memory_order_acquire); plan != nullptr && plan->key_ == key) return *plan;
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) {
      recent.store(found->second.get(), std::memory_order_release);
      return *found->second;
    }
  }
  static std::atomic<std::uint64_t> last_number{0};
  auto made = std::make_unique<LaunchPlan>();
  made->number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  made->name = std::make_shared<const std::string>(variant.name());
  made->key_ = key;
  const Result<const ir::Prepared*> prepared = variant.prepared(checked ? Mode::Checked : Mode::Unchecked);
  made->facts = launch_facts(variant.recorded(), prepared.has_value() ? *prepared : nullptr);
  if (!prepared.has_value()) {
    made->error = prepared.error();
  } else {
    auto requirements = Requirements::of((*prepared)->kernel);
    if (requirements.has_value()) {
      made->requirements = std::move(*requirements);
    } else {
      made->error = requirements.error();
    }
    made->io = (*prepared)->io;
    made->uses = uses_of(made->facts, made->io);
    made->layout = ir::param_layout((*prepared)->kernel, checked);
    made->fields = fields_of(made->layout);
  }
  const std::unique_lock lock(mutex_);
  return *plans_.try_emplace(key, std::move(made)).first->second;  // another thread may have been first
}

const Programs::Entry* Programs::find(const LaunchPlan& plan, const Shape& shape) const {
  for (const Entry& e : plan.entries_) {
    if (e.shape != shape) continue;
    plan.last_.store(&e, std::memory_order_release);
    return &e;
  }
  return nullptr;
}

std::shared_ptr<const Programs::Outcome> Programs::take_unreported(const LaunchPlan& plan, const Shape& shape) {
  std::vector<Entry>& all = own(plan).unreported_;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& e) { return e.shape == shape; });
  if (found == all.end()) return nullptr;
  std::shared_ptr<const Outcome> outcome = std::move(found->outcome);
  all.erase(found);
  if (all.empty()) std::erase(unreported_, &own(plan));
  return outcome;
}

Result<const Program*> Programs::get(const LaunchPlan& plan, const Variant& variant, Mode mode, const Dim3& block, bool aligned16) {
  const Shape shape{{block.x, block.y, block.z}, aligned16};
  if (const Entry* last = plan.last_.load(std::memory_order_acquire); last != nullptr && last->shape == shape) return *last->outcome;
  bool failed_before = false;
  {
    const std::shared_lock lock(mutex_);
    if (const Entry* entry = find(plan, shape)) return *entry->outcome;
    failed_before = !plan.unreported_.empty();
  }
  if (failed_before) {
    const std::unique_lock lock(mutex_);
    if (const auto failure = take_unreported(plan, shape)) return *failure;
  }
  const Result<const ir::Prepared*> prepared = variant.prepared(mode);
  if (!prepared.has_value()) return prepared.error();
  CompileOptions options = device_.compile_options((*prepared)->kernel, block, aligned16);
  const ProgramKey key{ir::print((*prepared)->kernel), options};
  std::string serialised = serialise(key), recorded = bundle_text(variant);

  std::vector<std::unique_ptr<Job>> batch;
  std::shared_ptr<Flight> flight;
  std::unique_lock lock(flight_mutex_);
  if (const auto at = flights_.find(serialised); at == flights_.end()) {
    // It lives as long as this call, which waits for it.
    queue_.push_back(
        make_job(serialised, std::move(options), {std::shared_ptr<const void>(), *prepared}, std::move(recorded), plan, shape, false));
    flight = queue_.back()->flight;
    try {
      flights_.emplace(std::move(serialised), flight);
    } catch (...) {
      queue_.pop_back();
      throw;
    }
    start(batch);
  } else {
    flight = at->second;
    if (Job* job = flight->waiting) {
      const auto same = [&](const Asked& a) { return a.plan == &plan && a.shape == shape; };
      if (std::none_of(job->asked.begin(), job->asked.end(), same))
        job->asked.push_back({&plan, shape, std::make_optional<KernelRegistration>(), false});
      start(batch);
    }
  }
  if (batch.empty()) {
    landed_.wait(lock, [&] { return flight->landed; });
  } else {
    lock.unlock();
    run(batch);
    lock.lock();
  }
  const bool was_queued = flight->was_queued, first = flight->first_plan == &plan && flight->first_shape == shape;
  lock.unlock();

  const std::shared_ptr<const Outcome> outcome(flight, &flight->outcome);
  const std::unique_lock plans_lock(mutex_);
  if (const Entry* known = find(plan, shape)) return *known->outcome;
  (void)take_unreported(plan, shape);  // it is reported here
  if (may_change(*outcome) || (was_queued && !outcome->has_value())) return *outcome;
  if (!first) count(*outcome);  // another kernel's program
  own(plan).entries_.push_back({shape, outcome});
  return *outcome;
}

void Programs::share(const LaunchPlan& plan, const Shape& shape, const std::shared_ptr<Flight>& flight) {
  const std::unique_lock lock(mutex_);
  if (find(plan, shape) != nullptr) return;
  own(plan).entries_.push_back({shape, std::shared_ptr<const Outcome>(flight, &flight->outcome)});
  count(flight->outcome);
}

bool Programs::queue(const LaunchPlan& plan, const Variant& variant, Mode mode, const Dim3& block, bool aligned16) {
  const Shape shape{{block.x, block.y, block.z}, aligned16};
  if (const Entry* last = plan.last_.load(std::memory_order_acquire); last != nullptr && last->shape == shape) return false;
  const auto is_queued = [&] { return std::find(plan.queued_.begin(), plan.queued_.end(), shape) != plan.queued_.end(); };
  {
    const std::shared_lock lock(mutex_);
    if (is_queued() || find(plan, shape) != nullptr) return false;
  }
  const Result<const ir::Prepared*> prepared = variant.prepared(mode);
  if (!prepared.has_value()) return false;  // the plan has the error, and every launch
  CompileOptions options = device_.compile_options((*prepared)->kernel, block, aligned16);
  const ProgramKey key{ir::print((*prepared)->kernel), options};
  std::string serialised = serialise(key), recorded = bundle_text(variant);
  {
    const std::unique_lock lock(mutex_);
    if (is_queued() || find(plan, shape) != nullptr) return false;  // another thread was first
    own(plan).queued_.push_back(shape);
    (void)take_unreported(plan, shape);
  }
  const auto no_longer_queued = [&] {
    const std::unique_lock lock(mutex_);
    std::erase(own(plan).queued_, shape);
  };
  std::shared_ptr<Flight> other;  // an equal kernel's
  bool landed = false;
  try {
    auto owned = std::make_shared<const ir::Prepared>(**prepared);
    const std::lock_guard lock(flight_mutex_);
    if (const auto at = flights_.find(serialised); at == flights_.end()) {
      queue_.reserve(queue_.size() + 1);
      auto job = make_job(serialised, std::move(options), std::move(owned), std::move(recorded), plan, shape, true);
      flights_.emplace(std::move(serialised), job->flight);
      queue_.push_back(std::move(job));
    } else if (Job* waiting = at->second->waiting) {
      waiting->asked.push_back({&plan, shape, std::make_optional<KernelRegistration>(), true});
    } else {
      other = at->second;
      landed = other->landed;
    }
  } catch (...) {
    no_longer_queued();
    throw;
  }
  if (other != nullptr) {  // where it is being compiled, who launches this kernel will find it
    no_longer_queued();
    if (landed) share(plan, shape, other);
    return false;
  }
  if (logs(LogArea::Compile, LogLevel::Debug)) say(LogArea::Compile, LogLevel::Debug, "kernel '" + *plan.name + "' is queued");
  return true;
}

void Programs::compile_queued() {
  std::vector<std::unique_ptr<Job>> batch;
  std::unique_lock lock(flight_mutex_);
  start(batch);
  if (!batch.empty()) {
    lock.unlock();
    run(batch);
    lock.lock();
  }
  landed_.wait(lock, [&] { return flying_ == 0; });
}

std::unique_ptr<Programs::Job> Programs::make_job(std::string key, CompileOptions options, std::shared_ptr<const ir::Prepared> prepared,
                                                  std::string recorded, const LaunchPlan& plan, const Shape& shape, bool queued) {
  auto job = std::make_unique<Job>();
  // What those who wait get when the thread that compiles is torn away by an exception.
  job->flight =
      std::make_shared<Flight>(compile_error(ErrorCode::CompilePanicked, prepared->kernel.name, "compiling the kernel was abandoned"));
  job->flight->was_queued = queued;
  job->flight->waiting = job.get();
  job->flight->first_plan = &plan;
  job->flight->first_shape = shape;
  job->key = std::move(key);
  job->options = std::move(options);
  job->prepared = std::move(prepared);
  job->recorded = std::move(recorded);
  job->asked.push_back({&plan, shape, std::make_optional<KernelRegistration>(), queued});
  return job;
}

void Programs::start(std::vector<std::unique_ptr<Job>>& batch) noexcept {
  batch.swap(queue_);
  flying_ += batch.size();
  for (const auto& job : batch) job->flight->waiting = nullptr;
}

// On as many threads as there are to be had; this one is among them, so that all of it is done.
void Programs::run(std::vector<std::unique_ptr<Job>>& batch) noexcept {
  const auto begin = std::chrono::steady_clock::now();
  if (std::any_of(batch.begin(), batch.end(), [](const auto& job) { return job->flight->was_queued; })) {
    const std::unique_lock lock(mutex_);
    for (LaunchPlan* plan : unreported_) plan->unreported_.clear();  // of batches before: stale
    unreported_.clear();
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&]() noexcept {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < batch.size();) run_one(*batch[i]);
  };
  std::vector<std::thread> others;
  if (batch.size() > 1) try {
      const std::size_t most = std::min(batch.size(), std::size_t{configured_number_or_threads(Setting::Parallelism)});
      others.reserve(most - 1);
      while (others.size() + 1 < most) others.emplace_back(work);
    } catch (const std::exception&) {  // no thread is to be had: fewer do the same work
    }
  work();
  const std::size_t threads = others.size() + 1;
  for (std::thread& thread : others) thread.join();
  if (batch.size() > 1 && logs(LogArea::Compile, LogLevel::Info)) try {
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
      say(LogArea::Compile, LogLevel::Info,
          std::to_string(batch.size()) + " kernels compiled in " + std::to_string(ms) + " ms on " + std::to_string(threads) +
              (threads == 1 ? " thread" : " threads"));
    } catch (const std::bad_alloc&) {}
}

void Programs::run_one(Job& job) noexcept {
  Flight& flight = *job.flight;
  try {
    flight.outcome = obtain(job);
  } catch (...) {  // no memory of the host, not even for an error that says so
    flight.outcome = Outcome(no_host_memory());
  }
  settle(job);
  try {
    hand_out(job);
  } catch (...) {  // no memory of the host for what is kept: who launches these kernels looks further
  }
  const std::lock_guard lock(flight_mutex_);
  // Who waits for it has it; the next launch tries again.
  if (may_change(flight.outcome) || (flight.was_queued && !flight.outcome.has_value())) flights_.erase(job.key);
  flight.landed = true;
  --flying_;
  landed_.notify_all();
}

void Programs::settle(Job& job) noexcept {
  const Outcome& outcome = job.flight->outcome;
  for (Asked& asked : job.asked) {
    if (!outcome.has_value()) asked.registration->failed(outcome.error());
    else if (&asked == &job.asked.front() && !job.found) asked.registration->compiled(job.stored);
    else asked.registration->loaded();
  }
}

// To the plans whose launches asked for it.
void Programs::hand_out(Job& job) {
  const std::shared_ptr<const Outcome> outcome(job.flight, &job.flight->outcome);
  const std::unique_lock lock(mutex_);
  for (Asked& asked : job.asked)
    if (asked.queued) std::erase(own(*asked.plan).queued_, asked.shape);
  if (may_change(*outcome)) return;
  for (Asked& asked : job.asked) {
    LaunchPlan& plan = own(*asked.plan);
    if (find(plan, asked.shape) != nullptr) continue;
    if (outcome->has_value() || !job.flight->was_queued) {
      plan.entries_.push_back({asked.shape, outcome});
    } else if (asked.queued) {
      if (plan.unreported_.empty()) unreported_.push_back(&plan);
      plan.unreported_.push_back({asked.shape, outcome});
    }
  }
}

// Null, and `error`: the device does not take the code.
std::unique_ptr<Program> Programs::loaded(const Job& job, const CompiledCode& code, std::optional<Error>& error) {
  const ir::Prepared& prepared = *job.prepared;
  const LaunchPlan& plan = *job.asked.front().plan;
  auto on_device = [&] {
    const HostSpan span("load", prepared.kernel.name);
    return device_.load(code, {prepared.kernel.name, plan.layout});
  }();
  if (!on_device.has_value()) {
    error = on_device.error();
    return nullptr;
  }
  auto program = std::make_unique<Program>();
  program->name = plan.name;
  program->place = plan.facts.place;
  program->code = std::move(*on_device);
  program->sites = prepared.sites;
  program->logs = prepared.logs;
  program->log_stride = ir::log_stride(prepared.kernel);
  return program;
}

// The best of what is embedded that the device takes. What one driver refuses may be fine on another, so the next best is tried.
std::unique_ptr<Program> Programs::embedded(Job& job, std::vector<std::string>& why_not, std::optional<Error>& error) {
  const std::string& kernel = job.prepared->kernel.name;
  const LaunchPlan& plan = *job.asked.front().plan;
  std::string device = device_.label() + ", " + job.options.arch;
  if (job.options.ptx_version != 0)
    device += ", PTX up to " + std::to_string(job.options.ptx_version / 10) + "." + std::to_string(job.options.ptx_version % 10);
  const Shape& shape = job.asked.front().shape;
  device += ", in blocks of (" + std::to_string(shape.block[0]) + ", " + std::to_string(shape.block[1]) + ", " +
            std::to_string(shape.block[2]) + ")";
  if (!shape.aligned16) device += " with arguments at any address";
  BundleSearch search({kernel,
                       job.recorded,
                       plan.facts.place,
                       job.prepared->kernel.options.checked,
                       {job.options, device_.properties().compute_capability},
                       std::move(device)});
  const Told told(kernel, job.options.arch);
  while (std::optional<BundleSearch::Item> item = search.next()) {
    std::optional<Error> refused;
    if (auto program = loaded(job, item->code, refused)) {
      job.found = true;
      told.say_it("loaded from " + item->what, item->code, false);
      return program;
    }
    if (!error) error = refused;
    if (refused->code() == ErrorCode::OutOfMemory || refused->is_device_poisoned()) {
      error = refused;
      return nullptr;
    }
    if (logs(LogArea::Compile, LogLevel::Warning))
      say(LogArea::Compile, LogLevel::Warning, "kernel '" + kernel + "': " + item->what + " is refused: " + refused->data().message);
  }
  why_not = search.why_not();
  return nullptr;
}

std::unique_ptr<Program> Programs::stored(Job& job, Environment& environment) {
  const Told told(job.prepared->kernel.name, job.options.arch);
  const std::optional<CompiledCode> code = environment.find(job.key, job.prepared->kernel.name);
  if (!code) return nullptr;
  std::optional<Error> error;  // what the device says of the code that is compiled anew is what holds
  auto program = loaded(job, *code, error);
  if (program == nullptr) return nullptr;
  job.found = true;
  told.say_it("loaded", *code, false);
  return program;
}

// What somebody else's code generator makes is not kept: it has no identity that a key could hold.
std::unique_ptr<Program> Programs::compiled(Job& job, Compiler& compiler, Environment* environment, std::optional<Error>& error) {
  const std::string& kernel = job.prepared->kernel.name;
  compilations_.fetch_add(1, std::memory_order_relaxed);
  const Told told(kernel, job.options.arch);
  const CompiledCode code = [&] {
    const HostSpan span("compile", kernel);
    return compiler.compile(*job.prepared, job.options);
  }();
  auto program = loaded(job, code, error);
  if (program == nullptr) return nullptr;
  told.say_it("compiled", code, true);
  if (environment != nullptr) job.stored = environment->store(job.key, kernel, job.options.arch, code);
  return program;
}

Programs::Outcome Programs::keep(std::unique_ptr<Program> program) {
  const std::lock_guard lock(flight_mutex_);
  programs_.push_back(std::move(program));
  return programs_.back().get();
}

// The first place that has it. The environment is not opened for what is embedded.
Programs::Outcome Programs::obtain(Job& job) {
  const std::string& kernel = job.prepared->kernel.name;
  try {
    std::optional<Error> error;
    std::vector<std::string> why_not;
    if (compiler_ == nullptr && !job.recorded.empty()) {
      if (auto program = embedded(job, why_not, error)) return keep(std::move(program));
      if (error && (error->code() == ErrorCode::OutOfMemory || error->is_device_poisoned())) return *error;
    }
    const std::shared_ptr<Environment> environment = compiler_ == nullptr ? process_environment() : nullptr;
    if (environment != nullptr)
      if (auto program = stored(job, *environment)) return keep(std::move(program));
    Compiler* compiler = compiler_;
    if (compiler == nullptr) {
      const CodegenHandle& handle = code_generator();
      if (handle.compiler == nullptr) {
        if (error) return *error;  // the device's word on what is embedded
        if (why_not.empty()) return compile_error(ErrorCode::CompileGeneric, kernel, handle.error, kNoCodeGenerator);
        std::string message = "what is embedded of the kernel cannot be used, and there is no code generator to compile it";
        for (const std::string& why : why_not) message += "\n  " + why;
        return compile_error(ErrorCode::CompileUnsupported, kernel, message + "\n" + handle.error, kNoEmbeddedCode);
      }
      compiler = handle.compiler;
    }
    error.reset();
    auto program = compiled(job, *compiler, environment.get(), error);
    if (program == nullptr) return *error;
    return keep(std::move(program));
  } catch (const CompileResourceError& e) {
    return compile_error(ErrorCode::OutOfMemory, kernel, e.what(), "NoThread");
  } catch (const CompileError& e) {
    return compile_error(e.unsupported() ? ErrorCode::CompileUnsupported : ErrorCode::CompileGeneric, kernel, e.what());
  } catch (const std::bad_alloc&) {
    return compile_error(ErrorCode::OutOfMemory, kernel, "there was no host memory to compile the kernel");
  } catch (const std::exception& e) {
    return compile_error(ErrorCode::CompilePanicked, kernel, std::string("the code generator failed: ") + e.what());
  } catch (...) {
    return compile_error(ErrorCode::CompilePanicked, kernel,
                         "the code generator threw something that is no exception of the standard library");
  }
}

}  // namespace kiln::rt
