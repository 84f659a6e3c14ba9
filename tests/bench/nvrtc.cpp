#include "nvrtc.h"

#include <dlfcn.h>

#include <stdexcept>

namespace kiln::bench {

Nvrtc::Nvrtc() {
  void* library = nullptr;
  for (const char* path :
       {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so"})
    if (library == nullptr) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_ = "libnvrtc was not found";
    return;
  }
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) why_ = std::string("libnvrtc has no ") + symbol;
  };
  find(version_, "nvrtcVersion");
  find(create_, "nvrtcCreateProgram");
  find(compile_, "nvrtcCompileProgram");
  find(ptx_size_, "nvrtcGetPTXSize");
  find(ptx_, "nvrtcGetPTX");
  find(log_size_, "nvrtcGetProgramLogSize");
  find(log_, "nvrtcGetProgramLog");
  find(destroy_, "nvrtcDestroyProgram");
  if (!usable()) return;
  int major = 0, minor = 0;
  version_(&major, &minor);
  name_ = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

std::string Nvrtc::compile(const std::string& source, const std::string& arch, bool fast_math) const {
  Program program = nullptr;
  if (create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) throw std::runtime_error("nvrtcCreateProgram failed");
  const std::string option = "--gpu-architecture=" + arch;
  const char* options[] = {option.c_str(), "-lineinfo", "--std=c++17", "--use_fast_math"};
  const bool good = compile_(program, fast_math ? 4 : 3, options) == 0;
  std::size_t size = 0;
  (good ? ptx_size_ : log_size_)(program, &size);
  std::string text(size, '\0');
  (good ? ptx_ : log_)(program, text.data());
  destroy_(&program);
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));  // it comes with its terminator
  if (!good) throw std::runtime_error("NVRTC: " + text);
  return text;
}

}  // namespace kiln::bench
