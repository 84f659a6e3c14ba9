// The samples' kernels, through the registry: every one records and verifies, in every config.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <kiln/kiln.h>

#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln;

TEST_CASE("every sample kernel verifies in every config of its space, and every access is proven, but for the row number that gather takes from memory") {
  void* library = dlopen(KILN_BINARY_DIR "/lib/libkiln_samples.so", RTLD_NOW);
  REQUIRE_MESSAGE(library, dlerror());
  std::size_t variants = 0;
  for (const KernelEntry* entry : Registry::instance().kernels()) {
    if (!entry->name().starts_with("samples::")) continue;
    for (const std::string& config : entry->configs()) {
      auto variant = entry->variant(config);
      REQUIRE_MESSAGE(variant.has_value(), variant.error().text());
      INFO(ir::print((*variant)->recorded()));
      CHECK(ir::to_string(ir::verify((*variant)->recorded())) == "");
      auto prepared = (*variant)->prepared();
      REQUIRE_MESSAGE(prepared.has_value(), prepared.error().text());
      const bool gather = entry->name() == "samples::gather";
      if (gather) CHECK((*prepared)->sites.size() == 1);
      for (const ir::FaultSite& site : (*prepared)->sites) {
        if (site.operation == "check" && entry->name() == "samples::unit_rows") continue;  // no access
        if (!gather || site.memory != "table") FAIL_CHECK((*variant)->name() << ": not proven: " << site.operation << " of " << site.memory << " at " << site.place);
      }
      ++variants;
    }
  }
  CHECK(variants >= 14 + 11);
}
