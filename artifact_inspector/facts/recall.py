"""Kernels whose facts were found before, or are found now on all cores.

The facts of a kernel are kept in the index under a digest of this package and of every file of the kernel, so
what is found there is what the files would tell. They are kept apart, one by one, and each is read when it is
asked for; one that is not there is found from the files, and kept with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from artifact_inspector.facts.asked import View, ask_all, kernel_of
from artifact_inspector.facts.collection import without_collection
from artifact_inspector.facts.commons import Commons
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.recalled import Recalled
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.digests import State, digest_of_package, state_of_files
from artifact_inspector.files.index import Index

if TYPE_CHECKING:
    from artifact_inspector.facts.modules import Disassemble

MOST_AT_ONCE = 64
"""Kernels whose facts are written to the index together."""


# -- many kernels ----------------------------------------------------------------------


@dataclass(frozen=True)
class Recalling:
    """How kernels are recalled."""

    disassemble: Disassemble | None = None
    """What is disassembled stands in no file, so such facts are not kept."""
    index: Callable[[], Index] | None = None
    """Opens the index; None to do without one."""
    cores: int | None = None
    """Processes at most; by default as many as this one may run on."""
    progress: Callable[[Artifact], None] | None = None
    """Is told of each kernel beforehand."""


def recall_kernels(
    artifacts: Sequence[Artifact], view: View | None, how: Recalling | None = None
) -> Iterator[KernelFacts]:
    """The facts of some kernels, in their order, each as soon as it is there.

    Args:
        view: asks for what is to be found; everything by default.
    """
    how = how or Recalling()
    view = view or ask_all
    keeps = how.index is not None and how.disassemble is None
    states = [state_of_files(artifact) if keeps else None for artifact in artifacts]
    keys = [None if state is None else _key(state) for state in states]
    stored: dict[bytes, bytes] = {}
    if how.index is not None and keeps:
        with how.index() as index:
            stored = index.read(key for key in keys if key is not None)
    here = {
        place: stored.get(key, b"") for place, key in enumerate(keys) if key in stored and key is not None
    }
    missing = [place for place in range(len(artifacts)) if place not in here]
    fresh: dict[bytes, bytes] = {}
    commons = Commons()
    for place, text in _in_order(artifacts, here, missing, view, how):
        viewed = view if place not in missing or not text else None
        kernel, source = _take(artifacts[place], text, viewed, how, commons)
        key, state = keys[place], states[place]
        if key is not None and state is not None and (source.is_changed or key not in stored):
            # Whoever wrote to the cache meanwhile may have changed what was read.
            if state.still_holds(artifacts[place]):
                fresh[key] = source.text()
            if len(fresh) >= MOST_AT_ONCE:
                _keep(fresh, how)
        yield kernel
    _keep(fresh, how)


def _take(
    artifact: Artifact, text: bytes, view: View | None, how: Recalling, commons: Commons
) -> tuple[KernelFacts, Recalled]:
    """A kernel and its source, of stored facts as far as these can be shown, else of its files."""
    source = Recalled(artifact, text, how.disassemble, commons)
    kernel = kernel_of(artifact, source)
    if view is None:
        return kernel, source
    try:
        with without_collection():
            view(kernel)
            source.let_go()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        if not text:
            raise
        return _take(artifact, b"", view, how, commons)  # facts of their type, and of no kernel
    return kernel, source


def _in_order(
    artifacts: Sequence[Artifact], here: dict[int, bytes], missing: Sequence[int], view: View, how: Recalling
) -> Iterator[tuple[int, bytes]]:
    """The stored facts of each kernel, empty where they are to be found in this process."""
    found: Iterator[tuple[int, bytes]] = iter(())
    if missing:
        from artifact_inspector.facts.workers import find_facts  # which imports every parser

        found = find_facts(artifacts, missing, view, how.disassemble, how.cores)
    for place, artifact in enumerate(artifacts):
        if how.progress is not None:
            how.progress(artifact)
        while place not in here:
            at, text = next(found)
            here[at] = text
        yield place, here.pop(place)


def _keep(fresh: dict[bytes, bytes], how: Recalling) -> None:
    if fresh and how.index is not None:
        with how.index() as index:
            index.write(fresh)
        fresh.clear()


def _key(state: State) -> bytes:
    """A digest of all that the facts of a kernel depend on."""
    return blake2b(digest_of_package() + state.digest, digest_size=32).digest()
