"""Cache modifiers and eviction policies: the words for one thing on every target.

Triton makes of a modifier a non-temporal or a volatile access on AMD, or the bits of a buffer access; the
back end makes of these the bits of its generation. ptxas makes of them the words in capitals.

Source: PTX ISA, "Cache Operators"; `getCtrlBitsForCacheModifierOnTarget` in Triton's
third_party/amd/lib/TritonAMDGPUToLLVM/Utility.cpp; LLVM's AMDGPUUsage, "Memory Model"; compiled with Triton
3.6 and 3.9 for gfx908 to gfx1250, and with ptxas of CUDA 12 and 13 for sm_75 to sm_120.
"""

from __future__ import annotations

from collections.abc import Sequence

_DEFAULTS = frozenset({"ca", "wb", "evict_normal"})
"""What a load or store does that asks for nothing."""
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
"""What was asked for → the words of an instruction that say it, on any target."""


def asked_of_caches(words: Sequence[str]) -> tuple[str, ...]:
    """The words of an access without those that ask for what happens anyway.

    Example:
        >>> asked_of_caches(("ca", "evict_last"))
        ('evict_last',)
    """
    return tuple(word for word in words if word not in _DEFAULTS)


def is_kept(word: str, words: Sequence[str]) -> bool:
    """True when the words of an instruction say, or stand for, what was asked.

    Example:
        >>> is_kept("cv", ("sc0", "sc1")), is_kept("evict_last", ("L1::evict_last",)), is_kept("cs", ())
        (True, True, False)
    """
    said = {part for each in words for part in (each, each.rpartition("::")[2])}
    return any(wanted <= said for wanted in _STANDS_FOR.get(word, (frozenset({word}),)))
