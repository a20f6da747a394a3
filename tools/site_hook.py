"""Extensions of MkDocs for this site; mkdocs.yml names this file under `hooks`.

- Pages outside docs/ are added to the site, and links in both directions are rewritten. Of a link to a source file
  only the text remains.
- Patterns in the nav become pages.
- `<!-- list: FOLDER -->` becomes a list of the files in that folder.
- Instructions for the tests in a fence (`console no-run: needs Slurm`) are removed.
- Formulas become MathML, so that they need no script.
"""

from __future__ import annotations

import fnmatch
import html
import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# The places in the site of files of the repository; files in docs/ keep their paths.
BROUGHT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
BROUGHT_FOLDERS = {"repro": ("*.md", "*.svg")}
# The site's own first page replaces the repository's.
STANDS_FOR = {"README.md": "docs/index.md"}
# Listed last in search results: the project's own pages.
LAST_IN_SEARCH = ("project/", "decisions/", "benchmarks/", "repro/")

FENCE = re.compile(r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^)\s]+)\)")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|#|//)", re.IGNORECASE)
# These words after the language are for tools/test_docs.py; `title="..."` is for the site.
FOR_TESTS = re.compile(r"^(?P<fence>[ \t]*(?:```+|~~~+)\w+)[ \t]+(?:no-run|needs|exact|exit)\b.*$", re.MULTILINE)
LIST = re.compile(r"^<!-- list: (?P<folder>\S+) -->$", re.MULTILINE)
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\s*\\[(\[](?P<tex>.*?)\\[)\]]\s*</(?P=tag)>',
    re.DOTALL,
)

# The place in the site of each page of the repository: filled by on_files, which runs first.
places: dict[str, str] = {}


def brought() -> Iterator[tuple[str, str]]:
    """The files from outside docs/: path in the repository, place in the site."""
    yield from BROUGHT.items()
    for folder, patterns in BROUGHT_FOLDERS.items():
        for pattern in patterns:
            for path in sorted((ROOT / folder).glob(pattern)):
                yield f"{folder}/{path.name}", f"{folder}/{path.name}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and expands the nav."""
    places.clear()
    places.update({f"docs/{file.src_uri}": file.src_uri for file in files if not file.generated_by})
    for path, place in brought():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
        places[path] = place
    pages = sorted(file.src_uri for file in files.documentation_pages())
    named = set(strings(config.nav))
    config.nav = spelled_out(config.nav, [page for page in pages if page not in named])
    return files


def strings(nav: Any) -> Iterator[str]:  # noqa: ANN401  # what YAML holds
    """All pages and patterns of a nav."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from strings(value)
    elif nav:
        for item in nav:
            yield from strings(item)


def spelled_out(nav: list[Any], pages: list[str]) -> list[Any]:
    """The nav with each pattern replaced by the pages that match it and are not used yet; without empty sections."""
    result: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            # The star matches within one folder; fnmatch's also matches slashes.
            matching = [page for page in pages if fnmatch.fnmatch(page, item) and page.count("/") == item.count("/")]
            result += matching
            pages[:] = [page for page in pages if page not in matching]
        elif isinstance(item, dict):
            section = {
                title: spelled_out(value, pages) if isinstance(value, list) else value for title, value in item.items()
            }
            result += [section] if all(section.values()) else []
        else:
            result.append(item)
    return result


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrites links, lists folders, removes instructions for the tests, and lowers pages in search results."""
    if page.file.src_uri.startswith(LAST_IN_SEARCH):
        page.meta["search"] = {"boost": 0.2}
    here = next(path for path, place in places.items() if place == page.file.src_uri)
    markdown = outside_code(markdown, lambda prose: LINK.sub(lambda link: rewritten(link, here), prose))
    markdown = LIST.sub(lambda found: listing(found["folder"], here), markdown)
    return FOR_TESTS.sub(r"\g<fence>", markdown)


def outside_code(markdown: str, change: Any) -> str:  # noqa: ANN401  # a function from text to text
    """Markdown with its prose changed, and its code unchanged."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found.group())
        return f"\x02{len(kept) - 1}\x03"

    prose = INLINE_CODE.sub(keep, FENCE.sub(keep, markdown))
    prose = change(prose)
    while "\x02" in prose:
        prose = re.sub("\x02(\\d+)\x03", lambda found: kept[int(found[1])], prose)
    return prose


def rewritten(link: re.Match[str], here: str) -> str:
    """A link as the site needs it, or only its text if the site does not have the target."""
    target = link["target"]
    if ELSEWHERE.match(target):
        return link.group()
    path, mark, anchor = target.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(here), unquote(path)))
    wanted = STANDS_FOR.get(wanted, wanted)
    place = next((places[one] for one in (wanted, f"{wanted}/README.md", f"{wanted}/index.md") if one in places), None)
    if place is None:
        # In docs/ a broken link is an error, which MkDocs reports.
        return link["text"][1:-1] if (ROOT / wanted).exists() else link.group()
    return f"{link['text']}({os.path.relpath(place, posixpath.dirname(places[here]) or '.')}{mark}{anchor})"


def listing(folder: str, here: str) -> str:
    """A list of the files in a folder of the repository: pages by title, other files by name."""
    lines = []
    for path in sorted((ROOT / folder).iterdir()):
        place = places.get(f"{folder}/{path.name}")
        if place is None or path.name in {"README.md", "index.md"}:
            continue
        title = path.stem
        if path.suffix == ".md":
            title = next(line[2:] for line in path.read_text("utf-8").splitlines() if line.startswith("# "))
        link = os.path.relpath(place, posixpath.dirname(places[here]) or ".")
        lines.append(f"- [{title}]({link})")
    return "\n".join(lines)


def on_page_content(html_text: str, **_: object) -> str:
    """Converts formulas to MathML."""

    def mathml(found: re.Match[str]) -> str:
        display = "block" if found["tag"] == "div" else "inline"
        formula = convert(html.unescape(found["tex"]).strip(), display=display)
        return f'<div class="formula">{formula}</div>' if display == "block" else formula

    return FORMULA.sub(mathml, html_text)
