"""Pipelines of every saved loop against a reading of the raw files that knows nothing of the package.

A loop of TTGIR is what stands between `scf.for` and the brace in its column, a loop of assembly what
stands between a label and the last branch back to it; depths, commits and extents are read with one
pattern each.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from saved import Saved, saved, saved_kernels

from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.model import PipelineKind, Stage

KERNELS = saved_kernels()
ASYNCHRONOUS = ("cp.async groups", "direct to LDS", "TMA + mbarrier")


class Span(NamedTuple):
    """The first and the last line of a loop."""

    first: int
    last: int

    def holds(self, lines: tuple[int, int]) -> bool:
        return self.first <= lines[0] and lines[1] <= self.last


def tensor_loops(text: str) -> list[Span]:
    lines = text.split("\n")
    found = []
    for first, line in enumerate(lines):
        if re.search(r"\bscf\.(?:for|while) ", line):
            margin = re.match(" *", line)[0] + "}"  # type: ignore[index]
            last = next(n for n in range(first + 1, len(lines)) if re.match(margin + r"(?! do)", lines[n]))
            found.append(Span(first + 1, last + 1))
    return found


def assembly_loops(text: str) -> list[Span]:
    lines = text.split("\n")
    labels = {m[1]: n for n, line in enumerate(lines, 1) if (m := re.match(r"([.$]L\w+):", line))}
    back: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        branch = re.match(r"\s+(?:@!?%p\d+ )?(?:bra(?:\.uni)?|s_c?branch\w*)\s+([.$]L\w+)", line)
        if branch is not None and labels.get(branch[1], number) < number:
            back[branch[1]] = number
    return [Span(labels[label], number) for label, number in back.items()]


def loop_around(loops: list[Span], lines: tuple[int, int]) -> Span | None:
    """The smallest loop that holds some lines."""
    return min((loop for loop in loops if loop.holds(lines)), key=lambda s: s.last - s.first, default=None)


def body(text: str, loop: Span) -> str:
    return "\n".join(text.split("\n")[loop.first - 1 : loop.last])


def read_tiles(text: str, inside: str) -> int | None:
    """The most tiles of the allocations that a loop indexes."""
    indexed = set(re.findall(r"memdesc_(?:index|subview) (%[\w.]+)\[", inside))
    extents = [
        int(extent)
        for name, extent in re.findall(
            r"(%[\w.]+) = (?:ttg|triton_gpu)\.local_alloc +: \(\) -> !\w+\.memdesc<(\d+)x\d+x\d+x(?!i64)", text
        )
        # A partition has names of its own for what it captures.
        if name in indexed or "ttg.warp_specialize" in text
    ]
    if "insert_slice_async" in inside:  # until 2.3 buffers are values that the loop carries
        extents += [int(n) for n in re.findall(r"alloc_tensor : tensor<(\d+)x", text)]
    return max(extents, default=None)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_tiles_and_commits_are_those_that_ttgir_spells_out(kernel: Saved) -> None:
    text = kernel.text(Stage.TTGIR)
    loops = tensor_loops(text)
    for name, pipeline in kernel.facts.pipelines.items():
        region = kernel.facts.stages[Stage.TTGIR].region(name)
        if region is None:
            continue  # the rest of a loop that LLVM unrolled
        loop = loop_around(loops, region.lines)
        assert loop is not None
        if pipeline.kind is None and any(loop != other and loop.holds(other) for other in loops):
            assert (pipeline.buffers, pipeline.commits_per_iteration) == (None, None)
            continue
        inside = body(text, loop)
        tiles = read_tiles(text, inside)
        assert pipeline.buffers == tiles or (tiles is None and pipeline.buffers in (None, 1))
        pattern = r"barrier_expect" if pipeline.kind == "TMA + mbarrier" else r"async_commit_group"
        commits = len(re.findall(pattern, inside))
        assert (pipeline.commits_per_iteration or 0) == (commits if pipeline.kind in ASYNCHRONOUS else 0)


DEPTHS = {
    Stage.PTX: r"cp\.async\.wait_group\s+(\w+)",
    Stage.SASS: r"DEPBAR\.LE SB\d, (\w+)",
    Stage.AMDGCN: r"vmcnt\((\d+)\)|s_wait_loadcnt (\w+)",
}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_the_wait_depth_is_the_least_in_the_loop_of_the_last_stage(kernel: Saved) -> None:
    last = kernel.facts.last
    assert last is not None
    text = kernel.text(last.stage)
    loops = assembly_loops(text)
    waits = [
        (int(next(filter(None, match.groups()), "0"), 0), text.count("\n", 0, match.start()) + 1)
        for match in re.finditer(DEPTHS[last.stage], text)
    ]
    for name, pipeline in kernel.facts.pipelines.items():
        region = last.region(name)
        assert region is not None
        loop = loop_around(loops, region.lines)
        assert loop is not None
        inside = [(depth, line) for depth, line in waits if loop.first <= line <= loop.last]
        if pipeline.wait_depth is None:
            # What stands in a loop inside it belongs to that one.
            assert not inside or any(other != loop and loop.holds(other) for other in loops)
            continue
        assert pipeline.wait_depth == min(inside)[0]
        drains = kernel.facts.drains(name)
        assert set(drains) <= {line for _, line in inside}
        if pipeline.kind is PipelineKind.GROUPS:
            assert set(drains) == {line for depth, line in inside if depth == 0}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_every_loop_runs_ahead_or_says_why_not_or_that_it_is_not_known(kernel: Saved) -> None:
    for name, pipeline in kernel.facts.pipelines.items():
        if pipeline.kind is None:
            assert pipeline.unpipelined_reason is not None or pipeline.notes, name
            assert (pipeline.iterations_in_flight, pipeline.distance) == (None, None)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_every_line_given_as_evidence_is_a_line_of_its_stage(kernel: Saved) -> None:
    for pipeline in kernel.facts.pipelines.values():
        for stage, line in pipeline.evidence:
            assert kernel.text(stage).split("\n")[line - 1].strip()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_groups_of_copies_leave_two_iterations_less_in_flight_than_stages_were_asked(kernel: Saved) -> None:
    """The loads run num_stages - 1 ahead; the wait completes one of them.

    A matmul that commits A and B apart and waits with `wait_group 4` keeps 4 ÷ 2 = 2 iterations in
    flight, which is num_stages 4 - 2, while d = 3.
    """
    for pipeline in kernel.facts.pipelines.values():
        if pipeline.kind == "cp.async groups":
            assert pipeline.num_stages is not None
            assert pipeline.iterations_in_flight == pipeline.num_stages - 2
            assert pipeline.distance == pipeline.num_stages - 1


def the_loop(path: str) -> Pipeline:
    (pipeline,) = saved(path).facts.pipelines.values()
    return pipeline


@pytest.mark.parametrize(
    ("path", "kind", "buffers", "in_flight", "distance", "prologue"),
    [
        # Read by hand. Triton 2.1 keeps num_stages tiles, later versions one less for mma.sync, whose
        # operands are in registers when their tile is copied over; wgmma reads shared memory itself and
        # needs the tile longer. On sm_100 one more iteration is copied and its product peeled.
        ("2.1.0/sm_80/matmul_grouped", "cp.async groups", 4, 2, 3, 3),
        ("3.0.0/sm_80/matmul_grouped", "cp.async groups", 3, 2, 3, 3),
        ("3.9.0/sm_80/matmul_grouped", "cp.async groups", 3, 2, 3, 3),
        ("3.6.0/sm_90/matmul_grouped", "cp.async groups", 4, 2, 3, 3),
        ("3.6.0/sm_100/matmul_grouped", "cp.async groups", 4, 2, 3, 4),
        # A phase names no depth: two iterations are copied ahead, one is waited for.
        ("3.6.0/sm_90/matmul_descriptor", "TMA + mbarrier", 3, 1, 2, 2),
        ("3.6.0/sm_100/matmul_descriptor", "TMA + mbarrier", 3, 1, 2, 3),
        # AMD's loads go through registers: three tiles of LDS are filled ahead, and every load is
        # waited for in the iteration that issues it.
        ("3.6.0/gfx942/matmul_grouped", "register prefetch", 3, 0, 3, None),
    ],
)
def test_saved_matmuls_are_pipelined_as_a_reader_finds_them(
    path: str, kind: str, buffers: int, in_flight: int, distance: int, prologue: int | None
) -> None:
    found = the_loop(path)
    assert (found.kind, found.buffers) == (kind, buffers)
    assert (found.iterations_in_flight, found.distance, found.prologue) == (in_flight, distance, prologue)
    assert found.unpipelined_reason is None


@pytest.mark.parametrize(
    ("path", "cause", "words"),
    [
        ("3.6.0/sm_75/matmul_grouped", "sm_75 has no asynchronous copy (cp.async requires sm_80)", None),
        ("3.6.0/sm_80/matmul_square", "num_stages 1 requests no pipelining", None),
        (
            "3.0.0/gfx90a/matmul_grouped",
            "Triton 3.0/3.1 pipelines for AMD only at num_stages 0, requested were 4",
            None,
        ),
        ("3.6.0/sm_80/while_loop", "not a counted loop: only `for` loops are pipelined", "scf.while"),
        (
            "3.6.0/sm_80/if_inside_loop",
            "acc (if_inside_loop.py:33) is under a branch of the loop, and only unconditional loads are pipelined",
            "tt.load",
        ),
    ],
)
def test_saved_loops_that_are_not_pipelined_say_why(path: str, cause: str, words: str | None) -> None:
    found = the_loop(path)
    assert found.unpipelined_reason == cause
    if words is not None:
        ((stage, line),) = found.evidence
        assert words in saved(path).text(stage).split("\n")[line - 1]


def test_scales_of_one_byte_are_too_narrow_to_be_copied_asynchronously() -> None:
    found = the_loop("3.6.0/sm_100/dot_scaled")
    assert found.unpipelined_reason is not None
    assert "a_scale (dot_scaled.py:28) is 8 bits wide" in found.unpipelined_reason
    assert found.kind == "cp.async groups"  # the values are


def test_wgmma_of_an_iteration_runs_on_while_the_next_begins() -> None:
    assert the_loop("3.6.0/sm_90/matmul_grouped").overlaps_matrix
    assert not the_loop("3.6.0/sm_80/matmul_grouped").overlaps_matrix


def test_a_prefetch_written_in_the_program_is_the_program_s() -> None:
    found = the_loop("3.6.0/sm_80/manual_prefetch")
    assert (found.num_stages, found.kind, found.distance) == (1, "register prefetch", 1)
    assert found.notes == ("the program itself prefetches",)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.path)
def test_loads_run_one_iteration_further_ahead_than_a_wait_leaves_in_flight_or_the_cause_is_told(kernel: Saved) -> None:
    """The wait completes the iteration that the computes behind it take: d = iterations in flight + 1."""
    causes = ("waited for in the iteration", "in front of the wait", "before they are multiplied")
    for name, pipeline in kernel.facts.pipelines.items():
        distance, left = pipeline.distance, pipeline.iterations_in_flight
        if pipeline.kind is None or left is None or distance is None:
            continue
        told = pipeline.unpipelined_reason is not None or any(
            cause in note for note in pipeline.notes for cause in causes
        )
        assert distance == left + 1 or told, name
