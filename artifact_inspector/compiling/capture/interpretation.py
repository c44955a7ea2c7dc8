"""Runs a captured launch in Triton's interpreter, so that its tensors get the values that a GPU would store.

The interpreter replaces Triton's language, and older versions never restore it. It therefore runs in a forked process,
which copies its results into shared memory.

Source: triton/runtime/interpreter.py, `InterpretedFunction` and `GridExecutor`; Triton 3.2 to 3.9.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from artifact_inspector.compiling.arguments import tensors_in
from artifact_inspector.compiling.capture.interpreter_functions import provide_functions
from artifact_inspector.compiling.capture.interpreter_types import (
    correct_boolean_operators,
    correct_loop_bounds,
    correct_small_floats,
)

MOST_BYTES = 1 << 26
"""Bytes of all tensors of a launch up to which it is interpreted."""
SECONDS = 20.0
"""Time after which the remaining CTAs are left out."""
_HEADER = struct.Struct("<q")


class Interpretation(NamedTuple):
    """What the interpreter ran of a launch."""

    ctas: int
    """CTAs that ran to their end, in the interpreter's order: the last dimension of the grid changes fastest."""
    problem: str | None
    """Why the others did not run; None if all did."""
    contents: dict[int, tuple[bytes, bytes]]
    """Address of a storage → its bytes before and after the launch."""


def storages_of(values: Sequence[Any]) -> dict[int, Any]:
    """Address → storage of each tensor among some arguments."""
    return {int(tensor.untyped_storage().data_ptr()): tensor.untyped_storage() for tensor in tensors_in(values)}


def interpret_launch(
    function: Any, args: Sequence[Any], options: Mapping[str, Any], grid: Sequence[int], seconds: float = SECONDS + 2
) -> Interpretation:
    """Run a launch in the interpreter; its tensors receive the results.

    Args:
        seconds: time after which nothing is kept.
    """
    tensors = [*tensors_in([*args, *options.values()])]
    if any(tensor.is_meta for tensor in tensors):
        return Interpretation(0, "a tensor has no data", {})
    storages = storages_of(tensors)
    sizes = {at: int(storage.nbytes()) for at, storage in storages.items()}
    total = sum(sizes.values())
    if total > MOST_BYTES:
        return Interpretation(0, f"its tensors have {total >> 20} MiB", {})
    before = {at: ctypes.string_at(at, size) if size else b"" for at, size in sizes.items()}
    with mmap.mmap(-1, _HEADER.size + max(total, 1) + 4096) as shared:
        child = os.fork()
        if child == 0:
            problem = "the interpreter failed"
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a CTA that waits for another one
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                problem = _run(function, args, options, tuple(map(int, grid)), shared)
                offset = _HEADER.size
                for at, size in sizes.items():
                    shared[offset : offset + size] = ctypes.string_at(at, size)
                    offset += size
                shared[offset : offset + 4096] = problem.encode()[:4000].ljust(4096, b"\0")
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return Interpretation(0, f"the interpreter did not end in {seconds:g} s", {})
        (ctas,) = _HEADER.unpack_from(shared)
        offset, contents = _HEADER.size, {}
        for at, size in sizes.items():
            contents[at] = (before[at], bytes(shared[offset : offset + size]))
            if ctas:
                ctypes.memmove(at, contents[at][1], size)
            offset += size
        text = bytes(shared[offset : offset + 4096]).rstrip(b"\0").decode(errors="replace")
    is_complete = ctas == grid[0] * grid[1] * grid[2]
    return Interpretation(ctas, None if is_complete else text or "the interpreter failed", contents if ctas else {})


def _run(
    function: Any, args: Sequence[Any], options: Mapping[str, Any], grid: tuple[int, ...], shared: mmap.mmap
) -> str:
    """Run a launch in this process, and count the CTAs in shared memory; returns why it stopped early."""
    import torch
    import triton
    from triton.runtime import interpreter, jit

    torch.set_num_threads(1)
    correct_small_floats(interpreter, triton.language)
    correct_boolean_operators(interpreter)
    correct_loop_bounds(interpreter)
    provide_functions(interpreter, triton.language)
    deadline = time.monotonic() + SECONDS
    builder = interpreter.interpreter_builder
    set_index, started = builder.set_grid_idx, 0

    def count_ctas(x: int, y: int, z: int) -> None:
        nonlocal started
        _HEADER.pack_into(shared, 0, started)
        if time.monotonic() > deadline:
            raise TimeoutError
        started += 1
        set_index(x, y, z)

    builder.set_grid_idx = count_ctas
    # helpers were decorated for the compiler
    jit.JITFunction.__call__ = lambda helper, *values, **named: interpreter.InterpretedFunction(helper.fn)(
        *values, **named
    )
    executor = interpreter.GridExecutor
    interpreted = interpreter.InterpretedFunction(function.fn)
    run = executor(interpreted.rewrite(), interpreted.arg_names, grid)
    run.constexprs = [
        parameter.name for parameter in function.params if parameter.is_constexpr
    ]  # also of an annotation as a string
    try:
        # results are copied back only at the end of a whole launch: here the tensors themselves are used
        run._init_args_hst = lambda given, named: (list(given), dict(named))
        run._restore_args_dev = lambda *_: None
        run(*args, **options)
    except BaseException as error:  # noqa: BLE001 - whatever the interpreter does not support
        cause = error.__cause__ or error
        if isinstance(cause, TimeoutError) or "TimeoutError" in str(error):
            return f"the interpreter ran {started - 1 if started else 0} CTAs in {SECONDS:g} s"
        return f"the interpreter stopped: {type(cause).__name__}: {cause}"
    _HEADER.pack_into(shared, 0, started)
    return ""
