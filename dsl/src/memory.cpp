#include "kiln/dsl/memory.h"

#include <limits>
#include <span>

namespace kiln::dsl {
namespace {

std::vector<ir::ValueId> coordinates(const Element& e) { return {e.at.begin(), e.at.begin() + e.rank}; }

// What stands for a variable's name, which nobody tells us: its type and sizes, as C++ has them. Errors say the line beside it.
std::string array_title(ir::Type element, std::span<const std::uint64_t> extents, bool local) {
  std::string sizes;
  for (const std::uint64_t e : extents) sizes += (sizes.empty() ? "" : ", ") + std::to_string(e);
  const std::string type(ir::name(element));
  if (local) return "Local<" + type + ", " + sizes + ">";
  return "Shared<" + type + (extents.size() == 1 ? "" : ", " + std::to_string(extents.size())) + ">(" + sizes + ")";
}

}  // namespace

Operand host_index(std::uint64_t value, const Where& where) {
  const bool narrow = value <= std::numeric_limits<std::uint32_t>::max();
  return {constant(narrow ? ir::Type::U32 : ir::Type::U64, value, where).id, where};
}

void negative_index(std::int64_t value, const Where& where) {
  fail("the index " + std::to_string(value) + " is negative and so out of range", where);
}

void bad_extent(std::int64_t value, const Where& where) {
  fail("an extent of Shared is " + std::to_string(value) + "; it must be above 0", where);
}

std::uint32_t new_array(ir::Type element, std::array<std::uint64_t, ir::kMaxRank> extents, unsigned rank, bool local, const Where& where) {
  Recorder& r = Recorder::current(where);
  ir::Builder& builder = r.at(where);
  std::vector<std::uint64_t> list(extents.begin(), extents.begin() + rank);
  const std::string title = array_title(element, list, local);
  return local ? builder.local(title, element, std::move(list)) : builder.shared(title, element, std::move(list));
}

std::uint32_t new_dynamic_shared(ir::Type element, const Where& where) {
  Recorder& r = Recorder::current(where);
  for (const ir::Mem& mem : r.kernel().mems) {
    if (mem.dynamic) r.fail("a kernel has one DynamicShared; the other is at " + ir::to_string(r.kernel(), mem.loc), where);
  }
  return r.at(where).dynamic_shared("DynamicShared<" + std::string(ir::name(element)) + ">", element);
}

Handle extent(std::uint32_t mem, unsigned rank, unsigned dimension, ir::Type type, const Where& where) {
  Recorder& r = Recorder::current(where);
  if (dimension >= rank)
    r.fail("extent(" + std::to_string(dimension) + ") of a buffer of rank " + std::to_string(rank) + "; dimensions count from 0", where);
  return r.handle(r.at(where).extent(mem, dimension, type));
}

Handle size(std::uint32_t mem, ir::Type type, const Where& where) {
  Recorder& r = Recorder::current(where);
  return r.handle(r.at(where).size(mem, type));
}

Handle load(const Element& element, const Where& where) {
  Recorder& r = Recorder::current(where);
  return r.handle(r.at(element.where).load(element.mem, coordinates(element)));
}

void store(const Element& element, const Operand& value) {
  Recorder::current(value.where).at(element.where).store(element.mem, coordinates(element), value.id);
}

Handle atomic(ir::Opcode code, const Element& element, const Operand& value) {
  Recorder& r = Recorder::current(value.where);
  return r.handle(r.at(element.where).atomic(code, element.mem, coordinates(element), value.id));
}

Handle atomic_cas(const Element& element, const Operand& expected, const Operand& desired) {
  Recorder& r = Recorder::current(expected.where);
  return r.handle(r.at(element.where).atomic_cas(element.mem, coordinates(element), expected.id, desired.id));
}

}  // namespace kiln::dsl
