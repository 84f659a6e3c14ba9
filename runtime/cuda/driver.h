// The CUDA driver, opened at run time. Whether and why it can be used is a value, never an exception.
#pragma once
#include <string>
#include <vector>

#include "cuda/driver_entries.h"

namespace kiln::cuda {

enum class DriverState : std::uint8_t {
  Ok,
  NoLibrary,      // nothing that could be opened
  Stub,           // the library that a toolkit brings for linking
  SymbolMissing,  // an entry point that every supported driver has
  TooOld,         // below kMinimumDriver
  InitFailed,     // cuInit refused
  NoDevice,       // a driver, but no GPU
};
const char* name(DriverState state);

struct Driver {
  DriverState state = DriverState::NoLibrary;
  std::string file;              // what was opened, with its path; where nothing was, all that was tried
  std::string sentence;          // what is the matter and what to do; for Ok, what it is
  std::string symbol;            // SymbolMissing: which
  CUresult code = CUDA_SUCCESS;  // InitFailed, Stub: what cuInit gave
  int version = 0;               // 1000 * major + 10 * minor of the CUDA version that it supports; 0: unknown
  int devices = 0;
  DriverEntries call;  // complete when Ok, but for entries newer than kMinimumDriver, which may be null

  bool ok() const { return state == DriverState::Ok; }
};

// Opens the first of the libraries that is a driver. The library stays open.
Driver open_driver(const std::vector<std::string>& libraries);

// The process's driver, opened on first use and never closed: KILN_CUDA_LIBRARY alone where it is set, else libcuda.so.1, else libcuda.so.
// Thread-safe.
const Driver& driver();

std::string version_text(int version);  // 12040 -> "12.4"

}  // namespace kiln::cuda
