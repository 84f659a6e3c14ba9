// A launch on the interpreter.
#include <cstdio>

#include "compile.h"
#include "engine.h"
#include "engine_parts.h"
#include "interp/interp.h"
#include "kiln/ir/message.h"

namespace kiln::cli {
namespace {

std::string three(const std::uint32_t (&at)[3]) {
  return "(" + std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2]) + ")";
}

// As a device tells it.
void tell_fault(const ir::Prepared& kernel, const ir::FaultRecord& record, Outcome& outcome) {
  const std::uint32_t number = record.trapped != 0 ? record.trapped - 1 : record.site;
  const ir::FaultSite site = number < kernel.sites.size() ? kernel.sites[number] : ir::FaultSite{};
  const std::string by = " by thread " + three(record.thread) + " of block " + three(record.block);
  Json bounds = nullptr, check = nullptr;
  std::string code = "Bounds", message;
  if (record.trapped != 0 || site.memory.empty()) {
    const std::uint64_t values[] = {record.index, record.extent};
    code = site.is_trap() || record.trapped != 0 ? "Trapped" : "CheckFailed";
    message = site.operation + ": " +
              ir::format_message(site.text, site.values, std::span(values).first(std::min<std::size_t>(site.values.size(), 2))) + by;
    check = {{"operation", site.operation}, {"place", site.place}, {"thread", record.thread}, {"block", record.block}};
  } else {
    const bool is_signed = record.dimension < ir::kMaxRank && site.signed_index[record.dimension];
    const Json index = is_signed ? Json(static_cast<std::int64_t>(record.index)) : Json(record.index);
    message = "out of range: " + site.operation + " of '" + site.memory + "' at index " + index.dump() + " of dimension " +
              std::to_string(record.dimension) + ", whose extent is " + std::to_string(record.extent) + "," + by;
    bounds = {{"memory", site.memory},     {"operation", site.operation},   {"place", site.place},
              {"declared", site.declared}, {"dimension", record.dimension}, {"index", index},
              {"extent", record.extent},   {"thread", record.thread},       {"block", record.block}};
  }
  outcome.why = site.place + ": " + message;
  outcome.failure = {{"code", code},        {"rule", ""},           {"message", message}, {"kernel", kernel.kernel.name},
                     {"place", site.place}, {"requested", nullptr}, {"limit", nullptr},   {"bounds", bounds},
                     {"check", check},      {"text", outcome.why}};
}

class InterpreterEngine final : public Engine {
 public:
  explicit InterpreterEngine(std::uint64_t step_limit) : step_limit_(step_limit) {}
  const std::string& name() const override {
    static const std::string interp = "interp";
    return interp;
  }
  std::string about() const override { return "the interpreter of the IR"; }
  bool interprets() const override { return true; }

  Outcome run(const Variant& variant, Mode mode, const OneLaunch& one, LogTo to) override {
    const ir::Prepared& kernel = prepared(variant, mode);
    interp::Launch launch;
    for (int axis = 0; axis < 3; ++axis)
      launch.grid[axis] = one.grid[static_cast<std::size_t>(axis)], launch.block[axis] = one.block[static_cast<std::size_t>(axis)];
    launch.dynamic_shared_bytes = one.shared_bytes;
    launch.step_limit = step_limit_;
    std::vector<std::vector<std::uint8_t>> memory;
    memory.reserve(one.arguments.size());  // the launch has their addresses
    for (const Argument& a : one.arguments) {
      interp::Arg arg{.is_buffer = a.is_buffer, .extents = a.extents, .strides = {}, .bits = a.bits};
      memory.push_back(a.bytes);
      if (a.is_buffer) {
        arg.bytes = &memory.back();
        arg.strides.resize(a.extents.size());
        std::uint64_t stride = 1;
        for (std::size_t d = a.extents.size(); d-- > 0; stride *= a.extents[d]) arg.strides[d] = stride;
      }
      launch.args.push_back(std::move(arg));
    }
    interp::Outcome found = interp::run(kernel, launch);
    Outcome outcome;
    outcome.misuse = std::move(found.misuse);
    for (const interp::Logged& line : found.log) tell(kernel, line, to, outcome.log);
    if (found.fault) {
      tell_fault(kernel, *found.fault, outcome);
      return outcome;
    }
    outcome.outputs.resize(memory.size());
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (one.arguments[i].is_buffer && one.arguments[i].access != ir::Access::In) outcome.outputs[i] = std::move(memory[i]);
    return outcome;
  }

 private:
  static void tell(const ir::Prepared& kernel, const interp::Logged& line, LogTo to, Json& lines) {
    const ir::LogSite& site = kernel.logs.at(line.site);
    const std::string place = site.line != 0 ? site.file + ":" + std::to_string(site.line) : "?";
    if (to == LogTo::Outcome) lines.push_back({{"text", line.text}, {"place", place}, {"block", line.block}, {"thread", line.thread}});
    if (to == LogTo::Stderr)
      std::fprintf(stderr, "%s: block %s thread %s: %s\n", place.c_str(), three(line.block).c_str(), three(line.thread).c_str(),
                   line.text.c_str());
  }

  std::uint64_t step_limit_;
};

}  // namespace

std::unique_ptr<Engine> interpreter_engine(std::uint64_t step_limit) { return std::make_unique<InterpreterEngine>(step_limit); }

std::unique_ptr<Engine> open_engine(const std::string& name, std::uint64_t step_limit) {
  return name == "interp" ? interpreter_engine(step_limit) : device_engine(name);
}

}  // namespace kiln::cli
