"""What ptxas made of kernels whose order is known: verdicts and figures of SASS, from the saved cubins."""

from __future__ import annotations

import re
from functools import cache

import pytest
from saved import saved

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.model import Stage

TOOL = find_disassembler()
needs_tool = pytest.mark.skipif(TOOL is None, reason="no nvdisasm")


@cache
def facts(path: str) -> KernelFacts:
    return inspect_artifact(saved(path).artifact, lambda _, cubin: text(cubin))


@cache
def text(cubin: bytes) -> str:
    return disassemble(cubin, TOOL)


def marked(path: str, opcode: str) -> list[int]:
    """Lines of the source that an opcode's instructions bear, in the order of the code."""
    found, line = [], 0
    for row in text(saved(path).artifact.files["cubin"].read_bytes()).splitlines():
        mark = re.search(r'//## File "[^"]*", line (\d+)', row)
        if mark is not None:
            line = int(mark[1])
        elif re.search(rf"\*/\s+(@!?U?P\w+ )?{opcode}\b", row):
            found.append(line)
    return found


@needs_tool
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90"])
def test_ptxas_keeps_the_rounds_of_the_gemv_apart_and_computes_under_its_loads(target: str) -> None:
    kernel = facts(f"3.6.0/{target}/gemv_splitk")
    ptx, sass = (kernel.stages[stage] for stage in (Stage.PTX, Stage.SASS))
    region = sass.region("straight")
    assert region is not None
    # read off the marks: every load of round 1 (lines 29, 30) stands in front of every load of round 2
    loads = marked(f"3.6.0/{target}/gemv_splitk", "LDG")
    assert loads == sorted(loads, key=lambda line: line > 30)
    assert (region.verdict, [(pair.issued_before, pair.issued_after) for pair in region.pairs]) == (
        "interleaved",
        [(0.0, 1.0)],
    )
    # 128 identical loads of a became 16; the 16 of b are left: 32 a round
    assert [found.loads for found in region.rounds] == [32, 32]
    assert [loads.count(29) + loads.count(30), loads.count(35) + loads.count(36)] == [32, 32]
    # PTX waits for all loads of a round before the first product; ptxas begins while others fly
    before, after = (stage.work["straight"].in_flight.compute_overlap for stage in (ptx, sass))
    assert before == 0
    assert after is not None
    assert after > 0.4
    assert Stage.SASS not in kernel.changed.values()
    # `evict_first` of b is the `EF` of `LDG.E.EF.128`
    assert [(found.requested, found.lost) for found in kernel.policies] == [(("evict_first",), ())] * 2


@needs_tool
@pytest.mark.parametrize("version", ["3.6.0", "3.9.0"])
def test_the_loop_of_the_matmul_is_that_of_ptx(version: str) -> None:
    kernel = facts(f"{version}/sm_80/matmul_grouped")
    ptx, sass = (kernel.stages[stage].region("loop@81") for stage in (Stage.PTX, Stage.SASS))
    assert ptx is not None
    assert sass is not None
    assert (sass.phrase, sass.matrix) == (ptx.phrase, ptx.matrix) == ("pipelined(3)", 16)
    (work,) = kernel.stages[Stage.SASS].work["loop@81"].matrix
    assert (work.op, work.matrix and work.matrix.shape, work.count) == ("HMMA", "m16n8k16", 16)
    assert sum(int(n) for n in re.findall(r"\bA(\d+)", sass.signature)) == 5  # LDGSTS
    flight = [kernel.stages[stage].work["loop@81"].in_flight for stage in (Stage.PTX, Stage.SASS)]
    depths = [{wait.depth for wait in found.waits} for found in flight]
    assert depths == [{4}, {4}]
    assert [(found.max_loads, found.max_bytes_per_thread) for found in flight] == [(15, 240), (15, 240)]
    pipeline = kernel.pipelines["loop@81"]
    assert (pipeline.commits_per_iteration, pipeline.wait_depth, pipeline.iterations_in_flight) == (2, 4, 2)
    assert kernel.identities["loop@81"].is_balanced


@needs_tool
def test_issuing_a_loop_takes_the_sum_of_its_stall_counts() -> None:
    work = facts("3.6.0/sm_80/matmul_grouped").stages[Stage.SASS].work["loop@81"]
    issue = work.issue
    assert issue is not None
    # no instruction issues in less than a cycle
    assert issue.cycles >= issue.instructions > 0
    assert all(boards for _, boards in issue.waits)


def test_without_a_tool_the_stage_is_named_and_the_rest_is_reported() -> None:
    kernel = inspect_artifact(saved("3.6.0/sm_80/matmul_grouped").artifact, lambda _, cubin: disassemble(cubin, None))
    (problem,) = kernel.problems
    assert problem.path.endswith(".cubin")
    assert problem.problem.startswith("not disassembled: ")
    assert "--nvdisasm" in problem.problem
    assert kernel.verdict == "pipelined"
    assert Stage.SASS not in kernel.stages
