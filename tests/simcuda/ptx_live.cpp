#include "simcuda/ptx_live.h"

#include <algorithm>
#include <bit>
#include <set>

namespace kiln::simcuda::ptx {
namespace {

using Set = std::vector<std::uint64_t>;

struct Effects {
  std::vector<std::uint32_t> reads, writes;
};

void registers_in(const Operand& o, std::vector<std::uint32_t>& list) {
  if (o.kind == Operand::Kind::Register) list.push_back(o.index);
  for (const Operand& p : o.parts) registers_in(p, list);
}

bool writes_nothing(const Instruction& i) {
  static const std::set<std::string_view> names{
      "st",       "red",       "bra",     "brx",           "ret", "exit",      "trap",       "brkpt",   "membar",         "fence",
      "prefetch", "prefetchu", "discard", "applypriority", "cp",  "nanosleep", "setmaxnreg", "pmevent", "griddepcontrol", "stackrestore"};
  if (i.op == "bar" || i.op == "barrier") return std::find(i.mods.begin(), i.mods.end(), "red") == i.mods.end();
  return names.contains(i.op);
}

Effects effects(const Instruction& i) {
  Effects e;
  if (i.guard >= 0) e.reads.push_back(static_cast<std::uint32_t>(i.guard));
  std::size_t first = 0;
  if (i.op == "call") {
    if (i.operands.size() > 1 && i.operands[0].kind == Operand::Kind::List) registers_in(i.operands[first++], e.writes);
  } else if (!i.operands.empty() && !writes_nothing(i)) {
    registers_in(i.operands[first++], e.writes);
  }
  for (std::size_t k = first; k < i.operands.size(); ++k) registers_in(i.operands[k], e.reads);
  return e;
}

bool ends(const Instruction& i) {
  return i.guard < 0 && (i.op == "ret" || i.op == "exit" || i.op == "bra" || i.op == "brx" || i.op == "trap");
}

// Every place that a branch instruction may lead to; a label is looked up like the decoder does.
void targets(const FunctionDecl& f, const Instruction& i, std::vector<std::uint32_t>& out) {
  const auto label = [&](std::string_view name) {
    for (std::uint32_t scope = i.scope;; scope = f.scope_parent[scope]) {
      const auto it = f.labels.find({scope, name});
      if (it != f.labels.end()) out.push_back(it->second);
      if (it != f.labels.end() || scope == 0) return;
    }
  };
  if (i.op == "bra" && !i.operands.empty()) label(i.operands[0].name);
  if (i.op == "brx" && i.operands.size() > 1) {
    for (const auto& [key, table] : f.tables)
      if (key.second == i.operands[1].name)
        for (const std::string_view name : table.names) label(name);
  }
}

struct Block {
  std::uint32_t begin = 0, end = 0;
  std::vector<std::uint32_t> successors;
  Set use, define, in, out;
};

void set(Set& s, std::uint32_t k) { s[k / 64] |= std::uint64_t{1} << (k % 64); }
bool has(const Set& s, std::uint32_t k) { return (s[k / 64] >> (k % 64) & 1) != 0; }

}  // namespace

Liveness liveness(const FunctionDecl& f) {
  const auto n = static_cast<std::uint32_t>(f.code.size());
  const std::size_t words = (f.registers.size() + 63) / 64;
  Liveness result;
  result.first.assign(f.registers.size(), Liveness::kNever);
  result.last.assign(f.registers.size(), 0);
  if (n == 0) return result;

  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  std::vector<std::uint32_t> to;
  for (std::uint32_t k = 0; k < n; ++k) {
    to.clear();
    targets(f, f.code[k], to);
    for (const std::uint32_t t : to) leader[t] = true;
    if (!to.empty() || ends(f.code[k])) leader[k + 1] = true;
  }
  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_of(n + 1, 0);
  for (std::uint32_t k = 0; k < n; ++k) {
    if (leader[k]) blocks.push_back({k, k, {}, Set(words), Set(words), Set(words), Set(words)});
    block_of[k] = static_cast<std::uint32_t>(blocks.size() - 1);
    Block& b = blocks.back();
    b.end = k + 1;
    const Effects e = effects(f.code[k]);
    for (const std::uint32_t r : e.reads)
      if (!has(b.define, r)) set(b.use, r);
    if (f.code[k].guard < 0)
      for (const std::uint32_t r : e.writes)
        if (!has(b.use, r)) set(b.define, r);
  }
  for (Block& b : blocks) {
    to.clear();
    targets(f, f.code[b.end - 1], to);
    for (const std::uint32_t t : to)
      if (t < n) b.successors.push_back(block_of[t]);
    if (b.end < n && !ends(f.code[b.end - 1])) b.successors.push_back(block_of[b.end]);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t k = blocks.size(); k-- > 0;) {
      Block& b = blocks[k];
      for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t out = 0;
        for (const std::uint32_t s : b.successors) out |= blocks[s].in[w];
        const std::uint64_t in = b.use[w] | (out & ~b.define[w]);
        changed = changed || in != b.in[w] || out != b.out[w];
        b.in[w] = in;
        b.out[w] = out;
      }
    }
  }

  const auto alive = [&](std::uint32_t r, std::uint32_t at) {
    result.first[r] = result.first[r] == Liveness::kNever ? at : std::min(result.first[r], at);
    result.last[r] = std::max(result.last[r], at);
  };
  const auto each = [&](const Set& s, std::uint32_t at) {
    for (std::size_t w = 0; w < words; ++w)
      for (std::uint64_t rest = s[w]; rest != 0; rest &= rest - 1)
        alive(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(rest)), at);
  };
  for (const Block& b : blocks) {
    each(b.in, b.begin);
    each(b.out, b.end - 1);
    for (std::uint32_t k = b.begin; k < b.end; ++k) {
      const Effects e = effects(f.code[k]);
      for (const std::uint32_t r : e.reads) alive(r, k);
      for (const std::uint32_t r : e.writes) alive(r, k);
    }
  }
  for (std::uint32_t r = 0; r < f.registers.size(); ++r)
    if (has(blocks[0].in, r)) result.undefined.push_back(r);
  std::vector<std::int32_t> change(n + 1, 0);
  for (std::size_t r = 0; r < f.registers.size(); ++r) {
    if (result.first[r] == Liveness::kNever || f.registers[r].type == Type::Pred) continue;
    const auto size = static_cast<std::int32_t>(std::max(1u, bits_of(f.registers[r].type) / 32));
    change[result.first[r]] += size;
    change[result.last[r] + 1] -= size;
  }
  std::int32_t now = 0, most = 0;
  for (const std::int32_t c : change) most = std::max(most, now += c);
  result.words = static_cast<std::uint32_t>(most);
  return result;
}

}  // namespace kiln::simcuda::ptx
