"""Narrow accesses, and masked ones, are those of the simulated instructions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from artifact_inspector.analysis.access.load_widths import NarrowCause, NarrowReason
from artifact_inspector.diagnosis import access_alignment, arithmetic_causes, launch_causes, memory_causes
from artifact_inspector.diagnosis.attribution import Attribution
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.diagnose import urgency_of
from artifact_inspector.execution.timing.sampling import _run_starts


@pytest.mark.parametrize(("width", "count"), [(2, 1), (8, 1), (16, 0)])
def test_the_widest_accesses_are_not_narrow(width: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `buffer_store_dwordx4` stores 16 B per thread, whatever its cache lines."""

    def report(model: Any, line: str, steps: Any, width: float) -> list[float]:
        return [width]

    monkeypatch.setattr(memory_causes, "_attribute_narrow", report)
    steps: Any = [SimpleNamespace(index=0)]
    model: Any = SimpleNamespace(
        counters=SimpleNamespace(bytes_requested=[64 * width]),
        bytes_per_lane=lambda _: width,
        traffic=SimpleNamespace(active_lanes={0: 64}, requested_lines={0: 64 if width == 16 else 8}),
        is_amd=width == 16,
        chasing_lines=(),
    )
    assert list(memory_causes._access_in_pieces(model, "k.py:3", steps)) == [width] * count


def test_lanes_with_a_cache_line_each_are_uncoalesced(monkeypatch: pytest.MonkeyPatch) -> None:
    def report(model: Any, kind: Any, line: str, repair: Any, steps: Any, reason: str) -> tuple[str, str]:
        return kind.value, reason

    monkeypatch.setattr(memory_causes, "attribute_repair", report)
    model: Any = SimpleNamespace(
        counters=SimpleNamespace(bytes_requested=[32 * 4]),
        bytes_per_lane=lambda _: 4,
        traffic=SimpleNamespace(active_lanes={0: 32}, requested_lines={0: 32}),
        is_amd=False,
        chasing_lines=(),
    )
    ((kind, reason),) = memory_causes._access_in_pieces(model, "k.py:3", [SimpleNamespace(index=0)])
    assert kind == "uncoalesced"
    assert "separate cache lines, 32 per useful one" in reason


@pytest.mark.parametrize("alignment", [2, 4])
@pytest.mark.parametrize(
    ("elements", "gathers", "left"), [(2048, False, 1 / 8), (256, False, 1 / 2), (2048, True, 1.0)]
)
def test_wide_accesses_need_fewer_addresses(
    elements: int, gathers: bool, left: float, alignment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many fewer as elements of a thread fit into 16 B, unless loaded values decide where they are."""
    fractions: dict[int, float] = {}

    def report(
        model: Any, kind: Any, line: str, repair: Any, steps: Any, reason: str, *, released: frozenset[int]
    ) -> Attribution:
        fractions.update(steps)
        assert released == ({0} if left < 1 else set())  # at 4 B and more, the operand is copied ahead
        return Attribution(kind, line, 0.24, 0.24, reason)

    monkeypatch.setattr(memory_causes, "attribute_repair", report)
    monkeypatch.setattr(memory_causes, "how_to_widen", lambda *arguments: "mark it")
    monkeypatch.setattr(memory_causes, "find_alignment", lambda *arguments: alignment)
    access, address, product = (
        SimpleNamespace(index=index, kind=kind, opcode=opcode, source_place="k.py:3")
        for index, (kind, opcode) in enumerate([("global_load", "LDG.E.U16"), ("", "IADD3"), ("", "FMUL")])
    )
    operations = SimpleNamespace(
        accessed_elements={"k.py:3": elements},
        most_elements=8192,
        gathers=lambda line: gathers,
        multiplies_at=lambda line: not gathers,
    )
    model: Any = SimpleNamespace(
        steps=(access, address, product),
        counters=SimpleNamespace(warps_executed=[4, 4, 4]),
        operations=operations,
        sample=SimpleNamespace(loaded=SimpleNamespace(threads=128)),
        chasing_lines=(),
    )
    steps: Any = [access]
    (narrow,) = memory_causes._attribute_narrow(model, "k.py:3", steps, 2.0)
    assert narrow.reason == "each thread accesses 2 B at a time; mark it"
    assert fractions == {0: left, 1: left}
    # rows that begin at multiples of 2 B keep accesses narrow whatever else is repaired
    assert narrow.is_generic is (alignment > 2)
    reduction = Attribution(CauseKind.REDUCTION_PER_TRIP, "k.py:4", 0.22, 0.22, "r")
    assert (urgency_of(narrow) > urgency_of(reduction)) is (alignment == 2)


@pytest.mark.parametrize(
    ("lanes", "sizes", "part"),
    [
        ({0: 200, 1: 200}, {"k.py:3": 1024, "k.py:4": 1024}, 200 / 1024),
        ({0: 200, 1: 1024}, {"k.py:3": 1024, "k.py:4": 1024}, 1.0),  # masks of one line may depend on data
        ({0: 200, 1: 1024}, {"k.py:3": 1024, "k.py:4": 64}, 200 / 1024),  # not each thread has one of 64 elements
        ({0: 1, 1: 1}, {"k.py:3": 1, "k.py:4": 1}, None),
    ],
)
def test_the_part_of_a_tile_that_masks_leave(lanes: dict[int, int], sizes: dict[str, int], part: float | None) -> None:
    """Each of two lines has one access of 128 threads in eight iterations."""
    steps = [
        SimpleNamespace(index=index, kind=kind, source_place=f"k.py:{index + 3}")
        for index, kind in enumerate(["global_load", "global_store"])
    ]
    model: Any = SimpleNamespace(
        steps=steps,
        visits={0: 8, 1: 8},
        operations=SimpleNamespace(accessed_elements=sizes),
        traffic=SimpleNamespace(active_lanes=lanes),
        sample=SimpleNamespace(loaded=SimpleNamespace(threads=128), ctas=[0]),
    )
    assert launch_causes._part_in_bounds(model) == part


PADDED = "rows begin at multiples of 4 B only; pad them to a stride of a multiple of 16 elements"
BOTH = f"{PADDED}, and n must be known to be a multiple of 16 (tl.multiple_of); both are needed"


@pytest.mark.parametrize(
    ("starts", "runs", "sectors", "remedy"),
    [
        # one row of 512 B per CTA
        ([0, 512, 1024], {4}, (16, 16), "n must be known to be a multiple of 16 (tl.multiple_of)"),
        # a filter: every iteration shifts its window by one element
        ([400, 396, 392, 388], {4}, (64, 20), None),
        # rows of 1023 elements, one per CTA, or four in one access; the mask blocks wide accesses, too
        ([0, 4092, 8184], {4}, (17, 17), BOTH),
        ([0, 16384], {4, 16, 28, 24, 20}, (17, 17), BOTH),
        # a view whose first element is at 4 B of a line
        ([4, 516, 1028], {4}, (17, 17), BOTH),
        # the second of three numbers
        ([0, 3072], {12, 16}, (48, 48), "neighbouring elements are 12 B apart; store each component contiguously"),
        # lanes whose other elements are those of other instructions
        ([0, 512], {16}, (16, 16), "n must be known to be a multiple of 16 (tl.multiple_of)"),
    ],
)
def test_a_hint_holds_in_every_iteration(
    starts: list[int], runs: set[int], sectors: tuple[int, int], remedy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A promise that the addresses of the launch break would be undefined behaviour."""
    cause = NarrowCause(NarrowReason.MASK, 4, "n", 3)
    assert _run_starts(np.r_[0:64:4, 4092:4156:4]) == {4, 16, 16 + 4092 % 16}
    assert _run_starts(np.arange(0, 96, 12)) == {12, 16}
    monkeypatch.setattr(access_alignment, "_causes_at", lambda model, line, *, stores: [cause])
    model: Any = SimpleNamespace(
        traffic=SimpleNamespace(
            first_addresses={0: {(0, start): 1 for start in starts}},
            run_starts={0: runs},
            requested_sectors={0: sectors[0]},
            new_sectors={0: sectors[1]},
            tensor_of_step={},
        ),
        sample=SimpleNamespace(launch=SimpleNamespace(arguments={"n": 1 << 20})),
    )
    steps: Any = [SimpleNamespace(index=0, kind="global_load")]
    assert access_alignment.how_to_widen(model, "k.py:3", steps, 4, 16) == remedy
    model.sample.launch.arguments["n"] = 1000
    promised = access_alignment.how_to_widen(model, "k.py:3", steps, 4, 16)
    assert promised == (
        remedy and remedy.replace("n must be known to be", "n is 1000: make it").replace(" (tl.multiple_of)", "")
    )
    layout = NarrowCause(NarrowReason.LAYOUT, 8, "#mma", 3)
    monkeypatch.setattr(access_alignment, "_causes_at", lambda model, line, *, stores: [layout])
    assert "mark" not in (access_alignment.how_to_widen(model, "k.py:3", steps, 4, 16) or "")
    if remedy and "rows" in remedy:
        assert access_alignment.how_to_widen(model, "k.py:3", steps, 4, 16) == PADDED


@pytest.mark.parametrize(
    ("starts", "tensors", "reason", "distance"),
    [
        ((0, 2, 4, 6), "xxxx", NarrowReason.MASK, None),  # four elements of each lane, which a mask keeps apart
        ((0, 2, 4, 6), "xxxx", NarrowReason.STRIDE, 8),  # four components, loaded in one line
        ((2, 6), "xx", NarrowReason.MASK, 8),  # two of four components
        ((0, 2, 4, 6), "xxyy", NarrowReason.MASK, 8),  # two of four components of two tensors each
    ],
)
def test_lanes_that_are_apart_do_not_blame_the_layout_of_a_tensor_that_they_access_completely(
    starts: tuple[int, ...], tensors: str, reason: NarrowReason, distance: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two CTAs, each with an odd row of 16-bit elements, with the instructions of one line."""
    cause = NarrowCause(reason, 2, "", 3)
    monkeypatch.setattr(access_alignment, "_causes_at", lambda model, line, *, stores: [cause])
    steps: Any = [SimpleNamespace(index=index, kind="global_load") for index in range(len(starts))]
    rows = (0, 10006)
    model: Any = SimpleNamespace(
        traffic=SimpleNamespace(
            first_addresses={
                at: {(cta, row + one): 1 for cta, row in enumerate(rows)} for at, one in enumerate(starts)
            },
            run_starts={at: {8} for at in range(len(starts))},
            requested_sectors={},
            new_sectors={},
            tensor_of_step=dict(enumerate(tensors)),
        ),
        sample=SimpleNamespace(launch=SimpleNamespace(arguments={})),
    )
    padded = (
        "rows begin at multiples of 2 B only; pad them to a stride of a multiple of 16 elements, and bound masks by a multiple of 16;"
        " both are needed"  # the bound is a constant: it has no name
    )
    apart = f"neighbouring elements are {distance} B apart; store each component contiguously"
    assert access_alignment.how_to_widen(model, "k.py:3", steps, 2, 16) == (apart if distance else padded)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("stride", "make the stride stride a tl.constexpr of 1"),
        ("2", "neighbouring elements are 2 apart; load the elements between too, and take them apart (tl.split)"),
    ],
)
def test_a_stride_that_is_a_number_is_not_made_a_constant(
    name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even and odd elements, as in RoPE: a constant of 1 would load others."""
    cause = NarrowCause(NarrowReason.STRIDE, 2, name, 3)
    monkeypatch.setattr(access_alignment, "_causes_at", lambda model, line, *, stores: [cause])
    monkeypatch.setattr(access_alignment, "find_alignment", lambda model, steps, width: 16)
    model: Any = SimpleNamespace(traffic=None, sample=SimpleNamespace(launch=SimpleNamespace(arguments={})))
    assert access_alignment.how_to_widen(model, "k.py:3", [], 2, 16) == remedy


@pytest.mark.parametrize(("requested", "is_shared"), [(64, True), (10, False)])
def test_elements_that_one_cta_converts_are_not_converted_less_often(requested: int, is_shared: bool) -> None:
    """The weights of a product with a vector are converted once each; those of a matrix product by every row of CTAs."""
    sample = SimpleNamespace(
        requested_bytes=lambda sectors: {name: float(requested) for name in sectors},
        distinct_bytes=lambda sectors: dict.fromkeys(sectors, 8.0),
    )
    model: Any = SimpleNamespace(
        steps=[SimpleNamespace(index=0, kind="global_load"), SimpleNamespace(index=1, kind="global_load")],
        is_in_loop=lambda step: step.index == 0,
        traffic=SimpleNamespace(tensor_of_step={0: "w", 1: "bias"}, sectors_read={"w": 1, "bias": 9}),
        sample=sample,
    )
    assert arithmetic_causes._shares_loads(model) is is_shared
