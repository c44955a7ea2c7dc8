"""Small faults: what can be put into a module of the packages in `ROOMS`, and how it gets there.

A mutant is one change: a comparison turned, a constant moved by one, a condition negated, an arithmetic or boolean
operator exchanged, a `return` emptied, `continue` for `break`, a call, an assignment to a part or a `raise` deleted.
"""

from __future__ import annotations

import ast
import copy
import gc
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("analysis", "comparison", "diagnosis", "execution", "formats", "memory_checks", "pictures", "report", "serving"),
)
COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATE = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Mutant(NamedTuple):
    """One fault."""

    file: str
    line: int
    what: str
    place: int
    """Of the expression among those of the file that can be changed."""


def sites(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The expressions of a module that can be changed, in a fixed order, with what becomes of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
            yield node, f"{type(node.ops[0]).__name__} → {COMPARE[type(node.ops[0])].__name__}"
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATE and not is_text(node):
            yield node, f"{type(node.op).__name__} → {OPERATE[type(node.op)].__name__}"
        elif isinstance(node, ast.BoolOp):
            yield node, "and ↔ or"
        elif isinstance(node, ast.If | ast.IfExp | ast.While) and not is_type_checking(node.test):
            yield node, "condition negated"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, f"{node.value} → {node.value + 1}"
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield node, f"{node.value} → {not node.value}"
        elif isinstance(node, ast.Return) and node.value is not None and not is_nothing(node.value):
            yield node, "return None"
        elif isinstance(node, ast.Continue):
            yield node, "continue → break"
        elif is_effect(node):
            yield node, "statement deleted"


def is_text(node: ast.BinOp) -> bool:
    """Unions of types, and texts put together."""
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and not isinstance(part.value, int))
        for part in parts
    )


def is_effect(node: ast.AST) -> bool:
    """A statement that assigns no name: without it the code still runs."""
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )


def is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def change(node: Any) -> None:
    """Put the fault in."""
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = OPERATE[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)


class Exchange(ast.NodeTransformer):
    """One statement for another."""

    def __init__(self, wanted: ast.AST) -> None:
        self.wanted = wanted

    def visit(self, node: ast.AST) -> Any:
        if node is not self.wanted:
            return self.generic_visit(node)
        return ast.copy_location(ast.Break() if isinstance(node, ast.Continue) else ast.Pass(), node)


def parsed(path: Path) -> ast.Module:
    """The module without annotations, which nothing runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = None
    return tree


def mutants(rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """Every fault that can be put in."""
    found = []
    for room in rooms:
        for path in sorted((ROOT / "artifact_inspector" / room).rglob("*.py")):
            for place, (node, what) in enumerate(sites(parsed(path))):
                found.append(Mutant(str(path.relative_to(ROOT)), getattr(node, "lineno", 0), what, place))
    return found


def site_of(mutant: Mutant, tree: ast.AST) -> Any:
    return next(node for place, (node, _) in enumerate(sites(tree)) if place == mutant.place)


def code_of(mutant: Mutant) -> CodeType:
    """The module with its fault."""
    tree: ast.AST = parsed(ROOT / mutant.file)
    node = site_of(mutant, tree)
    if isinstance(node, ast.Continue) or is_effect(node):
        tree = Exchange(node).visit(tree)
    else:
        change(node)
    return compiled(tree, mutant.file)


def compiled(tree: Any, file: str) -> CodeType:
    return compile(ast.fix_missing_locations(copy.deepcopy(tree)), str(ROOT / file), "exec")


def first_line(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """As a code object has it: that of the first decorator."""
    return min([definition.lineno, *(one.lineno for one in definition.decorator_list)])


def lines_of(mutant: Mutant) -> list[int]:
    """First lines of the functions that have the fault: the innermost, and those around it."""
    tree = parsed(ROOT / mutant.file)
    node = site_of(mutant, tree)
    return [
        first_line(one)
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and any(inner is node for inner in ast.walk(one))
    ]


def names_of(mutant: Mutant) -> list[str]:
    """The function and the class that have the fault."""
    tree = parsed(ROOT / mutant.file)
    node = site_of(mutant, tree)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [one.name for one in ast.walk(tree) if isinstance(one, kinds) and any(a is node for a in ast.walk(one))]


Swap = tuple[CodeType, CodeType]


def swaps(before: CodeType, after: CodeType) -> list[Swap] | None:
    """Functions that have another code with a fault than without; nothing where what runs at import has it."""
    if before == after:
        return []
    if before.co_flags & CO_OPTIMIZED:
        return [(before, after)]
    inner, other = ([one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after))
    if len(inner) != len(other) or own(before) != own(after):
        return None
    found: list[Swap] = []
    for pair in zip(inner, other, strict=True):
        within = swaps(*pair)
        if within is None:
            return None
        found += within
    return found


def own(code: CodeType) -> tuple[object, ...]:
    """What of a code is not that of functions in it."""
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, constants


Place = tuple[str, str, int, object]
Functions = dict[Place, list[FunctionType]]


def place_of(code: CodeType) -> Place:
    """File, name, line, and where it ends, as a line may have several lambdas."""
    end = max((line or 0, column or 0) for _, line, _, column in code.co_positions())
    return code.co_filename, code.co_qualname, code.co_firstlineno, end


def functions() -> Functions:
    """Every function of the rooms that lives in this process, by its place."""
    gc.unfreeze()
    found: Functions = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(FILES):
            found.setdefault(place_of(one.__code__), []).append(one)
    gc.freeze()
    return found


FILES = tuple(str(ROOT / "artifact_inspector" / room) for room in ROOMS)


def put_in(mutant: Mutant, living: Functions) -> bool | None:
    """Give the functions that live their fault; whether it went, or nothing if no code is another one."""
    tree = parsed(ROOT / mutant.file)
    found = swaps(compiled(tree, mutant.file), code_of(mutant))
    if found == []:
        return None
    for before, after in found or ():
        for function in living.get(place_of(before), ()):
            if function.__code__.co_freevars != after.co_freevars:
                return False
            function.__code__ = after
            found = [one for one in found or () if one[0] is not before]
    return found == []


class Faulty(MetaPathFinder, Loader):
    """Imports the one module with its fault, all others as they are."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        found = PathFinder.find_spec(name, path)
        assert found is not None
        return ModuleSpec(name, self, origin=found.origin)

    def exec_module(self, module: Any) -> None:
        exec(self.code, vars(module))
