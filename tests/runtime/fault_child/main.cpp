// A program that uses a device whose driver has faults, and says what it was told: a line for each operation. Run by cuda_fault_test.cpp in
// a process of its own, since a device that is lost stays lost.
#include <cstdio>
#include <string>

#include "kiln/runtime/memory.h"
#include "process.h"
#include "say.h"

using namespace kiln;

KILN_KERNEL(first, (In<u32> x, Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i] + 1u; }
}
KILN_KERNEL(second, (In<u32> x, Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i] + 1u; }
}
KILN_KERNEL(third, (In<u32> x, Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i] + 1u; }
}

namespace {

constexpr u32 kElements = 64;

// a -> first -> b on one stream, b -> second -> c on another, c -> third -> d on the first.
void chain(const Client& client, bool sync_between) {
  const Stream one = client.stream(), two = client.stream();
  const LaunchConfig config = for_num_elems(kElements);
  const auto made = [&](const char* what) {
    auto buffer = Buffer<u32>::from_host(client, std::vector<u32>(kElements, 40));
    say(what, buffer.has_value() ? Result<void>() : Result<void>(buffer.error()));
    return buffer;
  };
  auto a = made("make a"), b = made("make b"), c = made("make c"), d = made("make d"), e = made("make e");
  if (!a.has_value() || !b.has_value() || !c.has_value() || !d.has_value() || !e.has_value()) return;
  say_read("read e before", *e);
  say("launch first", first(one, config, *a, *b));
  if (sync_between) say("sync one", one.sync());
  say("launch second", second(two, config, *b, *c));
  if (sync_between) say("sync two", two.sync());
  say("launch third", third(one, config, *c, *d));
  say("sync", client.sync());
  say_check("check b", *b);
  say_check("check c", *c);
  say_check("check d", *d);
  say_read("read b", *b);
  say_read("read c", *c);
  say_read("read d", *d);
  say_read("read e", *e);
  say("write c", c->write(std::vector<u32>(kElements, 70)));
  say("relaunch third", third(two, config, *c, *d));
  say_read("read d again", *d);
  say("sync again", client.sync());
  made("make f");
}

}  // namespace

// fault_child [--sync] DEVICE...: the chain on each device, one after the other. With --fork or --no-threads instead what process.h says.
int main(int argc, char** argv) {
  bool sync_between = false;
  void (*instead)(const Client&) = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--sync") {
      sync_between = true;
      continue;
    }
    if (word == "--fork" || word == "--no-threads") {
      instead = word == "--fork" ? use_after_fork : compile_without_threads;
      continue;
    }
    const auto client = Client::open(word);
    std::printf("device %s\n", word.c_str());
    if (!client.has_value()) {
      say("open", client.error());
      continue;
    }
    say("open", Result<void>());
    // Each buffer asks the driver, so that a script can fail any of them.
    MemoryPools layout;
    layout.pools.push_back({.kind = PoolKind::Direct});
    install_memory_pools(*client, layout).value();
    if (instead != nullptr) instead(*client);
    else chain(*client, sync_between);
  }
  std::printf("end\n");
  return 0;
}
