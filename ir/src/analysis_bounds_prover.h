// A prover for inequalities between integer values of a kernel. Private to ir/.
//
// Every integer value is a node that stands for its mathematical value (not its bit pattern): casts that keep the value share one node,
// and so do equal pure operations. Facts are of the form x <= y + k; they come from guards, requires and launch facts and live until
// the frame that assumed them is popped. What an operation computes is used only where it is shown not to wrap.
//
// The questions are answered by a bounded search; "don't know" is always a possible answer, a wrong bound never is.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::ir {

class Prover {
 public:
  using Node = std::uint32_t;
  using Num = __int128;
  static constexpr Num kInfinity = Num{1} << 100;

  explicit Prover(const Kernel& kernel);

  // --- nodes ---------------------------------------------------------------------------------------------------------
  Node constant(Num value);
  struct Range {
    Num lo = 0, hi = 0;  // both inside
    bool operator==(const Range&) const = default;
  };
  // A value about which only its type, or a range, is known; different from every other.
  Node opaque(Type type);
  Node opaque(Type type, Range range);
  static Range range_of(Type type);                              // of an integer or bool type
  Range range_of(Node n) const { return {at(n).lo, at(n).hi}; }  // true everywhere, for any facts
  // The node of a pure operation, or of one whose result says something about its operands (votes). `operands` are nodes.
  Node operation(const Op& op, Type operand_type, const std::vector<Node>& operands);
  // cond ? a : b, where each side need only exist under its condition.
  Node choice(Type type, Node cond, Node a, Node b);
  // The induction value of a for loop, inside it.
  Node induction(Type type, Node lo, Node hi, Node step);
  Node extent(std::uint32_t mem, unsigned dimension);

  // --- facts ---------------------------------------------------------------------------------------------------------
  std::size_t mark() const { return log_.size(); }
  void undo(std::size_t mark);
  void assume(Node cond, bool truth);
  void assume_equal(Node a, Node b);

  // --- questions ------------------------------------------------------------------------------------------------------
  bool in_range(Node index, std::uint32_t mem, unsigned dimension);

 private:
  enum class Kind : std::uint8_t { Constant, Opaque, Operation, Induction };
  struct Data {
    Kind kind;
    Opcode code = Opcode::Const;
    std::uint8_t axis = 0;
    Type type = Type::U64;  // decides where the operation would wrap
    std::array<Node, 3> operand{kNone, kNone, kNone};
    Num lo = 0, hi = 0;                     // true everywhere
    std::uint32_t out = kNone, in = kNone;  // heads of the lists of facts
  };
  struct Fact {
    Node from, to;  // from <= to + k
    Num k;
    std::uint32_t next_out, next_in;
    bool through;  // instead: `to` is an operation on `from`; the relation follows from what it computes
  };
  enum Truth : std::uint8_t { kUnknown, kTrue, kFalse };
  struct Undo {
    Node cond;  // the condition whose truth was assumed; kNone: the newest fact
  };
  class Guard;

  Node intern(std::uint64_t hash, const Data& data, std::uint64_t tag, bool& made);
  Node add(const Data& data);
  void static_range(Data& d) const;
  void fact(Node x, Node y, Num k);
  void edge(Node x, Node y, Num k, bool through);
  void link_operands(Node x, int depth);
  void assume_case(Node cond, Node a, Node b, bool truth);
  bool known(Node cond, bool truth) const;
  bool impossible(Node value, bool truth, Node cond, bool cond_truth) const;

  bool spend() { return budget_ != 0 && budget_-- != 0; }
  Num upper(Node x, int depth);
  Num lower(Node x, int depth);
  bool non_negative(Node x, int depth) { return at(x).lo >= 0 || lower(x, depth) >= 0; }
  Num upper_of_operation(Node x, int depth);
  Num lower_of_operation(Node x, int depth);
  Num at_most(Node x, Node y, int depth);  // the smallest k found with x <= y + k
  Num at_most_up(Node x, Node y, int depth);
  Num at_most_down(Node x, Node y, int depth);
  Num through(Node x, Node user, int depth);       // the smallest k with x <= user + k
  Num at_most_product(Node x, Node y, int depth);  // where y is a product
  bool is_row_major(Node x) const;
  std::optional<Range> product(Node x, int depth, bool with_lower);
  bool exact(Node x, int depth);  // the operation does not wrap

  const Data& at(Node n) const { return nodes_[n]; }

  const Kernel& k_;
  std::vector<Data> nodes_;
  std::vector<std::uint64_t> tags_;
  std::vector<Node> table_, chain_;
  std::vector<Fact> facts_;
  std::vector<Truth> truth_;  // per node
  std::vector<Undo> log_;
  std::vector<std::uint8_t> busy_;           // per node: bit 0 upper, bit 1 lower under way
  std::vector<std::pair<Node, Node>> path_;  // at_most under way
  std::array<Node, 3> block_dim_{kNone, kNone, kNone}, grid_dim_{kNone, kNone, kNone};
  Node zero_ = 0;
  unsigned budget_ = 0;  // steps left for the question under way
  int busy_depth_ = 0;   // cases of a select under way
};

}  // namespace kiln::ir
