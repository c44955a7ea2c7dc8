"""Import a kernel from `FILE.py:NAME` or `module:NAME`, with its parameters, configurations and heuristics.

This module runs in the compiling process, which has Triton. A file of a package is imported by its dotted
name, so that its relative imports work; any other file with its own directory on the path. The wrappers of
`@triton.autotune`, `@triton.heuristics` and of libraries are removed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from artifact_inspector.compiling.reference import Reference
from artifact_inspector.compiling.signature import MISSING, ParameterDeclaration, ValueUnknownError, read_literal
from artifact_inspector.compiling.worker.inductor import find_kernel_file, reference_of
from artifact_inspector.errors import CompileError, UsageError

# Options of Triton 3.2 and 3.3 that partition warps; the default is 0.
_PARTITION_OPTIONS = ("num_buffers_warp_spec", "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer")
# Fields of triton.Config beside the constants, in any version.
_CONFIG_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", *_PARTITION_OPTIONS, "ir_override")
T = TypeVar("T")
_WRAPPED_ATTRIBUTES = ("fn", "jit_function", "_jit_function", "__wrapped__")


@dataclass(frozen=True, slots=True)
class AutotunerConfig:
    """One configuration of an autotuner."""

    constants: Mapping[str, Any]
    options: Mapping[str, Any]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in {**self.constants, **self.options}.items())


@dataclass(frozen=True, slots=True)
class ImportedKernel:
    """A kernel with the arguments of its decorators."""

    kernel_path: str
    name: str
    function: Any
    """The JITFunction, without wrappers."""
    parameters: tuple[ParameterDeclaration, ...]
    configs: tuple[AutotunerConfig, ...]
    heuristics: tuple[tuple[str, Callable[[Mapping[str, Any]], Any]], ...]
    """Argument → the function that computes it from the others, outermost decorator first."""
    reference: Reference | None
    """Its `Reference`, if the place names one."""

    def derive(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the heuristics compute without a launch."""
        values = dict(arguments)
        for name, compute in self.heuristics:
            if name in arguments and arguments[name] is not None:
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
        return {name: value for name, value in values.items() if name not in arguments}


def split_kernel_path(kernel_path: str) -> tuple[str, str | None]:
    """Split a place into the file or module, and the name if there is one."""
    head, colon, name = kernel_path.rpartition(":")
    if not colon or "/" in name or name.endswith(".py"):
        return kernel_path, None
    return head, name or None


def load_kernel(kernel_path: str) -> ImportedKernel:
    """Import the kernel at a place.

    Raises:
        UsageError: there is no such file, module or kernel.
        CompileError: the file cannot be imported.
    """
    module_path, name = split_kernel_path(kernel_path)
    if module_path.endswith(".py"):
        file, name = find_kernel_file(Path(module_path), name)
        module_path = str(file)
    module = _import_module(module_path)
    if name is None and isinstance(getattr(module, "REFERENCE", None), Reference):
        name = "REFERENCE"
    attribute = _sole_kernel(module, module_path) if name is None else _get_attribute(module, module_path, name)
    reference = attribute if isinstance(attribute, Reference) else None
    decorated_kernel = attribute.kernel if isinstance(attribute, Reference) else attribute
    configs: tuple[AutotunerConfig, ...] = ()
    heuristics: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = []
    for layer in _unwrap_layers(decorated_kernel):
        if isinstance(listed := getattr(layer, "configs", None), (list, tuple)) and not configs:
            configs = tuple(_read_config(config) for config in listed)
        if isinstance(values := getattr(layer, "values", None), Mapping):
            heuristics += values.items()
        reference = reference or reference_of(layer, getattr(layer, "fn", None))
        if _is_kernel(layer):
            listed = configs or tuple(
                _read_config(config) for config in ([] if reference is None else reference.configs)
            )
            parameters = _read_parameters(layer)
            return ImportedKernel(kernel_path, layer.__name__, layer, parameters, listed, tuple(heuristics), reference)
    raise UsageError(
        f"{name} in {module_path} is a {type(decorated_kernel).__name__}, not a Triton kernel.", _list_kernels(module)
    )


def evaluate_constant(tagged_value: Sequence[Any], kernel: ImportedKernel) -> Any:
    """Evaluate a constant of a request.

    Args: written: `("value", JSON)`, `("place", FILE.py:FUNCTION)` or `("text", typed text)`. A text is a
        Python literal, a name in the kernel's module (`tl.float16`, a function), or else a string.
        kernel: the kernel whose module is searched for names.
    """
    kind, value = tagged_value
    if kind == "place":
        return load_kernel(value).function
    if kind == "value":
        return tuple(value) if isinstance(value, list) else value
    if (literal := read_literal(value)) is not MISSING:
        return literal
    if re.fullmatch(r"[A-Za-z_][\w.]*", value):
        import triton
        import triton.language as tl

        names = {"tl": tl, "triton": triton, **kernel.function.__globals__}
        first, *attributes = value.split(".")
        if first in names:
            value_by_name: Any = names[first]
            for name in attributes:
                value_by_name = getattr(value_by_name, name, MISSING)
                if value_by_name is MISSING:
                    raise UsageError(f"There is no {value} for a constant of {kernel.name}.")
            return value_by_name
    return value


def _import_module(module_path: str) -> ModuleType:
    path = Path(module_path)
    if not module_path.endswith(".py"):
        return _run_import(module_path, lambda: importlib.import_module(module_path))
    if not path.is_file():
        raise UsageError(f"There is no file {module_path}.", "Name a kernel as FILE.py:KERNEL.")
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
        loaded = _run_import(module_path, lambda: importlib.import_module(name))
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
        _run_import(module_path, lambda: _execute(loader, module, path))
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _execute(loader: Loader, module: ModuleType, path: Path) -> None:
    """Execute a module; a script that needs a GPU on its top level, after kernels, up to there and its definitions."""
    try:
        loader.exec_module(module)
    except Exception as error:
        lines = [
            frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
        ]
        if not (_needs_gpu(error) and lines and _kernel_names(module)):
            raise
        for statement in ast.parse(path.read_bytes()).body:
            if statement.lineno > lines[0] and isinstance(statement, _DEFINITIONS):
                with suppress(Exception):  # it uses what was not executed; a kernel that does so will not compile
                    exec(compile(ast.Module([statement], []), str(path), "exec"), module.__dict__)


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def _needs_gpu(error: BaseException) -> bool:
    return any(phrase in str(error) for phrase in ("active driver", "CUDA", "NVIDIA driver"))


def _run_import(module_path: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if error.name is not None and error.name in module_path and not module_path.endswith(".py"):
            remedy = "Name a kernel as FILE.py:KERNEL or module:KERNEL."
            raise UsageError(f"There is no module {module_path}.", remedy) from error
        remedy = f"Install {top} beside Triton: {sys.executable} -m pip install …"
        raise CompileError(f"{module_path} does not import: {error}.", remedy) from error
    except (Exception, SystemExit) as error:
        remedy = f"See the full error with: python {'' if module_path.endswith('.py') else '-m '}{module_path}"
        if _needs_gpu(error):
            remedy = (
                "It needs a GPU at import: move that code below `if __name__ == '__main__':`, or run the "
                "program with `inspect-kernel capture`."
            )
        last = traceback.extract_tb(error.__traceback__)[-1]
        location = "" if isinstance(error, SyntaxError) else f" ({last.filename}:{last.lineno})"
        problem = f"{module_path} does not import: {type(error).__name__}: {error}{location}."
        raise CompileError(problem, remedy) from error


def _get_attribute(module: ModuleType, module_path: str, name: str) -> Any:
    attribute: Any = module
    for attribute_name in name.split("."):
        attribute = getattr(attribute, attribute_name, MISSING)
        if attribute is MISSING:
            similar_names = get_close_matches(name, _kernel_names(module), 1)
            remedy = f"Did you mean {similar_names[0]}? " if similar_names else ""
            raise UsageError(f"{module_path} has no {name}.", remedy + _list_kernels(module))
    return attribute


def _sole_kernel(module: ModuleType, module_path: str) -> Any:
    names = _kernel_names(module)
    if len(names) != 1:
        if not names:
            remedy = "A kernel is a function under @triton.jit, at the top level of its file."
            raise UsageError(f"{module_path} has no Triton kernel.", remedy)
        remedy = f"Name one: {module_path}:{names[0]}. {_list_kernels(module)}"
        raise UsageError(f"{module_path} names no kernel.", remedy)
    return getattr(module, names[0])


def _kernel_names(module: ModuleType) -> list[str]:
    """Names of the kernels that the module itself defines, in source order."""
    return [
        name
        for name, value in vars(module).items()
        if any(_is_kernel(layer) and layer.__module__ == module.__name__ for layer in _unwrap_layers(value))
    ]


def _list_kernels(module: ModuleType) -> str:
    names = _kernel_names(module)
    return f"It has {', '.join(names)}." if names else "It has no function under @triton.jit."


def _unwrap_layers(wrapped: Any) -> Iterator[Any]:
    """Yield a decorated kernel and its inner layers, down to the kernel itself."""
    for _ in range(16):
        if wrapped is None:
            return
        yield wrapped
        if _is_kernel(wrapped) or isinstance(wrapped, (ModuleType, type)):
            return
        inner = vars(wrapped) if hasattr(wrapped, "__dict__") else {}
        wrapped = next((inner[name] for name in _WRAPPED_ATTRIBUTES if inner.get(name) is not None), None)


def _is_kernel(value: Any) -> bool:
    from triton.runtime.jit import JITFunction

    return isinstance(value, JITFunction)


def _read_config(config: Any) -> AutotunerConfig:
    options = {name: getattr(config, name, None) for name in _CONFIG_OPTIONS}
    if options["num_ctas"] == 1:
        options["num_ctas"] = None  # the default
    options |= {name: None for name in _PARTITION_OPTIONS if options[name] == 0}
    return AutotunerConfig(dict(config.kwargs), {name: value for name, value in options.items() if value is not None})


def _read_parameters(function: Any) -> tuple[ParameterDeclaration, ...]:
    declared = inspect.signature(function.fn).parameters
    listed = getattr(function, "params", None)  # 2.2 and later
    parameters = []
    for index, name in enumerate(function.arg_names):
        default = declared[name].default
        param = None if listed is None else listed[index]
        constexpr = index in function.constexprs if param is None else param.is_constexpr
        unspecialised = function.do_not_specialize or ()
        type_ = "" if param is None else getattr(param, "annotation_type", "")
        default = MISSING if default is inspect.Parameter.empty else default
        specialised = index not in unspecialised and name not in unspecialised
        parameters.append(ParameterDeclaration(name, constexpr, type_ or None, default, specialised))
    return tuple(parameters)
