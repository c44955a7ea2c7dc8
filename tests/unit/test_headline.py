"""The decisive fact of hand-judged pairs: what an engineer would name first, and whether it is better or worse."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from saved import ROOT, saved

from artifact_inspector.comparison.corpus import Change, compare_candidates, compare_corpora
from artifact_inspector.comparison.headline import _describe_request, headlines_of_pair
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, Facet
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.vocabulary.fact import Sign

JUDGED = [
    # NVIDIA, another generation: the matrix unit decides
    ("3.6.0/sm_80/matmul_grouped", "3.6.0/sm_90/matmul_grouped", "loop1.mma", "better"),
    ("3.6.0/sm_80/flash_attention", "3.6.0/sm_90/flash_attention", "loop1.mma", "better"),
    ("3.6.0/sm_80/fused_linear", "3.6.0/sm_90/fused_linear", "loop1.mma", "better"),
    ("3.6.0/sm_90/matmul_grouped", "3.6.0/sm_80/matmul_grouped", "loop1.mma", "worse"),
    ("3.6.0/sm_90/matmul_grouped", "3.6.0/sm_100/matmul_grouped", "loop1.mma", "better"),
    ("3.6.0/sm_80/matmul_square", "3.6.0/sm_90/matmul_square", "findings", "worse"),  # AI005: no wgmma
    # Turing has no tensor-core path in this release
    ("3.6.0/sm_80/matmul_grouped", "3.6.0/sm_75/matmul_grouped", "loop1.mma.fused", "worse"),
    ("3.6.0/sm_80/flash_attention", "3.6.0/sm_75/flash_attention", "loop1.mma.fused", "worse"),
    ("3.6.0/sm_75/matmul_grouped", "3.6.0/sm_80/matmul_grouped", "loop1.mma.fused", "better"),
    ("3.6.0/sm_80/gemv_splitk", "3.6.0/sm_75/gemv_splitk", "occupancy", "worse"),
    # another vendor: asynchronous copies and spills decide, not blocks
    ("3.6.0/sm_80/register_spill", "3.6.0/gfx942/register_spill", "spills", "better"),
    ("3.6.0/gfx942/register_spill", "3.6.0/sm_80/register_spill", "spills", "worse"),
    ("3.6.0/sm_80/matmul_grouped", "3.6.0/gfx942/matmul_grouped", "loop1.pipeline.iterations", "worse"),
    ("3.6.0/sm_80/fused_linear", "3.6.0/gfx942/fused_linear", "loop1.pipeline.iterations", "worse"),
    ("3.6.0/sm_80/bias_after_loop", "3.6.0/gfx942/bias_after_loop", "loop1.pipeline.iterations", "worse"),
    ("3.6.0/sm_80/gemv_splitk", "3.6.0/gfx942/gemv_splitk", "loads.widths", "better"),
    ("3.6.0/sm_80/softmax", "3.6.0/gfx942/softmax", "loads.widths", "worse"),  # 128 threads → 256
    ("3.6.0/sm_80/copy", "3.6.0/gfx942/copy", "loads.widths", "worse"),  # 16 → 8 blocks, but of twice the threads
    ("3.6.0/sm_80/masked_add", "3.6.0/gfx942/masked_add", None, "neutral"),  # half as many loads of 2 B per thread
    ("3.6.0/sm_80/flash_attention", "3.6.0/gfx942/flash_attention", "loop1.mma.elements", "worse"),
    ("3.6.0/sm_80/if_inside_loop", "3.6.0/gfx942/if_inside_loop", "loop1.pipeline.kind", "worse"),
    # another release
    ("3.2.0/gfx942/gemv_splitk", "3.9.0/gfx942/gemv_splitk", "straight.in_flight.bytes", "worse"),  # 4 × 60 → 5 × 36 KB
    ("3.6.0/sm_80/gemv_splitk", "3.9.0/sm_80/gemv_splitk", "loads.widths", "better"),
    (
        "3.6.0/gfx942/gemv_splitk",
        "3.9.0/gfx942/gemv_splitk",
        "occupancy",
        "worse",
    ),  # 8 → 5 blocks of equal bytes in flight
    ("3.6.0/sm_80/helper_twice", "3.9.0/sm_80/helper_twice", "count.barrier", "better"),
    ("3.6.0/gfx942/atomic_cas", "3.9.0/gfx942/atomic_cas", "count.barrier", "worse"),
    ("3.6.0/gfx942/fused_linear", "3.6.0/gfx950/fused_linear", "loop1.mma.elements", "better"),  # ds_read_b64_tr_b16
]


def change_of(left: str, right: str) -> Change:
    pair = saved(left).artifact, saved(right).artifact
    return compare_candidates(Candidate(pair[0]), Candidate(pair[1]), inspect_artifact, always=True)


@pytest.mark.parametrize(("left", "right", "key", "direction"), JUDGED)
def test_the_decisive_fact_is_that_of_an_engineer(left: str, right: str, key: str | None, direction: str) -> None:
    change = change_of(left, right)
    assert change.direction == direction
    assert (None if change.headline is None else change.headline.fact.key) == key


@pytest.mark.parametrize(("left", "right", "key", "direction"), JUDGED[::4])
def test_exchanged_sides_have_the_reverse_direction(left: str, right: str, key: str | None, direction: str) -> None:
    assert change_of(right, left).direction is {Sign.WORSE: Sign.BETTER, Sign.BETTER: Sign.WORSE}.get(
        Sign(direction), Sign.NEUTRAL
    )


def test_a_sentence_names_cause_line_and_origin() -> None:
    change = change_of("3.6.0/sm_80/matmul_grouped", "3.6.0/gfx942/matmul_grouped")
    assert change.headline is not None
    assert change.headline.sentence == (
        "Worse: the pipeline of the loop at matmul_grouped.py:81 drains every iteration (iterations in flight 2 → 0); "
        "target sm_80 → gfx942."
    )


def test_an_order_that_keeps_fewer_bytes_in_flight_outweighs_one_more_block() -> None:
    change = change_of("3.2.0/gfx942/gemv_splitk", "3.9.0/gfx942/gemv_splitk")
    assert change.headline is not None
    assert change.headline.describe("").startswith(
        "Fewer bytes in flight (at most 61440 → 36864 B per CTA), since loads and computes are interleaved instead of "
        "clustered, at gemv_splitk.py:29; Triton 3.2"
    )


def test_a_release_that_reduces_across_warps_is_worse_by_that(tmp_path: Path) -> None:
    """triton#9703: 1.8 times slower on an H100 from 3.5.1 to 3.6.0, by the layout of a reduction."""
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    entries = open_cache(tmp_path / "reduction_across_warps").entries
    sides = [[entry for entry in entries if str(entry.triton_version) == release] for release in ("3.5.1", "3.6.0")]
    (change,) = compare_corpora(*sides, inspect_artifact, across=(Axis.VERSION,)).changes
    assert change.headline is not None
    assert change.headline.fact.key == "shared.reduction across warps"
    assert change.headline.sentence.startswith(
        "Worse: new reduction across warps: 0 → 2048 B of shared memory, barriers 5 → 7 per iteration"
    )
    assert (change.headline.source, change.first_difference) == ("colmax.py:9", "ttgir")


def test_narrow_loads_are_at_the_line_of_a_load() -> None:
    change = change_of("3.9.0/sm_80/gemv_splitk", "3.6.0/sm_80/gemv_splitk")
    assert change.headline is not None
    assert change.headline.phrase.startswith("loads are narrower, 14.4 → 9 B per thread on average")  # of each byte
    file, _, line = (change.headline.source or "").rpartition(":")
    assert "tl.load" in (ROOT / "kernels" / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("left", "right", "origin"),
    [
        (("load 64×64", "dot 64×128×64"), ("load 256×64", "dot 256×256×64"), "tiles dot 64×128×64 → dot 256×256×64"),
        (("load 1024",), ("load 32768",), "tiles load 1024 → load 32768"),
        (("load 64×64", "dot 64×128×64"), ("load 64×64",), ""),  # another program
    ],
)
def test_other_tiles_are_an_origin(left: tuple[str, ...], right: tuple[str, ...], origin: str) -> None:
    assert _describe_request(Difference(Axis.CONFIG, Facet.TILES, left, right)) == origin


def test_a_new_finding_is_its_message_with_the_loop_in_words() -> None:
    change = change_of("3.6.0/sm_80/matmul_square", "3.6.0/sm_90/matmul_square")
    assert change.headline is not None
    assert change.headline.sentence.startswith("Worse: in the loop at line ")
    assert "(new finding: AI005 older-mma-than-target), at matmul_square.py:" in change.headline.sentence


def test_equal_kernels_have_no_headline() -> None:
    kernel = saved("3.6.0/sm_80/softmax").facts
    assert headlines_of_pair(compare_kernels(kernel, kernel)) == ()


@pytest.mark.parametrize(
    ("case", "phrase", "source"),
    [
        # x loses its divisor: not the weights, which were as narrow before
        ("0", "loads are narrower, 15.2 → 2 B per thread on average (8×16 B + 4×2 B → 68×2 B)", "causal_conv.py:17"),
        # 8-byte copies of a prologue and a loop → 64 loads of one byte
        (
            "7",
            "loads are narrower, 10.5 → 3.38 B per thread on average (loads 1×4 B → 1×4 B + 64×1 B, "
            "copies to shared memory 12×16 B + 24×8 B → 12×16 B)",
            "int8_gemm.py:34",
        ),
        ("13", "more barriers (1 → 2)", "add_rms_norm.py:50"),  # a barrier of the source beside that of a sum
    ],
)
def test_the_changed_access_and_the_new_barrier_are_named(case: str, phrase: str, source: str, tmp_path: Path) -> None:
    with tarfile.open(ROOT / "tests" / "cases" / "unseen_changes.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    sides = [open_cache(tmp_path / "unseen_changes" / case / side).entries[0] for side in ("old", "new")]
    headline = compare_candidates(*map(Candidate, sides), inspect_artifact).headline
    assert headline is not None
    assert (headline.phrase, headline.source) == (phrase, source)


@pytest.mark.parametrize(
    ("phrase", "word"),
    [
        ("more barriers (2 → 3)", "despite"),
        ("9 → 8 blocks per multiprocessor", "despite"),
        ("2×2 warps of 32×32 cover 64×64", "although"),
        ("the dots lost the matrix unit", "although"),
    ],
)
def test_a_fact_against_the_predicted_time_follows_its_conjunction(phrase: str, word: str) -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    headline = compare_corpora(*sides, inspect_artifact, is_one_pair=True).changes[0].headline
    assert headline is not None
    assert headline._replace(phrase=phrase).contrast == word
