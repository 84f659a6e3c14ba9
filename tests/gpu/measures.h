// What kiln_gpu_measure tells of a GPU: lines on the standard output, each flushed, so that what was said before a hang is kept.
#pragma once
#include "cuda/driver.h"

namespace kiln::gpu {

// Each returns the exit status: 0, or 1 when something did not work, which it has said.
int device();    // driver, versions, the target compiled for, every attribute
int launches();  // what a launch takes the host, Kiln's and the driver's own
int copies();    // bandwidth and latency of transfers, Kiln's and the driver's own
int kernels();   // the sample kernels: time, bytes or operations a second, share of a copy on the device
int answers();   // what the driver answers to misuse, each in a process of its own; nothing of Kiln's before it

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
double now();  // seconds

// The median time of work(n), n times what is to be measured, behind a run that does not count; n grows until a run takes 20 ms.
template <class Work>
double seconds_each(Work&& work);

}  // namespace kiln::gpu

#include <algorithm>
#include <array>

template <class Work>
double kiln::gpu::seconds_each(Work&& work) {
  work(1);
  int n = 1;
  double each = 0;
  for (;;) {
    const double began = now();
    work(n);
    const double took = now() - began;
    each = took / n;
    if (took > 0.02 || n >= 1024) break;
    n = std::min(1024, took > 0 ? static_cast<int>(0.025 / each) + n + 1 : n * 16);
  }
  if (each * n > 0.3) return each;  // slow enough to be believed
  std::array<double, 5> times{};
  for (double& t : times) {
    const double began = now();
    work(n);
    t = (now() - began) / n;
  }
  std::sort(times.begin(), times.end());
  return times[2];
}
