// Branches and calls, and the instructions at which threads meet.
#include <cstring>

#include "support/ptx_decoder.h"

namespace kiln::test::ptx {

std::size_t Decoder::label(const std::string& name) const {
  const auto it = f_.labels.find(name);
  if (it == f_.labels.end()) fail("no label '" + name + "'");
  return it->second;
}

void Decoder::branch(Instruction& i) {
  const std::size_t to = label(s_->operands.at(0));
  i.run = [to](Thread& t) { t.frame().pc = to - 1; };
}

void Decoder::branch_table(Instruction& i) {
  const Source index = source(0, {'u', 32});
  std::vector<std::size_t> to;
  for (const std::string& name : f_.tables.at(s_->operands.at(1))) to.push_back(label(name));
  i.run = [=](Thread& t) {
    const Bits n = index(t);
    if (n >= to.size()) throw Error("brx.idx: index out of range");
    t.frame().pc = to[n] - 1;
  };
}

void Decoder::leave(Instruction& i) {
  const bool exits = s_->op[0] == "exit";
  i.run = [exits](Thread& t) {
    if (t.frames.size() > 1 && !exits) {
      t.frames.pop_back();
    } else {
      t.state = Thread::State::Exited;
    }
  };
}

void Decoder::call(Instruction& i) {
  const std::string callee = s_->operands.at(0);
  const auto it = m_.functions.find(callee);
  if (it == m_.functions.end()) fail("no function '" + callee + "'");
  const Function* const f = &it->second;
  const std::vector<std::string> arguments = list(s_->operands.at(1));
  if (arguments.size() != f->param_offset.size()) fail("wrong number of arguments");
  i.run = [=](Thread& t) {
    Frame frame;
    frame.code = t.block->codes->at(callee).get();
    frame.pc = static_cast<std::size_t>(-1);  // the step after a call moves on in the new frame
    frame.registers.resize(frame.code->registers.size());
    frame.params.resize(f->param_bytes);
    for (std::size_t n = 0; n < arguments.size(); ++n) {
      const Bits v = t.frame().outgoing.at(arguments[n]);
      std::memcpy(&frame.params[f->param_offset[n]], &v, f->param_size[n]);
    }
    t.frames.push_back(std::move(frame));
  };
}

std::function<std::uint32_t(const Thread&)> Decoder::mask_of(std::size_t operand) {
  const Source m = source(operand, {'b', 32});
  return [m](const Thread& t) { return static_cast<std::uint32_t>(m(t)); };
}

void Decoder::shuffle(Instruction& i) {
  if (s_->op.at(1) != "sync") fail("a shuffle without a mask");
  const std::string how = s_->op.at(2);
  const Kind k{'b', 32};
  const std::uint32_t d = dest(0);
  const Source a = source(1, k), b = source(2, k), c = source(3, k);
  i.meeting = Instruction::Meeting::Warp;
  i.mask = mask_of(4);
  i.meet = [=](const std::vector<Thread*>& lanes) {
    std::vector<Bits> in(32), out(32);
    for (unsigned l = 0; l < 32; ++l) {
      if (lanes[l] != nullptr) in[l] = a(*lanes[l]);
    }
    for (unsigned l = 0; l < 32; ++l) {
      if (lanes[l] == nullptr) continue;
      const unsigned distance = b(*lanes[l]) & 31, clamp = c(*lanes[l]) & 31, segment = (c(*lanes[l]) >> 8) & 31;
      const unsigned last = (l & segment) | (clamp & ~segment & 31), base = l & segment;
      int j = 0;
      bool in_range = false;
      if (how == "up") j = static_cast<int>(l) - static_cast<int>(distance), in_range = j >= static_cast<int>(last);
      if (how == "down") j = static_cast<int>(l + distance), in_range = j <= static_cast<int>(last);
      if (how == "bfly") j = static_cast<int>(l ^ distance), in_range = j <= static_cast<int>(last);
      if (how == "idx") j = static_cast<int>(base | (distance & ~segment & 31)), in_range = j <= static_cast<int>(last);
      if (!in_range) j = static_cast<int>(l);
      if (lanes[static_cast<std::size_t>(j)] == nullptr)
        throw Error("shfl: lane " + std::to_string(l) + " reads lane " + std::to_string(j) + ", which is not there");
      out[l] = in[static_cast<std::size_t>(j)];
    }
    for (unsigned l = 0; l < 32; ++l) {
      if (lanes[l] != nullptr) put(*lanes[l], d, k, out[l]);
    }
  };
}

void Decoder::vote(Instruction& i) {
  if (s_->op.at(1) != "sync") fail("a vote without a mask");
  const std::string how = s_->op.at(2);
  const std::uint32_t d = dest(0);
  const Source a = source(1, {'p', 1});
  i.meeting = Instruction::Meeting::Warp;
  i.mask = mask_of(2);
  i.meet = [=](const std::vector<Thread*>& lanes) {
    std::uint32_t yes = 0, all = 0;
    for (unsigned l = 0; l < 32; ++l) {
      if (lanes[l] == nullptr) continue;
      all |= 1u << l;
      if (a(*lanes[l]) != 0) yes |= 1u << l;
    }
    const Bits result = how == "ballot" ? yes : how == "any" ? yes != 0 : yes == all;
    for (Thread* const t : lanes) {
      if (t != nullptr) put(*t, d, {'b', 32}, result);
    }
  };
}

void Decoder::redux(Instruction& i) {
  const Kind k = type();
  const std::string how = s_->op.at(2);
  const std::uint32_t d = dest(0);
  const Source a = source(1, k);
  i.meeting = Instruction::Meeting::Warp;
  i.mask = mask_of(2);
  i.meet = [=](const std::vector<Thread*>& lanes) {
    Bits r = 0;
    bool first = true;
    for (Thread* const t : lanes) {
      if (t == nullptr) continue;
      const Bits v = a(*t);
      const bool less = k.is_signed() ? as_signed(k, v) < as_signed(k, r) : v < r;
      if (first) r = v;
      else if (how == "add") r += v;
      else if (how == "and") r &= v;
      else if (how == "or") r |= v;
      else if (how == "xor") r ^= v;
      else r = less == (how == "min") ? v : r;
      first = false;
    }
    for (Thread* const t : lanes) {
      if (t != nullptr) put(*t, d, k, r);
    }
  };
}

void Decoder::barrier(Instruction& i) {
  if (s_->op.at(1) == "warp") {
    i.meeting = Instruction::Meeting::Warp;
    i.mask = mask_of(0);
    i.meet = [](const std::vector<Thread*>&) {};
    return;
  }
  i.meeting = Instruction::Meeting::Barrier;
  i.aligned = s_->op[0] == "bar" || s_->has("aligned");
  if (!s_->has("red")) {
    if (s_->operands.size() != 1) fail("a barrier with a count");
    i.meet = [](const std::vector<Thread*>&) {};
    return;
  }
  const bool popc = s_->has("popc"), any = s_->has("or");
  const std::uint32_t d = dest(0);
  const Source p = source(2, {'p', 1});
  i.meet = [=](const std::vector<Thread*>& threads) {
    Bits n = 0;
    for (Thread* const t : threads) n += p(*t);
    const Bits r = popc ? n : any ? n != 0 : n == threads.size();
    for (Thread* const t : threads) put(*t, d, {'b', 32}, r);
  };
}

}  // namespace kiln::test::ptx
