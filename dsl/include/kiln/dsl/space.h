// Configs and spaces of configs, as host data. A config is a plain struct of integers, floats and bools; a kernel with one is a family of
// variants, one per value. KILN_CONFIG(Cfg, tile, unroll) names its members, or a space does:
//
//   auto matmul_space() {
//     return space<MatmulCfg>()
//         .axis("tile", &MatmulCfg::tile, {8, 16, 32})
//         .require("threads fit", [](const MatmulCfg& c) { return c.tile * c.tile <= 1024; })
//         .launch([](const MatmulCfg& c, const Extents& e) { return cover({e[1], e[0]}, {c.tile, c.tile}); });
//   }
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/dsl/registry.h"
#include "kiln/dsl/types.h"
#include "kiln/runtime/launch_config.h"

namespace kiln {

using Extents = std::vector<std::uint64_t>;  // of a problem, as a launch of a space takes them

namespace dsl {

inline constexpr std::size_t kMaxMembers = 16;
using ConfigBits = std::array<std::uint64_t, kMaxMembers>;  // the members of a config as bit patterns, in order; the rest 0

// One member of a config struct: how to read, write, print and parse it.
struct Member {
  enum class Kind : std::uint8_t { Bool, Signed, Unsigned, Float };
  std::string name;
  Kind kind = Kind::Unsigned;
  unsigned bytes = 4;
  std::string enum_name, enum_base;  // as ConfigAxis has them, with the next two
  bool enum_scoped = false;
  std::size_t offset = 0;
  std::function<std::uint64_t(const void* config)> get;
  std::function<void(void* config, std::uint64_t bits)> set;
};
std::string format(const Member& member, std::uint64_t bits);
std::string type_text(const Member& member);                                        // "u32"; of an enum: of its values
std::optional<std::uint64_t> parse(const Member& member, const std::string& text);  // nothing: not a value of the member's type

std::string type_name(const char* pretty_function);  // "ns::T" out of __PRETTY_FUNCTION__ of a template with one type parameter
template <class T>
std::string name_of() {
  return type_name(__PRETTY_FUNCTION__);
}
template <class T>
concept ScopedEnum = std::is_enum_v<T> && !std::is_convertible_v<T, std::underlying_type_t<T>>;
// Whether `enum E : T;` may stand in another header: the type of its values is written down, and it lies in a namespace that has a name.
template <class T>
std::string declarable_enum() {
  if constexpr (requires { T{0}; }) {
    const std::string name = name_of<T>();
    return name.find_first_of("({<") == std::string::npos ? name : "";
  }
  return "";
}

template <class M>
std::uint64_t member_bits(M value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class C, class M>
Member member(std::string name, M C::* pointer) {
  static_assert((std::is_arithmetic_v<M> || std::is_enum_v<M>) && sizeof(M) <= 8,
                "kiln: the members of a config are integers, floats, bools and enums.");
  Member m;
  m.name = std::move(name);
  if constexpr (std::is_same_v<M, bool>) m.kind = Member::Kind::Bool;
  else if constexpr (std::is_floating_point_v<M>) m.kind = Member::Kind::Float;
  else if constexpr (std::is_enum_v<M>)
    m.kind = std::is_signed_v<std::underlying_type_t<M>> ? Member::Kind::Signed : Member::Kind::Unsigned;
  else m.kind = std::is_signed_v<M> ? Member::Kind::Signed : Member::Kind::Unsigned;
  m.bytes = sizeof(M);
  if constexpr (std::is_enum_v<M>) {
    m.enum_name = declarable_enum<M>();
    m.enum_base = name_of<std::underlying_type_t<M>>();
    m.enum_scoped = ScopedEnum<M>;
  }
  const C config{};
  m.offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&(config.*pointer)) - reinterpret_cast<const char*>(&config));
  m.get = [pointer](const void* c) { return member_bits(static_cast<const C*>(c)->*pointer); };
  m.set = [pointer](void* c, std::uint64_t bits) { std::memcpy(&(static_cast<C*>(c)->*pointer), &bits, sizeof(M)); };
  return m;
}

// What a kernel knows of its configs; Space<C> is its typed face.
struct ConfigSpace {
  struct Rule {
    std::string name;
    std::function<bool(const ConfigBits&)> holds;
  };
  std::string struct_name;
  std::vector<Member> members;
  std::vector<std::vector<std::uint64_t>> values;  // per member, the default first; empty: any value
  ConfigBits defaults{};
  std::vector<Rule> rules;
  std::string problem;  // what is wrong with the space itself; empty: nothing

  std::string text(const ConfigBits& config) const;                    // "tile=8,unroll=2"
  Result<ConfigBits> parse(const std::string& text) const;             // what is not named takes its default; checked by refusal()
  std::optional<std::string> refusal(const ConfigBits& config) const;  // why the space refuses it, with the name of the rule
  std::vector<ConfigAxis> axes() const;
  // Every combination of the listed values; members without a list take their default. In order, the last member fastest.
  void each(const std::function<void(const ConfigBits&)>& visit) const;
  // Makes the struct's own default the first of its axis, or the first of the axis the default.
  void settle_defaults(const ConfigBits& of_struct);
};

// How many members an aggregate has.
struct AnyMember {
  template <class T>
  operator T() const;
};
template <class C, class... A>
constexpr std::size_t member_count() {
  if constexpr (sizeof...(A) <= kMaxMembers && requires { C{A{}..., AnyMember{}}; }) return member_count<C, A..., AnyMember>();
  else return sizeof...(A);
}

template <class C>
concept NamedConfig = requires(const C* c) { kiln_config_members(c); };

template <class C>
ConfigBits config_bits(const ConfigSpace& space, const C& config) {
  ConfigBits bits{};
  for (std::size_t i = 0; i < space.members.size(); ++i) bits[i] = space.members[i].get(&config);
  return bits;
}
template <class C>
C config_of(const ConfigSpace& space, const ConfigBits& bits) {
  C config{};
  for (std::size_t i = 0; i < space.members.size(); ++i) space.members[i].set(&config, bits[i]);
  return config;
}

}  // namespace dsl

// A space of configs C. Building one never throws: what is wrong with it is reported by the kernel that uses it.
template <class C>
class Space {
  static_assert(std::is_aggregate_v<C>, "kiln: a config is a plain struct: no constructors, no private members.");
  static_assert(dsl::member_count<C>() <= dsl::kMaxMembers, "kiln: a config has at most 16 members.");

 public:
  struct Refusal {
    C config;
    std::string text, reason;  // "tile=64", "the rule 'threads fit' refuses tile=64"
  };

  Space() : space_(std::make_shared<dsl::ConfigSpace>()) {
    space_->struct_name = dsl::name_of<C>();
    if constexpr (dsl::NamedConfig<C>) space_->members = kiln_config_members(static_cast<const C*>(nullptr));
    settle();
  }

  // The values of a member. The first is the default, unless the struct's own default is among them.
  template <class M>
  Space& axis(std::string name, M C::* pointer, std::vector<std::type_identity_t<M>> values) {
    dsl::Member member = dsl::member(name, pointer);
    std::size_t i = 0;
    while (i < space_->members.size() && space_->members[i].name != name) ++i;
    if (i == space_->members.size()) {
      if (i == dsl::kMaxMembers || dsl::NamedConfig<C>) {
        space_->problem = "the axis '" + name + "' is no member of " + space_->struct_name + " that KILN_CONFIG names";
        return *this;
      }
      space_->members.push_back(std::move(member));
    }
    space_->values.resize(space_->members.size());
    if (values.empty()) space_->problem = "the axis '" + name + "' of " + space_->struct_name + " has no values";
    for (const M& value : values) space_->values[i].push_back(dsl::member_bits(value));
    settle();
    return *this;
  }
  template <class M>
  Space& axis(std::string name, M C::* pointer, std::initializer_list<std::type_identity_t<M>> values) {
    return axis(std::move(name), pointer, std::vector<std::type_identity_t<M>>(values));
  }

  // A rule that a config must satisfy; the name is what a refusal says.
  Space& require(std::string name, std::function<bool(const C&)> holds) {
    space_->rules.push_back({std::move(name), [space = std::weak_ptr(space_), holds = std::move(holds)](const dsl::ConfigBits& bits) {
                               return holds(dsl::config_of<C>(*space.lock(), bits));
                             }});
    return *this;
  }

  // How a config is launched on a problem of the given extents.
  Space& launch(std::function<LaunchConfig(const C&, const Extents&)> f) {
    launch_ = std::move(f);
    return *this;
  }
  bool has_launch() const { return static_cast<bool>(launch_); }
  // Precondition: has_launch().
  LaunchConfig launch_for(const C& config, const Extents& extents) const { return launch_(config, extents); }

  // Every accepted config, and every refused combination with the reason. O(product of the axes).
  std::vector<C> configs() const {
    std::vector<C> accepted;
    space_->each([&](const dsl::ConfigBits& bits) {
      if (!space_->refusal(bits)) accepted.push_back(dsl::config_of<C>(*space_, bits));
    });
    return accepted;
  }
  std::vector<Refusal> refused() const {
    std::vector<Refusal> list;
    space_->each([&](const dsl::ConfigBits& bits) {
      if (auto why = space_->refusal(bits)) list.push_back({dsl::config_of<C>(*space_, bits), space_->text(bits), *why});
    });
    return list;
  }
  std::string text(const C& config) const { return space_->text(dsl::config_bits(*space_, config)); }
  C defaults() const { return dsl::config_of<C>(*space_, space_->defaults); }

  const std::shared_ptr<dsl::ConfigSpace>& erased() const { return space_; }

 private:
  void settle() {
    space_->values.resize(space_->members.size());
    space_->settle_defaults(dsl::config_bits(*space_, C{}));
  }
  std::shared_ptr<dsl::ConfigSpace> space_;
  std::function<LaunchConfig(const C&, const Extents&)> launch_;
};

template <class C>
Space<C> space() {
  return Space<C>();
}

}  // namespace kiln

// Names the members of a config struct, in the namespace of the struct: KILN_CONFIG(MatmulCfg, tile, unroll).
#define KILN_CONFIG(C, ...)                                                                  \
  [[maybe_unused]] inline ::std::vector<::kiln::dsl::Member> kiln_config_members(const C*) { \
    using kiln_config_t = C;                                                                 \
    return {KILN_FOR_EACH(KILN_CONFIG_MEMBER, __VA_ARGS__)};                                 \
  }
#define KILN_CONFIG_MEMBER(m) ::kiln::dsl::member(#m, &kiln_config_t::m),
#define KILN_FOR_EACH(f, ...) __VA_OPT__(KILN_EXPAND(KILN_FOR_EACH_(f, __VA_ARGS__)))
#define KILN_FOR_EACH_(f, a, ...) f(a) __VA_OPT__(KILN_FOR_EACH_AGAIN KILN_PARENS(f, __VA_ARGS__))
#define KILN_FOR_EACH_AGAIN() KILN_FOR_EACH_
#define KILN_PARENS ()
#define KILN_EXPAND(...) KILN_EXPAND3(KILN_EXPAND3(KILN_EXPAND3(__VA_ARGS__)))
#define KILN_EXPAND3(...) KILN_EXPAND2(KILN_EXPAND2(KILN_EXPAND2(__VA_ARGS__)))
#define KILN_EXPAND2(...) __VA_ARGS__
