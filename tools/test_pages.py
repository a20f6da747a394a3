#!/usr/bin/env python3
"""The pages that quell writes work in a browser: all is drawn, terms have links, and no reader meets a serious barrier.

Needs a build of quell ($QUELL or target/debug/quell), Chromium, and the packages of requirements-python.txt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import axe_core_python

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

AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
# Runs axe-core once the page is drawn, and adds what it found to the page.
LOOK = """
addEventListener("load", () => setTimeout(async () => {
    document.querySelectorAll("details").forEach((one) => (one.open = true));
    // axe-core cannot tell the contrast of text on shadows.
    document.querySelectorAll(".scroll").forEach((one) => (one.style.background = "none"));
    const found = await axe.run(document, { resultTypes: ["violations"] });
    const where = (node) => `${node.html.slice(0, 200)}: ${node.failureSummary}`;
    const facts = (one) => ({ id: one.id, impact: one.impact, where: one.nodes.map(where) });
    const result = document.createElement("pre");
    result.id = "found";
    const width = document.documentElement.scrollWidth - innerWidth;
    result.textContent = JSON.stringify({ violations: found.violations.map(facts), width });
    document.body.append(result);
}, 500));
"""
# Width and height of the window, and whether the reader prefers dark colours.
WINDOWS = (((1400, 1000), False), ((500, 900), True))


class Page(HTMLParser):
    """The ids of a page's elements, where its links lead, and what could not be drawn."""

    def __init__(self, text: str) -> None:
        """Reads the page, as it is after its scripts have run."""
        super().__init__()
        self.ids: set[str] = set()
        self.element = ""
        self.links: list[str] = []
        self.absent: list[str] = []
        self.within: list[str] = []
        self.found: dict[str, Any] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps ids and links."""
        given = dict(attrs)
        self.within = [tag, given.get("class") or ""]
        self.element = given.get("id") or ""
        self.ids.add(self.element)
        if "term" in self.within[1].split():
            self.links.append((given.get("href") or "").removeprefix("#"))

    def handle_data(self, data: str) -> None:
        """Keeps the paragraphs of parts that failed, and what axe-core found."""
        if self.element == "found" and not self.found:
            self.found = json.loads(data)
        if self.within[:1] == ["p"] and "cannot be drawn" in data:
            self.absent.append(data)


def rendered(path: Path, window: tuple[int, int] = WINDOWS[0][0], *, dark: bool = False) -> tuple[Page, list[str]]:
    """The page after its scripts have run, and the errors of the scripts."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    options += [
        f"--window-size={window[0]},{window[1]}",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
    ]
    home = {**os.environ, "HOME": str(path.parent)}
    words = ("chromium", *options, "--virtual-time-budget=10000", "--dump-dom", path.as_uri())
    ran = subprocess.run(words, env=home, check=True, capture_output=True, text=True, timeout=HANGS_S)
    return Page(ran.stdout), FAILED.findall(ran.stderr)


def with_axe(path: Path) -> Path:
    """A copy of a page in which axe-core looks for barriers."""
    scripts = "".join(f"<script>{text}</script>" for text in (AXE.read_text(encoding="utf-8"), LOOK))
    copy = path.with_name("looked-at.html")
    page, end, rest = path.read_text(encoding="utf-8").rpartition("</body>")
    copy.write_text(page + scripts + end + rest, encoding="utf-8")
    return copy


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
                copy = with_axe(self.written(command))
                for window, dark in WINDOWS:
                    page, errors = rendered(copy, window, dark=dark)
                    self.assertEqual(errors, [], command)
                    serious = [one for one in page.found["violations"] if one["impact"] in {"serious", "critical"}]
                    self.assertEqual(serious, [], f"{command}, {window}, dark: {dark}")
                    self.assertLessEqual(page.found["width"], 0, f"{command}: wider than a window of {window}")
                (self.folder / "page.html").unlink()
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
