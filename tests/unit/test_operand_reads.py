"""How operands come out of shared memory: rows by `ldmatrix`, words lane by lane, and only those read as they are."""

from __future__ import annotations

import re

import pytest
from saved import saved

from artifact_inspector.model import Stage
from artifact_inspector.report.phrases import describe_counts
from artifact_inspector.vocabulary.rows import summarise


@pytest.mark.parametrize(("target", "rows", "words"), [("sm_80", 4, 16), ("sm_90", 4, 16)])
def test_the_reads_of_a_tf32_dot_are_told_apart_by_operand(target: str, rows: int, words: int) -> None:
    kernel = saved(f"3.6.0/{target}/matmul_square")
    text = kernel.text(Stage.PTX)
    assert len(re.findall(r"^\s*ldmatrix\.", text, re.M)) == rows
    assert len(re.findall(r"^\s*ld\.shared\.b32", text, re.M)) == words
    reads = kernel.facts.stages[Stage.PTX].work["loop@41"].operand_reads
    assert (sum(found.row_reads for found in reads), sum(found.word_reads for found in reads)) == (rows, words)
    assert all(not (found.row_reads and found.word_reads) for found in reads)
    for found in reads:
        inside = text.split("\n")[found.lines[0] - 1 : found.lines[1]]
        assert any("ldmatrix" in line or "ld.shared" in line for line in inside)


def test_operands_of_a_half_precision_matmul_come_by_rows_alone() -> None:
    work = saved("3.6.0/sm_80/matmul_grouped").facts.stages[Stage.PTX].work
    reads = [found for region in work.values() for found in region.operand_reads]
    assert reads
    assert all(found.row_reads and not found.word_reads for found in reads)


def test_no_operand_is_read_so_where_there_is_no_such_instruction() -> None:
    last = saved("3.6.0/gfx942/matmul_grouped").facts.last
    assert last is not None
    assert not any(found.row_reads or found.word_reads for work in last.work.values() for found in work.operand_reads)


@pytest.mark.parametrize(("target", "accesses"), [("gfx942", 64), ("gfx950", 32), ("sm_80", 0)])
def test_accesses_of_one_element_are_those_of_the_text(target: str, accesses: int) -> None:
    last = saved(f"3.6.0/{target}/flash_attention").facts.last
    assert last is not None
    text = saved(f"3.6.0/{target}/flash_attention").text(last.stage)
    assert len(re.findall(r"^\s*(?:ds_(?:read|write)_[ub]16\w*|(?:ld|st)\.shared\.b16)\b", text, re.M)) == accesses
    assert sum(work.element_accesses or 0 for work in last.work.values()) == accesses


@pytest.mark.parametrize("name", ["3.6.0/sm_80/matmul_square", "3.6.0/sm_80/matmul_grouped", "3.6.0/sm_80/softmax"])
def test_ldmatrix_and_other_shared_loads_are_two_figures(name: str) -> None:
    """As grep counts them in the PTX."""
    text, rows = saved(name).text(Stage.PTX), {row.key: row.value for row in summarise(saved(name).facts).rows}
    matrix, words = (
        len(re.findall(rf"^\s*(?:@%p\d+ )?{opcode}", text, re.M)) for opcode in (r"ldmatrix\.", r"ld\.shared")
    )
    assert (rows.get("count.ldmatrix", 0), rows["count.shared_load"]) == (matrix, matrix + words)
    stage = saved(name).facts.stages[Stage.PTX]
    (said,) = [count for count in describe_counts(stage) if "shared load" in count]
    assert said.endswith(f" ({matrix} ldmatrix)" if matrix else "shared loads")


def test_ldmatrix_does_not_apply_to_amd() -> None:
    rows = {row.key: row.value for row in summarise(saved("3.6.0/gfx942/matmul_grouped").facts).rows}
    assert "count.ldmatrix" not in rows
