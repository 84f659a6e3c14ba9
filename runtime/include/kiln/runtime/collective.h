// Collectives: operations in which the devices of a group take part together. One process, one Communicator, any threads.
//
//   auto group = Communicator::init({Client::open("cpu").value(), Client::open("cpu:1").value()}).value();
//   group.all_reduce(x0, y0, Reduction::Sum);   // what device 0 has and gets; returns at once
//   group.all_reduce(x1, y1, Reduction::Sum);   // what device 1 has and gets: now all have come, and it is done
//   group.sync(y1.client()).value();            // where other threads call for their devices: waits for them
//
// Every device of the group calls the same operations in the same order, each for itself. A call takes the source as it is then (a later
// write does not change what is sent) and returns; the call of the last device does the work. Until then the target cannot be read
// (CollectivePending), nor given to the next operation: sync() first. What goes wrong for one device goes wrong for the group: all targets
// carry the failure, nobody waits any more, and later calls are refused (CommunicatorFailed); make the group anew.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kiln/runtime/buffer.h"

namespace kiln {

// Integers wrap around; a mean of integers is the exact sum over their number, toward zero. Floats are added in the order of the group,
// each sum rounded to the type, so that results are the same bits each time; a mean is that sum over their number, rounded once. bool and
// floats of 8 bits are not reduced.
enum class Reduction : std::uint8_t { Sum, Mean };

namespace rt {

// A device's part of an operation, checked.
struct CollectiveCall {
  Stream stream;
  std::uint32_t rank = 0;  // of the device in its group
  Binding from, to;        // what it gives and gets; either may be of no memory
  ir::Type type = ir::Type::Void;
  std::uint64_t elements = 0;  // of the whole operation as every device must see it: of a source, of a broadcast
  Reduction reduction = Reduction::Sum;
  std::uint32_t peer = 0;  // root of a broadcast; receiver, sender
};

// What carries bytes between the devices of a group. An operation that is not overridden is refused before anything was touched:
// NoDeviceTransport, with the operation's name as its rule. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<void> comm_init(const std::vector<Client>& devices);
  virtual Result<void> all_reduce(const CollectiveCall& call);
  virtual Result<void> all_gather(const CollectiveCall& call);
  virtual Result<void> reduce_scatter(const CollectiveCall& call);
  virtual Result<void> broadcast(const CollectiveCall& call);
  virtual Result<void> all_to_all(const CollectiveCall& call);
  virtual Result<void> send(const CollectiveCall& call);
  virtual Result<void> recv(const CollectiveCall& call);
  virtual Result<void> barrier(const CollectiveCall& call);
  // Waits for all operations that this device called, at most so long where that is not 0.
  virtual Result<void> sync(std::uint32_t rank, std::chrono::milliseconds patience);
  // A device's call was refused: the others must not wait for it.
  virtual void refused(std::uint32_t, const Error&) {}
  virtual bool broken() const { return false; }
};

// The transport among devices: between CPU devices memory itself, else one that has nothing.
std::shared_ptr<Transport> make_transport(const std::vector<Client>& devices);

}  // namespace rt

// Cheap to copy, thread-safe.
class Communicator {
 public:
  // Moving copies: a group that was moved from is still one.
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
  // The group of these devices; a device's rank is its place. Where the process has a group of them that works, this is it. Errors:
  // CommunicatorDevices (none, or one twice), CommunicatorOrder (there is one in another order), NoDeviceTransport.
  static Result<Communicator> init(const std::vector<Client>& devices);
  // With a transport of one's own.
  static Result<Communicator> over(std::shared_ptr<rt::Transport> transport, const std::vector<Client>& devices);

  std::uint64_t id() const;                                                // of the set of devices, whatever their order
  std::uint64_t channel_id(std::uint32_t rank, std::uint32_t peer) const;  // of what two of them send one another; never a group's
  std::uint32_t size() const;
  Result<std::uint32_t> rank(const Client& client) const;  // ForeignHandle: it is none of the group

  // All devices: as many elements. The device is the buffers'. In place (`to` is `from`) where both have as many bytes.
  template <class T, unsigned R>
  Result<void> all_reduce(const Buffer<T, R>& from, Buffer<T, R>& to, Reduction reduction) const {
    return all_reduce(from.client().default_stream(), from, to, reduction);
  }
  template <class T, unsigned R>
  Result<void> all_reduce(const Stream& stream, const Buffer<T, R>& from, Buffer<T, R>& to, Reduction reduction) const {
    return run(Kind::AllReduce, stream, part(from, to, reduction));
  }
  // `to` has size() times as many elements: those of rank 0 first.
  template <class T, unsigned R, unsigned S>
  Result<void> all_gather(const Buffer<T, R>& from, Buffer<T, S>& to) const {
    return all_gather(from.client().default_stream(), from, to);
  }
  template <class T, unsigned R, unsigned S>
  Result<void> all_gather(const Stream& stream, const Buffer<T, R>& from, Buffer<T, S>& to) const {
    return run(Kind::AllGather, stream, part(from, to));
  }
  // `from` has size() times as many elements as `to`: rank r gets the r-th part of the sums.
  template <class T, unsigned R, unsigned S>
  Result<void> reduce_scatter(const Buffer<T, R>& from, Buffer<T, S>& to, Reduction reduction) const {
    return reduce_scatter(from.client().default_stream(), from, to, reduction);
  }
  template <class T, unsigned R, unsigned S>
  Result<void> reduce_scatter(const Stream& stream, const Buffer<T, R>& from, Buffer<T, S>& to, Reduction reduction) const {
    return run(Kind::ReduceScatter, stream, part(from, to, reduction));
  }
  // The root's elements in everybody's buffer.
  template <class T, unsigned R>
  Result<void> broadcast(Buffer<T, R>& buffer, std::uint32_t root) const {
    return broadcast(buffer.client().default_stream(), buffer, root);
  }
  template <class T, unsigned R>
  Result<void> broadcast(const Stream& stream, Buffer<T, R>& buffer, std::uint32_t root) const {
    return run(Kind::Broadcast, stream, {buffer.binding(), buffer.binding(), buffer.size(), buffer.size(), ir_type<T>, {}, root});
  }
  // Both of size() equal parts: part s of `to` is what rank s has for this device, its part of this device's rank.
  template <class T, unsigned R>
  Result<void> all_to_all(const Buffer<T, R>& from, Buffer<T, R>& to) const {
    return all_to_all(from.client().default_stream(), from, to);
  }
  template <class T, unsigned R>
  Result<void> all_to_all(const Stream& stream, const Buffer<T, R>& from, Buffer<T, R>& to) const {
    return run(Kind::AllToAll, stream, part(from, to));
  }
  // What one sends another receives, in order, of equal size and type.
  template <class T, unsigned R>
  Result<void> send(const Buffer<T, R>& from, std::uint32_t peer) const {
    return send(from.client().default_stream(), from, peer);
  }
  template <class T, unsigned R>
  Result<void> send(const Stream& stream, const Buffer<T, R>& from, std::uint32_t peer) const {
    return run(Kind::Send, stream, {from.binding(), {}, from.size(), from.size(), ir_type<T>, {}, peer});
  }
  template <class T, unsigned R>
  Result<void> recv(Buffer<T, R>& to, std::uint32_t peer) const {
    return recv(to.client().default_stream(), to, peer);
  }
  template <class T, unsigned R>
  Result<void> recv(const Stream& stream, Buffer<T, R>& to, std::uint32_t peer) const {
    return run(Kind::Recv, stream, {{}, to.binding(), to.size(), to.size(), ir_type<T>, {}, peer});
  }
  // Whoever calls sync() behind it knows that all devices have come to theirs.
  Result<void> barrier(const Client& client) const {
    return run(Kind::Barrier, client.default_stream(), {{}, {}, 0, 0, ir::Type::Void, {}, 0});
  }
  // Waits until the operations that this device called are done: until the others have called theirs. With a patience that is not 0 at most
  // so long; then the group fails (CollectiveTimeout), so that nobody waits for who will not come.
  Result<void> sync(const Client& client, std::chrono::milliseconds patience = {}) const;

 private:
  enum class Kind : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, Send, Recv, Barrier };
  struct Part {
    Binding from, to;
    std::uint64_t from_elements = 0, to_elements = 0;
    ir::Type type = ir::Type::Void;
    Reduction reduction = Reduction::Sum;
    std::uint32_t peer = 0;
  };
  template <class T, unsigned R, unsigned S>
  static Part part(const Buffer<T, R>& from, const Buffer<T, S>& to, Reduction reduction = Reduction::Sum) {
    return {from.binding(), to.binding(), from.size(), to.size(), ir_type<T>, reduction, 0};
  }
  Result<void> run(Kind kind, const Stream& stream, const Part& part) const;
  static Result<void> expect_size(Kind kind, const Part& part, std::uint64_t ranks);

  struct Group;
  explicit Communicator(std::shared_ptr<const Group> group) : group_(std::move(group)) {}
  std::shared_ptr<const Group> group_;
};

}  // namespace kiln
