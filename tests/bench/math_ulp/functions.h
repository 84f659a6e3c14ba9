// The functions that are measured: each as a kernel on the CPU device and as its true value.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "device.h"
#include "kiln/ir/ops.h"

namespace kiln::bench {

struct Function {
  const char* name;
  ir::Opcode op;
  bool two, integer_exponent;
  // The true value to an accuracy far beyond the measured one: of f32 arguments in f64, of f64 in long double (64 bits on x86-64).
  double (*narrow)(double x, double y);
  long double (*wide)(long double x, long double y);
  // The same as `narrow` for n values at a time, by SLEEF (within 1.5 units in the last place of f64), where the build found it; null else.
  // Only functions of one argument. n is a multiple of kVector.
  void (*many)(const double* x, double* exact, std::size_t n);
  std::unique_ptr<Evaluator<float>> (*kernel_f32)(std::size_t count, bool fast);
  std::unique_ptr<Evaluator<double>> (*kernel_f64)(std::size_t count, bool fast);
};

constexpr std::size_t kVector = 8;

std::span<const Function> functions();
bool with_sleef();

}  // namespace kiln::bench
