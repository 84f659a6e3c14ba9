// Launches the embedded kernels as any program does, and says what came of it.
#pragma once
#include <link.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "bundle/programs/header.h"

// Whether a library with this in its name is in the process.
inline bool has_library(const char* part) {
  struct Look {
    const char* part;
    bool there = false;
  } look{part};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& l = *static_cast<Look*>(data);
        if (info->dlpi_name != nullptr && std::strstr(info->dlpi_name, l.part) != nullptr) l.there = true;
        return 0;
      },
      &look);
  return look.there;
}

inline int use_kernels() {
  using namespace kiln;
  try {
    const Client client = Client::default_client();
    const LaunchConfig config{{2}, {64}};
    const auto x = Buffer<f32>::from_host(client, std::vector<f32>(100, 2)).value();
    auto y = Buffer<f32>::zeroed(client, 100).value();
    auto z = Buffer<u32>::zeroed(client, 100).value();
    ns::scale(config, x, y, 1.5f).value();
    ns::shift(config, z).value();
    ns::shift.with({.by = 3})(config, z).value();
    std::printf("scaled %g shifted %u\n", static_cast<double>(y.read().value().at(99)), z.read().value().at(99));
    auto small = Buffer<f32>::zeroed(client, 10).value();
    std::printf("refused: %s\n", ns::scale(config, small, y, 1.0f).error().data().message.c_str());
    std::printf("LLVM %s\n", has_library("LLVM") || has_library("kiln_codegen") ? "loaded" : "not loaded");
    return 0;
  } catch (const std::exception& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
}
