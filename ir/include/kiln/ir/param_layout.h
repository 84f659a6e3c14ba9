// The public parameter layout of a compiled kernel, the same on every device: in signature order a buffer is a pointer and one u64
// extent per dimension (then one u64 stride per dimension where strided), a scalar is itself; then, for checked programs and those
// with a trap, the pointer to the fault record, and last, for those that log, the pointer to the log (null: nobody reads it). On a GPU each
// field is one .param; on the host all fields lie in one block at these offsets.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::ir {

struct ParamField {
  enum class Kind : std::uint8_t { Pointer, Extent, Stride, Scalar, Fault, Log } kind;
  std::uint32_t param = kNone;  // parameter number; kNone for Fault and Log
  std::uint8_t dimension = 0;
  Type type = Type::U64;     // Scalar: its type; the others: U64
  std::uint32_t offset = 0;  // bytes, naturally aligned
  std::uint32_t size = 8;    // bytes
};
struct ParamLayout {
  std::vector<ParamField> fields;
  std::uint32_t bytes = 0;  // of the block, a multiple of 8
};
ParamLayout param_layout(const Kernel& kernel, bool checked);

// What a kernel writes when an access is out of range, a check fails or a thread traps; in memory the host can read. 64 bytes, aligned 64,
// version 1. The first faulting thread moves state 0 -> 1 atomically, fills the rest, then stores state 2; later ones leave it alone.
struct FaultRecord {
  std::uint32_t state = 0;
  std::uint32_t kind = 0;       // 1: what the site says
  std::uint32_t site = 0;       // index into the program's fault sites
  std::uint32_t dimension = 0;  // which coordinate
  std::uint64_t index = 0;      // the coordinate, sign-extended to 64 bits when its type is signed; of a check, the bits of its first value
  std::uint64_t extent = 0;     // of that dimension; the bits of the second value
  std::uint32_t thread[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t trapped = 0;  // 1 + the site of a trap that a thread came to, whoever filled the rest
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FaultRecord) == 64);

// Static facts about a checked access, a check, an assumption or a trap, for the text of its error.
struct FaultSite {
  std::string memory;                // name of the buffer, shared or local memory; of the others empty
  std::string operation;             // "load", "store", "atomic_add", ..., "check", "assume", "trap"
  std::string place;                 // "file.cpp:12"
  std::string declared;              // of shared and local memory: where it is declared; may be empty
  bool signed_index[kMaxRank] = {};  // how to print FaultRecord::index, per dimension
  std::string text = {};             // of the others; of a check with {} for each value
  std::vector<Type> values = {};     // of a check

  bool is_trap() const { return memory.empty() && operation == "trap"; }
  bool is_check() const { return memory.empty() && !is_trap(); }  // or an assumption
};

// What kernels log: this, then room for `capacity` records of log_stride(kernel) bytes. A thread takes a record by adding 1 to `count`,
// which goes on counting where there is no room left; so each thread's records are in its own order. Memory that the host can read once the
// launch is over; aligned 64, version 1.
struct LogHeader {
  std::uint64_t count = 0;
  std::uint64_t capacity = 0;
  std::uint64_t reserved[6] = {};
};
static_assert(sizeof(LogHeader) == 64);
// The bits of the values follow, 8 bytes each.
struct LogRecord {
  std::uint32_t state = 0;  // 1 + index into the program's log sites, stored last; 0: not written whole
  std::uint32_t thread[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t reserved = 0;
};
static_assert(sizeof(LogRecord) == 32);
std::uint32_t log_stride(const Kernel& kernel);

// Static facts about one place that logs.
struct LogSite {
  std::string file;
  std::uint32_t line = 0;    // 0: not known
  std::string text;          // with {} for each value, see message.h
  std::vector<Type> values;  // their types
};

}  // namespace kiln::ir
