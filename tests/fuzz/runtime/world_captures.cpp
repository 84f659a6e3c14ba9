// Captures of the world's own stream, and replays of the graphs that come of them.
#include <algorithm>
#include <utility>

#include "fuzz/runtime/world_parts.h"

namespace kiln::fuzz {
namespace {

constexpr std::size_t kGraphs = 4, kOperations = 400;

}  // namespace

// Prepares one, begins it, or what is a mistake.
void World::capture() {
  if (!recorded_) {
    note("prepare");
    together_.prepared.fetch_add(1);  // before there is one that a cleanup of another thread could meet
    together_.captures.fetch_add(1);
    auto prepared = GraphCapture::prepare(own_);
    if (!prepared.has_value()) {
      together_.captures.fetch_sub(1);
      return excused(prepared.error()) ? void() : wrong("preparing a capture gave: " + prepared.error().text());
    }
    recorded_.emplace(Recorded{std::move(*prepared)});
    if (!is_capturing(own_)) wrong("a stream that was prepared is not being captured");
    return;
  }
  if (chance(10)) {
    note("prepare_twice");
    const auto again = GraphCapture::prepare(own_);
    if (again.has_value() || again.error().rule() != "CaptureOpen") wrong("a stream was captured twice");
    return;
  }
  note("begin");
  const auto begun = recorded_->capture.begin();
  if (recorded_->recording) {
    if (begun.has_value() || begun.error().rule() != "CaptureNotPrepared") wrong("a capture began twice");
    return;
  }
  if (!begun.has_value()) wrong("a capture that was prepared gave: " + begun.error().text());
  recorded_->recording = true;
}

void World::end_capture() {
  if (!recorded_) return;
  Recorded r = std::move(*recorded_);
  recorded_.reset();
  const std::uint64_t how = below(10);
  const bool other = how == 1;
  note(how == 0 ? "abort" : other ? "end_by_other" : "end", r.ops);
  if (how == 0) {
    r.capture.abort();
    together_.captures.fetch_sub(1);
    if (is_capturing(own_)) wrong("a capture goes on after it was aborted");
    return;
  }
  const auto graph = other ? r.capture.end(streams_.front()) : r.capture.end();
  together_.captures.fetch_sub(1);
  if (is_capturing(own_)) wrong("a capture goes on after its end");
  if (!r.recording) {
    if (graph.has_value() || graph.error().rule() != "CaptureNotRecording") wrong("a capture that never began gave a graph");
    return;
  }
  if (!graph.has_value()) {
    const Error& error = graph.error();
    hear(error);
    // What was recorded carries the error.
    const std::string root = root_name(error);
    repeated_.insert(root);
    const bool doomed = r.doomed && error.rule() == "CaptureDoomed" && r.doomed->contains(root);
    const bool abandoned = other && root == "CaptureAbandoned";
    if (!doomed && !abandoned && !(faults() && is_injected(root))) {
      std::string text = "the end of a capture gave: " + error.text() + "\nand it was doomed by:";
      for (const std::string& by : r.doomed.value_or(Roots())) text += " " + by + ";";
      wrong(text);
    }
    return claim_all(r.ops, {root});
  }
  if (other) wrong("a capture that another stream ended gave a graph");
  if (r.doomed) wrong("a capture that was doomed by " + *r.doomed->begin() + " gave a graph");
  if (graph->operations() != r.ops.size())
    wrong("a graph of " + std::to_string(r.ops.size()) + " operations has " + std::to_string(graph->operations()));
  if (graphs_.size() >= kGraphs) graphs_.erase(graphs_.begin());
  graphs_.push_back({*graph, std::move(r.ops)});
}

void World::replay() {
  if (graphs_.empty()) return;
  const std::size_t which = below(graphs_.size());
  const Replayable& g = graphs_[which];
  const Stream s = stream();
  const bool recording = records(s);
  if (!recording && !may_run(g.ops)) return;
  if (recording && recorded_->ops.size() + g.ops.size() > kOperations) return;
  note("replay of graph " + std::to_string(g.graph.id()) + " on " + std::to_string(s.id()), g.ops);
  const auto result = g.graph.replay(s);
  if (g.destroyed) return refused(s, {}, "GraphDestroyed", result, "a replay of a graph that was destroyed");
  if (result.has_value() && !recording)
    for (const Action& a : g.ops)
      if (!a.fails.empty()) repeated_.insert(a.fails);
  did(s, g.ops, result);
}

void World::drop_graph() {
  if (graphs_.empty()) return;
  const std::size_t which = below(graphs_.size());
  Replayable& g = graphs_[which];
  if (chance(50)) {
    note("drop_graph " + std::to_string(g.graph.id()));
    graphs_.erase(graphs_.begin() + static_cast<std::ptrdiff_t>(which));
    return;
  }
  note("destroy " + std::to_string(g.graph.id()));
  const auto result = g.graph.destroy();
  if (g.destroyed) {
    if (result.has_value() || result.error().rule() != "GraphDestroyed") wrong("a graph was destroyed twice");
    return;
  }
  g.destroyed = true;
  if (result.has_value()) return;
  if (!excused(result.error())) wrong("destroying a graph gave: " + result.error().text());
  claim_all(g.ops, {root_name(result.error())});
}

}  // namespace kiln::fuzz
