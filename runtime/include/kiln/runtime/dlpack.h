// The structs of DLPack 1.0 as their public layout is, so that its header is not needed. Cast pointers to those of dlpack.h.
#pragma once
#include <cstdint>

namespace kiln::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6, kFloat8_e4m3fn = 10, kFloat8_e5m2 = 12 };

struct Device {
  std::int32_t type = kCpu, id = 0;
};
struct DataType {
  std::uint8_t code = 0, bits = 0;
  std::uint16_t lanes = 1;
};
struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t rank = 0;
  DataType type;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  // in elements; null: dense, row-major
  std::uint64_t byte_offset = 0;    // of the first element from data
};

// DLManagedTensor, without a version.
struct ManagedTensor {
  Tensor tensor;
  void* context = nullptr;  // the maker's
  void (*deleter)(ManagedTensor* self) = nullptr;
};

struct Version {
  std::uint32_t major = 1, minor = 0;
};
inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

// DLManagedTensorVersioned. What is behind the deleter may be read only where the major version is 1.
struct ManagedTensorVersioned {
  Version version;
  void* context = nullptr;  // the maker's
  void (*deleter)(ManagedTensorVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

}  // namespace kiln::dlpack
