"""The picture of bank conflicts: which wavefront serves which lane, on addresses worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from launched import gemv

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.banks import assign_wavefronts, count_warp_wavefronts
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.pictures.bank_conflicts import bank_conflicts, find_access

LANES = range(32)
SVG = "{http://www.w3.org/2000/svg}"


def access(addresses: object, size: int, **more: object) -> WarpAccess:
    return WarpAccess(tuple(addresses), size, 0, 0, **more)  # type: ignore[arg-type]


def waves(drawn: WarpAccess) -> list[set[int]]:
    """Of each lane, from 1."""
    found: list[set[int]] = [set() for _ in drawn.addresses]
    for turn in assign_wavefronts(drawn):
        found[turn.lane].add(turn.wavefront + 1)
    return found


# -- who is served when ----------------------------------------------------------------------------------


def test_lanes_side_by_side_are_served_at_once_each_by_a_bank_of_its_own() -> None:
    turns = assign_wavefronts(access((4 * lane for lane in LANES), 4))
    assert [(turn.lane, turn.bank, turn.wavefront) for turn in turns] == [(n, n, 0) for n in LANES]


def test_lanes_128_bytes_apart_meet_in_one_bank_and_take_32_turns() -> None:
    turns = assign_wavefronts(access((128 * lane for lane in LANES), 4))
    assert [(turn.lane, turn.bank, turn.wavefront) for turn in turns] == [(n, 0, n) for n in LANES]


def test_lanes_that_want_the_same_word_share_it() -> None:
    assert waves(access([64] * 32, 4)) == [{1}] * 32
    # halves of one word, too
    assert waves(access((2 * lane for lane in LANES), 2)) == [{1}] * 32


def test_an_atomic_shares_nothing() -> None:
    assert waves(access([64] * 32, 4, operands=1)) == [{n + 1} for n in LANES]


def test_two_words_apart_every_other_bank_serves_two_lanes() -> None:
    # lanes 0 and 16 ask for words 0 and 32: bank 0 of both
    assert waves(access((8 * lane for lane in LANES), 4)) == [{1}] * 16 + [{2}] * 16


def test_eight_bytes_are_served_by_halves_and_sixteen_by_quarters() -> None:
    assert waves(access((8 * lane for lane in LANES), 8)) == [{1}] * 16 + [{2}] * 16
    assert waves(access((16 * lane for lane in LANES), 16)) == [{lane // 8 + 1} for lane in LANES]


def test_a_wide_load_whose_neighbours_want_the_same_serves_twice_as_many_lanes_and_a_store_does_not() -> None:
    pairs = [lane // 2 * 16 for lane in LANES]
    assert waves(access(pairs, 16, is_load=True)) == [{1}] * 16 + [{2}] * 16
    assert waves(access(pairs, 16)) == [{lane // 8 + 1} for lane in LANES]


def test_rows_of_a_matrix_are_served_by_eight() -> None:
    # 64 bytes apart: rows 0, 2, 4 and 6 meet in banks 0 to 3, the others in 16 to 19
    rows = [64 * lane for lane in range(8)] + [None] * 24
    assert waves(access(rows, 16, lanes_per_group=8))[:8] == [{1}, {1}, {2}, {2}, {3}, {3}, {4}, {4}]


def test_lanes_that_take_no_part_have_no_turn() -> None:
    assert waves(access([None] * 31 + [12], 4)) == [set()] * 31 + [{1}]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "more", [{}, {"is_load": True}, {"operands": 1}, {"lanes_per_group": 8}], ids=["store", "load", "atomic", "matrix"]
)
def test_there_are_as_many_wavefronts_as_are_counted(size: int, more: dict[str, object]) -> None:
    chance = np.random.default_rng(size)
    for span in (4, 64, 512):
        for _ in range(10):
            addresses = (chance.integers(0, span, 32) * size).tolist()
            held = access((at if chance.random() < 0.8 else None for at in addresses), size, **more)
            last = max((turn.wavefront + 1 for turn in assign_wavefronts(held)), default=0)
            assert last == count_warp_wavefronts(held)[0]


# -- the picture -----------------------------------------------------------------------------------------


def test_the_worst_access_of_a_launch_is_drawn_with_every_lane_and_both_counts() -> None:
    svg = bank_conflicts(gemv())
    nodes = ElementTree.fromstring(svg)
    titles = [node.text or "" for node in nodes.iter(f"{SVG}title")]
    texts = [node.text or "" for node in nodes.iter(f"{SVG}text")]
    assert sum(title.startswith("lane ") for title in titles) == 32
    assert "bank 0: 32 wavefronts" in titles
    assert any("32 wavefronts, 1 without conflicts" in text for text in texts)
    assert any(f"{gemv().shared_accesses[0].line.wavefronts:,} wavefronts" in text for text in texts)


def test_what_is_kept_of_each_instruction_adds_up_to_its_count_where_all_warps_do_the_same() -> None:
    found = gemv()
    for one in found.shared_accesses:
        if one.line.executed and one.line.wavefronts and "STS" in one.line.opcode:
            assert count_warp_wavefronts(one.warp_access) == (
                one.line.wavefronts // one.line.executed,
                one.line.wavefronts_ideal // one.line.executed,
            )


def test_a_line_chooses_the_access_and_one_without_any_names_those_that_have() -> None:
    first, second, *others = gemv().shared_accesses
    first, second = (
        replace(one, line=replace(one.line, source=source))
        for one, source in ((first, "standard.py:293"), (second, "gemv_splitk.py:39"))
    )
    found = replace(gemv(), shared_accesses=(first, second, *others))
    assert find_access(found) is first
    for place in ("39", "gemv_splitk.py:39", f"sass:{second.line.line}"):
        assert find_access(found, place) is second
    for place in ("3", "9", "py:39"):
        with pytest.raises(UsageError, match=f"shared memory at {place}") as raised:
            find_access(found, place)
        assert "standard.py:293, gemv_splitk.py:39, sass:" in str(raised.value.remedy)


def test_a_launch_without_shared_memory_and_one_of_amd_say_why_there_is_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="No load, store or atomic"):
        bank_conflicts(replace(gemv(), shared_accesses=()))
    with pytest.raises(UsageError, match="passes over LDS are not counted"):
        bank_conflicts(replace(gemv(), target="gfx942"))


def test_what_a_cache_says_is_text() -> None:
    one = gemv().shared_accesses[0]
    hostile = replace(one, line=replace(one.line, source="</title><script>alert(1)</script>\u202e"))
    svg = bank_conflicts(replace(gemv(), kernel="<img src=x>"), hostile)
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "<img" not in svg
    assert "\u202e" not in svg
