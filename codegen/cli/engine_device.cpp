// A launch on a device.
#include <optional>

#include "engine.h"
#include "engine_parts.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/prepared.h"
#include "limits.h"

namespace kiln::cli {

Json failure_json(const Error& error) {
  const Error& root = root_of(error);
  const Error::Data& d = root.data();
  const auto number = [](const std::optional<std::uint64_t>& n) { return n ? Json(*n) : Json(nullptr); };
  Json json{
      {"code", name(root.code())},        {"rule", d.rule},           {"message", d.message}, {"kernel", d.kernel}, {"place", d.place},
      {"requested", number(d.requested)}, {"limit", number(d.limit)}, {"bounds", nullptr},    {"check", nullptr},   {"text", error.text()}};
  if (!d.bounds) return json;
  const BoundsFault& b = *d.bounds;
  if (root.code() != ErrorCode::Bounds) {  // of a check, an assumption or a trap; its values are in the message
    json["check"] = {{"operation", b.operation}, {"place", b.place}, {"thread", b.thread}, {"block", b.block}};
  } else {
    json["bounds"] = {{"memory", b.memory},       {"operation", b.operation},
                      {"place", b.place},         {"declared", b.declared},
                      {"dimension", b.dimension}, {"index", b.index_signed ? Json(static_cast<std::int64_t>(b.index)) : Json(b.index)},
                      {"extent", b.extent},       {"thread", b.thread},
                      {"block", b.block}};
  }
  return json;
}

namespace {

// What the kernel logs, while this lives.
class Log {
 public:
  Log(const Client& client, LogTo to, Json& lines) : client_(client), taken_(to != LogTo::Stderr) {
    if (to == LogTo::Outcome) client_.on_log([&lines](const LogLine& line) { take(line, lines); });
    if (to == LogTo::Nowhere) client_.on_log([](const LogLine&) {});
  }
  ~Log() {
    if (taken_) client_.on_log({});
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

 private:
  static void take(const LogLine& line, Json& lines) {
    Json json{{"text", line.text}};
    if (line.missing != 0) {
      json["missing"] = line.missing;
    } else {
      json["place"] = line.line != 0 ? std::string(line.file) + ":" + std::to_string(line.line) : "?";
      json["block"] = line.block;
      json["thread"] = line.thread;
    }
    lines.push_back(std::move(json));
  }

  Client client_;
  bool taken_;
};

struct Run {
  Stream stream;
  std::vector<LaunchArg> args;
};

Result<void> upload(Run& run, const std::vector<Argument>& arguments) {
  for (const Argument& a : arguments) {
    LaunchArg arg;
    arg.type = a.type;
    arg.is_buffer = a.is_buffer;
    arg.bits = a.bits;
    if (a.is_buffer) {
      Result<Memory> memory = rt::allocate(run.stream.client(), a.bytes.size());
      if (!memory) return memory.error();
      arg.binding = {memory.value(), {0, a.bytes.size()}};
      arg.rank = static_cast<std::uint8_t>(a.extents.size());
      std::uint64_t stride = 1;
      for (std::size_t d = a.extents.size(); d-- > 0;) {
        arg.extents[d] = a.extents[d];
        arg.strides[d] = stride;  // dense; read only where the kernel declares strides
        stride *= a.extents[d];
      }
      if (!a.bytes.empty()) {
        if (Result<void> written = rt::write(run.stream, arg.binding, a.bytes.data()); !written) return written;
      }
    }
    run.args.push_back(std::move(arg));
  }
  return {};
}

// The buffers that the kernel may write; or the failure that lives on one of them.
Result<void> download(Run& run, const std::vector<Argument>& arguments, Outcome& outcome) {
  outcome.outputs.resize(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    if (!a.is_buffer || a.access == ir::Access::In) continue;
    outcome.outputs[i].resize(a.bytes.size());
    if (a.bytes.empty()) continue;
    if (Result<void> read = rt::read(run.stream, run.args[i].binding, outcome.outputs[i].data()); !read) return read;
  }
  return run.stream.sync();  // a device that is lost by a launch without outputs, too
}

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Client client, std::string name) : client_(std::move(client)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::string about() const override { return client_.properties().name + ", " + client_.properties().arch; }

  Outcome run(const Variant& variant, Mode mode, const OneLaunch& one, LogTo to) override {
    Outcome outcome;
    const Log log(client_, to, outcome.log);
    if (const Result<void> done = launch_and_read(variant, mode, one, outcome); !done) {
      outcome.outputs.clear();
      outcome.failure = failure_json(done.error());
      outcome.why = joined(one_line(done.error()));
      outcome.rule = root_of(done.error()).data().rule;
    }
    return outcome;
  }

 private:
  Result<void> launch_and_read(const Variant& variant, Mode mode, const OneLaunch& one, Outcome& outcome) {
    Run run{client_.stream(), {}};
    if (Result<void> r = upload(run, one.arguments); !r) return r;
    LaunchRequest request;
    request.variant = &variant;
    request.config.grid = {one.grid[0], one.grid[1], one.grid[2]};
    request.config.block = {one.block[0], one.block[1], one.block[2]};
    request.config.shared_bytes = one.shared_bytes;
    request.args = run.args;
    request.mode = mode;
    if (one.grid[0] == 0 || one.grid[1] == 0 || one.grid[2] == 0) {
      if (Result<void> r = launch(run.stream, request); !r) return r;
    } else {
      const Result<PreparedLaunch> prepared = [&] {  // compiles, and runs nothing yet
        const Compiling limits(client_.properties().kind == "cuda");
        return PreparedLaunch::prepare(run.stream, request);
      }();
      if (!prepared) return prepared.error();
      if (Result<void> r = (*prepared)(); !r) return r;
    }
    return download(run, one.arguments, outcome);
  }

  Client client_;
  std::string name_;
};

std::string name_of(const Client& client) { return client.properties().kind; }

}  // namespace

std::unique_ptr<Engine> device_engine(const std::string& name) {
  if (name.empty()) {
    Client client = Client::default_client();
    std::string kind = name_of(client);
    return std::make_unique<DeviceEngine>(std::move(client), std::move(kind));
  }
  return std::make_unique<DeviceEngine>(Client::open(name).value(), name);
}

}  // namespace kiln::cli
