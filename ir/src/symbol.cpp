#include "kiln/ir/kernel.h"

namespace kiln::ir {
namespace {

constexpr std::size_t kMaxSymbol = 200, kHashDigits = 32;
constexpr char kHex[] = "0123456789abcdef";

bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_plain(unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

void escape(std::string& out, unsigned char c) {
  out += '$';
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

// FNV-1a with 128 bits.
std::string hash128(const std::string& text) {
  using Wide = unsigned __int128;
  const Wide prime = (Wide{0x0000000001000000u} << 64) | 0x000000000000013bu;
  Wide hash = (Wide{0x6c62272e07bb0142u} << 64) | 0x62b821756295c58du;
  for (const unsigned char c : text) hash = (hash ^ c) * prime;
  std::string digits(kHashDigits, '0');
  for (std::size_t i = kHashDigits; i-- > 0; hash >>= 4) digits[i] = kHex[static_cast<unsigned>(hash) & 15];
  return digits;
}

}  // namespace

std::string symbol_name(const std::string& kernel_name) {
  std::string symbol;
  const bool leading_digit = !kernel_name.empty() && is_digit(static_cast<unsigned char>(kernel_name[0]));
  if (leading_digit) symbol += '$';
  for (std::size_t i = 0; i < kernel_name.size(); ++i) {
    const auto c = static_cast<unsigned char>(kernel_name[i]);
    // After "$9" a hexadecimal digit would read as the escape of a byte ("9a" against the byte 0x9a), so it is escaped itself.
    const bool ambiguous = leading_digit && i == 1 && is_hex(c);
    if (is_plain(c) && !ambiguous) {
      symbol += static_cast<char>(c);
    } else {
      escape(symbol, c);
    }
  }
  if (symbol.size() <= kMaxSymbol) return symbol;
  // "$$" is in no symbol that is not cut, so a cut one meets no whole one.
  std::size_t keep = kMaxSymbol - kHashDigits - 2;
  return symbol.substr(0, keep) + "$$" + hash128(kernel_name);
}

}  // namespace kiln::ir
