// Rows of a table; and a number beyond its end, which is found when the kernel runs and stays on the output.
#include "kernels/gather.h"

#include <stdexcept>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("gather", [] {
    const std::size_t table_rows = 50, columns = 100, picked = 333;
    std::vector<f32> host(table_rows * columns), want(picked * columns);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<f32>(i);
    std::vector<u32> numbers(picked);
    for (std::size_t i = 0; i < picked; ++i) {
      numbers[i] = static_cast<u32>(i * 37 % table_rows);
      for (std::size_t c = 0; c < columns; ++c) want[i * columns + c] = host[numbers[i] * columns + c];
    }
    const auto table = Buffer<f32, 2>(host, {table_rows, columns});
    Buffer<u32> rows(numbers);
    auto y = Buffer<f32, 2>::uninitialised(table.client(), picked, columns).value();
    const LaunchConfig config = cover({columns, picked}, {32, 8});
    samples::gather(config, table, rows, y);
    samples::expect_equal(y.read().value(), want);

    numbers[200] = table_rows;
    rows.write(numbers).value();
    samples::gather(config, table, rows, y);
    const auto refused = y.read();
    if (refused.has_value()) throw std::runtime_error("a row number beyond the table was not found");
    if (refused.error().text().find("index 50 of dimension 0, whose extent is 50") == std::string::npos)
      throw std::runtime_error(refused.error().text());
    return std::to_string(picked) + " rows of " + std::to_string(columns) + " elements, one number too large found";
  });
}
