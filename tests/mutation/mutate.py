"""Are the tests of `analysis/` and `comparison/` any good: small faults put in, one at a time, and what notices.

    python tests/mutation/mutate.py --count 200 --seed 1 --out mutants.jsonl

A mutant is one change of one expression: a comparison turned, a constant moved by one, a condition negated, an
arithmetic or boolean operator exchanged, a `return` emptied, `continue` for `break`. Each runs in a child of a
process that has pytest loaded, first against the unit tests that name its module, its own first; what survives
them against an independent judge of its room, if there is one, then against digests of what rules make of grids of inputs, the
facts of every saved kernel and what is said of several together, and what survives those too against the cases, and the tests of the corpus on two
directories of fixtures and the golden reports. A
run that is stopped goes on where it was: what `--out` lists is not run again. `--most 25` stops after so many.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import io
import json
import os
import random
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "comparison")
JUDGES = {
    "analysis/shared": ("tests/oracle/test_scratch_of_releases.py", "tests/oracle/test_shared_memory.py"),
    "analysis/resources": ("tests/oracle/test_occupancy.py", "tests/oracle/test_resources.py"),
}
"""Room → the tests that hold its answers against somebody else's."""
LATER = {
    "values": ("tests/unit/test_frozen.py",),
    "grids": ("tests/golden/test_grids.py",),
    "facts": ("tests/golden/test_facts.py", "tests/golden/test_views.py"),
    "cases": ("tests/cases",),
    "corpus": ("tests/corpus", "tests/golden", "-k", "3.6.0/sm_80/ or 3.6.0/gfx942/ or golden"),
}
"""What is run of those that survive the unit tests."""
SECONDS = 90
"""Of processor time, for one run of tests: several times what the longest takes."""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--assert=plain")
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


def is_text(node: ast.BinOp) -> bool:
    """Unions of types, and texts put together."""
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and not isinstance(part.value, int))
        for part in parts
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


class Break(ast.NodeTransformer):
    """One `continue` as `break`."""

    def __init__(self, wanted: ast.AST) -> None:
        self.wanted = wanted

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return ast.copy_location(ast.Break(), node) if node is self.wanted else node


def parsed(path: Path) -> ast.Module:
    """The module without annotations, which nothing runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = None
    return tree


def mutants() -> list[Mutant]:
    """Every fault that can be put in."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / "artifact_inspector" / room).rglob("*.py")):
            for place, (node, what) in enumerate(sites(parsed(path))):
                found.append(Mutant(str(path.relative_to(ROOT)), getattr(node, "lineno", 0), what, place))
    return found


def code_of(mutant: Mutant) -> CodeType:
    tree = parsed(ROOT / mutant.file)
    node = next(node for place, (node, _) in enumerate(sites(tree)) if place == mutant.place)
    if isinstance(node, ast.Continue):
        tree = Break(node).visit(tree)
    else:
        change(node)
    return compile(ast.fix_missing_locations(copy.deepcopy(tree)), str(ROOT / mutant.file), "exec")


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


def tests_of(file: str) -> list[str]:
    """The unit tests that import a module, most likely the ones that are its own first."""
    name = file.removesuffix(".py").replace("/", ".")
    room, stem = Path(file).parts[-2], Path(file).stem
    own = (f"test_{stem}.py", f"test_{room}_{stem}.py")
    naming = [
        path
        for path in (ROOT / "tests" / "unit").glob("test_*.py")
        if path.name in own or re.search(rf"\b{re.escape(name)}\b", path.read_text(encoding="utf-8"))
    ]
    return [
        str(path.relative_to(ROOT))
        for path in sorted(naming, key=lambda path: (path.name not in own, path.name))
    ]


def run(mutant: Mutant, tests: Sequence[str]) -> str:
    """`killed`, `survived` or `slow`, in a child that has the fault; a loop that never ends is `slow`."""
    child = os.fork()
    if child == 0:
        code = 1
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                import pytest

                sys.meta_path.insert(
                    0, Faulty(mutant.file.removesuffix(".py").replace("/", "."), code_of(mutant))
                )
                code = pytest.main([*OPTIONS, *tests])
            except BaseException:  # noqa: BLE001 - whatever it is, the fault was noticed
                code = 1
        os._exit(0 if code == 0 else 1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "slow"
    return "killed" if os.WEXITSTATUS(status) else "survived"


def end_of(mutant: Mutant, until: str) -> str:
    """Which tests notice a fault, `survived` or `slow`."""
    judge = JUDGES.get("/".join(Path(mutant.file).parts[1:3]), ())
    for name, tests in {"units": tests_of(mutant.file), "judge": judge, **LATER}.items():
        end = run(mutant, tests) if tests else "survived"
        if end != "survived" or name == until:
            return name if end == "killed" else end
    return "survived"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    options.add_argument("--most", type=int, help="Stop after so many that were not run before.")
    options.add_argument(
        "--until", default="corpus", choices=("units", *LATER), help="The last tests that are run."
    )
    asked = options.parse_args()
    os.chdir(ROOT)
    import hypothesis  # noqa: F401 - loaded once for all children
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import rich.console  # noqa: F401
    import typer.testing  # noqa: F401

    chosen = random.Random(asked.seed).sample(mutants(), asked.count)
    known = {}
    if asked.out.exists():
        rows = [json.loads(line) for line in asked.out.read_text(encoding="utf-8").splitlines()]
        known = {(row["file"], row["place"]): row["end"] for row in rows}
    ends: dict[str, int] = {}
    left = len(chosen) if asked.most is None else asked.most
    with asked.out.open("a", encoding="utf-8") as log:
        for number, mutant in enumerate(chosen, 1):
            end = known.get((mutant.file, mutant.place))
            if end is None and left <= 0:
                break
            if end is None:
                left -= 1
                end = end_of(mutant, asked.until)
                log.write(json.dumps({**mutant._asdict(), "end": end}) + "\n")
                log.flush()
            ends[end] = ends.get(end, 0) + 1
            print(f"{number}/{asked.count} {end:8} {mutant.file}:{mutant.line} {mutant.what}", flush=True)
    print(ends)


if __name__ == "__main__":
    main()
