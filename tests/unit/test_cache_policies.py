"""Cache modifiers asked for and found again, on kernels of one access."""

import pytest
from handwritten import amdgcn, ptx_load, tensors

from artifact_inspector.analysis.access.accesses import StageAccesses
from artifact_inspector.analysis.access.cache_policies import CachePolicy, find_policies
from artifact_inspector.formats._cache_modifiers import has_cache_modifier
from artifact_inspector.model import Stage


def load(asked: str) -> StageAccesses:
    return tensors(Stage.TTIR, f'%x = tt.load %p {asked} : tensor<64x!tt.ptr<f16>> loc("k.py":5:1)')


def amdgcn_load(bits: str) -> StageAccesses:
    return amdgcn('.file\t1 "." "k.py"', ".loc\t1 5 1", f"global_load_dword v1, v[2:3], off {bits}".rstrip())


def only(first: StageAccesses, last: StageAccesses) -> CachePolicy:
    (found,) = find_policies(first, last)
    return found


def test_a_load_that_asks_for_nothing_is_not_listed() -> None:
    assert find_policies(load(""), ptx_load("ld.global.b32")) == ()


def test_the_defaults_ask_for_nothing() -> None:
    assert find_policies(load("cacheModifier = ca"), ptx_load("ld.global.b32")) == ()


def test_an_eviction_policy_is_found_behind_its_cache_level() -> None:
    found = only(load("evictionPolicy = evict_first"), ptx_load("ld.global.L1::evict_first.b32"))
    assert (found.requested, found.lost) == (("evict_first",), ())


def test_a_modifier_that_the_last_stage_lacks_is_lost_with_its_lines() -> None:
    # Triton 3.6 drops `.cv` on NVIDIA.
    found = only(load("cacheModifier = cv"), ptx_load("ld.global.b32"))
    assert (found.requested, found.lost, found.source) == (("cv",), ("cv",), "k.py:5")
    assert (found.line, found.lines) == (3, (7,))


@pytest.mark.parametrize(("asked", "bits"), [("cg", "nt"), ("cg", "sc0 nt"), ("cv", "sc0 sc1")])
def test_amds_bits_stand_for_a_modifier(asked: str, bits: str) -> None:
    found = only(load(f"cacheModifier = {asked}"), amdgcn_load(bits))
    assert found.lost == ()
    assert found.applied == tuple(bits.split())


def test_half_of_amds_bits_do_not_stand_for_volatile() -> None:
    found = only(load("cacheModifier = cv"), amdgcn_load("sc0"))
    assert found.lost == ("cv",)


def test_amd_has_no_eviction_policies() -> None:
    found = only(load("evictionPolicy = evict_last"), amdgcn_load(""))
    assert found.lost == ("evict_last",)


def test_an_access_that_is_not_found_has_lost_what_the_whole_file_lacks() -> None:
    elsewhere = ptx_load("ld.global.cg.b32", line=9)
    assert only(load("cacheModifier = cg"), elsewhere).lost == ()
    found = only(load("cacheModifier = cv"), elsewhere)
    assert (found.lines, found.lost) == ((), ("cv",))


@pytest.mark.parametrize(
    ("word", "meanings"),
    [("EF", {"evict_first", "cs"}), ("EL", {"evict_last"}), ("STRONG.SYS", {"cv", "wt", "volatile"})],
)
def test_a_word_of_ptxas_stands_for_its_policies_only(word: str, meanings: set[str]) -> None:
    policies = ("cg", "cs", "cv", "wt", "volatile", "evict_first", "evict_last")
    assert {policy for policy in policies if has_cache_modifier(policy, ("E", word))} == meanings
