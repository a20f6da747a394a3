"""The commands that the documentation shows, and what they need. For tools/test_docs.py.

Comments on a page, and the words after a fence's language, say how the page is tested:

- `<!-- needs: a.quell runs -->`: create these in the folder before its first command (the names are in `MAKERS`).
- A `toml` fence with `title="plan.toml"` is that file.
- A `console` fence contains commands after `$ `, run one after another in the page's folder. After the word `console`:
  `no-run: WHY` for what no test can run, `needs: ebpf` (or mpi, root, slurm; several with commas) for what only some
  machines can run, `exact` if the lines below a command are its output (`…` stands for omitted lines).
- A command followed by `# exit code 3` must exit with that code; with `# exit code 0 or 3`, with either.
- A page's `python` fences form one script.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>\w+)(?P<words>[^\n]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
NEEDS = re.compile(r"^<!-- needs: (?P<names>[^>]+) -->$", re.MULTILINE)
TITLE = re.compile(r'title="(?P<name>[^"/]+)"')
EXIT_CODES = re.compile(r"# exit code (\d+)(?: or (\d+))?\b")


class Command(NamedTuple):
    """One command of a fence, with the lines shown below it."""

    text: str
    shown: tuple[str, ...]

    @property
    def exit_codes(self) -> set[int]:
        """The permitted exit codes."""
        declared = EXIT_CODES.search(self.text)
        return {int(code) for code in declared.groups() if code} if declared else {0}

    @property
    def is_quell(self) -> bool:
        """Whether a test may run it: quell itself, possibly piped into standard tools."""
        return self.text.startswith("quell ")


class Block(NamedTuple):
    """One fence."""

    line: int
    language: str
    words: str
    body: str

    @property
    def why_not(self) -> str | None:
        """The reason why no test can run it."""
        return self.words.partition("no-run:")[2].strip() or None

    @property
    def wanted(self) -> list[str]:
        """What a machine must have to run it."""
        declared = re.match(r"\s*needs:\s*([\w, ]+)", self.words)
        return [name.strip() for name in declared[1].split(",")] if declared else []

    @property
    def exact(self) -> bool:
        """Whether the lines below a command are its exact output."""
        return "exact" in self.words.split()

    def commands(self) -> list[Command]:
        """Its commands in order; a line that ends with a backslash continues."""
        found: list[Command] = []
        goes_on = False
        for line in self.body.splitlines():
            if goes_on:
                found[-1] = found[-1]._replace(text=found[-1].text[:-1] + line.strip())
            elif line.startswith("$ "):
                found.append(Command(line[2:].strip(), ()))
            elif found:
                found[-1] = found[-1]._replace(shown=(*found[-1].shown, line))
            goes_on = bool(found) and found[-1].text.endswith("\\") and not found[-1].shown
        return found


class DocPage(NamedTuple):
    """One page."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Its path relative to the repository."""
        return self.path.relative_to(ROOT).as_posix()

    def blocks(self, language: str) -> list[Block]:
        """Its fences in a language."""
        return [
            Block(self.text.count("\n", 0, found.start()) + 1, found["language"], found["words"], found["body"])
            for found in FENCE.finditer(self.text)
            if found["language"] == language
        ]

    def needs(self) -> list[str]:
        """What must be in its folder before its first command."""
        return [name.rstrip("/") for found in NEEDS.finditer(self.text) for name in found["names"].split()]

    def files(self) -> Iterator[tuple[str, str]]:
        """The files that it shows."""
        for block in self.blocks("toml"):
            title = TITLE.search(block.words)
            if title:
                yield title["name"], block.body


def pages() -> list[DocPage]:
    """README.md and all of docs/; generated pages of commands repeat the help, which is checked separately."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [DocPage(path, path.read_text("utf-8")) for path in paths if "commands" not in path.parts]


def example(quell: Path, to: Path) -> None:
    """Makes one of the files of `quell example`."""
    with tempfile.TemporaryDirectory() as scratch:
        run(quell, "example", f"{scratch}/example")
        shutil.move(f"{scratch}/example/{to.name}", to)


def study(quell: Path, to: Path) -> None:
    """Makes a study's folder with only its recording."""
    to.mkdir()
    example(quell, to / "a.quell")
    (to / "a.quell").rename(to / "node.quell")


# The function that makes each thing that a page may need; its arguments are the program and the path to make.
MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "a.quell": example,
    "b.quell": example,
    "node.quell": example,
    "before.quell": example,
    "after.quell": example,
    "runs": example,
    "run": example,
    "study": study,
    "selfish.txt": example,
    "app.goal": example,
    "app.bin": example,
}


def run(quell: Path, *words: str | Path) -> None:
    """Runs quell, or fails with its error message."""
    subprocess.run([quell, *words], check=True, capture_output=True, text=True)
