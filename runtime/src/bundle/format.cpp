#include "src/bundle/format.h"

#include <algorithm>
#include <cstring>

#include "src/fields.h"
#include "src/make_error.h"

namespace kiln::rt {
namespace {

std::uint64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < 8; ++i) v |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return v;
}

// Lists in tables: their size, then the elements. A wrong size ends the reading, since each element takes bytes.
template <class T, class One>
void list(FieldWriter& write, const std::vector<T>& all, One&& one) {
  write("count", all.size());
  for (const T& element : all) one(write, element);
}
template <class T, class One>
void list(FieldReader& read, std::vector<T>& all, One&& one) {
  std::uint64_t count = 0;
  read("count", count);
  for (std::uint64_t i = 0; i < count && read.good(); ++i) one(read, all.emplace_back());
}

// A digest as a text of 16 bytes.
void digest_field(FieldWriter& write, const Digest& d) { write("digest", std::string(view(d))); }
void digest_field(FieldReader& read, Digest& d) {
  std::string text;
  read("digest", text);
  if (read.good() && text.size() != d.size()) read.fail();
  if (read.good()) std::memcpy(d.data(), text.data(), d.size());
}

// The front, in an order of its own: BundleFront and the table share it.
template <class Front, class Visit>
void front_fields(Front& front, Visit& visit) {
  visit("kernel", front.kernel);
  visit("checked", front.checked);
  visit("interface version", front.interface_version);
  visit("build", front.build_id);
  visit("LLVM", front.llvm_version);
}

// Who adds a field to CompileOptions or CompiledCode has to add it here: the names would not compile otherwise.
template <class Options, class Visit>
void options_fields(Options& options, Visit& visit) {
  auto& [target, arch, ptx_version, block, block_multiple_of_32, aligned16, line_info] = options;
  visit("target", target);
  visit("arch", arch);
  visit("ptx_at_most", ptx_version);
  visit("block", block);
  visit("block_multiple_of_32", block_multiple_of_32);
  visit("aligned16", aligned16);
  visit("lines", line_info);
}
template <class Code, class Visit>
void code_fields(Code& compiled, Visit& visit) {
  auto& [code, symbol, ptx_version, static_shared_bytes, context_bytes, context_bytes_per_warp] = compiled;
  (void)code;  // an item's bytes stand behind the table
  visit("symbol", symbol);
  visit("PTX version", ptx_version);
  visit("static shared bytes", static_shared_bytes);
  visit("context bytes", context_bytes);
  visit("context_bytes_per_warp", context_bytes_per_warp);
}

template <class Piece, class Visit>
void piece_fields(Piece& piece, Visit& visit) {
  visit("size", piece.size);
  visit("plain size", piece.plain);
  digest_field(visit, piece.digest);
}

template <class Table, class Visit>
void rest_fields(Table& table, Visit& visit) {
  auto& info = table.info;
  visit("kiln_version", info.kiln_version);
  visit("place", info.place);
  list(visit, info.params, [](auto& v, auto& p) {
    v("name", p.name);
    v("is a buffer", p.is_buffer);
    v("type", p.type);
    v("rank", p.rank);
    v("access", p.access);
    v("strided", p.strided);
    v("proven", p.proven);
  });
  visit("block size", info.block_size);
  visit("most threads", info.max_threads);
  visit("static shared bytes", info.static_shared_bytes);
  visit("parameter bytes", info.parameter_bytes);
  list(visit, info.requirements, [](auto& v, auto& text) { v("requirement", text); });
  visit("lowest sm", info.min_sm);
  visit("why", info.min_sm_reason);
  piece_fields(table.recorded, visit);
  list(visit, info.items, [](auto& v, auto& item) {
    v("kind", item.kind);
    options_fields(item.options, v);
    code_fields(item.code, v);
    v("bytes", item.bytes);
  });
  list(visit, table.items, [](auto& v, auto& piece) { piece_fields(piece, v); });
}

// Values that the types of their fields allow and the fields' meaning does not.
bool meaningful(const BundleInfo& info) {
  if (info.kernel.empty() || info.items.empty()) return false;
  for (const BundleParam& p : info.params) {
    if (static_cast<int>(p.type) >= ir::kTypeCount || p.type == ir::Type::Void) return false;
    if (p.access > ir::Access::InOut || p.proven > ir::Visibility::ReadWrite) return false;
    if (p.is_buffer ? p.rank == 0 || p.rank > ir::kMaxRank : p.rank != 0 || p.strided) return false;
  }
  for (const BundleInfo::Item& item : info.items) {
    if (item.kind > BundleItem::Kind::Object || item.options.target > TargetKind::Host) return false;
    if ((item.kind == BundleItem::Kind::Object) != (item.options.target == TargetKind::Host) || item.options.arch.empty()) return false;
  }
  return true;
}

// The head, verified with the table.
std::string read_head(std::string_view bytes, std::string_view& table, std::uint64_t& size) {
  if (bytes.size() < kBundleMagic.size() || !bytes.starts_with(kBundleMagic)) return "it does not begin as a bundle does";
  if (bytes.size() < kBundleHead) return "it ends within the head of a bundle";
  // Before anything else: what a newer form says after it may be something else.
  if (const std::uint64_t format = number_at(bytes, 8); format != kBundleFormat) {
    return (format > kBundleFormat ? "it was made by a newer Kiln: its format is " : "it is of no format that this Kiln knows: ") +
           std::to_string(format) + ", and this Kiln reads " + std::to_string(kBundleFormat);
  }
  size = number_at(bytes, 16);
  const std::uint64_t table_size = number_at(bytes, 24);
  if (size > bytes.size()) return "it is cut: there are " + std::to_string(bytes.size()) + " bytes of " + std::to_string(size);
  if (size % kBundleAlignment != 0 || size < kBundleHead || table_size > size - kBundleHead) return "the sizes in its head are wrong";
  table = bytes.substr(kBundleHead, static_cast<std::size_t>(table_size));
  std::string summed(bytes.substr(0, 32));
  summed += table;
  if (view(digest(summed)) != bytes.substr(32, 16)) return "the checksum of its table is not that of its bytes";
  return {};
}

}  // namespace

std::string serialise(const BundleTable& table) {
  std::string out;
  FieldWriter write(out);
  front_fields(table.info, write);
  digest_field(write, table.recorded_digest);
  rest_fields(table, write);
  return out;
}

std::string read_front(std::string_view bytes, BundleFront& front) {
  std::string_view table;
  if (std::string wrong = read_head(bytes, table, front.size); !wrong.empty()) return wrong;
  FieldReader read(table);
  front_fields(front, read);
  digest_field(read, front.recorded_digest);
  return read.good() ? std::string() : "its table is of no form that this Kiln knows";
}

std::string read_table(std::string_view bytes, BundleTable& table, std::uint64_t& size, std::uint64_t& packed) {
  std::string_view fields;
  if (std::string wrong = read_head(bytes, fields, size); !wrong.empty()) return wrong;
  packed = kBundleHead + fields.size();
  FieldReader read(fields);
  front_fields(table.info, read);
  digest_field(read, table.recorded_digest);
  rest_fields(table, read);
  if (!read.whole() || !meaningful(table.info) || table.items.size() != table.info.items.size())
    return "its table is of no form that this Kiln knows";
  // All there is between the table and the end, and nothing else: each size is at most what is left, so that no sum overflows.
  std::uint64_t left = size - kBundleHead - fields.size();
  const auto fits = [&](const BundlePiece& piece) {
    if (piece.size > left || piece.plain > kMostInBundle) return false;
    left -= piece.size;
    return true;
  };
  bool good = fits(table.recorded);
  for (std::size_t i = 0; i < table.items.size() && good; ++i)
    good = fits(table.items[i]) && table.items[i].plain == table.info.items[i].bytes && table.items[i].plain > 0;
  if (!good || left >= kBundleAlignment) return "the sizes in its table are wrong";
  const std::string_view padding = bytes.substr(static_cast<std::size_t>(size - left), static_cast<std::size_t>(left));
  if (padding.find_first_not_of('\0') != std::string_view::npos) return "it does not end with zeros";
  return {};
}

std::size_t next_bundle(std::string_view bytes, std::size_t at, bool& good) {
  good = true;
  const std::size_t found = bytes.find_first_not_of('\0', at);
  if (found == std::string_view::npos) return bytes.size();
  good = found % kBundleAlignment == 0;
  return found;
}

Error damaged_bundle(const std::string& where, const std::string& what) {
  return make_error(ErrorCode::Validation, "DamagedBundle", "the bundle " + where + " cannot be read: " + what);
}

}  // namespace kiln::rt
