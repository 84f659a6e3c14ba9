#include "compare.h"

#include "kiln/ir/floats.h"
#include "values.h"

namespace kiln::cli {
namespace {

bool same(ir::Type type, std::uint64_t a, std::uint64_t b) {
  return a == b || (ir::is_real(type) && ir::is_nan(type, a) && ir::is_nan(type, b));
}

std::vector<std::uint64_t> index_of(const Argument& a, std::uint64_t offset) {
  std::vector<std::uint64_t> index(a.extents.size());
  for (std::size_t d = a.extents.size(); d-- > 0;) {
    index[d] = offset % a.extents[d];
    offset /= a.extents[d];
  }
  return index;
}

std::string shown(ir::Type type, std::uint64_t bits) { return value_text(type, bits) + " (" + value_hex(type, bits) + ")"; }

}  // namespace

bool failed_alike(const Outcome& a, const Outcome& b) { return a.failed() && b.failed() && a.failure["code"] == b.failure["code"]; }

std::optional<Difference> find_difference(const ir::Kernel& kernel, const std::vector<Argument>& arguments, const Outcome (&outcomes)[2],
                                          const std::string (&names)[2]) {
  Difference d;
  for (std::size_t side = 0; side < 2; ++side) {
    if (outcomes[side].misuse.empty()) continue;
    d.kind = Difference::Kind::Misuse;
    d.text = names[side] + ": " + outcomes[side].misuse.front();
    return d;
  }
  if (outcomes[0].failed() || outcomes[1].failed()) {
    if (failed_alike(outcomes[0], outcomes[1])) return std::nullopt;
    d.kind = Difference::Kind::Failure;
    for (std::size_t side = 0; side < 2; ++side)
      d.text += (side == 0 ? "" : "; ") + names[side] + ": " + (outcomes[side].failed() ? outcomes[side].why : "ran to its end");
    return d;
  }
  for (std::size_t p = 0; p < kernel.params.size(); ++p) {
    const Argument& a = arguments[p];
    if (!a.is_buffer || a.access == ir::Access::In) continue;
    const unsigned size = byte_size(a.type);
    d.elements = outcomes[0].outputs[p].size() / size;
    for (std::uint64_t i = 0; i < d.elements; ++i) {
      const std::uint64_t x = load_bits(a.type, outcomes[0].outputs[p].data() + i * size),
                          y = load_bits(a.type, outcomes[1].outputs[p].data() + i * size);
      if (same(a.type, x, y)) continue;
      if (d.differing++ == 0) d.argument = p, d.offset = i, d.index = index_of(a, i), d.bits[0] = x, d.bits[1] = y;
    }
    if (d.differing != 0) return d;
  }
  return std::nullopt;
}

std::string to_text(const Difference& d, const ir::Kernel& kernel, const std::vector<Argument>& arguments, const std::string (&names)[2]) {
  if (d.kind != Difference::Kind::Value) return d.text;
  const ir::Type type = arguments[d.argument].type;
  std::string index;
  for (const std::uint64_t i : d.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
  return kernel.params[d.argument].name + "[" + index + "]: " + shown(type, d.bits[0]) + " on " + names[0] + ", " + shown(type, d.bits[1]) +
         " on " + names[1] + "; " + std::to_string(d.differing) + " of " + std::to_string(d.elements) +
         (d.differing == 1 ? " elements differs" : " elements differ");
}

Json to_json(const Difference& d, const ir::Kernel& kernel, const std::vector<Argument>& arguments) {
  if (d.kind == Difference::Kind::Misuse) return {{"kind", "misuse"}, {"text", d.text}};
  if (d.kind == Difference::Kind::Failure) return {{"kind", "failure"}, {"text", d.text}};
  const ir::Type type = arguments[d.argument].type;
  Json values = Json::array(), bits = Json::array();
  for (const std::uint64_t b : d.bits) values.push_back(value_json(type, b)), bits.push_back(value_hex(type, b));
  return {{"kind", "value"},
          {"arg", d.argument},
          {"name", kernel.params[d.argument].name},
          {"type", std::string(ir::name(type))},
          {"index", d.index},
          {"offset", d.offset},
          {"values", values},
          {"bits", bits},
          {"differing", d.differing},
          {"elements", d.elements}};
}

}  // namespace kiln::cli
