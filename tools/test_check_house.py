#!/usr/bin/env python3
"""Each house rule can fail, and correct files pass."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import check_house as house


def package(name: str, *needs: str, kind: str | None = None) -> dict:
    """A crate as in the output of `cargo metadata`."""
    dependencies = [{"name": need, "kind": kind} for need in needs]
    return {"name": name, "manifest_path": f"crates/{name}/Cargo.toml", "dependencies": dependencies}


class Arrows(unittest.TestCase):
    def found(self, *packages: dict) -> list[house.Finding]:
        return list(house.arrows([package("quell-recording"), package("quell-node"), *packages]))

    def test_the_plan_passes(self) -> None:
        self.assertEqual(self.found(package("quell-sim", "quell-recording", "serde")), [])
        self.assertEqual(self.found(package("quell-cli", "quell-recording", "quell-node")), [])

    def test_what_helps_tests_is_for_tests_alone(self) -> None:
        self.assertEqual(self.found(package("quell-sim", "quell-testing", kind="dev"), package("quell-testing")), [])
        for kind in (None, "build"):
            found = self.found(package("quell-sim", "quell-testing", kind=kind), package("quell-testing"))
            self.assertIn("`quell-sim` depends on `quell-testing`", found[0].rule)

    def test_any_other_arrow_fails_of_whatever_kind(self) -> None:
        for kind in (None, "dev", "build"):
            (finding,) = self.found(package("quell-sim", "quell-node", kind=kind))
            self.assertIn("`quell-sim` depends on `quell-node`", finding.rule)
            self.assertIn("quell-recording", finding.advice)

    def test_a_crate_outside_the_plan_fails(self) -> None:
        (finding,) = self.found(package("quell-extra"))
        self.assertIn("not in the house plan", finding.rule)


class Circles(unittest.TestCase):
    def found(self, **files: str) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "crates/one/src"
            source.mkdir(parents=True)
            for file, text in files.items():
                path = source / f"{file.replace('__', '/')}.rs"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            return [finding.rule for finding in house.circles(Path(name))]

    def test_siblings_may_import_one_way(self) -> None:
        self.assertEqual(self.found(a="use crate::b::B;", b="use crate::c::{self, C};", c="struct C;"), [])
        self.assertEqual(
            self.found(a="mod inner;\nuse inner::I;", a__inner="use super::A;"), [], "a parent is no sibling"
        )

    def test_circles_are_named_by_their_imports(self) -> None:
        self.assertEqual(self.found(a="use crate::b::B;", b="use super::a::A;"), ["a imports b; b imports a"])
        files = {"a": "use crate::{c, b::{B, D}};", "b__inner": "use crate::c::C;", "c": "fn f() { crate::a::g() }"}
        self.assertEqual(self.found(**files), ["a imports c; c imports a"])

    def test_tests_may_do_as_they_like(self) -> None:
        tests = "#[cfg(test)]\nmod tests { use crate::a::A; }"
        self.assertEqual(self.found(a="use crate::b::B;", b=tests), [])


class Verbs(unittest.TestCase):
    def found(self, **files: str) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            for file, text in files.items():
                path = Path(name) / "crates/cli/src" / f"{file.replace('__', '/')}.rs"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [finding.rule for finding in house.verbs(Path(name))]

    def test_verbs_know_no_verb(self) -> None:
        fine = {
            "verbs": "pub mod a;\npub mod b;",
            "verbs__a": "use crate::steps::s;\nmod inner;",
            "steps__s": "fn f() {}",
        }
        self.assertEqual(self.found(**fine, verbs__a__inner="use crate::verbs::a::A;", verbs__b=""), [])
        self.assertEqual(self.found(**fine, verbs__b="use super::a;"), ["`verbs::b` imports the verb `a`"])
        self.assertEqual(self.found(**fine, render__t="use crate::verbs::a::A;"), ["`render::t` imports the verb `a`"])


class Maps(unittest.TestCase):
    def test_a_place_that_is_not_there_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "crates/sim/src/goal").mkdir(parents=True)
            (root / "crates/sim/src/goal/text.rs").write_text("")
            (root / "ARCHITECTURE.md").write_text("`sim/goal/text.rs`, `sim/VERB.rs`, `a/b.rs`, `sim/gone.rs`")
            self.assertEqual([finding.rule for finding in house.places(root)], ["there is no `sim/gone.rs`"])


class TypedWarnings(unittest.TestCase):
    def found(self, line: str, file: str = "crates/sim/src/a.rs") -> int:
        return len(list(house.typed_warnings(file, f"pub struct Document {{\n    {line}\n}}\n")))

    def test_a_field_of_sentences_fails(self) -> None:
        for kind in ("Vec<String>", "Option<String>", "Box<str>", "BTreeSet<String>", "Option<Vec<Box<str>>>"):
            for name in ("warnings", "pub warning", "pub(super) sources_warnings"):
                self.assertEqual(self.found(f"{name}: {kind},"), 1, f"{name}: {kind}")

    def test_typed_ones_pass_and_so_does_what_only_sounds_alike(self) -> None:
        for line in ("warnings: Vec<Warning>,", "pub warnings: u64,", "words: Vec<String>,", "warnings: Vec::new(),"):
            self.assertEqual(self.found(line), 0, line)
        self.assertEqual(self.found("#[cfg(test)]\n    warnings: Vec<String>,"), 0, "tests may")
        self.assertEqual(self.found("warnings: Vec<String>,", "crates/sim/tests/it/a.rs"), 0, "tests may")


class Purity(unittest.TestCase):
    def test_what_computes_depends_on_nothing_else(self) -> None:
        self.assertEqual(list(house.purity_of_crates([package("quell-analysis", "serde"), package("x", "clap")])), [])
        self.assertEqual(list(house.purity_of_crates([package("quell-analysis", "fs-err", kind="dev")])), [])
        (finding,) = house.purity_of_crates([package("quell-analysis", "clap")])
        self.assertIn("depends on `clap`", finding.rule)

    def test_what_computes_opens_no_file(self) -> None:
        wrong = "fn f() { std::fs::read(p); }"
        self.assertEqual(len(list(house.purity("crates/analysis/src/a.rs", wrong))), 1)
        for file, text in [
            ("crates/request/src/a.rs", wrong),
            ("crates/analysis/tests/it/a.rs", wrong),
            ("crates/analysis/src/a.rs", f"// {wrong}"),
            ("crates/analysis/src/a.rs", f"#[cfg(test)]\nmod tests {{ {wrong} }}"),
        ]:
            self.assertEqual(list(house.purity(file, text)), [], file)


class Files(unittest.TestCase):
    def test_a_crate_takes_the_lints(self) -> None:
        for right in (
            "[lints]\nworkspace = true\n",
            "lints.workspace = true\n",
            "[a]\n[lints]\n\nworkspace=true",
        ):
            self.assertEqual(list(house.lints_table("Cargo.toml", right)), [], right)
        for wrong in (
            "[package]\n",
            "[lints]\n[dependencies]\nworkspace = true\n",
            "[lints]\nworkspace = false\n",
        ):
            self.assertEqual(len(list(house.lints_table("Cargo.toml", wrong))), 1, wrong)

    def test_length(self) -> None:
        line = "let a = 1;\n"
        self.assertEqual(list(house.length("a.rs", line * 500)), [])
        self.assertEqual(list(house.length("a.txt", line * 501)), [])
        self.assertEqual(list(house.length("a.rs", "// long file: a table\n" + line * 501)), [])
        self.assertEqual(len(list(house.length("a.rs", line * 501))), 1)
        self.assertEqual(len(list(house.length("a.rs", "// long file:\n" + line * 501))), 1)
        self.assertEqual(len(list(house.length("x", "#!/bin/bash\n" * 501))), 1)

    def test_module_names(self) -> None:
        self.assertEqual(list(house.module_names("crates/sim/src/clock.rs", "mod utilisation;\n")), [])
        self.assertEqual(list(house.module_names("crates/sim/tests/common/mod.rs", "")), [])
        for file in ("crates/sim/src/utils.rs", "tools/helpers/a.py", "crates/sim/src/misc/mod.rs"):
            self.assertEqual(len(list(house.module_names(file, ""))), 1, file)
        for text in ("mod utils;", "pub(crate) mod util {", "    pub mod helpers;"):
            self.assertEqual(len(list(house.module_names("src/lib.rs", text))), 1, text)

    def test_refused_words(self) -> None:
        self.assertEqual(list(house.words("a.md", "What to do, and mktemp quell.XXXXXX; /home/ itself")), [])
        for text in ("// TO" + "DO: later", "<" * 7 + " HEAD", "see /home/" + "ada/notes"):
            self.assertEqual(len(list(house.words("a.rs", text))), 1, text)
        (finding,) = house.words("a.rs", "one\ntwo FIX" + "ME\n")
        self.assertEqual(finding.file, "a.rs:2")


class Links(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs").mkdir()
        (self.root / "docs" / "a b.md").touch()

    def found(self, text: str) -> int:
        return len(list(house.links(self.root, "docs/page.md", text)))

    def test_links_that_lead_somewhere(self) -> None:
        for text in (
            "[a](a%20b.md#part) [b](../docs/) [c](/docs) [d](#here) [e](https://example.org/x.md)",
            "`[a](none.md)` and\n```\n[a](none.md)\n```\n",
            "[a]: https://example.org\n[^1]: none.md",
        ):
            self.assertEqual(self.found(text), 0, text)

    def test_links_that_lead_nowhere(self) -> None:
        for text in (
            "[a](none.md)",
            '[a](none.md "title")',
            "[a]: none.md",
            '<img src="none.png">',
            "[a](/none.md#part)",
        ):
            self.assertEqual(self.found(text), 1, text)


class Whole(unittest.TestCase):
    def test_every_rule_reaches_a_file_of_the_repository(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            crate = root / "crates" / "sim"
            (crate / "src").mkdir(parents=True)
            (crate / "Cargo.toml").write_text("[package]\n")
            (crate / "src" / "utils.rs").write_text("// FIX" + "ME\n" + "\n" * 500)
            (root / "README.md").write_text("[a](none.md)\n")
            files = house.listed_files(root)
            found = [finding for file in files for finding in house.check_file(root, file)]
        self.assertEqual(len(found), 5, found)


if __name__ == "__main__":
    unittest.main()
