"""Report each kernel that Triton compiles in this process, through the hooks that its version has.

Source: triton/knobs.py, `compilation_knobs.listener` (3.4 and later): called for every compile and every hit
    in the cache, with the files; triton/runtime/jit.py, `JITFunction.compiled_hook` (3.2, 3.3): called after
    the compile of a launch; `JITFunction.cache_hook` (3.0, 3.1): called before it. The hook of 2.x has
    neither the function nor the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compiled import files_of
from artifact_inspector.errors import CompileError

Take = Callable[[str, Mapping[str, bytes]], None]
"""Called with a kernel: its file stem, and its file contents by suffix."""


@contextmanager
def hooked(take: Take) -> Iterator[str]:
    """Call `take` for each kernel that Triton compiles or loads from its cache while the block runs.

    Existing hooks are called as well, and are restored when the block ends.

    Yields:
        A sentence with what this version's hook does not report; empty if it reports everything.

    Raises:
        CompileError: Triton is not installed, or its version has no such hook.
    """
    if find_spec("triton") is None:
        raise CompileError("Triton is not installed, so no compile can be reported.", _INSTEAD)
    import triton
    from triton.runtime.jit import JITFunction

    if hasattr(getattr(getattr(triton, "knobs", None), "compilation", None), "listener"):
        with _listener(triton.knobs.compilation, take):
            yield ""
    elif hasattr(JITFunction, "compiled_hook"):
        with _launch_hook(JITFunction, "compiled_hook", take):
            yield _LAUNCHES
    elif hasattr(triton, "compile") and not triton.__version__.startswith("2."):
        with _launch_hook(JITFunction, "cache_hook", take):
            yield f"{_LAUNCHES}, and when the block ends"
    else:
        raise CompileError(f"Triton {triton.__version__} does not report its compiles.", _INSTEAD)


_LAUNCHES = "this Triton reports launches only, not triton.compile"
_INSTEAD = "Inspect the return value of a launch, inspect(kernel[grid](…)), or a cache, inspect(path)."


@contextmanager
def _listener(knobs: Any, take: Take) -> Iterator[None]:
    before = knobs.listener

    def listen(**told: Any) -> None:
        # read the files now: the cache directory may be gone later
        with suppress(OSError):
            take(*_read(told["metadata_group"]))
        if before is not None:
            before(**told)

    knobs.listener = listen
    try:
        yield
    finally:
        knobs.listener = before


def _read(group: Mapping[str, str]) -> tuple[str, dict[str, bytes]]:
    """The file stem of a kernel, and its file contents by suffix."""
    paths = [Path(path) for path in group.values()]
    stem = next((path.stem for path in paths if path.suffix == ".json"), "kernel")
    return stem, {path.suffix.removeprefix("."): path.read_bytes() for path in paths}


@contextmanager
def _launch_hook(functions: Any, name: str, take: Take) -> Iterator[None]:
    """Set a launch hook, which receives the function and the key of the compiled kernel in its cache."""
    before = getattr(functions, name)
    launched: list[tuple[Any, Any]] = []

    def hook(*arguments: Any, **told: Any) -> Any:
        launched.append((told["fn"].jit_function, told["key"]))
        if name == "compiled_hook":
            hand_over()
        return None if before is None else before(*arguments, **told)

    def hand_over() -> None:
        while launched:
            function, key = launched.pop(0)
            for compiled in _compiled(function, key):
                take(*files_of(compiled))

    setattr(functions, name, hook)
    try:
        yield
    finally:
        setattr(functions, name, before)
        hand_over()


def _compiled(function: Any, key: Any) -> Iterator[object]:
    """The kernels that a function has compiled for a key, on any device."""
    caches = getattr(function, "cache", None)  # until 3.2; 3.3 has a tuple for each device
    if caches is None:
        caches = {device: kept[0] for device, kept in function.device_caches.items()}
    for kept in caches.values():
        if key in kept:
            yield kept[key]
