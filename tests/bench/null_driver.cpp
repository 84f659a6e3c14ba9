#include "null_driver.h"

#include <cstdlib>
#include <filesystem>

namespace kiln::bench {

NullDriver::NullDriver() {
  const char* elsewhere = std::getenv("KILN_NULL_DRIVER");  // away from the build tree
  file = elsewhere != nullptr && *elsewhere != 0 ? elsewhere : KILN_NULL_DRIVER;
  const char* device = std::getenv("KILN_DEVICE");
  if (!std::filesystem::exists(file) || (device != nullptr && *device != 0)) {
    why = "needs " + file + " and no KILN_DEVICE";
    return;
  }
  setenv("KILN_CUDA_LIBRARY", file.c_str(), 1);
  const Result<Client> opened = Client::open("cuda");
  if (!opened.has_value()) why = opened.error().data().message;
}

Client NullDriver::client() const { return Client::open("cuda").value(); }

}  // namespace kiln::bench
