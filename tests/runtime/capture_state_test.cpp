// The state machine of a capture: as a table, and as a client meets it.
#include "src/capture/capture_state.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;
using rt::CapturePhase;
using rt::CaptureState;

namespace {

enum class Call { Prepare, PrepareByOther, Begin, End, EndByOther, Abort };
struct Row {
  CapturePhase from;
  Call call;
  const char* rule;  // of its error; "" for success
  CapturePhase to;
};
constexpr auto None = CapturePhase::None, Prepared = CapturePhase::Prepared, Recording = CapturePhase::Recording;
const Row kTable[] = {
    {None, Call::Prepare, "", Prepared},
    {None, Call::PrepareByOther, "", Prepared},
    {None, Call::Begin, "CaptureNotPrepared", None},
    {None, Call::End, "CaptureNotRecording", None},
    {None, Call::EndByOther, "CaptureNotRecording", None},
    {None, Call::Abort, "", None},
    {Prepared, Call::Prepare, "CaptureOpen", Prepared},
    {Prepared, Call::PrepareByOther, "CaptureOpen", Prepared},
    {Prepared, Call::Begin, "", Recording},
    {Prepared, Call::End, "CaptureNotRecording", None},  // and it is over
    {Prepared, Call::EndByOther, "CaptureNotRecording", None},
    {Prepared, Call::Abort, "", None},
    {Recording, Call::Prepare, "CaptureOpen", Recording},
    {Recording, Call::PrepareByOther, "CaptureOpen", Recording},
    {Recording, Call::Begin, "CaptureNotPrepared", Recording},
    {Recording, Call::End, "", None},
    {Recording, Call::EndByOther, "", None},  // abandoned: what that means is below
    {Recording, Call::Abort, "", None},
};
constexpr std::uint64_t kOwner = 3, kOther = kOwner + rt::kNormalQueues;  // of one queue

std::string rule(const Result<void>& result) { return rule_of(result); }

}  // namespace

TEST_CASE("every call of a capture in every state: what it answers and where it leads") {
  for (const Row& row : kTable) {
    CAPTURE(static_cast<int>(row.from));
    CAPTURE(static_cast<int>(row.call));
    CaptureState state;
    if (row.from != None) CHECK(state.prepare(kOwner).has_value());
    if (row.from == Recording) CHECK(state.begin().has_value());
    REQUIRE(state.phase() == row.from);
    std::string answer;
    switch (row.call) {
      case Call::Prepare: answer = rule(state.prepare(kOwner)); break;
      case Call::PrepareByOther: answer = rule(state.prepare(kOther)); break;
      case Call::Begin: answer = rule(state.begin()); break;
      case Call::End:
      case Call::EndByOther: {
        const auto ended = state.end(row.call == Call::End ? kOwner : kOther);
        answer = rule_of(ended);
        if (ended.has_value()) {
          CHECK(ended->owned == (row.call == Call::End));
          CHECK(ended->owner == kOwner);
        }
        break;
      }
      case Call::Abort: state.abort(); break;
    }
    CHECK(answer == row.rule);
    CHECK(state.phase() == row.to);
    CHECK((state.recording() != nullptr) == (row.to == Recording));
  }
}

TEST_CASE("what is noted of a capture is noted while it records, the first failure counts, and the next capture knows nothing of it") {
  CaptureState state;
  const auto failure = [](const char* text) { return Error(ErrorCode::Generic, text); };
  state.fail(failure("before"));
  REQUIRE(state.prepare(kOwner).has_value());
  state.fail(failure("prepared"));
  REQUIRE(state.begin().has_value());
  {
    auto ended = state.end(kOwner);
    REQUIRE(ended.has_value());
    CHECK_FALSE(ended->failure);
  }
  for (const bool aborted : {false, true}) {
    REQUIRE(state.prepare(kOwner).has_value());
    REQUIRE(state.begin().has_value());
    state.fail(failure("first"));
    state.fail(failure("second"));
    if (aborted) {
      state.abort();
    } else {
      const auto ended = state.end(kOwner);
      REQUIRE(ended->failure);
      CHECK(ended->failure->data().message == "first");
    }
    REQUIRE(state.prepare(kOwner).has_value());
    REQUIRE(state.begin().has_value());
    CHECK_FALSE(state.end(kOwner)->failure);
  }
}

TEST_CASE("a client meets the same states, and every client of the stream sees them, of no other stream") {
  const Client client = graph_client();
  const Client again(client);
  const Stream stream = client.stream(), other = client.stream();
  const auto capturing = [&](bool expected) {
    CHECK(is_capturing(stream) == expected);
    CHECK(is_capturing(Stream(again, stream.id())) == expected);
    CHECK_FALSE(is_capturing(other));
    CHECK_FALSE(is_capturing(client.default_stream()));
  };
  capturing(false);
  {
    auto capture = GraphCapture::prepare(stream);
    REQUIRE(capture.has_value());
    capturing(true);
    CHECK(rule_of(GraphCapture::prepare(stream)) == "CaptureOpen");
    CHECK(rule_of(GraphCapture::prepare(Stream(again, stream.id()))) == "CaptureOpen");
    const Stream folded(client, stream.id() + rt::kNormalQueues);
    const auto refused = GraphCapture::prepare(folded);
    CHECK(rule_of(refused) == "CaptureOpen");
    CHECK(has(refused.error().text(), "stream " + std::to_string(stream.id())));
    CHECK_FALSE(is_capturing(folded));
    REQUIRE(capture->begin().has_value());
    CHECK(rule_of(capture->begin()) == "CaptureNotPrepared");
    capturing(true);
    CHECK(capture->end().has_value());
    capturing(false);
    CHECK(rule_of(capture->begin()) == "CaptureNotPrepared");
    CHECK(rule_of(capture->end()) == "CaptureNotRecording");
    REQUIRE(GraphCapture::prepare(folded).has_value());  // and dropped
  }
  {
    auto capture = GraphCapture::prepare(stream);  // ended before it began: over
    REQUIRE(capture.has_value());
    CHECK(rule_of(capture->end()) == "CaptureNotRecording");
    capturing(false);
    auto next = GraphCapture::prepare(stream);
    REQUIRE(next.has_value());
    capture->abort();  // of what is over: it does not touch the next one
    CHECK(rule_of(capture->begin()) == "CaptureNotPrepared");
    capturing(true);
    GraphCapture moved = std::move(*next);
    next->abort();  // moved from
    capturing(true);
    REQUIRE(moved.begin().has_value());
    *next = std::move(moved);
    capturing(true);
  }
  capturing(false);  // destroyed while it recorded
  REQUIRE(client.sync().has_value());
}
