// kiln run: one launch with arguments from the command line; its outputs or its failure as JSON.
#include "arguments.h"
#include "command.h"
#include "compile.h"
#include "engine.h"
#include "limits.h"
#include "source.h"
#include "values.h"

namespace kiln::cli {
namespace {

Json outputs_json(const ir::Kernel& kernel, const std::vector<Argument>& arguments, const Outcome& outcome, bool bits) {
  Json outputs = Json::array();
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    const Argument& a = arguments[i];
    if (!a.is_buffer || a.access == ir::Access::In) continue;
    const std::vector<std::uint8_t>& bytes = outcome.outputs[i];
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

}  // namespace

int run_command(const Options& options) {
  if (options.grid.empty() || options.block.empty()) usage("run needs --grid X,Y,Z and --block X,Y,Z");
  OneLaunch launch;
  launch.grid = parse_extent(options.grid, "--grid");
  launch.block = parse_extent(options.block, "--block");
  launch.shared_bytes = options.shared.empty() ? 0 : parse_count(options.shared, "--shared");
  const Mode mode = parse_mode(options.mode);
  for (const std::string& text : options.args) launch.arguments.push_back(parse_argument(text));
  const std::unique_ptr<Source> source = Source::open(options.source, Source::Places::OfSource);
  std::shared_ptr<const Variant> variant;
  try {
    variant = source->variant(options.kernels.at(0));
    match_arguments(prepared(*variant, mode).kernel, launch.arguments);
  } catch (const Exception& e) {  // it does not record or is no valid kernel: the launch fails as any other
    print_json({{"outputs", Json::array()}, {"failure", failure_json(e.error())}});
    return kFailed;
  }
  recorded();
  const std::unique_ptr<Engine> engine = open_engine(options.device);
  const Outcome outcome = engine->run(*variant, mode, launch, options.json ? LogTo::Outcome : LogTo::Stderr);
  Json document{{"outputs", outputs_json(variant->recorded(), launch.arguments, outcome, options.bits)}, {"failure", outcome.failure}};
  if (engine->interprets()) document["misuse"] = outcome.misuse;
  if (options.json) document["log"] = outcome.log;
  print_json(document);
  return outcome.failed() || !outcome.misuse.empty() ? kFailed : kDone;
}

}  // namespace kiln::cli
