// From an image to a module: header, parsing, checks, variables in memory, decoding for each entry.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "simcuda/ptx_decoder.h"
#include "simcuda/ptx_loaded.h"

namespace kiln::simcuda {
namespace ptx {
namespace {

constexpr const char* kInput = "ptxas application ptx input, line ";
constexpr std::size_t kMaxErrors = 30;
constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 62;  // for any space
const LoadFailure kFine{cuda::CUDA_SUCCESS, {}};

std::string dotted(unsigned version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

std::string log_of(const std::vector<Diagnostic>& errors) {
  std::string log;
  std::size_t n = 0;
  for (const Diagnostic& e : errors) {
    if (++n > kMaxErrors) break;
    log += kInput + std::to_string(e.line) + (e.fatal ? "; fatal   : " : "; error   : ") + e.text + "\n";
  }
  return log + "ptxas fatal   : Ptx assembly aborted due to errors\n";
}

// Every operand, parts included.
void visit(const Operand& o, const std::function<void(const Operand&)>& f) {
  f(o);
  for (const Operand& p : o.parts) visit(p, f);
}

std::size_t number_of(const ModuleDecl& m, const FunctionDecl* f) {
  for (std::size_t k = 0; k < m.functions.size(); ++k)
    if (m.functions[k].get() == f) return k;
  return m.functions.size();
}

struct Reached {
  std::set<const FunctionDecl*> functions;
  std::vector<const Variable*> shared;  // in the order of their declaration
};

Reached reach(const ModuleDecl& m, const FunctionDecl& entry) {
  Reached r;
  std::set<const Variable*> shared;
  std::vector<const FunctionDecl*> todo{&entry};
  bool pointers = false;
  const auto add = [&](const FunctionDecl* f) {
    if (f->defined && !r.functions.contains(f)) todo.push_back(f);
  };
  while (!todo.empty()) {
    const FunctionDecl* f = todo.back();
    todo.pop_back();
    if (!r.functions.insert(f).second) continue;
    for (const Instruction& i : f->code)
      for (const Operand& o : i.operands)
        visit(o, [&](const Operand& p) {
          if (p.kind == Operand::Kind::Function) add(p.function);
          if (p.kind == Operand::Kind::Variable && p.variable->space == Space::Shared) shared.insert(p.variable);
        });
    if (!f->prototypes.empty() && !pointers) {  // calls through pointers: everything may be called
      pointers = true;
      for (const auto& g : m.functions)
        if (!g->entry) add(g.get());
    }
  }
  for (const auto& v : m.variables)
    if (shared.contains(v.get())) r.shared.push_back(v.get());
  return r;
}

// The bytes of frames that a thread needs from a function on; recursion is found and not followed. Each function is looked at once, and
// without recursion: calls may be many and deep.
std::uint64_t stack_of(const Function& root, bool& recursive) {
  struct State {
    bool active = true;
    std::uint64_t deepest = 0;  // of what it calls
  };
  std::map<const Function*, State> states;
  std::vector<std::pair<const Function*, std::size_t>> path{{&root, 0}};  // and the call that is next
  states[&root];
  for (;;) {
    const auto [f, next] = path.back();
    State& state = states.at(f);
    if (next < f->calls.size()) {
      ++path.back().second;
      const Call& c = f->calls[next];
      if (c.kind == Call::Kind::Indirect) recursive = true;
      if (c.callee == nullptr) continue;
      const auto [known, fresh] = states.try_emplace(c.callee);
      if (fresh) path.emplace_back(c.callee, 0);
      else if (known->second.active) recursive = true;
      else state.deepest = std::max(state.deepest, c.callee->frame_bytes + known->second.deepest);
      continue;
    }
    state.active = false;
    path.pop_back();
    if (path.empty()) return f->frame_bytes + state.deepest;
    State& caller = states.at(path.back().first);
    caller.deepest = std::max(caller.deepest, f->frame_bytes + state.deepest);
  }
}

bool text_like(const std::string& image) {
  return std::all_of(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(image.size(), 64)),
                     [](char c) { return static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\r' || c == '\t' || c == '\f'; });
}

class Loader {
 public:
  Loader(LoadedModule& loaded, const Target& target, Memory& memory) : l_(loaded), target_(target), memory_(memory) { l_.memory = &memory; }

  LoadFailure load(const std::string& image) {
    const std::string text(image.c_str());
    if (text.empty() || !text_like(text))
      return {cuda::CUDA_ERROR_INVALID_IMAGE,
              "device kernel image is invalid: neither PTX text nor anything else that this driver knows\n"};
    Parsed parsed = parse(text);
    l_.decl = std::move(parsed.module);
    errors_ = std::move(parsed.errors);
    if (LoadFailure f = header(); f.code != cuda::CUDA_SUCCESS) return f;
    if (!errors_.empty()) return failure();
    if (const auto f = variables(); f.code != cuda::CUDA_SUCCESS) return f;
    decode();
    if (!errors_.empty()) return failure();
    return kFine;
  }

 private:
  const ModuleDecl& m() const { return *l_.decl; }

  LoadFailure failure() {
    std::stable_sort(errors_.begin(), errors_.end(), [](const Diagnostic& a, const Diagnostic& b) { return a.line < b.line; });
    errors_.erase(std::unique(errors_.begin(), errors_.end(),
                              [](const Diagnostic& a, const Diagnostic& b) { return a.line == b.line && a.text == b.text; }),
                  errors_.end());
    return {cuda::CUDA_ERROR_INVALID_PTX, log_of(errors_)};
  }

  LoadFailure header() {
    if (m().version > target_.ptx_version) {
      return {cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, std::string(kInput) + "1; fatal   : Unsupported .version " + dotted(m().version) +
                                                            "; current version is '" + dotted(target_.ptx_version) + "'\n"};
    }
    if (m().version == 0 || m().arch == 0) return kFine;
    const std::string name = "sm_" + std::to_string(m().arch) + (m().arch_suffix != 0 ? std::string(1, m().arch_suffix) : std::string());
    const bool exact = m().arch_suffix == 'a' && m().arch != target_.arch;
    const bool family = m().arch_suffix == 'f' && (m().arch / 10 != target_.arch / 10 || m().arch > target_.arch);
    if (m().arch > target_.arch || exact || family) {
      return {cuda::CUDA_ERROR_NO_BINARY_FOR_GPU,
              "ptxas fatal   : SM version specified by .target is higher than default SM version assumed: .target " + name +
                  ", the device is sm_" + std::to_string(target_.arch) + "\n"};
    }
    // The first PTX version that knows a target.
    constexpr std::pair<unsigned, unsigned> kSince[] = {{70, 60}, {72, 61},  {75, 63},  {80, 70},  {86, 71},  {87, 74},  {88, 90}, {89, 78},
                                                        {90, 78}, {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};
    for (const auto& [arch, version] : kSince) {
      if (arch != m().arch) continue;
      const unsigned need = m().arch_suffix == 'a' && arch == 90 ? 80 : m().arch_suffix == 'f' ? std::max(version, 88u) : version;
      if (m().version < need)
        errors_.insert(errors_.begin(), {1, "PTX .version " + dotted(need) + " or later required for .target " + name, true});
      return kFine;
    }
    if (m().arch >= 70) errors_.insert(errors_.begin(), {1, "Unrecognized target '" + name + "'", true});
    return kFine;
  }

  LoadFailure variables() {
    for (const auto& v : m().variables) {
      if (v->space != Space::Global && v->space != Space::Const) continue;
      if (v->external) continue;
      const std::uint64_t size = std::max<std::uint64_t>(v->bytes, 1);
      const auto at = memory_.allocate(size);
      if (!at)
        return {cuda::CUDA_ERROR_OUT_OF_MEMORY, "no memory for the variable '" + v->name + "' of " + std::to_string(v->bytes) + " bytes\n"};
      l_.allocations.push_back(*at);
      addresses_[v.get()] = *at;
      const Memory::Place place = memory_.range(*at, size, Access::Write);  // fresh memory is zero, and need not be there
      if (!v->init.empty()) std::memcpy(place.host, v->init.data(), std::min<std::size_t>(v->init.size(), size));
      l_.globals[v->name] = Global{*at, v->bytes};
    }
    for (const auto& v : m().variables) {
      if (!addresses_.contains(v.get())) continue;
      for (const Variable::Patch& p : v->patches) patch(*v, p);
    }
    return kFine;
  }

  void patch(const Variable& v, const Variable::Patch& p) {
    std::uint64_t address = 0;
    if (const auto it = m().variable_by_name.find(p.symbol); it != m().variable_by_name.end() && addresses_.contains(it->second)) {
      address = addresses_.at(it->second);
    } else if (const auto f = m().function_by_name.find(p.symbol); f != m().function_by_name.end()) {
      address = kCodeBase + 16 * number_of(m(), f->second);
    } else {
      errors_.push_back({v.line, "Unknown symbol '" + p.symbol + "'", false});
      return;
    }
    address = (address + static_cast<std::uint64_t>(p.add)) >> p.shift;
    const Memory::Place place = memory_.range(addresses_.at(&v) + p.offset, p.bytes, Access::Write);
    if (place.host != nullptr) std::memcpy(place.host, &address, std::min(p.bytes, 8u));
  }

  void decode() {
    std::set<const FunctionDecl*> checked;
    for (const auto& f : m().functions) {
      if (!f->entry || !f->defined) continue;
      decode_entry(*f, checked);
    }
    // What no kernel reaches is checked all the same.
    for (const auto& f : m().functions) {
      if (!f->defined || checked.contains(f.get())) continue;
      EntryCode scratch;
      decode_from(*f, scratch, checked);
    }
  }

  void decode_entry(const FunctionDecl& f, std::set<const FunctionDecl*>& checked) {
    EntryCode code;
    decode_from(f, code, checked);
    EntryInfo info;
    info.name = f.name;
    for (const auto& p : f.params) {
      info.params.push_back(
          {static_cast<std::uint32_t>(p->offset), static_cast<std::uint32_t>(p->bytes), static_cast<std::uint32_t>(p->align)});
      info.param_bytes = static_cast<std::uint32_t>(p->offset + p->bytes);
    }
    check_params(f);
    info.static_shared = code.static_shared;
    info.local_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(code.local_bytes, ~std::uint32_t{0}));
    for (const auto& g : code.functions)
      if (g) info.registers = std::max(info.registers, g->registers);
    info.reqntid = f.reqntid;
    info.maxntid = f.maxntid;
    info.reqnctapercluster = f.reqnctapercluster;
    l_.entries.push_back(std::move(info));
    l_.code.push_back(std::move(code));
  }

  void check_params(const FunctionDecl& f) {
    const std::uint64_t most = m().version >= 81 ? 32764 : 4352;
    const std::uint64_t bytes = f.params.empty() ? 0 : f.params.back()->offset + f.params.back()->bytes;
    if (bytes <= most) return;
    errors_.push_back({f.line,
                       "Entry function '" + f.name + "' uses too much parameter space (" + std::to_string(bytes) + " bytes, " +
                           std::to_string(most) + " max)",
                       false});
  }

  void decode_from(const FunctionDecl& root, EntryCode& code, std::set<const FunctionDecl*>& checked) {
    const Reached reached = reach(m(), root);
    DecodeContext context;
    context.module = l_.decl.get();
    context.errors = &errors_;
    context.addresses = addresses_;
    constexpr std::uint64_t kMostShared = 48 * 1024;
    std::uint64_t at = 0;
    for (const Variable* v : reached.shared) {
      if (v->unsized || v->external) continue;
      at = (at + v->align - 1) / v->align * v->align;
      context.addresses[v] = at;
      if (__builtin_add_overflow(at, v->bytes, &at)) at = kTooLarge;
    }
    if (at > kMostShared) {
      errors_.push_back({root.line,
                         "Entry function '" + root.name + "' uses too much shared data (" + std::to_string(at) + " bytes, " +
                             std::to_string(kMostShared) + " max)",
                         false});
      at = 0;
    }
    code.static_shared = static_cast<std::uint32_t>(at);
    std::uint64_t dynamic = (at + 15) / 16 * 16;
    for (const Variable* v : reached.shared)
      if (v->unsized || v->external) dynamic = (dynamic + v->align - 1) / v->align * v->align;
    for (const Variable* v : reached.shared)
      if (v->unsized || v->external) context.addresses[v] = dynamic;  // behind the static ones, all at one place
    code.dynamic_begin = static_cast<std::uint32_t>(dynamic);
    code.functions.resize(m().functions.size());
    for (std::size_t k = 0; k < m().functions.size(); ++k) {
      const FunctionDecl* f = m().functions[k].get();
      if (!reached.functions.contains(f)) continue;
      code.functions[k] = std::make_unique<Function>();
      code.functions[k]->decl = f;
      code.functions[k]->address = kCodeBase + 16 * k;
      context.functions[f] = code.functions[k].get();
    }
    for (const auto& f : code.functions) {
      if (!f) continue;
      checked.insert(f->decl);
      Decoder(context, *f).run();
      for (Op& op : f->ops)
        if (op.memory) op.target += code.memory_ops;
      code.memory_ops += f->memory_ops;
      code.granule = std::min(code.granule, f->shared_granule);
      code.any_granule = std::min(code.any_granule, f->any_granule);
      code.fences = code.fences || f->fences;
      code.clusters = code.clusters || f->clusters;
      if (f->decl == &root) code.function = f.get();
    }
    code.local_bytes = stack_of(*code.function, code.recursive);
  }

  LoadedModule& l_;
  const Target& target_;
  Memory& memory_;
  std::vector<Diagnostic> errors_;
  std::map<const Variable*, std::uint64_t> addresses_;
};

}  // namespace

LoadedModule::~LoadedModule() {
  for (const std::uint64_t a : allocations) memory->free(a);
}

}  // namespace ptx

LoadResult load(const std::string& image, const Target& target, Memory& memory) {
  LoadResult r;
  auto module = std::make_shared<Module>();
  r.failure = ptx::Loader(module->loaded, target, memory).load(image);
  if (r.failure.code == cuda::CUDA_SUCCESS) r.module = std::move(module);
  return r;
}

const std::vector<EntryInfo>& entries(const Module& module) { return module.loaded.entries; }

std::optional<Global> global(const Module& module, const std::string& name) {
  const auto it = module.loaded.globals.find(name);
  if (it == module.loaded.globals.end()) return std::nullopt;
  return it->second;
}

}  // namespace kiln::simcuda
