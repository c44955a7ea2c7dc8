"""A kernel's facts as flat rows: names that do not shift, units, and the numbers that the kernel alone is shown with."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from saved import FIXTURES, Saved, saved, saved_kernels
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.names import STEPS, name_regions, step_of
from artifact_inspector.vocabulary.rows import CATEGORIES, summarise

EVERY = saved_kernels()
SOME = [
    "3.6.0/sm_80/matmul_grouped",
    "3.6.0/sm_75/softmax",
    "3.2.0/sm_75/gemv_splitk",
    "3.9.0/sm_100/tma_warp_specialized",
    "3.6.0/gfx942/matmul_grouped",
    "3.2.0/gfx90a/gemv_splitk",
    "3.6.0/gfx1100/flash_attention",
    "3.6.0/gfx942/register_spill",
]


# -- names -----------------------------------------------------------------------------


def with_regions(*ids: str) -> KernelFacts:
    """A kernel of which the last stage has regions of these ids."""
    kernel = saved("3.6.0/sm_80/softmax").facts
    (last,) = (facts for stage, facts in kernel.stages.items() if facts is kernel.last)
    one = last.regions[0]
    facts = replace(last, regions=tuple(replace(one, id=name) for name in ids))
    return replace(kernel, stages={last.stage: facts})


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["straight", "loop@9"], ["straight", "loop1"]),
        (["loop@30", "loop@9", "loop@100"], ["loop2", "loop1", "loop3"]),
        (["loop@9", "loop@9/loads"], ["loop1", "loop1/loads"]),
        (["loop@9", "loop@9#2"], ["loop1", "loop1#2"]),
        (["loop@9/2", "loop@9", "loop@20"], ["loop1/2", "loop1", "loop2"]),
        (["loop#1", "loop#2"], ["loop1", "loop2"]),
        (["helper/loop@9", "loop@40"], ["helper/loop1", "loop1"]),
        (["helper/loop@9", "helper/loop@12", "loop@9"], ["helper/loop1", "helper/loop2", "loop1"]),
        (["helper/loop@9/loads", "helper/straight"], ["helper/loop1/loads", "helper/straight"]),
    ],
)
def test_loops_are_numbered_in_each_function_by_their_order(ids: list[str], names: list[str]) -> None:
    assert [name_regions(with_regions(*ids))[name] for name in ids] == names


@pytest.mark.parametrize("by", [1, 3, 91, 1000])
def test_names_stay_when_lines_shift(by: int) -> None:
    ids = ["straight", "loop@9", "loop@9/loads", "loop@9#2", "helper/loop@9", "helper/loop@100", "loop@14"]
    moved = [re.sub(r"@(\d+)", lambda found: f"@{int(found[1]) + by}", name) for name in ids]
    here, there = name_regions(with_regions(*ids)), name_regions(with_regions(*moved))
    assert list(here.values()) == list(there.values())
    assert not any("@" in name for name in here.values())


def test_loops_that_only_the_compiler_made_have_no_name() -> None:
    kernel = with_regions("loop@9", "loop@20")
    (facts,) = kernel.stages.values()
    made = replace(facts, regions=(facts.regions[0], replace(facts.regions[1], is_in_program=False)))
    assert name_regions(replace(kernel, stages={facts.stage: made})) == {"loop@9": "loop1"}


@pytest.mark.parametrize("kernel", EVERY[::4], ids=lambda kernel: kernel.path)
def test_no_two_regions_share_a_name_and_no_two_rows_a_key(kernel: Saved) -> None:
    names = name_regions(kernel.facts)
    assert len(set(names.values())) == len(names)
    keys = Counter(row.key for row in summarise(kernel.facts).rows)
    assert [key for key, count in keys.items() if count > 1] == []


# -- rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", EVERY[::4], ids=lambda kernel: kernel.path)
def test_every_row_is_of_a_category_and_a_stage_that_was_read(kernel: Saved) -> None:
    summary = summarise(kernel.facts)
    assert summary.steps == tuple(step for step in STEPS if step in {step_of(s) for s in kernel.facts.stages})
    for row in summary.rows:
        assert row.category in CATEGORIES
        assert row.step in ("", *summary.steps)
        assert row.key.startswith(f"{row.region}.") or not row.region
        assert not re.search(r"ptx|amdgcn|@\d", row.key)


def test_both_vendors_have_one_vocabulary() -> None:
    keys: dict[str, set[str]] = {}
    units: dict[str, set[str]] = {}
    for target in ("sm_80", "gfx942"):
        rows = summarise(saved(f"3.6.0/{target}/matmul_grouped").facts).rows
        keys[target] = {row.key for row in rows}
        for row in rows:
            units.setdefault(row.key, set()).add(row.unit)
    assert len(keys["sm_80"] & keys["gfx942"]) > 30
    assert {key for key, found in units.items() if len(found) > 1} == set()


@pytest.mark.parametrize("path", SOME)
def test_a_number_says_its_unit(path: str) -> None:
    plain = {"loads in flight, at most", "buffers", "compute partitions"}
    for row in summarise(saved(path).facts).rows:
        is_number = isinstance(row.value, int | float) and not isinstance(row.value, bool)
        assert row.unit or not is_number or row.label in plain, row


@pytest.mark.parametrize(
    ("path", "key", "unit", "value"),
    [
        ("3.6.0/sm_80/matmul_grouped", "shared", "B per CTA", 30720),
        ("3.6.0/sm_80/matmul_grouped", "registers", "per thread", 95),
        ("3.6.0/sm_80/matmul_grouped", "loop1.mma.flop", "per CTA and iteration", 2 * 128 * 32 * 32),
        ("3.6.0/gfx942/matmul_grouped", "loop1.mma.flop", "per CTA and iteration", 2 * 128 * 32 * 32),
        ("3.6.0/sm_80/matmul_grouped", "loop1.in_flight.bytes", "B per CTA", 240 * 128),
        ("3.6.0/sm_80/matmul_grouped", "loop1.pipeline.depth", "left in flight", 4),
        ("3.6.0/sm_80/matmul_grouped", "loop1.pipeline.iterations", "behind the wait", 2),
    ],
)
def test_what_users_come_for_is_a_row(path: str, key: str, unit: str, value: object) -> None:
    (row,) = (row for row in summarise(saved(path).facts).rows if row.key == key)
    assert (row.unit, row.value) == (unit, value)


# -- the numbers that the kernel alone is shown with -----------------------------------


def shown(path: str) -> Any:
    (kernel,) = json.loads(CliRunner().invoke(app, [str(FIXTURES / path), "--json"]).stdout)["kernels"]
    return kernel


@pytest.mark.parametrize("path", SOME)
def test_rows_equal_what_the_kernel_alone_is_shown_with(path: str) -> None:
    facts, alone = summarise(saved(path).facts).facts, shown(path)
    resources, stages = alone["resources"], alone["stages"]
    assert facts["registers"] == resources["registers"]
    assert facts["spills"] == resources["spill_bytes"]
    assert facts["shared"] == resources["shared_bytes"] == alone["shared_bytes"]
    assert facts["occupancy"] == resources["occupancy"]["blocks_per_sm"]
    codes = {finding["code"] for finding in alone["findings"]}
    told = {*facts["findings"], *(facts["findings.resources"] or ())}  # type: ignore[misc]
    assert told <= codes
    if resources["registers"] is not None:
        assert told == codes
    for name, stage in stages.items():
        step = step_of(Stage(name))
        assert facts[f"instructions.{step}"] == stage["instructions"]
        for region in stage["regions"]:
            if region["is_in_program"] and region["verdict"] != "unknown":
                key = f"{names(path)[region['id']]}.verdict.{step}"
                assert facts[key] == region["phrase"].partition(" ×")[0]
    last = stages[list(stages)[-1]]
    for kind in ("barrier", "float", "matrix", "shared_load", "shared_store", "atomic"):
        assert facts[f"count.{kind}"] == last["counts"][kind]
    for region in last["regions"]:
        pipeline = region["pipeline"]
        if pipeline is not None and pipeline["kind"] is not None and region["is_in_program"]:
            name = names(path)[region["id"]]
            assert facts[f"{name}.pipeline.buffers"] == pipeline["buffers"]
            assert facts.get(f"{name}.pipeline.depth") == pipeline["wait_depth"]
            assert facts.get(f"{name}.pipeline.iterations") == pipeline["iterations_in_flight"]


def names(path: str) -> dict[str, str]:
    return name_regions(saved(path).facts)


@pytest.mark.parametrize("path", [path for path in SOME if "specialized" not in path])
def test_bytes_of_a_block_are_its_threads_times_the_histogram(path: str) -> None:
    facts, alone = summarise(saved(path).facts).facts, shown(path)
    threads = alone["num_warps"] * alone["target"]["warp_size"]
    moved = alone["stages"][list(alone["stages"])[-1]]["accesses"]

    def total(*kinds: str) -> int:
        return sum(int(width) * count for kind in kinds for width, count in moved[kind].items())

    assert facts["loads.bytes"] == total("loads", "copies") * threads + total("tiles")
    assert facts["stores.bytes"] == total("stores") * threads + total("tile_stores")
    assert facts["loads.bytes"]


def test_partitions_of_a_block_do_different_things_so_its_bytes_are_not_known() -> None:
    kernel = saved("3.9.0/sm_100/tma_warp_specialized").facts
    assert kernel.partitions
    facts = summarise(kernel).facts
    assert all(facts[key] is None or facts[key] == 0 for key in facts if key.endswith("in_flight.bytes"))


def test_a_width_that_is_not_known_leaves_no_sum() -> None:
    kernel = saved("3.6.0/sm_75/softmax").facts
    last = kernel.last
    assert last is not None
    accesses = replace(last.accesses, loads={**last.accesses.loads, None: 1})
    facts = summarise(replace(kernel, stages={**kernel.stages, last.stage: replace(last, accesses=accesses)})).facts
    assert facts["loads.bytes"] is None
    assert facts["loads.widths"][-1] == "? ×1"  # type: ignore[index]


def test_a_row_that_does_not_apply_is_absent() -> None:
    keys = summarise(saved("3.6.0/sm_75/softmax").facts).facts.keys()
    assert not any(re.search(r"pipeline|mma|copies", key) for key in keys)
