// The simulated driver's own C interface, found by dlsym in the library that KILN_CUDA_LIBRARY names. Tests use it to inject faults and to
// ask what happened.
#pragma once

extern "C" {
// Replaces the fault script (README.md); counting starts anew. Devices take effect at the next cuInit after a reset. 0: done; 1: the script
// is wrong, the last report says where, and nothing changed.
__attribute__((visibility("default"))) int kiln_simcuda_configure(const char* json);

// As if the library had just been loaded, but for the fault script: waits for all work, then every handle is dead and nothing is
// initialised. Poisoned devices are well again.
__attribute__((visibility("default"))) void kiln_simcuda_reset();

// The text of the last report (a violation, a refused copy, a memory freed in use), or "". Valid until this thread asks again.
__attribute__((visibility("default"))) const char* kiln_simcuda_last_report();

// Live objects: "contexts" (retained), "allocations", "pinned", "streams", "events", "modules", "graphs", "pending" (operations). Since the
// last reset: "launches", "instructions", "reports". Anything else: 0.
__attribute__((visibility("default"))) unsigned long long kiln_simcuda_count(const char* what);
}
