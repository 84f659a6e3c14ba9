// Bundles: one kernel variant in one mode, compiled for several targets, with all that is needed to launch it without recording. A build
// step writes them, embeds them into an executable or a shared library (section `kiln_bundles`), and the runtime takes its code from there.
// docs/bundles.md says what a user sees and what the bytes are.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/ir/analysis.h"
#include "kiln/ir/passes.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/error.h"
#include "kiln/runtime/variant.h"

namespace kiln {

// Code for one target.
struct BundleItem {
  enum class Kind : std::uint8_t { Ptx, Cubin, Object } kind = Kind::Object;
  CompileOptions options;  // what it was compiled with; a cubin: those of the PTX it was assembled from
  CompiledCode code;       // with the bytes
};
const char* name(BundleItem::Kind kind);  // "PTX", "cubin", "object"

// One parameter of the kernel, in signature order.
struct BundleParam {
  std::string name;
  bool is_buffer = false;
  ir::Type type = ir::Type::Void;  // of a buffer's elements, or the scalar
  std::uint8_t rank = 0;           // of a buffer
  ir::Access access = ir::Access::In;
  bool strided = false;
  ir::Visibility proven = ir::Visibility::ReadWrite;  // what the kernel does to a buffer
};
// "In<f32> x", as the author writes it.
std::string to_string(const BundleParam& param);

// All that a bundle says of itself but for texts and code.
struct BundleInfo {
  std::string kernel;  // the variant's name: "ns::matmul@tile=8"
  std::string place;   // "file.cpp:12"; may be empty
  bool checked = false;
  std::uint32_t interface_version = 0;  // of what made it, with the next three
  std::string build_id, llvm_version, kiln_version;
  std::vector<BundleParam> params;
  std::array<std::uint32_t, 3> block_size{0, 0, 0};  // declared; {0,0,0}: not
  std::uint32_t max_threads = 0;                     // declared; 0: not
  std::uint64_t static_shared_bytes = 0;
  std::uint32_t parameter_bytes = 0;
  std::vector<std::string> requirements;  // the texts of its require()s
  unsigned min_sm = 75;                   // what the kernel's operations need, and why; the reason may be empty
  std::string min_sm_reason;
  struct Item {
    BundleItem::Kind kind = BundleItem::Kind::Object;
    CompileOptions options;
    CompiledCode code;        // without the bytes
    std::uint64_t bytes = 0;  // of them
  };
  std::vector<Item> items;  // in canonical order

  bool of_this_kiln() const;         // made by this build: only such code is launched
  std::uint32_t lowest_ptx() const;  // the lowest PTX version among the items; 0: there is none
  std::string signature() const;     // "(In<f32> x, Out<f32> y)"
  std::string targets() const;       // "PTX sm_80, sm_90; object x86-64-v3, any block": for people
};

std::string to_string(const BundleInfo::Item& item);  // "object x86-64-v3 (any block)"

// The bytes of a bundle of `variant` in a mode: a multiple of 16 of them, the same on every run whatever the order of the items. Errors:
// the kernel cannot be prepared; there is no item, one without code or whose kind is not that of its options, or two for the same target.
Result<std::string> write_bundle(const Variant& variant, ir::PrepareOptions::Mode mode, std::vector<BundleItem> items);

// A bundle in somebody's bytes, which must outlive it. Its head and table are verified; its text and items are when they are taken. Errors
// of damage have the rule DamagedBundle.
class Bundle {
 public:
  const BundleInfo& info() const { return info_; }
  const std::array<char, 16>& recorded_digest() const { return recorded_digest_; }  // XXH3-128 of the text
  Result<std::string> recorded() const;                                             // the kernel as recorded, as canonical IR text. O(size)
  Result<BundleItem> item(std::size_t i) const;                                     // precondition: i < info().items.size(). O(size)
  std::uint64_t size() const { return bytes_.size(); }                              // not of one that is held()
  // The same with a copy of its text's bytes, and of one item's where that is named: that outlives the bytes. Nothing is verified yet.
  Bundle held(std::optional<std::size_t> item = std::nullopt) const;
  // Reads the bundle that `bytes` begin with; what follows is left alone.
  static Result<Bundle> read(std::string_view bytes);

 private:
  Bundle() = default;
  struct Piece {
    std::uint64_t offset = 0, size = 0, plain = 0;
    std::array<char, 16> digest{};
  };
  Result<std::string> take(const Piece& piece, const std::string& what) const;
  std::string_view bytes_;
  std::shared_ptr<const std::string> held_;  // of held(): what bytes_ are
  BundleInfo info_;
  std::array<char, 16> recorded_digest_{};
  Piece recorded_;
  std::vector<Piece> items_;
};

// The bundles of a file, or of a section: one after the other, each at a multiple of 16, zeros between them. Any bytes may be given.
Result<std::vector<Bundle>> read_bundles(std::string_view bytes);

// Registers the bundles between two addresses for its lifetime; what generated code has one of in each executable and library that embeds
// bundles. Nothing is read before a kernel is looked for. Thread-safe, also with launches: the destructor waits for who is reading;
// programs that were loaded stay usable.
class BundleModule {
 public:
  BundleModule(const void* begin, const void* end) noexcept;
  ~BundleModule();
  BundleModule(const BundleModule&) = delete;
  BundleModule& operator=(const BundleModule&) = delete;

  struct State;

 private:
  State* state_;  // null: there was no memory for it, and its bundles are not found
};

// What is registered in this process. O(bytes of the tables).
struct EmbeddedModule {
  std::string path;                   // of the executable or library
  std::vector<BundleInfo> bundles;    // in their order
  std::vector<std::string> problems;  // a sentence for each piece that cannot be read
};
std::vector<EmbeddedModule> embedded_modules();
// Goes up whenever a module comes or goes.
std::uint64_t embedded_generation();

// What a launch without a recording takes: kiln/dsl/embedded.h is its typed face.
struct EmbeddedVariant {
  std::shared_ptr<const Variant> variant;
  std::vector<BundleParam> params;
  bool checked = false, unchecked = false;  // the modes in which it is embedded
};
// The kernel of that name that this process embeds, "ns::matmul@tile=8". Errors: it is not embedded (rule NotEmbedded; what is embedded is
// listed), or by another build of Kiln only (ForeignBundle), or with several texts (EmbeddedClash), or its bytes are damaged.
// O(size of the text).
Result<EmbeddedVariant> embedded_variant(const std::string& kernel);

}  // namespace kiln
