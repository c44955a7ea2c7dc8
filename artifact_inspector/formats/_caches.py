"""Cache modifiers and eviction policies, compared across targets.

On AMD, Triton lowers a modifier to a non-temporal or volatile access, or to bits of a buffer access. The back
end translates these to the bits of each generation. ptxas uses the words in capitals.

Source: PTX ISA, "Cache Operators"; `getCtrlBitsForCacheModifierOnTarget` in Triton's
third_party/amd/lib/TritonAMDGPUToLLVM/Utility.cpp; LLVM's AMDGPUUsage, "Memory Model"; compiled with Triton
3.6 and 3.9 for gfx908 to gfx1250, and with ptxas of CUDA 12 and 13 for sm_75 to sm_120.
"""

from __future__ import annotations

from collections.abc import Sequence

_DEFAULTS = frozenset({"ca", "wb", "evict_normal"})
"""Modifiers that a load or store has by default."""
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
"""Requested modifier → equivalent modifiers of instructions on any target."""


def asked_of_caches(words: Sequence[str]) -> tuple[str, ...]:
    """The cache modifiers of an access, without those that request the default.

    Example:
        >>> asked_of_caches(("ca", "evict_last"))
        ('evict_last',)
    """
    return tuple(word for word in words if word not in _DEFAULTS)


def is_kept(word: str, words: Sequence[str]) -> bool:
    """True if an instruction's modifiers include the requested one, or an equivalent.

    Example:
        >>> is_kept("cv", ("sc0", "sc1")), is_kept("evict_last", ("L1::evict_last",)), is_kept("cs", ())
        (True, True, False)
    """
    said = {part for each in words for part in (each, each.rpartition("::")[2])}
    return any(wanted <= said for wanted in _STANDS_FOR.get(word, (frozenset({word}),)))
