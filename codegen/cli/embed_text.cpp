#include "embed_text.h"

#include <algorithm>
#include <map>
#include <set>

#include "command.h"

namespace kiln::cli {
namespace {

bool is_identifier(const std::string& name) {
  const auto word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && (name[0] < '0' || name[0] > '9') && std::all_of(name.begin(), name.end(), word);
}

// "a::b::c" -> a, b, c.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t at = name.find("::"); at != std::string::npos; start = at + 2, at = name.find("::", start))
    parts.push_back(name.substr(start, at - start));
  parts.push_back(name.substr(start));
  return parts;
}

struct Qualified {
  std::string space, last;  // "a::b", "c"
};
Qualified split(const std::string& name) {
  const std::size_t at = name.rfind("::");
  return at == std::string::npos ? Qualified{"", name} : Qualified{name.substr(0, at), name.substr(at + 2)};
}

bool is_qualified_name(const std::string& name) {
  const std::vector<std::string> parts = parts_of(name);
  return std::all_of(parts.begin(), parts.end(), is_identifier);
}

// Of a config struct: without unnamed namespaces.
std::string named_only(const std::string& name) {
  std::string kept;
  for (const std::string& part : parts_of(name))
    if (part != "{anonymous}" && part != "(anonymous namespace)" && part != "<unnamed>") kept += (kept.empty() ? "" : "::") + part;
  return kept;
}

// "In<f32, 2, Strided>" -> "::kiln::In<::kiln::f32, 2, ::kiln::Strided>".
std::string qualified_type(const std::string& type) {
  std::string text;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const bool starts =
        (i == 0 || type[i - 1] == '<' || type[i - 1] == ' ') && (type[i] < '0' || type[i] > '9') && type.compare(i, 4, "bool") != 0;
    text += starts && type[i] != ' ' ? std::string("::kiln::") + type[i] : std::string(1, type[i]);
  }
  return text;
}

std::string member_type(const ConfigAxis& axis) {
  if (!axis.enum_name.empty()) return "::" + axis.enum_name;
  return axis.type == "bool" ? axis.type : "::kiln::" + axis.type;
}

// The value as an initialiser of its type, with all its bits.
std::string literal(const ConfigAxis& axis) {
  std::string text = axis.default_value;
  if (axis.type == "f32" || axis.type == "f64") {
    const std::string suffix = axis.type == "f32" ? "f" : "";
    const std::string sign = text.starts_with("-") ? "-" : "";
    if (text.ends_with("inf")) return sign + "__builtin_inf" + suffix + "()";
    if (text.find("nan") != std::string::npos) return sign + "__builtin_nan" + suffix + "(\"\")";
    return text + (text.find_first_of(".e") == std::string::npos ? ".0" : "") + suffix;
  }
  if (axis.type.starts_with("u")) text += "u";
  if (text == "-9223372036854775808") text = "-9223372036854775807 - 1";
  return axis.enum_name.empty() ? text : "static_cast<" + member_type(axis) + ">(" + text + ")";
}

// The struct of a config again, its members in their order, and its axes named in theirs.
std::string config_struct(const std::string& name, const std::vector<ConfigAxis>& axes) {
  std::vector<const ConfigAxis*> members;
  for (const ConfigAxis& axis : axes) members.push_back(&axis);
  std::stable_sort(members.begin(), members.end(), [](const ConfigAxis* a, const ConfigAxis* b) { return a->offset < b->offset; });
  std::string text = "struct " + name + " {\n";
  for (const ConfigAxis* m : members) text += "  " + member_type(*m) + " " + m->name + " = " + literal(*m) + ";\n";
  text += "};\nKILN_CONFIG(" + name;
  for (const ConfigAxis& axis : axes) text += ", " + axis.name;
  return text + ")\n";
}

// Of each executable and library its own: g++ makes one of all inline variables of a name in a process, also of libraries that know nothing
// of each other, and keeps them loaded for it.
const std::string kHere = "[[gnu::visibility(\"hidden\")]] ";

class Header {
 public:
  explicit Header(const EmbedNames& names) : names_(names) {}

  void add(const SourceKernel& kernel) {
    if (!is_qualified_name(kernel.name))
      fail("kernel '" + kernel.name +
           "' has a name that C++ cannot declare, so a header for it cannot be made; rename it, or emit without --embed");
    const Qualified name = split(kernel.name);
    const std::string space = names_.space.empty() ? name.space : names_.space;
    const auto [other, is_new] = kernels_.try_emplace(space + "::" + name.last, kernel.name);
    if (!is_new)
      fail("kernels '" + other->second + "' and '" + kernel.name + "' would both be '" + space + "::" + name.last +
           "' in the header; give no --namespace, or make two of them");
    std::string types;
    for (const ParamInfo& p : kernel.params) types += ", " + qualified_type(p.type);
    std::string text = "// " + signature(kernel.name, kernel.params) + "\n";
    if (kernel.axes.empty()) {
      text += kHere + "inline const ::kiln::EmbeddedKernel<" + (types.empty() ? "" : types.substr(2)) + "> ";
    } else {
      text += kHere + "inline const ::kiln::EmbeddedFamily<" + config(kernel) + types + "> ";
    }
    put(space, text + name.last + "{\"" + kernel.name + "\", &" + symbol() + "};\n");
  }

  std::string text() const {
    std::string text =
        "// Made by `kiln emit --embed`: kernels to launch without recording or compiling them, as their own names would. Not to be "
        "edited.\n"
        "#pragma once\n#include <kiln/dsl/embedded.h>\n\nextern \"C\" const char " +
        symbol() + "[];\n";
    for (const std::string& declaration : enums_) text += "\n" + declaration;
    for (const Piece& piece : pieces_) {
      text += "\n";
      if (!piece.space.empty()) text += "namespace " + piece.space + " {\n";
      text += "inline namespace " + space_of_id() + " {\n\n" + piece.text + "\n}\n";
      if (!piece.space.empty()) text += "}\n";
    }
    return text;
  }

 private:
  struct Piece {
    std::string space, text;
  };
  std::string symbol() const { return "kiln_embedded_" + names_.id; }
  // The kernel itself may be in the same program and has the same name: another symbol, and a call that could mean both does not compile.
  std::string space_of_id() const { return "kiln_" + names_.id; }

  void put(const std::string& space, const std::string& text) {
    if (pieces_.empty() || pieces_.back().space != space) pieces_.push_back({space, ""});
    pieces_.back().text += text;
  }

  // The name of the kernel's config struct in the header, which declares it once.
  std::string config(const SourceKernel& kernel) {
    std::string full = named_only(kernel.config_type);
    if (!is_qualified_name(full)) full = kernel.name + "_config";  // of a template, or of a function
    Qualified name = split(full);
    if (!names_.space.empty()) name.space = names_.space;
    const std::string path = "::" + (name.space.empty() ? "" : name.space + "::") + space_of_id() + "::" + name.last;
    const std::string text = config_struct(name.last, kernel.axes);
    const auto [known, is_new] = configs_.try_emplace(path, text);
    if (known->second != text)
      fail("two configs would both be '" + path.substr(2) + "' in the header: of kernel '" + kernel.name + "' (" + kernel.config_type +
           ") and of one before it; rename one");
    if (!is_new) return path;
    for (const ConfigAxis& axis : kernel.axes) declare_enum(kernel, axis);
    put(name.space, text);
    return path;
  }

  void declare_enum(const SourceKernel& kernel, const ConfigAxis& axis) {
    if (axis.enum_name.empty()) return;
    if (axis.enum_name.starts_with(kernel.config_type + "::"))
      fail("kernel '" + kernel.name + "': the enum " + axis.enum_name +
           " is declared in its config, where a header cannot declare it again; " + "move it out of the struct");
    const Qualified name = split(axis.enum_name);
    const std::string declaration = std::string(axis.enum_scoped ? "enum class " : "enum ") + name.last + " : " + axis.enum_base + ";";
    enums_.insert(name.space.empty() ? declaration + "\n" : "namespace " + name.space + " { " + declaration + " }\n");
  }

  const EmbedNames& names_;
  std::vector<Piece> pieces_;
  std::map<std::string, std::string> kernels_, configs_;
  std::set<std::string> enums_;
};

// A path inside a string of assembly inside a string of C++.
std::string quoted_twice(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < ' ') fail("'" + path + "' cannot be embedded: its path has a control character");
    if (c == '"' || c == '\\') text += "\\\\\\";  // \" and \\ of the assembler, each character of which C++ wants escaped
    text += c;
  }
  return text;
}

}  // namespace

std::string embedding_source(const EmbedNames& names) {
  const std::string symbol = "kiln_embedded_" + names.id;
  std::string text =
      "// Made by `kiln emit --embed`: puts a file of bundles into the program that is linked with this. Not to be edited.\n";
  text += "#include <kiln/runtime/bundle.h>\n\n";
  // aR: strip and --gc-sections leave the section alone, though nothing but its start and stop is named.
  text += "asm(\".pushsection kiln_bundles,\\\"aR\\\",@progbits\\n\"\n    \".balign 16\\n\"\n    \".incbin \\\"" +
          quoted_twice(names.bundles) + "\\\"\\n\"\n    \".balign 16\\n\"\n    \".popsection\\n\");\n\n";
  text += "extern \"C\" {\n";
  text += "// The linker's, of all bundles of this executable or library.\n";
  text += "[[gnu::visibility(\"hidden\")]] extern const char __start_kiln_bundles[];\n";
  text += "[[gnu::visibility(\"hidden\")]] extern const char __stop_kiln_bundles[];\n";
  text += "// What the header names, so that a linker takes this file out of an archive.\n";
  text += "[[gnu::visibility(\"default\")]] extern const char " + symbol + "[];\n";
  text += "[[gnu::used]] const char " + symbol + "[] = \"" + names.signature + "\";\n}\n\n";
  text += "namespace kiln::embedding {\n// One, however many files embed bundles.\n";
  text += "[[gnu::visibility(\"hidden\")]] inline const BundleModule module_of_bundles{__start_kiln_bundles, __stop_kiln_bundles};\n";
  text += "}\n";
  return text;
}

std::string embedding_header(const EmbedNames& names, const std::vector<SourceKernel>& kernels) {
  Header header(names);
  for (const SourceKernel& kernel : kernels) header.add(kernel);
  return header.text();
}

}  // namespace kiln::cli
