"""Two kernels side by side: the facts that users come for, and what is no difference."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from saved import FIXTURES, Saved, saved, saved_kernels

from artifact_inspector.comparison.corpus import Change, Degree, compare_corpora
from artifact_inspector.comparison.fact_pair import FactPair, PairSide, State
from artifact_inspector.comparison.pair import Comparison, _verdict_change, compare_kernels
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.diff import describe_equal_orders
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.comparison import pair_document

EVERY = saved_kernels()
SWAPPED = {"left": "right", "right": "left", "left_lines": "right_lines", "right_lines": "left_lines"}


def pair(left: str, right: str) -> Comparison:
    return compare_kernels(saved(left).facts, saved(right).facts)


def mirrored(value: Any) -> Any:
    """A document with its sides exchanged, in fields and in the sentences that name them."""
    if isinstance(value, list):
        return [mirrored(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {SWAPPED.get(key, key): mirrored(part) for key, part in value.items()}
    if "direction" in found:
        found["direction"] = {"better": "worse", "worse": "better"}.get(found["direction"], found["direction"])
    for key in ("reason", "side"):
        if found.get(key):
            found[key] = exchanged(found[key])
    if "not_compared" in found:
        found["not_compared"] = sorted(map(exchanged, found["not_compared"]))
    return found


def exchanged(sentence: str) -> str:
    if sentence.startswith("read at "):  # at … on the left, at … on the right
        words = sentence.split()
        words[2], words[7] = words[7], words[2]
        return " ".join(words)
    return sentence.replace("left", "\0").replace("right", "left").replace("\0", "right")


def document(found: Comparison) -> Any:
    """A pair's document with what has no order of its own in one."""
    told = encode(pair_document(found))
    del told["headline"]  # of two facts that weigh the same, the worse one leads
    told["not_compared"] = sorted(note for note in told["not_compared"] if " may print " not in note)
    for region in told["regions"]:
        region["verdict_changes"] = {turn["side"]: turn for turn in region["verdict_changes"]}
    return told


def random_pairs() -> list[tuple[str, str]]:
    rng = random.Random(20)
    found = []
    for _ in range(24):
        one = rng.choice(EVERY)
        same = [other for other in EVERY if other.kernel == one.kernel]
        found.append((one.path, rng.choice(same if rng.random() < 0.7 else EVERY).path))
    return found


@pytest.mark.parametrize("kernel", EVERY[::5], ids=lambda kernel: kernel.path)
def test_a_kernel_does_not_differ_from_itself(kernel: Saved) -> None:
    found = compare_kernels(kernel.facts, kernel.facts)
    assert found.is_same
    assert found.first_divergence is None
    assert not found.differences
    assert [fact.key for fact in found.facts if fact.differs] == []


@pytest.mark.parametrize(("left", "right"), random_pairs())
def test_the_other_way_round_is_the_mirror_image(left: str, right: str) -> None:
    assert document(pair(left, right)) == mirrored(document(pair(right, left)))


def test_a_compiler_that_clustered_the_loads_of_one_gpu_alone_is_named() -> None:
    found = pair("3.2.0/sm_75/gemv_splitk", "3.2.0/gfx90a/gemv_splitk").first_divergence
    assert found is not None
    assert (found.step, found.components) == ("ttgir", ("Triton GPU passes",))
    assert (found.left, found.right) == ("interleaved", "clustered")
    assert found.left_lines
    assert found.right_lines


def test_an_order_that_may_not_have_changed_is_no_difference() -> None:
    """The page of a kernel calls a change unknown where two stages do not show the same loads; so does a comparison."""
    (region,) = (one for one in pair("3.2.0/sm_75/gemv_splitk", "3.2.0/gfx90a/gemv_splitk").regions if one.is_principal)
    changed = next(stage for stage in region.stages if stage.agree is False)
    assert changed.right is not None
    assert changed.right.region.order_changed
    unknown = changed.right._replace(region=replace(changed.right.region, order_changed=None))
    assert replace(changed, right=unknown).agree is None
    assert replace(changed, left=unknown, right=unknown).agree is True
    kernel = saved("3.2.0/gfx90a/gemv_splitk").facts
    sides = {stage.step: stage.right for stage in region.stages if stage.right is not None}
    assert _verdict_change(PairSide.RIGHT, kernel, sides) is not None
    assert _verdict_change(PairSide.RIGHT, kernel, {**sides, changed.step: unknown}) is None


def test_a_loop_that_no_earlier_stage_has_is_the_work_of_the_stage_that_made_it() -> None:
    found = pair("3.6.0/gfx942/index_load", "3.9.0/gfx942/index_load")
    (region,) = (one for one in found.regions if one.name == "loop1/2")
    assert region.first_divergence is not None
    assert (region.first_divergence.step, region.first_divergence.left) == ("llir", "no such region")
    assert region.first_divergence.components == ("Triton lowering + LLVM middle end",)


def test_a_later_compiler_did_not() -> None:
    (region,) = (one for one in pair("3.9.0/sm_75/gemv_splitk", "3.9.0/gfx942/gemv_splitk").regions if one.is_principal)
    agree = {stage.step: stage.agree for stage in region.stages}
    assert agree["ttir"] is agree["ttgir"] is True


def test_two_generations_of_matrix_units_are_told_by_instruction_and_wait() -> None:
    found = pair("3.6.0/sm_80/matmul_grouped", "3.6.0/sm_90/matmul_grouped")
    facts = {fact.key: fact for fact in found.facts}
    mma = facts["loop1.mma"]
    assert "mma.sync" in str(mma.left)
    assert "wgmma" in str(mma.right)
    assert any("cp.async.wait_group 4" in word for word in facts["loop1.waits"].left)  # type: ignore[union-attr]
    assert facts["loop1.mma.flop"].left == facts["loop1.mma.flop"].right == 2 * 128 * 32 * 32


def test_two_vendors_are_told_in_one_vocabulary() -> None:
    found = pair("3.6.0/sm_90/matmul_grouped", "3.6.0/gfx942/matmul_grouped")
    assert {stage.step for region in found.regions for stage in region.stages} <= {
        "ttir", "ttgir", "llir", "assembly", "sass",
    }  # fmt: skip
    assert not any("ptx" in fact.key or "amdgcn" in fact.key for fact in found.facts)


def test_registers_that_one_side_does_not_know_are_no_difference() -> None:
    found = pair("3.2.0/sm_75/gemv_splitk", "3.2.0/gfx90a/gemv_splitk")
    (registers,) = (fact for fact in found.facts if fact.key == "registers")
    assert (registers.left, registers.state) == (None, State.NOT_COMPARED)
    assert any(note.startswith("unknown on the left: registers") for note in found.notes)
    assert not any(note.startswith("unknown on the right") for note in found.notes)


def compared(left: Path, right: Path) -> Change:
    (one,), (other,) = open_cache(left).entries, open_cache(right).entries
    (change,) = compare_corpora([one], [other], inspect_artifact, is_one_pair=True, always=True).changes
    return change


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        (path, suffix) if turn % 3 == 0 else pytest.param(path, suffix, marks=pytest.mark.exhaustive)
        for turn, (path, suffix) in enumerate(
            product(
                ["3.6.0/sm_80/index_load", "3.6.0/gfx942/if_inside_loop", "3.9.0/sm_100/tma_warp_specialized"],
                ["ttir", "ttgir", "llir", "ptx", "amdgcn", "cubin", "hsaco", "json"],
            )
        )
    ],
)
def test_a_file_that_one_side_lacks_is_no_difference(path: str, suffix: str, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / path, tmp_path / "b")
    gone = list((tmp_path / "b").rglob(f"*.{suffix}"))
    for file in gone:
        file.unlink()
    for left, right in ((FIXTURES / path, tmp_path / "b"), (tmp_path / "b", FIXTURES / path)):
        change = compared(left, right)
        assert change.degree is Degree.IDENTICAL
        assert change.pair is not None
        assert change.pair.first_divergence is None
        assert not change.facts
        if gone and suffix in ("ttir", "ttgir", "llir"):
            assert any(f"has no {suffix} that could be read" in note for note in change.notes)


def test_a_file_that_cannot_be_read_is_no_difference(tmp_path: Path) -> None:
    source = FIXTURES / "3.6.0/sm_80/matmul_grouped"
    for side in ("whole", "damaged"):
        shutil.copytree(source, tmp_path / side)
    for suffix in ("ptx", "cubin"):
        (found,) = (tmp_path / "damaged").rglob(f"*.{suffix}")
        found.write_bytes(random.Random(7).randbytes(4000))
    change = compared(tmp_path / "whole", tmp_path / "damaged")
    assert [fact.key for fact in change.facts] == []
    assert change.pair is not None
    assert any("assembly" in note for note in change.pair.notes)


def test_another_binary_of_the_same_text_is_another_kernel(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "3.6.0/sm_80/matmul_grouped", tmp_path / "b")
    (cubin,) = (tmp_path / "b").rglob("*.cubin")
    content = bytearray(cubin.read_bytes())
    content[content.rindex(b"\x18\x79")] ^= 1  # an opcode
    cubin.write_bytes(content)
    assert compared(FIXTURES / "3.6.0/sm_80/matmul_grouped", tmp_path / "b").degree is not Degree.BENIGN


def test_kernels_with_no_file_of_one_kind_are_not_called_the_same(tmp_path: Path) -> None:
    for side, kept in (("a", "ttir"), ("b", "llir")):
        shutil.copytree(FIXTURES / "3.6.0/sm_75/softmax", tmp_path / side)
        for file in (tmp_path / side).rglob("*.*"):
            if file.is_file() and file.suffix not in (f".{kept}", ".json"):
                file.unlink()
    (one,), (other,) = open_cache(tmp_path / "a").entries, open_cache(tmp_path / "b").entries
    corpus = compare_corpora([one], [other], inspect_artifact, is_one_pair=True)
    assert not corpus.is_same


def test_the_title_of_a_fact_is_its_label_without_the_indent() -> None:
    fact = FactPair("shared.a", "shared", "  operand a of the dot", "B per CTA", "", 1, 2, State.DIFFERENT)
    assert fact.title == "operand a of the dot"


@pytest.mark.parametrize(
    ("agree", "extent"), [(True, "at every stage."), (None, "where it is known: at assembly the verdicts differ.")]
)
def test_an_order_that_may_differ_is_not_called_the_same(agree: bool | None, extent: str) -> None:
    stages = [SimpleNamespace(step="TTGIR", compared=True, agree=True)]
    stages.append(SimpleNamespace(step="assembly", compared=True, agree=agree))
    pair: Any = SimpleNamespace(regions=[SimpleNamespace(stages=stages)])
    assert describe_equal_orders(pair) == f"Both kernels order loads and computes the same way {extent}"
