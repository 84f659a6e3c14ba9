// ./dev docs: writes the code and the texts that the pages of docs/ show, from where they are compiled and run.
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

#include "house/documents.h"

int main(int argc, char** argv) {
  const std::string root = argc > 1 ? argv[1] : ".";
  int status = 0;
  for (const std::string& page : kiln::house::pages(root)) {
    try {
      std::ostringstream before;
      before << std::ifstream(root + "/" + page, std::ios::binary).rdbuf();
      const std::string after = kiln::house::rendered(root, before.str());
      if (after == before.str()) continue;
      std::ofstream out(root + "/" + page, std::ios::binary);
      out << after;
      out.close();
      if (!out) throw std::runtime_error("cannot be written");
      std::printf("%s\n", page.c_str());
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", page.c_str(), e.what());
      status = 1;
    }
  }
  return status;
}
