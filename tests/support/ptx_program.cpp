#include "support/ptx_program.h"

#include <algorithm>
#include <sstream>

namespace kiln::test::ptx {
namespace {

std::string trimmed(const std::string& s) {
  const std::size_t first = s.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? std::string() : s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '(' || c == '[') ++depth;
    if (c == '}' || c == ')' || c == ']') --depth;
    if (c == by && depth == 0) {
      parts.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

std::uint64_t rounded(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

class Parser {
 public:
  explicit Parser(const std::string& text) : in_(text) {}

  Module run() {
    std::string pending;  // a statement or signature over several lines
    for (std::string line; std::getline(in_, line);) {
      ++line_;
      if (const std::size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
      line = trimmed(line);
      if (line.empty() || line.rfind(".file", 0) == 0 || line.rfind(".loc\t", 0) == 0 || line.rfind(".loc ", 0) == 0) continue;
      if (function_ == nullptr) {
        outside(pending, line);
      } else {
        inside(line);
      }
    }
    if (function_ != nullptr) fail("a function without an end");
    return std::move(module_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error("PTX line " + std::to_string(line_) + ": " + what); }

  void outside(std::string& pending, const std::string& line) {
    if (line == "{") {
      begin_function(pending);
      pending.clear();
      return;
    }
    pending += " " + line;
    const std::string whole = trimmed(pending);
    if (whole.back() == ';') {  // a declaration
      if (whole.find(".func") == std::string::npos) memory(whole.substr(0, whole.size() - 1), nullptr);
      pending.clear();
    } else if (whole.rfind(".version", 0) == 0 || whole.rfind(".target", 0) == 0 || whole.rfind(".address_size", 0) == 0) {
      pending.clear();
    }
  }

  void begin_function(const std::string& signature) {
    const bool entry = signature.find(".entry") != std::string::npos;
    const std::size_t open = signature.find('('), close = signature.rfind(')');
    std::string head = signature.substr(0, open);
    head = trimmed(head.substr(head.find(entry ? ".entry" : ".func") + (entry ? 6 : 5)));
    Function& f = module_.functions[head];
    f.name = head;
    f.entry = entry;
    if (open != std::string::npos) {
      for (const std::string& param : split(signature.substr(open + 1, close - open - 1), ',')) {
        const std::vector<std::string> parts = words(param);
        const std::uint32_t size = type_size(parts.at(1));
        f.params[parts.back()] = f.param_offset.size();
        f.param_offset.push_back(static_cast<std::uint32_t>(rounded(f.param_bytes, size)));
        f.param_size.push_back(size);
        f.param_bytes = f.param_offset.back() + size;
      }
    }
    function_ = &f;
    depth_ = 1;
  }

  std::uint32_t type_size(const std::string& type) const {
    const std::string digits = type.substr(type.find_first_of("0123456789"));
    return static_cast<std::uint32_t>(std::stoul(digits)) / 8;
  }

  // ".extern .shared .align 16 .b8 name[12]"
  void memory(const std::string& text, Function* function) {
    const std::vector<std::string> parts = words(text);
    const auto is = [&](const char* word) { return std::find(parts.begin(), parts.end(), word) != parts.end(); };
    if (!is(".shared") && !is(".local")) fail("unknown declaration: " + text);
    const std::string& declared = parts.back();
    const std::size_t bracket = declared.find('[');
    const std::string name = declared.substr(0, bracket);
    std::uint64_t align = 1, bytes = type_size(parts.at(parts.size() - 2));
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (parts[i] == ".align") align = std::stoull(parts[i + 1]);
    }
    if (bracket != std::string::npos) {
      const std::string count = declared.substr(bracket + 1, declared.size() - bracket - 2);
      if (count.empty()) {
        module_.dynamic_shared = name;
        return;
      }
      bytes *= std::stoull(count);
    }
    std::uint64_t& end = is(".local") ? function->local_bytes : module_.static_shared;
    end = rounded(end, align);
    (is(".local") ? function->locals : module_.shared)[name] = end;
    end += bytes;
  }

  void inside(std::string line) {
    if (line.size() > 2 && line.front() == '{' && line.back() == '}') {  // "{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }"
      for (std::string part : split(line.substr(1, line.size() - 2), ';')) {
        for (std::size_t at = 0; (at = part.find("{tmp", at)) != std::string::npos; at += 2) part.insert(at + 1, "%");
        for (std::size_t at = 0; (at = part.find(" tmp", at)) != std::string::npos; at += 2) part.insert(at + 1, "%");
        inside(part + ";");
      }
      return;
    }
    if (line == "{" || line == "}" || line == "{;" || line == "};") {
      depth_ += line[0] == '{' ? 1 : -1;
      if (depth_ == 0) function_ = nullptr;
      return;
    }
    if (const std::size_t colon = line.find(':');
        colon != std::string::npos && line.find(' ') == std::string::npos && line.find('\t') == std::string::npos) {
      function_->labels[line.substr(0, colon)] = function_->code.size();
      return;
    }
    if (line.back() != ';') {
      if (line.back() == ':') {
        table_ = line.substr(0, line.size() - 1);
        return;
      }
      carried_ += line + " ";
      return;
    }
    line = carried_ + line;
    carried_.clear();
    line.pop_back();
    line = trimmed(line);
    if (const std::size_t at = line.find(".branchtargets"); at != std::string::npos) {
      std::string name = trimmed(line.substr(0, at));
      if (!name.empty() && name.back() == ':') name.pop_back();
      if (name.empty() && !function_->labels.empty()) {  // the label stood on the line before
        for (const auto& [label, index] : function_->labels) {
          if (index == function_->code.size()) name = label.find("brx") != std::string::npos ? label : name;
        }
      }
      function_->tables[trimmed(name)] = split(line.substr(at + 14), ',');
      return;
    }
    if (line.rfind(".reg", 0) == 0 || line.rfind(".param", 0) == 0 || line.rfind(".pragma", 0) == 0) return;
    if (line.rfind(".shared", 0) == 0 || line.rfind(".local", 0) == 0) return memory(line, function_);
    if (line[0] == '.') fail("unknown directive: " + line);
    statement(line);
  }

  void statement(std::string line) {
    Statement s;
    s.line = line_;
    if (line[0] == '@') {
      const std::size_t end = line.find_first_of(" \t");
      s.guard_negated = line[1] == '!';
      s.guard = line.substr(s.guard_negated ? 2 : 1, end - (s.guard_negated ? 2 : 1));
      line = trimmed(line.substr(end));
    }
    const std::size_t end = line.find_first_of(" \t");
    std::string op = line.substr(0, end);
    for (std::size_t at = 0; (at = op.find("::", at)) != std::string::npos;) op.replace(at, 2, "__");
    s.op = split(op, '.');
    if (end != std::string::npos) s.operands = split(line.substr(end), ',');
    function_->code.push_back(std::move(s));
  }

  std::istringstream in_;
  Module module_;
  Function* function_ = nullptr;
  int line_ = 0, depth_ = 0;
  std::string carried_, table_;
};

}  // namespace

bool Statement::has(const std::string& part) const { return std::find(op.begin(), op.end(), part) != op.end(); }

Module parse(const std::string& text) { return Parser(text).run(); }

}  // namespace kiln::test::ptx
