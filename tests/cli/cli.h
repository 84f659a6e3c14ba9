// The program under test, and how its answers are held against what is expected.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"

namespace kiln::test {

// build/bin/kiln with these arguments, on the CPU device unless `environment` says otherwise.
ProcessResult kiln_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

// stdout as one JSON document; a failed check when it is none.
nlohmann::json json_of(const ProcessResult& result);

// A refusal: the exit code, exactly one line on stderr that begins "kiln: error: " and holds each of `words`, nothing on stdout, no crash.
void check_refused(const ProcessResult& result, int exit_code, const std::vector<std::string>& words);

std::vector<std::string> files_in(const std::string& folder);  // sorted names; empty when there is no such folder

inline const std::string kSaxpy = KILN_SOURCE_DIR "/samples/kir/saxpy.kir";
inline const std::string kEmptyLibrary = KILN_BINARY_DIR "/lib/libkiln_test_cli_empty.so";
inline const std::string kKernelLibrary = KILN_BINARY_DIR "/lib/libkiln_test_cli_kernels.so";
inline const std::string kSamplesLibrary = KILN_BINARY_DIR "/lib/libkiln_samples.so";

}  // namespace kiln::test
