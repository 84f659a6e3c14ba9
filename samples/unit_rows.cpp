// Rows of length 1: what a kernel logs, read by the host, and a check that fails, which stays on the output.
#include "kernels/unit_rows.h"

#include <algorithm>
#include <stdexcept>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("unit_rows", [] {
    const std::size_t rows = 300, columns = 33;
    std::vector<f32> host(rows * columns), want(rows * columns);
    std::vector<std::string> zeros;
    for (std::size_t r = 0; r < rows; ++r) {
      f32 squares = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        host[r * columns + c] = r % 100 == 42 ? 0 : static_cast<f32>(static_cast<int>((r * 31 + c * 17) % 101) - 50);
        squares += host[r * columns + c] * host[r * columns + c];  // whole numbers: exact
      }
      if (squares == 0) zeros.push_back("row " + std::to_string(r) + " of " + std::to_string(rows) + " is all zeros");
      for (std::size_t c = 0; c < columns; ++c) want[r * columns + c] = squares == 0 ? 0 : host[r * columns + c] * (1 / std::sqrt(squares));
    }
    const auto x = Buffer<f32, 2>(host, {rows, columns});
    const Client client = x.client();
    auto y = Buffer<f32, 2>::uninitialised(client, rows, columns).value();
    std::vector<std::string> said;
    client.on_log([&](const LogLine& line) { said.emplace_back(line.text); });
    samples::unit_rows(for_num_elems(rows), x, y);
    samples::expect_equal(y.read().value(), want);
    std::sort(said.begin(), said.end());  // between threads the order is open
    std::sort(zeros.begin(), zeros.end());
    if (said != zeros)
      throw std::runtime_error("the kernel logged " + std::to_string(said.size()) + " lines, " + (said.empty() ? "none" : said[0]));

    host[7 * columns] = 1e30f;
    samples::unit_rows(for_num_elems(rows), Buffer<f32, 2>(host, {rows, columns}), y);
    const auto refused = y.read();
    client.on_log({});
    if (refused.has_value()) throw std::runtime_error("a row of infinite length was not found");
    if (refused.error().text().find("the squares of row 7 add up to inf") == std::string::npos)
      throw std::runtime_error(refused.error().text());
    return std::to_string(rows) + " rows of " + std::to_string(columns) + " elements, " + std::to_string(zeros.size()) +
           " logged as all zeros, one of infinite length found";
  });
}
