"""Adds the mask that an access outside of its tensor lacks. Callers verify the edit."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping

from artifact_inspector.diagnosis.source_edits import KernelText, calls_of, find_kernel
from artifact_inspector.memory_checks.problems import IndexBound

_LANEWISE = re.compile(r"range|.*\.to|tl\.(load|store|arange|program_id|zeros|dot|where|exp2?|log2?|r?sqrt|cdiv)")
"""Calls that do not combine lanes, or to which a lane of zeros adds nothing."""


def add_mask(source: str, kernel: str, line: int, missing: IndexBound, numbers: Mapping[str, int]) -> str | None:
    """The file with the mask added on a line; None if its index, extent or neutral value is unknown."""
    function = find_kernel(source, kernel)
    if function is None or missing.bound.removeprefix("< ").isdecimal():  # a number holds for one launch
        return None
    text, changes = KernelText(source, function, numbers, is_blackwell=False), {}
    nodes = [node for one in function.body for node in ast.walk(one) if isinstance(node, ast.Call)]
    is_lanewise = all(_LANEWISE.fullmatch(ast.unparse(node.func)) for node in nodes)
    for statement in text.at(line):
        changed = copy.deepcopy(statement)
        for call in [*calls_of(changed, "load"), *calls_of(changed, "store")]:
            index = _index_of(text, call, missing)
            if index is not None and (is_lanewise or ast.unparse(call.func) == "tl.store"):
                _restrict(call, f"{index} {missing.bound}")
                changes.update(text.rewrite(statement, changed))
    return text.replaced(changes, {}) if changes else None


def _restrict(call: ast.Call, test: str) -> None:
    """Add a test to the mask of an access."""
    masks = [one for one in call.keywords if one.arg == "mask"]
    if masks:
        masks[0].value = ast.parse(f"({ast.unparse(masks[0].value)}) & ({test})", mode="eval").body
        return
    call.keywords.append(ast.keyword("mask", ast.parse(test, mode="eval").body))
    if ast.unparse(call.func) == "tl.load":
        call.keywords.append(ast.keyword("other", ast.Constant(0)))


def _index_of(text: KernelText, call: ast.Call, missing: IndexBound) -> str | None:
    """The index along the dimension, as the pointer of an access adds it."""
    terms = (
        list(_terms(text, call.args[0], missing.tensor))
        if len(call.args) < 2 + ast.unparse(call.func).endswith("store")
        else []
    )
    if [ast.unparse(term) for term in terms].count(missing.tensor) != 1:
        return None
    indices = []
    for term in terms:
        stride, index = 1, term
        is_plain = missing.dimensions == 1 and missing.stride == 1
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) and not is_plain:
            index, factor = term.left, ast.unparse(term.right)
            stride = int(factor) if factor.isdecimal() else text.numbers.get(factor, 0)
        if stride == missing.stride and ast.unparse(term) != missing.tensor:
            indices.append(ast.unparse(index))
    return " + ".join(indices) or None


def _terms(text: KernelText, node: ast.expr, tensor: str) -> Iterator[ast.expr]:
    """What a pointer adds to its tensor, with names of pointers replaced by their only definition."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(text, node.left, tensor)
        yield from _terms(text, node.right, tensor)
        return
    definitions = text.definitions.get(ast.unparse(node), [])
    is_pointer = tensor in text.reaching(node)
    if is_pointer and len(definitions) == 1 and isinstance(definitions[0], ast.Assign):
        yield from _terms(text, definitions[0].value, tensor)
    elif not (is_pointer and definitions):  # a pointer that moves has no index
        yield node
