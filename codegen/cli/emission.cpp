#include "emission.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "compile.h"
#include "jobs.h"
#include "progress.h"
#include "selection.h"

namespace kiln::cli {
namespace {

// What is wrong at one place of the emission.
struct Finding {
  std::string text;
  int exit_code = kFailed;
  bool death = false;
};

// One compilation of a kernel, as a question without what says which kernel.
struct Task {
  Json question;
  std::string arch;
  std::optional<Mode> bundle;  // for a bundle of that mode
};

// One kernel: first it is recorded and described, part 0, then each of its tasks, from part 1.
struct Work {
  std::string spec;
  enum class State : std::uint8_t { New, Asked, Described, Failed, Twin } state = State::New;  // Twin: the same variant as an earlier one
  EmittedKernel kernel;
  std::vector<Task> tasks;
  std::size_t next_task = 0;
  std::vector<EmittedKernel> made;          // per task, what it made
  std::map<std::size_t, Finding> findings;  // by part
};

Json arch_json(const std::string& name) { return {{"name", name}, {"gpu", parse_kind(name) == TargetKind::Ptx}}; }

class Emission {
 public:
  Emission(const EmitPlan& plan, const std::vector<SourceKernel>& kernels, std::vector<std::string> specs, bool progress)
      : plan_(plan), kernels_(kernels), bar_(progress) {
    for (const std::string& name : plan.archs)
      if (wants_files_for(name)) tasks_.push_back(file_task(name));
    for (std::string& spec : specs) works_.emplace_back().spec = std::move(spec);
    bar_.expect(works_.size() * std::max<std::size_t>(1, tasks_.size()));
  }

  std::optional<Question> next(std::size_t group) {
    // What was begun is ended first, by the worker that knows it.
    if (group < works_.size() && can_compile(group)) return compile(group);
    for (; first_new_ < works_.size() && works_[first_new_].state != Work::State::New; ++first_new_) {}
    if (first_new_ < works_.size() && !is_cut(first_new_, 0)) return describe(first_new_);
    for (std::size_t i = 0; i < works_.size(); ++i)
      if (can_compile(i)) return compile(i);
    return std::nullopt;
  }

  void take(Answer answer) {
    const auto [i, part] = asked_[answer.id];
    Work& w = works_[i];
    if (w.state == Work::State::Twin) return;
    std::optional<Finding> wrong;
    try {
      wrong = finding_of(answer);
      if (!wrong && part == 0) described(i, std::move(answer.message));
      else if (!wrong) add_answer(w.made[part - 1], w.tasks[part - 1], answer.message);
    } catch (const std::exception& e) {  // of a worker that is not what it was
      wrong =
          Finding{"kernel '" + w.spec + "': the answer of the process that compiled it makes no sense (" + e.what() + ")", kFailed, true};
    }
    if (wrong) {
      if (wrong->exit_code == kUsage) cut_ = std::min(cut_, Position{i, part});
      if (part == 0 || wrong->death) {
        // Its other compilations would most likely end in the same way, after as long a time.
        w.next_task = w.tasks.size();
        if (part == 0) w.state = Work::State::Failed;
      }
      w.findings.emplace(part, std::move(*wrong));
    }
    if (part != 0) bar_.step(w.spec + " " + w.tasks[part - 1].arch);
    else if (w.tasks.empty()) bar_.step(w.spec);
  }

  void report() {
    bar_.clear();
    std::string all;
    std::size_t kernels = 0, findings = 0;
    for (const Work& w : works_) {
      for (const auto& [part, finding] : w.findings) {
        if (finding.exit_code == kUsage) throw Failed(kUsage, finding.text);
        all += (findings++ == 0 ? "" : "\n") + finding.text;
        if (finding.death) break;  // what else was tried depends on the number of workers
      }
      if (!w.findings.empty()) ++kernels;
    }
    if (findings == 0) return;
    if (kernels == 1 && findings == 1) fail(all);
    fail(std::to_string(kernels) + " of " + std::to_string(works_.size()) + " kernels cannot be made, so nothing is written:\n" + all);
  }

  std::vector<EmittedKernel> kernels() {
    std::vector<EmittedKernel> all;
    for (Work& w : works_) {
      if (w.state == Work::State::Twin) continue;
      for (EmittedKernel& made : w.made) {
        std::move(made.items.begin(), made.items.end(), std::back_inserter(w.kernel.items));
        std::move(made.explanations.begin(), made.explanations.end(), std::back_inserter(w.kernel.explanations));
        std::move(made.bundle_items.begin(), made.bundle_items.end(), std::back_inserter(w.kernel.bundle_items));
      }
      all.push_back(std::move(w.kernel));
    }
    return all;
  }

 private:
  using Position = std::pair<std::size_t, std::size_t>;  // work, part

  // Of bundles alone there may be nothing else.
  bool wants_files_for(const std::string& arch) const {
    const bool gpu = parse_kind(arch) == TargetKind::Ptx;
    return plan_.explain || plan_.has("llvm") || (gpu ? plan_.has("ptx") || plan_.has("cubin") : plan_.has("object"));
  }
  Task file_task(const std::string& arch) const {
    return {{{"do", "code"},
             {"mode", plan_.mode},
             {"arch", arch_json(arch)},
             {"block", plan_.block},
             {"kinds", plan_.kinds},
             {"explain", plan_.explain}},
            arch,
            std::nullopt};
  }
  // Behind a wrong word nothing is worth doing; before it there may be another, which is the one to tell.
  bool is_cut(std::size_t i, std::size_t part) const { return Position{i, part} > cut_; }
  bool can_compile(std::size_t i) const {
    return works_[i].state == Work::State::Described && works_[i].next_task < works_[i].tasks.size() && !is_cut(i, 1 + works_[i].next_task);
  }

  Question question(std::size_t i, std::size_t part, Json head, const std::string& arch) {
    head["source"] = plan_.source;
    head["spec"] = works_[i].spec;
    asked_.emplace_back(i, part);
    return {asked_.size() - 1, i, std::move(head), "kernel '" + works_[i].spec + "'" + (arch.empty() ? "" : " for " + arch)};
  }
  Question describe(std::size_t i) {
    works_[i].state = Work::State::Asked;
    Json bundle;
    if (plan_.bundles != nullptr) {
      bundle = {{"archs", Json::array()}, {"blocks", plan_.bundles->blocks}, {"modes", Json::array()}};
      for (const Arch& arch : plan_.bundles->archs) bundle["archs"].push_back(arch_json(arch.name));
      for (const Mode mode : plan_.bundles->modes) bundle["modes"].push_back(static_cast<int>(mode));
    }
    return question(i, 0, {{"do", "describe"}, {"mode", plan_.mode}, {"bundle", std::move(bundle)}}, "");
  }
  Question compile(std::size_t i) {
    const Task& task = works_[i].tasks[works_[i].next_task++];
    return question(i, works_[i].next_task, task.question, task.arch);
  }

  static std::optional<Finding> finding_of(const Answer& answer) {
    if (answer.death) return Finding{*answer.death, kFailed, true};
    const Json& head = answer.message.head;
    if (const auto error = head.find("error"); error != head.end()) return Finding{error->get<std::string>(), head.at("exit"), false};
    return std::nullopt;
  }

  void described(std::size_t i, Message message) {
    Work& w = works_[i];
    EmittedKernel& k = w.kernel;
    k.name = message.head.at("name");
    // The same variant may be named twice, with its defaults spelled out or not.
    const auto [twin, first] = by_name_.emplace(k.name, i);
    if (!first) {
      Work& later = works_[std::max(twin->second, i)];
      twin->second = std::min(twin->second, i);
      later.state = Work::State::Twin;
      later.findings.clear();
      if (&later == &w) return bar_.expect_less(std::max<std::size_t>(1, tasks_.size()));
    }
    w.state = Work::State::Described;
    k.symbol = message.head.at("symbol");
    k.checked = message.head.at("checked");
    k.manifest = std::move(message.head.at("manifest"));
    k.recorded = std::move(message.blobs.at(0));
    const std::string family = k.name.substr(0, k.name.find('@'));
    for (const SourceKernel& of : kernels_)
      if (of.name == k.name || of.name == family) k.of = of;
    w.tasks = tasks_;
    for (const Json& one : message.head.at("bundle")) {
      const Mode mode = static_cast<Mode>(one.at("mode").get<int>());
      w.tasks.push_back({{{"do", "make"}, {"mode", one.at("mode")}, {"options", one.at("options")}}, one.at("options").at("arch"), mode});
    }
    w.made.resize(w.tasks.size());
    bar_.expect(message.head.at("bundle").size());
  }

  void add_answer(EmittedKernel& kernel, const Task& task, Message& answer) const {
    for (std::size_t n = 0; n < answer.head.at("items").size(); ++n) {
      const Json& row = answer.head.at("items").at(n);
      EmittedItem item{row.at("kind"), row.at("extension"), options_of(row.at("options")), code_of(row.at("code"))};
      item.code.code = std::move(answer.blobs.at(n));
      if (!task.bundle) {
        kernel.items.push_back(std::move(item));
        continue;
      }
      const auto kind = item.options.target == TargetKind::Ptx ? BundleItem::Kind::Ptx : BundleItem::Kind::Object;
      kernel.bundle_items.emplace_back(*task.bundle, BundleItem{kind, std::move(item.options), std::move(item.code)});
    }
    if (plan_.explain && !task.bundle) kernel.explanations.push_back(std::move(answer.head.at("explanation")));
  }

  const EmitPlan& plan_;
  const std::vector<SourceKernel>& kernels_;
  std::vector<Task> tasks_;  // of every kernel
  std::vector<Work> works_;
  std::vector<Position> asked_;  // by number of the question
  std::map<std::string, std::size_t> by_name_;
  std::size_t first_new_ = 0;
  Position cut_{SIZE_MAX, SIZE_MAX};  // the first question with a usage error
  Progress bar_;
};

Json checked_head(Answer answer) {
  if (answer.death) fail(*answer.death);
  Json head = std::move(answer.message.head);
  if (const auto error = head.find("error"); error != head.end()) throw Failed(head.at("exit"), error->get<std::string>());
  return head;
}

}  // namespace

bool EmitPlan::has(const char* kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }

Emitted emit_all(const EmitPlan& plan, const std::vector<std::string>& words, const std::vector<std::string>& more, Pool& pool,
                 bool progress) {
  Question open;
  open.head = {{"do", "open"}, {"source", plan.source}, {"archs", plan.archs}};
  open.what = "'" + plan.source + "'";
  const Json opened = checked_head(pool.ask(std::move(open)));
  std::vector<SourceKernel> kernels;
  for (const Json& k : opened.at("kernels")) kernels.push_back(source_kernel_of(k));
  std::vector<std::string> specs = select(words, kernels, plan.source);
  for (const std::string& word : more)
    for (const std::string& spec : select({word}, kernels, plan.source))
      if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
  Emission emission(plan, kernels, std::move(specs), progress);
  pool.run([&](std::size_t group) { return emission.next(group); }, [&](Answer answer) { emission.take(std::move(answer)); });
  emission.report();
  return {emission.kernels(), opened.at("llvm").is_null() ? "" : opened.at("llvm").get<std::string>()};
}

}  // namespace kiln::cli
