#include "src/programs.h"

#include "kiln/ir/text.h"
#include "src/program_key.h"

namespace kiln::rt {
namespace {

using Mode = ir::PrepareOptions::Mode;

bool is_checked(const Variant& variant, Mode mode) {
  return mode == Mode::AsKernel ? variant.recorded().options.checked : mode == Mode::Checked;
}

Error compile_error(ErrorCode code, const std::string& kernel, std::string message, const char* rule = "") {
  Error::Data data;
  data.code = code;
  data.rule = rule;
  data.kernel = kernel;
  data.message = std::move(message);
  return Error(std::move(data));
}

// The device's room, or the host's, may be there the next time; all other failures are the kernel's own, and stay.
bool may_change(const Result<const Program*>& outcome) { return !outcome.has_value() && outcome.error().code() == ErrorCode::OutOfMemory; }

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
  auto made = std::make_unique<LaunchPlan>();
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
    made->layout = ir::param_layout((*prepared)->kernel, checked);
  }
  const std::unique_lock lock(mutex_);
  return *plans_.try_emplace(key, std::move(made)).first->second;  // another thread may have been first
}

Result<const Program*> Programs::get(const LaunchPlan& plan, const Variant& variant, Mode mode, const Dim3& block, bool aligned16) {
  const std::array<std::uint32_t, 3> shape{block.x, block.y, block.z};
  const auto fits = [&](const LaunchPlan::Entry& e) { return e.block == shape && e.aligned16 == aligned16; };
  if (const LaunchPlan::Entry* last = plan.last_.load(std::memory_order_acquire); last != nullptr && fits(*last)) return *last->outcome;
  const auto find = [&]() -> const Outcome* {
    for (const LaunchPlan::Entry& e : plan.entries_) {
      if (!fits(e)) continue;
      plan.last_.store(&e, std::memory_order_release);
      return e.outcome.get();
    }
    return nullptr;
  };
  {
    const std::shared_lock lock(mutex_);
    if (const Outcome* outcome = find()) return *outcome;
  }
  const Result<const ir::Prepared*> prepared = variant.prepared(mode);
  if (!prepared.has_value()) return prepared.error();
  std::shared_ptr<const Outcome> outcome = compiled(**prepared, plan, device_.compile_options((*prepared)->kernel, block, aligned16));
  const std::unique_lock lock(mutex_);
  if (const Outcome* known = find()) return *known;
  if (may_change(*outcome)) return *outcome;
  plans_.at(plan.key_)->entries_.push_back({shape, aligned16, outcome});
  return *outcome;
}

std::shared_ptr<const Programs::Outcome> Programs::compiled(const ir::Prepared& prepared, const LaunchPlan& plan, CompileOptions options) {
  const ProgramKey key{ir::print(prepared.kernel), std::move(options)};
  const std::string serialised = serialise(key);
  // What those who wait get when this thread is torn away by an exception.
  auto own =
      std::make_shared<Flight>(compile_error(ErrorCode::CompilePanicked, prepared.kernel.name, "compiling the kernel was abandoned"));
  std::unique_lock lock(flight_mutex_);
  const auto [at, first] = flights_.try_emplace(serialised, own);
  const std::shared_ptr<Flight> flight = at->second;
  if (first) {
    lock.unlock();
    try {
      own->outcome = compile(prepared, plan, key.options);
    } catch (...) {
      lock.lock();
      own->landed = true;
      landed_.notify_all();
      throw;
    }
    lock.lock();
    own->landed = true;
    landed_.notify_all();
    if (may_change(own->outcome)) flights_.erase(serialised);  // who waits for it has it; the next launch tries again
  } else {
    landed_.wait(lock, [&] { return flight->landed; });
  }
  return {flight, &flight->outcome};
}

Programs::Outcome Programs::compile(const ir::Prepared& prepared, const LaunchPlan& plan, const CompileOptions& options) try {
  const std::string& kernel = prepared.kernel.name;
  Compiler* compiler = compiler_;
  if (compiler == nullptr) {
    const CodegenHandle& handle = code_generator();
    if (handle.compiler == nullptr) return compile_error(ErrorCode::CompileGeneric, kernel, handle.error, "NoCodeGenerator");
    compiler = handle.compiler;
  }
  compilations_.fetch_add(1, std::memory_order_relaxed);
  const CompiledCode code = compiler->compile(prepared, options);
  auto loaded = device_.load(code, {kernel, plan.layout});
  if (!loaded.has_value()) return loaded.error();
  auto program = std::make_unique<Program>();
  program->name = plan.name;
  program->code = std::move(*loaded);
  program->sites = prepared.sites;
  program->logs = prepared.logs;
  program->log_stride = ir::log_stride(prepared.kernel);
  const std::lock_guard lock(flight_mutex_);
  programs_.push_back(std::move(program));
  return programs_.back().get();
} catch (const CompileResourceError& e) {
  return compile_error(ErrorCode::OutOfMemory, prepared.kernel.name, e.what(), "NoThread");
} catch (const CompileError& e) {
  return compile_error(e.unsupported() ? ErrorCode::CompileUnsupported : ErrorCode::CompileGeneric, prepared.kernel.name, e.what());
} catch (const std::bad_alloc&) {
  return compile_error(ErrorCode::OutOfMemory, prepared.kernel.name, "there was no host memory to compile the kernel");
} catch (const std::exception& e) {
  return compile_error(ErrorCode::CompilePanicked, prepared.kernel.name, std::string("the code generator failed: ") + e.what());
} catch (...) {
  return compile_error(ErrorCode::CompilePanicked, prepared.kernel.name,
                       "the code generator threw something that is no exception of the standard library");
}

}  // namespace kiln::rt
