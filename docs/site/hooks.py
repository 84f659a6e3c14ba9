"""What the site does beyond MkDocs: ./dev docs --site.

- A page may link to a file of the repository outside of docs/: the site has that file as text, below repository/.
- Headings have the anchors that browsers of repositories give them; tests/house holds the pages' links to the same ones.
- A page that is not in the navigation is an error.
- At the end every link of every page is followed, its anchor too, and nothing may come from the net. What is wrong is an
  error.
"""
import os
import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LINK = re.compile(r"(\]\()([^)#: ]+)((?:#[^) ]+)?\))")
CODE = re.compile(r"(``.+?``|`[^`]*`)")


def github_anchor(text, separator):
    """As tests/house/documents_test.cpp has it."""
    return "".join("-" if c == " " else c.lower() for c in text if c in " -_" or (c.isascii() and c.isalnum()))


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = github_anchor
    return config


def prose(markdown, change):
    """The page with change(line) in the place of each line that is no code."""
    block = False
    lines = []
    for line in markdown.split("\n"):
        fence = line.startswith("```")
        block ^= fence
        lines.append(line if block or fence or line.startswith("    ") else change(line))
    return "\n".join(lines)


def outside(page_uri, link):
    """The file of the repository that a page's link leads to, relative to its root; None where it leads to a page."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page_uri), link))
    if path.startswith("docs/"):
        return None
    if os.path.isdir(os.path.join(ROOT, path)):
        path += "/README.md"
    if path.startswith("../") or not os.path.isfile(os.path.join(ROOT, path)):
        raise PluginError(f"docs/{page_uri} links to {link}, which is not there")
    return path


def place(path):
    return "repository/" + path + ".txt"


def on_files(files, config):
    for file in [f for f in files if f.src_uri.startswith("site/") and f.src_uri != "site/site.css"]:
        files.remove(file)
    wanted = set()

    def collect(line, page):
        for match in LINK.finditer(line):
            path = outside(page, match[2])
            if path:
                wanted.add(path)
        return line

    for page in files.documentation_pages():
        with open(page.abs_src_path, encoding="utf-8") as text:
            prose(text.read(), lambda line: collect(line, page.src_uri))
    for path in sorted(wanted):
        file = File(place(path), ROOT, config["site_dir"], config["use_directory_urls"])
        file.abs_src_path = os.path.join(ROOT, path)
        files.append(file)
    return files


def on_nav(nav, config, files):
    there = {page.file.src_uri for page in nav.pages}
    missing = [page.src_uri for page in files.documentation_pages() if page.src_uri not in there]
    if missing:
        raise PluginError(f"not in the navigation of docs/site/mkdocs.yml: {', '.join(missing)}")
    return nav


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri

    def shown(match):
        path = outside(uri, match[2])
        if not path:
            return match[0]
        return match[1] + posixpath.relpath(place(path), posixpath.dirname(uri) or ".") + ")"

    def change(line):
        line = LINK.sub(shown, line)
        # In a cell a bar is written \| . Inside of code MkDocs would show the backslash, and takes a bare bar for what it is.
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line

    return prose(markdown, change)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("id", "name"):
            if values.get(name):
                self.anchors.add(values[name])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif values.get("src") or (tag == "link" and values.get("href")):
            self.loaded.append(values.get("src") or values["href"])


def on_post_build(config):
    site = config["site_dir"]
    pages = {}
    for folder, _, names in os.walk(site):
        for name in names:
            # 404.html is shown in the place of any page, so its links begin at the root of a server.
            if name.endswith(".html") and name != "404.html":
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    pages[path] = Page(file.read())
    wrong = []
    for path, page in sorted(pages.items()):
        name = os.path.relpath(path, site)
        wrong += [f"{name} loads {link} from the net" for link in page.loaded if urlsplit(link).netloc]
        for link in page.links + page.loaded:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(url.path))) if url.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            if not os.path.isfile(target):
                wrong.append(f"{name} links to {link}, which is not there")
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].anchors:
                wrong.append(f"{name} links to {link}, and there is no such anchor")
    if wrong:
        raise PluginError("\n".join(wrong))
