// What the files of World share.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "fuzz/runtime/world.h"
#include "kiln/dsl/operation.h"

namespace kiln::fuzz {

// Numbers of operations that fail: no index, value or size that a good one has.
u32 new_number();

// A read that nobody has waited for yet, with a picture of what it must give.
struct World::Later {
  Part picture;
  std::string what;
  std::optional<HostBuffer<u32>> host;               // a download
  std::optional<Running<std::vector<u32>>> reading;  // or an operation
  bool all_known = true;                             // it says all failures that lie there
};

// Host calls of a world: they are made in the order of their stream.
struct World::Calls {
  struct OfStream {
    std::uint64_t issued = 0, made = 0;
  };
  std::mutex mutex;
  std::map<std::uint64_t, OfStream> streams;
};

}  // namespace kiln::fuzz
