"""Files of one kernel that say different things of one fact."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.resources.contradictions import find_contradictions
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage
from artifact_inspector.model import Function, Module, Partition, Stage
from artifact_inspector.model.shared import LaunchParameters


def function(name: str, partitions: tuple[Partition, ...] = ()) -> Function:
    return Function(name, 1, None, (), (), (), partitions=partitions)


def modules(*, specialised: bool = False, **names: str) -> dict[Stage, Module]:
    """A module of each stage, with the functions that are named."""
    parts = (Partition("default", 0, 1),) if specialised else ()
    return {
        Stage(stage): Module(Stage(stage), "k", tuple(function(one, parts) for one in held.split()), {})
        for stage, held in names.items()
    }


def launch(warps: int | None, total: int | None = None) -> LaunchParameters:
    return LaunchParameters("cuda:90", warps, total, 32, 1, None)


def bill(peak: int | None, declared: int | None) -> SharedMemoryUsage:
    return SharedMemoryUsage((), peak, declared, "")


def test_files_of_one_kernel_do_not_contradict_each_other() -> None:
    held = modules(ttgir="k", ptx="helper k")
    assert find_contradictions("k", 4, held, launch(4), ("cubin", "k"), bill(64, 64)) == ()
    assert find_contradictions(None, None, {}, None, None, None) == ()


def test_a_file_of_another_kernel_is_named_with_both_places() -> None:
    (found,) = find_contradictions("k", None, modules(ttgir="other more", ptx="k"), None, None, None)
    assert (found.message, found.locations) == ("kernel: k against other", ("metadata, name", "ttgir"))


def test_a_binary_of_another_kernel_is_named() -> None:
    (found,) = find_contradictions("k", None, modules(ptx="k"), None, ("cubin", "other"), None)
    assert (found.message, found.locations) == ("kernel: k against other", ("metadata, name", "cubin"))


def test_without_metadata_files_are_held_against_the_first() -> None:
    (found,) = find_contradictions(None, None, modules(ttgir="k", ptx="other"), None, None, None)
    assert (found.message, found.locations) == ("kernel: k against other", ("ttgir", "ptx"))
    assert find_contradictions(None, None, modules(ttgir="k"), None, ("cubin", "k"), None) == ()


def test_a_file_without_functions_contradicts_nothing() -> None:
    assert find_contradictions("k", None, modules(ptx=""), None, None, None) == ()


@pytest.mark.parametrize("written", ["_k_1", "k.1", "k_$_1"])
def test_names_are_compared_as_far_as_all_languages_can_write_them(written: str) -> None:
    assert find_contradictions("k1", None, modules(ptx=written), None, None, None) == ()


@pytest.mark.parametrize(
    ("said", "total", "specialised", "sentence"),
    [
        (4, None, False, None),
        (8, None, False, "warps per block: 4 against 8"),
        (4, 8, False, "warps per block: 4 against 8"),  # those of all partitions count
        (8, 4, False, None),
        (None, None, False, None),
        (8, None, True, None),  # the metadata counts the partitions' too
        (8, 12, True, "warps per block: 4 against 12"),
    ],
)
def test_warps_of_the_metadata_are_held_against_those_of_the_module(
    said: int | None, total: int | None, specialised: bool, sentence: str | None
) -> None:
    held = modules(specialised=specialised, ttgir="k")
    found = find_contradictions("k", 4, held, launch(said, total), None, None)
    assert [one.message for one in found] == ([] if sentence is None else [sentence])
    assert [one.locations for one in found] == [("metadata, num_warps", "ttgir, num-warps")][: len(found)]


def test_warps_are_compared_only_where_both_are_said() -> None:
    held = modules(ttgir="k")
    assert find_contradictions("k", None, held, launch(8), None, None) == ()
    assert find_contradictions("k", 4, held, None, None, None) == ()


@pytest.mark.parametrize(("peak", "declared"), [(64, 64), (64, 65), (64, None), (None, 64)])
def test_shared_memory_may_be_more_than_the_allocations_need(peak: int | None, declared: int | None) -> None:
    assert find_contradictions("k", None, {}, None, None, bill(peak, declared)) == ()


def test_less_shared_memory_than_the_allocations_need_is_a_contradiction() -> None:
    (found,) = find_contradictions("k", None, {}, None, None, bill(65, 64))
    assert found.message == "shared memory: 64 bytes against 65 that the allocations need"
    assert found.locations == ("metadata, shared", "ttgir")
