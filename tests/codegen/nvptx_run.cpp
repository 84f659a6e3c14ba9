#include "nvptx_run.h"

#include <cmath>
#include <cstring>

namespace kiln::test {
namespace {

bool same(ir::Type type, const std::uint8_t* a, const std::uint8_t* b) {
  if (std::memcmp(a, b, ir::byte_size(type)) == 0) return true;
  if (type == ir::Type::F32) {
    float x = 0, y = 0;
    std::memcpy(&x, a, 4), std::memcpy(&y, b, 4);
    return std::isnan(x) && std::isnan(y);
  }
  if (type == ir::Type::F64) {
    double x = 0, y = 0;
    std::memcpy(&x, a, 8), std::memcpy(&y, b, 8);
    return std::isnan(x) && std::isnan(y);
  }
  return false;
}

std::string hex(const std::uint8_t* value, unsigned bytes) {
  std::uint64_t v = 0;
  std::memcpy(&v, value, bytes);
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

}  // namespace

void run_both(const ir::Prepared& prepared, PtxRun& run) {
  const ir::Kernel& k = prepared.kernel;
  const auto launch_on = [&](std::vector<std::vector<std::uint8_t>>& memory) {
    interp::Launch launch;
    launch.grid[0] = run.grid;
    std::copy(run.block, run.block + 3, launch.block);
    launch.dynamic_shared_bytes = run.dynamic_shared;
    std::size_t buffer = 0, scalar = 0;
    for (const ir::Param& param : k.params) {
      interp::Arg arg;
      arg.is_buffer = param.is_buffer;
      if (param.is_buffer) {
        arg.bytes = &memory.at(buffer);
        arg.extents = buffer < run.extents.size()
                          ? run.extents[buffer]
                          : std::vector<std::uint64_t>{memory[buffer].size() / ir::byte_size(k.mems[param.mem].element)};
        ++buffer;
      } else {
        arg.bits = run.scalars.at(scalar++);
      }
      launch.args.push_back(std::move(arg));
    }
    return launch;
  };
  std::vector<std::vector<std::uint8_t>> expected = run.buffers;
  const interp::Outcome judged = interp::run(prepared, launch_on(expected));
  for (const std::string& misuse : judged.misuse) FAIL_CHECK("interpreter: " << misuse);
  const std::uint64_t threads = std::uint64_t{run.block[0]} * run.block[1] * run.block[2];
  for (const std::string arch : {"sm_75", "sm_90", "sm_121"}) {
    for (const bool told : {false, true}) {
      if (told && threads % 32 != 0) continue;
      CompileOptions options = ptx_options(arch);
      options.block_multiple_of_32 = told;
      const std::string ptx = ptx_of(prepared, options);
      for (const std::uint64_t seed : {0u, 1u, 2u}) {
        CAPTURE(arch);
        CAPTURE(told);
        CAPTURE(seed);
        std::vector<std::vector<std::uint8_t>> got = run.buffers;
        const interp::Outcome ran = run_ptx(ptx, prepared, launch_on(got), seed);
        for (const std::string& misuse : ran.misuse) FAIL_CHECK(misuse << "\n" << ptx);
        CHECK(ran.fault.has_value() == judged.fault.has_value());
        std::size_t buffer = 0;
        for (const ir::Param& param : k.params) {
          if (!param.is_buffer) continue;
          const ir::Type type = k.mems[param.mem].element;
          const unsigned size = ir::byte_size(type);
          for (std::size_t at = 0; at < got[buffer].size(); at += size) {
            if (same(type, &expected[buffer][at], &got[buffer][at])) continue;
            FAIL_CHECK(param.name << "[" << at / size << "]: interpreter " << hex(&expected[buffer][at], size) << ", PTX "
                                  << hex(&got[buffer][at], size));
            break;
          }
          ++buffer;
        }
      }
    }
  }
  run.buffers = std::move(expected);
  run.fault = judged.fault;
}

}  // namespace kiln::test
