"""Cache modifiers and eviction policies requested by the program, and whether the last stage has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.model import EventKind, SourceLine


class CachePolicy(NamedTuple):
    """A load or store that requests a cache modifier or eviction policy, and its form at the last stage."""

    line: int
    """In the first stage."""
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    is_store: bool
    requested: tuple[str, ...]
    """The requested words, without the defaults."""
    lines: tuple[int, ...]
    """Its instructions at the last stage; empty if they were not found."""
    applied: tuple[str, ...]
    """The cache words of its instructions at the last stage."""
    lost: tuple[str, ...]
    """Requested words missing from its instructions, or from the whole file if these were not found."""
    is_copied: bool = False
    """It became asynchronous copies, to which Triton gives no policy."""


def find_policies(first: StageAccesses, last: StageAccesses) -> tuple[CachePolicy, ...]:
    """The accesses of a function that request a policy, in the order of the first stage."""
    policies: list[CachePolicy] = []
    for access in first.accesses:
        requested = (
            () if access.transfer is None else first.code.language.requested_cache_modifiers(access.transfer.cache)
        )
        if not requested:
            continue
        is_store = access.kind is EventKind.GLOBAL_STORE
        last_accesses = _of_kind(last.accesses_at(access), is_store=is_store)
        applied = _cache_words(last_accesses)
        available = applied if last_accesses else _cache_words(_of_kind(last.accesses, is_store=is_store))
        policies.append(
            CachePolicy(
                access.line,
                source_of(first.code.instructions[access.index].location),
                is_store,
                requested,
                tuple(other.line for other in last_accesses),
                applied,
                tuple(word for word in requested if not last.code.language.has_cache_modifier(word, available)),
                bool(last_accesses) and all(other.kind is EventKind.ASYNC_COPY for other in last_accesses),
            )
        )
    return tuple(policies)


def _of_kind(accesses: Iterable[MemoryAccess], *, is_store: bool) -> list[MemoryAccess]:
    return [access for access in accesses if (access.kind is EventKind.GLOBAL_STORE) is is_store]


def _cache_words(accesses: Iterable[MemoryAccess]) -> tuple[str, ...]:
    moves = (access.transfer for access in accesses)
    return tuple(dict.fromkeys(cache_word for move in moves if move is not None for cache_word in move.cache))
