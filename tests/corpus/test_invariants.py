"""What holds for every format and every saved file."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from saved import ROOT, Saved, each_stage, saved_kernels

from artifact_inspector.formats import FORMATS, Format, format_of
from artifact_inspector.model import EventKind, Stage

KERNELS = saved_kernels()
PLACED = {EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY, EventKind.MATRIX}


@pytest.mark.parametrize("language", FORMATS, ids=lambda language: language.name)
def test_every_format_has_a_fixture_at_each_of_its_stages(language: Format) -> None:
    assert set(language.stages) <= {stage for kernel in KERNELS for stage in kernel.stages}


@pytest.mark.parametrize("stage", Stage)
def test_a_file_is_recognised_by_its_own_format_and_no_other(stage: Stage) -> None:
    for kernel in KERNELS:
        if stage in kernel.stages:
            text = kernel.text(stage)
            assert [found.name for found in FORMATS if found.sniff(text)] == [format_of(stage).name], kernel.path


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_every_stage_of_a_fixture_is_read_without_a_problem(kernel: Saved) -> None:
    assert kernel.facts.problems == ()
    assert list(kernel.facts.stages) == kernel.stages
    assert len([stage for stage in kernel.stages if stage is not Stage.SASS]) == 4


@each_stage(KERNELS)
def test_blocks_tile_the_instructions_and_edges_land_on_blocks(kernel: Saved, stage: Stage) -> None:
    for function in kernel.module(stage).functions:
        assert [block.index for block in function.blocks] == list(range(len(function.blocks)))
        borders = [0, *(block.stop for block in function.blocks)]
        assert [block.start for block in function.blocks] == borders[:-1]
        assert borders == sorted(borders)
        assert borders[-1] == len(function.instructions)
        for block in function.blocks:
            assert set(block.successors) <= set(range(len(function.blocks)))


@each_stage(KERNELS)
def test_lines_are_those_of_the_file_and_never_go_back(kernel: Saved, stage: Stage) -> None:
    lines = kernel.text(stage).split("\n")
    for function in kernel.module(stage).functions:
        numbers = [instruction.line for instruction in function.instructions]
        assert numbers == sorted(numbers)
        for instruction in function.instructions:
            # A dual-issue line, an intrinsic and inline assembly are written differently from their opcode.
            assert instruction.opcode.split(".")[-1].split("_")[-1] in lines[instruction.line - 1], instruction


@each_stage(KERNELS)
def test_every_opcode_of_a_fixture_is_known(kernel: Saved, stage: Stage) -> None:
    unknown = Counter(
        instruction.opcode
        for function in kernel.module(stage).functions
        for instruction in function.instructions
        if instruction.kind is EventKind.UNKNOWN
    )
    assert unknown == {}
    assert kernel.facts.stages[stage].unknown == {}


@each_stage(kernel for kernel in KERNELS if kernel.has_lines)
def test_loads_and_matrix_operations_lead_back_to_the_kernels_own_file(kernel: Saved, stage: Stage) -> None:
    places = {
        instruction.location[-1].file.rpartition("/")[2] if instruction.location is not None else None
        for function in kernel.module(stage).functions
        for instruction in function.instructions
        if instruction.kind in PLACED
    }
    if stage is Stage.AMDGCN:
        places.discard(None)  # of the loads behind `s_clause` the first alone has a line
    assert places == ({kernel.source.name} if places else set())


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.has_lines], ids=lambda kernel: kernel.path)
def test_the_line_of_every_load_statement_holds_a_load(kernel: Saved) -> None:
    text = (ROOT / kernel.source).read_text(encoding="utf-8")
    lines = text.splitlines()
    helpers = re.findall(r"@triton\.jit\ndef (\w+)", text)
    statements = {
        place for region in kernel.facts.stages[Stage.TTIR].regions for item in region.rounds for place in item.sources
    }
    for place in statements:
        line = int(place.rpartition(":")[2])
        call = " ".join(lines[line - 2 : line])  # a call that breaks over lines is placed at its arguments
        assert re.search(rf"\b({'|'.join(['load', *helpers])})\(", call), f"{place}: {call}"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_no_verdict_is_left_open(kernel: Saved) -> None:
    for stage in kernel.facts.stages.values():
        assert [region.id for region in stage.regions if region.verdict == "unknown"] == []


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_rounds_keep_their_statements_from_stage_to_stage(kernel: Saved) -> None:
    first, *later = [
        {
            region.id: [item.sources for item in region.rounds]
            for region in stage.regions
            if region.verdict != "unrolled"
        }
        for stage in kernel.facts.stages.values()
    ]
    for stage in later:
        for region in first.keys() & stage.keys():
            assert stage[region] == first[region]
