#include "support/comma_locale.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace kiln::test {
namespace {

// The sources of a locale with nothing but numbers, over ASCII; those of the system need not be installed.
const char* const kNumbers = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";

std::string ascii() {
  std::string text = "<code_set_name> ASCII\n<mb_cur_max> 1\n<comment_char> %\n<escape_char> /\nCHARMAP\n";
  for (unsigned c = 0; c < 128; ++c) {
    char line[32];
    std::snprintf(line, sizeof line, "<U%04X> /x%02x\n", c, c);
    text += line;
  }
  return text + "END CHARMAP\n";
}

}  // namespace

CommaLocale::CommaLocale() {
  const std::string numbers = folder_.write("numbers", kNumbers), characters = folder_.write("ascii", ascii());
  // It warns that the rest of a locale is not there, which is an exit code of 1.
  const auto made = run_process({"localedef", "-c", "-i", numbers, "-f", characters, folder_.file("comma")});
  setenv("LOCPATH", folder_.path().c_str(), 1);
  const bool set = std::setlocale(LC_NUMERIC, "comma") != nullptr && std::strcmp(std::localeconv()->decimal_point, ",") == 0;
  unsetenv("LOCPATH");
  if (!set) throw std::runtime_error("localedef made no locale: " + made.err);
}

CommaLocale::~CommaLocale() { std::setlocale(LC_NUMERIC, "C"); }

}  // namespace kiln::test
