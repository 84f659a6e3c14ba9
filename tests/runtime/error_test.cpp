#include "kiln/runtime/error.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kiln;

namespace {

Error with_causes(ErrorCode code, std::vector<Error> causes) {
  Error::Data data;
  data.code = code;
  data.message = name(code);
  data.causes = std::move(causes);
  return Error(std::move(data));
}
Error plain(ErrorCode code) { return Error(code, name(code)); }

}  // namespace

TEST_CASE("the predicates of every error without causes follow the truth tables") {
  struct Row {
    ErrorCode code;
    const char* text;
    bool refusal, poisoned, reclaim;
  };
  // clang-format off
  const Row rows[] = {
      {ErrorCode::Validation,            "Validation",            false, false, false},
      {ErrorCode::ForeignHandle,         "ForeignHandle",         false, false, false},
      {ErrorCode::CompileUnsupported,    "CompileUnsupported",    true,  false, false},
      {ErrorCode::CompileGeneric,        "CompileGeneric",        true,  false, false},
      {ErrorCode::CompileValidation,     "CompileValidation",     true,  false, false},
      {ErrorCode::CompilePanicked,       "CompilePanicked",       false, false, false},
      {ErrorCode::CompileDevicePoisoned, "CompileDevicePoisoned", false, true,  false},
      {ErrorCode::LaunchOutOfMemory,     "LaunchOutOfMemory",     false, false, false},
      {ErrorCode::TooManyResources,      "TooManyResources",      true,  false, false},
      {ErrorCode::LaunchDevicePoisoned,  "LaunchDevicePoisoned",  false, true,  false},
      {ErrorCode::LaunchUnknown,         "LaunchUnknown",         false, false, false},
      {ErrorCode::BufferTooBig,          "BufferTooBig",          false, false, false},
      {ErrorCode::OutOfMemory,           "OutOfMemory",           false, false, true},
      {ErrorCode::PageUpdateForbidden,   "PageUpdateForbidden",   false, false, false},
      {ErrorCode::PageSizesExhausted,    "PageSizesExhausted",    false, false, true},
      {ErrorCode::UnsupportedStrides,    "UnsupportedStrides",    false, false, true},
      {ErrorCode::NotFound,              "NotFound",              false, false, true},
      {ErrorCode::StorageNotFound,       "StorageNotFound",       false, false, true},
      {ErrorCode::StorageMappingFailed,  "StorageMappingFailed",  false, false, true},
      {ErrorCode::IoDevicePoisoned,      "IoDevicePoisoned",      false, true,  true},
      {ErrorCode::IoUnknown,             "IoUnknown",             false, false, true},
      {ErrorCode::UnsupportedIo,         "UnsupportedIo",         false, false, true},
      {ErrorCode::PoolCapacityExceeded,  "PoolCapacityExceeded",  false, false, true},
      {ErrorCode::NoDeviceTransport,     "NoDeviceTransport",     false, false, false},
      {ErrorCode::NotRegistered,         "NotRegistered",         false, false, false},
      {ErrorCode::NotMeasured,           "NotMeasured",           false, false, false},
      {ErrorCode::TornDown,              "TornDown",              false, false, false},
      {ErrorCode::Unwritten,             "Unwritten",             false, false, false},
      {ErrorCode::Skipped,               "Skipped",               false, false, false},
      {ErrorCode::Several,               "Several",               false, false, false},
      {ErrorCode::Bounds,                "Bounds",                false, false, false},
      {ErrorCode::CheckFailed,           "CheckFailed",           false, false, false},
      {ErrorCode::Trapped,               "Trapped",               false, true,  false},
      {ErrorCode::DevicePoisoned,        "DevicePoisoned",        false, true,  false},
      {ErrorCode::Generic,               "Generic",               false, false, false},
  };
  // clang-format on
  std::size_t seen = 0;
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(static_cast<std::size_t>(row.code) == seen++);
    CHECK(std::string(name(row.code)) == row.text);
    const Error error = plain(row.code);
    CHECK(error.is_refusal() == row.refusal);
    CHECK(error.is_device_poisoned() == row.poisoned);
    CHECK(error.may_succeed_after_reclaim() == row.reclaim);
  }
  CHECK(seen == static_cast<std::size_t>(ErrorCode::Generic) + 1);
}

TEST_CASE("the predicates of errors with causes ask the causes") {
  const Error refused = plain(ErrorCode::CompileUnsupported), poisoned = plain(ErrorCode::LaunchDevicePoisoned),
              neither = plain(ErrorCode::LaunchUnknown);
  const Error of_refused = with_causes(ErrorCode::Unwritten, {refused}), of_poisoned = with_causes(ErrorCode::Unwritten, {poisoned});
  struct Row {
    const char* what;
    Error error;
    bool refusal, poisoned;
  };
  const Row rows[] = {
      {"an Unwritten is what its root is: refused", of_refused, true, false},
      {"an Unwritten is what its root is: poisoned", of_poisoned, false, true},
      {"an Unwritten is what its root is: neither", with_causes(ErrorCode::Unwritten, {neither}), false, false},
      {"a Several of nothing", with_causes(ErrorCode::Several, {}), false, false},
      {"a Several of one refusal", with_causes(ErrorCode::Several, {refused}), true, false},
      {"a Several of refusals only", with_causes(ErrorCode::Several, {refused, of_refused}), true, false},
      {"a Several with something that is no refusal", with_causes(ErrorCode::Several, {refused, neither}), false, false},
      {"a Several of a refusal and a poisoned root", with_causes(ErrorCode::Several, {refused, of_poisoned}), false, true},
      {"a Several inside a Several", with_causes(ErrorCode::Several, {with_causes(ErrorCode::Several, {of_poisoned}), neither}), false,
       true},
      {"a skip is not a refusal, whatever it needed", with_causes(ErrorCode::Skipped, {refused}), false, false},
      {"a skip is not poisoned, whatever it needed", with_causes(ErrorCode::Skipped, {poisoned}), false, false},
      {"a failed mapping is what its source is: poisoned",
       with_causes(ErrorCode::StorageMappingFailed, {plain(ErrorCode::IoDevicePoisoned)}), false, true},
      {"a failed mapping is what its source is: healthy", with_causes(ErrorCode::StorageMappingFailed, {plain(ErrorCode::IoUnknown)}),
       false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(row.error.is_refusal() == row.refusal);
    CHECK(row.error.is_device_poisoned() == row.poisoned);
  }
}

TEST_CASE("every combination of two causes gives Several what the table says") {
  for (int i = 0; i <= static_cast<int>(ErrorCode::Generic); ++i)
    for (int j = 0; j <= static_cast<int>(ErrorCode::Generic); ++j) {
      const Error one = plain(static_cast<ErrorCode>(i)), two = plain(static_cast<ErrorCode>(j));
      const Error both = with_causes(ErrorCode::Several, {one, two}),
                  lost = with_causes(ErrorCode::Several, {with_causes(ErrorCode::Unwritten, {one}), two});
      CAPTURE(both.text());
      CHECK(both.is_refusal() == (one.is_refusal() && two.is_refusal()));
      CHECK(both.is_device_poisoned() == (one.is_device_poisoned() || two.is_device_poisoned()));
      CHECK(lost.is_refusal() == both.is_refusal());
      CHECK(lost.is_device_poisoned() == both.is_device_poisoned());
      CHECK_FALSE(both.may_succeed_after_reclaim());  // that is asked of what an allocation says, never of a read
    }
}

TEST_CASE("the root of an error is its first cause's first cause, down to the one that has none") {
  const Error root = plain(ErrorCode::CompileUnsupported), other = plain(ErrorCode::Bounds);
  const Error read =
      with_causes(ErrorCode::Several, {with_causes(ErrorCode::Unwritten, {root}), with_causes(ErrorCode::Unwritten, {other})});
  CHECK(read.root().code() == ErrorCode::CompileUnsupported);
  CHECK(&root.root() == &root);
  CHECK(with_causes(ErrorCode::Several, {}).root().code() == ErrorCode::Several);
}

TEST_CASE("an unsigned index that went below 0 is told as that number, too") {
  const auto says = [](std::uint64_t index, bool is_signed, std::uint64_t extent) {
    Error::Data data;
    data.code = ErrorCode::Bounds;
    data.bounds = BoundsFault{"y", "store", "", 0, is_signed, index, extent};
    const std::string text = Error(data).text();
    const std::size_t at = text.find("index ") + 6;
    return text.substr(at, text.find(" of dimension") - at);
  };
  CHECK(says(0xffffffffu, false, 1000) == "4294967295 (-1 as i32)");
  CHECK(says(0x80000000u, false, 1000) == "2147483648 (-2147483648 as i32)");
  CHECK(says(0x7fffffffu, false, 1000) == "2147483647");
  CHECK(says(std::uint64_t{1} << 32, false, 1000) == "4294967296");
  CHECK(says(~std::uint64_t{1}, false, 1000) == "18446744073709551614 (-2 as i64)");
  CHECK(says(~std::uint64_t{1}, true, 1000) == "-2");
  CHECK(says(0xffffffffu, false, 0xfffffff0u) == "4294967295");  // of a memory that is so large
}

TEST_CASE("the text of an error says all its facts, one a line, causes under it") {
  Error::Data bounds;
  bounds.code = ErrorCode::Bounds;
  bounds.message = "An access was out of range";
  bounds.kernel = "ns::saxpy";
  bounds.place = "saxpy.cpp:12";
  bounds.bounds = BoundsFault{"y", "store", "saxpy.cpp:14", 1, true, static_cast<std::uint64_t>(-3), 1000, {1, 2, 3}, {4, 5, 6}};
  Error::Data unwritten;
  unwritten.code = ErrorCode::Unwritten;
  unwritten.message = "The bytes were never written (failure #2, still claiming 1 buffer)";
  unwritten.chain = {"skipped `b`: it needed memory 7, which carried the failure"};
  unwritten.causes = {Error(bounds)};
  Error::Data several;
  several.code = ErrorCode::Several;
  several.message = "The memory cannot be read";
  several.causes = {Error(unwritten)};
  CHECK(Error(several).text() ==
        "The memory cannot be read\n"
        "  cause: The bytes were never written (failure #2, still claiming 1 buffer)\n"
        "    skipped `b`: it needed memory 7, which carried the failure\n"
        "    cause: An access was out of range\n"
        "      kernel: ns::saxpy\n"
        "      at: saxpy.cpp:12");
  bounds.message = "";
  CHECK(Error(bounds).text() ==
        "out of range: store of `y` at saxpy.cpp:14: index -3 of dimension 1, extent 1000, thread (1, 2, 3) of block (4, 5, 6)\n"
        "  kernel: ns::saxpy\n"
        "  at: saxpy.cpp:12");

  Error::Data limit;
  limit.code = ErrorCode::Validation;
  limit.message = "Too many threads in a block\nof this device";
  limit.rule = "DeviceThreadsPerBlockExceeded";
  limit.requested = 2048;
  limit.limit = 1024;
  CHECK(Error(limit).text() ==
        "Too many threads in a block\n"
        "of this device\n"
        "  requested: 2048, limit: 1024\n"
        "  rule: DeviceThreadsPerBlockExceeded");
  limit.numbers = Error::Numbers::NotEqual;
  CHECK(Error(limit).numbers() == "given: 2048, expected: 1024");
  limit.numbers = Error::Numbers::AsTold;
  CHECK(Error(limit).text().find("2048") == std::string::npos);
  CHECK(Error(ErrorCode::TornDown, "").text() == "TornDown");
}

TEST_CASE("value() of a failed Result throws the whole text") {
  const Result<int> failed = Error(ErrorCode::Generic, "no luck");
  CHECK_THROWS_WITH_AS((void)failed.value(), "no luck", Exception);
  CHECK_THROWS_WITH_AS(Result<void>(Error(ErrorCode::Generic, "none")).value(), "none", Exception);
  CHECK(Result<int>(3).value() == 3);
}
