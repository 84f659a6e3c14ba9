// Obtains kernels as any program does, and says how: compiled here, or had from the environment. Run by the tests of the environment.
//
//   run COUNT [--as UID] [--shuffle]    kernels k0 to k(COUNT-1), launched once each; prints "compiled N loaded N stored N"
//   addk K...                           kernels of one name that add a constant; prints what each makes of 1
//   delete FOLDER rows|files            until it is killed
//   lookups FOLDER COUNT MS             finds COUNT entries in turn for so long; prints how often
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kiln/ir/text.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/modes.h"
#include "src/environment/environment.h"

using namespace kiln;

namespace {

std::string adding(const std::string& name, unsigned k) {
  return "kir 1\nkernel \"" + name +
         "\" {\n  buffer y : u32[*] inout\n  body {\n    %i = global_id.x\n    %n = size y\n    %in = lt %i, %n\n    if %in {\n"
         "      %v = load y[%i]\n      %k = const " +
         std::to_string(k) + " : u32\n      %w = add %v, %k\n      store y[%i], %w\n    }\n  }\n}\n";
}

std::uint32_t of_one(const Client& client, const std::string& name, unsigned k) {
  const Variant variant(ir::parse_kernel(adding(name, k)));
  const auto y = Buffer<std::uint32_t>::from_host(client, {1}).value();
  const LaunchArg args[] = {y.arg()};
  LaunchRequest request;
  request.variant = &variant;
  request.args = args;
  request.config.grid = Dim3(1);
  request.config.block = Dim3(32);
  launch(client.default_stream(), request).value();
  return y.read().value().at(0);
}

int run(unsigned count, bool shuffle) {
  const Client client = Client::open("cpu").value();
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  if (shuffle) std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(getpid())));
  const StatisticsCollector collector;
  bool good = true;
  {
    const auto counted = ProcessModeOverride::open(ProcessMode::Execute, collector).value();
    for (const unsigned i : order) good = of_one(client, "k" + std::to_string(i), 10 + i) == 11 + i && good;
  }
  const CompilationStatistics s = collector.reader().read().compilation;
  std::printf("compiled %llu loaded %llu stored %llu\n", static_cast<unsigned long long>(s.compiled),
              static_cast<unsigned long long>(s.loaded), static_cast<unsigned long long>(s.stored));
  if (!good) std::printf("wrong results\n");
  return good ? 0 : 1;
}

[[noreturn]] void remove_things(const std::string& folder, bool rows) {
  std::mt19937 random(static_cast<unsigned>(getpid()));
  const auto one_of = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + one_of(20)));
    if (!rows) {
      std::vector<std::string> files;
      std::error_code none;
      for (const auto& file : std::filesystem::directory_iterator(folder, none)) files.push_back(file.path().string());
      if (!files.empty()) unlink(files[one_of(files.size())].c_str());
      continue;
    }
    try {
      rt::StoreFile file(folder + "/" + rt::kStoreName, rt::StoreFile::As::Write);
      std::vector<std::int64_t> ids;
      file.each("", [&](const rt::StoreRow& row) {
        ids.push_back(row.id);
        return true;
      });
      if (!ids.empty()) file.drop(ids[one_of(ids.size())]);
    } catch (const std::exception&) {}  // not there yet, or busy
  }
}

int look_up(const std::string& folder, unsigned count, int ms) {
  const rt::Places places = rt::environment_places(folder, "", "", "/");
  rt::Environment environment(places, 1 << 30, [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
  std::vector<std::string> keys;
  for (unsigned i = 0; i < count; ++i) {
    rt::ProgramKey key;
    key.kernel_text = adding("k" + std::to_string(i), 10 + i) + std::string(4000, static_cast<char>('a' + i % 20));  // as long as most are
    key.options.arch = "x86-64-v3";
    keys.push_back(rt::serialise(key));
  }
  CompiledCode code;
  for (int i = 0; i < 6000; ++i) code.code += static_cast<char>(i * 2654435761u >> 24);
  for (const std::string& key : keys)
    if (!environment.find(key, "k")) environment.store(key, "k", "x86-64-v3", code);
  unsigned long long found = 0, missed = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end)
    for (const std::string& key : keys) ++(environment.find(key, "k") ? found : missed);
  std::printf("found %llu missed %llu\n", found, missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (words.size() < 2) return 2;
  if (const auto as = std::find(words.begin(), words.end(), "--as"); as != words.end()) {
    if (std::getenv("KILN_CODEGEN") == nullptr) (void)code_generator();  // which that user may not be able to read
    const auto id = static_cast<unsigned>(std::stoi(*(as + 1)));
    if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) return 3;
  }
  if (words[0] == "run") return run(static_cast<unsigned>(std::stoi(words[1])), has("--shuffle"));
  if (words[0] == "lookups") return look_up(words[1], static_cast<unsigned>(std::stoi(words.at(2))), std::stoi(words.at(3)));
  if (words[0] == "delete") remove_things(words[1], has("rows"));
  if (words[0] != "addk") return 2;
  const Client client = Client::open("cpu").value();
  for (std::size_t i = 1; i < words.size(); ++i) std::printf("%u ", of_one(client, "addk", static_cast<unsigned>(std::stoi(words[i]))));
  std::printf("\n");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "failed: %s\n", e.what());
  return 1;
}
