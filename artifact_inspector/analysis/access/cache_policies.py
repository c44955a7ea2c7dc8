"""Cache modifiers and eviction policies that the program asks for, and whether the last stage has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.flow.places import source_of
from artifact_inspector.model import EventKind

__all__ = ["Policy", "find_policies"]

DEFAULTS = frozenset({"ca", "wb", "evict_normal"})
"""What a load or store does that asks for nothing (PTX ISA, "Cache Operators")."""
_STANDS_FOR: dict[str, tuple[frozenset[str], ...]] = {
    word: tuple(frozenset(words.split()) for words in several)
    for word, several in {
        "cg": ("cg", "nt", "slc", "glc", "th:TH_LOAD_NT", "scope:SCOPE_DEV", "STRONG.GPU", "BYPASS"),
        "cs": ("cs", "nt", "slc", "th:TH_LOAD_NT", "th:TH_STORE_NT", "EF"),
        "cv": ("cv", "volatile", "sc0 sc1", "glc", "scope:SCOPE_SYS", "STRONG.SYS"),
        "wt": ("wt", "sc0 sc1", "dlc", "scope:SCOPE_SYS", "STRONG.SYS"),
        "volatile": ("volatile", "sc0 sc1", "glc", "scope:SCOPE_SYS", "STRONG.SYS"),
        "evict_first": ("evict_first", "EF"),
        "evict_last": ("evict_last", "EL"),
    }.items()
}
"""What was asked for → the words of an instruction that say it, on any target.

Triton makes of a modifier a non-temporal or a volatile access on AMD, or the bits of a buffer access; the
back end makes of these the bits of its generation. ptxas makes of them the words in capitals.
**Source**: `getCtrlBitsForCacheModifierOnTarget` in Triton's third_party/amd/lib/TritonAMDGPUToLLVM/
Utility.cpp; LLVM's AMDGPUUsage, "Memory Model"; compiled with Triton 3.6 and 3.9 for gfx908 to gfx1250,
and with ptxas of CUDA 12 and 13 for sm_75 to sm_120.
"""


class Policy(NamedTuple):
    """A load or store that asks for a cache modifier or an eviction policy, and what became of it."""

    line: int
    """In the first stage."""
    source: str | None
    """`file.py:line` of the user's code."""
    is_store: bool
    asked: tuple[str, ...]
    """Without the defaults."""
    lines: tuple[int, ...]
    """Its instructions at the last stage; empty where they were not found."""
    words: tuple[str, ...]
    """What its instructions at the last stage say of caches."""
    lost: tuple[str, ...]
    """What was asked for and stands in none of them; where they were not found, in none of the file."""


def find_policies(first: StageAccesses, last: StageAccesses) -> tuple[Policy, ...]:
    """The accesses of a function that ask for a policy, in the order of the first stage."""
    found: list[Policy] = []
    for access in first.accesses:
        if access.transfer is None:
            continue
        asked = tuple(word for word in access.transfer.cache if word not in DEFAULTS)
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
                tuple(word for word in asked if not _is_kept(word, said)),
            )
        )
    return tuple(found)


def _of_kind(accesses: Iterable[MemoryAccess], *, is_store: bool) -> list[MemoryAccess]:
    return [access for access in accesses if (access.kind is EventKind.GLOBAL_STORE) is is_store]


def _words(accesses: Iterable[MemoryAccess]) -> tuple[str, ...]:
    moves = (access.transfer for access in accesses)
    return tuple(dict.fromkeys(word for move in moves if move is not None for word in move.cache))


def _is_kept(word: str, words: tuple[str, ...]) -> bool:
    """True when the words of an instruction say, or stand for, what was asked."""
    said = {part for each in words for part in (each, each.rpartition("::")[2])}
    return any(wanted <= said for wanted in _STANDS_FOR.get(word, (frozenset({word}),)))
