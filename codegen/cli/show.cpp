// kiln show: one kernel, as a summary or in one of its forms.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "command.h"
#include "compile.h"
#include "files.h"
#include "kiln/ir/text.h"
#include "listing.h"
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

Json listing_json(const Listing& listing) {
  Json files = Json::array(), all_forms = Json::array();
  for (const SourceFile& f : listing.files) files.push_back({{"name", f.name}, {"path", f.path.empty() ? Json(nullptr) : Json(f.path)}});
  for (const Form& form : listing.forms) {
    Json lines = Json::array();
    for (const FormLine& line : form.lines)
      lines.push_back({{"text", line.text},
                       {"file", line.of.known() ? Json(line.of.file) : Json(nullptr)},
                       {"line", line.of.known() ? Json(line.of.line) : Json(nullptr)}});
    all_forms.push_back({{"name", form.name}, {"note", form.note}, {"lines", lines}});
  }
  return {{"kernel", listing.kernel}, {"arch", listing.arch}, {"files", files}, {"forms", all_forms}};
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 80) return size.ws_col;
  return 160;
}

int show_side(const Options& options, const Variant& variant, const ir::Prepared& kernel, const CompileOptions& target) {
  SourcePlaces places{options.source_roots};
  if (options.source.ends_with(".kir")) {
    places.as_named = false;
    places.folders.push_back(std::filesystem::path(options.source).parent_path().string());
  }
  const Listing listing = make_listing(variant, kernel, target, places);
  if (!options.html.empty()) {
    const std::filesystem::path file(options.html);
    if (!file.has_filename()) usage("--html '" + options.html + "' names no file");
    write_all(file.has_parent_path() ? file.parent_path().string() : ".", {{file.filename().string(), html_page(listing)}});
  }
  if (options.json) print_json(listing_json(listing));
  else if (options.show_side) std::fputs(side_by_side(listing, terminal_width()).c_str(), stdout);
  else std::printf("%s\n", options.html.c_str());
  return kDone;
}

}  // namespace

int show_command(const Options& options) {
  const bool side = options.show_side || !options.html.empty();
  const int forms = options.show_ir + options.show_llvm + options.show_ptx + options.show_io + side;
  if (forms > 1) usage("--ir, --llvm, --ptx, --io and --side (or --html): one of them");
  const std::unique_ptr<Source> source =
      Source::open(options.source, forms == 0 || side ? Source::Places::OfSource : Source::Places::AsWritten);
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
  if (side) return show_side(options, *variant, kernel, compile_options(kernel, arch_of(options, kernel), block));
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
