// A program that uses a device whose driver has faults, and says what it was told: a line for each operation. Run by cuda_fault_test.cpp in
// a process of its own, since a device that is lost stays lost.
#include <kiln/kiln.h>

#include <cstdio>
#include <string>

using namespace kiln;

namespace {

constexpr u32 kElements = 64;

// A line "what: ok ..." or "what: CODE [poisoned] [refusal] text with | for line breaks".
void say(const char* what, const Error& error) {
  std::string text = error.text();
  for (char& c : text)
    if (c == '\n') c = '|';
  std::printf("%s: %s%s%s %s\n", what, name(error.code()), error.is_device_poisoned() ? " poisoned" : "",
              error.is_refusal() ? " refusal" : "", text.c_str());
}
void say(const char* what, const Result<void>& result) {
  if (result.has_value()) std::printf("%s: ok\n", what);
  else say(what, result.error());
}
void say_read(const char* what, const Buffer<u32>& buffer) {
  const auto read = buffer.read();
  if (!read.has_value()) return say(what, read.error());
  bool same = true;
  for (const u32 v : *read) same = same && v == (*read)[0];
  std::printf("%s: ok %s%u\n", what, same ? "" : "mixed ", (*read)[0]);
}
void say_check(const char* what, const Buffer<u32>& buffer) {
  const Binding binding = buffer.binding();
  say(what, rt::check(buffer.client(), {&binding, 1}));
}

}  // namespace

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

// fault_child [--sync] DEVICE...: the chain on each device, one after the other.
int main(int argc, char** argv) {
  bool sync_between = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--sync") {
      sync_between = true;
      continue;
    }
    const auto client = Client::open(word);
    std::printf("device %s\n", word.c_str());
    if (!client.has_value()) {
      say("open", client.error());
      continue;
    }
    say("open", Result<void>());
    chain(*client, sync_between);
  }
  std::printf("end\n");
  return 0;
}
