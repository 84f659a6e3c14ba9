// The examples of docs/language: kernels and launches that the pages show (between `// example: NAME` and `// end`), run everywhere; and
// the texts of errors that they show, compared with what is printed.
#pragma once
#include "conformance/everywhere.h"
#include "conformance/made_of.h"

namespace kiln::test {

// Launches a kernel everywhere and compares argument `arg` afterwards, bit for bit.
template <class T, class K>
void check_example(const K& kernel, const LaunchConfig& config, const std::vector<Arg>& args, std::size_t arg, const std::vector<T>& wanted,
                   const Ways& ways = {}) {
  check_run<T>(*made(kernel.record()), config, args, arg, wanted, ways);
}
// The variant of a config.
template <class T, class K, class C>
void check_example_with(const K& kernel, const C& cfg, const LaunchConfig& config, const std::vector<Arg>& args, std::size_t arg,
                        const std::vector<T>& wanted, const Ways& ways = {}) {
  check_run<T>(*made(kernel.record(cfg)), config, args, arg, wanted, ways);
}

// Compares an error's text with tests/docs/texts/NAME.txt, which a page shows. In it a place in an example is "example.cpp:N", N a line of
// the block that shows it; the namespace of the examples is left out, and what counts differently in each run (failures, memories) is 1.
// With KILN_WRITE_TEXTS set the file is written instead.
void check_text(const std::string& name, const std::string& text);

}  // namespace kiln::test
