#!/usr/bin/env python3
"""The pages that quell writes work in a browser: their scripts run, every section is drawn, and terms have links.

Needs a build of quell ($QUELL or target/debug/quell) and Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import documented

ROOT = Path(__file__).resolve().parent.parent
QUELL = Path(os.environ.get("QUELL", ROOT / "target/debug/quell"))
HANGS_S = 300
# What JavaScript reports that fails, in Chromium's log.
FAILED = re.compile(r":CONSOLE[:(].*\"((?:Uncaught|Error)[^\n]*)")

# Page, the command that writes it to page.html, and the ids of sections that it must have.
PAGES = (
    ("a recording", "report node.quell -o page.html --ranks 16..64", {"detours", "sources", "scale", "words"}),
    ("a study", "report study -o page.html --ranks 16..64", {"detours", "sources", "scale", "words"}),
    ("advice", "advise node.quell --ranks 64 --html page.html", {"advice", "words"}),
    ("several hosts", "report runs -o page.html", {"unlike", "fleet-cost", "hosts", "over-hosts", "words"}),
    ("a comparison", "compare before.quell after.quell --html page.html", {"changes", "both", "words"}),
    ("a traced run", "track run --html page.html", {"accumulated", "words"}),
    ("an audit", "tune audit --html page.html", {"words"}),
)


class Page(HTMLParser):
    """The ids of a page's elements, where its links lead, and what could not be drawn."""

    def __init__(self, text: str) -> None:
        """Reads the page, as it is after its scripts have run."""
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.absent: list[str] = []
        self.within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps ids and links."""
        given = dict(attrs)
        self.within = [tag, given.get("class") or ""]
        self.ids.add(given.get("id") or "")
        if "term" in self.within[1].split():
            self.links.append((given.get("href") or "").removeprefix("#"))

    def handle_data(self, data: str) -> None:
        """Keeps the paragraphs of parts that failed."""
        if self.within[:1] == ["p"] and "cannot be drawn" in data:
            self.absent.append(data)


def rendered(path: Path) -> tuple[Page, list[str]]:
    """The page after its scripts have run, and the errors of the scripts."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")
    home = {**os.environ, "HOME": str(path.parent)}
    words = ("chromium", *options, "--virtual-time-budget=10000", "--dump-dom", path.as_uri())
    ran = subprocess.run(words, env=home, check=True, capture_output=True, text=True, timeout=HANGS_S)
    return Page(ran.stdout), FAILED.findall(ran.stderr)


@unittest.skipUnless(QUELL.exists(), "no target/debug/quell: run cargo build first")
@unittest.skipUnless(shutil.which("chromium"), "no chromium here")
class Pages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def written(self, command: str) -> Path:
        """Makes what the command reads, runs it, and returns its page."""
        words = command.split()
        for name in documented.MAKERS.keys() & set(words):
            if not (self.folder / name).exists():
                documented.MAKERS[name](QUELL, self.folder / name)
        subprocess.run([QUELL, *words], cwd=self.folder, check=True, capture_output=True)
        return self.folder / "page.html"

    def test_every_page_is_drawn(self) -> None:
        for name, command, sections in PAGES:
            with self.subTest(name):
                page, errors = rendered(self.written(command))
                (self.folder / "page.html").unlink()
                self.assertEqual(errors, [], command)
                self.assertEqual(page.absent, [], command)
                self.assertLessEqual(sections, page.ids, command)
                self.assertTrue(page.links, f"{command}: no term has a link")
                self.assertEqual(len(page.links), len(set(page.links)), "a term has a link at its first use only")
                self.assertLessEqual(set(page.links), page.ids, f"{command}: a link leads nowhere")

    def test_a_script_that_fails_is_found(self) -> None:
        path = self.folder / "broken.html"
        for script in ("function a(b) { const b = 1; }", "missing();"):
            path.write_text(f"<p>x</p><script>{script}</script>", encoding="utf-8")
            page, errors = rendered(path)
            self.assertEqual(len(errors), 1, script)
            self.assertEqual(page.links, [])


if __name__ == "__main__":
    unittest.main()
