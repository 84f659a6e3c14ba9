// The recording of one kernel body: what every value, statement and scope of the DSL writes through. One recorder is current per
// thread; recorders nest. Authors never name one. Not thread-safe: a recorder belongs to the thread that made it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/dsl/types.h"
#include "kiln/ir/builder.h"
#include "kiln/runtime/error.h"

namespace kiln::dsl {

// A value as Val holds it. `recording` tells values of different recordings apart.
struct Handle {
  ir::ValueId id = ir::kNone;
  std::uint32_t recording = 0;
};

// A value at its use: checked to be visible there, with the line of the use.
struct Operand {
  ir::ValueId id;
  Where where;
};

class Recorder {
 public:
  // Starts recording into `kernel` on this thread. The signature is declared already.
  explicit Recorder(ir::Kernel& kernel);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Throws kiln::Exception when this thread records nothing.
  static Recorder& current(const Where& where);
  static bool active();

  // The builder, set to stamp `where` on what is made next. Throws when the kernel has grown beyond every limit.
  ir::Builder& at(const Where& where);
  // The builder with the location of the operation before: for operators that cannot know their line.
  ir::Builder& here() { return builder_; }
  const Where& last() const { return last_; }
  // The same, noting that the place of what is made next is only a guess.
  ir::Builder& somewhere();
  ir::Kernel& kernel() { return kernel_; }
  std::uint32_t number() const { return number_; }

  // A recording error: throws kiln::Exception with the line, and remembers it should somebody catch it.
  [[noreturn]] void fail(std::string message, const Where& where);
  [[noreturn]] void fail(std::string message, ir::Loc loc);
  // For destructors, which cannot throw: reported when the recording ends. The first one wins.
  void fail_later(std::string message, ir::Loc loc);
  const std::optional<Error>& failure() const { return failure_; }
  // Also for destructors: the host's memory ended, and what is recorded is worth nothing.
  void exhaust() noexcept { exhausted_ = true; }
  bool exhausted() const { return exhausted_; }

  Handle handle(ir::ValueId id) const { return {id, number_}; }
  // Checks that the value belongs to this recording and can be seen here.
  ir::ValueId use(Handle value, const Where& where);
  // The same for a slot.
  std::uint32_t use_slot(Handle slot, const Where& where);

  // Regions. Values of a region can be used until it is left. leave_region never throws.
  void enter_region(ir::RegionId region);
  void leave_region() noexcept;
  std::size_t depth() const { return scopes_.size(); }
  ir::RegionId region() const { return scopes_.back().region; }
  // What is recorded from now on in this region can never run (after Break and its like): it goes nowhere.
  void unreachable();

  // Loops and switches around the place being recorded.
  int loops = 0;
  std::vector<class SwitchScope*> switches;

  // Where the condition of the statement being recorded began; see logical().
  struct Mark {
    ir::RegionId region;
    std::size_t position;
  };
  std::vector<Mark> marks;
  Mark mark() const;

  // `a && b` (or ||). What only b computed is moved under a when it loads. `exact_left`: the left side was evaluated in this same
  // expression.
  ir::ValueId logical(bool is_and, ir::ValueId a, bool exact_left, ir::ValueId b, const Where* where);

  // True while only heads and what they are made of were recorded.
  bool at_head() const;

 private:
  struct Scope {
    ir::RegionId region, insertion;
  };
  void settle();
  void hoist(ir::ValueId id, ir::OpId logical_if);

  ir::Kernel& kernel_;
  ir::Builder builder_;
  Recorder* outer_;
  std::uint32_t number_;
  std::optional<Error> failure_;
  bool exhausted_ = false;
  std::vector<Scope> scopes_;
  std::vector<ir::RegionId> region_of_;  // per operation: the region that sees its value
  std::vector<Where> origin_of_;         // per operation: where it was written; line 0: not known
  std::vector<char> open_;               // per region
  const char* last_file_ = nullptr;      // cache of the builder's file table
  std::uint32_t last_file_index_ = ir::kNone;
  Where last_, origin_;
  std::unordered_map<std::uint32_t, ir::OpId> logical_slots_;  // slot -> the `if` that sets it
  std::unordered_map<ir::OpId, ir::RegionId> logical_ifs_;     // the `if`s of && and ||, and the region each stands in
  std::unordered_map<ir::ValueId, ir::OpId> moved_;            // value -> the `if` it was moved into
};

// "file.cpp:12".
std::string place(const Where& where);
// A recording error where nothing may be recording at all.
[[noreturn]] void fail(std::string message, const Where& where);

// Operations on checked operands. Each returns the new value.
Handle constant(ir::Type type, std::uint64_t bits, const Where& where);
Handle unary(ir::Opcode code, const Operand& a);
Handle binary(ir::Opcode code, const Operand& a, const Operand& b);
Handle ternary(ir::Opcode code, const Operand& a, const Operand& b, const Operand& c);
Handle convert(ir::Opcode code, ir::Type to, const Operand& a);
Handle query(ir::Opcode code, unsigned axis, ir::Type type, const Where& where);
Operand use(Handle value, const Where& where);

// Host values as constants. Each fails with a sentence when the value cannot be had in `type`.
std::uint64_t signed_literal(ir::Type type, std::int64_t value, const Where& where);
std::uint64_t unsigned_literal(ir::Type type, std::uint64_t value, const Where& where);
std::uint64_t float_literal(ir::Type type, double value, const Where& where);

// Locals.
Handle new_slot(ir::Type type, const Operand& initial);
Operand get_slot(Handle slot, const Where& where);
void set_slot(Handle slot, const Operand& value);
// slot = slot code 1, with the location of the operation before; the value from before.
Handle step_slot(Handle slot, ir::Opcode code);

}  // namespace kiln::dsl
