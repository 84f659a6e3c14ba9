// Random programs of the whole runtime against a model that knows, for each element, its value or the failure that lies on it.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/runtime/faults.h"
#include "fuzz/runtime/model.h"
#include "kiln/kiln.h"

namespace kiln::fuzz {

// What a program did that the model says it must not.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the worlds of one program have in common.
struct Together {
  explicit Together(Faults& f) : faults(f) {}
  Faults& faults;
  std::atomic<int> captures{0};            // open ones
  std::atomic<std::uint64_t> prepared{0};  // ever
  std::atomic<bool> lost{false};           // somebody was told that the device is
  std::mutex mutex;
  std::string wrong;  // what a host call found
};

// A program and its model, step by step. The model is the order of the calls, so a world is for one thread at a time; several worlds may
// share a client, and several threads a world under a lock.
class World {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned memories = 6;       // alive at a time
    unsigned elements = 300;     // of one, at most
    std::string name = "world";  // in the trace
  };
  // The streams may be others' too; `own`, which is captured, is the world's alone.
  World(const Client& client, std::vector<Stream> streams, const Stream& own, Together& together, const Options& options);
  ~World();

  void step();    // one operation. Throws Wrong
  void finish();  // everything is read once more and freed
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  // For a report: the last operations, of those that had to do with the memory of that name, or with what its contents came from. 0: with
  // the memory of the last one.
  std::string trace(unsigned memory = 0) const;

 private:
  struct Recorded {  // of the capture that is open
    GraphCapture capture;
    bool recording = false;
    Actions ops = {};
    std::optional<Roots> doomed = {};  // by one of these
  };
  struct Replayable {
    Graph graph;
    Actions ops;
    bool destroyed = false;
  };
  struct Entry {
    std::string text;
    std::set<unsigned> writes, touches;  // names of memories
  };
  struct Calls;  // of the host

  // --- choosing
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  Stream stream();
  Part part();                                                            // of any memory
  std::optional<Part> other_part(const Part& than, std::uint64_t count);  // of another memory, that many elements
  std::vector<u32> numbers(std::uint64_t n);
  // --- what came of an operation
  bool faults() const { return together_.faults.any(); }
  bool records(const Stream& s) const { return recorded_ && recorded_->recording && s == own_; }
  void did(const Stream& s, const Action& action, const Result<void>& result) { did(s, Actions{action}, result); }
  void did(const Stream& s, const Actions& as_one, const Result<void>& result);
  // One that cannot be done at all: `root` is on `parts` now, and a capture of the stream is doomed.
  void refused(const Stream& s, const std::vector<Part>& parts, const std::string& root, const Result<void>& result, const char* what);
  void doom(Roots roots);
  void hear(const Error& error);     // of a lost device
  bool excused(const Error& error);  // it is an injected fault's
  // --- operations
  void allocate();
  void release();
  void launch_good();
  void launch_bad();
  void trap();
  void copy();
  void host_write();
  void wrong_write();
  void fill();
  void strided_write();
  void strided_copy();
  void strided_read();
  void upload();
  void download();
  void read_later();
  void read();
  void view();
  void check();
  void sync();
  void event();
  void call();
  void call_and_wait();
  void inside_call();
  void cleanup();
  void install_pools();
  void capture();
  void end_capture();
  void replay();
  void drop_graph();
  void read_all(const Part& p, const Result<std::vector<u32>>& got, const std::string& what, bool lost_before, bool all_known = true);
  void settle_reads();  // what was read without waiting

  void note(std::string what, const std::vector<Part>& writes = {}, const std::vector<Part>& reads = {});
  void note(std::string what, const Actions& actions);
  [[noreturn]] void wrong(const std::string& what, unsigned memory = 0) const;

  Client client_;
  std::vector<Stream> streams_;
  Stream own_;
  Together& together_;
  Options options_;
  std::mt19937_64 random_;
  std::deque<TrackedPtr> memories_;
  std::optional<Recorded> recorded_;
  std::vector<Replayable> graphs_;
  std::set<std::string> repeated_;  // roots of more than one failure
  struct Later;
  std::deque<std::unique_ptr<Later>> later_;
  std::shared_ptr<Calls> calls_;
  bool in_call_ = false;
  std::map<std::string, std::uint64_t> counts_;
  mutable std::mutex trace_mutex_;
  std::deque<Entry> trace_;
  std::uint64_t noted_ = 0;
  unsigned next_name_ = 1;
};

}  // namespace kiln::fuzz
