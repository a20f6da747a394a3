#!/usr/bin/env python3
"""Checks the built documentation: `check_site.py FOLDER`; 1 if something is wrong.

Every link, picture, script and anchor must lead to something in the folder, and nothing may be loaded from the network.
Needs only Python 3.9.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# What a page loads by itself, in contrast to links that its reader may follow.
LOADED = {
    ("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src"),
    ("object", "data"), ("embed", "src"), ("link", "href"), ("image", "href"), ("use", "href"),
}  # fmt: skip
# These relations of a `link` only name an address, and load nothing.
NAMES_ONLY = {"canonical", "next", "prev", "alternate", "license"}
IN_STYLES = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Link(NamedTuple):
    """A reference of a page."""

    target: str
    loaded: bool


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str) -> None:
        """Parses the page."""
        super().__init__()
        self.links: list[Link] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects references and anchors of a tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        names_only = tag == "link" and set(given.get("rel", "").split()) & NAMES_ONLY
        for name in ("href", "src", "data"):
            if name in given and (name != "data" or tag == "object"):
                self.links.append(Link(given[name], (tag, name) in LOADED and not names_only))


def wrong_with(site: Path) -> list[str]:
    """Every broken link, and everything that is loaded from the network, as `page: what`."""
    site = site.resolve()
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        if name.name == "404.html":  # its links are relative to the root of a server
            page.links = [link for link in page.links if not link.target.startswith("/")]
        for link in sorted(set(page.links)):
            reason = wrong_link(site, path, link, pages)
            if reason:
                found.append(f"{name}: {reason}")
    for path in sorted(site.rglob("*.css")):
        for match in IN_STYLES.finditer(path.read_text("utf-8")):
            target = match[1] or match[2]
            if urlsplit(target).scheme in {"http", "https"} or target.startswith("//"):
                found.append(f"{path.relative_to(site)}: loads {target} from the network")
    return found


def wrong_link(site: Path, path: Path, link: Link, pages: dict[Path, Page]) -> str | None:
    """Why a link is broken; None if it is not."""
    parts = urlsplit(link.target)
    if parts.scheme or parts.netloc:
        network = parts.scheme in {"http", "https"} or parts.netloc
        return f"loads {link.target} from the network" if link.loaded and network else None
    if parts.path.startswith("/"):
        return f"{link.target} begins at the root of a server"
    to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if to.is_dir():
        to /= "index.html"
    if site not in to.parents or not to.exists():
        return f"{link.target} leads nowhere"
    target = pages.get(to)
    if target and unquote(parts.fragment) not in target.anchors:
        return f"{link.target} has no such anchor"
    return None


def main() -> int:
    """Prints what is wrong."""
    site = Path(sys.argv[1]) if sys.argv[1:] else None
    if site is None or not (site / "index.html").exists():
        sys.exit("usage: check_site.py FOLDER, which holds a built site; `./x docs` builds it into target/site")
    found = wrong_with(site)
    for finding in found:
        print(finding, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
