"""Cache modifiers and eviction policies, compared across targets.

On AMD, Triton lowers a modifier to a non-temporal or volatile access, or to bits of a buffer access. The back end
translates these to the bits of each generation. ptxas uses the words in capitals.

Source: PTX ISA, "Cache Operators"; `getCtrlBitsForCacheModifierOnTarget` in Triton's
third_party/amd/lib/TritonAMDGPUToLLVM/Utility.cpp; LLVM's AMDGPUUsage, "Memory Model"; compiled with Triton 3.6 and 3.9
for gfx908 to gfx1250, and with ptxas of CUDA 12 and 13 for sm_75 to sm_120.
"""

from __future__ import annotations

from collections.abc import Sequence

_DEFAULT_MODIFIERS = frozenset({"ca", "wb", "evict_normal"})
"""Modifiers that a load or store has by default."""
_EQUIVALENTS: dict[str, tuple[frozenset[str], ...]] = {
    modifier: tuple(frozenset(equivalents.split()) for equivalents in alternatives)
    for modifier, alternatives in {
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


def requested_cache_modifiers(modifiers: Sequence[str]) -> tuple[str, ...]:
    """The cache modifiers of an access, without those that request the default.

    Example:
        >>> requested_cache_modifiers(("ca", "evict_last"))
        ('evict_last',)
    """
    return tuple(modifier for modifier in modifiers if modifier not in _DEFAULT_MODIFIERS)


def has_cache_modifier(requested: str, modifiers: Sequence[str]) -> bool:
    """True if an instruction's modifiers include the requested one, or an equivalent.

    Example:
        >>> has_cache_modifier("cv", ("sc0", "sc1")), has_cache_modifier("cs", ())
        (True, False)
        >>> has_cache_modifier("evict_last", ("L1::evict_last",))
        True
    """
    present = {spelling for modifier in modifiers for spelling in (modifier, modifier.rpartition("::")[2])}
    return any(equivalent <= present for equivalent in _EQUIVALENTS.get(requested, (frozenset({requested}),)))
