"""Import a kernel from `FILE.py:NAME` or `module:NAME`, with its parameters, configurations and heuristics.

This module runs in the compiling process, which has Triton. A file of a package is imported by its dotted
name, so that its relative imports work; any other file with its own directory on the path. The wrappers of
`@triton.autotune`, `@triton.heuristics` and of libraries are removed.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from artifact_inspector.compiling.reference import Reference
from artifact_inspector.compiling.signature import MISSING, Parameter, ValueUnknownError, read_literal
from artifact_inspector.errors import CompileError, UsageError

# Options of Triton 3.2 and 3.3 that partition warps; the default is 0.
_PARTITIONS = ("num_buffers_warp_spec", "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer")
# Fields of triton.Config beside the constants, in any version.
_CONFIG_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", *_PARTITIONS, "ir_override")
T = TypeVar("T")
_WRAPPED = ("fn", "jit_function", "_jit_function", "__wrapped__")


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration of an autotuner."""

    constants: Mapping[str, Any]
    options: Mapping[str, Any]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in {**self.constants, **self.options}.items())


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with the arguments of its decorators."""

    place: str
    name: str
    function: Any
    """The JITFunction, without wrappers."""
    parameters: tuple[Parameter, ...]
    configs: tuple[Config, ...]
    heuristics: tuple[tuple[str, Callable[[Mapping[str, Any]], Any]], ...]
    """Argument → the function that computes it from the others, outermost decorator first."""
    reference: Reference | None
    """Its `Reference`, if the place names one."""

    def derive(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the heuristics compute without a launch."""
        values = dict(known)
        for name, compute in self.heuristics:
            if name in known and known[name] is not None:
                continue  # an explicit value overrides the heuristic
            try:
                values[name] = compute(values)
            except (ValueUnknownError, KeyError):
                continue  # it needs a value of the launch: the argument is reported as missing
            except Exception as error:  # the user's own function
                raise CompileError(
                    f"{self.name}: the heuristic for {name} failed: {type(error).__name__}: {error}.",
                    f"Give its value with --const {name}=….",
                ) from error
        return {name: value for name, value in values.items() if name not in known}


def split_place(place: str) -> tuple[str, str | None]:
    """Split a place into the file or module, and the name if there is one."""
    head, colon, name = place.rpartition(":")
    if not colon or "/" in name or name.endswith(".py"):
        return place, None
    return head, name or None


def load_kernel(place: str) -> Kernel:
    """Import the kernel at a place.

    Raises:
        UsageError: there is no such file, module or kernel.
        CompileError: the file cannot be imported.
    """
    where, name = split_place(place)
    module = _import(where)
    if name is None and isinstance(getattr(module, "REFERENCE", None), Reference):
        name = "REFERENCE"
    found = _sole_kernel(module, where) if name is None else _attribute(module, where, name)
    reference = found if isinstance(found, Reference) else None
    wrapped = found.kernel if isinstance(found, Reference) else found
    configs: tuple[Config, ...] = ()
    heuristics: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = []
    for layer in _layers(wrapped):
        if isinstance(listed := getattr(layer, "configs", None), (list, tuple)) and not configs:
            configs = tuple(_config(one) for one in listed)
        if isinstance(values := getattr(layer, "values", None), Mapping):
            heuristics += values.items()
        if _is_kernel(layer):
            if not configs and reference is not None:
                configs = tuple(_config(one) for one in reference.configs)
            return Kernel(
                place, layer.__name__, layer, _parameters(layer), configs, tuple(heuristics), reference
            )
    raise UsageError(
        f"{name} in {where} is a {type(wrapped).__name__}, not a Triton kernel.", _kernels_listed(module)
    )


def read_constant(written: Sequence[Any], kernel: Kernel) -> Any:
    """Evaluate a constant of a request.

    Args: written: `("value", JSON)`, `("place", FILE.py:FUNCTION)` or `("text", typed text)`. A text is a
        Python literal, a name in the kernel's module (`tl.float16`, a function), or else a string.
        kernel: the kernel whose module is searched for names.
    """
    kind, value = written
    if kind == "place":
        return load_kernel(value).function
    if kind == "value":
        return tuple(value) if isinstance(value, list) else value
    if (literal := read_literal(value)) is not MISSING:
        return literal
    if re.fullmatch(r"[A-Za-z_][\w.]*", value):
        import triton
        import triton.language as tl

        known = {"tl": tl, "triton": triton, **kernel.function.__globals__}
        first, *rest = value.split(".")
        if first in known:
            found: Any = known[first]
            for name in rest:
                found = getattr(found, name, MISSING)
                if found is MISSING:
                    raise UsageError(f"There is no {value} for a constant of {kernel.name}.")
            return found
    return value


def _import(where: str) -> ModuleType:
    path = Path(where)
    if not where.endswith(".py"):
        return _run_import(where, lambda: importlib.import_module(where))
    if not path.is_file():
        raise UsageError(f"There is no file {where}.", "Name a kernel as FILE.py:KERNEL.")
    path = path.resolve()
    dotted, root = [path.stem], path.parent
    while (root / "__init__.py").is_file():
        dotted.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if dotted[-1] == "__init__":
        dotted.pop()
    if len(dotted) > 1 or (path.stem == "__init__" and dotted):
        name = ".".join(dotted)
        loaded = _run_import(where, lambda: importlib.import_module(name))
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
    # a unique name: two files of one name are two modules, and neither hides a library
    unique = f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    loader = spec.loader
    try:
        _run_import(where, lambda: loader.exec_module(module))
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _run_import(where: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if error.name is not None and error.name in where and not where.endswith(".py"):
            raise UsageError(
                f"There is no module {where}.", "Name a kernel as FILE.py:KERNEL or module:KERNEL."
            ) from error
        raise CompileError(
            f"{where} does not import: {error}.",
            f"Install {top} beside Triton: {sys.executable} -m pip install …",
        ) from error
    except (Exception, SystemExit) as error:
        remedy = f"See the whole error with: python {'' if where.endswith('.py') else '-m '}{where}"
        if any(word in str(error) for word in ("active driver", "CUDA", "NVIDIA driver")):
            remedy = (
                "It needs a GPU at import: move that code below `if __name__ == '__main__':`, or run the "
                "program with `inspect-kernel capture`."
            )
        raise CompileError(
            f"{where} does not import: {type(error).__name__}: {error}{_place_of(error)}.", remedy
        ) from error


def _place_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return ""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f" ({last.filename}:{last.lineno})"


def _attribute(module: ModuleType, where: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, MISSING)
        if found is MISSING:
            near = get_close_matches(name, _kernels(module), 1)
            remedy = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(f"{where} has no {name}.", remedy + _kernels_listed(module))
    return found


def _sole_kernel(module: ModuleType, where: str) -> Any:
    names = _kernels(module)
    if len(names) != 1:
        raise UsageError(
            f"{where} names no kernel." if names else f"{where} has no Triton kernel.",
            f"Name one: {where}:{names[0]}. {_kernels_listed(module)}"
            if names
            else "A kernel is a function under @triton.jit, at the top level of its file.",
        )
    return getattr(module, names[0])


def _kernels(module: ModuleType) -> list[str]:
    """Names of the kernels that the module itself defines, in source order."""
    return [
        name
        for name, value in vars(module).items()
        if any(_is_kernel(layer) and layer.__module__ == module.__name__ for layer in _layers(value))
    ]


def _kernels_listed(module: ModuleType) -> str:
    names = _kernels(module)
    return f"It has {', '.join(names)}." if names else "It has no function under @triton.jit."


def _layers(wrapped: Any) -> Iterator[Any]:
    """Yield a decorated kernel and its inner layers, down to the kernel itself."""
    seen = 0
    while wrapped is not None and seen < 16:
        yield wrapped
        if _is_kernel(wrapped) or isinstance(wrapped, (ModuleType, type)):
            return
        inner = vars(wrapped) if hasattr(wrapped, "__dict__") else {}
        wrapped = next((inner[name] for name in _WRAPPED if inner.get(name) is not None), None)
        seen += 1


def _is_kernel(value: Any) -> bool:
    from triton.runtime.jit import JITFunction

    return isinstance(value, JITFunction)


def _config(config: Any) -> Config:
    options = {name: getattr(config, name, None) for name in _CONFIG_OPTIONS}
    if options["num_ctas"] == 1:
        options["num_ctas"] = None  # the default
    options |= {name: None for name in _PARTITIONS if options[name] == 0}
    return Config(dict(config.kwargs), {name: value for name, value in options.items() if value is not None})


def _parameters(function: Any) -> tuple[Parameter, ...]:
    import inspect

    declared = inspect.signature(function.fn).parameters
    listed = getattr(function, "params", None)  # 2.2 and later
    found = []
    for index, name in enumerate(function.arg_names):
        default = declared[name].default
        param = None if listed is None else listed[index]
        constexpr = index in function.constexprs if param is None else param.is_constexpr
        unlooked = function.do_not_specialize or ()
        type_ = "" if param is None else getattr(param, "annotation_type", "")
        found.append(
            Parameter(
                name,
                constexpr,
                type_ or None,
                MISSING if default is inspect.Parameter.empty else default,
                index not in unlooked and name not in unlooked,
            )
        )
    return tuple(found)
