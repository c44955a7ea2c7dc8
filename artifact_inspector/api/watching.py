"""What Triton compiles while a block runs."""

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
    """The kernels that were compiled, or taken from Triton's cache, in order; each once.

    A kernel is read when it is first asked for, so watching costs no more than copying its files.
    """

    def __init__(self) -> None:
        self._caches: dict[tuple[str, str], Cache] = {}
        self._read: dict[tuple[str, str], Inspection] = {}
        self.limit = ""
        """What this version of Triton does not tell; empty where it tells everything."""

    def take(self, stem: str, contents: Mapping[str, bytes]) -> None:
        """Add a kernel by its files."""
        cache = hold_files(stem, contents)
        for artifact in cache.entries:
            self._caches.setdefault((artifact.hash, artifact.stem), cache)

    @property
    def note(self) -> str:
        """Why there is nothing, or may not be everything; empty where there is nothing to say."""
        if self._caches:
            return self.limit
        told = f"; {self.limit}" if self.limit else ""
        return (
            "Triton compiled nothing here. It does not compile again what this process launched before, "
            "other processes are not seen (Inductor compiles in some), and under TRITON_INTERPRET=1 there "
            f"is nothing to compile{told}."
        )

    def named(self, name: str) -> Inspection:
        """The one kernel of that name.

        Raises:
            LookupError: there is none, or there are several.
        """
        found = [kernel for kernel in self if kernel.name == name]
        if len(found) != 1:
            have = ", ".join(dict.fromkeys(kernel.title for kernel in self)) or "none"
            raise LookupError(f"{len(found) or 'no'} kernels {name!r} were compiled; there are: {have}")
        return found[0]

    def to_records(self) -> list[dict[str, Any]]:
        """The records of all of them, as `Inspection.to_records` has them."""
        return [record for kernel in self for record in kernel.to_records()]

    def __len__(self) -> int:
        return len(self._caches)

    @overload
    def __getitem__(self, place: int) -> Inspection: ...
    @overload
    def __getitem__(self, place: slice) -> list[Inspection]: ...
    def __getitem__(self, place: int | slice) -> Inspection | list[Inspection]:
        """The kernel at a place."""
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
    """The kernels that Triton compiles in this process while the block runs, by Triton's own hooks.

    It works on a machine with a GPU and where a launch is answered without one. The list fills while the
    block runs, and can be asked inside it too.

    Raises:
        CompileError: Triton is not installed, or is older than 3.0, which does not tell.

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
