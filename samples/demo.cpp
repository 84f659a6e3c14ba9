// A real job end to end: the byte histogram and the entropy of a file, on the default device, checked against plain C++. Shows on the way
// what Kiln knows of each kernel and how long it takes from the definition to code. ./dev demo [--file PATH]
#include <kiln/kiln.h>
#include <kiln/runtime/compiler.h>
#include <link.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "kernels/entropy.h"
#include "kernels/histogram.h"

using namespace kiln;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

template <class F>
double time_of(F&& f) {
  const auto start = Clock::now();
  f();
  return milliseconds(Clock::now() - start);
}

// The libLLVM of this process: the code generator has loaded it. Empty where there is none.
std::string loaded_llvm() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const char* name = info->dlpi_name ? info->dlpi_name : "";
        if (std::strstr(name, "libLLVM")) *static_cast<std::string*>(found) = name;
        return 0;
      },
      &path);
  return path;
}

struct File {
  std::string path;
  std::uint64_t bytes = 0;
  std::vector<u32> words;  // the last one filled up with zeros
};

File read_words(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw std::runtime_error("cannot open '" + path + "'");
  File file{path, static_cast<std::uint64_t>(in.tellg()), {}};
  if (file.bytes == 0) throw std::runtime_error("'" + path + "' is empty");
  if (file.bytes >= std::uint64_t{1} << 32) throw std::runtime_error("'" + path + "' has 4 GiB or more, and the bins are 32 bits wide");
  file.words.resize((file.bytes + 3) / 4);
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(file.words.data()), static_cast<std::streamsize>(file.bytes)))
    throw std::runtime_error("cannot read '" + path + "'");
  return file;
}

std::string file_to_read(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--file") return argv[2];
  if (argc != 1) throw std::invalid_argument("usage: demo [--file PATH]");
  const CodegenHandle& codegen = code_generator();
  if (!codegen.compiler) throw std::runtime_error(codegen.error);
  const std::string llvm = loaded_llvm();
  if (llvm.empty()) throw std::runtime_error("libLLVM is not a shared library here; name a file with --file PATH");
  return llvm;
}

const char* access_text(ir::Access a) { return a == ir::Access::In ? "in" : a == ir::Access::Out ? "out" : "inout"; }
const char* visibility_text(ir::Visibility v) {
  switch (v) {
    case ir::Visibility::Dead: return "not touched";
    case ir::Visibility::ReadOnly: return "read only";
    case ir::Visibility::WriteOnly: return "written only";
    case ir::Visibility::ReadWrite: return "read and written";
  }
  return "?";
}

// What is known of a kernel before it runs: declared and proven IO, the time from its definition to code, its PTX.
template <class K>
void show_kernel(const K& kernel, const std::string& cpu_arch) {
  std::printf("\nkernel %s  (%s)\n", kernel.name().c_str(), kernel.place().c_str());
  const CodegenHandle& codegen = code_generator();
  if (!codegen.compiler) throw std::runtime_error(codegen.error);
  for (int run = 0; run < 2; ++run) {  // the first one warms the code generator up
    std::optional<Variant> variant;
    const ir::Prepared* prepared = nullptr;
    CompiledCode ptx, object;
    const double recording = time_of([&] { variant.emplace(kernel.record().value()); });
    const double passes = time_of([&] { prepared = variant->prepared().value(); });
    CompileOptions to_ptx{.target = TargetKind::Ptx, .arch = "sm_80"};
    to_ptx.block = prepared->kernel.block_size;
    CompileOptions to_host{.target = TargetKind::Host, .arch = cpu_arch, .block = {256, 1, 1}};
    const double ptx_time = time_of([&] { ptx = codegen.compiler->compile(*prepared, to_ptx); });
    const double host_time = cpu_arch.empty() ? 0 : time_of([&] { object = codegen.compiler->compile(*prepared, to_host); });
    if (run == 0) continue;
    std::size_t buffer = 0;
    const std::vector<ParamInfo> params = kernel.params();
    for (std::size_t i = 0; i < params.size(); ++i) {
      const ir::Param& p = prepared->kernel.params[i];
      if (!p.is_buffer) {
        std::printf("  %-8s %-10s\n", params[i].name.c_str(), params[i].type.c_str());
        continue;
      }
      std::printf("  %-8s %-10s declared %-6s proven: %s\n", params[i].name.c_str(), params[i].type.c_str(),
                  access_text(prepared->kernel.mems[p.mem].access), visibility_text(prepared->io[buffer++]));
    }
    std::printf("  accesses that need a test at run time: %zu\n", prepared->sites.size());
    std::printf("  from the definition to code: recording %.2f ms, passes %.2f ms, then PTX for sm_80 %.2f ms", recording, passes,
                ptx_time);
    if (!cpu_arch.empty()) std::printf(", or a host object for %s %.2f ms", cpu_arch.c_str(), host_time);
    std::printf("\n  its PTX begins\n");
    std::istringstream text(ptx.code);
    std::string line;
    for (int shown = 0; shown < 12 && std::getline(text, line);) {
      if (line.empty() || line.starts_with("//")) continue;
      std::printf("    | %s\n", line.c_str());
      ++shown;
    }
  }
}

std::vector<u32> plain_histogram(const File& file) {
  std::vector<u32> bins(samples::byte_bins);
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.words.data());
  for (std::uint64_t i = 0; i < file.bytes; ++i) ++bins[bytes[i]];
  return bins;
}

double plain_entropy(const std::vector<u32>& bins, std::uint64_t bytes) {
  double entropy = 0;
  for (const u32 count : bins) {
    const double p = static_cast<double>(count) / static_cast<double>(bytes);
    if (count > 0) entropy -= p * std::log2(p);
  }
  return entropy;
}

int run(int argc, char** argv) {
  const File file = read_words(file_to_read(argc, argv));
  const Client client = Client::default_client();
  const DeviceProperties& device = client.properties();
  std::printf("%s: %.1f MB\non %s (%s, %s)\n", file.path.c_str(), static_cast<double>(file.bytes) / 1e6, device.name.c_str(),
              device.kind.c_str(), device.arch.c_str());

  const std::string cpu_arch = device.kind == "cpu" ? device.arch : "";
  show_kernel(samples::byte_histogram, cpu_arch);
  show_kernel(samples::byte_entropy, cpu_arch);

  const auto words = Buffer<u32>::from_host(client, file.words).value();
  auto bins = Buffer<u32>::zeroed(client, samples::byte_bins).value();
  auto entropy = Buffer<f32>::uninitialised(client, 1).value();
  const LaunchConfig config{{device.workers * 8}, {256}};
  std::vector<double> times;
  std::vector<u32> counts;
  double first = 0;
  for (int round = 0; round < 6; ++round) {
    bins.write(std::vector<u32>(samples::byte_bins)).value();
    const double t = time_of([&] {
      samples::byte_histogram(config, words, bins);
      counts = bins.read().value();
    });
    if (round == 0) first = t;
    else times.push_back(t);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];

  // The zeros that fill up the last word are not the file's.
  counts[0] -= static_cast<u32>(file.words.size() * 4 - file.bytes);
  bins.write(counts).value();
  samples::byte_entropy({{1}, {samples::byte_bins}}, bins, entropy, static_cast<f64>(file.bytes));
  const f32 bits = entropy.read().value()[0];

  std::vector<u32> wanted;
  const double plain = time_of([&] { wanted = plain_histogram(file); });
  const double wanted_bits = plain_entropy(wanted, file.bytes);
  const double rate = static_cast<double>(file.bytes) / 1e6;
  std::printf("\nhistogram: %.1f ms, %.2f GB/s (the first time, with compiling: %.1f ms); plain C++ on one thread: %.1f ms, %.2f GB/s\n",
              median, rate / median, first, plain, rate / plain);
  std::printf("entropy: %.5f bits per byte; plain C++: %.5f\n", static_cast<double>(bits), wanted_bits);
  std::vector<std::size_t> order(samples::byte_bins);
  for (std::size_t b = 0; b < order.size(); ++b) order[b] = b;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  std::printf("most frequent bytes:");
  for (std::size_t i = 0; i < 4; ++i) std::printf(" 0x%02zx %.1f%%", order[i], 100.0 * counts[order[i]] / static_cast<double>(file.bytes));
  std::printf("\n");

  for (std::size_t b = 0; b < wanted.size(); ++b) {
    if (counts[b] != wanted[b]) {
      throw std::runtime_error("byte " + std::to_string(b) + " was counted " + std::to_string(counts[b]) + " times, but occurs " +
                               std::to_string(wanted[b]) + " times");
    }
  }
  // The kernel works in f32; its terms and their sum are good to a few parts in 10 million.
  if (!(std::abs(static_cast<double>(bits) - wanted_bits) < 1e-5)) throw std::runtime_error("the entropy differs from plain C++");
  std::printf("demo: ok, all 256 counts and the entropy agree with plain C++\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "demo: WRONG: %s\n", e.what());
    return 1;
  }
}
