"""Cache modifiers and eviction policies requested by the program, and whether the last stage has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.flow.places import source_of
from artifact_inspector.model import EventKind, SourceLine


class Policy(NamedTuple):
    """A load or store that requests a cache modifier or eviction policy, and its form at the last stage."""

    line: int
    """In the first stage."""
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    is_store: bool
    asked: tuple[str, ...]
    """The requested words, without the defaults."""
    lines: tuple[int, ...]
    """Its instructions at the last stage; empty if they were not found."""
    words: tuple[str, ...]
    """The cache words of its instructions at the last stage."""
    lost: tuple[str, ...]
    """Requested words missing from its instructions, or from the whole file if these were not found."""
    is_copied: bool = False
    """It became asynchronous copies, to which Triton gives no policy."""


def find_policies(first: StageAccesses, last: StageAccesses) -> tuple[Policy, ...]:
    """The accesses of a function that request a policy, in the order of the first stage."""
    found: list[Policy] = []
    for access in first.accesses:
        if access.transfer is None:
            continue
        asked = first.language.asked_of_caches(access.transfer.cache)
        if not asked:
            continue
        is_store = access.kind is EventKind.GLOBAL_STORE
        there = _of_kind(last.at(access), is_store=is_store)
        words = _words(there)
        said = words if there else _words(_of_kind(last.accesses, is_store=is_store))
        instruction = first.code.function.instructions[access.index]
        found.append(
            Policy(
                access.line,
                source_of(instruction.location),
                is_store,
                asked,
                tuple(other.line for other in there),
                words,
                tuple(word for word in asked if not last.language.keeps_cache_word(word, said)),
                bool(there) and all(other.kind is EventKind.ASYNC_COPY for other in there),
            )
        )
    return tuple(found)


def _of_kind(accesses: Iterable[MemoryAccess], *, is_store: bool) -> list[MemoryAccess]:
    return [access for access in accesses if (access.kind is EventKind.GLOBAL_STORE) is is_store]


def _words(accesses: Iterable[MemoryAccess]) -> tuple[str, ...]:
    moves = (access.transfer for access in accesses)
    return tuple(dict.fromkeys(word for move in moves if move is not None for word in move.cache))
