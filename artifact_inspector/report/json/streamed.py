"""The document of a cache written kernel by kernel, so that none has to be held when it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.autotuning import EntryTiming
from artifact_inspector.files.cache import Cache, Problem
from artifact_inspector.hardware.targets import Target
from artifact_inspector.report.json._encoding import as_text
from artifact_inspector.report.json.cache import cache_document, kernel_document

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel

_EMPTY = '"kernels": []'
_INDENT = "    "


def nowhere(_kernel: KernelFacts) -> Sequence[RetargetedKernel]:
    """No other GPU to compile for."""
    return ()


def write_cache(
    cache: Cache,
    kernels: Iterable[KernelFacts],
    others: Sequence[Target],
    encoding: str | None,
    write: Callable[[str], None],
    elsewhere: Callable[[KernelFacts], Sequence[RetargetedKernel]] = nowhere,
    timings: Callable[[KernelFacts], Sequence[EntryTiming]] = lambda kernel: (),
) -> None:
    """Write what `cache_document` says as text, each kernel as soon as it is there.

    Args:
        others: further targets to give the occupancy for.
        encoding: of the stream that it is written to.
        elsewhere: compiles a kernel for these.
        timings: what Triton's autotuner timed of a kernel.
    """
    problems: list[Problem] = []
    is_empty = True
    for kernel in kernels:
        document = kernel_document(kernel, others, elsewhere(kernel), timings(kernel))
        text = as_text(document, encoding).rstrip("\n").replace("\n", f"\n{_INDENT}")
        problems += kernel.problems
        write((_around(cache, (), encoding)[0] + '"kernels": [' if is_empty else ",") + f"\n{_INDENT}{text}")
        is_empty = False
    head, tail = _around(cache, problems, encoding)
    write(f"{head}{_EMPTY}{tail}" if is_empty else f"\n  ]{tail}")


def _around(cache: Cache, problems: Iterable[Problem], encoding: str | None) -> tuple[str, str]:
    """The text before and after the kernels."""
    head, _, tail = as_text(cache_document(cache, (), of_kernels=problems), encoding).partition(_EMPTY)
    return head, tail
