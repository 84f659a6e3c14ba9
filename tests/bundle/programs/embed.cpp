// What a build step generates to embed a file of bundles: KILN_BUNDLES is its path.
#include "kiln/runtime/bundle.h"

asm(".pushsection kiln_bundles,\"aR\",@progbits\n"
    ".balign 16\n"
    ".incbin \"" KILN_BUNDLES
    "\"\n"
    ".balign 16\n"
    ".popsection\n");

extern "C" {
extern const char kiln_bundles_of_tests;
const char kiln_bundles_of_tests = 0;
__attribute__((visibility("hidden"))) extern const char __start_kiln_bundles[], __stop_kiln_bundles[];
}
namespace {
const kiln::BundleModule bundles{__start_kiln_bundles, __stop_kiln_bundles};
}
