#include "simcuda/driver_state.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace kiln::simcuda {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t from = 0;
  while (from <= list.size()) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    if (comma > from) names.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return names;
}

std::vector<std::string> device_names(const Script& script) {
  if (script.devices.has_value()) return *script.devices;
  const char* names = std::getenv("KILN_SIMCUDA_DEVICES");
  if (names == nullptr || *names == '\0') return {"h200"};
  if (std::string(names) == "none") return {};
  return split(names);
}

constexpr int kDriverVersion = 13000;

}  // namespace

ThreadState& this_thread() {
  static thread_local ThreadState state;  // zero: no stack, no function
  return state;
}

Driver& Driver::get() {
  static Driver& driver = *new Driver;  // never destroyed: its threads may still run when the process ends
  return driver;
}

Driver::Driver()
    : scheduler(mutex, [this](Operation& o) { return execute(o); }, [this](Operation& o, Failure& f) { poison(*o.context, f); }) {
  pthread_atfork(nullptr, nullptr, [] { get().forked_ = true; });  // the child has none of our threads
  script = parse_script("{}");
  Lock lock(mutex);
  const char* faults = std::getenv("KILN_SIMCUDA_FAULTS");
  if (faults == nullptr || *faults == '\0') return;
  try {
    configure(lock, faults);
  } catch (const std::exception& e) {
    script.init = CUDA_ERROR_UNKNOWN;  // a wrong script must not look like a driver without faults
    report(std::string("KILN_SIMCUDA_FAULTS: ") + e.what());
  }
}

CUresult Driver::admit(Entry entry) {
  const bool always =
      entry == Entry::cuInit || entry == Entry::cuDriverGetVersion || entry == Entry::cuGetErrorName || entry == Entry::cuGetErrorString;
  if (!always) {
    if (shut_down_) return CUDA_ERROR_DEINITIALIZED;
    if (forked_ || !initialised_) return CUDA_ERROR_NOT_INITIALIZED;
    if (this_thread().in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  }
  if (!call_faults_) return CUDA_SUCCESS;
  static constexpr const char* kNames[] = {
#define KILN_SIMCUDA_NAME(name, symbol, version, params) #name,
      KILN_CUDA_ENTRIES(KILN_SIMCUDA_NAME)
#undef KILN_SIMCUDA_NAME
  };
  const Lock lock(mutex);
  const CallFault* fault = due(script.calls, [&](const CallFault& f) { return f.name == kNames[static_cast<std::size_t>(entry)]; });
  if (fault == nullptr) return CUDA_SUCCESS;
  Context* context = nullptr;
  if (fault->sticky && current(context) == CUDA_SUCCESS)
    poison(*context, {fault->code, "the fault script poisons the context in " + fault->name});
  return fault->code;
}

CUresult Driver::initialise(Lock&) {
  if (shut_down_) return CUDA_ERROR_DEINITIALIZED;
  if (forked_) return CUDA_ERROR_NOT_INITIALIZED;
  if (script.init.has_value() && *script.init != CUDA_SUCCESS) return *script.init;
  if (initialised_) return CUDA_SUCCESS;
  try {
    read_descriptions();
  } catch (const std::exception& e) {
    report(e.what());
    return CUDA_ERROR_UNKNOWN;
  }
  if (descriptions_->empty()) return CUDA_ERROR_NO_DEVICE;
  for (const DeviceDescription& description : *descriptions_) contexts.emplace_back().description = description;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    contexts[i].ordinal = static_cast<int>(i);
    contexts[i].handle = context_handles.add(std::shared_ptr<Context>(std::shared_ptr<void>(), &contexts[i]));  // `contexts` owns it
  }
  initialised_ = true;
  static const int registered = std::atexit([] { get().shut_down(); });
  static_cast<void>(registered);
  return CUDA_SUCCESS;
}

void Driver::configure(Lock&, const std::string& json) {
  script = json.starts_with('@') ? parse_script_file(json.substr(1)) : parse_script(json);
  call_faults_ = !script.calls.empty();
  if (!initialised_) descriptions_.reset();
  scheduler.set_schedule(script.schedule, script.engine.seed);
}

void Driver::reset(Lock& lock) {
  initialised_ = false;
  for (const auto& capture : std::vector(active_captures)) end_capture(capture);
  scheduler.wait(lock, std::vector(scheduler.unfinished()));
  for (Context& context : contexts)
    if (context.active()) deactivate(context);
  const auto any = [](const auto&) { return true; };
  graphs.remove_if(any);
  graph_execs.remove_if(any);
  context_handles.remove_if(any);
  contexts.clear();
  descriptions_.reset();
  streams_made = 0;
  launches = instructions = reports = 0;
  last_report.clear();
}

// At the end of the process, before the destructors of what was there before cuInit: their calls find the driver gone, as with the real
// one.
void Driver::shut_down() {
  shut_down_ = true;
  if (forked_) return;
  Lock lock(mutex);
  scheduler.stop(lock);
}

void Driver::read_descriptions() {
  if (descriptions_.has_value()) return;
  std::vector<DeviceDescription> read;
  for (const std::string& name : device_names(script)) read.push_back(load_device(name));
  descriptions_ = std::move(read);
}

// The version of a driver is known before cuInit, also when it is written in the description of the first device.
int Driver::driver_version() {
  if (script.driver_version.has_value()) return *script.driver_version;
  try {
    read_descriptions();
  } catch (const std::exception&) {  // cuInit says it
    return kDriverVersion;
  }
  return descriptions_->empty() ? kDriverVersion : descriptions_->front().driver_version.value_or(kDriverVersion);
}

CUresult Driver::current(Context*& context) {
  const ThreadState& thread = this_thread();
  if (thread.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  context = context_handles.look(thread.stack[thread.depth - 1]);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->poison != CUDA_SUCCESS) return context->poison;
  return context->active() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Context* Driver::context_of(CUcontext handle) { return context_handles.look(handle); }

Context* Driver::device(int ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= contexts.size()) return nullptr;
  return &contexts[static_cast<std::size_t>(ordinal)];
}

void Driver::activate(Context& context) {
  context.memory = std::make_shared<Memory>(context.description.memory);
  for (const auto& [begin, block] : pinned_memory) context.memory->map_host(reinterpret_cast<void*>(begin), block.bytes);
  context.null_stream = std::make_shared<Stream>();
  context.null_stream->context = &context;
  context.null_stream->is_null = true;
}

void Driver::release(Lock& lock, Context& context) {
  if (context.retained == 1) scheduler.wait(lock, all_work(context));
  if (context.retained == 0 || --context.retained != 0) return;  // meanwhile another thread retained it, or released it
  deactivate(context);
}

// The last reference is gone: everything of the context dies with it.
void Driver::deactivate(Context& context) {
  for (const auto& capture : std::vector(active_captures))
    if (std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* s) { return s->context == &context; }))
      end_capture(capture);
  const auto of_context = [&](const auto& object) { return object.context == &context; };
  streams.remove_if(of_context);
  events.remove_if(of_context);
  functions.remove_if([&](const Function& f) { return f.module->context == &context; });
  modules.remove_if(of_context);
  const auto has_node = [&](const auto& graph) {
    return std::any_of(graph.nodes->begin(), graph.nodes->end(), [&](const GraphNode& n) { return n.work->context == &context; });
  };
  graphs.remove_if(has_node);
  graph_execs.remove_if(has_node);
  context.orphans.clear();
  context.null_stream.reset();
  for (auto it = pinned_memory.begin(); it != pinned_memory.end();) {
    if (it->second.context != &context) {
      ++it;
      continue;
    }
    for (Context& other : contexts)
      if (other.memory != nullptr) other.memory->unmap_host(reinterpret_cast<void*>(it->first));
    std::free(reinterpret_cast<void*>(it->first));
    it = pinned_memory.erase(it);
  }
  context.memory.reset();
  context.allocations = 0;
  context.retained = 0;
}

void Driver::poison(Context& context, const Failure& failure) {
  if (context.poison == CUDA_SUCCESS) context.poison = failure.code;
  report(failure.text);
}

CUresult Driver::stream(CUstream handle, Context& current, Stream*& stream) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  if (value <= 1) {  // the null stream by either name; 2 would be the per-thread default stream, which is not simulated
    stream = current.null_stream.get();
    return CUDA_SUCCESS;
  }
  stream = streams.look(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return stream->context->poison;
}

CUresult Driver::event(CUevent handle, Event*& event) {
  event = events.look(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return event->context->poison;
}

CUresult Driver::function(CUfunction handle, Function*& function) {
  Context* context = nullptr;
  KILN_SIMCUDA_TRY(current(context));
  function = functions.look(handle);
  if (function == nullptr || function->module->context != context) return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_SUCCESS;
}

void Driver::report(const std::string& text) {
  ++reports;
  last_report = text;
  if (!script.quiet) std::fprintf(stderr, "simulated driver: %s\n", text.c_str());
  const char* file = script.report.empty() ? std::getenv("KILN_SIMCUDA_REPORT") : script.report.c_str();
  if (file == nullptr || *file == '\0') return;
  if (std::FILE* out = std::fopen(file, "a"); out != nullptr) {
    std::fprintf(out, "%s\n", text.c_str());
    std::fclose(out);
  }
}

}  // namespace kiln::simcuda
