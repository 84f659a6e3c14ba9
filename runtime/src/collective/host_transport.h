// Collectives between devices of one process whose memory the host reaches. Written with what every client has, so that claims, order and
// late faults are those of reads, copies and writes.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/runtime/collective.h"

namespace kiln::rt {

// How a call goes: the source is copied on its device (asynchronously, so that what it carries is what it was at the call), the target is
// claimed as pending, and the call is put down. The thread that completes a round does its work. No lock is held meanwhile.
class HostTransport final : public Transport {
 public:
  static constexpr std::uint64_t kMostOutstanding = 64;  // calls of a device

  Result<void> comm_init(const std::vector<Client>& devices) override;
  Result<void> all_reduce(const CollectiveCall& call) override { return arrive(Kind::AllReduce, call); }
  Result<void> all_gather(const CollectiveCall& call) override { return arrive(Kind::AllGather, call); }
  Result<void> reduce_scatter(const CollectiveCall& call) override { return arrive(Kind::ReduceScatter, call); }
  Result<void> broadcast(const CollectiveCall& call) override { return arrive(Kind::Broadcast, call); }
  Result<void> all_to_all(const CollectiveCall& call) override { return arrive(Kind::AllToAll, call); }
  Result<void> barrier(const CollectiveCall& call) override { return arrive(Kind::Barrier, call); }
  Result<void> send(const CollectiveCall& call) override;
  Result<void> recv(const CollectiveCall& call) override;
  Result<void> sync(std::uint32_t rank, std::chrono::milliseconds patience) override;
  void refused(std::uint32_t rank, const Error& why) override;
  bool broken() const override;

 private:
  enum class Kind : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, Barrier };
  static const char* text(Kind kind);
  struct Arrival {
    CollectiveCall call;
    Binding sent;  // the copy of its source; the device's own memory
  };
  struct Round {
    Kind kind = Kind::Barrier;
    std::vector<std::optional<Arrival>> of;  // by rank
    std::uint32_t come = 0, first = 0;       // how many, and who was the first
  };
  struct Channel {
    std::deque<Arrival> sends, recvs;  // one of them is empty
  };

  Result<void> arrive(Kind kind, const CollectiveCall& call);
  Result<void> pass(bool sends, const CollectiveCall& call);
  static Result<Binding> snapshot(const CollectiveCall& call);
  Result<Arrival> prepare(const char* what, const CollectiveCall& call);
  template <class Put>
  std::optional<Error> put_down(const CollectiveCall& call, Put&& put);
  Error out_of_memory(const CollectiveCall& call);
  static std::optional<Error> mismatch(const Round& round, Kind kind, const CollectiveCall& call);
  template <class Work>
  Result<void> in_turn(std::uint64_t turn, const std::vector<const Arrival*>& all, Work&& work);
  Result<void> work(const Round& round) const;
  Error fail(std::uint32_t rank, const Error& why);
  Error broken_error() const;  // under the lock

  std::vector<Client> devices_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded.
  std::deque<Round> rounds_;                                             // not complete, oldest first
  std::uint64_t first_round_ = 0;                                        // number of the oldest
  std::vector<std::uint64_t> next_;                                      // by rank: the round that its next call is of
  std::vector<std::uint64_t> open_;                                      // by rank: calls that are not done
  std::map<std::pair<std::uint32_t, std::uint32_t>, Channel> channels_;  // by sender and receiver
  std::uint64_t turns_ = 0, served_ = 0;                                 // of what is complete: one at a time, in order
  std::optional<Error> broken_;
};

// out[i] = the reduction of sources[0][i], sources[1][i] ..., in that order. `type` is an integer or a float of 16 bits and more.
void reduce(ir::Type type, Reduction reduction, const std::vector<const std::byte*>& sources, std::byte* out, std::uint64_t elements);

}  // namespace kiln::rt
