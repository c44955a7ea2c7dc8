"""Collect the kernels that Triton compiles while a block runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload

from artifact_inspector.api.view import Inspection
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Cache, hold_files
from artifact_inspector.report.markup import to_html
from artifact_inspector.report.text import CacheReport


class Watched(Sequence[Inspection]):
    """The kernels that were compiled or loaded from Triton's cache, in order, each once.

    A kernel is analysed on first access, so that watching costs no more than copying its files.
    """

    def __init__(self) -> None:
        self._caches: dict[tuple[str, str], Cache] = {}
        self._read: dict[tuple[str, str], Inspection] = {}
        self.limit = ""
        """What this Triton version does not report; empty if it reports everything."""

    def take(self, stem: str, contents: Mapping[str, bytes]) -> None:
        """Add a kernel by its files."""
        cache = hold_files(stem, contents)
        for artifact in cache.entries:
            self._caches.setdefault((artifact.hash, artifact.stem), cache)

    @property
    def note(self) -> str:
        """Why there are no kernels, or may be more; empty if the list is complete."""
        if self._caches:
            return self.limit
        told = f"; {self.limit}" if self.limit else ""
        return (
            "Triton compiled nothing here. Kernels that this process launched before are not compiled again. "
            "Other processes are not watched (Inductor compiles in some). Under TRITON_INTERPRET=1 nothing "
            f"is compiled{told}."
        )

    def named(self, name: str) -> Inspection:
        """The one kernel with that name.

        Raises:
            LookupError: none or several have it.
        """
        found = [kernel for kernel in self if kernel.name == name]
        if len(found) != 1:
            have = ", ".join(dict.fromkeys(kernel.title for kernel in self)) or "none"
            raise LookupError(f"{len(found) or 'no'} kernels {name!r} were compiled; compiled: {have}")
        return found[0]

    def to_records(self) -> list[dict[str, Any]]:
        """The records of all kernels; see `Inspection.to_records`."""
        return [record for kernel in self for record in kernel.to_records()]

    def __len__(self) -> int:
        return len(self._caches)

    @overload
    def __getitem__(self, place: int) -> Inspection: ...
    @overload
    def __getitem__(self, place: slice) -> list[Inspection]: ...
    def __getitem__(self, place: int | slice) -> Inspection | list[Inspection]:
        """The kernel at an index, or the kernels of a slice."""
        keys = [*self._caches]
        return [self._at(key) for key in keys[place]] if isinstance(place, slice) else self._at(keys[place])

    def _at(self, key: tuple[str, str]) -> Inspection:
        if key not in self._read:
            cache = self._caches[key]
            artifact = next(x for x in cache.entries if (x.hash, x.stem) == key)
            self._read[key] = Inspection(inspect_artifact(artifact), cache)
        return self._read[key]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self))}]" if self._caches else f"<no kernels: {self.note}>"

    def _repr_html_(self) -> str:
        if not self._caches:
            return to_html(self.note)
        problems = tuple(problem for cache in self._caches.values() for problem in cache.problems)
        whole = Cache(Path("memory"), tuple(x.details.artifact for x in self), (), problems)
        return to_html(CacheReport(whole, [x.details for x in self], narrowed=False))


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
    from artifact_inspector.compiling.ask.hooks import hooked

    watched = Watched()
    with hooked(watched.take) as limit:
        watched.limit = limit
        yield watched
