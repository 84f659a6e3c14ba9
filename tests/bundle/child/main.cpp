// Launches one kernel with what files of bundles have for it. Each file is a module of its own. Run by the tests, mostly where there is no
// code generator. Prints the result, or the error's rule and text.
//
//   recorded NAME K X,Y [FILE...]    a kernel that this program recorded: adding() of made_up.h; in blocks of X by Y threads
//   embedded NAME X,Y [FILE...]      by its bundle
//   shifted NAME K X,Y [FILE...]     as recorded, with a buffer that does not lie at a multiple of 16 bytes
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include "bundle/made_up.h"
#include "bundle/module.h"
#include "kiln/kiln.h"
#include "support/process.h"

using namespace kiln;

namespace {

int run(const Client& client, const Variant& variant, std::uint32_t x, std::uint32_t y, bool shifted) {
  const auto memory = Buffer<u32>::zeroed(client, 101).value();
  const auto view = memory.slice(shifted ? 1 : 0, 100);
  LaunchArg a;
  a.type = ir::Type::U32;
  const LaunchArg args[] = {view.arg(), a};
  LaunchRequest request;
  request.variant = &variant;
  request.args = args;
  request.config.grid = Dim3((100 + x - 1) / x);
  request.config.block = Dim3(x, y);
  const Result<void> launched = launch(client.default_stream(), request);
  if (!launched.has_value()) {
    std::printf("%s\n%s\n", launched.error().rule().c_str(), launched.error().text().c_str());
    return 1;
  }
  std::printf("result %u\n", view.read().value().at(99));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto take = [&] {
    if (words.empty()) throw std::runtime_error("too few arguments");
    std::string word = words.front();
    words.erase(words.begin());
    return word;
  };
  const std::string how = take(), name = take();
  const unsigned k = how == "embedded" ? 0 : static_cast<unsigned>(std::stoi(take()));
  const std::string block = take();
  const auto x = static_cast<std::uint32_t>(std::stoi(block));
  const auto y = static_cast<std::uint32_t>(std::stoi(block.substr(block.find(',') + 1)));
  std::vector<std::unique_ptr<test::Module>> modules;
  for (const std::string& file : words) modules.push_back(std::make_unique<test::Module>(test::read_file(file)));
  const Client client = Client::default_client();
  if (how == "embedded") {
    const auto found = embedded_variant(name);
    if (!found.has_value()) {
      std::printf("%s\n%s\n", found.error().rule().c_str(), found.error().text().c_str());
      return 1;
    }
    return run(client, *found->variant, x, y, false);
  }
  return run(client, test::adding(name, k), x, y, how == "shifted");
} catch (const std::exception& e) {
  std::printf("failed: %s\n", e.what());
  return 2;
}
