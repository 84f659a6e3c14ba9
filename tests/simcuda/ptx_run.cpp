// Launches: blocks on several host threads, what ends a launch, what it reports.
#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <numeric>
#include <system_error>
#include <thread>

#include "simcuda/ptx_block.h"
#include "simcuda/ptx_loaded.h"
#include "simcuda/ptx_schedule.h"

namespace kiln::simcuda {
namespace ptx {
namespace {

constexpr std::uint64_t kBlockShare = std::uint64_t{1} << 22;  // instructions of warps before another block has a turn
constexpr std::size_t kResident = 16;  // blocks that one worker keeps going at once, unless the launch is cooperative
constexpr std::uint64_t kRecursionStack = 64 * 1024;
constexpr std::size_t kMaxNotes = 16;
constexpr std::size_t kMaxPrinted = std::size_t{1} << 20;

// The order in which blocks begin: all of them once, the k-th of n.
std::uint64_t block_at(const Options& o, std::uint64_t k, std::uint64_t n) {
  if (o.order == Order::Reverse) return n - 1 - k;
  if (o.order != Order::Seeded || n < 2) return k;
  std::uint64_t step = (o.seed * 2654435761u + 1) % n;
  while (step == 0 || std::gcd(step, n) != 1) step = (step + 1) % n;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(k) * step + o.seed % n) % n);
}

class Team {
 public:
  Team(LaunchState& launch, std::uint64_t blocks) : launch_(launch), blocks_(blocks) {}

  // One worker: takes blocks, keeps those going that have not ended.
  void work() {
    Worker worker;
    worker.windows.resize(std::max<std::uint32_t>(1, launch_.code->memory_ops));
    std::deque<std::unique_ptr<Block>> going;
    std::vector<std::unique_ptr<Block>> idle;
    const std::size_t most = launch_.launch->cooperative ? ~std::size_t{0} : kResident;
    std::uint64_t instructions = 0;
    try {
      for (;;) {
        if (launch_.stopped.load(std::memory_order_relaxed)) break;
        std::unique_ptr<Block> b;
        const std::uint64_t k = going.size() < most ? next_.fetch_add(1, std::memory_order_relaxed) : blocks_;
        if (k < blocks_) {
          if (idle.empty()) {
            b = std::make_unique<Block>();
            b->launch = &launch_;
            b->worker = &worker;
          } else {
            b = std::move(idle.back());
            idle.pop_back();
          }
          start_block(*b, block_at(launch_.options, k, blocks_));
        } else if (!going.empty()) {
          b = std::move(going.front());
          going.pop_front();
        } else {
          break;
        }
        if (run_block(*b, kBlockShare)) {
          instructions += b->instructions;
          b->instructions = 0;
          idle.push_back(std::move(b));
        } else {
          going.push_back(std::move(b));
        }
      }
    } catch (const Stop& s) { end(s.violation); } catch (const std::bad_alloc&) {
      Violation v;
      v.code = cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
      v.what = "the host has no memory for the registers or local memory of the launch";
      end(v);
    }
    for (const auto& b : going) instructions += b->instructions;
    launch_.instructions.fetch_add(instructions, std::memory_order_relaxed);
  }

 private:
  void end(const Violation& v) {
    const std::lock_guard lock(launch_.mutex);
    if (!launch_.violation) launch_.violation = v;
    launch_.stopped.store(true, std::memory_order_relaxed);
  }
  LaunchState& launch_;
  std::uint64_t blocks_;
  std::atomic<std::uint64_t> next_{0};
};

std::string position(const std::array<std::uint32_t, 3>& v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

}  // namespace

std::string source_of(const Warp& w, const Op& op) {
  const FunctionDecl& f = *w.frame->function->decl;
  if (op.source >= f.code.size()) return {};
  const Loc& loc = f.locs[f.code[op.source].loc];
  if (loc.line == 0) return {};
  const auto& files = w.block->launch->module->decl->files;
  const auto it = files.find(loc.file);
  return (it == files.end() ? "file " + std::to_string(loc.file) : it->second) + ":" + std::to_string(loc.line);
}

void LaunchState::note(const Warp& w, const Op& op, unsigned lane, int kind, const std::string& what) {
  const std::lock_guard guard(mutex);
  if (notes.size() >= kMaxNotes || !noted.emplace(&op, kind).second) return;
  Violation v;
  v.what = what;
  v.ptx_line = op.line;
  v.source = source_of(w, op);
  v.block = w.block->index;
  v.thread = w.tid[lane];
  notes.push_back(v.text());
}

void LaunchState::print(const std::string& text) {
  const std::lock_guard guard(mutex);
  if (printed.size() < kMaxPrinted) printed += text;
}

}  // namespace ptx

std::string Violation::text() const {
  std::string s = what + ", at PTX line " + std::to_string(ptx_line);
  if (!source.empty()) s += " (" + source + ")";
  return s + ", block " + ptx::position(block) + ", thread " + ptx::position(thread);
}

RunResult run(const Launch& launch, Memory& memory, const Options& options) {
  RunResult result;
  const ptx::LoadedModule& module = launch.module->loaded;
  const ptx::EntryCode& code = module.code[launch.entry];
  static std::atomic<std::uint64_t> grids{0};
  ptx::LaunchState state;
  state.launch = &launch;
  state.module = &module;
  state.code = &code;
  state.entry = code.function;
  state.memory = &memory;
  state.options = options;
  state.grid_id = ++grids;
  state.static_shared = code.static_shared;
  state.shared_bytes = launch.dynamic_shared > 0 ? code.dynamic_begin + launch.dynamic_shared : code.static_shared;
  state.param_bytes = module.entries[launch.entry].param_bytes;
  state.local_stride = (code.local_bytes + (code.recursive ? ptx::kRecursionStack : 0) + 15) / 16 * 16;
  state.fences = code.fences;
  state.granule = code.granule;
  if (options.global_races) state.global_races = std::make_unique<ptx::GlobalRaces>(code.any_granule);

  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (blocks == 0 || threads == 0) return result;
  if (code.clusters && launch.cluster != std::array<std::uint32_t, 3>{1, 1, 1}) {
    // Blocks run one by one here: what the blocks of a cluster do together must not get a wrong answer.
    Violation v;
    v.code = cuda::CUDA_ERROR_NOT_SUPPORTED;
    v.what = "the kernel works across the blocks of a cluster, which the simulated driver does not do";
    result.violation = std::move(v);
    return result;
  }
  ptx::Team team(state, blocks);
  const unsigned wanted = options.workers != 0 ? options.workers : std::max(1u, std::thread::hardware_concurrency());
  const auto workers = static_cast<unsigned>(std::min<std::uint64_t>(wanted, blocks));
  std::vector<std::thread> others;
  try {
    for (unsigned k = 1; k < workers; ++k) others.emplace_back([&] { team.work(); });
  } catch (const std::system_error&) {
    // Fewer workers do it too.
  }
  team.work();
  for (std::thread& t : others) t.join();
  result.violation = std::move(state.violation);
  result.instructions = state.instructions.load();
  result.notes = std::move(state.notes);
  result.printed = std::move(state.printed);
  return result;
}

}  // namespace kiln::simcuda
