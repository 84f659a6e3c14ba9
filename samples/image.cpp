// An image pipeline: a picture, read from a PNG or computed, made grey, blurred, and its edges found; each result is checked against plain
// C++, bit for bit, and written as a PNG. image [--image FILE.png] [--output FOLDER]
#include "kernels/image.h"

#include <png.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "check.h"

using namespace kiln;

namespace {

struct Picture {
  u32 rows = 0, columns = 0;
  std::vector<u8> rgb;
};

// A png_image that is freed whatever happens.
struct Png {
  png_image image{};
  Png() { image.version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(&image); }
  Png(const Png&) = delete;
};

Picture read_png(const std::string& path) {
  Png png;
  if (png_image_begin_read_from_file(&png.image, path.c_str()) == 0)
    throw std::runtime_error("'" + path + "' cannot be read: " + png.image.message);
  if (std::uint64_t{png.image.width} * png.image.height > 1u << 28)
    throw std::runtime_error("'" + path + "' has more than 2^28 pixels, which is beyond a sample");
  png.image.format = PNG_FORMAT_RGB;
  Picture picture{png.image.height, png.image.width, std::vector<u8>(PNG_IMAGE_SIZE(png.image))};
  if (png_image_finish_read(&png.image, nullptr, picture.rgb.data(), 0, nullptr) == 0)
    throw std::runtime_error("'" + path + "' cannot be read: " + png.image.message);
  return picture;
}

void write_png(const std::string& path, u32 rows, u32 columns, const std::vector<u8>& pixels, bool grey) {
  Png png;
  png.image.width = columns;
  png.image.height = rows;
  png.image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if (png_image_write_to_file(&png.image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error("'" + path + "' cannot be written: " + png.image.message);
}

// --- the same in plain C++, fused where the language fuses ----------------------------------------------------------------------------

constexpr u32 kIterations = 200;
constexpr f32 kLeft = -2.2f, kTop = -1.2f, kWidth = 3.2f;

std::vector<u8> plain_mandelbrot(u32 rows, u32 columns, f32 scale) {
  std::vector<u8> rgb;
  for (u32 r = 0; r < rows; ++r) {
    for (u32 c = 0; c < columns; ++c) {
      const f32 cr = std::fma(static_cast<f32>(c), scale, kLeft), ci = std::fma(static_cast<f32>(r), scale, kTop);
      f32 zr = 0, zi = 0, rr = 0, ii = 0;
      u32 n = 0;
      while (n < kIterations && rr + ii <= 4.0f) {
        const f32 next = std::fma(2.0f * zr, zi, ci);
        zr = rr - ii + cr;
        zi = next;
        rr = zr * zr;
        ii = zi * zi;
        ++n;
      }
      const u32 shade = n == kIterations ? 0 : n;
      for (const u32 factor : {9u, 5u, 13u}) rgb.push_back(static_cast<u8>(shade * factor));
    }
  }
  return rgb;
}

class Plain {
 public:
  Plain(u32 rows, u32 columns) : rows_(rows), columns_(columns) {}
  using Plane = std::vector<f32>;

  Plane brightness(const std::vector<u8>& rgb) const {
    Plane grey;
    for (std::size_t i = 0; i < rgb.size(); i += 3)
      grey.push_back(std::fma(0.114f, static_cast<f32>(rgb[i + 2]),
                              std::fma(0.587f, static_cast<f32>(rgb[i + 1]), 0.299f * static_cast<f32>(rgb[i]))));
    return grey;
  }
  Plane blur(const Plane& x, const std::vector<f32>& weights, int down, int right) const {
    const int half = static_cast<int>(weights.size() / 2);
    return each([&](int r, int c) {
      f32 sum = 0;
      for (int k = -half; k <= half; ++k)
        sum = std::fma(weights[static_cast<std::size_t>(k + half)], at(x, r + k * down, c + k * right), sum);
      return sum;
    });
  }
  std::vector<u8> sobel(const Plane& x) const {
    return bytes(each([&](int r, int c) {
      const auto v = [&](int down, int right) { return at(x, r + down, c + right); };
      const f32 across = std::fma(2.0f, v(0, 1) - v(0, -1), v(-1, 1) - v(-1, -1)) + (v(1, 1) - v(1, -1));
      const f32 down = std::fma(2.0f, v(1, 0) - v(-1, 0), v(1, -1) - v(-1, -1)) + (v(1, 1) - v(-1, 1));
      return std::min(std::sqrt(std::fma(across, across, down * down)), 255.0f);
    }));
  }
  std::vector<u8> bytes(const Plane& x) const {
    std::vector<u8> b;
    for (const f32 v : x) b.push_back(static_cast<u8>(std::nearbyint(v)));
    return b;
  }

 private:
  f32 at(const Plane& x, int r, int c) const {
    r = std::clamp(r, 0, static_cast<int>(rows_) - 1);
    c = std::clamp(c, 0, static_cast<int>(columns_) - 1);
    return x[static_cast<std::size_t>(r) * columns_ + static_cast<std::size_t>(c)];
  }
  template <class F>
  Plane each(F f) const {
    Plane y;
    for (int r = 0; r < static_cast<int>(rows_); ++r)
      for (int c = 0; c < static_cast<int>(columns_); ++c) y.push_back(f(r, c));
    return y;
  }
  u32 rows_, columns_;
};

// Gaussian weights of that deviation, in pixels, with the sum 1.
std::vector<f32> gaussian(double deviation) {
  const int half = static_cast<int>(std::ceil(3 * deviation));
  std::vector<double> w;
  double sum = 0;
  for (int k = -half; k <= half; ++k) sum += w.emplace_back(std::exp(-k * k / (2 * deviation * deviation)));
  std::vector<f32> weights;
  for (const double v : w) weights.push_back(static_cast<f32>(v / sum));
  return weights;
}

std::string run(const std::string& image, const std::string& folder) {
  Picture picture;
  std::vector<std::string> written;
  const Client client = Client::default_client();
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::vector<u8>& pixels, bool grey) {
    written.push_back((std::filesystem::path(folder) / name).string());
    write_png(written.back(), picture.rows, picture.columns, pixels, grey);
  };

  if (image.empty()) {
    picture.rows = 240;
    picture.columns = 320;
    const f32 scale = kWidth / static_cast<f32>(picture.columns);
    auto rgb = Buffer<u8, 3>::uninitialised(client, picture.rows, picture.columns, 3).value();
    samples::mandelbrot(cover({picture.columns, picture.rows}, {32, 8}), rgb, kLeft, kTop, scale, kIterations);
    picture.rgb = rgb.read().value();
    samples::expect_equal(picture.rgb, plain_mandelbrot(picture.rows, picture.columns, scale));
    write("picture.png", picture.rgb, false);
  } else {
    picture = read_png(image);
  }

  const LaunchConfig config = cover({picture.columns, picture.rows}, {32, 8});
  const auto plane = [&] { return Buffer<f32, 2>::uninitialised(client, picture.rows, picture.columns).value(); };
  const auto rgb = Buffer<u8, 3>::from_host(client, picture.rgb, {picture.rows, picture.columns, 3}).value();
  const std::vector<f32> host_weights = gaussian(2.0);
  const auto weights = Buffer<f32>::from_host(client, host_weights).value();
  auto grey = plane(), half = plane(), blurred = plane();
  auto soft = Buffer<u8, 2>::uninitialised(client, picture.rows, picture.columns).value();
  auto edges = Buffer<u8, 2>::uninitialised(client, picture.rows, picture.columns).value();
  samples::brightness(config, rgb, grey);
  samples::blur_rows(config, grey, weights, half);
  samples::blur_columns(config, half, weights, blurred);
  samples::to_bytes(config, blurred, soft);
  samples::sobel(config, blurred, edges);

  const Plain plain(picture.rows, picture.columns);
  const auto wanted = plain.blur(plain.blur(plain.brightness(picture.rgb), host_weights, 0, 1), host_weights, 1, 0);
  samples::expect_equal(blurred.read().value(), wanted);
  const std::vector<u8> soft_bytes = soft.read().value(), edge_bytes = edges.read().value();
  samples::expect_equal(soft_bytes, plain.bytes(wanted));
  samples::expect_equal(edge_bytes, plain.sobel(wanted));
  write("blurred.png", soft_bytes, true);
  write("edges.png", edge_bytes, true);

  std::string text = std::to_string(picture.columns) + " x " + std::to_string(picture.rows) + " pixels, written: ";
  for (const std::string& name : written) text += (name == written.front() ? "" : ", ") + name;
  return text + ",";
}

}  // namespace

int main(int argc, char** argv) {
  std::string image, folder = "image-results";
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc || (option != "--image" && option != "--output")) {
      std::fprintf(stderr, "usage: image [--image FILE.png] [--output FOLDER]\n");
      return 2;
    }
    (option == "--image" ? image : folder) = argv[i + 1];
  }
  return samples::check("image", [&] { return run(image, folder); });
}
