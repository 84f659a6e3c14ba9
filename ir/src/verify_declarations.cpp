#include <algorithm>
#include <optional>
#include <set>

#include "kiln/ir/param_layout.h"
#include "verify_impl.h"

namespace kiln::ir::verifier {
namespace {

constexpr std::uint64_t kMaxSharedBytes = 227 * 1024;  // a block's shared memory on the largest device
constexpr std::uint64_t kMaxStaticShared = 48 * 1024;  // of that, what a size known beforehand may have on every device
constexpr std::uint64_t kMaxLocalBytes = 512 * 1024;   // a thread's local memory on every device
constexpr std::uint32_t kMaxThreads = 1024, kMaxDepthOfBlock = 64;
constexpr std::uint32_t kMaxParamBytes = 4096;

class Declarations {
 public:
  Declarations(const Kernel& k, Findings& findings) : k_(k), out_(findings) {}

  void run() {
    if (k_.name.empty()) out_.at_kernel("the kernel has no name");
    if (k_.loc.file != kNone && k_.loc.file >= k_.files.size()) out_.at_kernel("the kernel's place names a file that is not declared");
    params();
    memories();
    slots();
    block();
    in_place();
    if (out_.empty()) {
      const std::uint32_t bytes = param_layout(k_, true).bytes;
      if (bytes > kMaxParamBytes)
        out_.at_kernel("the parameters take " + std::to_string(bytes) + " bytes; at most " + std::to_string(kMaxParamBytes) +
                       " can be passed");
    }
  }

 private:
  void params() {
    std::set<std::string> names;
    std::vector<bool> named(k_.mems.size(), false);
    for (const Param& p : k_.params) {
      const std::string what = "parameter " + quoted(p.name);
      if (p.name.empty()) out_.at_kernel("a parameter has no name");
      if (!p.name.empty() && !names.insert(p.name).second) out_.at_kernel("two parameters are called " + quoted(p.name));
      if (!p.is_buffer) {
        if (p.type == Type::Void) out_.at_kernel(what + " has no type");
      } else if (p.mem >= k_.mems.size() || k_.mems[p.mem].space != Space::Global) {
        out_.at_kernel(what + " names no buffer");
      } else if (named[p.mem]) {
        out_.at_kernel(what + " names the same buffer as another parameter");
      } else {
        named[p.mem] = true;
      }
    }
    for (std::size_t i = 0; i < k_.mems.size(); ++i) {
      if (k_.mems[i].space == Space::Global && !named[i]) out_.at(k_.mems[i].loc, "buffer " + quoted(k_.mems[i].name) + " is no parameter");
    }
  }

  void memories() {
    unsigned dynamic = 0;
    std::uint64_t shared_bytes = 0, local_bytes = 0;
    for (const Mem& m : k_.mems) {
      const bool global = m.space == Space::Global;
      const std::string what = (global ? "buffer " : m.space == Space::Shared ? "shared memory " : "local memory ") + quoted(m.name);
      if (m.loc.file != kNone && m.loc.file >= k_.files.size()) out_.at_kernel(what + ": its place names a file that is not declared");
      if (m.element == Type::Void) out_.at(m.loc, what + " has no element type");
      if (m.rank < 1 || m.rank > kMaxRank) {
        out_.at(m.loc, what + " has " + std::to_string(m.rank) + " dimensions; 1 to " + std::to_string(kMaxRank) + " are possible");
        continue;
      }
      if (m.strided && !global) out_.at(m.loc, what + " cannot be strided, only a buffer can");
      if (m.dynamic) {
        if (m.space != Space::Shared) out_.at(m.loc, what + " cannot be dynamic, only shared memory can");
        if (m.rank != 1) out_.at(m.loc, what + " is dynamic and so has 1 dimension, not " + std::to_string(m.rank));
        if (++dynamic == 2) out_.at(m.loc, what + " is the second dynamic shared memory; a kernel has at most one");
      } else if (!global) {
        std::uint64_t& total = m.space == Space::Shared ? shared_bytes : local_bytes;
        const std::uint64_t limit = m.space == Space::Shared ? kMaxSharedBytes : kMaxLocalBytes;
        const std::optional<std::uint64_t> bytes = size(m, what);
        std::string possible = "; at most " + std::to_string(limit);
        if (m.space == Space::Shared) {
          possible += " are possible, in dynamic shared memory (DynamicShared), and " + std::to_string(kMaxStaticShared) +
                      " in arrays of a fixed size";
        } else {
          possible += " are possible";
        }
        if (!bytes || *bytes > limit) {
          out_.at(m.loc, what + " takes " + (bytes ? std::to_string(*bytes) : "more than 2^64") + " bytes" + possible);
          total = limit + 1;  // told once
          continue;
        }
        const std::uint64_t before = total;
        total = (total + 15) / 16 * 16 + *bytes;
        if (total > limit && before <= limit)
          out_.at(m.loc,
                  what + ", of " + std::to_string(*bytes) + " bytes, brings the total to " + std::to_string(total) + " bytes" + possible);
      }
    }
  }

  // Bytes of a static memory; nothing: more than 64 bits count.
  std::optional<std::uint64_t> size(const Mem& m, const std::string& what) {
    std::uint64_t bytes = std::max(1u, byte_size(m.element));
    for (unsigned d = 0; d < m.rank; ++d) {
      if (m.extents[d] == 0) {
        out_.at(m.loc, what + " has extent 0 in dimension " + std::to_string(d));
        return 0;
      }
      if (__builtin_mul_overflow(bytes, m.extents[d], &bytes)) return std::nullopt;
    }
    return bytes;
  }

  void slots() {
    for (const Slot& s : k_.slots) {
      if (s.type == Type::Void) out_.at_kernel("slot " + quoted(s.name) + " has no type");
    }
  }

  void block() {
    const auto& b = k_.block_size;
    const std::string text = std::to_string(b[0]) + " x " + std::to_string(b[1]) + " x " + std::to_string(b[2]);
    const bool declared = b[0] != 0 || b[1] != 0 || b[2] != 0;
    const std::uint64_t limits[3] = {kMaxThreads, kMaxThreads, kMaxDepthOfBlock};
    if (declared) {
      std::uint64_t threads = 1;
      for (int axis = 0; axis < 3; ++axis) {
        if (b[axis] == 0 || b[axis] > limits[axis]) {
          out_.at_kernel("block_size is " + text + "; axis " + "xyz"[axis] + " is 1 to " + std::to_string(limits[axis]));
          return;
        }
        threads *= b[axis];
      }
      if (threads > kMaxThreads) {
        out_.at_kernel("block_size is " + text + ", " + std::to_string(threads) + " threads; a block has at most " +
                       std::to_string(kMaxThreads));
      } else if (k_.max_threads != 0 && threads > k_.max_threads) {
        out_.at_kernel("block_size is " + text + ", " + std::to_string(threads) +
                       " threads, over max_threads = " + std::to_string(k_.max_threads));
      }
    }
    if (k_.max_threads > kMaxThreads)
      out_.at_kernel("max_threads is " + std::to_string(k_.max_threads) + "; a block has at most " + std::to_string(kMaxThreads));
  }

  void in_place() {
    for (const auto& [a, b] : k_.in_place) {
      const bool buffers = a < k_.params.size() && b < k_.params.size() && k_.params[a].is_buffer && k_.params[b].is_buffer;
      if (!buffers || a == b) out_.at_kernel("in_place names two different buffer parameters");
    }
  }

  const Kernel& k_;
  Findings& out_;
};

}  // namespace

void check_declarations(const Kernel& k, Findings& findings) { Declarations(k, findings).run(); }

}  // namespace kiln::ir::verifier
