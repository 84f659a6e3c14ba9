// kiln run: one launch with arguments from the command line; its outputs or its failure as JSON.
#include <optional>

#include "arguments.h"
#include "command.h"
#include "compile.h"
#include "kiln/runtime/client.h"
#include "source.h"
#include "values.h"

namespace kiln::cli {
namespace {

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

// What the kernel logs: lines for people on stderr, or collected for the document.
class Log {
 public:
  Log(const Client& client, bool collect) : client_(client), collect_(collect) {
    if (collect_) client_.on_log([this](const LogLine& line) { take(line); });
  }
  ~Log() {
    if (collect_) client_.on_log({});
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  void put_into(Json& document) {
    if (collect_) document["log"] = std::move(lines_);
  }

 private:
  void take(const LogLine& line) {
    Json json{{"text", line.text}};
    if (line.missing != 0) {
      json["missing"] = line.missing;
    } else {
      json["place"] = line.line != 0 ? std::string(line.file) + ":" + std::to_string(line.line) : "?";
      json["block"] = line.block;
      json["thread"] = line.thread;
    }
    lines_.push_back(std::move(json));
  }

  Client client_;
  bool collect_;
  Json lines_ = Json::array();
};

struct Run {
  Client client;
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
      Result<Memory> memory = rt::allocate(run.client, a.bytes.size());
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

// The buffers that the kernel may write, as JSON; or the failure that lives on one of them.
Result<Json> download(Run& run, const ir::Kernel& kernel, const std::vector<Argument>& arguments, bool bits) {
  Json outputs = Json::array();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    if (!a.is_buffer || a.access == ir::Access::In) continue;
    std::vector<std::uint8_t> bytes(a.bytes.size());
    if (!bytes.empty()) {
      if (Result<void> read = rt::read(run.stream, run.args[i].binding, bytes.data()); !read) return read.error();
    }
    Json values = Json::array();
    for (std::size_t at = 0; at < bytes.size(); at += byte_size(a.type)) {
      const std::uint64_t v = load_bits(a.type, bytes.data() + at);
      values.push_back(bits ? Json(value_hex(a.type, v)) : value_json(a.type, v));
    }
    outputs.push_back(
        {{"arg", i}, {"name", kernel.params[i].name}, {"type", std::string(ir::name(a.type))}, {"values", std::move(values)}});
  }
  return outputs;
}

Result<Json> launch_and_read(const Client& client, const Variant& variant, const LaunchConfig& config, Mode mode,
                             const std::vector<Argument>& arguments, bool bits) {
  Run run{client, client.stream(), {}};
  if (Result<void> r = upload(run, arguments); !r) return r.error();
  LaunchRequest request;
  request.variant = &variant;
  request.config = config;
  request.args = run.args;
  request.mode = mode;
  if (Result<void> r = launch(run.stream, request); !r) return r.error();
  Result<Json> outputs = download(run, variant.recorded(), arguments, bits);
  if (!outputs) return outputs.error();
  if (Result<void> r = run.stream.sync(); !r) return r.error();  // a device that is lost by a launch without outputs, too
  return outputs;
}

}  // namespace

int run_command(const Options& options) {
  if (options.grid.empty() || options.block.empty()) usage("run needs --grid X,Y,Z and --block X,Y,Z");
  const auto grid = parse_extent(options.grid, "--grid"), block = parse_extent(options.block, "--block");
  const std::uint32_t shared_bytes = options.shared.empty() ? 0 : parse_count(options.shared, "--shared");
  const Mode mode = parse_mode(options.mode);
  std::vector<Argument> arguments;
  for (const std::string& text : options.args) arguments.push_back(parse_argument(text));
  const std::unique_ptr<Source> source = Source::open(options.source, Source::Places::OfSource);
  std::optional<Log> log;
  const auto print = [&](const Json& outputs, const Json& failure) {
    Json document{{"outputs", outputs}, {"failure", failure}};
    if (log) log->put_into(document);
    print_json(document);
  };
  const auto failed = [&](const Error& error) {
    print(Json::array(), failure_json(error));
    return kFailed;
  };
  std::shared_ptr<const Variant> variant;
  try {
    variant = source->variant(options.kernels.at(0));
    match_arguments(prepared(*variant, mode).kernel, arguments);
  } catch (const Exception& e) { return failed(e.error()); }  // it does not record or is no valid kernel: the launch fails as any other
  const Client client = options.device.empty() ? Client::default_client() : Client::open(options.device).value();

  log.emplace(client, options.json);
  LaunchConfig config;
  config.grid = {grid[0], grid[1], grid[2]};
  config.block = {block[0], block[1], block[2]};
  config.shared_bytes = shared_bytes;
  const Result<Json> outputs = launch_and_read(client, *variant, config, mode, arguments, options.bits);
  if (outputs) {
    print(outputs.value(), nullptr);
    return kDone;
  }
  return failed(outputs.error());
}

}  // namespace kiln::cli
