// What the commands share: their options, how they fail, how they print.
#pragma once
#include <array>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/ir/passes.h"
#include "kiln/runtime/error.h"

namespace kiln::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

// Ends a command: the exit code and one sentence for people.
class Failed : public std::runtime_error {
 public:
  Failed(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};
[[noreturn]] inline void usage(const std::string& message) { throw Failed(kUsage, message); }
[[noreturn]] inline void fail(const std::string& message) { throw Failed(kFailed, message); }

// An error of the runtime as one sentence: place, kernel, message and numbers of what lies under the wrappings.
std::string one_line(const Error& error);
// Under the wrappings (the read that found a claim, the skips in between) lies the failure itself.
const Error& root_of(const Error& error);
// Several lines as one.
std::string joined(const std::string& text);

using Mode = ir::PrepareOptions::Mode;

// Options of every command; each reads those it has.
struct Options {
  bool json = false;
  std::string source;                // LIB or FILE.kir
  std::vector<std::string> kernels;  // KERNEL[@param=value,...]
  std::vector<std::string> arch, emit;
  std::string mode, block, grid, shared, device, out_dir;
  std::vector<std::string> variants, blocks, modes;  // of bundles
  std::string embed, embed_header, embed_namespace, depfile;
  std::vector<std::string> args;
  bool bits = false, explain = false, in_process = false;
  std::string jobs, timeout, memory;
  std::string program;  // argv[0]
  std::vector<std::string> filter_kernels, paths;
  std::string most_bytes, unused;
  bool drop = false;
  std::string shell;  // completions
  bool show_side = false;
  std::string html;
  std::vector<std::string> source_roots;
  std::string on, against, seed, runs;  // check
  bool show_ir = false, show_llvm = false, show_ptx = false, show_io = false;
};

// Each returns the exit code, prints to stdout, and throws Failed (or kiln::Exception, ir::IrError) when it cannot do its work.
int devices_command(const Options& options);
int doctor_command(const Options& options);
int list_command(const Options& options);
int show_command(const Options& options);
int emit_command(const Options& options);
int run_command(const Options& options);
int check_command(const Options& options);
int completions_command(const Options& options);
int man_command(const Options& options);
int env_path_command(const Options& options);
int env_list_command(const Options& options);
int env_show_command(const Options& options);
int env_verify_command(const Options& options);
int env_prune_command(const Options& options);
int env_clear_command(const Options& options);
int env_export_command(const Options& options);
int env_import_command(const Options& options);
int env_why_command(const Options& options);

// Options as typed values; each throws a usage error that names the option.
Mode parse_mode(const std::string& text);                                                       // "", "checked", "unchecked"
std::array<std::uint32_t, 3> parse_extent(const std::string& text, const std::string& option);  // "X", "X,Y" or "X,Y,Z"

std::uint32_t parse_count(const std::string& text, const std::string& option);  // a whole number of 32 bits

void print_json(const Json& json);  // one document and a newline

}  // namespace kiln::cli
