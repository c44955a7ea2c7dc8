"""Which kernels of two sides are taken for one another, and which are left alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.comparison.corpus import Corpus
from artifact_inspector.comparison.matching import Axis, Candidate, Matching, find_differences, match, parse_axes
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Artifact, cache_in_memory, open_cache
from artifact_inspector.model import TritonVersion
from artifact_inspector.report.corpus import describe_unmatched, suggest_axes

PROGRAM = """module {{
  tt.func public @{name}(%p: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %n: {number}) {{
    %c = arith.constant {constant} : i32
    %0 = tt.splat %p : !tt.ptr<f16> -> tensor<{load}x!tt.ptr<f16>>
    %1 = tt.load %0 : tensor<{load}x!tt.ptr<f16>>
    %2 = tt.splat %p : !tt.ptr<f16> -> tensor<{store}x!tt.ptr<f16>>
    %3 = tt.load %2 : tensor<{store}x!tt.ptr<f16>>
    tt.store %2, %3 : tensor<{store}x!tt.ptr<f16>>
    tt.print "n" {{hex = false}} : %c : i32
    tt.return
  }}
}}
"""


def kernel(
    hash: str,
    *,
    name: str = "k",
    arch: int | None = 80,
    version: str | None = "3.6.0",
    warps: int = 4,
    constant: int = 7,
    load: int = 64,
    store: int = 32,
    number: str = "i32",
    text: str | None = PROGRAM,
) -> Artifact:
    """One kernel as its cache entry would have it; without `text` it has no tensor-level IR."""
    metadata: dict[str, object] = {"hash": hash, "name": name, "num_warps": warps, "num_stages": 3}
    if arch is not None:
        metadata["target"] = {"backend": "cuda", "arch": arch, "warp_size": 32}
    contents = {"json": json.dumps(metadata).encode(), "ptx": b".version 8.7\n"}
    if text is not None:
        program = text.format(name=name, constant=constant, load=load, store=store, number=number)
        contents["ttir"] = program.encode()
    (artifact,) = cache_in_memory(name, contents).entries
    return replace(artifact, triton_version=version and TritonVersion(version))


def pairs(found: Matching) -> list[tuple[str, str]]:
    return sorted((one.artifact.hash, other.artifact.hash) for one, other in found.pairs)


def alone(found: Matching) -> tuple[list[str], list[str]]:
    return [x.artifact.hash for x in found.left], [x.artifact.hash for x in found.right]


def open_groups(found: Matching) -> list[tuple[set[str], set[str]]]:
    return [({x.artifact.hash for x in a}, {x.artifact.hash for x in b}) for a, b in found.ambiguous]


def is_whole(found: Matching, left: list[Artifact], right: list[Artifact]) -> bool:
    """Whether each kernel stands in just one place of the result."""
    told = [x for pair in found.pairs for x in pair] + [*found.left, *found.right]
    told += [x for group in found.ambiguous for side in group for x in side]
    return sorted(x.artifact.hash for x in told) == sorted(x.hash for x in (*left, *right))


@pytest.mark.parametrize("version", ["3.2.0", "3.6.0"])
def test_a_cache_is_matched_with_itself_entry_by_entry(version: str) -> None:
    entries = open_cache(FIXTURES / version).entries
    found = match(entries, entries)
    assert len(found.pairs) == len(entries)
    assert all(one.artifact is other.artifact for one, other in found.pairs)
    assert (found.left, found.right, found.ambiguous, found.across) == ((), (), (), frozenset())
    assert not any(find_differences(one, other) for one, other in found.pairs)


def test_a_cache_that_holds_a_kernel_twice_is_matched_with_its_copy(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(FIXTURES / "3.6.0/sm_80/softmax", tmp_path / "cache" / name)
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    found = match(open_cache(tmp_path / "cache").entries, open_cache(tmp_path / "copy").entries)
    places = [(one.artifact.directory, other.artifact.directory) for one, other in found.pairs]
    assert len(places) == 2
    assert all(one == other for one, other in places)


def test_twins_without_a_place_of_their_own_are_not_guessed_apart() -> None:
    left, right = [kernel("a1"), kernel("a2")], [kernel("b1"), kernel("b2")]
    found = match(left, right)
    assert not found.pairs
    assert open_groups(found) == [({"a1", "a2"}, {"b1", "b2"})]
    assert is_whole(found, left, right)


def test_one_kernel_that_two_could_be_is_left_open() -> None:
    left, right = [kernel("a1", constant=1)], [kernel("b1", constant=2), kernel("b2", constant=3)]
    found = match(left, right)
    assert open_groups(found) == [({"a1"}, {"b1", "b2"})]
    assert is_whole(found, left, right)


def test_configurations_that_differ_in_a_constant_alone_are_told_by_their_text() -> None:
    left = [kernel("a1", constant=1), kernel("a2", constant=2)]
    right = [kernel("b2", constant=2), kernel("b1", constant=1)]
    found = match(left, right)
    assert pairs(found) == [("a1", "b1"), ("a2", "b2")]


def test_the_last_of_several_goes_with_the_last() -> None:
    left = [kernel("a1", constant=1), kernel("a2", constant=2)]
    right = [kernel("b1", constant=1), kernel("b3", constant=3)]
    found = match(left, right)
    assert pairs(found) == [("a1", "b1"), ("a2", "b3")]


def test_a_text_that_only_names_its_values_otherwise_is_the_same() -> None:
    renamed = PROGRAM.replace("%c", "%seven").replace("%3", "%43")
    left = [kernel("a1", constant=1), kernel("a2", constant=2)]
    right = [kernel("b1", constant=1, text=renamed), kernel("b2", constant=2, text=renamed)]
    assert pairs(match(left, right)) == [("a1", "b1"), ("a2", "b2")]


OTHERS = {
    Axis.TARGET: {"arch": 90},
    Axis.VERSION: {"version": "3.5.0"},
    Axis.CONFIG: {"load": 128, "store": 16},
    Axis.SOURCE: {"name": "other"},
}


def crossed(axis: Axis) -> tuple[list[Artifact], list[Artifact]]:
    """A kernel that differs in one axis, and on each side what the other has of targets and versions."""
    common = [{"name": "here", "arch": arch, "version": v} for arch in (80, 90) for v in ("3.6.0", "3.5.0")]
    left = [kernel(f"l{n}", **found) for n, found in enumerate(common)]  # type: ignore[arg-type]
    right = [kernel(f"r{n}", **found) for n, found in enumerate(common)]  # type: ignore[arg-type]
    return [kernel("a"), *left], [kernel("b", **OTHERS[axis]), *right]  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", Axis)
@pytest.mark.parametrize("allowed", [None, *Axis])
def test_an_axis_lets_just_itself_differ(axis: Axis, allowed: Axis | None) -> None:
    left, right = crossed(axis)
    found = match(left, right, () if allowed is None else [allowed])
    assert (("a", "b") in pairs(found)) is (axis is allowed)
    assert is_whole(found, left, right)
    assert found.across == (frozenset() if allowed is None else {allowed})
    if axis is not allowed:
        assert "a" in alone(found)[0]
        assert "b" in alone(found)[1]


@pytest.mark.parametrize("axis", Axis)
def test_what_differs_across_an_axis_is_said(axis: Axis) -> None:
    left, right = crossed(axis)
    differences = find_differences(Candidate(left[0]), Candidate(right[0]))
    assert {found.axis for found in differences} == {axis}


@pytest.mark.parametrize("axis", Axis)
def test_the_axis_that_would_help_is_suggested(axis: Axis) -> None:
    left, right = crossed(axis)
    found = match(left[:1], right[:1])
    assert found.across == ({axis} if axis in (Axis.TARGET, Axis.VERSION) else set())
    if not found.pairs:
        assert suggest_axes(found, ()) == f"--across {axis.value} would match 1."


def test_kernels_without_a_partner_are_told_which_axis_would_help() -> None:
    left, right = crossed(Axis.CONFIG)
    lonely = Corpus((), match(left[:1], right[:1]), ())
    assert list(describe_unmatched(lonely))[-1] == "--across config would match 1 of these"
    only_left = Corpus((), match(left[:1], []), ())
    assert not any("--across" in said for said in describe_unmatched(only_left))


def test_warps_tell_configurations_apart() -> None:
    left, right = [kernel("a4"), kernel("a8", warps=8)], [kernel("b8", warps=8), kernel("b4")]
    assert pairs(match(left, right)) == [("a4", "b4"), ("a8", "b8")]
    assert alone(match(left[:1], right[:1])) == (["a4"], ["b8"])
    assert pairs(match(left[:1], right[:1], [Axis.CONFIG])) == [("a4", "b8")]


def test_sides_with_no_target_in_common_are_compared_across_targets() -> None:
    found = match([kernel("a")], [kernel("b", arch=90)])
    assert pairs(found) == [("a", "b")]
    assert found.across == {Axis.TARGET}


def test_sides_with_no_version_in_common_are_compared_across_versions() -> None:
    found = match([kernel("a")], [kernel("b", version="3.5.0")])
    assert pairs(found) == [("a", "b")]
    assert found.across == {Axis.VERSION}


def test_what_is_not_known_on_either_side_is_nothing_in_common() -> None:
    left = [kernel("a"), kernel("a0", name="other", version=None)]
    right = [kernel("b", version="3.5.0"), kernel("b0", name="other", version=None)]
    found = match(left, right)
    assert pairs(found) == [("a", "b"), ("a0", "b0")]
    assert found.across == {Axis.VERSION}


def test_versions_that_no_side_knows_are_not_compared_across() -> None:
    found = match([kernel("a", version=None)], [kernel("b", version=None)])
    assert pairs(found) == [("a", "b")]
    assert found.across == frozenset()


def test_a_kernel_of_a_known_version_is_compared_with_one_of_an_unknown() -> None:
    found = match([kernel("a", version=None)], [kernel("b")])
    assert pairs(found) == [("a", "b")]
    assert found.across == {Axis.VERSION}


def test_one_target_in_common_is_enough_to_keep_the_others_apart() -> None:
    found = match([kernel("a"), kernel("a9", arch=90)], [kernel("b", arch=75), kernel("b9", arch=90)])
    assert pairs(found) == [("a9", "b9")]
    assert alone(found) == (["a"], ["b"])
    assert found.across == frozenset()


def test_an_edited_source_keeps_its_partner() -> None:
    edited = PROGRAM.replace("    tt.print", "    tt.store %0, %1 : tensor<{load}x!tt.ptr<f16>>\n    tt.print")
    found = match([kernel("a")], [kernel("b", text=edited)])
    assert pairs(found) == [("a", "b")]
    ((one, other),) = found.pairs
    assert [(x.axis, x.facet) for x in find_differences(one, other)] == [(Axis.CONFIG, "tiles")]


def test_other_arguments_make_another_kernel_in_one_version() -> None:
    assert alone(match([kernel("a")], [kernel("b", number="i64")])) == (["a"], ["b"])
    assert pairs(match([kernel("a")], [kernel("b", number="i64")], [Axis.SOURCE])) == [("a", "b")]


def test_another_version_may_take_its_arguments_otherwise() -> None:
    assert pairs(match([kernel("a")], [kernel("b", number="i64", version="3.5.0")])) == [("a", "b")]


@pytest.mark.parametrize(("left", "right"), [(2, 0), (0, 2), (0, 0)])
def test_an_empty_side_leaves_the_other_alone(left: int, right: int) -> None:
    found = match([kernel(f"a{n}") for n in range(left)], [kernel(f"b{n}") for n in range(right)])
    assert not found.pairs
    assert not found.ambiguous
    assert (len(found.left), len(found.right), found.across) == (left, right, frozenset())


def test_kernels_without_tensor_level_text_are_matched_by_what_is_left() -> None:
    left = [kernel("a4", text=None), kernel("a8", text=None, warps=8)]
    right = [kernel("b8", text=None, warps=8), kernel("b4", text=None)]
    assert pairs(match(left, right)) == [("a4", "b4"), ("a8", "b8")]


def test_a_kernel_whose_text_is_gone_on_one_side_keeps_its_partner() -> None:
    assert pairs(match([kernel("a")], [kernel("b", text=None)])) == [("a", "b")]


def test_a_text_that_cannot_be_read_is_no_text() -> None:
    broken = kernel("b", text="tt.func @(((")
    assert pairs(match([kernel("a")], [broken])) == [("a", "b")]
    assert Candidate(broken).program is None


@pytest.mark.parametrize("across", [(), (Axis.TARGET,), (Axis.VERSION, Axis.TARGET), tuple(Axis)])
def test_the_other_way_round_the_same_kernels_belong_together(across: tuple[Axis, ...]) -> None:
    left, right = open_cache(FIXTURES / "3.2.0").entries, open_cache(FIXTURES / "3.3.1").entries
    one, other = match(left, right, across), match(right, left, across)
    assert pairs(one) == sorted((b, a) for a, b in pairs(other))
    assert alone(one) == alone(other)[::-1]


def test_axes_are_given_in_one_word_or_several() -> None:
    assert parse_axes(["target, Version", "config"]) == (Axis.TARGET, Axis.VERSION, Axis.CONFIG)
    with pytest.raises(UsageError, match="'colour'") as raised:
        parse_axes(["colour"])
    assert raised.value.remedy == "Expected one of target, version, config, source."
