"""Which constants of a kernel size the tile of a CTA, by its source, and along which axis of the grid."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from artifact_inspector.diagnosis.source_edits import KernelText, calls_of, find_kernel

_COMBINING = (
    "sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce", "cumsum", "cumprod", "associative_scan", "sort",
    "topk", "softmax", "histogram", "gather", "flip", "split",
)  # fmt: skip
"""Calls that combine elements along an axis."""


def find_tile_axes(source: str, kernel: str) -> dict[str, tuple[int, ...]]:
    """Constant → axes of the grid along which it sizes tiles.

    Offsets are `tl.program_id(axis) * NAME + tl.arange(0, NAME)` there, and nothing combines elements along that
    range: it would be the length of a row. Callers compare results nevertheless.
    """
    function = find_kernel(source, kernel)
    if function is None:
        return {}
    arguments = [*function.args.args, *function.args.kwonlyargs]
    constants = {
        argument.arg
        for argument in arguments
        if argument.annotation and "constexpr" in ast.unparse(argument.annotation)
    }
    values: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                values.update(_pair(target, node.value))
    axes: dict[str, set[int]] = {}
    for node in ast.walk(function):
        terms = [*_terms(node)] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []
        texts = [_resolve(term, values) for term in terms]
        for axis in range(3):
            for name in constants:
                products = (f"tl.program_id({axis}) * {name}", f"{name} * tl.program_id({axis})")
                if not set(products).isdisjoint(texts) and any(f"tl.arange(0, {name})" in text for text in texts):
                    axes.setdefault(name, set()).add(axis)
    text = KernelText(source, function, {}, is_blackwell=False)
    return {name: tuple(sorted(numbers)) for name, numbers in axes.items() if not _is_combined(text, name)}


def find_whole_extents(source: str, kernel: str) -> frozenset[str]:
    """Constants that size ranges, and that nothing steps by: such a range covers a whole row or head."""
    function = find_kernel(source, kernel)
    sized, stepped = set[str](), set[str]()
    for node in () if function is None else ast.walk(function):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.FloorDiv | ast.Mod):
            operands = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            operands = [node.value]
        elif isinstance(node, ast.Call):
            operands = [*node.args, *(keyword.value for keyword in node.keywords)]
        names = {operand.id for operand in operands if isinstance(operand, ast.Name)}
        is_range = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("arange")
        (sized if is_range else stepped).update(names)
    return frozenset(sized - stepped)


def _is_combined(text: KernelText, name: str) -> bool:
    """Whether a call combines the elements of a range of this extent."""
    ranges = {
        one: ast.unparse(text.function)
        for one, statements in text.definitions.items()
        if any(f"tl.arange(0, {name})" in ast.unparse(statement) for statement in statements)
    }
    for call in (call for kind in _COMBINING for call in calls_of(text.function, kind)):
        axes = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "axis")]
        numbers = [axis.value for axis in axes if isinstance(axis, ast.Constant)]
        for one in ranges.keys() & text.reaching(call.args[0] if call.args else call):
            is_row = f"{one}[None, :]" in ranges[one]
            if not numbers or numbers[0] == int(is_row):
                return True
    return False


def _pair(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Names with the ids or ranges that they stand for."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pair(one, other)
    elif isinstance(target, ast.Name) and ast.unparse(value).startswith(("tl.program_id(", "tl.arange(")):
        yield target.id, ast.unparse(value)


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _resolve(term: ast.expr, values: Mapping[str, str]) -> str:
    """The text of a term, with the names of ids and ranges replaced."""

    class Resolver(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(values[node.id], mode="eval").body if node.id in values else node

    return ast.unparse(Resolver().visit(ast.parse(ast.unparse(term), mode="eval")))


def scale_grid(
    grid: Sequence[int], axes: Mapping[str, Sequence[int]], before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[int, ...]:
    """The grid whose CTAs cover the same elements with other tiles.

    Example:
        >>> scale_grid((4, 3, 1), {"BM": (0,)}, {"BM": 64}, {"BM": 128})
        (2, 3, 1)
    """
    extents = list(grid)
    for name, tile in after.items():
        for axis in axes[name]:
            extents[axis] = -(-extents[axis] * before[name] // tile)
    return tuple(extents)
