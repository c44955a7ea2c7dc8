"""Edits of a kernel's source that act on a cause, made on its syntax tree. None is proven here: callers verify them.

Each edit keeps every line that it does not change, so that a patch is small.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from artifact_inspector.diagnosis.cause import Cause, CauseKind


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """A changed source file."""

    label: str
    """`load words of w_ptr once (line 37)`."""
    kind: CauseKind
    """The cause that it acts on."""
    text: str
    """The whole changed file."""
    cost: str = ""
    """What it changes beside time; empty if nothing."""

    def as_patch(self, original: str, name: str) -> str:
        """The edit as a unified diff."""
        lines = unified_diff(original.splitlines(True), self.text.splitlines(True), f"a/{name}", f"b/{name}")
        return "".join(lines)


def propose_edits(source: str, kernel: str, causes: Sequence[Cause]) -> Iterator[SourceEdit]:
    """Edits of a kernel for its causes, the first cause first.

    Args:
        source: text of its file.
        kernel: its name.
        causes: with lines of that file.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == kernel]
    proposed = set()
    for cause in causes if functions else ():
        rewrite = _REWRITES.get(cause.kind)
        line = int(cause.line.rpartition(":")[2]) if cause.line is not None else 0
        for edit in () if rewrite is None else rewrite(_KernelText(source, functions[0]), line, cause.kind):
            if edit.text != source and edit.text not in proposed:
                proposed.add(edit.text)
                yield edit


class _KernelText:
    """A kernel's statements, and edits of its lines."""

    def __init__(self, source: str, function: ast.FunctionDef) -> None:
        self.lines = source.splitlines(True)
        self.function = function
        self.statements = [
            node for node in ast.walk(function) if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr))
        ]
        self.statements.sort(key=lambda node: node.lineno)
        self.definitions: dict[str, list[ast.Assign | ast.AugAssign]] = {}
        for statement in self.statements:
            if isinstance(statement, (ast.Assign, ast.AugAssign)) and (name := _target(statement)) is not None:
                self.definitions.setdefault(name, []).append(statement)

    def at(self, line: int) -> list[ast.Assign | ast.AugAssign | ast.Expr]:
        """The statements on a line."""
        return [one for one in self.statements if one.lineno <= line <= (one.end_lineno or one.lineno)]

    def reaching(self, node: ast.AST) -> set[str]:
        """Names that an expression depends on, through assignments."""
        visited: set[str] = set()
        worklist = [node]
        while worklist:
            for name in _names(worklist.pop()):
                if name not in visited:
                    visited.add(name)
                    worklist += [one.value for one in self.definitions.get(name, ())]
        return visited

    def loops_around(self, node: ast.stmt) -> list[ast.For | ast.While]:
        """Loops that contain a statement, the outermost first."""
        return [
            one for one in ast.walk(self.function) if isinstance(one, (ast.For, ast.While)) and _contains(one, node)
        ]

    def replaced(self, changes: dict[int, str | None], inserted: dict[int, str]) -> str:
        """The file with lines replaced (None removes one) and text inserted before lines; numbers from 1."""
        parts: list[str] = []
        for number, line in enumerate([*self.lines, ""], 1):
            parts.append(inserted.get(number, ""))
            changed = changes.get(number, line)
            parts.append("" if changed is None else changed)
        return "".join(parts)

    def indent(self, node: ast.stmt) -> str:
        """The indentation of a statement."""
        return " " * node.col_offset

    def rewrite(self, node: ast.stmt, *replacements: ast.stmt) -> dict[int, str | None]:
        """Line changes that put other statements in the place of one."""
        text = "".join(f"{self.indent(node)}{ast.unparse(one)}\n" for one in replacements)
        changes: dict[int, str | None] = dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        changes[node.lineno] = text
        return changes


def _contains(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def _target(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return None


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _calls(node: ast.AST, name: str) -> list[ast.Call]:
    return [
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == name
    ]


def _arange(kernel: _KernelText, node: ast.AST) -> str | None:
    """The extent of the first `tl.arange(0, N)` that an expression depends on."""
    values = [node, *(one.value for name in sorted(kernel.reaching(node)) for one in kernel.definitions.get(name, ()))]
    calls = [call for value in values for call in _calls(value, "arange") if len(call.args) == 2]
    return ast.unparse(calls[0].args[1]) if calls else None


class _Renamer(ast.NodeTransformer):
    """Renames variables, and steps one `tl.arange` by a number."""

    def __init__(self, names: dict[str, str], extent: str, step: str) -> None:
        self.names, self.extent, self.step = names, extent, step

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_range = isinstance(node.func, ast.Attribute) and node.func.attr == "arange" and len(node.args) == 2
        if not is_range or ast.unparse(node.args[1]) != self.extent:
            return node
        return ast.parse(f"tl.arange(0, {self.extent} // {self.step}) * {self.step}", mode="eval").body


def _load_once(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Load each element that a division repeats once, and repeat it in registers."""
    for statement in kernel.at(line):
        loads = _calls(statement, "load")
        if not isinstance(statement, ast.Assign) or len(loads) != 1 or not loads[0].args:
            continue
        closure = [loads[0], *(d.value for name in kernel.reaching(loads[0]) for d in kernel.definitions.get(name, ()))]
        divisions = [
            (node, tree)
            for tree in closure
            for node in ast.walk(tree)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and _arange(kernel, node.left)
        ]
        for division, tree in divisions[:1]:
            yield from _repeat_words(kernel, statement, loads[0], division, tree, kind)


def _axis_of(tree: ast.AST, division: ast.BinOp) -> int | None:
    """0 for `x[:, None]`, 1 for `x[None, :]`, around or inside of a division; None for vectors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and (_contains(node, division) or _contains(division, node)):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            if len(parts) == 2:
                return 0 if isinstance(parts[0], ast.Slice) else 1
    return None


def _repeat_words(
    kernel: _KernelText, statement: ast.Assign, load: ast.Call, division: ast.BinOp, tree: ast.AST, kind: CauseKind
) -> Iterator[SourceEdit]:
    extent, step, target = _arange(kernel, division.left), ast.unparse(division.right), _target(statement)
    axis = _axis_of(tree, division)
    if extent is None or target is None:
        return
    repeated = {
        name
        for name in kernel.reaching(load)
        if any(
            ast.unparse(call.args[1]) == extent
            for value in kernel.definitions.get(name, ())
            for call in _calls(value, "arange")
        )
    }
    cloned = {n for n in kernel.reaching(load) if n in kernel.definitions and {n, *_deep(kernel, n)} & repeated}
    others = [
        other
        for name in sorted(kernel.reaching(load) - cloned)
        for value in kernel.definitions.get(name, ())
        if (other := _arange(kernel, value)) is not None and other != extent
    ]
    if axis is not None and not others:
        return
    renamer = _Renamer({name: f"{name}_words" for name in cloned}, extent, step)
    inserted: dict[int, str] = {}
    for definition in (one for name in cloned for one in kernel.definitions[name]):
        clone = renamer.visit(copy.deepcopy(definition))
        after = (definition.end_lineno or definition.lineno) + 1
        inserted[after] = inserted.get(after, "") + f"{kernel.indent(definition)}{ast.unparse(clone)}\n"
    value = ast.unparse(renamer.visit(copy.deepcopy(load)))
    few = f"{extent} // {step}"
    if axis is None:
        spread, wide, final = f"{target}[:, None]", f"({few}, {step})", f"({extent},)"
    elif axis == 0:
        spread, wide, final = f"{target}[:, None, :]", f"({few}, {step}, {others[0]})", f"({extent}, {others[0]})"
    else:
        spread, wide, final = f"{target}[:, :, None]", f"({others[0]}, {few}, {step})", f"({others[0]}, {extent})"
    first = ast.parse(f"{target} = {value}").body[0]
    repeated_value = f"tl.reshape(tl.broadcast_to({spread}, {wide}), {final})"
    outer = ast.unparse(statement.value).replace(ast.unparse(load), repeated_value)
    second = ast.parse(f"{target} = {outer}").body[0]
    text = kernel.replaced(kernel.rewrite(statement, first, second), inserted)
    yield SourceEdit(f"line {statement.lineno}: load {target} once per {step} elements and repeat it", kind, text)


def _deep(kernel: _KernelText, name: str) -> set[str]:
    return set().union(*(kernel.reaching(one.value) for one in kernel.definitions.get(name, ())), set())


def _hoist(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Move loads whose operands no iteration changes to before their loop."""
    loops = [loop for statement in kernel.at(line) for loop in kernel.loops_around(statement)]
    if not loops:
        return
    loop = loops[-1]
    changed = {name for node in ast.walk(loop) if isinstance(node, ast.stmt) and (name := _target(node))}
    changed |= _names(loop.target) if isinstance(loop, ast.For) else set()
    moved, removed, names = "", dict[int, str | None](), []
    for statement in kernel.statements:
        target = _target(statement)
        is_load = isinstance(statement, ast.Assign) and target is not None and _calls(statement, "load")
        if is_load and kernel.loops_around(statement)[-1:] == [loop] and not changed & _names(statement.value):
            moved += f"{kernel.indent(loop)}{ast.unparse(statement)}\n"
            removed.update(dict.fromkeys(range(statement.lineno, (statement.end_lineno or 0) + 1)))
            if statement not in loop.body:  # a branch that may be left empty
                removed[statement.lineno] = f"{kernel.indent(statement)}pass\n"
            names.append(str(target))
    if names:
        label = f"line {line}: load {', '.join(names)} before the loop"
        yield SourceEdit(label, kind, kernel.replaced(removed, {loop.lineno: moved}))


def _use_tf32(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """All dots on the matrix unit with tf32 operands."""
    changes: dict[int, str | None] = {}
    for statement in kernel.statements:
        if not _calls(statement, "dot"):
            continue
        changed = copy.deepcopy(statement)
        for dot in _calls(changed, "dot"):
            dot.keywords = [one for one in dot.keywords if one.arg not in ("input_precision", "allow_tf32")]
            dot.keywords.append(ast.keyword("input_precision", ast.Constant("tf32")))
        changes.update(kernel.rewrite(statement, changed))
    cost = "precision (tf32 has 10 fraction bits)"
    yield SourceEdit(f"line {line}: input_precision='tf32'", kind, kernel.replaced(changes, {}), cost)


class _CastRemover(ast.NodeTransformer):
    """Removes `.to(tl.TYPE)`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) == 1
        return node.func.value if is_cast and ast.unparse(node.args[0]) == self.dtype else node  # type: ignore[attr-defined]


def _narrow_offsets(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Offsets in 32 bits."""
    changes: dict[int, str | None] = {}
    for statement in kernel.statements:
        changed = _CastRemover("tl.int64").visit(copy.deepcopy(statement))
        if ast.dump(changed) != ast.dump(statement):
            changes.update(kernel.rewrite(statement, changed))
    cost = "offsets must stay below 2^31"
    yield SourceEdit(f"line {line}: 32-bit offsets", kind, kernel.replaced(changes, {}), cost)


def _narrow_dot(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """A dot of its operands as loaded."""
    changes: dict[int, str | None] = {}
    names = {name for one in kernel.at(line) for dot in _calls(one, "dot") for name in _names(dot)}
    for statement in [*kernel.at(line), *(one for name in names for one in kernel.definitions.get(name, ()))]:
        if _calls(statement, "dot") or _calls(statement, "load"):
            changed = _CastRemover("tl.float32").visit(copy.deepcopy(statement))
            if ast.dump(changed) != ast.dump(statement):
                changes.update(kernel.rewrite(statement, changed))
    yield SourceEdit(f"line {line}: multiply the operands as they are loaded", kind, kernel.replaced(changes, {}))


def _reduce_once(kernel: _KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Sums per lane in the loop, and one reduction after it."""
    for statement in kernel.at(line):
        loops, name = kernel.loops_around(statement), _target(statement)
        is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
        sums = _calls(statement, "sum")
        if not loops or name is None or not is_sum or len(sums) != 1 or sums[0] is not statement.value:
            continue
        extent = _arange(kernel, sums[0].args[0])
        uses = [one for one in ast.walk(loops[-1]) if isinstance(one, ast.Name) and one.id == name]
        if extent is None or len(uses) != 1:
            continue
        lanes = f"{name}_lanes"
        start = f"{kernel.indent(loops[-1])}{lanes} = tl.zeros(({extent},), tl.float32)\n"
        end = f"{kernel.indent(loops[-1])}{name} += tl.sum({lanes})\n"
        changed = ast.parse(f"{lanes} += {ast.unparse(sums[0].args[0])}").body[0]
        after = (loops[-1].end_lineno or loops[-1].lineno) + 1
        text = kernel.replaced(kernel.rewrite(statement, changed), {loops[-1].lineno: start, after: end})
        yield SourceEdit(f"line {statement.lineno}: sum per lane, and reduce after the loop", kind, text)


_REWRITES: dict[CauseKind, Callable[[_KernelText, int, CauseKind], Iterator[SourceEdit]]] = {
    CauseKind.REDUNDANT_LOAD: _load_once,
    CauseKind.INVARIANT_LOAD: _hoist,
    CauseKind.FP32_DOT: _use_tf32,
    CauseKind.WIDE_DOT: _narrow_dot,
    CauseKind.INT64: _narrow_offsets,
    CauseKind.REDUCTION_PER_TRIP: _reduce_once,
}
