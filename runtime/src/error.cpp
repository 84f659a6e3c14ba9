#include "kiln/runtime/error.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/make_error.h"

namespace kiln {

namespace {

// Facts that the predicates and the text need of each code; one row a code, in the order of the enumeration.
struct CodeRow {
  ErrorCode code;
  const char* name;
  bool refusal, poisoned, reclaim;
};
constexpr CodeRow kCodes[] = {
    {ErrorCode::Validation, "Validation", false, false, false},
    {ErrorCode::ForeignHandle, "ForeignHandle", false, false, false},
    {ErrorCode::CompileUnsupported, "CompileUnsupported", true, false, false},
    {ErrorCode::CompileGeneric, "CompileGeneric", true, false, false},
    {ErrorCode::CompileValidation, "CompileValidation", true, false, false},
    {ErrorCode::CompilePanicked, "CompilePanicked", false, false, false},
    {ErrorCode::CompileDevicePoisoned, "CompileDevicePoisoned", false, true, false},
    {ErrorCode::LaunchOutOfMemory, "LaunchOutOfMemory", false, false, false},
    {ErrorCode::TooManyResources, "TooManyResources", true, false, false},
    {ErrorCode::LaunchDevicePoisoned, "LaunchDevicePoisoned", false, true, false},
    {ErrorCode::LaunchUnknown, "LaunchUnknown", false, false, false},
    {ErrorCode::BufferTooBig, "BufferTooBig", false, false, false},  // never fits
    {ErrorCode::OutOfMemory, "OutOfMemory", false, false, true},
    {ErrorCode::PageUpdateForbidden, "PageUpdateForbidden", false, false, false},  // nothing may be released while a graph records
    {ErrorCode::PageSizesExhausted, "PageSizesExhausted", false, false, true},
    {ErrorCode::UnsupportedStrides, "UnsupportedStrides", false, false, true},
    {ErrorCode::NotFound, "NotFound", false, false, true},
    {ErrorCode::StorageNotFound, "StorageNotFound", false, false, true},
    {ErrorCode::StorageMappingFailed, "StorageMappingFailed", false, false, true},  // poisoned: as its source
    {ErrorCode::IoDevicePoisoned, "IoDevicePoisoned", false, true, true},
    {ErrorCode::IoUnknown, "IoUnknown", false, false, true},
    {ErrorCode::UnsupportedIo, "UnsupportedIo", false, false, true},
    {ErrorCode::PoolCapacityExceeded, "PoolCapacityExceeded", false, false, true},
    {ErrorCode::NoDeviceTransport, "NoDeviceTransport", false, false, false},
    {ErrorCode::NotRegistered, "NotRegistered", false, false, false},
    {ErrorCode::NotMeasured, "NotMeasured", false, false, false},
    {ErrorCode::TornDown, "TornDown", false, false, false},
    {ErrorCode::Unwritten, "Unwritten", false, false, false},  // as its root
    {ErrorCode::Skipped, "Skipped", false, false, false},
    {ErrorCode::Several, "Several", false, false, false},  // as its causes
    {ErrorCode::Bounds, "Bounds", false, false, false},
    {ErrorCode::CheckFailed, "CheckFailed", false, false, false},
    {ErrorCode::Trapped, "Trapped", false, true, false},
    {ErrorCode::DevicePoisoned, "DevicePoisoned", false, true, false},
    {ErrorCode::Generic, "Generic", false, false, false},
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kCodes); ++i)
    if (kCodes[i].code != static_cast<ErrorCode>(i)) return false;
  return true;
}
static_assert(in_order() && std::size(kCodes) == static_cast<std::size_t>(ErrorCode::Generic) + 1, "one row for each code, in order");

const CodeRow& row(ErrorCode code) {
  const auto i = static_cast<std::size_t>(code);
  return kCodes[i < std::size(kCodes) ? i : std::size(kCodes) - 1];
}

std::string triple(const std::array<std::uint32_t, 3>& v) {
  return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + ")";
}

std::string access_line(const BoundsFault& b) {
  std::string line = "out of range: " + (b.operation.empty() ? std::string("access") : b.operation);
  if (!b.memory.empty()) line += " of `" + b.memory + "`";
  if (!b.declared.empty()) line += " (declared at " + b.declared + ")";
  if (!b.place.empty()) line += " at " + b.place;
  line += ": index " + index_text(b) + " of dimension " + std::to_string(b.dimension) + ", extent " + std::to_string(b.extent) +
          ", thread " + triple(b.thread) + " of block " + triple(b.block);
  return line;
}

// Every line of `text` after the first moves in by `indent`.
void append_indented(std::string& to, std::string_view text, std::size_t indent) {
  for (const char c : text) {
    to += c;
    if (c == '\n') to.append(indent, ' ');
  }
}

void append_text(std::string& to, const Error& error, std::size_t indent) {
  const Error::Data& d = error.data();
  const auto line = [&](std::string_view what) {
    to += '\n';
    to.append(indent + 2, ' ');
    append_indented(to, what, indent + 2);
  };
  // Of an access out of range the message says it all, where there is one; its fields are for programs.
  append_indented(to, !d.message.empty() ? d.message : d.bounds ? access_line(*d.bounds) : std::string(name(d.code)), indent);
  if (!d.kernel.empty()) line("kernel: " + d.kernel);
  if (!d.place.empty()) line("at: " + d.place);
  if (const std::string numbers = error.numbers(); !d.bounds && !numbers.empty()) line(numbers);
  if (!d.rule.empty()) line("rule: " + d.rule);
  for (const std::string& link : d.chain) line(link);
  for (const Error& cause : d.causes) {
    to += '\n';
    to.append(indent + 2, ' ');
    to += "cause: ";
    append_text(to, cause, indent + 2);
  }
}

}  // namespace

const char* name(ErrorCode code) { return row(code).name; }

std::string index_text(const BoundsFault& b) {
  const auto value = static_cast<std::int64_t>(b.index);
  if (b.index_signed) return std::to_string(value);
  // An unsigned one that went below 0; unless a memory of that size is meant.
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
  std::string text = std::to_string(b.index);
  if (value < 0) text += " (" + std::to_string(value) + " as i64)";
  else if (b.index >= kHalf && b.index < 2 * kHalf && b.extent < kHalf)
    text += " (" + std::to_string(static_cast<std::int32_t>(b.index)) + " as i32)";
  return text;
}

Error make_error(ErrorCode code, std::string rule, std::string message, ErrorFacts facts) {
  Error::Data data;
  data.code = code;
  data.rule = std::move(rule);
  data.message = std::move(message);
  data.kernel = std::move(facts.kernel);
  data.place = std::move(facts.place);
  data.requested = facts.requested;
  data.limit = facts.limit;
  data.numbers = facts.numbers;
  data.causes = std::move(facts.causes);
  return Error(std::move(data));
}

std::string Error::numbers() const {
  const Data& d = data();
  if (d.numbers == Numbers::AsTold) return "";
  const bool equal = d.numbers == Numbers::NotEqual;
  std::string numbers;
  if (d.requested) numbers = (equal ? "given: " : "requested: ") + std::to_string(*d.requested);
  if (d.requested && d.limit) numbers += ", ";
  if (d.limit) numbers += (equal ? "expected: " : "limit: ") + std::to_string(*d.limit);
  return numbers;
}

std::string Error::text() const {
  std::string text;
  append_text(text, *this, 0);
  return text;
}

const Error& Error::root() const {
  const Error* error = this;
  while (!error->causes().empty()) error = &error->causes().front();
  return *error;
}

bool Error::is_refusal() const {
  const auto refused = [](const Error& e) { return e.is_refusal(); };
  if (code() == ErrorCode::Unwritten) return !causes().empty() && causes().front().is_refusal();
  if (code() == ErrorCode::Several) return !causes().empty() && std::all_of(causes().begin(), causes().end(), refused);
  return row(code()).refusal;
}

bool Error::is_device_poisoned() const {
  const auto poisoned = [](const Error& e) { return e.is_device_poisoned(); };
  if (code() == ErrorCode::Unwritten || code() == ErrorCode::StorageMappingFailed)
    return !causes().empty() && causes().front().is_device_poisoned();
  if (code() == ErrorCode::Several) return std::any_of(causes().begin(), causes().end(), poisoned);
  return row(code()).poisoned;
}

bool Error::may_succeed_after_reclaim() const { return row(code()).reclaim; }

}  // namespace kiln
