// NVRTC as the peer of `jit`, opened at run time where it is installed.
#pragma once
#include <string>

namespace kiln::bench {

class Nvrtc {
 public:
  Nvrtc();  // looks for the library; see usable()
  bool usable() const { return why_.empty(); }
  const std::string& why() const { return why_; }    // why not
  const std::string& name() const { return name_; }  // "NVRTC 13.0"
  // PTX of CUDA C++ text, with line information. Throws std::runtime_error with NVRTC's log.
  std::string compile(const std::string& source, const std::string& arch, bool fast_math = false) const;

 private:
  using Program = struct Opaque*;
  int (*version_)(int*, int*) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*ptx_size_)(Program, std::size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  int (*log_size_)(Program, std::size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  std::string why_, name_;
};

}  // namespace kiln::bench
