// Reading a bundle: for launches and for tools.
#include <algorithm>

#include "src/bundle/format.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {

const char* name(BundleItem::Kind kind) {
  switch (kind) {
    case BundleItem::Kind::Ptx: return "PTX";
    case BundleItem::Kind::Cubin: return "cubin";
    case BundleItem::Kind::Object: return "object";
  }
  return "?";
}

std::string to_string(const BundleParam& p) {
  std::string text = !p.is_buffer ? "Val<" : p.access == ir::Access::In ? "In<" : p.access == ir::Access::Out ? "Out<" : "InOut<";
  text += ir::name(p.type);
  if (p.is_buffer && (p.rank != 1 || p.strided)) text += ", " + std::to_string(p.rank);
  if (p.strided) text += ", Strided";
  return text + "> " + p.name;
}

bool BundleInfo::of_this_kiln() const {
  const CodegenIdentity& own = expected_codegen_identity();
  return interface_version == own.interface_version && build_id == own.build_id && llvm_version == own.llvm_version;
}

std::uint32_t BundleInfo::lowest_ptx() const {
  std::uint32_t lowest = 0;
  for (const Item& item : items) {
    if (item.kind != BundleItem::Kind::Ptx) continue;
    if (lowest == 0 || item.code.ptx_version < lowest) lowest = item.code.ptx_version;
  }
  return lowest;
}

std::string BundleInfo::signature() const {
  std::string text = "(";
  for (const BundleParam& p : params) text += (text.size() > 1 ? ", " : "") + to_string(p);
  return text + ")";
}

namespace {

std::string block_text(const std::array<std::uint32_t, 3>& block) {
  if (block == std::array<std::uint32_t, 3>{0, 0, 0}) return "any block";
  if (block == std::array<std::uint32_t, 3>{0, 1, 1}) return "any row";
  return std::to_string(block[0]) + "x" + std::to_string(block[1]) + "x" + std::to_string(block[2]);
}

}  // namespace

std::string to_string(const BundleInfo::Item& item) {
  std::string text = std::string(name(item.kind)) + " " + item.options.arch;
  std::string how;
  const auto add = [&](const std::string& fact) { how += (how.empty() ? "" : ", ") + fact; };
  if (item.kind == BundleItem::Kind::Ptx)
    add("PTX " + std::to_string(item.code.ptx_version / 10) + "." + std::to_string(item.code.ptx_version % 10));
  if (item.kind == BundleItem::Kind::Object || item.options.block[0] != 0) add(block_text(item.options.block));
  if (item.options.block_multiple_of_32) add("whole warps");
  if (item.options.aligned16) add("aligned arguments");
  return text + (how.empty() ? "" : " (" + how + ")");
}

std::string BundleInfo::targets() const {
  std::string text;
  for (const Item& item : items) text += (text.empty() ? "" : ", ") + to_string(item);
  return text;
}

Result<Bundle> Bundle::read(std::string_view bytes) {
  return rt::or_no_memory([&]() -> Result<Bundle> {
    rt::BundleTable table;
    std::uint64_t size = 0, offset = 0;
    if (const std::string wrong = rt::read_table(bytes, table, size, offset); !wrong.empty()) {
      const std::string& kernel = table.info.kernel;
      return rt::damaged_bundle(kernel.empty() ? "at its beginning" : "of kernel '" + kernel + "'", wrong);
    }
    Bundle bundle;
    bundle.bytes_ = bytes.substr(0, static_cast<std::size_t>(size));
    bundle.info_ = std::move(table.info);
    bundle.recorded_digest_ = table.recorded_digest;
    const auto piece = [&](const rt::BundlePiece& p) {
      const Piece made{offset, p.size, p.plain, p.digest};
      offset += p.size;
      return made;
    };
    bundle.recorded_ = piece(table.recorded);
    for (const rt::BundlePiece& p : table.items) bundle.items_.push_back(piece(p));
    return bundle;
  });
}

Bundle Bundle::held(std::optional<std::size_t> item) const {
  Bundle copy;
  copy.info_ = info_;
  copy.recorded_digest_ = recorded_digest_;
  std::string bytes;
  const auto keep = [&](const Piece& piece, bool wanted) {
    Piece kept = piece;
    kept.offset = bytes.size();
    if (wanted) bytes += bytes_.substr(static_cast<std::size_t>(piece.offset), static_cast<std::size_t>(piece.size));
    else kept.size = 0;
    return kept;
  };
  copy.recorded_ = keep(recorded_, true);
  for (std::size_t i = 0; i < items_.size(); ++i) copy.items_.push_back(keep(items_[i], i == item));
  copy.held_ = std::make_shared<const std::string>(std::move(bytes));
  copy.bytes_ = *copy.held_;
  return copy;
}

Result<std::string> Bundle::take(const Piece& piece, const std::string& what) const {
  const std::string_view packed = bytes_.substr(static_cast<std::size_t>(piece.offset), static_cast<std::size_t>(piece.size));
  const auto damaged = [&](const std::string& why) { return rt::damaged_bundle("of kernel '" + info_.kernel + "'", why + what); };
  if (rt::digest(packed) != piece.digest) return damaged("the checksum is not that of the bytes of ");
  // The size before anything is unpacked: no more memory than the table says.
  std::optional<std::string> plain;
  if (rt::packed_size(packed) == piece.plain) plain = rt::unpack(packed);
  if (!plain) return damaged("something else than the table says is packed in ");
  return std::move(*plain);
}

Result<std::string> Bundle::recorded() const {
  return rt::or_no_memory([&]() -> Result<std::string> {
    auto text = take(recorded_, "its IR text");
    if (text.has_value() && rt::digest(*text) != recorded_digest_)
      return rt::damaged_bundle("of kernel '" + info_.kernel + "'", "its IR text is not the one that its table is about");
    return text;
  });
}

Result<BundleItem> Bundle::item(std::size_t i) const {
  return rt::or_no_memory([&]() -> Result<BundleItem> {
    const BundleInfo::Item& info = info_.items[i];
    auto code = take(items_[i], std::string("its ") + to_string(info));
    if (!code.has_value()) return code.error();
    BundleItem item{info.kind, info.options, info.code};
    item.code.code = std::move(*code);
    return item;
  });
}

Result<std::vector<Bundle>> read_bundles(std::string_view bytes) {
  return rt::or_no_memory([&]() -> Result<std::vector<Bundle>> {
    std::vector<Bundle> all;
    bool aligned = true;
    for (std::size_t at = rt::next_bundle(bytes, 0, aligned); at < bytes.size(); at = rt::next_bundle(bytes, at, aligned)) {
      if (!aligned) return rt::damaged_bundle("at byte " + std::to_string(at), "something else than zeros or a bundle stands there");
      auto bundle = Bundle::read(bytes.substr(at));
      if (!bundle.has_value()) return bundle.error();
      at += static_cast<std::size_t>(bundle->size());
      all.push_back(std::move(*bundle));
    }
    if (all.empty()) return make_error(ErrorCode::NotFound, "DamagedBundle", "there is no bundle in it");
    return all;
  });
}

}  // namespace kiln
