// One thread of the PTX machine and the memories it sees. Private to the PTX machine.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/ptx_program.h"
#include "support/ptx_values.h"

namespace kiln::test::ptx {

struct Thread;
struct Block;

// A statement made executable. `run` is for what one thread does alone; `meet` for what the lanes of a mask, or a block, do together.
struct Instruction {
  const Statement* statement = nullptr;
  std::function<bool(const Thread&)> guard;  // empty: always
  std::function<void(Thread&)> run;
  enum class Meeting { None, Warp, Barrier } meeting = Meeting::None;
  std::function<std::uint32_t(const Thread&)> mask;       // Warp
  std::function<void(const std::vector<Thread*>&)> meet;  // Warp: by lane; null where a lane is not named. Barrier: everybody
  bool aligned = false;                                   // Barrier
};

struct Code {
  const Function* function = nullptr;
  std::vector<Instruction> instructions;
  std::unordered_map<std::string, std::uint32_t> registers;
};

struct Frame {
  const Code* code = nullptr;
  std::size_t pc = 0;
  std::vector<Bits> registers;
  std::vector<std::uint8_t> params;
  std::unordered_map<std::string, Bits> outgoing;  // .param of calls being made
};

struct Allocation {
  std::uint64_t address = 0;
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;
  std::string name;
};

struct Thread {
  Block* block = nullptr;
  std::uint32_t id[3] = {}, linear = 0;
  std::vector<Frame> frames;
  std::vector<std::uint8_t> local;
  bool carry = false;
  enum class State { Ready, Waiting, Exited } state = State::Ready;
  Frame& frame() { return frames.back(); }
  const Frame& frame() const { return frames.back(); }
  std::uint32_t lane() const { return linear % 32; }
  const Instruction& instruction() const { return frame().code->instructions[frame().pc]; }
};

struct Block {
  std::uint32_t index[3] = {}, dim[3] = {}, grid[3] = {};
  std::uint32_t dynamic_bytes = 0;
  std::vector<std::uint8_t> shared;
  const std::vector<Allocation>* memory = nullptr;
  const Module* module = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Code>>* codes = nullptr;
};

// Where an access of `bytes` at `address` of a space lands. Throws Error with the reason when nowhere.
std::uint8_t* locate(Thread& t, const std::string& space, std::uint64_t address, std::uint64_t bytes);

std::unique_ptr<Code> decode(const Module& module, const Function& function);  // throws Error

}  // namespace kiln::test::ptx
