#include <doctest/doctest.h>

#include <set>

#include "kiln/ir/kernel.h"

using namespace kiln::ir;

TEST_CASE("symbols keep letters, digits and _ and escape the rest") {
  const struct {
    std::string name, symbol;
  } table[] = {
      {"scale_v1", "scale_v1"},
      {"scale.v1", "scale$2ev1"},
      {"scale-v1", "scale$2dv1"},
      {"scale v1", "scale$20v1"},
      {"9lives", "$9lives"},
      {"scale<float, 3>", "scale$3cfloat$2c$203$3e"},
      {"\xce\xbb", "$ce$bb"},
      {"ns::k@tile=16", "ns$3a$3ak$40tile$3d16"},
      {"$x", "$24x"},
      {std::string("a\0b", 3), "a$00b"},
  };
  for (const auto& row : table) CHECK(symbol_name(row.name) == row.symbol);
}

TEST_CASE("distinct names give distinct symbols") {
  const std::string l300(300, 'a');
  std::set<std::string> names{"9a",
                              "\x9a",
                              "\x9a"
                              "a",
                              "9ab",
                              "9",
                              "9$",
                              "20x",
                              " x",
                              "2dx",
                              "-x",
                              l300,
                              l300 + "b",
                              "b" + l300,
                              std::string(200, 'a'),
                              std::string(201, 'a')};
  for (int c = 0; c < 256; ++c) {
    names.insert(std::string(1, static_cast<char>(c)));
    for (int d = 0; d < 256; d += d < 128 ? 1 : 17) names.insert({static_cast<char>(c), static_cast<char>(d)});
  }
  std::set<std::string> symbols;
  for (const std::string& n : names) {
    const std::string s = symbol_name(n);
    CHECK(symbols.insert(s).second);
    CHECK(s.size() <= 200);
    CHECK_FALSE((s[0] >= '0' && s[0] <= '9'));
    CHECK(s.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$") == std::string::npos);
  }
  CHECK(symbol_name(std::string(200, 'a')) == std::string(200, 'a'));
}
