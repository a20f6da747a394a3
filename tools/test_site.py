"""The documentation builds without a warning, and every link in it leads somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_site

ROOT = Path(__file__).resolve().parent.parent
MKDOCS = ROOT / ".x/venv/bin/mkdocs"


def mkdocs_works() -> bool:
    """Whether `./x docs` has installed what builds the site."""
    needed = [MKDOCS.parent / "python", "-c", "import material, latex2mathml"]
    return MKDOCS.exists() and subprocess.run(needed, check=False).returncode == 0


class TheSite(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = Path(folder.name)

    def build(self) -> subprocess.CompletedProcess[str]:
        if not mkdocs_works():
            why = "mkdocs is not installed; `./x docs` installs it"
            print(f"test_site: skipped: {why}", file=sys.stderr)
            self.skipTest(why)
        command = [MKDOCS, "build", "--strict", "-f", ROOT / "mkdocs.yml", "--site-dir", self.site]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    def test_builds_and_has_no_broken_link(self) -> None:
        built = self.build()
        self.assertEqual(built.returncode, 0, built.stderr)
        self.assertEqual(check_site.wrong_with(self.site), [])
        for page in ("index.html", "project/architecture.html", "repro/table.html", "search/search_index.json"):
            self.assertTrue((self.site / page).exists(), page)

    def test_formulas_need_no_script(self) -> None:
        built = self.build()
        self.assertEqual(built.returncode, 0, built.stderr)
        page = (self.site / "concepts/progress-clock.html").read_text("utf-8")
        self.assertIn("<math", page)
        self.assertNotIn("arithmatex", page)
        self.assertNotIn("$$", page)


class TheCheck(unittest.TestCase):
    def wrong(self, **pages: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in pages.items():
                Path(folder, f"{name}.html").write_text(text, "utf-8")
            return check_site.wrong_with(Path(folder))

    def test_finds_links_and_anchors_that_lead_nowhere(self) -> None:
        found = self.wrong(a='<a href="b.html#x"></a><a href="c.html"></a><a href="b.html#y"></a>', b='<p id="x">')
        self.assertEqual(found, ["a.html: b.html#y has no such anchor", "a.html: c.html leads nowhere"])

    def test_finds_links_out_of_the_site(self) -> None:
        self.assertEqual(self.wrong(a='<a href="../x.md"></a>'), ["a.html: ../x.md leads nowhere"])

    def test_finds_what_comes_from_the_network(self) -> None:
        page = '<script src="https://example.org/a.js"></script><a href="https://example.org/">more</a>'
        self.assertEqual(self.wrong(a=page), ["a.html: loads https://example.org/a.js from the network"])


if __name__ == "__main__":
    unittest.main()
