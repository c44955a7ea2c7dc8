"""The forms of one kernel in a row: what is in a form, and what sorts it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.comparison.matrix import Variant, find_matrix, shown_columns
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.inspection import inspect_artifact

GEMV = [k for k in saved_kernels(kernel="gemv_splitk", target="sm_75") if k.version > "3"]
SOFTMAX = saved_kernels(version="3.6.0", kernel="softmax")


def forms(kernels: list[Saved], *sort: str) -> tuple[Variant, ...]:
    return find_matrix([kernel.facts for kernel in kernels], sort).variants


def test_forms_alike_but_for_their_release_stand_in_its_order() -> None:
    found = forms(GEMV[::-1])
    versions = [form.summary.triton for form in found]
    assert len(versions) > 2
    assert versions == sorted(versions, key=str)
    assert len({form.configuration for form in found}) == 1


def test_targets_stand_by_vendor_and_age() -> None:
    targets = [str(form.summary.target) for form in forms(SOFTMAX)]
    nvidia = [target for target in targets if target.startswith("sm_")]
    assert targets[: len(nvidia)] == nvidia or targets[-len(nvidia) :] == nvidia
    assert nvidia == sorted(nvidia, key=lambda target: int(target[3:]))


def test_a_form_has_its_verdict_at_every_step_and_its_figures() -> None:
    (form, *_) = forms(GEMV)
    assert {"ttir", "ttgir", "llir"} <= set(form.verdicts)
    names = {column.name for column in shown_columns()}
    assert set(form.figures) <= names
    tile, warps, stages = form.configuration
    assert (warps, stages) == (form.kernel.artifact.num_warps, form.kernel.artifact.num_stages)
    assert tile != "?"


@pytest.mark.parametrize("word", ["registers", "-registers"])
def test_what_is_not_known_comes_last_whichever_way_it_is_sorted(word: str) -> None:
    values = [
        form.figures.get("registers")
        for form in forms([*GEMV, *saved_kernels(kernel="gemv_splitk", target="gfx942")], word)
    ]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=word.startswith("-"))  # type: ignore[type-var]
    assert values[: len(known)] == known


def test_the_first_word_sorts_most() -> None:
    found = forms(SOFTMAX, "warps", "-target")
    keys = [(form.kernel.artifact.num_warps, form.summary.target) for form in found]
    assert [warps for warps, _ in keys] == sorted(warps for warps, _ in keys)
    assert [target for _, target in keys] == sorted((target for _, target in keys), reverse=True, key=str)


def test_there_is_no_column_of_another_name() -> None:
    with pytest.raises(UsageError, match="Unknown column 'beauty' for --sort"):
        forms(GEMV, "beauty")


def test_a_matrix_is_of_one_kernel() -> None:
    with pytest.raises(UsageError, match="2 kernels match, but a matrix shows one"):
        forms([GEMV[0], SOFTMAX[0]])
    with pytest.raises(UsageError, match="0 kernels match, but a matrix shows one"):
        forms([])


def test_options_are_told_where_forms_of_one_target_and_release_differ() -> None:
    assert find_matrix([kernel.facts for kernel in GEMV]).options == ()


def test_of_one_tile_fewer_warps_stand_first() -> None:
    artifact = SOFTMAX[0].artifact
    wanted = [
        inspect_artifact(replace(artifact, num_warps=warps, hash=name))
        for warps, name in ((16, "a"), (4, "c"), (8, "b"))
    ]
    assert [form.configuration[1] for form in find_matrix(wanted).variants] == [4, 8, 16]
