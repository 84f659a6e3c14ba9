#include "kiln/dsl/head.h"

#include "source_text.h"

namespace kiln {
namespace {

// The first operation of the body that is neither a head nor what heads are made of; null: there is none.
const ir::Op* first_ordinary(const ir::Kernel& k) {
  for (ir::OpId id : k.regions[0].ops) {
    const ir::Op& op = k.ops[id];
    switch (op.code) {
      case ir::Opcode::ThreadId:
      case ir::Opcode::BlockId:
      case ir::Opcode::GlobalId:
      case ir::Opcode::LaneId:
      case ir::Opcode::WarpId: return &op;
      case ir::Opcode::Require: break;
      default:
        if (!ir::is_pure(op.code)) return &op;
    }
  }
  return nullptr;
}

// As an author knows it.
std::string title(const ir::Kernel& k, const ir::Op& op) {
  const std::string mnemonic(ir::info(op.code).mnemonic);
  switch (op.code) {
    case ir::Opcode::Set: return "a Var";
    case ir::Opcode::Load:
    case ir::Opcode::Store: return "the " + mnemonic + " of '" + k.mems[op.index].name + "'";
    case ir::Opcode::LogText: return "the log";
    default: return "the " + mnemonic;
  }
}

// A head must stand in the body's own region, before anything but heads.
dsl::Recorder& head(const char* what, const dsl::Where& w) {
  dsl::Recorder& r = dsl::Recorder::current(w);
  if (!r.at_head()) {
    const ir::Op* const first = first_ordinary(r.kernel());
    r.fail(std::string(what) + " belongs to the head of the body, before the first ordinary operation" +
               (first ? ", which is " + title(r.kernel(), *first) + " at " + ir::to_string(r.kernel(), first->loc) : ""),
           w);
  }
  r.at(w);
  return r;
}

}  // namespace

bool dsl::Recorder::at_head() const { return scopes_.size() == 1 && scopes_[0].insertion == 0 && first_ordinary(kernel_) == nullptr; }

void block_size(Extent32 x, Extent32 y, Extent32 z, dsl::Where w) {
  dsl::Recorder& r = head("block_size", w);
  if (r.kernel().has_block_size() || r.kernel().max_threads != 0)
    r.fail("the block is declared already; a kernel has one block_size or one max_threads", w);
  if (x.value == 0 || y.value == 0 || z.value == 0) r.fail("block_size has an axis of 0; every axis is at least 1", w);
  r.kernel().block_size = {x.value, y.value, z.value};
}

void max_threads(Extent32 n, dsl::Where w) {
  dsl::Recorder& r = head("max_threads", w);
  if (r.kernel().has_block_size() || r.kernel().max_threads != 0)
    r.fail("the block is declared already; a kernel has one block_size or one max_threads", w);
  if (n.value == 0) r.fail("max_threads is 0; a block has at least one thread", w);
  r.kernel().max_threads = n.value;
}

void require(Use<bool> condition, std::string_view text) {
  dsl::Recorder& r = head("require", condition.where);
  r.here().require(condition.id, text.empty() ? dsl::source_text(r.kernel(), condition.id) : std::string(text));
}

void require(bool condition, std::string_view text, dsl::Where w) {
  dsl::Recorder& r = head("require", w);
  if (!condition) r.fail("this variant is refused by its require" + (text.empty() ? std::string() : ": " + std::string(text)), w);
}

void options(const Options& options, dsl::Where w) { head("options", w).kernel().options = options; }

void dsl::may_alias(std::uint32_t a, std::uint32_t b, const Where& w) {
  Recorder& r = head("in_place", w);
  if (a == b) r.fail("in_place names one parameter twice", w);
  r.kernel().in_place.emplace_back(a, b);
}

}  // namespace kiln
