// Bundles as bytes: what is written is read, always as the same bytes, and damaged ones are errors.
#include "src/bundle/format.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "bundle/made_up.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::string noise(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes;
  while (bytes.size() < n) bytes += static_cast<char>(random() & 0xff);
  return bytes;
}

std::vector<BundleItem> all_kinds() {
  return {ptx_item("sm_80", 70, std::string(300, 'p')),
          ptx_item("sm_90a", 80, "q"),
          cubin_item("sm_90", noise(200)),
          object_item("x86-64-v3"),
          object_item("x86-64-v3", {0, 1, 1}),
          object_item("x86-64-v2", {32, 2, 1}, true)};
}

std::string made(const std::vector<BundleItem>& items = all_kinds()) { return write_bundle(adding(), Mode::AsKernel, items).value(); }

// All of it, as somebody who takes everything; the error where there is one.
std::string read_all(std::string_view bytes) {
  const auto bundles = read_bundles(bytes);
  if (!bundles.has_value()) return bundles.error().text();
  for (const Bundle& bundle : *bundles) {
    if (const auto text = bundle.recorded(); !text.has_value()) return text.error().text();
    for (std::size_t i = 0; i < bundle.info().items.size(); ++i)
      if (const auto item = bundle.item(i); !item.has_value()) return item.error().text();
  }
  return "";
}

void put_number(std::string& bytes, std::size_t at, std::uint64_t v) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(v >> (8 * i) & 0xff);
}
std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < 8; ++i) v |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return v;
}
// As somebody would who knows the format: the checksum of head and table put right.
void seal(std::string& bytes) {
  const std::uint64_t table = std::min<std::uint64_t>(number_at(bytes, 24), bytes.size() - 48);
  const auto digest = rt::digest(bytes.substr(0, 32) + bytes.substr(48, static_cast<std::size_t>(table)));
  bytes.replace(32, 16, std::string(rt::view(digest)));
}

bool same(const CompileOptions& a, const CompileOptions& b) {
  return a.target == b.target && a.arch == b.arch && a.ptx_version == b.ptx_version && a.block == b.block &&
         a.block_multiple_of_32 == b.block_multiple_of_32 && a.aligned16 == b.aligned16 && a.line_info == b.line_info;
}
bool same(const CompiledCode& a, const CompiledCode& b) {
  return a.code == b.code && a.symbol == b.symbol && a.ptx_version == b.ptx_version && a.static_shared_bytes == b.static_shared_bytes &&
         a.context_bytes == b.context_bytes && a.context_bytes_per_warp == b.context_bytes_per_warp;
}

}  // namespace

TEST_CASE("what is written into a bundle is read from it, in canonical order") {
  std::vector<BundleItem> items = all_kinds();
  items[0].options.ptx_version = 71;
  items[0].options.line_info = false;
  items[0].options.block_multiple_of_32 = true;
  const std::string bytes = made(items);
  CHECK(bytes.size() % 16 == 0);
  const auto bundles = read_bundles(bytes);
  REQUIRE(bundles.has_value());
  REQUIRE(bundles->size() == 1);
  const Bundle& bundle = bundles->front();
  CHECK(bundle.size() == bytes.size());
  CHECK(bundle.recorded().value() == ir::print(adding().recorded()));
  REQUIRE(bundle.info().items.size() == items.size());
  const std::size_t canonical[] = {0, 1, 2, 5, 3, 4};  // kinds; then architectures, the older first; then blocks
  for (std::size_t i = 0; i < items.size(); ++i) {
    CAPTURE(i);
    const BundleItem& wanted = items[canonical[i]];
    const auto item = bundle.item(i);
    REQUIRE(item.has_value());
    CHECK(item->kind == wanted.kind);
    CHECK(same(item->options, wanted.options));
    CHECK(same(item->code, wanted.code));
    CHECK(bundle.info().items[i].bytes == wanted.code.code.size());
    CHECK(bundle.info().items[i].code.code.empty());
  }
}

TEST_CASE("a bundle tells all that a launch is checked against without its IR being read") {
  const Variant variant(ir::parse_kernel(R"x(kir 1
kernel "ns::scale@tile=8" {
  file "scale.cpp"
  loc @0:12
  buffer x : f32[*, *] in
  buffer y : f32[*, *] inout strided
  scalar a : f32
  block_size 8, 4, 1
  body {
    %n = extent x.0
    %m = extent y.0
    %ok = le %n, %m
    require %ok, "x.extent(0) <= y.extent(0)"
    %i = thread_id.x
    %v = load x[%i, %i]
    store y[%i, %i], %v
  }
}
)x"));
  for (const bool checked : {true, false}) {
    const std::string bytes =
        write_bundle(variant, checked ? Mode::Checked : Mode::Unchecked, {ptx_item("sm_80", 71), ptx_item("sm_75", 63)}).value();
    const BundleInfo info = read_bundles(bytes).value().front().info();
    CHECK(info.kernel == "ns::scale@tile=8");
    CHECK(info.place == "scale.cpp:12");
    CHECK(info.checked == checked);
    CHECK(info.of_this_kiln());
    CHECK(info.build_id == expected_codegen_identity().build_id);
    CHECK(info.signature() == "(In<f32, 2> x, InOut<f32, 2, Strided> y, Val<f32> a)");
    REQUIRE(info.params.size() == 3);
    CHECK(info.params[0].proven == ir::Visibility::ReadOnly);
    CHECK(info.params[1].proven == ir::Visibility::WriteOnly);
    CHECK(info.block_size == std::array<std::uint32_t, 3>{8, 4, 1});
    CHECK(info.static_shared_bytes == 0);
    CHECK(info.parameter_bytes == (checked ? 80 : 72));
    CHECK(info.requirements == std::vector<std::string>{"x.extent(0) <= y.extent(0)"});
    CHECK(info.min_sm == 75);
    CHECK(info.lowest_ptx() == 63);
    CHECK(info.targets() == "PTX sm_75 (PTX 6.3), PTX sm_80 (PTX 7.1)");
  }
}

TEST_CASE("the bytes are the same whatever the order of the items") {
  const std::string bytes = made();
  std::vector<BundleItem> items = all_kinds();
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(items.begin(), items.end(), random);
    CHECK(made(items) == bytes);
  }
}

TEST_CASE("a bundle that would be of no use, or ambiguous, is not written") {
  const auto refusal = [](const std::vector<BundleItem>& items) {
    const auto bytes = write_bundle(adding(), Mode::AsKernel, items);
    REQUIRE(!bytes.has_value());
    CHECK(bytes.error().rule() == "BundleItems");
    CHECK(bytes.error().kernel() == "ns::adding");
    return bytes.error().data().message;
  };
  CHECK(refusal({}) == "no bundle can be made: there is no code in it");
  CHECK(refusal({ptx_item("sm_80"), ptx_item("sm_80", 80, "other")}) ==
        "no bundle can be made: two items are PTX for sm_80 compiled with the same options");
  CHECK(refusal({ptx_item("sm_80", 70, "")}) == "no bundle can be made: the PTX for sm_80 is empty");
  BundleItem item = ptx_item("sm_80");
  item.kind = BundleItem::Kind::Object;
  CHECK(refusal({item}) == "no bundle can be made: the object for sm_80 was compiled for the other target");
  CHECK(refusal({ptx_item("")}) == "no bundle can be made: an item does not say its architecture");
  item = ptx_item("sm_80");
  item.code.symbol.clear();
  CHECK(refusal({item}) == "no bundle can be made: the PTX for sm_80 does not say its entry");
  CHECK(write_bundle(adding(), Mode::AsKernel, {ptx_item("sm_80"), cubin_item("sm_80")}).has_value());

  const Variant wrong(ir::parse_kernel(
      "kir 1\nkernel \"k\" {\n  buffer x : f32[*] in\n  body {\n    %i = thread_id.x\n    %v = load x[%i]\n    store x[%i], %v\n  }\n}\n"));
  const auto bytes = write_bundle(wrong, Mode::AsKernel, {ptx_item("sm_80")});
  REQUIRE(!bytes.has_value());
  CHECK(bytes.error().code() == ErrorCode::CompileValidation);
}

TEST_CASE("bundles stand one after the other, with zeros between them") {
  const std::string one = made(), other = made({ptx_item("sm_80")}), gap(48, '\0');
  for (const std::string& bytes : {one + other, gap + one + gap + other + gap}) {
    const auto bundles = read_bundles(bytes);
    REQUIRE(bundles.has_value());
    REQUIRE(bundles->size() == 2);
    CHECK((*bundles)[0].info().items.size() == 6);
    CHECK((*bundles)[1].info().items.size() == 1);
    CHECK(read_all(bytes) == "");
  }
  CHECK(read_all(one + std::string(8, '\0') + other).find("at byte") != std::string::npos);
  CHECK(read_all(one + "junk that is there").find("does not begin as a bundle does") != std::string::npos);
  for (const std::string& nothing : {std::string(), gap}) {
    const auto none = read_bundles(nothing);
    REQUIRE(!none.has_value());
    CHECK(none.error().code() == ErrorCode::NotFound);
  }
}

TEST_CASE("a bundle that is cut at any byte is an error") {
  const std::string bytes = made();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string text = read_all(std::string_view(bytes).substr(0, size));
    if (text.empty()) FAIL_CHECK("cut at " << size);
  }
}

TEST_CASE("a bundle of which any bit is flipped is an error") {
  const std::string bytes = made({ptx_item("sm_80", 70, std::string(300, 'p')), object_item("x86-64", {0, 0, 0}, false, noise(40))});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    if (read_all(damaged).empty()) FAIL_CHECK("byte " << bit / 8 << " bit " << bit % 8);
  }
}

TEST_CASE("a bundle of a newer or an unknown format is refused by its number") {
  std::string bytes = made();
  put_number(bytes, 8, 2);
  CHECK(read_all(bytes).find("it was made by a newer Kiln: its format is 2, and this Kiln reads 1") != std::string::npos);
  seal(bytes);
  CHECK(read_all(bytes).find("it was made by a newer Kiln: its format is 2, and this Kiln reads 1") != std::string::npos);
  put_number(bytes, 8, 0);
  CHECK(read_all(bytes).find("it is of no format that this Kiln knows: 0, and this Kiln reads 1") != std::string::npos);
}

TEST_CASE("sizes and counts that somebody crafted are errors, and take no memory") {
  const std::string bytes = made();
  const std::uint64_t table = number_at(bytes, 24);
  const std::uint64_t bad[] = {0,
                               1,
                               15,
                               16,
                               47,
                               48,
                               table - 1,
                               table + 1,
                               bytes.size() - 1,
                               bytes.size() + 1,
                               bytes.size() + 16,
                               1ull << 31,
                               1ull << 32,
                               1ull << 40,
                               1ull << 63,
                               ~0ull,
                               ~0ull - 15,
                               ~0ull - 47};
  // The head: the size of all and that of the table.
  for (const std::size_t at : {16u, 24u}) {
    for (const std::uint64_t v : bad) {
      if (v == number_at(bytes, at)) continue;
      std::string crafted = bytes;
      put_number(crafted, at, v);
      seal(crafted);
      CAPTURE(at);
      CAPTURE(v);
      CHECK(read_all(crafted) != "");
    }
  }
  // Every number of the table, be it a size, a count, a kind or another's text: what is read has the right sizes, or it is an error.
  for (std::size_t at = 48; at + 8 <= 48 + table; ++at) {
    for (const std::uint64_t v : bad) {
      std::string crafted = bytes;
      put_number(crafted, at, v);
      seal(crafted);
      const auto bundles = read_bundles(crafted);
      if (!bundles.has_value()) continue;
      std::uint64_t plain = 0;
      for (const auto& item : bundles->front().info().items) plain += item.bytes;
      if (plain > bytes.size() * 100) {
        // A wrong size of what is packed is found before there is room made for it.
        CHECK(read_all(crafted).find("something else than the table says is packed in") != std::string::npos);
      }
    }
  }
  // A frame that is honest about being huge.
  const std::string zeros = rt::pack(std::string(std::size_t{65} << 20, '\0'));
  CHECK(zeros.size() < 1 << 16);
  BundleItem huge = object_item("x86-64");
  huge.code.code = std::string(std::size_t{65} << 20, '\0');
  CHECK(write_bundle(adding(), Mode::AsKernel, {huge}).error().data().message ==
        "no bundle can be made: the object for x86-64 has 68157440 bytes, and an item has at most 67108864");
}

TEST_CASE("sizes that come to the right sum by overflowing are an error") {
  const std::string bytes = made();
  rt::BundleTable table;
  std::uint64_t size = 0, packed = 0;
  REQUIRE(rt::read_table(bytes, table, size, packed) == "");
  std::vector<rt::BundlePiece> pieces{table.recorded};
  pieces.insert(pieces.end(), table.items.begin(), table.items.end());
  for (std::size_t second = 1; second < pieces.size(); ++second) {
    std::string crafted = bytes;
    for (const rt::BundlePiece& piece : {pieces[0], pieces[second]}) {
      std::string fields(16, '\0');
      put_number(fields, 0, piece.size);
      put_number(fields, 8, piece.plain);
      const std::size_t at = crafted.find(fields, 48);
      REQUIRE(at != std::string::npos);
      put_number(crafted, at, piece.size + (1ull << 63));
    }
    seal(crafted);
    CHECK(read_all(crafted).find("the sizes in its table are wrong") != std::string::npos);
  }
}

TEST_CASE("bytes of any kind are read without harm") {
  const std::string bytes = made();
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = i % 3 == 0 ? noise(random() % 200, random()) : bytes;
    if (i % 3 == 0) damaged = std::string(rt::kBundleMagic) + damaged;
    const unsigned changes = 1 + random() % 8;
    for (unsigned c = 0; c < changes && !damaged.empty(); ++c) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged.erase(at, random() % 20); break;
        case 2: damaged.insert(at, noise(random() % 20, random())); break;
        default:
          if (at + 8 <= damaged.size()) put_number(damaged, at, random() % 2 == 0 ? random() % 100 : ~std::uint64_t{random() % 100});
      }
    }
    if (random() % 2 == 0 && damaged.size() > 64) seal(damaged);
    (void)read_all(damaged);
  }
}
