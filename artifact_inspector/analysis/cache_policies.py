"""Cache modifiers and eviction policies that the program asks for, and whether the last stage has them."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.analysis.accesses import StageAccesses
from artifact_inspector.analysis.reference import source_of
from artifact_inspector.model import EventKind

__all__ = ["Policy", "find_policies"]

DEFAULTS = frozenset({"ca", "wb", "evict_normal"})
"""What a load or store does that asks for nothing (PTX ISA, "Cache Operators")."""
_STANDS_FOR: dict[str, tuple[frozenset[str], ...]] = {
    word: tuple(frozenset(words.split()) for words in several)
    for word, several in {
        "cg": ("cg", "nt", "slc", "glc", "th:TH_LOAD_NT", "th:TH_LOAD_HT", "th:TH_LOAD_RT_NT"),
        "cs": ("cs", "nt", "slc", "th:TH_LOAD_NT", "th:TH_STORE_NT"),
        "cv": ("cv", "volatile", "sc0 sc1", "glc dlc", "glc", "scope:SCOPE_SYS"),
        "wt": ("wt", "sc0 sc1", "dlc", "glc slc", "scope:SCOPE_SYS"),
        "volatile": ("volatile", "cv", "sc0 sc1", "glc dlc", "glc", "scope:SCOPE_SYS"),
    }.items()
}


class Policy(NamedTuple):
    """A load or store that asks for a cache modifier or an eviction policy."""

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
    """What any of them says of caches."""
    lost: tuple[str, ...]
    """What was asked for and stands in none of them; empty where they were not found."""


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
        there = [
            other
            for other in last.at(access)
            if (other.kind is EventKind.GLOBAL_STORE) is is_store and other.transfer is not None
        ]
        words = tuple(
            dict.fromkeys(w for other in there if other.transfer is not None for w in other.transfer.cache)
        )
        instruction = first.code.function.instructions[access.index]
        found.append(
            Policy(
                access.line,
                source_of(instruction.location),
                is_store,
                asked,
                tuple(other.line for other in there),
                words,
                tuple(word for word in asked if not _is_kept(word, words)) if there else (),
            )
        )
    return tuple(found)


def _is_kept(word: str, words: tuple[str, ...]) -> bool:
    """True when the words of an instruction say, or stand for, what was asked."""
    said = {part for each in words for part in (each, each.rpartition("::")[2])}
    return any(wanted <= said for wanted in _STANDS_FOR.get(word, (frozenset({word}),)))
