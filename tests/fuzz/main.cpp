// The long run of random kernels: kiln_fuzz FIRST_SEED COUNT [--sim N] [--ptx N] [--level NAME|none] [--mode checked|unchecked]
// [--block exact|row|any] [--reduce] [--print] [--no-math] Each seed runs on one level of host code, checked or unchecked, in turn, and for
// an exact block or one that is given at launch; with --block, only those run that can have that form. Prints every difference (reduced
// with --reduce) as .kir and exits 1 when there was one; a line on stderr every 1000 kernels tells how far it is.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/runner.h"
#include "kiln/ir/text.h"

using namespace kiln;

namespace {

void print_reduced(const fuzz::Case& c, const std::string& wrong, const fuzz::CheckOptions& options) {
  // The same kind of finding: the text up to the first colon, so that a reduction does not slide into another fault.
  const std::string kind = wrong.substr(0, wrong.find(':'));
  const fuzz::Case small = fuzz::reduce(c, [&](const fuzz::Case& x) {
    const auto w = fuzz::check(x, options);
    return w && w->substr(0, w->find(':')) == kind;
  });
  const auto w = fuzz::check(small, options);
  std::printf("# %s\n# grid %u %u %u block %u %u %u shared %u\n%s", w ? w->c_str() : "?", small.grid[0], small.grid[1], small.grid[2],
              small.block[0], small.block[1], small.block[2], small.shared_bytes, ir::print(small.kernel).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: kiln_fuzz FIRST_SEED COUNT [--sim EVERY] [--ptx EVERY] [--level NAME|none] [--mode checked|unchecked] "
                 "[--block exact|row|any] [--reduce] [--print] [--no-math]\n");
    return 2;
  }
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
  std::uint64_t ptx_every = 0, sim_every = 0, found = 0, ran = 0;
  bool reduce = false, print = false, math = true;
  std::string level, mode, block;
  for (int i = 3; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--ptx" && i + 1 < argc) ptx_every = std::strtoull(argv[++i], nullptr, 10);
    else if (a == "--sim" && i + 1 < argc) sim_every = std::strtoull(argv[++i], nullptr, 10);
    else if (a == "--level" && i + 1 < argc) level = argv[++i];
    else if (a == "--mode" && i + 1 < argc) mode = argv[++i];
    else if (a == "--block" && i + 1 < argc) block = argv[++i];
    else if (a == "--reduce") reduce = true;
    else if (a == "--print") print = true;
    else if (a == "--no-math") math = false;
    else return std::fprintf(stderr, "kiln_fuzz: unknown option %s\n", a.c_str()), 2;
  }
  if (!mode.empty() && mode != "checked" && mode != "unchecked")
    return std::fprintf(stderr, "kiln_fuzz: unknown mode %s\n", mode.c_str()), 2;
  if (!block.empty() && block != "exact" && block != "row" && block != "any")
    return std::fprintf(stderr, "kiln_fuzz: unknown form of a block %s\n", block.c_str()), 2;
  for (std::uint64_t seed = first; ran < count; ++seed) {
    fuzz::Shape shape = fuzz::shape_in_turn(seed);
    shape.math = math;
    const fuzz::Case c = fuzz::generate(seed, shape);
    fuzz::CheckOptions options = fuzz::options_in_turn(seed);
    if (!level.empty()) options.levels = {level};
    if (level == "none") options.levels.clear();
    if (!mode.empty()) options.checked = mode == "checked", options.unchecked = !options.checked;
    if (!block.empty()) {
      options.block = block == "row" ? fuzz::BlockForm::Row : block == "any" ? fuzz::BlockForm::Any : fuzz::BlockForm::Exact;
      if (fuzz::block_form(c, options.block) != options.block) continue;
    }
    ++ran;
    if (print) std::printf("%s", ir::print(c.kernel).c_str());
    options.sim = sim_every != 0 && seed % sim_every == 0;
    options.ptx = ptx_every != 0 && seed % ptx_every == 0;
    if (const auto wrong = fuzz::check(c, options)) {
      ++found;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), wrong->c_str());
      if (reduce) print_reduced(c, *wrong, options);
      std::fflush(stdout);
    }
    if (ran % 1000 == 0)
      std::fprintf(stderr, "%llu of %llu kernels, %llu differences\n", static_cast<unsigned long long>(ran),
                   static_cast<unsigned long long>(count), static_cast<unsigned long long>(found));
  }
  std::printf("%llu random kernels, %llu differences\n", static_cast<unsigned long long>(ran), static_cast<unsigned long long>(found));
  return found == 0 ? 0 : 1;
}
