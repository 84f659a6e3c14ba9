// A library that crashes when it is loaded.
#include <csignal>

namespace {
struct Crash {
  Crash() { raise(SIGSEGV); }
} const crash;
}  // namespace
