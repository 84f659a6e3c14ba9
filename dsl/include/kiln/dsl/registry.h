// The kernels of the process by qualified C++ name: what KILN_KERNEL registers into and the command line lists from.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/runtime/error.h"
#include "kiln/runtime/variant.h"

namespace kiln {

// One compile-time parameter of a kernel family.
struct ConfigAxis {
  std::string name;
  std::vector<std::string> values;  // as text; the first is the default; empty: any value of the member's type
  std::string default_value;
  // What a header needs that declares the struct again:
  std::string type;          // "u32", "f32", "bool"; of an enum: of its values
  std::string enum_name;     // "ns::Mode" of an enum that can be declared without its values; empty otherwise
  std::string enum_base;     // "unsigned char"
  bool enum_scoped = false;  // an enum class
  std::size_t offset = 0;    // in the struct, whose members may stand in another order than the axes
};

struct ParamInfo {
  std::string name, type;  // "x", "In<f32>"
};

// One kernel or kernel family. Static lifetime. Thread-safe.
class KernelEntry {
 public:
  virtual ~KernelEntry() = default;
  virtual const std::string& name() const = 0;  // "ns::saxpy"
  virtual std::string place() const = 0;        // "file.cpp:12"
  virtual std::vector<ParamInfo> params() const = 0;
  virtual const std::vector<ConfigAxis>& axes() const = 0;  // empty: no config
  virtual std::string config_type() const = 0;              // "ns::MatmulCfg"; empty: no config
  // Every accepted config of the space as "tile=8,unroll=2"; {""} for a kernel without one.
  virtual std::vector<std::string> configs() const = 0;
  // The variant for a config given as "tile=8" (what is not named takes its default). Errors: unknown parameter (with the list), a value
  // that does not parse or that the space refuses (with the name of the rule), a recording error (file:line).
  virtual Result<std::shared_ptr<const Variant>> variant(const std::string& config) const = 0;
};

class Registry {
 public:
  static Registry& instance();
  void add(const KernelEntry* entry);
  void remove(const KernelEntry* entry);            // when the library that holds it is unloaded
  std::vector<const KernelEntry*> kernels() const;  // sorted by name
  // By qualified name, or by its last part when that is unique. Errors: unknown (with near names), ambiguous, two kernels of one name (both
  // places).
  Result<const KernelEntry*> find(const std::string& name) const;

 private:
  Registry();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
