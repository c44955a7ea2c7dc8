"""Python's collector of cycles, held off while a kernel is read.

A kernel's instructions and what is found of them form no cycles, and the collector goes through all of them
again and again. Let on again before they are let go, it goes through them once more: so it is held off from
the first question to the last, and by a command that reads many kernels until all are read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """The collector off, and on again where it was on."""
    was_on = gc.isenabled()
    if was_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
