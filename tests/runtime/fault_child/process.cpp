#include "process.h"

#include <kiln/runtime/compiler.h>
#include <kiln/runtime/cuda.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "say.h"

using namespace kiln;

KILN_KERNEL(increment, (InOut<u32> x))
{
  auto i = global_id().x;
  If (i < x.size()) { x[i] += 1u; }
}
KILN_KERNEL(decrement, (InOut<u32> x))
{
  auto i = global_id().x;
  If (i < x.size()) { x[i] -= 1u; }
}

namespace {

constexpr u32 kElements = 64;

void in_the_child(const Client& client, const Buffer<u32>& shared) {
  alarm(60);  // a hang is a failure, not a wait
  const LaunchConfig config = for_num_elems(kElements);
  Buffer<u32> x = shared;
  const Stream stream = client.stream();
  say("child launch", increment(stream, config, x));
  say("child launch of another", decrement(stream, config, x));
  say_read("child read", x);
  say_check("child check", x);
  say("child write", x.write(std::vector<u32>(kElements, 1)));
  say("child sync", client.sync());
  say("child stream sync", stream.sync());
  const auto made = Buffer<u32>::zeroed(client, kElements);
  say("child make", made.has_value() ? Result<void>() : Result<void>(made.error()));
  const auto loaded = cuda::LoadedModule::from_memory(client, "");
  say("child load", loaded.has_value() ? Result<void>() : Result<void>(loaded.error()));
  const auto again = Client::open(client.properties().kind);
  if (again.has_value()) say("child sync of the device opened again", again->sync());
}

}  // namespace

void use_after_fork(const Client& client) {
  auto x = Buffer<u32>::from_host(client, std::vector<u32>(kElements, 40));
  if (!x.has_value()) return say("make", x.error());
  const LaunchConfig config = for_num_elems(kElements);
  say("launch", increment(client.stream(), config, *x));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    {
      const Buffer<u32> mine = *x;
      in_the_child(client, mine);
      x = Error(ErrorCode::Generic, "dropped");  // the last but one
    }
    std::printf("child dropped its buffers: ok\n");
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended: %s %d\n", status == 0 ? "ok" : "status", status);
  say("launch after the child", decrement(client.stream(), config, *x));
  say_read("read", *x);
}

void compile_without_threads(const Client& client) {
  auto x = Buffer<u32>::from_host(client, std::vector<u32>(kElements, 40));
  if (!x.has_value()) return say("make", x.error());
  const LaunchConfig config = for_num_elems(kElements);
  say("code generator", code_generator().compiler != nullptr ? Result<void>() : Error(ErrorCode::NotFound, code_generator().error));
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{48} << 20);
  setrlimit(RLIMIT_AS, &tight);
  const Result<void> refused = increment(client.stream(), config, *x);
  setrlimit(RLIMIT_AS, &before);
  say("launch without threads", refused);
  say_read("read", *x);
  say("write", x->write(std::vector<u32>(kElements, 40)));
  say("launch", increment(client.stream(), config, *x));
  say_read("read again", *x);
}
