"""Builds all mutants of a list into one program, each behind a check of its number.

So a mutant costs no build of its own, only the tests that reach it (mutant schemata: Untch, Offutt & Harrold, ISSTA
1993). The list is that of `cargo mutants --list --json`. A mutant that does not compile in the place of the original is
dropped.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import tree_sitter
import tree_sitter_rust

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tree_sitter import Node

Mutant = dict[str, Any]

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
# What the compiler computes cannot ask for a number.
CONSTANT = {
    "array_type",
    "attribute_item",
    "const_block",
    "const_item",
    "enum_variant",
    "static_item",
    "type_arguments",
    "type_parameters",
}
# Tokens, which may not be expressions.
TOKENS = {"macro_invocation", "token_tree"}
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
FIELDS = {"field_initializer", "shorthand_field_initializer"}
# A new crate-level function. With MUTANT_REACH it appends the numbers that are asked for to that file, each once.
CHECK = """
/// Whether this mutant is the one in the variable MUTANT.
#[doc(hidden)]
#[inline]
pub fn __m(number: u32) -> bool {
    let active = __ACTIVE.load(std::sync::atomic::Ordering::Relaxed);
    if active >= u32::MAX - 1 { __slow(number, active) } else { active == number }
}
static __ACTIVE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(u32::MAX);
#[inline(never)]
fn __slow(number: u32, active: u32) -> bool {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU8, Ordering};
    static SEEN: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
    if active == u32::MAX {
        if let Ok(only) = std::env::var("MUTANT") {
            let only: u32 = only.parse().unwrap_or(0);
            __ACTIVE.store(only, Ordering::Relaxed);
            return only == number;
        }
        let reach = std::env::var_os("MUTANT_REACH").is_some();
        __ACTIVE.store(if reach { u32::MAX - 1 } else { 0 }, Ordering::Relaxed);
        if !reach {
            return false;
        }
    }
    let seen = &SEEN[number as usize & 0xffff];
    if seen.load(Ordering::Relaxed) == 0 && seen.swap(1, Ordering::Relaxed) == 0 {
        if let Some(path) = std::env::var_os("MUTANT_REACH") {
            if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
                let _ = file.write_all(&number.to_le_bytes());
            }
        }
    }
    false
}
"""


def check(mutant: Mutant) -> str:
    """The expression that is true while the mutant is active."""
    return f"crate::__m({mutant['number']})"


def chosen(mutants: Iterable[Mutant], changed: Any, otherwise: str) -> str:  # noqa: ANN401 (a function of a mutant)
    """An expression that is `changed(mutant)` while a mutant is active."""
    return "".join(f"if {check(one)} {{ {changed(one)} }} else " for one in mutants) + f"{{ {otherwise} }}"


def has_let(node: Node) -> bool:
    """Whether a condition binds names, which end with the condition."""
    if node.type in {"let_condition", "let_chain"}:
        return True
    return node.type not in {"block", "closure_expression", "match_block"} and any(map(has_let, node.children))


class Source:
    """A source file with its mutants."""

    def __init__(self, text: bytes, mutants: Iterable[Mutant]) -> None:
        self.text = text
        self.lines = [0, *(found.end() for found in re.finditer(b"\n", text))]
        self.at: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
        for one in mutants:
            self.at[one["genre"], self.offset(one["span"]["start"]), self.offset(one["span"]["end"])].append(one)
        self.used: set[int] = set()

    def offset(self, place: dict[str, int]) -> int:
        """The byte at a line and a column of characters, both from 1."""
        begin = self.lines[place["line"] - 1]
        line = self.text[begin:].split(b"\n", 1)[0].decode()
        return begin + len(line[: place["column"] - 1].encode())

    def take(self, genre: str, begin: int, *ends: int) -> list[Mutant]:
        """The mutants of these bytes."""
        found = [one for end in ends for one in self.at.get((genre, begin, end), [])]
        self.used.update(one["number"] for one in found)
        return found

    def words(self, node: Node) -> str:
        """A node as it is."""
        return self.text[node.start_byte : node.end_byte].decode()

    def instrumented(self) -> str:
        """The whole file with its mutants."""
        return self.render(PARSER.parse(self.text).root_node)

    def render(self, node: Node) -> str:
        """A node with the mutants in it."""
        modifiers = [self.words(part).split() for part in node.children if part.type == "function_modifiers"]
        if node.type in CONSTANT | TOKENS or (modifiers and "const" in modifiers[0]):
            return self.words(node)
        kinds = {
            "binary_expression": self.binary,
            "compound_assignment_expr": self.assignment,
            "unary_expression": self.unary,
            "match_arm": self.arm,
            "struct_expression": self.struct,
            "block": self.block,
        }
        return kinds.get(node.type, self.parts)(node)

    def parts(self, node: Node, other: dict[int, str] | None = None) -> str:
        """A node with the mutants in its parts, and other texts for some of them."""
        texts, end = [], node.start_byte
        for part in node.children:
            texts.append(self.text[end : part.start_byte].decode())
            texts.append((other or {})[part.id] if part.id in (other or {}) else self.render(part))
            end = part.end_byte
        return "".join([*texts, self.text[end : node.end_byte].decode()])

    def operands(self, node: Node) -> tuple[Node, Node, Node]:
        """The left side, the operator and the right side."""
        left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        assert left is not None and operator is not None and right is not None  # noqa: PT018, S101 (the grammar says so)
        return left, operator, right

    def binary(self, node: Node) -> str:
        """`a + b`: both sides are computed once, before the mutant is asked for."""
        left, operator, right = self.operands(node)
        found = (
            []
            if has_let(left) or has_let(right)
            else self.take("BinaryOperator", operator.start_byte, operator.end_byte)
        )
        if not found:
            return self.parts(node)
        a, sign, b = self.render(left), self.words(operator), self.render(right)
        if sign in {"&&", "||"}:
            # `a && b` with a mutant `a || b`, and the other way round: where `a` is the opposite, it decides alone.
            flipped = " ^ ".join(check(one) for one in found)
            stays = "!=" if sign == "&&" else "=="
            return f"(match {{{a}}} {{ __l => if __l {stays} ({flipped}) {{ {b} }} else {{ __l }} }})"
        # A comparison only looks at its sides.
        both, look = (f"(&({a}), &({b}))", "*") if sign in COMPARISONS else (f"({a}, {b})", "")

        def joined(sign: str) -> str:
            return f"{look}__l {sign} {look}__r"

        body = chosen(found, lambda one: joined(one["replacement"]), joined(sign))
        return f"(match {both} {{ (__l, __r) => {body} }})"

    def assignment(self, node: Node) -> str:
        """`a += b`."""
        left, operator, right = self.operands(node)
        found = self.take("BinaryOperator", operator.start_byte, operator.end_byte)
        if not found:
            return self.parts(node)
        a, sign = self.render(left), self.words(operator)
        body = chosen(found, lambda one: f"{a} {one['replacement']} __r", f"{a} {sign} __r")
        return f"(match {self.render(right)} {{ __r => {body} }})"

    def unary(self, node: Node) -> str:
        """`!a`, `-a`."""
        sign, value = node.children[0], node.children[-1]
        found = self.take("UnaryOperator", sign.start_byte, sign.end_byte)
        if not found:
            return self.parts(node)
        body = chosen(found, lambda one: f"{one['replacement']} __v", f"{self.words(sign)}__v")
        return f"(match {self.render(value)} {{ __v => {body} }})"

    def arm(self, node: Node) -> str:
        """A match arm: without itself, or with a guard that is always true or false."""
        pattern = node.child_by_field_name("pattern")
        assert pattern  # noqa: S101 (the grammar says so)
        guard = pattern.child_by_field_name("condition")
        if guard and has_let(guard):
            return self.parts(node)
        left_out = self.take("MatchArm", node.start_byte, node.end_byte, node.end_byte - 1)
        replaced = self.take("MatchArmGuard", guard.start_byte, guard.end_byte) if guard else []
        if not left_out and not replaced:
            return self.parts(node)
        condition = f"({self.render(guard)})" if guard else "true"
        for one in replaced:
            always = one["replacement"] == "true"
            condition = f"({check(one)} || {condition})" if always else f"(!{check(one)} && {condition})"
        for one in left_out:
            condition = f"!{check(one)} && {condition}"
        head = self.text[pattern.start_byte : guard.start_byte].decode() if guard else f"{self.words(pattern)} if "
        return self.parts(node, {pattern.id: head + condition})

    def struct(self, node: Node) -> str:
        """A struct of which some fields come from another value: without one of its own fields."""
        whole, body = self.parts(node), node.child_by_field_name("body")
        assert body  # noqa: S101 (the grammar says so)
        variants = ""
        for field in (part for part in body.children if part.type in FIELDS):
            comma = field.next_sibling
            gone = {part.id: "" for part in (field, comma) if part is not None and part.type in FIELDS | {","}}
            for one in self.take("StructField", field.start_byte, field.end_byte, field.end_byte + 1):
                without = self.parts(node, {body.id: self.parts(body, gone)})
                variants += f"if {check(one)} {{ {without} }} else "
        return f"({variants}{{ {whole} }})" if variants else whole

    def block(self, node: Node) -> str:
        """A function's body: returns another value at once."""
        inner = self.parts(node)
        code = [part for part in node.children if part.type not in {"{", "}", "line_comment", "block_comment"}]
        if not code or node.parent is None or node.parent.type != "function_item":
            return inner

        def is_body(begin: int, end: int) -> bool:
            return node.start_byte < begin <= code[0].start_byte and code[-1].end_byte <= end <= node.end_byte + 1

        places = [place for place in self.at if place[0] == "FnValue" and is_body(*place[1:])]
        found = [one for place in places for one in self.take(*place)]
        return "{" + " ".join(f"if {check(one)} {{ return {one['replacement']}; }}" for one in found) + inner[1:]


def write_all(tree: Path, mutants: list[Mutant], wrong: set[int]) -> set[int]:
    """Writes every file with its mutants, except the wrong ones; returns the numbers of those that are in."""
    used: set[int] = set()
    files: dict[str, list[Mutant]] = {one["file"]: [] for one in mutants}
    for one in mutants:
        if one["number"] not in wrong:
            files[one["file"]].append(one)
    roots = {crate_root(name) for name in files}
    subprocess.run(["git", "checkout", "--quiet", "--", *roots, *files], cwd=tree, check=True)
    for name, own in files.items():
        source = Source((tree / name).read_bytes(), own)
        (tree / name).write_text(source.instrumented(), encoding="utf-8")
        used |= source.used
    for root in roots:
        path = tree / root
        path.write_text(path.read_text(encoding="utf-8") + CHECK, encoding="utf-8")
    return used


def crate_root(name: str) -> str:
    """The file of the crate that a source file belongs to."""
    return name.split("/src/", maxsplit=1)[0] + "/src/lib.rs"


def refused(tree: Path, packages: Iterable[str]) -> set[int]:
    """The mutants at which the compiler finds errors: those that come last before them."""
    words = ["cargo", "check", "--message-format=json", "--keep-going", *(f"--package={one}" for one in packages)]
    ran = subprocess.run(words, cwd=tree, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    numbers = set()
    for line in ran.stdout.splitlines():
        message = json.loads(line).get("message") or {}
        for span in message.get("spans", []) if message.get("level") == "error" else []:
            if span["is_primary"]:
                before = (tree / span["file_name"]).read_bytes()[: span["byte_start"]].decode()
                found = re.findall(r"__m\((\d+)\)", before)
                if not found:
                    raise SystemExit(message["rendered"])
                numbers.add(int(found[-1]))
    return numbers


def instrument(tree: Path, mutants: list[Mutant]) -> set[int]:
    """Writes what compiles of these mutants into the tree; returns their numbers."""
    packages = {one["package"] for one in mutants}
    wrong: set[int] = set()
    while True:
        used = write_all(tree, mutants, wrong)
        found = refused(tree, packages)
        print(f"{len(used)} mutants are in, {len(found)} do not compile", flush=True)
        if not found:
            return used
        wrong |= found
