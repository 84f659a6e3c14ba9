// The canonical text of a kernel; docs/kir.md describes it.
#include <bit>
#include <charconv>
#include <set>

#include "kiln/ir/decimal.h"
#include "kiln/ir/text.h"
#include "text_names.h"

namespace kiln::ir {
namespace {

std::string hex(std::uint64_t v, unsigned digits) {
  std::string out = "0x";
  for (unsigned i = digits; i-- > 0;) out += "0123456789abcdef"[(v >> (4 * i)) & 15];
  return out;
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char ch : s) {
    const auto c = static_cast<unsigned char>(ch);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += ch;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c >= 0x20 && c < 0x7f) {
      out += ch;
    } else {
      out += "\\x";
      out += hex(c, 2).substr(2);
    }
  }
  return out + "\"";
}

// A literal that reads back to the same bits.
std::string literal(Type type, std::uint64_t bits) {
  if ((bits & ~value_mask(type)) != 0) return hex(bits, 16);
  if (is_bool(type)) return bits != 0 ? "true" : "false";
  if (is_signed(type)) return std::to_string(sign_extend(type, bits));
  if (is_integer(type)) return std::to_string(bits);
  return hex(bits, std::max(1u, bit_width(type) / 4));
}

// The shortest decimal of a float constant, as a comment.
std::string comment(Type type, std::uint64_t bits) { return is_real(type) ? "  # " + shortest_decimal(type, bits) : ""; }

class Printer {
 public:
  Printer(Kernel kernel, bool locations) : k_(std::move(kernel)), locations_(locations) { compact(k_); }

  std::string run() {
    choose_labels();
    out_ = "kernel " + quoted(k_.name) + " {\n";
    if (locations_) {
      for (const std::string& f : k_.files) line(1, "file " + quoted(f));
      if (k_.loc != Loc{}) line(1, "loc" + place(k_.loc));
    }
    const auto flag = [](bool b) { return b ? "true" : "false"; };
    line(1, std::string("options checked=") + flag(k_.options.checked) + " contraction=" + flag(k_.options.contraction) +
                " fast_math=" + flag(k_.options.fast_math));
    const auto& b = k_.block_size;
    if (b[0] != 0 || b[1] != 0 || b[2] != 0)
      line(1, "block_size " + std::to_string(b[0]) + ", " + std::to_string(b[1]) + ", " + std::to_string(b[2]));
    if (k_.max_threads != 0) line(1, "max_threads " + std::to_string(k_.max_threads));
    declarations();
    for (const auto& [x, y] : k_.in_place) line(1, "in_place " + param_label(x) + ", " + param_label(y));
    line(1, "body {");
    value_names_.assign(k_.ops.size(), kNone);
    region(0, 2);
    line(1, "}");
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void line(unsigned depth, std::string_view text) {
    out_.append(2 * depth, ' ');
    out_ += text;
    out_ += '\n';
  }

  std::string place(Loc loc) const {
    if (!locations_ || loc == Loc{}) return "";
    return " @" + std::to_string(loc.file) + ":" + std::to_string(loc.line);
  }

  // --- labels: the name where it is an identifier and not taken, else a letter and the number ----------------------
  std::string choose(const std::string& name, char letter, std::size_t number) {
    std::string label = is_identifier(name) ? name : letter + std::to_string(number);
    if (taken_.contains(label)) label = letter + std::to_string(number);
    while (taken_.contains(label)) label += '_';
    taken_.insert(label);
    return label;
  }

  void choose_labels() {
    for (std::size_t i = 0; i < k_.mems.size(); ++i) mem_labels_.push_back(choose(k_.mems[i].name, 'm', i));
    // Buffers print as one line when parameters and memories are in the same order, as the builder makes them.
    merged_ = true;
    std::uint32_t previous = kNone;
    for (const Param& p : k_.params) {
      if (!p.is_buffer) continue;
      merged_ = merged_ && p.mem < k_.mems.size() && (previous == kNone || p.mem > previous) && k_.mems[p.mem].name == p.name &&
                k_.mems[p.mem].space == Space::Global;
      previous = p.mem;
    }
    for (std::size_t i = 0; i < k_.params.size(); ++i) {
      const Param& p = k_.params[i];
      param_labels_.push_back(merged_ && p.is_buffer ? mem_labels_[p.mem] : choose(p.name, 'p', i));
    }
    for (std::size_t i = 0; i < k_.slots.size(); ++i) slot_labels_.push_back(choose(k_.slots[i].name, 's', i));
  }

  static std::string at(const std::vector<std::string>& labels, std::uint64_t i) { return i < labels.size() ? labels[i] : "?"; }
  std::string param_label(std::uint32_t i) const { return at(param_labels_, i); }

  static std::string labelled(const std::string& label, const std::string& name) {
    return label == name ? label : label + " " + quoted(name);
  }

  void memory(std::size_t i, bool is_param) {
    const Mem& m = k_.mems[i];
    std::string text = m.space == Space::Global ? (is_param ? "buffer " : "global ") : m.space == Space::Shared ? "shared " : "local ";
    text += labelled(mem_labels_[i], m.name) + " : " + std::string(name(m.element)) + "[";
    if (m.dynamic) {
      text += "dynamic";
    } else {
      for (unsigned d = 0; d < m.rank; ++d) {
        if (d > 0) text += ", ";
        text += m.space == Space::Global ? "*" : std::to_string(d < kMaxRank ? m.extents[d] : 0);
      }
    }
    text += "]";
    if (m.space == Space::Global) text += m.access == Access::In ? " in" : m.access == Access::Out ? " out" : " inout";
    if (m.strided) text += " strided";
    line(1, text + place(m.loc));
  }

  void declarations() {
    std::size_t next_mem = 0;
    const auto memories_until = [&](std::size_t end) {
      for (; next_mem < end; ++next_mem) memory(next_mem, false);
    };
    if (!merged_) memories_until(k_.mems.size());
    for (std::size_t i = 0; i < k_.params.size(); ++i) {
      const Param& p = k_.params[i];
      const std::string label = labelled(param_labels_[i], p.name);
      if (!p.is_buffer) {
        line(1, "scalar " + label + " : " + std::string(name(p.type)));
      } else if (merged_) {
        memories_until(p.mem);
        memory(next_mem++, true);
      } else {
        line(1, "param " + label + " = " + at(mem_labels_, p.mem));
      }
    }
    memories_until(k_.mems.size());
    for (std::size_t i = 0; i < k_.slots.size(); ++i)
      line(1, "slot " + labelled(slot_labels_[i], k_.slots[i].name) + " : " + std::string(name(k_.slots[i].type)));
  }

  // --- operations ----------------------------------------------------------------------------------------------------
  std::string value(ValueId id) const {
    return id < value_names_.size() && value_names_[id] != kNone ? "%" + std::to_string(value_names_[id]) : "%?";
  }
  std::string define(OpId id) {
    value_names_[id] = next_value_++;
    return value(id);
  }
  std::string list(const Op& op, std::size_t from, std::size_t to) const {
    std::string text;
    for (std::size_t i = from; i < to && i < op.operands.size(); ++i) text += (i > from ? ", " : "") + value(op.operands[i]);
    return text;
  }

  void region(RegionId r, unsigned depth) {
    if (r >= k_.regions.size()) return;
    for (const OpId id : k_.regions[r].ops) operation(id, depth);
  }

  void operation(OpId id, unsigned depth) {
    const Op& op = k_.op(id);
    switch (info(op.code).form) {
      case Form::If: {
        line(depth, "if " + list(op, 0, 1) + place(op.loc) + " {");
        if (!op.regions.empty()) region(op.regions[0], depth + 1);
        if (op.regions.size() > 1 && op.regions[1] < k_.regions.size() && !k_.regions[op.regions[1]].ops.empty()) {
          line(depth, "} else {");
          region(op.regions[1], depth + 1);
        }
        line(depth, "}");
        return;
      }
      case Form::For: {
        const std::string operands = list(op, 0, 3);
        line(depth, "for " + define(id) + " = " + operands + " : " + std::string(name(op.type)) + place(op.loc) + " {");
        if (!op.regions.empty()) region(op.regions[0], depth + 1);
        line(depth, "}");
        return;
      }
      case Form::While: {
        line(depth, "while" + place(op.loc) + " {");
        if (!op.regions.empty()) region(op.regions[0], depth + 1);
        line(depth, "} do {");
        if (op.regions.size() > 1) region(op.regions[1], depth + 1);
        line(depth, "}");
        return;
      }
      case Form::Switch: {
        line(depth, "switch " + list(op, 0, 1) + place(op.loc) + " {");
        const Type type = !op.operands.empty() && op.operands[0] < k_.ops.size() ? k_.op(op.operands[0]).type : Type::U64;
        for (std::size_t i = 0; i < op.regions.size(); ++i) {
          line(depth + 1, i < op.cases.size() ? "case " + literal(type, op.cases[i]) + " {" : "default {");
          region(op.regions[i], depth + 2);
          line(depth + 1, "}");
        }
        line(depth, "}");
        return;
      }
      default: break;
    }
    std::string text = simple(op);
    if (has_result(info(op.code).form)) text = define(id) + " = " + text + " : " + std::string(name(op.type));
    text += place(op.loc);
    if (op.code == Opcode::Const) text += comment(op.type, op.imm);
    line(depth, text);
  }

  // Mnemonic, attributes and operands of an operation without regions.
  std::string simple(const Op& op) const {
    const std::string mnemonic(info(op.code).mnemonic);
    const std::size_t n = op.operands.size();
    switch (info(op.code).form) {
      case Form::Const: return mnemonic + " " + literal(op.type, op.imm);
      case Form::Query:
        switch (query_operand(op.code)) {
          case QueryOperand::Param: return mnemonic + " " + param_label(op.index);
          case QueryOperand::Mem: return mnemonic + " " + at(mem_labels_, op.index);
          case QueryOperand::MemDimension: return mnemonic + " " + at(mem_labels_, op.index) + "." + std::to_string(op.attr);
          case QueryOperand::Axis: return mnemonic + (op.attr < 3 ? std::string{'.', "xyz"[op.attr]} : ".?");
          case QueryOperand::None: return mnemonic;
        }
        return mnemonic;
      case Form::SlotGet: return mnemonic + " " + at(slot_labels_, op.index);
      case Form::SlotSet: return mnemonic + " " + at(slot_labels_, op.index) + ", " + list(op, 0, n);
      case Form::Load:
      case Form::Store:
      case Form::Atomic:
      case Form::AtomicCas: {
        const std::size_t values = std::min<std::size_t>(value_operands(info(op.code).form), n);
        std::string text = mnemonic + " " + at(mem_labels_, op.index) + "[" + list(op, 0, n - values) + "]";
        if (values > 0) text += ", " + list(op, n - values, n);
        if (op.bounds != Bounds::Undecided) text += op.bounds == Bounds::Checked ? " checked" : " proven";
        if (op.site != kNone) text += " site " + std::to_string(op.site);
        return text;
      }
      case Form::WarpCombine:
        return mnemonic + "." + (op.attr < kCombineCount ? std::string(name(static_cast<Combine>(op.attr))) : "?") + " " + list(op, 0, n);
      case Form::Check:
      case Form::Text:
      case Form::Require: {
        std::string text =
            mnemonic + " " + list(op, 0, n) + (n > 0 ? ", " : "") + (op.imm < k_.texts.size() ? quoted(k_.texts[op.imm]) : "?");
        if (op.site != kNone) text += " site " + std::to_string(op.site);
        return text;
      }
      default: return n == 0 ? mnemonic : mnemonic + " " + list(op, 0, n);
    }
  }

  Kernel k_;
  bool locations_;
  bool merged_ = true;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> mem_labels_, param_labels_, slot_labels_;
  std::vector<std::uint32_t> value_names_;  // per op, the number behind %
  std::uint32_t next_value_ = 0;
  std::string out_;
};

constexpr std::string_view kHeader = "kir 1\n\n";

}  // namespace

std::string print(const Kernel& kernel, bool locations) { return std::string(kHeader) + Printer(kernel, locations).run(); }

std::string print(const std::vector<Kernel>& kernels) {
  std::string text(kHeader);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (i > 0) text += '\n';
    text += Printer(kernels[i], true).run();
  }
  return text;
}

}  // namespace kiln::ir
