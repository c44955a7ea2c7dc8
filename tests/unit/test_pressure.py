"""Registers alive at each instruction, held against a count by paths and against what compilers allocate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx
import pytest
from saved import ROOT

from artifact_inspector.analysis.resources.pressure import find_pressure, registers_to_free
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.pressure import pressure_of
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.model import Function, Module, RegisterBank, Stage
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.console import to_text
from artifact_inspector.report.register_pressure import PressureReport

VECTOR = RegisterBank.VECTOR
AMDGCN = sorted((ROOT / "fixtures" / "3.6.0").glob("gfx*/*/*/*.amdgcn"))


def sass(code: str) -> Module:
    lines, at = ['\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'], 0
    for line in map(str.strip, code.strip().splitlines()):
        lines.append(f"{line}\n" if line.endswith(":") else f"        /*{at:04x}*/                   {line} ;\n")
        at += 0 if line.endswith(":") else 16
    return format_of(Stage.SASS).parse(SourceText("k.sass", "".join(lines)), Stage.SASS)


def alive(code: str) -> list[int]:
    (function,) = sass(code).functions
    return list(find_pressure(function, format_of(Stage.SASS).bank_of).live_counts[VECTOR])


def test_a_register_is_alive_from_its_write_to_its_last_read() -> None:
    code = """
    MOV R0, 0x1
    MOV R1, 0x2
    IADD3 R2, R0, R1, RZ
    IADD3 R0, R2, R2, RZ
    STG.E desc[UR4][R4.64], R0
    EXIT
    """
    # R4 and R5 come from outside; the sum holds what it reads and what it writes
    assert alive(code) == [3, 4, 5, 4, 3, 0]


def test_a_write_under_a_guard_leaves_what_other_lanes_hold() -> None:
    code = "MOV R0, 0x1\nNOP\n@P0 MOV R0, 0x2\nSTG.E desc[UR4][R4.64], R0\nEXIT"
    assert alive(code) == [3, 3, 3, 3, 0]
    assert alive(code.replace("@P0 ", "")) == [3, 2, 3, 3, 0]


def test_what_the_next_round_reads_is_alive_through_the_loop() -> None:
    code = """
    MOV R0, RZ
    .L_x_1:
    MOV R1, 0x2
    IADD3 R0, R0, R1, RZ
    NOP
    @P0 BRA `(.L_x_1)
    EXIT
    """
    assert alive(code) == [1, 2, 2, 1, 1, 0]


def by_paths(function: Function, bank: RegisterBank, bank_of) -> list[int]:
    """Registers that some path reads before it writes them, and those that an instruction writes."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(function.instructions)))
    for block in function.blocks:
        graph.add_edges_from((index, index + 1) for index in range(block.start, block.stop - 1))
        graph.add_edges_from((block.stop - 1, function.blocks[after].start) for after in block.successors)
    names = {n for i in function.instructions for side in i.operands for n in side if bank_of(n) is bank}
    counts = [0] * len(function.instructions)
    for name in names:
        readers = {at for at, i in enumerate(function.instructions) if name in i.operands.reads}
        writers = {at for at, i in enumerate(function.instructions) if name in i.operands.results}
        ends = {at for at in writers if function.instructions[at].guard is None} - readers
        back = graph.subgraph(set(graph) - ends).reverse(copy=False)
        found = set(writers)
        for at in readers:
            found |= {at, *networkx.descendants(back, at)} if at in back else {at}
        for at in found:
            counts[at] += 1
    return counts


@pytest.mark.parametrize("kernel", ["copy", "if_inside_loop", "early_return"])
def test_counts_are_those_found_by_following_every_path(kernel: str) -> None:
    (path,) = (path for path in AMDGCN if path.parts[-3] == kernel)
    language = format_of(Stage.AMDGCN)
    module = language.parse(SourceText(path.name, path.read_text()), Stage.AMDGCN)
    found = find_pressure(module.functions[0], language.bank_of)
    for bank in (VECTOR, RegisterBank.SCALAR):
        assert list(found.live_counts[bank]) == by_paths(module.functions[0], bank, language.bank_of)


@pytest.mark.parametrize("path", AMDGCN, ids=lambda path: "/".join(path.parts[-4:-2]))
def test_no_more_are_alive_than_llvm_allocates(path: Path) -> None:
    language = format_of(Stage.AMDGCN)
    module = language.parse(SourceText(path.name, path.read_text()), Stage.AMDGCN)
    allocated = int(module.attributes["vgpr_count"])
    for function in module.functions[:1]:
        found = find_pressure(function, language.bank_of)
        nothing = (0,) * len(function.instructions)
        accumulators = found.live_counts.get(RegisterBank.ACCUMULATOR, nothing)
        most = max(a + b for a, b in zip(found.live_counts[VECTOR], accumulators, strict=True))
        assert 0 < most <= allocated


def test_registers_to_shed_are_the_fewest_that_let_one_more_block_fit() -> None:
    assert registers_to_free(lambda registers: 512 // registers, 72) == 8
    assert registers_to_free(lambda _registers: 4, 72) is None
    assert registers_to_free(lambda _registers: None, 72) is None


def test_what_is_alive_at_the_peak_is_told_by_where_it_came_of() -> None:
    (entry,) = open_cache(ROOT / "fixtures" / "3.6.0" / "gfx942" / "gemv_splitk").entries
    found = pressure_of(entry)
    assert (found.peak, found.allocated) == (60, 60)
    assert found.live_at_peak[0].kind == "global_load"
    assert sum(len(held.registers) for held in found.live_at_peak) == found.peak
    assert max(line.registers for line in found.by_source) == found.peak
    said = to_text(PressureReport([replace(found, blocks=1)]), 100)
    assert "  1 block fits, limited by" in said


def test_a_kernel_without_code_is_refused_though_another_function_has_some(tmp_path: Path) -> None:
    entry = tmp_path / "A" / "k.amdgcn"
    entry.parent.mkdir()
    names = "".join(f"\t.type\t{name},@function\n" for name in "kj")
    entry.write_text(
        f'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n{names}k:\n.Lfunc_end0:\nj:\n\ts_endpgm\n.Lfunc_end1:\n'
    )
    with pytest.raises(CacheError, match="no machine code that can be read"):
        pressure_of(open_cache(tmp_path).entries[0])
