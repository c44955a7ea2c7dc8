"""Notebook tables of several kernels: of a cache, of findings, of a capture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artifact_inspector.api.records import Tabular, records_of
from artifact_inspector.compiling.ask import capturing
from artifact_inspector.compiling.ask.capturing import DEFAULT_CONFIGS, DEFAULT_DIRECTORY, CapturedKernels
from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS
from artifact_inspector.compiling.ask.running import ProgramRun
from artifact_inspector.facts import inspection
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Cache, open_location
from artifact_inspector.findings import Finding
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.compilation import captured_table
from artifact_inspector.report.findings import findings_table
from artifact_inspector.report.notebook_html import to_html


class FindingTable(tuple[Finding, ...]):
    """The findings of a kernel; a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return to_html(findings_table(self) if self else "no findings")


class KernelIterator(Tabular, Iterator[KernelFacts]):
    """The kernels of a cache, read one at a time; a table of all of them in a notebook."""

    def __init__(self, cache: Cache, kernels: Iterable[KernelFacts]) -> None:
        self._cache = cache
        self._remaining = iter(kernels)
        self._seen_kernels: list[KernelFacts] = []

    def __next__(self) -> KernelFacts:
        kernel = next(self._remaining)
        self._seen_kernels.append(kernel)
        return kernel

    def _all_kernels(self) -> list[KernelFacts]:
        remaining = list(self)  # not yet iterated; iteration continues with them
        del self._seen_kernels[len(self._seen_kernels) - len(remaining) :]
        self._remaining = iter(remaining)
        return [*self._seen_kernels, *remaining]

    def to_records(self) -> list[dict[str, Any]]:
        """The records of all kernels; see `Inspection.to_records`."""
        return [record for kernel in self._all_kernels() for record in records_of(kernel)]

    def _repr_html_(self) -> str:
        return to_html(CacheReport(self._cache, self._all_kernels(), is_narrowed=False))


class CaptureTable(CapturedKernels):
    """The kernels of a `capture` block; a table of launches, failures and notes in a notebook."""

    def _repr_html_(self) -> str:
        runs = []
        for target in dict.fromkeys(kernel.target for kernel in self):
            kernels = tuple(kernel for kernel in self if kernel.target == target)
            notes = tuple(note for note in self.notes if target in note.targets)
            runs.append(ProgramRun(target, 0, "", kernels, notes, None))
        return to_html(captured_table(runs, self.directory))


def inspect_cache(cache: Cache | str | os.PathLike[str], *args: Any, **options: Any) -> KernelIterator:
    """The facts of the kernels of a cache, one after the other; arguments as of `facts.inspection`.

    Args:
        cache: opened, or its path: a directory, an archive, a trace, an fsspec address.
    """
    if not isinstance(cache, Cache):
        cache = open_location(Path(cache).expanduser())
    return KernelIterator(cache, inspection.inspect_cache(cache, *args, **options))


@contextmanager
def capture(
    targets: Sequence[str],
    out: Path | str = DEFAULT_DIRECTORY,
    *,
    configs: int | None = DEFAULT_CONFIGS,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> Iterator[CapturedKernels]:
    """Collect every kernel that the block would launch, without a GPU; see `compiling.ask.capturing`."""
    with capturing.capture(targets, out, configs=configs, time_limit=time_limit, list_type=CaptureTable) as captured:
        yield captured
