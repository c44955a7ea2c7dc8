"""The saved cubins as SASS: every opcode known, counts equal grep's, lines of the kernel's own file."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from saved import ROOT, Saved, saved_kernels

from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.formats.sass.parser import parse
from artifact_inspector.model import EventKind, Module, Stage
from artifact_inspector.model.text import SourceText

TOOL = find_disassembler()
pytestmark = pytest.mark.skipif(TOOL is None, reason="no nvdisasm")
KERNELS = [pytest.param(kernel, id=kernel.path) for kernel in saved_kernels() if "cubin" in kernel.artifact.files]


@cache
def text(kernel: Saved) -> str:
    return disassemble(kernel.artifact.files["cubin"].read_bytes(), TOOL)


@cache
def module(kernel: Saved) -> Module:
    return parse(SourceText("k.sass", text(kernel)), Stage.SASS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_instruction_is_known_and_has_a_control_code(kernel: Saved) -> None:
    found = module(kernel)
    assert (found.problems, found.attributes["target"].rstrip("af")) == ((), kernel.target)
    for function in found.functions:
        assert {x.opcode for x in function.instructions if x.kind is EventKind.UNKNOWN} == set()
        assert len(function.control_codes) == len(function.instructions)


@pytest.mark.parametrize("kernel", KERNELS)
def test_counts_are_those_of_a_search_in_the_text(kernel: Saved) -> None:
    code = re.findall(r"^ +/\*[0-9a-f]{4,}\*/ +(.*?) *;", text(kernel), re.M)
    code = [re.sub(r"^@\S+ +", "", line) for line in code if not line.startswith("@!PT")]
    counts = Counter(x.kind for function in module(kernel).functions for x in function.instructions)
    for kind, pattern in (
        (EventKind.GLOBAL_LOAD, r"LDG\.E"),
        (EventKind.ASYNC_COPY, r"LDGSTS|UTMALDG"),
        (EventKind.SHARED_LOAD, r"LDSM?[. ]"),
        (EventKind.SHARED_STORE, r"STSM?[. ]"),
        (EventKind.MATRIX, r"[HID]G?MMA\.|UTC\wMMA"),
        (EventKind.GLOBAL_STORE, r"STG\."),
        (EventKind.BARRIER, r"BAR\.SYNC"),
        (EventKind.LOCAL_LOAD, r"LDL[. ]"),
        (EventKind.LOCAL_STORE, r"STL[. ]"),
    ):
        assert counts[kind] == sum(re.match(pattern, line) is not None for line in code), kind


@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_tile_the_code_and_edges_land_on_blocks(kernel: Saved) -> None:
    for function in module(kernel).functions:
        borders = [0, *(block.stop for block in function.blocks)]
        assert [block.start for block in function.blocks] == borders[:-1]
        assert borders == sorted(borders)
        assert borders[-1] == len(function.instructions)
        for block in function.blocks:
            assert set(block.successors) <= set(range(len(function.blocks)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_warp_reconverges_where_it_was_told_to(kernel: Saved) -> None:
    # BSYNC is taken to fall through: the label that BSSY names must be right behind it.
    lines = [line for line in text(kernel).split("\n") if not line.lstrip().startswith(("/* ", "//"))]
    names: dict[str, str] = {}
    for at, line in enumerate(lines):
        opened = re.search(r"BSSY[.\w]* (B\d+), `\((\.L_x_\d+)\)", line)
        if opened is not None:
            names[opened[1]] = opened[2]
        closed = re.search(r"\bBSYNC[.\w]* (B\d+)", line)
        if closed is not None:
            assert names[closed[1]] + ":" in lines[at + 1 : at + 3]


@pytest.mark.parametrize("kernel", KERNELS)
def test_loads_and_products_bear_lines_of_the_kernels_own_file(kernel: Saved) -> None:
    if not kernel.has_lines:
        pytest.skip("compiled without lines")
    source = (ROOT / kernel.source).read_text(encoding="utf-8").count("\n")
    wanted = (EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY, EventKind.MATRIX)
    for function in module(kernel).functions:
        for instruction in function.instructions:
            if instruction.kind in wanted:
                assert instruction.location is not None
                frames = [frame for frame in instruction.location if frame.file.endswith(kernel.source.name)]
                assert all(0 < frame.line <= source for frame in frames)
                assert frames or instruction.location[0].file.endswith("standard.py")


@pytest.mark.parametrize("kernel", KERNELS)
def test_ptxas_drops_no_copy_product_or_barrier_of_the_ptx(kernel: Saved) -> None:
    ptx = Counter(x.kind for f in kernel.module(Stage.PTX).functions for x in f.instructions)
    sass = Counter(x.kind for f in module(kernel).functions for x in f.instructions)
    for kind in (EventKind.ASYNC_COPY, EventKind.MATRIX, EventKind.GLOBAL_STORE):
        assert sass[kind] == ptx[kind], kind
