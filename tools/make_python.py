#!/usr/bin/env python3
"""Generates parts of the Python package: documents from JSON schemas, functions from verbs' options.

`make_python.py [--check]` needs target/debug/libquell_python.so. With --check it writes nothing, and fails if a file
is stale.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python/tests")]

from package import MODULE  # noqa: E402 (it is found by the line above)
from python_reference import page  # noqa: E402 (the same)

# The schema of warnings first, because the others refer to it.
SCHEMAS = ("warning", "predict", "simulate", "compare", "show", "show-hosts", "track", "advise")
WHOLE = {"warning.json": "DocumentWarning"}
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 120


class Types:
    """The types of one schema, renamed where another schema uses the same name for something else."""

    def __init__(self, schema: dict, taken: dict[str, str]) -> None:
        """Reads a schema; `taken` has the definitions already written for other schemas."""
        self.title = schema["title"]
        self.taken = taken
        self.definitions: dict[str, dict] = {**schema.get("$defs", {}), self.title: schema}
        for definition in list(self.definitions.values()):
            self.define_variants(definition)
        self.names: dict[str, str] = {name: name for name in self.definitions}
        for name in self.definitions:
            if name in taken and taken[name] != self.written(name):
                self.names[name] = f"{self.title}{name}"

    def define_variants(self, schema: dict) -> None:
        """Gives each variant of a tagged union its own definition, under the name of its code."""
        for variants in (schema.get("oneOf", []), schema.get("anyOf", [])):
            for place, variant in enumerate(variants):
                code = variant.get("properties", {}).get("code", {}).get("const")
                if code is not None:
                    name = "".join(word.capitalize() for word in code.split("-")) + "Warning"
                    self.definitions[name] = variant
                    variants[place] = {"$ref": f"#/$defs/{name}"}

    def type(self, schema: dict) -> str:
        """A type as an annotation."""
        if "$ref" in schema:
            file, _, name = schema["$ref"].rpartition("/")
            # A reference to a whole schema file is the type at its root.
            return self.names.get(name, name) if file else WHOLE[name]
        if "anyOf" in schema or "oneOf" in schema:
            kinds = schema.get("anyOf") or schema["oneOf"]
            if all("const" in one for one in kinds):
                return f"Literal[{', '.join(json.dumps(one['const']) for one in kinds)}]"
            kinds = [self.type(one) for one in kinds]
            return " | ".join(sorted(dict.fromkeys(kinds), key=lambda kind: kind == "None"))
        if "const" in schema:
            return f'Literal["{schema["const"]}"]'
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(one) for one in schema['enum'])}]"
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " | ".join(self.one(kind, schema) for kind in kinds) or "Any"

    def one(self, kind: str, schema: dict) -> str:
        """The annotation of one of a value's possible kinds."""
        if kind == "array":
            return f"list[{self.type(schema.get('items', {}))}]"
        if kind == "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {self.type(inner) if isinstance(inner, dict) else 'Any'}]"
        return SIMPLE[kind]

    def written(self, name: str) -> str:
        """A definition in Python."""
        schema, name = self.definitions[name], self.names[name]
        if "properties" not in schema:
            return f'{name}: TypeAlias = "{self.type(schema).replace(chr(34), chr(39))}"\n{doc(schema, "")}'
        required = set(schema.get("required", []))
        lines = [f"class {name}(TypedDict):", doc(schema, "    ") or f'    """`{name}`."""\n']
        for field, of in schema["properties"].items():
            if keyword.iskeyword(field):
                continue
            kind = self.type(of)
            kind = kind if field in required else f"NotRequired[{kind}]"
            lines.append(f"    {field}: {kind}\n{doc(of, '    ', column_note(field, of))}")
        inexpressible = [field for field in schema["properties"] if keyword.iskeyword(field)]
        if inexpressible:
            lines.insert(2, f"    # In addition: {', '.join(inexpressible)}, which Python keeps for itself.\n")
        return lines[0] + "\n" + "\n".join(lines[1:])


def column_note(field: str, schema: dict) -> str:
    """The title of a field in tables, if it differs from the field's name."""
    title = schema.get("x-column", {}).get("title", "")
    plain = re.sub(r"_(ns|percent|bytes)$", "", field).replace("_", " ")
    return f" In tables: `{title}`." if title and title.lower() != plain else ""


def doc(schema: dict, indent: str, note: str = "") -> str:
    """The description as a docstring."""
    text = " ".join(schema.get("description", "").split()) + note
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return ""
    lines = textwrap.wrap(text, WIDTH - len(indent) - 6)
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    first = text.split(". ")[0]
    if len(first) < len(text) and len(first) < WIDTH - 10:
        rest = textwrap.wrap(text[len(first) + 2 :], WIDTH - len(indent))
        lines = [f"{first}.", "", *rest]
    return f'{indent}"""' + f"\n{indent}".join(lines).replace(f"{indent}\n", "\n") + f'\n{indent}"""\n'


def documents() -> str:
    """python/quell/documents.py."""
    taken: dict[str, str] = {}
    for name in SCHEMAS:
        types = Types(json.loads((ROOT / f"docs/reference/schemas/{name}.json").read_text()), taken)
        for definition in types.definitions:
            taken[types.names[definition]] = types.written(definition)
    order = sorted(taken, key=lambda name: ("TypeAlias" not in taken[name].splitlines()[0], name))
    body = "\n\n".join(taken[name] for name in order)
    return DOCUMENTS + body


DOCUMENTS = '''# long file: generated by tools/make_python.py from docs/reference/schemas
"""The documents of `quell`, typed as their schemas say. Times are whole nanoseconds (`_ns`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

if TYPE_CHECKING:
    from typing_extensions import NotRequired, TypeAlias


def parse(text: str) -> dict[str, Any]:
    """The parsed text of a document."""
    return cast("dict[str, Any]", json.loads(text))


'''

VERBS = {
    "predict": ("Prediction", "Predicts the cost of noise for a bulk-synchronous program, by number of ranks."),
    "simulate": (
        "Simulation",
        "Simulates a schedule or a named pattern under LogGOPS and noise: when each rank finishes.",
    ),
    "compare": ("Comparison", "Compares two recordings: which figures changed, and whether the change is significant."),
    "show": ("Shown | Hosts", "Summarizes a recording, or for a folder of recordings its hosts."),
    "track": ("Tracked", "Computes the effect of noise on a traced MPI run, by rank and source."),
}
# The help's names of values, and their types here.
KINDS = {
    "TIME": "Time",
    "NS": "Time | float",
    "LIST": "Ranks",
    "SIZE": "Size",
    "BYTES": "Size",
    "SOURCE": "Names",
    "SOURCE=FACTOR": "Values",
    "SOURCE=CPU": "Values",
    "RANKS=NET": "Networks",
    "8x8x16": "Dims",
    "PPM": "float",
    "RANK": "int",
    "N": "Size",
    "NAME": "str",
    "NAME|L=..,o=..": "str",
    "SEED": "int",
    "MODEL.toml": "Noises",
    "FILE": "Noises",
}
NUMBERS = {"phases", "seed", "threads", "leave"}
# `progress` is the progress bar of every function.
RENAMED = {"progress": "mpi_progress"}
FILES = {"recordings": "Noises", "before": "Noise", "after": "Noise", "archive": "Noise", "recording": "Noise"}


def python_name(option: dict) -> str:
    """An option's name in Python."""
    return RENAMED.get(option["name"], option["name"].replace("-", "_"))


def kind_of(option: dict) -> tuple[str, str]:
    """An option's type and its default, in Python syntax."""
    name = python_name(option)
    if option["positional"]:
        kind = FILES.get(name, "Noise | None")
        return kind, "()" if option["repeated"] else ("None" if kind == "Noise | None" else "")
    if option["flag"]:
        return "bool", "False"
    if option["choices"]:
        kind = f"Literal[{', '.join(json.dumps(one) for one in option['choices'])}]"
        return (f"{kind} | None", "None") if option["default"] is None else (kind, json.dumps(option["default"]))
    kind = KINDS.get(option["value"], "str")
    if name in NUMBERS:
        kind = "int"
    if name == "offsets":
        kind = "Path"
    if option["default"] is not None:
        plain = re.fullmatch(r"\d+(\.\d+)?", option["default"])
        return kind, option["default"] if plain else json.dumps(option["default"])
    return (kind, "()") if option["repeated"] else (f"{kind} | None", "None")


def described(option: dict) -> str:
    """The description of an option, from the help."""
    text = " ".join(option["help"].split()).rstrip(".").replace("\\", "\\\\")
    text = re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda found: f"`{found[1].replace('-', '_')}`", text)
    head = f"{python_name(option)}: {text}."
    return "\n".join(textwrap.wrap(head, WIDTH - 8, subsequent_indent="    ", break_on_hyphens=False))


def function(verb: str, options: list[dict]) -> str:
    """A verb as a function."""
    result, summary = VERBS[verb]
    plain = [option for option in options if option["positional"]]
    named = [option for option in options if not option["positional"]]

    def parameter(option: dict) -> str:
        kind, default = kind_of(option)
        return f"    {python_name(option)}: {kind}{f' = {default}' if default else ''},"

    parameters = [*map(parameter, plain), "    *,", *map(parameter, named), "    progress: bool | None = None,"]
    arguments = [textwrap.indent(described(option), " " * 8) for option in (*plain, *named)]
    arguments.append("        progress: Whether to show progress; by default on a terminal and in a notebook.")
    words = [f'        ("{option["name"]}", "{option["value"] or ""}", {given(option)}),' for option in named]
    several = [option for option in plain if option["repeated"]]
    positional = (
        f"several({python_name(several[0])})" if several else ", ".join(python_name(option) for option in plain)
    )
    positional = positional if several else f"[{positional}]"
    lines = [f"def {verb}(", *parameters, f") -> {result}:", f'    """{summary}', ""]
    lines += ["    Args:", *arguments, "", "    Returns:", f"        {RETURNS[verb]}", ""]
    lines += ["    Raises:", "        QuellError: With the command's error message.", '    """']
    if verb == "simulate":
        positional = "[] if schedule is None else [schedule]"
        lines += ["    schedule, pattern = _named(schedule, pattern)"]
    lines += ["    options = [", *words, "    ]", f'    text = ask("{verb}", options, {positional}, progress)']
    lines.append(f"    return {RESULTS.get(verb, f'{result}(text)')}")
    return "\n".join(lines) + "\n"


def given(option: dict) -> str:
    """The expression for an option's value; a default is not passed on."""
    name, default = python_name(option), kind_of(option)[1]
    return name if default in {"", "()", "None", "False"} else f"None if {name} == {default} else {name}"


RETURNS = {
    "predict": "The curve; `.document` is what `quell predict --json` prints.",
    "simulate": "The finish times of the ranks; `.document` is what `quell simulate --json` prints.",
    "compare": "The figures and their changes; `.document` is what `quell compare --json` prints.",
    "show": "The recording, or the hosts; `.document` is what `quell show --json` prints.",
    "track": "By rank, source and place; `.document` is what `quell track --json` prints.",
}
RESULTS = {"show": "shown(text, by)"}

FUNCTIONS = '''# long file: generated by tools/make_python.py from the options of the verbs
"""The verbs of `quell` as functions: every option of the command is a keyword, with `_` for `-`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from quell._native import ask
from quell._words import named as _named, several
from quell.results import Comparison, Prediction, Simulation, Tracked, shown

if TYPE_CHECKING:
    from quell._words import Dims, Names, Networks, Noise, Noises, Path, Ranks, Size, Time, Values
    from quell.results import Hosts, Shown


'''


def verbs() -> str:
    """python/quell/verbs.py."""
    loader = importlib.machinery.ExtensionFileLoader("_internal", str(MODULE))
    native = importlib.util.module_from_spec(importlib.util.spec_from_loader("_internal", loader))
    loader.exec_module(native)
    return FUNCTIONS + "\n\n".join(function(verb, json.loads(native.options(verb))) for verb in VERBS)


def formatted(name: str, text: str) -> str:
    """Formats with ruff."""
    ruff = ROOT / ".x/venv/bin/ruff"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text)
        config = ["--config", str(ROOT / "pyproject.toml")]
        subprocess.run([ruff, "check", "--quiet", "--select", "I", "--fix", *config, path], check=False)
        subprocess.run([ruff, "format", "--quiet", *config, path], check=True)
        return path.read_text()


def main() -> int:
    """Writes the files, or with --check compares them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file is stale")
    asked = parser.parse_args()
    made = {"python/quell/documents.py": documents(), "python/quell/verbs.py": verbs()}
    made = {name: formatted(Path(name).name, text) for name, text in made.items()}
    made["docs/reference/python.md"] = page(made["python/quell/verbs.py"])
    stale = 0
    for name, text in made.items():
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        if asked.check:
            print(f"{name} is stale: run tools/make_python.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text)
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
