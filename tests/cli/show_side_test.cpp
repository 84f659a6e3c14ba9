// kiln show --side and --html: the forms of a kernel by the lines of its source.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <regex>
#include <set>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

namespace {

const char* const kKernel = R"(kir 1
kernel "twice<&>\"'" {
  file "src/twice.cpp"
  buffer y : f32[*] inout @0:2
  body {
    %i = global_id.x : u32 @0:3
    %n = size y : u32 @0:4
    %c = lt %i, %n @0:4
    if %c @0:4 {
      %v = load y[%i] @0:5
      %w = add %v, %v : f32 @0:5
      store y[%i], %w @0:6
    }
  }
}
)";
const char* const kSource =
    "// twice\nkernel twice(y)\nauto i = global_id().x;\nIf (i < y.size()) {  // </code><script>alert(1)</script>\n  auto w = y[i] + "
    "y[i];\n  y[i] = w;\n}\n";
const std::string kName = "twice<&>\"'";

struct Files {
  TempFolder folder;
  std::string kernel = folder.write("twice.kir", kKernel);
  Files() {
    std::filesystem::create_directory(folder.file("src"));
    folder.write("src/twice.cpp", kSource);
  }
  // As `kiln show` with these words, in that folder.
  ProcessResult show(const std::vector<std::string>& more, const std::vector<std::string>& environment = {}) const {
    std::vector<std::string> argv{KILN_BINARY_DIR "/bin/kiln", "show", kernel, kName};
    argv.insert(argv.end(), more.begin(), more.end());
    std::vector<std::string> changes{"KILN_DEVICE=cpu", "KILN_ENV=off"};
    changes.insert(changes.end(), environment.begin(), environment.end());
    return run_process(argv, changes, 120, folder.path());
  }
  // Programs that say what ptxas and nvdisasm would.
  std::string tools() const {
    std::filesystem::create_directory(folder.file("tools"));
    const auto program = [&](const std::string& name, const std::string& text) {
      chmod(folder.write("tools/" + name, "#!/bin/sh\n" + text).c_str(), 0755);
    };
    program("ptxas", "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done; cp \"$1\" \"$out\"\n");
    program("nvdisasm",
            "cat <<'END'\n\t.section .text.twice\n\t//## File \"/somewhere/src/twice.cpp\", line 5\n        /*0010*/ FADD R1, R1, R1 "
            ";\n\t//## File "
            "\"/somewhere/src/twice.cpp\", line 6\n        /*0020*/ STG.E [R2], R1 ;\nEND\n");
    return folder.file("tools");
  }
};

// The lines from one that begins with `from` to the next line of the source.
std::string group(const std::string& text, const std::string& from) {
  const std::size_t at = text.find("\n" + from);
  if (at == std::string::npos) return "";
  std::size_t end = at + 1;
  do end = text.find('\n', end) + 1;
  while (end != 0 && end < text.size() && text[end] == ' ');
  return text.substr(at, end - at);
}

}  // namespace

TEST_CASE("side by side, what belongs to a line of the source stands below it: IR, PTX and machine code") {
  const Files files;
  const auto result = files.show({"--side", "--arch", "sm_80"}, {"PATH=" + files.tools() + ":/usr/bin:/bin"});
  CAPTURE(result.err);
  CAPTURE(result.out);
  CHECK(result.status == 0);
  CHECK(result.out.starts_with(kName + ", sm_80\n"));
  const std::string sum = group(result.out, "5       auto w = y[i] + y[i];");
  CHECK(sum.find("add %3, %3 : f32 @1:5") != std::string::npos);
  CHECK(sum.find("add.rn.f32") != std::string::npos);
  CHECK(sum.find("FADD R1, R1, R1") != std::string::npos);
  CHECK(sum.find("store y") == std::string::npos);
  const std::string store = group(result.out, "6       y[i] = w;");
  CHECK(store.find("store y[%0]") != std::string::npos);
  CHECK(store.find("st.global") != std::string::npos);
  CHECK(store.find("STG.E") != std::string::npos);
  CHECK(result.out.find("was not found") == std::string::npos);
}

TEST_CASE("a source that is not there, and tools that are not, are said") {
  const Files files;
  std::filesystem::rename(files.folder.file("src"), files.folder.file("moved"));
  const auto missing = files.show({"--side", "--arch", "sm_80"}, {"PATH=/nonexistent"});
  CHECK(missing.status == 0);
  CHECK(missing.out.find("src/twice.cpp: the source was not found; --source-root names a folder to look in") != std::string::npos);
  CHECK(missing.out.find("no machine code: it needs ptxas and nvdisasm of a CUDA toolkit, and neither is on PATH") != std::string::npos);
  const auto found = files.show({"--side", "--arch", "sm_80", "--source-root", files.folder.file("moved")}, {"PATH=/nonexistent"});
  CHECK(found.out.find("src/twice.cpp: " + files.folder.file("moved/twice.cpp")) != std::string::npos);
  CHECK(found.out.find("y[i] = w;") != std::string::npos);
  const auto host = files.show({"--side", "--arch", "x86-64-v3", "--block", "32"}, {"PATH=/nonexistent"});
  CHECK(host.out.find("no machine code: it needs llvm-objdump or objdump, and neither is on PATH") != std::string::npos);
  const auto page = files.show({"--html", "page.html", "--arch", "sm_80"}, {"PATH=/nonexistent"});
  CHECK(page.status == 0);
  const std::string html = read_file(files.folder.file("page.html"));
  CHECK(html.find("The source was not found") != std::string::npos);
  CHECK(html.find("no machine code") != std::string::npos);
}

TEST_CASE("a .kir file, which may be anybody's, does not choose what is shown of other folders") {
  const TempFolder secret;
  const std::string path = secret.write("secret.txt", "secret one\nsecret two\nsecret three\nsecret four\n");
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("kir"));
  const std::string beside = folder.write("beside.txt", "secret too\nsecret too\nsecret too\nsecret too\n");
  const std::string up = std::filesystem::relative(path, folder.file("kir")).string();
  for (const std::string& name : {path, up, std::string("../beside.txt"), "x/../../" + std::filesystem::path(beside).filename().string()}) {
    CAPTURE(name);
    std::string text = kKernel;
    text.replace(text.find("src/twice.cpp"), 13, name);
    const std::string kernel = folder.write("kir/twice.kir", text);
    const auto shown = run_process({KILN_BINARY_DIR "/bin/kiln", "show", kernel, kName, "--side", "--arch", "sm_80"},
                                   {"KILN_DEVICE=cpu", "KILN_ENV=off"}, 120, folder.file("kir"));
    CHECK(shown.status == 0);
    CHECK(shown.out.find("secret t") == std::string::npos);
    CHECK(shown.out.find("the source was not found") != std::string::npos);
  }
}

TEST_CASE("code for CPUs is disassembled where there is a disassembler") {
  if (run_process({"/bin/sh", "-c", "command -v objdump || command -v llvm-objdump"}).status != 0) return;
  const Files files;
  const auto result = files.show({"--side", "--arch", "x86-64-v3", "--block", "32"});
  CHECK(result.status == 0);
  CHECK(result.out.find("ret") != std::string::npos);
  CHECK(result.out.find("code for CPUs does not say which lines it is of") != std::string::npos);
}

TEST_CASE("the document has each line of each form with its file and line") {
  const Files files;
  const json said = json_of(files.show({"--side", "--arch", "sm_80", "--json"}, {"PATH=" + files.tools() + ":/usr/bin:/bin"}));
  CHECK(said["kernel"] == kName);
  // The .kir file is a source, too, of what says nothing of its place.
  REQUIRE(said["files"].size() == 2);
  CHECK(said["files"][1]["name"] == "src/twice.cpp");
  CHECK(said["files"][1]["path"] == files.folder.file("src/twice.cpp"));
  REQUIRE(said["forms"].size() == 3);
  for (const json& form : said["forms"]) {
    std::set<int> lines;
    for (const json& line : form["lines"])
      if (line["file"] == 1) lines.insert(line["line"].get<int>());
      else CHECK(line["line"].is_null() == line["file"].is_null());
    CAPTURE(form["name"].get<std::string>());
    CHECK(lines.contains(5));
    CHECK(lines.contains(6));
    CHECK(*lines.rbegin() <= 6);
  }
}

TEST_CASE("the page is whole in itself, and nothing of the kernel becomes markup") {
  const Files files;
  const auto result =
      files.show({"--html", files.folder.file("pages/page.html"), "--arch", "sm_80"}, {"PATH=" + files.tools() + ":/usr/bin:/bin"});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(result.out == files.folder.file("pages/page.html") + "\n");
  const std::string html = read_file(files.folder.file("pages/page.html"));
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(html.find("twice&lt;&amp;&gt;&quot;&#39;") != std::string::npos);
  CHECK(html.find("&lt;/code&gt;&lt;script&gt;alert(1)&lt;/script&gt;") != std::string::npos);
  CHECK(html.find("alert(1)</") == std::string::npos);
  for (const char* outside : {"http:", "https:", " src=", " href=", "url(", "@import", "<link", "<img"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  // Every tag is one of the page's own, and what is opened is closed.
  std::string body = html;
  for (const std::string name : {"style", "script"}) {
    const std::size_t from = body.find("<" + name + ">"), to = body.find("</" + name + ">");
    REQUIRE(to != std::string::npos);
    body.erase(from, to + name.size() + 3 - from);
    CHECK(body.find("<" + name) == std::string::npos);
  }
  const std::set<std::string> known{"html", "head", "meta",    "title", "body", "header", "h1",  "h2",
                                    "h3",   "main", "section", "p",     "div",  "code",   "span"};
  std::vector<std::string> open;
  const std::regex tag("<(/?)([A-Za-z0-9]+)[^>]*>");
  for (std::sregex_iterator it(body.begin(), body.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    CHECK(known.contains(name));
    if (name == "meta") continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
    } else {
      REQUIRE(!open.empty());
      CHECK(open.back() == name);
      open.pop_back();
    }
  }
  CHECK(open.empty());
  CHECK(std::count(body.begin(), body.end(), '<') ==
        std::distance(std::sregex_iterator(body.begin(), body.end(), tag), std::sregex_iterator()) + 1);  // the doctype
  // A line and all that belongs to it have one name, which a rule marks together.
  CHECK(html.find("body:has(.l1-5:hover) .l1-5") != std::string::npos);
  std::size_t marked = 0;
  for (std::size_t at = 0; (at = html.find("class=\"line of l1-5\"", at)) != std::string::npos; ++at) ++marked;
  CHECK(marked >= 4);  // C++, IR, PTX, machine code
}

TEST_CASE("a page that cannot be written is an error, and a form is asked for alone") {
  const Files files;
  check_refused(files.show({"--html", files.folder.file("src"), "--arch", "sm_80"}), 1, {"src"});
  check_refused(files.show({"--html", files.folder.file("src/"), "--arch", "sm_80"}), 2, {"--html", "names no file"});
  check_refused(files.show({"--side", "--ptx"}), 2, {"--side", "one of them"});
}
