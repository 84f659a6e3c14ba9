// Random programs of the whole runtime against a model that knows, for each element, its value or the failure that lies on it.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::fuzz {

// What a program did that the model says it must not.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Failures by the names of their roots.
using Roots = std::set<std::string>;

// An element as the model knows it.
struct Cell {
  bool known = true;  // else nobody wrote it yet, or it is claimed
  u32 value = 0;
  // The failure that lies on it; empty: none. Several where it is open which one: a launch that is skipped passes on one of those that its
  // inputs carry, the first of those that are known by then.
  Roots roots;
  // What lay on it before a failure that may not be known yet, of an operation that ends no claims: an operation behind it may still be
  // skipped for that.
  Roots older;
};

// One memory with the model of its elements, and a name for the trace.
struct Tracked {
  Buffer<u32> buffer;
  std::vector<Cell> cells;
  unsigned name = 0;
};

// Elements [first, first + count) of a memory.
struct Part {
  Part(Tracked* memory, std::uint64_t from, std::uint64_t elements)
      : of(memory), first(from), count(elements), view(memory->buffer.slice(from, elements)) {}
  Tracked* of;
  std::uint64_t first, count;
  Buffer<u32> view;
  Cell& cell(std::uint64_t i) const { return of->cells[first + i]; }
};

// What tells the root of a failed read from all others: each operation that is made to fail has a number of its own.
std::string root_name(const Error& error);

// A program and its model, step by step. The model is the order of the calls, so a world is for one thread at a time; several worlds may
// share a client, and several threads a world under a lock.
class World {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned memories = 6;       // alive at a time
    unsigned elements = 300;     // of one, at most
    bool driver_faults = false;  // somebody injects faults: an operation may fail with the driver's error, and its result says so
    std::string name = "world";  // in the trace
  };
  // The streams are the world's own or are shared; one more, for captures, is its own.
  World(const Client& client, std::vector<Stream> streams, const Options& options);
  ~World();

  void step();    // one operation. Throws Wrong
  void finish();  // everything is read once more and freed
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  std::string trace() const;  // the last operations, for a report

 private:
  // --- choosing
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  const Stream& stream() { return streams_[below(streams_.size())]; }
  Tracked* memory();
  Part part();                                                            // of any memory
  std::optional<Part> other_part(const Part& than, std::uint64_t count);  // of another memory, that many elements
  static bool written(const Part& p);                                     // every element is known or carries a failure
  // --- the model
  static Roots roots_of(const Part& p);                       // that a read says
  static Roots met_in(const Part& p);                         // that a launch may be skipped for
  static void claim(const Part& p, const Roots& roots);       // by what is known at once, or ends older claims
  static void claim_late(const Part& p, const Roots& roots);  // else
  static void set(const Part& p, std::uint64_t i, u32 value) { p.cell(i) = {true, value, {}, {}}; }
  // --- operations
  void allocate();
  void release();
  void launch_good();
  void launch_bad();
  void copy();
  void host_write();
  void fill();
  void read();
  void check();
  void sync();
  void read_all(const Part& p, const Result<std::vector<u32>>& got, const char* what);
  // What became of an operation that is skipped for some failures, or for none; `covers` it was to overwrite whole, `others` not. True: it
  // went out.
  bool went(const Result<void>& result, const std::vector<Part>& covers, const std::vector<Part>& others, const Roots& skipped_by);

  void note(std::string what);
  [[noreturn]] void wrong(const std::string& what) const;

  Client client_;
  std::vector<Stream> streams_;
  Options options_;
  std::mt19937_64 random_;
  std::deque<std::unique_ptr<Tracked>> memories_;
  std::map<std::string, std::uint64_t> counts_;
  std::deque<std::string> trace_;
  unsigned next_name_ = 1;
};

}  // namespace kiln::fuzz
