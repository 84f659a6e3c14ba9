// Reads that the calling thread waits for: the body of LocalServer::read_in_turn, for the files that have such reads.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

// Later tasks wait for the host's work until this goes away.
struct FinishHost {
  Device& device;
  Task& task;
  ~FinishHost() { device.finish_host(task); }
};

template <class Copy, class Noted>
Result<void> LocalServer::read_in_turn(std::uint64_t stream, HeldTask& task, Allocation& memory, std::uint64_t first,
                                       std::vector<MemoryRange> ranges, Copy&& copy, Noted&& noted) {
  task->label.stream = stream;
  task->label.known = true;
  Task& turn = *task;
  // The read has its place among the operations, and later writes wait for it.
  std::unique_lock lock(enqueue_);
  const LogRead place(log_, std::move(ranges));
  After after;
  order_read(memory, after);
  task->from = address(memory) + first;
  After before = after;
  before.add(device_->last(queue_of(stream)));
  const CallOrder::Wait wait(*device_, before);
  if (!wait.allowed()) return CallOrder::waits_for_itself();
  const Result<Event> event = task.submit(queue_of(stream), after);
  if (!event.has_value()) return event.error();
  note_read(memory, *event);
  noted();
  lock.unlock();
  device_->begin_host(turn);
  const FinishHost finish{*device_, turn};
  auto refused = device_->refused(*event);
  confirm();
  if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok;
  if (refused) return std::move(*refused);  // nothing was copied
  Result<void> verdict = place.verdict();
  if (verdict.has_value()) copy(std::as_const(turn));
  return verdict;
}

template <class Copy>
Result<void> LocalServer::read_in_turn(std::uint64_t stream, HeldTask& task, Allocation& memory, std::uint64_t first,
                                       std::vector<MemoryRange> ranges, Copy&& copy) {
  return read_in_turn(stream, task, memory, first, std::move(ranges), copy, [] {});
}

}  // namespace kiln::rt
