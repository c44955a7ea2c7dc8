"""Types and constants of a kernel's arguments, derived from its source where nothing states them.

An argument is a pointer if loads and stores start from it. Its elements are integers where bits of a loaded value
are selected or it is part of an address, else fp16.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NUMBERS = (
    (re.compile(r"(n_?)?(batch(_?size)?|bsz?|z)", re.IGNORECASE), 8),
    (re.compile(r"(n|num)?_?(q_?|kv_?)?(heads?|h|hq|nh)", re.IGNORECASE), 32),
    (re.compile(r"(head_?)?dim|d|dh|d_?head|d_?model", re.IGNORECASE), 128),
    (re.compile(r"v|vocab\w*|n_?vocab", re.IGNORECASE), 32768),
    (re.compile(r"group(_?size)?|gs", re.IGNORECASE), 128),
    (re.compile(r"pad\w*|offset|start|begin|seed", re.IGNORECASE), 0),
)
"""Numbers of a launch."""
STRIDE = re.compile(r"(stride|ld[abc]?$|s\d$|.*_stride)", re.IGNORECASE)
FLOATS = re.compile(r"eps\w*|lr|\w*scale|alpha|beta\w*|theta|p|prob|momentum|\w*decay|sm_scale|slope", re.IGNORECASE)
CONSTANTS = (
    (re.compile(r"\w*BLOCK\w*_?K|BK|TILE_K", re.IGNORECASE), 32),
    (re.compile(r"\w*BLOCK\w*_?[MN]|B[MN]|TILE_[MN]", re.IGNORECASE), 64),
    (re.compile(r"GROUP_SIZE_?M|GROUP_M", re.IGNORECASE), 8),
    (re.compile(r"GROUP\w*", re.IGNORECASE), 128),
    (re.compile(r"HEAD_?DIM\w*|D|DK|DV|\w*_DIM", re.IGNORECASE), 64),
    (re.compile(r"SPLIT\w*|NUM_SPLITS", re.IGNORECASE), 4),
    (re.compile(r"(IS|HAS|USE|EVEN|CAUSAL|MASK)\w*|\w*_(MODE|AFFINE)", re.IGNORECASE), False),
    (re.compile(r"N_?COLS|COLS|HIDDEN\w*|[MNK]|FEATURES\w*", re.IGNORECASE), 1024),
    (re.compile(r"\w*BLOCK\w*|TILE\w*|\w*SIZE", re.IGNORECASE), 1024),
)
"""Constants to compile with."""
_ACCESSES = ("load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg")
_OTHER_CONSTANT = 16


class DerivedArguments(NamedTuple):
    """What a kernel is compiled with."""

    signature: str
    """In the notation of `triton.tools.compile`, with names."""
    constants: dict[str, Any]
    """Constants that have no default."""


def derive_arguments(source: str, kernel: str) -> DerivedArguments | None:
    """The arguments of a kernel; None if the file has no such function."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == kernel]
    if not functions:
        return None
    function = functions[0]
    parameters = function.args.args
    defaults = dict(
        zip((member.arg for member in reversed(parameters)), reversed(function.args.defaults), strict=False)
    )
    constants: dict[str, Any] = {}
    types = []
    pointers = _pointers(function)
    integers = _index_tensors(function)
    for parameter in parameters:
        name, annotation = parameter.arg, "" if parameter.annotation is None else ast.unparse(parameter.annotation)
        if annotation.endswith("constexpr"):
            if name not in defaults:
                constants[name] = value_for(name, CONSTANTS, _OTHER_CONSTANT)
        elif name in pointers:
            types.append(f"{name}=*{'i32' if name in integers else 'fp16'}:16")
        elif name not in defaults:
            types.append(f"{name}={'fp32' if FLOATS.fullmatch(name) else 'i32:16'}")
    return DerivedArguments(",".join(types), constants)


def specialise(signature: str, arguments: Mapping[str, Any]) -> str:
    """A derived signature as Triton compiles it for a launch: 1 is a constant, 17 no multiple of 16.

    Example:
        >>> specialise("n=i32:16,stride=i32:16,m=i32:16", {"n": 64, "stride": 1, "m": 17})
        'n=i32:16,stride=1,m=i32'
    """
    for name, value in arguments.items():
        if type(value) is int and value % 16:
            signature = re.sub(rf"\b{name}=i32:16\b", f"{name}={1 if value == 1 else 'i32'}", signature)
    return signature


def _flows(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Variable → the expressions that are assigned to it."""
    flows: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            flows.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            flows.setdefault(node.target.id, []).append(node.value)
    return flows


def _accesses(node: ast.AST, names: tuple[str, ...] = _ACCESSES) -> list[ast.Call]:
    return [
        member
        for member in ast.walk(node)
        if isinstance(member, ast.Call)
        and isinstance(member.func, ast.Attribute)
        and member.func.attr in names
        and member.args
    ]


def _leftmost(node: ast.expr, flows: dict[str, list[ast.expr]], depth: int = 8) -> set[str]:
    """Names that a pointer expression starts from: the left operand of each sum."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        node = node.left
    if not isinstance(node, ast.Name) or depth == 0:
        return set()
    sources = [source for source in flows.get(node.id, ()) if node.id not in _plain_names(source)]
    return {node.id}.union(*(_leftmost(source, flows, depth - 1) for source in sources))


def _plain_names(node: ast.AST) -> set[str]:
    return {member.id for member in ast.walk(node) if isinstance(member, ast.Name)}


def _pointers(function: ast.FunctionDef) -> set[str]:
    flows = _flows(function)
    roots = set().union(*(_leftmost(call.args[0], flows) for call in _accesses(function)), set())
    named = {
        member.arg for member in function.args.args if re.search(r"(^p_|_?ptrs?$|^ptr)", member.arg, re.IGNORECASE)
    }
    return roots | named


def _index_tensors(function: ast.FunctionDef) -> set[str]:
    """Pointers whose loaded values have their bits selected, or are used in addresses."""
    flows = _flows(function)
    indexing: set[str] = set()
    for call in _accesses(function):
        indexing |= _plain_names(call.args[0])
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.RShift, ast.BitAnd, ast.LShift)):
            indexing |= _plain_names(node.left)
    worklist = list(indexing)
    while worklist:
        for source in flows.get(worklist.pop(), ()):
            if not _accesses(source, ("load",)):
                new = _plain_names(source) - indexing
                indexing |= new
                worklist += new
    loads = [call for name in indexing for source in flows.get(name, ()) for call in _accesses(source, ("load",))]
    return set().union(*(_leftmost(call.args[0], flows) for call in loads), set())


def value_for(name: str, table: Sequence[tuple[re.Pattern[str], Any]], default: Any = None) -> Any:
    """The value of the first pattern that a name matches completely."""
    return next((value for pattern, value in table if pattern.fullmatch(name)), default)
