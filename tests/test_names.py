"""Names in the package: few filler words, one class of each name, and few modules of the same name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from saved import ROOT

PACKAGE = ROOT / "artifact_inspector"
PARTICIPLES = frozenset(
    [
        "found",
        "said",
        "told",
        "held",
        "given",
        "asked",
        "own",
        "one",
        "made",
        "wanted",
        "known",
        "chosen",
        "taken",
        "seen",
        "kept",
        "meant",
        "due",
        "shown",
        "written",
        "whence",
        "why",
    ]
)
FILLERS = frozenset(
    [
        "each",
        "other",
        "alike",
        "apart",
        "here",
        "there",
        "what",
        "which",
        "where",
        "rest",
        "whole",
        "part",
        "parts",
        "place",
        "places",
        "read",
        "before",
        "after",
        "more",
        "most",
        "left",
        "over",
        "together",
        "answer",
        "words",
        "thing",
        "way",
        "ways",
    ]
)
MOST_VAGUE, MOST_PARTICIPLES = 0.015, 0.005
"""Of all bindings. Twelve code bases of the field lie between 0.002 and 0.010, and at or below 0.003."""
SHARED_BASENAMES = frozenset({"__init__", "parser", "opcodes", "operands"})
MOST_MODULES = 4
"""Modules of one name, except those above: what every format has."""


def trees() -> Iterator[ast.Module]:
    for path in PACKAGE.rglob("*.py"):
        yield ast.parse(path.read_text(encoding="utf-8"))


def bound_names(tree: ast.Module) -> Iterator[str]:
    """Names that are assigned or are parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id.strip("_")
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg.strip("_")


@pytest.mark.long
def test_few_names_are_filler_words() -> None:
    names = Counter(name for tree in trees() for name in bound_names(tree) if name)
    participles = {name: names[name] for name in PARTICIPLES & names.keys()}
    fillers = {name: names[name] for name in FILLERS & names.keys()}
    assert sum(participles.values()) <= MOST_PARTICIPLES * names.total(), participles
    assert sum(participles.values()) + sum(fillers.values()) <= MOST_VAGUE * names.total(), fillers


def test_a_class_name_occurs_once() -> None:
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE))
    assert names.total() > 500
    assert [name for name, count in names.items() if count > 1] == []


def test_few_modules_share_a_name() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem not in SHARED_BASENAMES)
    assert {name: count for name, count in names.items() if count > MOST_MODULES} == {}
