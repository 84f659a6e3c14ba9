#include "big_stack.h"

#include <pthread.h>

#include <cstddef>

namespace kiln::codegen {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 20;  // address space; committed only as far as used

void* run(void* f) {
  (*static_cast<const std::function<void()>*>(f))();
  return nullptr;
}

}  // namespace

void on_big_stack(const std::function<void()>& f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, &run, const_cast<void*>(static_cast<const void*>(&f)));
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    f();
    return;
  }
  pthread_join(thread, nullptr);
}

}  // namespace kiln::codegen
