// kiln show: one kernel, as a summary or in one of its forms.
#include <cstdio>

#include "command.h"
#include "compile.h"
#include "kiln/ir/text.h"
#include "manifest.h"
#include "source.h"

namespace kiln::cli {
namespace {

// The architecture asked for; without one the oldest that has what the kernel needs.
Arch arch_of(const Options& options, const ir::Prepared& kernel) {
  if (options.arch.size() > 1) usage("show takes one --arch");
  return parse_arch(options.arch.empty() ? "sm_" + std::to_string(kernel.requirement.min_sm) : options.arch[0]);
}

void print_io(const ir::Prepared& kernel) {
  const ir::Kernel& k = kernel.kernel;
  std::size_t buffer = 0;
  for (const ir::Param& p : k.params) {
    if (p.is_buffer)
      std::printf("  %-12s %-18s declared %-6s proven %s\n", p.name.c_str(), signature_type(k, p).c_str(),
                  access_name(k.mems[p.mem].access).c_str(), visibility_name(kernel.io.at(buffer++)).c_str());
    else std::printf("  %-12s %s\n", p.name.c_str(), signature_type(k, p).c_str());
  }
}

// The accesses that are not proven to be in range.
void print_tested(const ir::Prepared& kernel) {
  std::vector<std::string> tested;
  for (const ir::FaultSite& s : kernel.sites) {
    if (s.is_check() || s.is_trap()) continue;
    tested.push_back(s.operation + " of '" + s.memory + "'" + (s.declared.empty() ? "" : " (declared at " + s.declared + ")") + " at " +
                     s.place);
  }
  std::printf("  %zu %s tested at run time%s\n", tested.size(), tested.size() == 1 ? "access is" : "accesses are",
              tested.empty() ? "" : ":");
  for (const std::string& line : tested) std::printf("    %s\n", line.c_str());
}

void print_summary(const Variant& variant, const ir::Prepared& kernel) {
  const ir::Kernel& k = kernel.kernel;
  std::printf("%s\n  at %s, symbol %s\n", variant.name().c_str(), ir::to_string(k, k.loc).c_str(), ir::symbol_name(variant.name()).c_str());
  print_io(kernel);
  std::printf("  %s, contraction %s, fast math %s\n", k.options.checked ? "checked" : "unchecked", k.options.contraction ? "on" : "off",
              k.options.fast_math ? "on" : "off");
  print_tested(kernel);
  if (k.has_block_size()) std::printf("  block size %u,%u,%u\n", k.block_size[0], k.block_size[1], k.block_size[2]);
  if (k.max_threads != 0) std::printf("  at most %u threads a block\n", k.max_threads);
  std::printf("  %llu bytes of static shared memory%s\n", static_cast<unsigned long long>(kernel.shared.static_bytes),
              kernel.shared.dynamic_mem != ir::kNone ? ", and dynamic" : "");
  std::printf("  needs sm_%u%s%s\n", kernel.requirement.min_sm, kernel.requirement.reason.empty() ? "" : ": ",
              kernel.requirement.reason.c_str());
}

}  // namespace

int show_command(const Options& options) {
  const int forms = options.show_ir + options.show_llvm + options.show_ptx + options.show_io;
  if (forms > 1) usage("--ir, --llvm, --ptx and --io: one of them");
  const std::unique_ptr<Source> source = Source::open(options.source, forms == 0 ? Source::Places::OfSource : Source::Places::AsWritten);
  const std::shared_ptr<const Variant> variant = source->variant(options.kernels.at(0));
  const Mode mode = parse_mode(options.mode);
  const auto block = options.block.empty() ? std::array<std::uint32_t, 3>{} : parse_extent(options.block, "--block");
  const auto print_text = [&](const char* form, const std::string& text) {
    if (options.json) print_json({{"kernel", variant->name()}, {form, text}});
    else std::fwrite(text.data(), 1, text.size(), stdout);
  };

  if (options.show_ir) {
    // As recorded, and so good as a .kir file; a kernel that does not verify says so instead.
    prepared(*variant, mode);
    print_text("ir", ir::print(std::vector<ir::Kernel>{variant->recorded()}));
    return kDone;
  }
  const ir::Prepared& kernel = prepared(*variant, mode);
  if (options.show_ptx) {
    const Arch arch = arch_of(options, kernel);
    if (arch.kind != TargetKind::Ptx) usage("--ptx is made for a GPU architecture, not for " + arch.name);
    print_text("ptx", compile(kernel, compile_options(kernel, arch, block)).code);
  } else if (options.show_llvm) {
    print_text("llvm", llvm_ir(kernel, compile_options(kernel, arch_of(options, kernel), block)));
  } else if (options.show_io) {
    if (options.json) print_json({{"kernel", variant->name()}, {"signature", signature_json(kernel)}});
    else print_io(kernel);
  } else {
    if (options.json) print_json(manifest(*variant, kernel, {}));
    else print_summary(*variant, kernel);
  }
  return kDone;
}

}  // namespace kiln::cli
