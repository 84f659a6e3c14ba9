// kiln check: kernels on two devices with generated inputs; their outputs compared bit by bit.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "arguments.h"
#include "command.h"
#include "compare.h"
#include "compile.h"
#include "completions.h"
#include "engine.h"
#include "kiln/runtime/client.h"
#include "launch_draw.h"
#include "limits.h"
#include "names.h"
#include "selection.h"
#include "source.h"

namespace kiln::cli {
namespace {

constexpr std::uint64_t kScreenSteps = 5'000'000;  // of warps: about a second of the interpreter
constexpr std::uint64_t kMostTooLong = 4;          // inputs that reach it, before a kernel is given up

std::uint64_t whole_number(const std::string& text, const char* option, std::uint64_t least, std::uint64_t most) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size() || n < least || n > most)
    usage(std::string(option) + " '" + text + "': expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return n;
}

struct Request {
  const Options& options;
  Mode mode;
  std::uint64_t seed = 1, runs = 20;
  GivenParts given;
  bool all_given = false;
};

// Inputs that were not compared, by why.
struct LeftOut {
  std::uint64_t too_long = 0, failed_alike = 0, refused = 0, trapped = 0;
  std::string failure, refusal;  // the first of each
  std::uint64_t all() const { return too_long + failed_alike + refused + trapped; }
  std::string text() const {
    std::string t;
    const auto add = [&](std::uint64_t n, const std::string& what) {
      if (n != 0) t += (t.empty() ? "" : ", ") + std::to_string(n) + " " + what;
    };
    add(too_long, "that run for too long");
    add(failed_alike, "that fail on both (" + failure + ")");
    add(trapped, "on which it traps");
    add(refused, "that a device refuses (" + refusal + ")");
    return t;
  }
};

struct Finding {
  Difference difference;
  OneLaunch launch;
  bool repeatable[2] = {true, true};
  std::string interpreter;  // whom it agrees with; empty: it was not asked
};

struct Report {
  std::string kernel;
  std::uint64_t compared = 0;
  LeftOut left_out;
  std::optional<Finding> finding;
  std::string why;  // nothing could be compared
  bool good() const { return !finding && why.empty(); }
};

std::string plain_word(const std::string& word) {
  const bool plain = !word.empty() &&
                     word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@") == std::string::npos;
  return plain ? word : quoted_for_shell(word);
}
std::string three(const std::array<std::uint32_t, 3>& d) {
  return std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]);
}

class Check {
 public:
  Check(const Request& request, std::unique_ptr<Engine> on, std::unique_ptr<Engine> against)
      : request_(request),
        engines_{std::move(on), std::move(against)},
        names_{engines_[0]->name(), engines_[1]->name()},
        screen_(open_engine("interp", kScreenSteps)) {
    if (names_[0] == names_[1]) names_[0] += " (first)", names_[1] += " (again)";
  }

  const Engine& engine(std::size_t side) const { return *engines_[side]; }
  const std::string (&names() const)[2] { return names_; }

  Report kernel(const Variant& variant) {
    Report report;
    report.kernel = variant.name();
    variant_ = &variant;
    const ir::Prepared& kernel = prepared(variant, request_.mode);
    check_given(kernel.kernel);
    LaunchDraw draw(kernel, request_.given);
    const std::uint64_t wanted = request_.all_given ? 1 : request_.runs, most = request_.all_given ? 1 : wanted * 10 + 20;
    for (std::uint64_t i = 0; i < most && report.compared < wanted && report.good() && report.left_out.too_long < kMostTooLong; ++i) {
      const auto size = static_cast<unsigned>(1 + report.compared * 7 / wanted);
      std::optional<OneLaunch> launch = draw.draw(request_.seed * 1'000'003 + i, size);
      if (!launch) {
        report.why = "no launch was found that fits it" + (draw.unmet().empty() ? std::string() : ": " + draw.unmet() + " stayed false") +
                     "; give what it needs with --arg, --grid, --block";
        return report;
      }
      one(std::move(*launch), report);
    }
    if (report.compared == 0 && report.good()) report.why = "no input could be compared: " + report.left_out.text();
    return report;
  }

  std::vector<std::string> commands(const std::string& spec, const OneLaunch& launch) const {
    const auto words = [&](const char* verb) {
      std::string text = std::string("kiln ") + verb + (request_.options.source.empty() ? "" : " " + plain_word(request_.options.source)) +
                         " " + plain_word(spec);
      if (!request_.options.mode.empty()) text += " --mode " + request_.options.mode;
      text += " --grid " + three(launch.grid) + " --block " + three(launch.block);
      if (launch.shared_bytes != 0) text += " --shared " + std::to_string(launch.shared_bytes);
      for (const Argument& a : launch.arguments) text += " --arg " + plain_word(a.text);
      return text;
    };
    return {words("run") + " --device " + engines_[0]->name() + " --bits", words("run") + " --device " + engines_[1]->name() + " --bits",
            words("check") + " --on " + engines_[0]->name() + " --against " + engines_[1]->name()};
  }

 private:
  void check_given(const ir::Kernel& kernel) const {
    const auto& given = request_.given.arguments;
    if (given.empty()) return;
    if (given.size() != kernel.params.size())
      usage(std::to_string(given.size()) + (given.size() == 1 ? " --arg was" : " --arg were") + " given, kernel '" + kernel.name +
            "' takes " + std::to_string(kernel.params.size()) + "; _ stands for one that is drawn");
    // Those that are given, against their parameters; the others fit whatever they are.
    ir::Kernel part = kernel;
    part.params.clear();
    std::vector<Argument> arguments;
    for (std::size_t p = 0; p < given.size(); ++p)
      if (given[p]) part.params.push_back(kernel.params[p]), arguments.push_back(*given[p]);
    match_arguments(part, arguments);
  }

  void one(OneLaunch launch, Report& report) {
    // The interpreter sees each drawn input first: it comes to an end whatever the kernel does, and touches nothing but its own memory.
    const bool screened = !request_.all_given;
    Outcome seen;
    if (screened) {
      seen = screen_->run(*variant_, Mode::Checked, launch, LogTo::Nowhere);
      if (std::any_of(seen.misuse.begin(), seen.misuse.end(),
                      [](const std::string& m) { return m.find("step limit") != std::string::npos; })) {
        ++report.left_out.too_long;
        return;
      }
      if (seen.failed() && seen.failure["code"] == "Trapped") {  // it would end the devices
        ++report.left_out.trapped;
        return;
      }
      if (!seen.misuse.empty()) {
        Finding finding;
        finding.difference.kind = Difference::Kind::Misuse;
        finding.difference.text = "the interpreter finds: " + seen.misuse.front();
        finding.launch = std::move(launch);
        report.finding = std::move(finding);
        return;
      }
      const bool checked = prepared(*variant_, request_.mode).kernel.options.checked;
      if (seen.failed() && !checked) {  // what is not checked does anything then
        ++report.left_out.failed_alike;
        if (report.left_out.failure.empty()) report.left_out.failure = seen.why;
        return;
      }
    }
    Outcome outcomes[2];
    for (std::size_t side = 0; side < 2; ++side) {
      outcomes[side] = run(side, launch);
      if (!outcomes[side].failed()) continue;
      const std::string code = outcomes[side].failure["code"];
      if (code.starts_with("Compile")) {
        report.why = names_[side] + ": " + outcomes[side].why;
        return;
      }
      if (is_refusal(code)) {
        ++report.left_out.refused;
        if (report.left_out.refusal.empty()) report.left_out.refusal = outcomes[side].why;
        return;
      }
    }
    const ir::Kernel& kernel = variant_->recorded();
    std::optional<Difference> difference = find_difference(kernel, launch.arguments, outcomes, names_);
    if (!difference && outcomes[0].failed()) {
      ++report.left_out.failed_alike;
      if (report.left_out.failure.empty()) report.left_out.failure = outcomes[0].why;
      return;
    }
    ++report.compared;
    if (!difference) return;
    Finding finding;
    finding.difference = std::move(*difference);
    if (finding.difference.kind == Difference::Kind::Value) {
      for (std::size_t side = 0; side < 2; ++side)
        for (int again = 0; again < 2; ++again)
          finding.repeatable[side] = finding.repeatable[side] && same(launch, outcomes[side], run(side, launch));
      const bool asked = screened && !engines_[0]->interprets() && !engines_[1]->interprets();
      if (asked && !seen.failed())
        finding.interpreter = same(launch, seen, outcomes[0]) ? names_[0] : same(launch, seen, outcomes[1]) ? names_[1] : "neither";
    }
    finding.launch = std::move(launch);
    report.finding = std::move(finding);
  }

  Outcome run(std::size_t side, const OneLaunch& launch) { return engines_[side]->run(*variant_, request_.mode, launch, LogTo::Nowhere); }
  bool same(const OneLaunch& launch, const Outcome& a, const Outcome& b) const {
    return !find_difference(variant_->recorded(), launch.arguments, {a, b}, names_);
  }
  // The launch is beyond a device's limits, which says nothing of the kernel's code.
  static bool is_refusal(const std::string& code) { return code == "Validation" || code == "TooManyResources" || code == "OutOfMemory"; }

  const Request& request_;
  std::unique_ptr<Engine> engines_[2];
  std::string names_[2];
  std::unique_ptr<Engine> screen_;
  const Variant* variant_ = nullptr;
};

std::string verdict(const Finding& finding, const std::string (&names)[2]) {
  if (finding.difference.kind != Difference::Kind::Value) return "";
  std::string text;
  for (std::size_t side = 0; side < 2; ++side)
    if (!finding.repeatable[side]) text += (text.empty() ? "" : " and ") + names[side];
  if (!text.empty()) return text + " gives another result each time: it depends on the order of the threads";
  text = "each gives its own result again";
  if (!finding.interpreter.empty()) text += "; the interpreter agrees with " + finding.interpreter;
  return text;
}

Json to_json(const Report& report, const Check& check, const ir::Kernel* kernel, const std::string& spec) {
  Json json{{"kernel", report.kernel},
            {"same", report.good()},
            {"compared", report.compared},
            {"left_out",
             {{"too_long", report.left_out.too_long},
              {"failed_alike", report.left_out.failed_alike},
              {"trapped", report.left_out.trapped},
              {"refused", report.left_out.refused}}},
            {"difference", nullptr},
            {"why", report.why.empty() ? Json(nullptr) : Json(report.why)}};
  if (!report.finding) return json;
  const Finding& f = *report.finding;
  json["difference"] = to_json(f.difference, *kernel, f.launch.arguments);
  json["difference"]["repeatable"] = f.repeatable;
  json["difference"]["interpreter"] = f.interpreter.empty() ? Json(nullptr) : Json(f.interpreter);
  json["difference"]["commands"] = check.commands(spec, f.launch);
  return json;
}

void print(const Report& report, const Check& check, const ir::Kernel* kernel, const std::string& spec) {
  const auto& names = check.names();
  if (report.finding) {
    const Finding& f = *report.finding;
    std::printf(
        "%s: differs, after %llu that were the same\n  %s\n", report.kernel.c_str(),
        static_cast<unsigned long long>(report.compared - (f.difference.kind != Difference::Kind::Misuse && report.compared != 0 ? 1 : 0)),
        to_text(f.difference, *kernel, f.launch.arguments, names).c_str());
    if (const std::string text = verdict(f, names); !text.empty()) std::printf("  %s\n", text.c_str());
    for (const std::string& command : check.commands(spec, f.launch)) std::printf("  %s\n", command.c_str());
  } else if (!report.why.empty()) {
    std::printf("%s: not checked: %s\n", report.kernel.c_str(), report.why.c_str());
  } else {
    std::printf("%s: the same, %llu %s", report.kernel.c_str(), static_cast<unsigned long long>(report.compared),
                report.compared == 1 ? "launch" : "launches");
    if (report.left_out.all() != 0) std::printf(" (left out: %s)", report.left_out.text().c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

std::unique_ptr<Engine> other_engine(const Engine& on, const std::string& named) {
  if (!named.empty()) return open_engine(named);
  if (on.name() != "cpu" && !on.name().starts_with("cpu:")) return open_engine("cpu");
  return open_engine(Client::open("cuda") ? "cuda" : "interp");
}

Request make_request(const Options& options) {
  Request request{.options = options, .mode = parse_mode(options.mode), .given = {}};
  if (!options.seed.empty()) request.seed = whole_number(options.seed, "--seed", 0, ~std::uint64_t{0});
  if (!options.runs.empty()) request.runs = whole_number(options.runs, "--runs", 1, 1'000'000);
  if (!options.grid.empty()) request.given.grid = parse_extent(options.grid, "--grid");
  if (!options.block.empty()) request.given.block = parse_extent(options.block, "--block");
  if (!options.shared.empty()) request.given.shared_bytes = parse_count(options.shared, "--shared");
  for (const std::string& text : options.args)
    request.given.arguments.push_back(text == "_" ? std::nullopt : std::optional(parse_argument(text)));
  const auto& given = request.given;
  request.all_given = given.grid && given.block && !given.arguments.empty() &&
                      std::all_of(given.arguments.begin(), given.arguments.end(), [](const auto& a) { return a.has_value(); });
  return request;
}

}  // namespace

int check_command(const Options& options) {
  const Request request = make_request(options);
  const std::unique_ptr<Source> source = Source::open(options.source, Source::Places::OfSource);
  const std::vector<std::string> specs = select(options.kernels, source->kernels(), options.source);
  recorded();  // devices are opened now
  std::unique_ptr<Engine> on = open_engine(options.on.empty() ? "cpu" : options.on), against = other_engine(*on, options.against);
  Check check(request, std::move(on), std::move(against));
  bool good = true;
  Json all = Json::array();
  for (const std::string& spec : specs) {
    std::shared_ptr<const Variant> variant;
    Report report;
    report.kernel = spec;
    try {
      variant = source->variant(spec);
      report = check.kernel(*variant);
    } catch (const Exception& e) { report.why = one_line(e.error()); }
    good = good && report.good();
    const ir::Kernel* kernel = variant != nullptr ? &variant->recorded() : nullptr;
    if (!options.json && &spec == &specs.front())  // nothing is printed by what is refused
      std::printf("%s: %s\n%s: %s\n", check.names()[0].c_str(), check.engine(0).about().c_str(), check.names()[1].c_str(),
                  check.engine(1).about().c_str());
    if (options.json) all.push_back(to_json(report, check, kernel, spec));
    else print(report, check, kernel, spec);
  }
  if (options.json) {
    Json sides = Json::array();
    for (std::size_t side = 0; side < 2; ++side)
      sides.push_back({{"device", check.engine(side).name()}, {"about", check.engine(side).about()}});
    print_json({{"devices", sides}, {"seed", request.seed}, {"runs", request.runs}, {"ok", good}, {"kernels", all}});
  }
  return good ? kDone : kFailed;
}

}  // namespace kiln::cli
