"""Edits of a kernel's source that act on a cause, made on its syntax tree. None is proven here: callers verify them.

Each edit keeps every line that it does not change, so that a patch is small.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    rounding: float = 0.0
    """Share of a result of positive terms by which it may differ; 0 if the edit keeps every operation and its order."""

    def as_patch(self, original: str, name: str) -> str:
        """The edit as a unified diff."""
        lines = unified_diff(original.splitlines(True), self.text.splitlines(True), f"a/{name}", f"b/{name}")
        return "".join(lines)


def propose_edits(
    source: str, kernel: str, causes: Sequence[Cause], numbers: Mapping[str, int] = {}, *, is_blackwell: bool = False
) -> Iterator[SourceEdit]:
    """Edits of a kernel for its causes, the first cause first.

    Args:
        is_blackwell: whether the target has tensor memory, which some flags of loops use.
    """
    function = find_kernel(source, kernel)
    proposed = set()
    if function is None:
        return
    for cause in causes:
        rewrite = _REWRITES.get(cause.kind)
        lines = [int(item.rpartition(":")[2]) for item in (cause.line, *cause.more_lines) if item is not None]
        for line in lines if rewrite is not None else ():
            assert rewrite is not None
            text = KernelText(source, function, numbers, is_blackwell=is_blackwell)
            for edit in rewrite(text, line, cause.kind):
                if edit.text != source and edit.text not in proposed:
                    proposed.add(edit.text)
                    yield edit


def find_kernel(source: str, name: str) -> ast.FunctionDef | None:
    """The function of a kernel; None if there is none, or the file is no Python."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except SyntaxError:
        return None
    return next((node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name), None)


class KernelText:
    """A kernel's statements, and edits of its lines."""

    def __init__(
        self, source: str, function: ast.FunctionDef, numbers: Mapping[str, int], *, is_blackwell: bool
    ) -> None:
        self.numbers, self.is_blackwell = numbers, is_blackwell
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
        return [item for item in self.statements if item.lineno <= line <= (item.end_lineno or item.lineno)]

    def reaching(self, node: ast.AST) -> set[str]:
        """Names that an expression depends on, through assignments."""
        visited: set[str] = set()
        worklist = [node]
        while worklist:
            for name in _names(worklist.pop()):
                if name not in visited:
                    visited.add(name)
                    worklist += [item.value for item in self.definitions.get(name, ())]
        return visited

    def loops_around(self, node: ast.stmt) -> list[ast.For | ast.While]:
        """Loops that contain a statement, the outermost first."""
        return [
            item for item in ast.walk(self.function) if isinstance(item, (ast.For, ast.While)) and _contains(item, node)
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
        text = "".join(f"{self.indent(node)}{ast.unparse(item)}\n" for item in replacements)
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
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def calls_of(node: ast.AST, name: str) -> list[ast.Call]:
    """The calls of a method, such as `tl.load`."""
    return [
        item
        for item in ast.walk(node)
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == name
    ]


def _arange(kernel: KernelText, node: ast.AST) -> str | None:
    """The extent of the first `tl.arange(0, N)` that an expression depends on."""
    values = [
        node,
        *(item.value for name in sorted(kernel.reaching(node)) for item in kernel.definitions.get(name, ())),
    ]
    calls = [call for value in values for call in calls_of(value, "arange") if len(call.args) == 2]
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


def _load_once(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Load each element that a division repeats once, and repeat it in registers."""
    for statement in kernel.at(line):
        loads = calls_of(statement, "load")
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
    kernel: KernelText, statement: ast.Assign, load: ast.Call, division: ast.BinOp, tree: ast.AST, kind: CauseKind
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
            for call in calls_of(value, "arange")
        )
    }
    cloned = {n for n in kernel.reaching(load) if n in kernel.definitions and kernel.reaching(ast.Name(n)) & repeated}
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
    for definition in (item for name in cloned for item in kernel.definitions[name]):
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


def _hoist(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
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
        is_load = isinstance(statement, ast.Assign) and target is not None and calls_of(statement, "load")
        if is_load and kernel.loops_around(statement)[-1:] == [loop] and not changed & _names(statement.value):
            moved += f"{kernel.indent(loop)}{ast.unparse(statement)}\n"
            removed.update(dict.fromkeys(range(statement.lineno, (statement.end_lineno or 0) + 1)))
            if statement not in loop.body:  # a branch that may be left empty
                removed[statement.lineno] = f"{kernel.indent(statement)}pass\n"
            names.append(str(target))
    if names:
        label = f"line {line}: load {', '.join(names)} before the loop"
        yield SourceEdit(label, kind, kernel.replaced(removed, {loop.lineno: moved}))


def _use_tf32(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """All dots on the matrix unit with the operands as they are loaded, or with tf32 operands."""
    yield from _narrow_dot(kernel, line, kind)
    changes: dict[int, str | None] = {}
    for statement in kernel.statements:
        if not calls_of(statement, "dot"):
            continue
        changed = copy.deepcopy(statement)
        for dot in calls_of(changed, "dot"):
            dot.keywords = [item for item in dot.keywords if item.arg not in ("input_precision", "allow_tf32")]
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


def _narrow_offsets(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Offsets in 32 bits."""
    changes: dict[int, str | None] = {}
    for statement in kernel.statements:
        changed = _CastRemover("tl.int64").visit(copy.deepcopy(statement))
        if ast.dump(changed) != ast.dump(statement):
            changes.update(kernel.rewrite(statement, changed))
    cost = "offsets must stay below 2^31"
    yield SourceEdit(f"line {line}: 32-bit offsets", kind, kernel.replaced(changes, {}), cost)


def _narrow_dot(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """A dot of its operands as loaded."""
    changes: dict[int, str | None] = {}
    names = {name for item in kernel.at(line) for dot in calls_of(item, "dot") for name in _names(dot)}
    for statement in [*kernel.at(line), *(item for name in names for item in kernel.definitions.get(name, ()))]:
        if calls_of(statement, "dot") or calls_of(statement, "load"):
            changed = _CastRemover("tl.float32").visit(copy.deepcopy(statement))
            if ast.dump(changed) != ast.dump(statement):
                changes.update(kernel.rewrite(statement, changed))
    label = f"line {line}: multiply the operands as they are loaded"
    yield SourceEdit(label, kind, kernel.replaced(changes, {}), rounding=_NARROW_OPERANDS)


def _reduce_once(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Sums per lane in the loop, and one reduction after it."""
    for statement in kernel.at(line):
        loops, name = kernel.loops_around(statement), _target(statement)
        is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
        sums = calls_of(statement, "sum")
        if not loops or name is None or not is_sum or len(sums) != 1 or sums[0] is not statement.value:
            continue
        extent = _arange(kernel, sums[0].args[0])
        uses = [item for item in ast.walk(loops[-1]) if isinstance(item, ast.Name) and item.id == name]
        if extent is None or len(uses) != 1:
            continue
        lanes = f"{name}_lanes"
        start = f"{kernel.indent(loops[-1])}{lanes} = tl.zeros(({extent},), tl.float32)\n"
        end = f"{kernel.indent(loops[-1])}{name} += tl.sum({lanes})\n"
        changed = ast.parse(f"{lanes} += {ast.unparse(sums[0].args[0])}").body[0]
        after = (loops[-1].end_lineno or loops[-1].lineno) + 1
        text = kernel.replaced(kernel.rewrite(statement, changed), {loops[-1].lineno: start, after: end})
        label = f"line {statement.lineno}: sum per lane, and reduce after the loop"
        yield SourceEdit(label, kind, text, rounding=_REORDERED_SUM)


def _flag_loop(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Flags of the innermost loop around a line: stages, unrolling, and those of nested loops and of Blackwell."""
    loops = [loop for statement in kernel.at(line) for loop in kernel.loops_around(statement)]
    loop = loops[-1] if loops else None
    if not isinstance(loop, ast.For) or _range_of(loop) is None:
        return
    multiplies = bool(calls_of(loop, "dot"))
    flags = ["num_stages=3", "num_stages=5"] if not multiplies else []
    flags += ["loop_unroll_factor=4"] if not multiplies else []
    flags += ["flatten=True"] if len(loops) > 1 else []
    flags += ["warp_specialize=True", "disallow_acc_multi_buffer=True"] if kernel.is_blackwell and multiplies else []
    for flag in flags:
        name, _, value = flag.partition("=")
        changed = copy.deepcopy(loop.iter)
        assert isinstance(changed, ast.Call)
        changed.func = ast.parse("tl.range", mode="eval").body
        changed.keywords = [item for item in changed.keywords if item.arg != name]
        changed.keywords.append(ast.keyword(name, ast.parse(value, mode="eval").body))
        header = f"{kernel.indent(loop)}for {ast.unparse(loop.target)} in {ast.unparse(changed)}:\n"
        yield SourceEdit(f"line {loop.lineno}: tl.range with {flag}", kind, kernel.replaced({loop.lineno: header}, {}))


def _range_of(loop: ast.For) -> ast.Call | None:
    """The `range` or `tl.range` of a loop whose header is one line."""
    name = ast.unparse(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
    is_range = name in ("range", "tl.range") and loop.iter.end_lineno == loop.lineno < loop.body[0].lineno
    return loop.iter if is_range and isinstance(loop.iter, ast.Call) else None


class _MaskRemover(ast.NodeTransformer):
    """Removes some masks from loads and stores."""

    def __init__(self, masks: set[str]) -> None:
        self.masks = masks

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if any(item.arg == "mask" and ast.unparse(item.value) in self.masks for item in node.keywords):
            node.keywords = [item for item in node.keywords if item.arg not in ("mask", "other")]
        return node


def _peel_tail(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Complete blocks without the mask of the loop's bound, and the tail with it."""
    loops = [loop for statement in kernel.at(line) for loop in kernel.loops_around(statement)]
    loop = loops[-1] if loops else None
    call = _range_of(loop) if isinstance(loop, ast.For) else None
    if not isinstance(loop, ast.For) or call is None or len(call.args) != 3 or not isinstance(loop.target, ast.Name):
        return
    stop, step = (ast.unparse(argument) for argument in call.args[1:])
    masks = set()
    for load in (item for name in ("load", "store") for item in calls_of(loop, name)):
        for mask in (item.value for item in load.keywords if item.arg == "mask"):
            tests = (
                [d.value for d in kernel.definitions.get(ast.unparse(mask), ())]
                if isinstance(mask, ast.Name)
                else [mask]
            )
            if len(tests) == 1 and _tests_bound(kernel, tests[0], loop.target.id, stop, step):
                masks.add(ast.unparse(mask))
    if not masks:
        return
    complete = copy.deepcopy(loop)
    for statement in complete.body:
        _MaskRemover(masks).visit(statement)
    first, tail = copy.deepcopy(call), copy.deepcopy(call)
    boundary = ast.parse(f"({stop}) // {step} * {step}", mode="eval").body
    first.args[1], tail.args[0] = boundary, boundary
    complete.iter = first
    header = f"{kernel.indent(loop)}for {loop.target.id} in {ast.unparse(tail)}:\n"
    indent = kernel.indent(loop)
    block = "".join(f"{indent}{row}\n" for row in ast.unparse(ast.fix_missing_locations(complete)).splitlines())
    text = kernel.replaced({loop.lineno: header}, {loop.lineno: block})
    cost = "code size (the loop's body is there twice)"
    yield SourceEdit(f"line {loop.lineno}: complete blocks without masks, then the tail", kind, text, cost)


def _tests_bound(kernel: KernelText, test: ast.AST, index: str, stop: str, step: str) -> bool:
    """Whether a test is `index + tl.arange(0, step) < stop`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt):
        return False
    reached = {*_names(test.left), *kernel.reaching(test.left)}
    return ast.unparse(test.comparators[0]) == stop and index in reached and _arange(kernel, test.left) == step


class _ProgramNamer(ast.NodeTransformer):
    """Replaces the program ids of both axes by names."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        text = ast.unparse(node)
        return {"tl.program_id(0)": ast.Name("grouped_0"), "tl.program_id(1)": ast.Name("grouped_1")}.get(text, node)


def _group_programs(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """CTAs in groups of columns, so that those that run together share rows and columns."""
    changes: dict[int, str | None] = {}
    ids = set()
    for statement in kernel.statements:
        ids |= {ast.unparse(call) for call in calls_of(statement, "program_id")}
        changed = _ProgramNamer().visit(copy.deepcopy(statement))
        if ast.dump(changed) != ast.dump(statement):
            changes.update(kernel.rewrite(statement, changed))
    if ids < {"tl.program_id(0)", "tl.program_id(1)"} or not changes:
        return
    first = min(kernel.function.body[bool(ast.get_docstring(kernel.function))].lineno, *changes)
    sizes = "tl.program_id(1), tl.program_id(0), tl.num_programs(1), tl.num_programs(0)"
    for group in (8, 4):
        text = f"{kernel.indent(kernel.function.body[0])}grouped_1, grouped_0 = tl.swizzle2d({sizes}, {group})\n"
        yield SourceEdit(f"CTAs in groups of {group} (tl.swizzle2d)", kind, kernel.replaced(changes, {first: text}))


class _FactorMarker(ast.NodeTransformer):
    """Marks products with some arguments as multiples of 16."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        factors = {ast.unparse(node.left), ast.unparse(node.right)}
        if not isinstance(node.op, ast.Mult) or not self.names & factors:
            return node
        ranks = [
            len(item.slice.elts)
            for item in ast.walk(node)
            if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Tuple)
        ]
        multiples = ", ".join(["16"] * max(ranks, default=1))
        return ast.parse(f"tl.multiple_of({ast.unparse(node)}, [{multiples}])", mode="eval").body


def _mark_multiples(kernel: KernelText, line: int, kind: CauseKind) -> Iterator[SourceEdit]:
    """Offsets that are multiples of 16 in this launch, so that accesses can be wide."""
    names = {name for name, value in kernel.numbers.items() if value > 1 and value % 16 == 0}
    statements = [*kernel.at(line)]
    reached = set().union(*(kernel.reaching(item) for item in statements), set())
    statements += [item for name in reached for item in kernel.definitions.get(name, ())]
    changes: dict[int, str | None] = {}
    for statement in statements:
        changed = _FactorMarker(names).visit(copy.deepcopy(statement))
        if ast.dump(changed) != ast.dump(statement):
            changes.update(kernel.rewrite(statement, changed))
    used = sorted(names & reached)
    cost = f"{', '.join(used)} must stay a multiple of 16"
    yield SourceEdit(f"line {line}: mark offsets as multiples of 16", kind, kernel.replaced(changes, {}), cost)


_REORDERED_SUM = 2.0**-16
"""Relative error of a sum of positive fp32 terms in another order: 256 times the unit roundoff."""
_NARROW_OPERANDS = 2.0**-8
"""Relative error of a product whose operands are rounded to bf16, the least precise type that dots widen."""
_REWRITES: dict[CauseKind, Callable[[KernelText, int, CauseKind], Iterator[SourceEdit]]] = {
    CauseKind.REDUNDANT_LOAD: _load_once, CauseKind.INVARIANT_LOAD: _hoist, CauseKind.FP32_DOT: _use_tf32,
    CauseKind.WIDE_DOT: _narrow_dot, CauseKind.INT64: _narrow_offsets,
    CauseKind.REDUCTION_PER_TRIP: _reduce_once, CauseKind.SERIAL_LOOP: _flag_loop,
    CauseKind.DRAINED_PIPELINE: _flag_loop, CauseKind.MASKS: _peel_tail, CauseKind.REFETCHED: _group_programs,
    CauseKind.NARROW_ACCESS: _mark_multiples
}  # fmt: skip
