"""The examples of the documentation work: its commands are run as a reader would, in a folder for each page.

Needs a built quell; tools/documented.py says how a page marks what can be run. Commands not run are listed on stderr.
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import documented
from documented import MAKERS, ROOT, Block, Command, DocPage

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# A command of the documentation that takes more CPU time belongs in a fence that is not run.
LIMIT_S = 120
# A command that takes longer has hung, however busy the machine is.
HANGS_S = 900
ENDS_A_COMMAND = {"|", "||", "&&", ";", "&", ">", ">>", "#", "--"}


def children_s() -> float:
    """CPU time of all children that have exited."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def aloud(words: str) -> None:
    """Reports what is not run, also under --quiet."""
    print(f"test_docs: {words}", file=sys.stderr)


def found_quell() -> Path | None:
    """The program to test: $QUELL, or else the most recent build."""
    if "QUELL" in os.environ:
        return Path(os.environ["QUELL"]).resolve()
    built = [path for path in (TARGET / "debug/quell", TARGET / "release/quell") if path.exists()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


QUELL = found_quell()


@functools.cache
def has(thing: str) -> bool:
    """Whether this machine meets a requirement."""
    if thing == "ebpf":
        with tempfile.TemporaryDirectory() as folder:
            words = [
                "record",
                "-o",
                f"{folder}/x.quell",
                "--method",
                "kernel",
                "--sources",
                "on",
                "--duration",
                "100ms",
            ]
            return subprocess.run([QUELL, *words], check=False, capture_output=True).returncode == 0
    return {
        "root": os.geteuid() == 0,
        "mpi": shutil.which("mpirun") is not None and shutil.which("mpicc") is not None,
        "slurm": "SLURM_JOB_ID" in os.environ,
        "curl": shutil.which("curl") is not None,
    }[thing]


@functools.cache
def manual(verb: tuple[str, ...]) -> str:
    """The help of a verb, as in ("tune", "plan")."""
    answer = subprocess.run([QUELL, *verb, "--help"], check=False, capture_output=True, text=True)
    return answer.stdout if answer.returncode == 0 else ""


def verbs_of(verb: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """All verbs below one, without itself."""
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", manual(verb), re.MULTILINE)
    names = re.findall(r"^  (\S+)", listed[1], re.MULTILINE) if listed else []
    below = [(*verb, name) for name in names if name != "help"]
    return [deeper for one in below for deeper in (one, *verbs_of(one))]


def written(line: str) -> list[list[str]]:
    """The arguments of each `quell` on a line: a line may have several, under launchers and in pipes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&>")
    lexer.commenters = "#"
    lexer.whitespace_split = True
    words, found = list(lexer), []
    for at, word in enumerate(words):
        if word == "quell":
            ends = (n for n, later in enumerate(words[at + 1 :], at + 1) if later in ENDS_A_COMMAND)
            found.append(words[at + 1 : next(ends, len(words))])
    return found


def wrong_with(words: list[str]) -> str | None:
    """Why quell would reject such a command; the values of options are not checked."""
    verb: tuple[str, ...] = ()
    for word in words:
        if word.startswith("-") or (*verb, word) not in verbs_of(verb):
            break
        verb = (*verb, word)
    if not verb and words and not words[0].startswith("-"):
        return f"`{words[0]}` is no verb"
    unknown = [word.partition("=")[0] for word in words if word.startswith("--") and len(word) > len("--")]
    unknown = [word for word in unknown if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", manual(verb))]
    return f"`quell {' '.join(verb)}` has no {', '.join(unknown)}" if unknown else None


def loosely(line: str) -> str:
    """A line with its spacing normalised."""
    return " ".join(line.split())


@unittest.skipIf(QUELL is None, "quell is not built; `cargo build --workspace` or ./x build does it")
class TheDocumentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = Path(folder.name)

    def put(self, name: str, folder: Path) -> None:
        """Puts what a page needs into its folder; each thing is made once."""
        kept = self.made / name
        if not kept.exists():
            MAKERS[name](QUELL, kept)
        if kept.is_dir():
            shutil.copytree(kept, folder / name)
        else:
            shutil.copy(kept, folder / name)

    def test_commands_run(self) -> None:
        for page in documented.pages():
            blocks = page.blocks("console")
            if not any(command.is_quell for block in blocks for command in block.commands()):
                continue
            with self.subTest(page.name), tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                for needed in page.needs():
                    self.put(needed, folder)
                for file, text in page.files():
                    (folder / file).write_text(text, "utf-8")
                for block in blocks:
                    self.run_block(page, block, folder)

    def run_block(self, page: DocPage, block: Block, folder: Path) -> None:
        """Runs a fence's commands, or reports why not."""
        where = f"{page.name}:{block.line}"
        lacking = [thing for thing in block.wanted if not has(thing)]
        if block.why_not or lacking:
            aloud(f"not run, {where}: {block.why_not or 'this machine has no ' + ', '.join(lacking)}")
            return
        for command in block.commands():
            if command.is_quell:
                self.run_command(where, command, folder, exact=block.exact)
            else:
                self.assertRegex(command.text, r"^\./x ", f"{where}: `{command.text}` is not quell; say no-run and why")

    def run_command(self, where: str, command: Command, folder: Path, *, exact: bool) -> None:
        """Runs one command as a shell would."""
        program = {"PATH": f"{QUELL.parent}:{os.environ['PATH']}", "COLUMNS": "160", "NO_COLOR": "1"}
        shell = ["bash", "-o", "pipefail", "-c", command.text]
        before_s = children_s()
        ran = subprocess.run(
            shell,
            cwd=folder,
            env={**os.environ, **program},
            check=False,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
        )
        context = f"{where}: `{command.text}`\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
        self.assertLess(children_s() - before_s, LIMIT_S, context)
        self.assertIn(ran.returncode, command.exit_codes, context)
        if exact:
            printed = [loosely(line) for line in (ran.stdout + ran.stderr).splitlines()]
            for line in command.shown:
                if line.strip() and line.strip() != "…":
                    self.assertIn(loosely(line), printed, context)

    def test_python_is_run_by_the_tests_of_the_package(self) -> None:
        pages = {page.name for page in documented.pages() if any(not b.why_not for b in page.blocks("python"))}
        run = (ROOT / "python/tests/test_docs.py").read_text()
        for page in pages - {"docs/reference/python.md"}:
            self.assertIn(f'"{page}"', run, "its Python is run by no test")

    def test_what_is_not_run_is_at_least_understood(self) -> None:
        for page in documented.pages():
            for block in page.blocks("console"):
                for command in block.commands():
                    for words in written(command.text):
                        self.assertIsNone(wrong_with(words), f"{page.name}:{block.line}: {command.text}")

    def test_every_help_ends_with_examples_that_it_understands(self) -> None:
        for verb in [(), *verbs_of()]:
            name = " ".join(("quell", *verb))
            with self.subTest(name):
                _, _, examples = manual(verb).partition("\nEXAMPLES\n")
                self.assertTrue(examples, f"`{name} --help` has no EXAMPLES")
                lines = [line for line in examples.partition("\n\n")[0].splitlines() if "quell" in line.split()]
                self.assertTrue(lines, f"`{name} --help` has an EXAMPLES section without a command")
                for line in lines:
                    # After three spaces there is a description.
                    command = re.split(r"\s{3,}", line.strip())[0]
                    for words in written(command):
                        self.assertIsNone(wrong_with(words), f"`{name} --help`: {command}")

    def test_needs_are_known(self) -> None:
        for page in documented.pages():
            for name in page.needs():
                self.assertIn(name, MAKERS, f"{page.name}: tools/documented.py cannot make {name}")


class TheReference(unittest.TestCase):
    def listed(self, page: str) -> set[str]:
        return set(re.findall(r"`([^`]+)`", (ROOT / "docs/reference" / page).read_text("utf-8")))

    def test_every_column_of_a_recording_is_listed(self) -> None:
        sources = [ROOT / "crates/recording/src/table.rs", *(ROOT / "crates/recording/src/table").glob("*.rs")]
        column = re.compile(r"""(?:required|optional)\("(\w+)"|\("(\w+)", DataType|"(\w+_ns)\"""")
        columns = {"".join(found) for path in sources for found in column.findall(path.read_text("utf-8"))}
        self.assertIn("net_ns", columns)
        self.assertEqual(columns - self.listed("recording.md"), set())

    def test_every_environment_variable_is_listed(self) -> None:
        sources = [path for room in ("crates", "mpi", "python") for path in (ROOT / room).rglob("*.*")]
        sources = [
            path
            for path in sources
            if path.suffix in {".rs", ".c", ".h", ".py"} and not {"tests", "tests.rs", "testing"} & {*path.parts}
        ]
        # Whole strings, so that the macros of the C headers are left out.
        found = {name for path in sources for name in re.findall(r'"(QUELL_[A-Z_]+)"', path.read_text("utf-8"))}
        self.assertIn("QUELL_METRICS", found)
        self.assertEqual(found - self.listed("index.md"), set())


class TheWordsOfWarnings(unittest.TestCase):
    def test_the_page_of_limits_quotes_real_messages(self) -> None:
        printed = " ".join(path.read_text("utf-8") for path in (ROOT / "crates").rglob("*.rs"))
        printed = re.sub(r"\\\n\s*", "", printed)  # strings that continue on the next line
        page = (ROOT / "docs/tasks/limits.md").read_text("utf-8")
        quoted = [
            quote
            for row in re.findall(r"^\| (\*.*?) \|", page, re.MULTILINE)
            for quote in re.findall(r"\*(.+?)\*", row)
        ]
        self.assertGreater(len(quoted), 20)
        missing = [quote for quote in quoted if not re.search(self.pattern(quote), printed)]
        self.assertEqual(missing, [], "nothing in crates says this")

    def pattern(self, quote: str) -> str:
        """Numbers and names are replaced by placeholders."""
        words = re.split(r"node7?\b|\b[\d.]+(?:ms)?(?:-\d+)?\b|\(low\)", quote)
        return r"[^\"]{0,60}?".join(re.escape(word) for word in words if word)


class TheReaderOfPages(unittest.TestCase):
    def page(self, text: str) -> DocPage:
        return DocPage(ROOT / "docs/x.md", text)

    def test_finds_commands_with_what_is_shown_below(self) -> None:
        fence = "```console exact\n$ quell show a.quell \\\n    --json  # exit code 3\nshown\n```\n"
        page = self.page("<!-- needs: a.quell runs/ -->\n" + fence)
        [block] = page.blocks("console")
        self.assertEqual(block.commands(), [Command("quell show a.quell --json  # exit code 3", ("shown",))])
        self.assertEqual(block.commands()[0].exit_codes, {3})
        self.assertEqual(Command("quell x  # exit code 0 or 3: why", ()).exit_codes, {0, 3})
        self.assertTrue(block.exact)
        self.assertEqual(page.needs(), ["a.quell", "runs"])

    def test_knows_why_a_fence_is_not_run(self) -> None:
        first, second = self.page(
            "```console no-run: needs Slurm\n$ a\n```\n```console needs: ebpf, mpi\n$ b\n```\n"
        ).blocks("console")
        self.assertEqual(first.why_not, "needs Slurm")
        self.assertEqual(second.wanted, ["ebpf", "mpi"])

    def test_finds_every_quell_of_a_line(self) -> None:
        line = "srun -n 4 quell trace -o run -- quell replay a.quell -- ./app | less; quell show run  # of quell"
        self.assertEqual(written(line), [["trace", "-o", "run"], ["replay", "a.quell"], ["show", "run"]])

    @unittest.skipIf(QUELL is None, "quell is not built")
    def test_refuses_verbs_and_options_that_do_not_exist(self) -> None:
        self.assertIsNone(wrong_with(["tune", "plan", "thp", "--profile", "hpc-node"]))
        self.assertEqual(wrong_with(["shows", "a.quell"]), "`shows` is no verb")
        self.assertEqual(wrong_with(["show", "a.quell", "--jsons"]), "`quell show` has no --jsons")


if __name__ == "__main__":
    unittest.main()
