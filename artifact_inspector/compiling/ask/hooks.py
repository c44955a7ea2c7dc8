"""Report each kernel that Triton compiles in this process, through the hooks that its version has.

The files of a compiled kernel object are read from memory, without importing Triton.

Source: triton/knobs.py, `compilation_knobs.listener` (3.4 and later): called for every compile and every hit in the
    cache, with the files; triton/runtime/jit.py, `JITFunction.compiled_hook` (3.2, 3.3): called after the compile of a
    launch; `JITFunction.cache_hook` (3.0, 3.1): called before it. The hook of 2.x has neither the function nor the
    result. triton/compiler/compiler.py, `CompiledKernel`: 2.x has its metadata as a dict and the function as `fn`, 3.x
    as a named tuple and the function's name in `src`; `asm` holds every stage in all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.capture.patches import replaced
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.model import TritonVersion

KernelCallback = Callable[[str, Mapping[str, bytes]], None]
"""Called with a kernel: its file stem, and its file contents by suffix."""


@contextmanager
def report_compiles(take: KernelCallback) -> Iterator[str]:
    """Call `take` for each kernel that Triton compiles or loads from its cache while the block runs.

    Existing hooks are called as well, and are restored when the block ends.

    Yields:
        A sentence with what this version's hook does not report; empty if it reports everything.

    Raises:
        CompileError: Triton is not installed, or its version has no such hook.
    """
    if find_spec("triton") is None:
        raise CompileError("Triton is not installed, so no compile can be reported.", _REMEDY)
    import triton
    from triton.runtime.jit import JITFunction

    if hasattr(getattr(getattr(triton, "knobs", None), "compilation", None), "listener"):
        with _install_listener(triton.knobs.compilation, take):
            yield ""
    elif hasattr(JITFunction, "compiled_hook"):
        with _install_launch_hook(JITFunction, "compiled_hook", take):
            yield _LAUNCHES_ONLY
    elif hasattr(triton, "compile") and TritonVersion(triton.__version__).since((3, 0)) is not False:
        with _install_launch_hook(JITFunction, "cache_hook", take):
            yield f"{_LAUNCHES_ONLY}, and when the block ends"
    else:
        raise CompileError(f"Triton {triton.__version__} does not report its compiles.", _REMEDY)


_LAUNCHES_ONLY = "this Triton reports launches only, not triton.compile"
_REMEDY = "Inspect the return value of a launch, inspect(kernel[grid](…)), or a cache, inspect(path)."


@contextmanager
def _install_listener(knobs: Any, take: KernelCallback) -> Iterator[None]:
    previous_listener = knobs.listener

    def listen(**event: Any) -> None:
        # read the files now: the cache directory may be gone later
        with suppress(OSError):
            paths = [Path(path) for path in event["metadata_group"].values()]
            stem = next((path.stem for path in paths if path.suffix == ".json"), "kernel")
            take(stem, {path.suffix.removeprefix("."): path.read_bytes() for path in paths})
        if previous_listener is not None:
            previous_listener(**event)

    with replaced(knobs, "listener", listen):
        yield


@contextmanager
def _install_launch_hook(functions: Any, name: str, take: KernelCallback) -> Iterator[None]:
    """Set a launch hook, which receives the function and the key of the compiled kernel in its cache."""
    previous_hook = getattr(functions, name)
    pending_launches: list[tuple[Any, Any]] = []

    def hook(*arguments: Any, **event: Any) -> Any:
        pending_launches.append((event["fn"].jit_function, event["key"]))
        if name == "compiled_hook":
            report_launched()
        return None if previous_hook is None else previous_hook(*arguments, **event)

    def report_launched() -> None:
        while pending_launches:
            function, key = pending_launches.pop(0)
            caches = getattr(function, "cache", None)  # until 3.2; 3.3 has a tuple for each device
            if caches is None:
                caches = {device: kernels_by_key[0] for device, kernels_by_key in function.device_caches.items()}
            for kernels_by_key in caches.values():
                if key in kernels_by_key:
                    take(*read_kernel_files(kernels_by_key[key]))

    try:
        with replaced(functions, name, hook):
            yield
    finally:
        report_launched()


_UNCOMPILED_TYPES = frozenset({"JITFunction", "GluonJITFunction", "Autotuner", "Heuristics", "InterpretedFunction"})


def read_kernel_files(kernel: object) -> tuple[str, dict[str, bytes]]:
    """The file stem of a compiled kernel in the cache, and its file contents by suffix.

    Raises:
        UsageError: the object is not a compiled kernel.
    """
    if not hasattr(kernel, "asm") and callable(getattr(kernel, "result", None)):
        kernel = kernel.result()  # type: ignore[attr-defined] # compiled in the background
    texts = getattr(kernel, "asm", None)
    if not isinstance(texts, Mapping):
        raise _not_compiled_error(kernel)
    contents = {
        suffix: content if isinstance(content, bytes) else str(content).encode() for suffix, content in texts.items()
    }
    metadata: Any = getattr(kernel, "metadata", None)
    metadata = metadata._asdict() if hasattr(metadata, "_asdict") else metadata if isinstance(metadata, Mapping) else {}
    if metadata:  # as in Triton's file: an object such as the target becomes its fields
        plain = json.dumps(dict(metadata), default=lambda x: vars(x) if hasattr(x, "__dict__") else str(x))
        contents["json"] = plain.encode()
    # in Triton 2.x the symbol has a suffix that the files lack
    source, function = getattr(kernel, "src", None), getattr(kernel, "fn", None)
    stem = getattr(source, "name", None) or getattr(function, "__name__", None) or metadata.get("name")
    return str(stem or "kernel"), contents


def _not_compiled_error(kernel: object) -> UsageError:
    kind = type(kernel).__name__
    if kind in _UNCOMPILED_TYPES:
        name = getattr(kernel, "__name__", None) or getattr(getattr(kernel, "fn", None), "__name__", "kernel")
        return UsageError(
            f"{name} is a kernel's source, not a compiled kernel.",
            f"Inspect what a launch returns: inspect({name}[grid](…)), or {name}.warmup(…, grid=(1,)).",
        )
    if kernel is None:
        return UsageError(
            "None is not a compiled kernel.",
            "A launch returns None under TRITON_INTERPRET=1, or if a hook kept Triton from compiling.",
        )
    return UsageError(
        f"{'An' if kind[0].lower() in 'aeiou' else 'A'} {kind} is not a compiled kernel.",
        "Pass the return value of a launch or of triton.compile, or the path of a cache or of a file in it.",
    )
