#include "interp/program.h"

namespace kiln::interp {
namespace {

using ir::Opcode;

class Flattener {
 public:
  explicit Flattener(const ir::Kernel& k) : k_(k) {}

  std::vector<Inst> run() {
    region(0);
    close(mark(Inst::Kind::End, ir::kNone));
    return std::move(out_);
  }

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.size()); }
  std::uint32_t mark(Inst::Kind kind, ir::OpId op, std::uint32_t target = 0) {
    out_.push_back({.kind = kind, .op = op, .target = target});
    return here() - 1;
  }
  std::uint32_t statement(Inst::Kind kind, ir::OpId op) {
    open_.push_back(here());
    return mark(kind, op);
  }

  // Statements of a region, left open until the mark behind it is known.
  void region(ir::RegionId r) {
    for (const ir::OpId id : k_.regions[r].ops) operation(id);
  }
  void close_from(std::size_t first, std::uint32_t end) {
    for (std::size_t i = first; i < open_.size(); ++i) out_[open_[i]].end = end;
    open_.resize(first);
  }
  void close(std::uint32_t end) { close_from(0, end); }

  void operation(ir::OpId id) {
    const ir::Op& op = k_.op(id);
    switch (op.code) {
      case Opcode::If: {
        const std::uint32_t begin = statement(Inst::Kind::If, id);
        std::size_t first = open_.size();
        region(op.regions[0]);
        const std::uint32_t middle = mark(Inst::Kind::Else, id);
        close_from(first, middle);
        out_[begin].target = middle;
        region(op.regions[1]);
        const std::uint32_t end = mark(Inst::Kind::EndIf, id);
        close_from(first, end);
        out_[middle].target = end;
        return;
      }
      case Opcode::Switch: {
        std::uint32_t previous = statement(Inst::Kind::Switch, id);
        const std::size_t first = open_.size();
        for (std::size_t i = 0; i < op.regions.size(); ++i) {
          const std::uint32_t part = mark(Inst::Kind::Case, id);
          out_[part].number = static_cast<std::uint32_t>(i);
          close_from(first, part);
          out_[previous].target = part;
          previous = part;
          region(op.regions[i]);
        }
        const std::uint32_t end = mark(Inst::Kind::EndSwitch, id);
        close_from(first, end);
        out_[previous].target = end;
        return;
      }
      case Opcode::While: {
        const std::uint32_t begin = statement(Inst::Kind::While, id);
        const std::size_t first = open_.size();
        region(op.regions[0]);
        const std::uint32_t yield = open_.back();  // the last statement of the condition
        open_.pop_back();
        out_[yield].kind = Inst::Kind::Yield;
        close_from(first, yield);
        region(op.regions[1]);
        loop_end(begin, first, id);
        out_[yield].target = out_[begin].target;
        return;
      }
      case Opcode::For: {
        const std::uint32_t begin = statement(Inst::Kind::For, id);
        const std::size_t first = open_.size();
        region(op.regions[0]);
        loop_end(begin, first, id);
        return;
      }
      default: statement(Inst::Kind::Simple, id);
    }
  }

  void loop_end(std::uint32_t begin, std::size_t first, ir::OpId id) {
    const std::uint32_t back = mark(Inst::Kind::LoopBack, id, begin + 1);
    close_from(first, back);
    out_[begin].target = back;
  }

  const ir::Kernel& k_;
  std::vector<Inst> out_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

std::vector<Inst> flatten(const ir::Kernel& kernel) { return Flattener(kernel).run(); }

}  // namespace kiln::interp
