// The bodies of kiln/runtime/graph.h.
#include "kiln/runtime/graph.h"

#include "src/capture/captures.h"
#include "src/make_error.h"
#include "src/server.h"
#include "src/server_log.h"

namespace kiln {
namespace {

rt::Captures& captures(const Stream& stream) { return stream.client().server().captures(); }

Error no_graph() { return rt::capture_error("NoGraph", "there is no graph: it was not captured, or its capture failed"); }

Error foreign(const Stream& stream, const Server& owner, const char* what) {
  return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                    std::string(what) + " belongs to " + owner.label() + ", the stream to " + stream.client().server().label() +
                        "; use a stream of that device");
}

void tell(const Stream& stream, const char* what) noexcept {
  if (rt::logs(rt::LogArea::Capture, rt::LogLevel::Debug)) rt::tell_capture(stream.client().server(), stream.id(), what);
}

}  // namespace

std::uint64_t Graph::id() const { return state_ != nullptr ? state_->body->id : 0; }
std::size_t Graph::operations() const { return state_ != nullptr ? state_->body->ops.size() : 0; }

Result<void> Graph::replay(const Stream& stream) const {
  return rt::or_no_memory([&]() -> Result<void> {
    rt::Captures& of = captures(stream);
    if (state_ == nullptr) return of.watch_refused(stream.id(), no_graph());
    if (state_->server.get() != &stream.client().server())
      return of.watch_refused(stream.id(), foreign(stream, *state_->server, "the graph"));
    return of.replay(stream.id(), state_);
  });
}

Result<void> Graph::destroy() const {
  return rt::or_no_memory([&]() -> Result<void> {
    if (state_ == nullptr) return no_graph();
    return state_->server->captures().destroy(state_);
  });
}

Result<GraphCapture> GraphCapture::prepare(const Stream& stream, std::source_location where) {
  return rt::or_no_memory([&]() -> Result<GraphCapture> {
    const auto token = captures(stream).prepare(stream.id(), where);
    if (!token.has_value()) return token.error();
    tell(stream, "prepared");
    return GraphCapture(stream, *token);
  });
}

GraphCapture& GraphCapture::operator=(GraphCapture&& o) noexcept {
  if (this != &o) {
    abort();
    stream_ = o.stream_;
    token_ = std::exchange(o.token_, 0);
  }
  return *this;
}

Result<void> GraphCapture::begin() {
  return rt::or_no_memory([&] {
    auto begun = captures(stream_).begin(stream_.id(), token_);
    if (begun.has_value()) tell(stream_, "begun");
    return begun;
  });
}

Result<Graph> GraphCapture::end() { return end(stream_); }

Result<Graph> GraphCapture::end(const Stream& caller) {
  return rt::or_no_memory([&]() -> Result<Graph> {
    if (!(caller.client() == stream_.client())) return foreign(caller, stream_.client().server(), "the capture");
    auto graph = captures(stream_).end(stream_.id(), std::exchange(token_, 0), caller.id());
    if (!graph.has_value()) return graph.error();
    return Graph(std::move(*graph));
  });
}

void GraphCapture::abort() noexcept {
  if (token_ == 0) return;
  captures(stream_).abort(stream_.id(), std::exchange(token_, 0));
  tell(stream_, "dropped");
}

bool is_capturing(const Stream& stream) { return captures(stream).capturing(stream.id()); }

}  // namespace kiln
