// Kernels that are launched by their bundle, without having been recorded in this process.
#include <optional>

#include "kiln/ir/diagnostic.h"
#include "kiln/ir/text.h"
#include "src/bundle/builds.h"
#include "src/bundle/format.h"
#include "src/bundle/modules.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {
namespace {

constexpr std::size_t kMostListed = 20;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostListed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostListed) text += " and " + std::to_string(names.size() - kMostListed) + " more";
  return text;
}

std::string with_problems(std::string message, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) message += "; what cannot be read may have it: " + problem;
  return message;
}

// Another variant was meant, another kernel, or the library with it is not there.
Error not_embedded(const std::string& kernel) {
  const std::vector<std::string> all = rt::embedded_kernels();
  const std::size_t at = kernel.find('@');
  const std::string family = kernel.substr(0, at) + "@";
  std::vector<std::string> variants;
  for (const std::string& name : all)
    if (name.starts_with(family)) variants.push_back(name.substr(family.size()));
  std::string message;
  if (!variants.empty() && at != std::string::npos) {
    message = "the variant '" + kernel.substr(at + 1) + "' is not embedded in this process; those that are: " + listed(variants);
  } else if (!variants.empty()) {
    message = "no kernel of that name is embedded in this process, but variants of it: " + listed(variants);
  } else if (!all.empty()) {
    message = "no kernel of that name is embedded in this process; those that are: " + listed(all);
  } else {
    message = "no kernel is embedded in this process: the program or library that has it was linked without its bundles";
  }
  return make_error(ErrorCode::NotFound, "NotEmbedded", with_problems(std::move(message), rt::embedded_problems()), {.kernel = kernel});
}

Result<std::shared_ptr<const Variant>> parsed(const std::string& text, const std::string& kernel, const std::string& module) {
  const auto damaged = [&](const std::string& why) { return rt::damaged_bundle("of kernel '" + kernel + "' in '" + module + "'", why); };
  try {
    ir::Kernel recorded = ir::parse_kernel(text);
    if (recorded.name != kernel) return damaged("its IR text is of kernel '" + recorded.name + "'");
    return std::make_shared<const Variant>(std::move(recorded));
  } catch (const ir::IrError& e) { return damaged(std::string("its IR text is not well-formed: ") + e.what()); }
}

}  // namespace

Result<EmbeddedVariant> embedded_variant(const std::string& kernel) {
  return rt::or_no_memory([&]() -> Result<EmbeddedVariant> {
    struct Copy {
      Bundle bundle;
      std::string module;
    };
    std::vector<Copy> found;
    const std::vector<std::string> damaged = rt::each_embedded(
        kernel, [&](const Bundle& bundle, const std::string& module, rt::BundlePlace) { found.push_back({bundle.held(), module}); });
    if (found.empty()) return damaged.empty() ? not_embedded(kernel) : rt::damaged_bundle("of kernel '" + kernel + "'", damaged.front());
    EmbeddedVariant made;
    std::string text, module, foreign;
    std::optional<Error> damage;
    for (const Copy& at : found) {
      const BundleInfo& info = at.bundle.info();
      if (!info.of_this_kiln()) {
        if (foreign.empty()) foreign = rt::foreign_text(info, at.module);
        continue;
      }
      auto recorded = at.bundle.recorded();
      if (!recorded.has_value()) {
        if (!damage) damage = rt::damaged_bundle("of kernel '" + kernel + "' in '" + at.module + "'", recorded.error().data().message);
        continue;
      }
      if (module.empty()) {
        text = std::move(*recorded);
        module = at.module;
        made.params = info.params;
      } else if (*recorded != text) {
        return make_error(ErrorCode::Validation, "EmbeddedClash",
                          "two kernels of that name with different text are embedded, in '" + module + "' and in '" + at.module +
                              "': rename one, or link one of them only",
                          {.kernel = kernel});
      }
      (info.checked ? made.checked : made.unchecked) = true;
    }
    if (module.empty() && damage) return *damage;
    if (module.empty()) return make_error(ErrorCode::CompileGeneric, "ForeignBundle", foreign, {.kernel = kernel});
    auto variant = parsed(text, kernel, module);
    if (!variant.has_value()) return variant.error();
    made.variant = std::move(*variant);
    return made;
  });
}

}  // namespace kiln
