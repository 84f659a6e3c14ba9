// Which PTX goes where: tables of NVIDIA's documents.
#include <doctest/doctest.h>

#include <string>

#include "cuda/ptx_target.h"

using namespace kiln;

TEST_CASE("a driver reads PTX up to the version that came with its CUDA version") {
  struct Row {
    int driver;
    std::uint32_t ptx;
  };
  const Row rows[] = {{12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85}, {12060, 85},
                      {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}, {13020, 92}};
  for (const Row& row : rows) {
    CAPTURE(row.driver);
    CHECK(cuda::ptx_of_driver(row.driver) == row.ptx);
  }
  CHECK(cuda::ptx_of_driver(99000) >= 91);  // one that nobody knows yet
}

TEST_CASE("PTX runs on its own architecture and newer ones; with the suffix a on its own only, with f within its family") {
  struct Row {
    cuda::PtxHeader ptx;
    unsigned capability;
    std::uint32_t driver_ptx;
    const char* words;  // of why not; "" where it runs
  };
  const Row rows[] = {
      {{78, 90, 0}, 90, 78, ""},
      {{78, 90, 0}, 121, 90, ""},
      {{78, 90, 0}, 89, 90, "compile for sm_89 or older"},
      {{79, 90, 0}, 90, 78, "update the NVIDIA driver"},
      {{80, 90, 'a'}, 90, 90, ""},
      {{80, 90, 'a'}, 100, 90, "sm_90a runs on that architecture only"},
      {{86, 100, 'a'}, 103, 90, "sm_100a runs on that architecture only"},
      {{86, 100, 'a'}, 90, 90, "compile for sm_90 or older"},
      {{88, 100, 'f'}, 100, 90, ""},
      {{88, 100, 'f'}, 103, 90, ""},
      {{88, 100, 'f'}, 110, 90, "sm_100f runs on its own family only"},
      {{88, 100, 'f'}, 120, 90, "sm_100f runs on its own family only"},
      {{88, 103, 'f'}, 100, 90, "compile for sm_100 or older"},
      {{88, 120, 'f'}, 121, 88, ""},
      {{88, 120, 'f'}, 120, 87, "update the NVIDIA driver"},
  };
  for (const Row& row : rows) {
    const std::string why = cuda::why_not(row.ptx, row.capability, row.driver_ptx, "some GPU");
    CAPTURE(row.capability);
    CAPTURE(row.words);
    CAPTURE(why);
    CHECK(why.empty() == (*row.words == 0));
    CHECK(why.find(row.words) != std::string::npos);
    if (why.empty()) continue;
    CHECK(why.find("needs PTX " + cuda::ptx_text(row.ptx.version) + " and sm_" + std::to_string(row.ptx.sm)) != std::string::npos);
    CHECK(why.find("some GPU has compute capability") != std::string::npos);
    CHECK(why.find("reads PTX up to " + cuda::ptx_text(row.driver_ptx)) != std::string::npos);
  }
}

TEST_CASE("the head of a PTX text is read behind comments and with more than one target option, and of anything else not") {
  const auto head = [](const char* text) {
    const auto h = cuda::read_ptx_header(text);
    return h ? std::to_string(h->version) + " " + std::to_string(h->sm) + (h->suffix != 0 ? std::string(1, h->suffix) : "") : "none";
  };
  CHECK(head(".version 8.4\n.target sm_90a\n") == "84 90a");
  CHECK(head("// of a tool\n/* and\n another */ .version\t7.0 .target sm_75, debug\n") == "70 75");
  CHECK(head(".version 8.8 .target sm_100f") == "88 100f");
  for (const char* text : {"", " ", "// only", "/* open", ".version", ".version 8", ".version 8.x .target sm_80", ".version 8.0",
                           ".version 8.0 .target", ".version 8.0 .target compute_80", ".version 8.0 .target sm_",
                           ".version 8.0 .target sm_a", ".target sm_80 .version 8.0", ".version 99999999999.0 .target sm_80",
                           "\x7f"
                           "ELF"}) {
    CAPTURE(text);
    CHECK(head(text) == "none");
  }
}
