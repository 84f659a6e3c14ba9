// Waiting, checking, events, and calls of the host.
#include <exception>
#include <future>

#include "fuzz/runtime/kernels.h"
#include "fuzz/runtime/world_parts.h"

namespace kiln::fuzz {
namespace {

// What a call does for itself: memory, a write, a launch and a read on the stream of its own. Gives what went wrong.
std::string small_job(const Client& client, u32 number) {
  const auto gave = [](const char* what, const Error& error) { return std::string(what) + " in a host call gave: " + error.text(); };
  auto x = Buffer<u32>::from_host(client, {number, number + 1, number + 2});
  if (!x.has_value()) return gave("a buffer", x.error());
  auto y = Buffer<u32>::uninitialised(client, 3);
  if (!y.has_value()) return gave("memory", y.error());
  if (const auto r = plus(client.default_stream(), {{1}, {32}}, *x, *y, 5u); !r.has_value()) return gave("a launch", r.error());
  const auto got = y->read();
  if (!got.has_value()) return gave("a read", got.error());
  for (u32 i = 0; i < 3; ++i)
    if ((*got)[i] != number + i + 5) return "a read in a host call gave " + std::to_string((*got)[i]);
  return {};
}

}  // namespace

// A check may miss what is not confirmed, and invents nothing.
void World::check() {
  const Part p = part();
  note("check " + p.text(), {}, {p});
  const auto result = client_.check(p.view());
  if (!result.has_value() && roots_of(p).empty() && !excused(result.error()))
    wrong("a check found a failure where there is none: " + result.error().text());
}

void World::sync() {
  switch (below(4)) {
    case 0: {
      const Stream s = stream();
      note("sync_stream " + std::to_string(s.id()));
      std::uint64_t issued = 0;
      {
        const std::lock_guard lock(calls_->mutex);
        issued = calls_->streams[s.id()].issued;
      }
      const auto result = s.sync();
      if (records(s)) {
        if (result.has_value() || (result.error().rule() != "NotInCapture" && !excused(result.error())))
          wrong("a stream that is recorded was waited for");
        return;
      }
      if (!result.has_value()) return excused(result.error()) ? void() : wrong("a stream's sync gave: " + result.error().text());
      const std::lock_guard lock(calls_->mutex);
      if (calls_->streams[s.id()].made < issued && !faults()) wrong("a stream's sync did not wait for its host calls");
      return;
    }
    case 1: {
      note("sync_all");
      if (const auto r = client_.sync(); !r.has_value() && !excused(r.error())) wrong("a client's sync gave: " + r.error().text());
      return;
    }
    case 2: {
      const Stream s = stream();
      note("flush " + std::to_string(s.id()));
      if (const auto r = s.flush(); !r.has_value() && !excused(r.error())) wrong("a flush gave: " + r.error().text());
      return;
    }
    default: {
      const Part p = part();
      note("sync " + p.text(), {}, {p});
      const auto result = client_.sync(p.view());
      if (!result.has_value() && excused(result.error())) return;
      if (result.has_value() != roots_of(p).empty())
        wrong("a sync of " + p.text() + " gave " + (result.has_value() ? "success" : result.error().text()) + "\nand the model has " +
              std::to_string(roots_of(p).size()) + " failures there");
    }
  }
}

void World::event() {
  const Stream from = stream(), to = stream();
  note("event from " + std::to_string(from.id()) + " to " + std::to_string(to.id()));
  const Event event = from.record();
  if (chance(20)) {
    if (const auto r = event.sync(); !r.has_value() && !excused(r.error())) wrong("a wait for an event gave: " + r.error().text());
    if (!event.done()) wrong("an event that was waited for is not over");
  }
  const auto result = to.wait(event);
  if (result.has_value() && event.done()) return;  // of a stream that has done nothing yet, it is no event at all
  if (records(to)) return refused(to, {}, "NotInCapture", result, "a wait for an event in a capture");
  if (!result.has_value() && !excused(result.error())) wrong("a stream's wait for an event gave: " + result.error().text());
}

// Nobody waits for it.
void World::call() {
  const Stream s = stream();
  note("call on " + std::to_string(s.id()));
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(calls_->mutex);
    number = calls_->streams[s.id()].issued + 1;
  }
  const auto result = s.call([calls = calls_, stream = s.id(), number, client = client_, &together = together_] {
    const std::string job = small_job(client, static_cast<u32>(number));
    bool in_order = false;
    {
      const std::lock_guard lock(calls->mutex);
      in_order = ++calls->streams[stream].made == number;
    }
    if (together.faults.any() || (in_order && job.empty())) return;
    const std::lock_guard lock(together.mutex);
    if (together.wrong.empty())
      together.wrong = in_order ? job : "call " + std::to_string(number) + " of stream " + std::to_string(stream) + " was out of turn";
  });
  if (records(s)) return refused(s, {}, "NotInCapture", result, "a host call in a capture");
  if (!result.has_value()) return excused(result.error()) ? void() : wrong("a host call gave: " + result.error().text());
  const std::lock_guard lock(calls_->mutex);
  calls_->streams[s.id()].issued = number;
}

// This thread waits, so the call may do what this thread does, as long as nothing of that waits for the call.
void World::call_and_wait() {
  const Stream s = stream();
  if (records(s)) return;
  struct Over {
    std::promise<bool> made;
    bool told = false;
    void tell(bool m) {
      if (!std::exchange(told, true)) made.set_value(m);
    }
    ~Over() { tell(false); }  // it is not called where the device is lost
  };
  note("call_and_wait on " + std::to_string(s.id()));
  auto over = std::make_shared<Over>();
  std::future<bool> made = over->made.get_future();
  std::exception_ptr failed;
  const auto result = s.call([this, over = std::move(over), &failed] {
    in_call_ = true;
    try {
      inside_call();
    } catch (...) { failed = std::current_exception(); }
    in_call_ = false;
    over->tell(true);
  });
  if (!result.has_value()) return excused(result.error()) ? void() : wrong("a host call gave: " + result.error().text());
  if (!made.get() && !faults()) wrong("a host call was not made");
  if (failed) std::rethrow_exception(failed);
}

void World::inside_call() {
  for (std::uint64_t n = 1 + below(4); n-- > 0;) {
    switch (below(6)) {
      case 0: launch_good(); break;
      case 1: launch_bad(); break;
      case 2: copy(); break;
      case 3: host_write(); break;
      case 4: fill(); break;
      default: read(); break;
    }
  }
}

}  // namespace kiln::fuzz
