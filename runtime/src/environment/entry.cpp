#include "src/environment/entry.h"

#include <zstd.h>

#include <memory>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/fields.h"
#include "src/program_key.h"

namespace kiln::rt {
namespace {

enum Method : char { kPlain = 0, kZstd = 1 };
constexpr std::size_t kHead = 9, kPays = 128;  // what is smaller is kept as it is
constexpr int kLevel = 3;

void put(std::string& out, std::uint64_t v) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i) & 0xff);
}
std::uint64_t get(std::string_view bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < 8; ++i) v |= std::uint64_t{static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])} << (8 * i);
  return v;
}

template <class Code, class Visit>
void each_field(Code& code, Visit& visit) {
  visit("symbol", code.symbol);
  visit("ptx_version", code.ptx_version);
  visit("static_shared_bytes", code.static_shared_bytes);
  visit("context_bytes", code.context_bytes);
  visit("context_bytes_per_warp", code.context_bytes_per_warp);
  visit("code", code.code);
}

Digest bytes_of(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest d;
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<char>(canonical.digest[i]);
  return d;
}

// One of each thread: making one costs more than a small entry.
ZSTD_DCtx* unpacker() {
  struct Free {
    void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

}  // namespace

Digest digest(std::string_view bytes) { return bytes_of(XXH3_128bits(bytes.data(), bytes.size())); }

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::string pack(std::string_view bytes) {
  std::string out;
  if (bytes.size() >= kPays) {
    out.resize(kHead + ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compress(out.data() + kHead, out.size() - kHead, bytes.data(), bytes.size(), kLevel);
    if (ZSTD_isError(size) == 0 && size < bytes.size() - bytes.size() / 8) {
      std::string head(1, kZstd);
      put(head, bytes.size());
      out.replace(0, kHead, head);
      out.resize(kHead + size);
      return out;
    }
  }
  out.assign(1, kPlain);
  put(out, bytes.size());
  out.append(bytes);
  return out;
}

std::optional<std::string> unpack(std::string_view packed) {
  if (packed.size() < kHead) return std::nullopt;
  const std::uint64_t size = get(packed.substr(1));
  const std::string_view body = packed.substr(kHead);
  if (packed[0] == kPlain) {
    if (size != body.size()) return std::nullopt;
    return std::string(body);
  }
  if (packed[0] != kZstd || size > kMostUnpacked || ZSTD_getFrameContentSize(body.data(), body.size()) != size) return std::nullopt;
  std::string out;
  out.resize(static_cast<std::size_t>(size));
  if (ZSTD_decompressDCtx(unpacker(), out.data(), out.size(), body.data(), body.size()) != size) return std::nullopt;
  return out;
}

std::optional<std::uint64_t> packed_size(std::string_view packed) {
  if (packed.size() < kHead) return std::nullopt;
  return get(packed.substr(1));
}

std::string serialise(const CompiledCode& code) {
  std::string out;
  out.reserve(code.code.size() + 256);
  FieldWriter write(out);
  each_field(code, write);
  return out;
}

std::optional<CompiledCode> read_compiled_code(std::string_view bytes) {
  CompiledCode code;
  FieldReader read(bytes);
  each_field(code, read);
  if (!read.whole()) return std::nullopt;
  return code;
}

std::string checksum(std::string_view hash, std::string_view kernel, std::string_view arch, std::string_view key, std::string_view code) {
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  for (const std::string_view part : {hash, kernel, arch, key, code}) {
    std::string size;
    put(size, part.size());
    XXH3_128bits_update(state.get(), size.data(), size.size());
    XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  return std::string(view(bytes_of(XXH3_128bits_digest(state.get()))));
}

Entry make_entry(std::string_view key, std::string kernel, std::string arch, const CompiledCode& code) {
  Entry entry;
  entry.hash = view(digest(key));
  entry.kernel = std::move(kernel);
  entry.arch = std::move(arch);
  entry.key = pack(key);
  entry.code = pack(serialise(code));
  entry.checksum = checksum(entry.hash, entry.kernel, entry.arch, entry.key, entry.code);
  return entry;
}

std::string wrong_in(const Entry& e) {
  if (e.checksum != checksum(e.hash, e.kernel, e.arch, e.key, e.code)) return "its checksum is not that of its bytes";
  const std::optional<std::string> key = unpack(e.key), code = unpack(e.code);
  if (!key || e.hash != view(digest(*key))) return "it does not stand where its key belongs";
  const std::optional<ProgramKey> fields = read_program_key(*key);
  if (!fields || fields->options.arch != e.arch) return "its key is of no form that this Kiln knows";
  if (!code || !read_compiled_code(*code)) return "its code is of no form that this Kiln knows";
  return {};
}

}  // namespace kiln::rt
