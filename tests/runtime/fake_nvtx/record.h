// What the fake libraries are called with goes to the file that FAKE_NVTX_FILE names: "push NAME" and "pop", with the thread.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace fake_nvtx {

inline int record(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const char* name = std::getenv("FAKE_NVTX_FILE");
  if (name == nullptr) return 0;
  if (std::FILE* file = std::fopen(name, "a")) {
    std::fprintf(file, "%zu %s\n", std::hash<std::thread::id>()(std::this_thread::get_id()), line.c_str());
    std::fclose(file);
  }
  return 0;
}

}  // namespace fake_nvtx
