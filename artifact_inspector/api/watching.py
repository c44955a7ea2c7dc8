"""Collect the kernels that Triton compiles while a block runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload

from artifact_inspector.api.inspection import Inspection
from artifact_inspector.api.records import Tabular
from artifact_inspector.compiling.ask.hooks import report_compiles
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Cache, cache_in_memory
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.notebook_html import to_html


class Watched(Tabular, Sequence[Inspection]):
    """The kernels that were compiled or loaded from Triton's cache, in order, each once.

    A kernel is analysed on first access, so that watching costs no more than copying its files.
    """

    def __init__(self) -> None:
        self._caches: dict[tuple[str, str], Cache] = {}
        self._inspections: dict[tuple[str, str], Inspection] = {}
        self.limit = ""
        """What this Triton version does not report; empty if it reports everything."""

    def add(self, stem: str, contents: Mapping[str, bytes]) -> None:
        """Add a kernel by its files."""
        cache = cache_in_memory(stem, contents)
        for artifact in cache.entries:
            self._caches.setdefault((artifact.hash, artifact.stem), cache)

    @property
    def note(self) -> str:
        """Why there are no kernels, or may be more; empty if the list is complete."""
        if self._caches:
            return self.limit
        limit_text = f"; {self.limit}" if self.limit else ""
        return (
            "Triton compiled nothing here. Kernels that this process launched before are not compiled again. "
            "Other processes are not watched (Inductor compiles in some). Under TRITON_INTERPRET=1 nothing "
            f"is compiled{limit_text}."
        )

    def named(self, name: str) -> Inspection:
        """The one kernel with that name.

        Raises:
            LookupError: none or several have it.
        """
        matching = [kernel for kernel in self if kernel.name == name]
        if len(matching) != 1:
            names = ", ".join(dict.fromkeys(kernel.title for kernel in self)) or "none"
            count = f"{len(matching)} kernels {name!r} were" if matching else f"No kernel {name!r} was"
            raise LookupError(f"{count} compiled. Compiled kernels: {names}")
        return matching[0]

    def to_records(self) -> list[dict[str, Any]]:
        """The records of all kernels; see `Inspection.to_records`."""
        return [record for kernel in self for record in kernel.to_records()]

    def __len__(self) -> int:
        return len(self._caches)

    @overload
    def __getitem__(self, index: int) -> Inspection: ...
    @overload
    def __getitem__(self, index: slice) -> list[Inspection]: ...
    def __getitem__(self, index: int | slice) -> Inspection | list[Inspection]:
        """The kernel at an index, or the kernels of a slice."""
        keys = [*self._caches]
        return (
            [self._inspect_key(key) for key in keys[index]]
            if isinstance(index, slice)
            else self._inspect_key(keys[index])
        )

    def _inspect_key(self, key: tuple[str, str]) -> Inspection:
        if key not in self._inspections:
            cache = self._caches[key]
            artifact = next(x for x in cache.entries if (x.hash, x.stem) == key)
            self._inspections[key] = Inspection(inspect_artifact(artifact), cache)
        return self._inspections[key]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self))}]" if self._caches else f"<no kernels: {self.note}>"

    def _repr_html_(self) -> str:
        if not self._caches:
            return to_html(self.note)
        problems = tuple(problem for cache in self._caches.values() for problem in cache.problems)
        combined = Cache(Path("memory"), tuple(x.details.artifact for x in self), (), problems)
        return to_html(CacheReport(combined, [x.details for x in self], is_narrowed=False))


@contextmanager
def watch() -> Iterator[Watched]:
    """The kernels that Triton compiles in this process while the block runs, through Triton's hooks.

    It works with a GPU, and inside `capture` without one. The list grows while the block runs and can be
    read inside it.

    Raises:
        CompileError: Triton is not installed, or older than 3.0, which has no hooks.

    Example:
        >>> with watch() as kernels:  # doctest: +SKIP
        ...     softmax_kernel[grid](x, y, n, BLOCK=1024)
        >>> kernels[0].verdict  # doctest: +SKIP
        'single'
    """
    watched = Watched()
    with report_compiles(watched.add) as limit:
        watched.limit = limit
        yield watched
