"""One Python file that compiles a kernel of a cache to the same key, and launches it on random inputs.

The file has the statements of the kernel's module that the kernel needs, each on its own line of the original:
Triton's key depends on the text and on the first line of every function. The source is read, never imported.
A function of another module of the same project is not copied: its import stays, and is reported.
"""

from __future__ import annotations

import ast
import pprint
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from symtable import SymbolTable, symtable
from typing import Any, NamedTuple

from artifact_inspector.api.launches import recorded_launches
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.files.cache import Artifact, Cache, read_stage
from artifact_inspector.files.reader import read_user_text

_MAX_VALUES = 4096
"""Elements of a tensor that are written into the file."""
_LIBRARIES = frozenset({"__future__", "math", "functools", "typing", "torch", "triton", "numpy", "os", "sys", "enum"})


class Reproducer(NamedTuple):
    """The text of a reproducer, and what it lacks."""

    text: str
    notes: tuple[str, ...]
    other_line: int | None = None
    """A line on which the cached TTIR has code and the source has none like it; None if all agree."""


def make_reproducer(cache: Cache, artifact: Artifact, kernel_path: str | None = None) -> Reproducer:
    """A standalone file for one kernel.

    Args:
        kernel_path: `FILE.py:KERNEL`; a file that only the record names is not read.

    Raises:
        UsageError: there is no record of its compile, or its source cannot be found or parsed.
    """
    version = artifact.triton_version
    if version is None or version.since((3, 3)) is not True:
        raise UsageError(
            f"{artifact.display_name} was compiled by Triton {version or 'of an unknown version'}.",
            "Reproducers need Triton 3.3 or newer.",
        )
    record = recorded_compile(artifact)
    source, name = _read_source(record.resolve_kernel_path(artifact.display_name, kernel_path), artifact)
    body, imports = _standalone_source(source, name)
    notes = [f"it imports {module}, which is not copied" for module in imports]
    if record.dropped_options:
        notes.append(f"without the options {', '.join(record.dropped_options)}")
    if any(text.startswith("(") for text in record.types.values()):
        raise UsageError(f"{artifact.display_name} has tuples as arguments.", "Reproducers do not support them yet.")
    launch, launch_note = _launch_of(cache, artifact)
    notes += launch_note
    values: dict[str, Any] = {
        "NAME": name,
        "TRITON": str(version),
        "KEY": artifact.hash,
        "TARGET": _target(artifact),
        "TYPES": {name: text.partition(":")[0] for name, text in record.types.items() if not text.endswith(":1")},
        "DIVISIBLE_BY_16": [name for name, text in record.types.items() if text.endswith(":16")],
        "CONSTANTS": {name: 1 for name, text in record.types.items() if text.endswith(":1")}
        | {name: ast.literal_eval(constant.text) for name, constant in record.constants.items()},
        "OPTIONS": dict(record.options),
        "GRID": None if launch is None else tuple(launch.grid),
        "ARGUMENTS": {} if launch is None else {k: _argument(v) for k, v in launch.arguments.items()},
    }
    settings = "".join(
        f"{key} = {pprint.pformat(value, width=100, sort_dicts=False)}\n" for key, value in values.items()
    )
    return Reproducer(f"{body.rstrip()}\n\n\n{_HEAD}{settings}{_TAIL}", tuple(notes), _find_other_line(artifact, body))


def _target(artifact: Artifact) -> tuple[object, object, object]:
    """The arguments of Triton's `GPUTarget`."""
    recorded = artifact.metadata.get("target")
    if not isinstance(recorded, Mapping):
        raise UsageError(f"The metadata of {artifact.display_name} has no target.", "Compile the kernel again.")
    return recorded.get("backend"), recorded.get("arch"), recorded.get("warp_size")


# -- source ----------------------------------------------------------------------------


def _read_source(kernel_path: str, artifact: Artifact) -> tuple[str, str]:
    """The text of the kernel's module, and the name of the kernel in it."""
    module = REFERENCE_KERNELS.get(kernel_path)
    head, _, name = (kernel_path, "", "") if module is not None else kernel_path.rpartition(":")
    if module is not None:
        spec = find_spec(module)
        file, name = "" if spec is None or spec.origin is None else spec.origin, artifact.stem
    else:
        file = head or kernel_path
    if not file.endswith(".py"):
        raise UsageError(f"{kernel_path} names no file.", "Name the kernel as --kernel FILE.py:KERNEL.")
    try:
        return read_user_text(Path(file).expanduser()), name or artifact.stem
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from None


def _standalone_source(text: str, name: str) -> tuple[str, list[str]]:
    """The statements that a function needs, on their lines, and the modules that they import from elsewhere."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"The source of {name} is not Python: {error}.") from None
    bindings: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for bound in _bound_names(statement):
            bindings.setdefault(bound, []).append(statement)
    if name not in bindings:
        raise UsageError(f"The source has no {name} at its top level.", "Name it: --kernel FILE.py:KERNEL.")
    kept: list[ast.stmt] = [
        statement
        for statement in statements
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    ]
    pending, known = [name], {name}
    while pending:
        for statement in bindings.get(pending.pop(), ()):
            if statement not in kept:
                kept.append(statement)
                new = _global_names(symtable(ast.unparse(statement), "", "exec")) - known
                known |= new
                pending += sorted(new)
    lines, output = text.splitlines(), [""] * len(text.splitlines())
    for statement in kept:
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", ()))])
        last = statement.end_lineno or statement.lineno
        output[first - 1 : last] = lines[first - 1 : last]
    return "\n".join(output), list(dict.fromkeys(_foreign_modules(kept)))


def _find_other_line(artifact: Artifact, source: str) -> int | None:
    """The first line of the kernel's file in the TTIR where the source has no expression in that column."""
    text = read_stage(artifact, "ttir").source.text if "ttir" in artifact.files else ""
    first = re.search(r'^#loc = loc\("(.+)":\d+:(\d+)\)', text, re.M)
    if first is None:
        return None
    starts = {  # a release counts columns from 0 or from 1, that of `def` too; the function is dedented
        (node.lineno, node.col_offset - function.col_offset + int(first[2]))
        for function in ast.walk(ast.parse(source))
        if isinstance(function, _SCOPES)
        for node in ast.walk(function)
        if isinstance(node, ast.expr | ast.stmt)
    }
    matches = re.findall(rf'loc\("{re.escape(first[1])}":(\d+):(\d+)\)', text)
    places = {(int(line), int(column)) for line, column in matches if column != first[2]}  # not of a `def`
    return min((line for line, _ in places - starts), default=None)


def _bound_names(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top level defines, also inside of `if` and `try`; none for a main guard."""
    names: set[str] = set()
    if isinstance(statement, ast.If) and "__name__" in {
        x.id for x in ast.walk(statement.test) if isinstance(x, ast.Name)
    }:
        return names
    for node in ast.walk(statement) if not isinstance(statement, _SCOPES) else (statement,):
        if isinstance(node, _SCOPES):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _global_names(table: SymbolTable) -> set[str]:
    """The names of the module that a statement uses; arguments and local variables are none."""
    is_module = table.get_type() == "module"
    names = {symbol.get_name() for symbol in table.get_symbols() if is_module or symbol.is_global()}
    return names.union(*map(_global_names, table.get_children()))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _foreign_modules(statements: Iterable[ast.stmt]) -> Iterable[str]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom) and (
                node.level or (node.module or "").partition(".")[0] not in _LIBRARIES
            ):
                yield "." * node.level + (node.module or "")
            elif isinstance(node, ast.Import):
                yield from (x.name for x in node.names if x.name.partition(".")[0] not in _LIBRARIES)


# -- launch ----------------------------------------------------------------------------


def _launch_of(cache: Cache, artifact: Artifact) -> tuple[LaunchRequest | None, list[str]]:
    """The first recorded launch of the kernel, and a note if there is none to write."""
    try:
        launches = recorded_launches(cache, artifact.hash)
    except UsageError:
        launches = ()
    launch = next((launch for launch in launches if all(isinstance(extent, int) for extent in launch.grid)), None)
    if launch is None:
        return None, ["without a launch: none is on record. Set GRID and ARGUMENTS"]
    return launch, []


def _argument(value: Any) -> Any:
    """An argument as the file has it: a number, or the description of a tensor."""
    if not isinstance(value, Tensor):
        return value
    described: dict[str, Any] = {"shape": value.shape, "stride": value.strides, "dtype": value.dtype}
    if value.block_shape:
        described["block_shape"] = value.block_shape
    if isinstance(value.values, tuple) and len(value.values) <= _MAX_VALUES:
        described["values"] = list(value.values)
    return described


_HEAD = """# -- reproducer, written by inspect-kernel ---------------------------------------------------------
#   python THIS_FILE --compile     compile without a GPU, and compare the key
#   python THIS_FILE               launch on random inputs; with TRITON_INTERPRET=1 without a GPU
"""
_TAIL = """

def _kernel():
    kernel = globals()[NAME]
    while type(kernel).__name__ in ("Autotuner", "Heuristics"):
        kernel = kernel.fn
    return kernel


def _compile():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = _kernel()
    names = kernel.arg_names
    hints = {name: [["tt.divisibility", 16]] for name in DIVISIBLE_BY_16}
    if TARGET[0] == "hip":
        for name, kind in TYPES.items():
            if kind.startswith("*"):
                hints.setdefault(name, []).append(["tt.pointer_range", 32])
    # a launch also lists what it looked at in vain: equal code, another key
    fixed = {parameter.name for parameter in kernel.params if parameter.do_not_specialize}
    looked_at = {name for name, kind in TYPES.items() if kind[0] in "*iu" and kind != "u1"} - fixed
    variants = (looked_at | set(CONSTANTS), looked_at, set())[:: 1 if GRID else -1]
    if getattr(kernel, "is_gluon", bool)():
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    keys = []
    for empty in variants:
        source = ASTSource(
            fn=kernel,
            signature={name: TYPES.get(name, "constexpr") for name in names},
            constexprs={(names.index(name),): CONSTANTS[name] for name in names if name in CONSTANTS},
            attrs={(names.index(name),): hints.get(name, []) for name in names if name in hints or name in empty},
        )
        keys.append(triton.compile(source, target=GPUTarget(*TARGET), options=OPTIONS).metadata.hash)
        if keys[-1] == KEY:
            break
    same = keys[-1] == KEY
    print("key", keys[-1], "as recorded" if same else f"differs from {KEY}")
    if triton.__version__ != TRITON:
        print(f"Triton {triton.__version__} is installed; the key is of {TRITON}")
    return 0 if same else 1


def _make(value, device):
    import torch

    if not isinstance(value, dict):
        return value
    aliases = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "i32": "int32", "i64": "int64", "i8": "int8"}
    dtype = getattr(torch, aliases.get(value["dtype"], value["dtype"]))
    size = 1 + sum((extent - 1) * stride for extent, stride in zip(value["shape"], value["stride"]))
    size = 0 if 0 in value["shape"] else size
    if "values" in value:
        flat = torch.tensor(value["values"], dtype=dtype)
    else:  # zeros for integers: they may be indices
        flat = torch.randn(size).to(dtype) if dtype.is_floating_point else torch.zeros(size, dtype=dtype)
    tensor = torch.as_strided(flat.to(device), value["shape"], value["stride"])
    if "block_shape" in value:
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor(tensor, list(value["shape"]), list(value["stride"]), list(value["block_shape"]))
    return tensor


def _launch():
    import os

    import torch
    import triton

    if GRID is None:
        print("Set GRID and ARGUMENTS: no launch was recorded.")
        return 2
    torch.manual_seed(0)
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    device = "cpu" if is_interpreted else "cuda"
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=device))
    arguments = {name: _make(value, device) for name, value in {**ARGUMENTS, **CONSTANTS}.items()}
    options = {} if is_interpreted else OPTIONS
    _kernel()[GRID](**{name: arguments[name] for name in _kernel().arg_names}, **options)
    if not is_interpreted:
        torch.cuda.synchronize()
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            print(name, tuple(value.shape), value.dtype, "sum", value.double().sum().item())
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(_compile() if "--compile" in sys.argv[1:] else _launch())
"""
