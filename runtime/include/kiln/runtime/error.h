// Errors of Kiln: structured facts with stable predicates; the text is for people.
#pragma once
#include <array>
#include <cstdint>
#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// What kind of thing went wrong. Groups follow the truth tables of is_refusal, is_device_poisoned and may_succeed_after_reclaim.
enum class ErrorCode : std::uint8_t {
  // the caller's request is wrong; nothing was touched
  Validation,     // bad launch configuration, failed require, aliasing arguments, foreign buffer, wrong argument
  ForeignHandle,  // a buffer or stream of another device
  // launch
  CompileUnsupported,
  CompileGeneric,
  CompileValidation,
  CompilePanicked,
  CompileDevicePoisoned,
  LaunchOutOfMemory,
  TooManyResources,
  LaunchDevicePoisoned,
  LaunchUnknown,
  // memory and copies
  BufferTooBig,
  OutOfMemory,
  PageUpdateForbidden,
  PageSizesExhausted,
  UnsupportedStrides,
  NotFound,
  StorageNotFound,
  StorageMappingFailed,
  IoDevicePoisoned,
  IoUnknown,
  UnsupportedIo,
  PoolCapacityExceeded,  // the cap of a memory pool
  // between devices
  NoDeviceTransport,  // nothing carries bytes between these devices; no buffer was touched
  // of a profile window
  NotRegistered,  // no such window
  NotMeasured,    // nothing was timed; not the same as zero
  // of the failure store
  TornDown,   // a scope was left before it settled
  Unwritten,  // a read of claimed bytes; causes()[0] is the root
  Skipped,    // a launch that did not run because an input was claimed
  Several,    // causes() holds them all
  // of the device
  Bounds,       // an access out of range, found by a checked kernel
  CheckFailed,  // a check or an assumption of the kernel's author does not hold
  Trapped,      // a thread of a kernel came to a trap; the device is lost
  DevicePoisoned,
  Generic
};
const char* name(ErrorCode code);

// Which limit a TooManyResources or Validation error is about; stable names for tests and tools, e.g. "ZeroDimension",
// "DeviceThreadsPerBlockExceeded" (reference table of launch validation), "Units", "SharedMemory".
// Fields of an out-of-range access; of a failed check, an assumption or a trap: operation "check", "assume" or "trap", place, thread and
// block, and the bits of its values in index and extent.
struct BoundsFault {
  std::string memory, operation, place;
  std::uint32_t dimension = 0;
  bool index_signed = false;
  std::uint64_t index = 0, extent = 0;
  std::array<std::uint32_t, 3> thread{}, block{};
  std::string declared = {};  // where the memory is declared, when it is no parameter: "file.cpp:12"
};

// Immutable and cheap to copy; safe to share between threads.
class Error {
 public:
  // How `requested` and `limit` belong together: it went beyond, it had to be just that, or as the message says.
  enum class Numbers : std::uint8_t { Beyond, NotEqual, AsTold };
  struct Data {
    ErrorCode code = ErrorCode::Generic;
    std::string rule;     // name of the violated rule, may be empty
    std::string message;  // what happened, without the causes
    std::string kernel;   // may be empty
    std::string place;    // "file.cpp:12", may be empty
    std::optional<std::uint64_t> requested, limit;
    Numbers numbers = Numbers::Beyond;
    std::optional<BoundsFault> bounds;
    std::uint64_t failure = 0;          // Unwritten: number of the failure
    std::uint64_t claimed_buffers = 0;  // Unwritten: how many buffers still carry it
    std::vector<std::string> chain;     // Unwritten: the skips between the read and the root, nearest first
    std::vector<Error> causes;
  };
  explicit Error(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}
  Error(ErrorCode code, std::string message)
      : Error(Data{.code = code,
                   .rule = {},
                   .message = std::move(message),
                   .kernel = {},
                   .place = {},
                   .requested = {},
                   .limit = {},
                   .bounds = {},
                   .failure = 0,
                   .claimed_buffers = 0,
                   .chain = {},
                   .causes = {}}) {}

  // Moving copies: an error that was moved from is still one.
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;

  ErrorCode code() const { return data_->code; }
  const Data& data() const { return *data_; }
  const std::string& kernel() const { return data_->kernel; }
  const std::string& rule() const { return data_->rule; }
  const std::vector<Error>& causes() const { return data_->causes; }
  // "requested: 3, limit: 2", "given: 3, expected: 2", or nothing.
  std::string numbers() const;
  // The whole text: kernel, place, message, chain and causes, one fact a line.
  std::string text() const;

  // What it all began with: the first cause's first cause, down to an error without one.
  const Error& root() const;

  bool is_refusal() const;                 // the device said no to this program; another one may do
  bool is_device_poisoned() const;         // nothing on that device can be retried
  bool may_succeed_after_reclaim() const;  // freeing cached memory and trying once more makes sense

 private:
  std::shared_ptr<const Data> data_;
};

// The only exception Kiln throws at its users. what() is error().text().
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)), text_(error_.text()) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error error_;
  std::string text_;
};

// std::expected whose value() throws kiln::Exception with our text instead of std::bad_expected_access. Ignorable.
template <class T>
class Result : public std::expected<T, Error> {
 public:
  using Base = std::expected<T, Error>;
  using Base::Base;
  Result(Base&& b) : Base(std::move(b)) {}
  Result(Error e) : Base(std::unexpected<Error>(std::move(e))) {}

  decltype(auto) value() & {
    check();
    return Base::operator*();
  }
  decltype(auto) value() const& {
    check();
    return Base::operator*();
  }
  T value() && {
    check();
    return std::move(Base::operator*());
  }

 private:
  void check() const {
    if (!this->has_value()) throw Exception(this->error());
  }
};
template <>
class Result<void> : public std::expected<void, Error> {
 public:
  using Base = std::expected<void, Error>;
  using Base::Base;
  Result(Base&& b) : Base(std::move(b)) {}
  Result(Error e) : Base(std::unexpected<Error>(std::move(e))) {}
  void value() const {
    if (!this->has_value()) throw Exception(this->error());
  }
};

}  // namespace kiln
