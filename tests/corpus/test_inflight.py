"""Loads in flight of every saved file: against an execution of its text, and what must hold of all.

The execution knows nothing of the package. Lines run one after the other; a branch back is taken a
number of times and then left, a branch forward always or never. That reaches the steady state of every
pipelined loop, which is compared wait by wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from saved import Saved, each_stage, saved, saved_kernels

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight, find_in_flight
from artifact_inspector.analysis.overlap.steady_state import walk_function
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Queue, Stage

KERNELS = saved_kernels()
LOADS = (EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY)


def in_flight(kernel: Saved, stage: Stage) -> Iterator[tuple[FunctionCode, str, frozenset[int], LoadsInFlight]]:
    """Every region of a file: its function, its name, the blocks it has, what is in flight there."""
    language, module = format_of(stage), kernel.module(stage)
    for function in module.functions:
        code = FunctionCode(function, module, language)
        regions = find_regions(code, (), exact=False)
        found = find_in_flight(walk_function(code, regions, 128))
        for region in regions:
            yield code, region.id, region.blocks, found[region.id]


@cache
def executions(path: str, stage: Stage) -> list[dict[int, _Seen]]:
    """What an execution finds at the waits of a file, with branches forward taken never and always."""
    run = _run_ptx if stage is Stage.PTX else _run_amdgcn
    return [run(saved(path).text(stage), forward=forward) for forward in (False, True)]


@each_stage(KERNELS, Stage.PTX, Stage.AMDGCN, is_slow=True)
def test_waits_leave_in_flight_what_an_execution_of_the_text_does(kernel: Saved, stage: Stage) -> None:
    for _, name, _, facts in in_flight(kernel, stage):
        for wait in facts.waits if name.rpartition("/")[2].startswith("loop") else ():
            seen = [found[wait.line] for found in executions(kernel.path, stage) if wait.line in found]
            steady = [(s.before, s.after) for s in seen if s.visits > 2]
            assert wait.queue is Queue.PHASE or not steady or (wait.in_flight_before, wait.in_flight_after) in steady, (
                wait
            )


LOOPED = {
    "2.1.0/sm_80": 1, "3.0.0/gfx90a": 2, "3.0.0/sm_80": 1, "3.2.0/gfx90a": 1, "3.2.0/gfx942": 2, "3.2.0/sm_80": 1,
    "3.3.1/gfx942": 1, "3.3.1/sm_80": 1, "3.6.0/gfx1100": 5, "3.6.0/gfx90a": 5, "3.6.0/gfx942": 19,
    "3.6.0/gfx950": 6, "3.6.0/sm_80": 7, "3.6.0/sm_86": 1, "3.6.0/sm_89": 2, "3.6.0/sm_90": 3, "3.9.0/gfx942": 3,
    "3.9.0/sm_80": 2,
}  # fmt: skip
"""Files with a wait in a loop that settles. 23 files of PTX have a cp.async.wait_group (grep -l) and 66 of AMDGCN
a vmcnt or loadcnt, many of them outside loops only."""


@pytest.mark.long
@pytest.mark.parametrize(
    "directory",
    [
        pytest.param(directory, id=f"{directory}/", marks=[pytest.mark.exhaustive] if number % 3 else [])
        for number, directory in enumerate(LOOPED)
    ],
)
def test_the_execution_comes_to_the_waits_of_loops(directory: str) -> None:
    # So that the test above compares something.
    reached = 0
    for kernel in KERNELS:
        if kernel.path.rpartition("/")[0] == directory:
            stage = Stage.PTX if Stage.PTX in kernel.stages else Stage.AMDGCN
            reached += any(seen.visits > 2 for found in executions(kernel.path, stage) for seen in found.values())
    assert reached == LOOPED[directory]


@each_stage(KERNELS)
def test_what_is_in_flight_is_possible(kernel: Saved, stage: Stage) -> None:
    for code, _, blocks, facts in in_flight(kernel, stage):
        instructions = code.function.instructions
        body = [instructions[i] for i in code.indices(blocks)]
        lines = {instruction.line for instruction in body}
        assert {line for line, _ in facts.levels} | {wait.line for wait in facts.waits} <= lines
        assert {wait.line for wait in facts.waits} >= set(facts.drains)
        assert facts.compute_overlap is None or 0 <= facts.compute_overlap <= 1
        assert facts.distance is None or 0 <= facts.distance[0] <= facts.distance[1]
        if facts.max_loads is None:
            assert facts.notes  # an unknown figure says why
            continue
        assert max((level for _, level in facts.levels), default=0) <= facts.max_loads
        assert not facts.max_bytes_per_thread or facts.max_loads
        unread = any("left out" in note for note in facts.notes)
        assert facts.max_loads > 0 or unread or not any(x.kind in LOADS for x in body)
        for wait in facts.waits:
            assert wait.in_flight_after <= wait.in_flight_before
            assert wait.in_flight_before <= facts.max_loads or wait.queue is Queue.MATRIX
            if wait.depth is not None and wait.queue in (Queue.GROUP, Queue.MATRIX):
                assert (wait.groups or 0) <= wait.depth
            elif wait.depth is not None:
                assert wait.in_flight_after <= wait.depth


TRIPS = 12
"""How often a branch back is taken: more than the deepest pipeline of the fixtures has stages."""
MOST_STEPS = 60_000


class _Seen(NamedTuple):
    """What the last visit to a wait found."""

    visits: int
    before: int
    after: int


def _run_ptx(text: str, *, forward: bool) -> dict[int, _Seen]:
    """Copies of `cp.async` in flight before and after each `cp.async.wait_group`, by line."""
    seen: dict[int, _Seen] = {}
    groups: list[int] = []
    uncommitted = 0
    for number, line in _steps(text, r"\$[\w.]+(?=:)", r"\bbra(?:\.uni)?\s+(\$[\w.]+)", r"@", forward=forward):
        if re.search(r"\bcp\.async\.c[ag]\.shared", line):
            uncommitted += 1
        elif "cp.async.commit_group" in line:
            groups.append(uncommitted)
            uncommitted = 0
        elif found := re.search(r"\bcp\.async\.wait_group\s+(0x[0-9a-f]+|\d+)", line):
            before = sum(groups) + uncommitted
            groups = groups[len(groups) - int(found[1], 0) :] if int(found[1], 0) < len(groups) else groups
            visits = seen[number].visits + 1 if number in seen else 1
            seen[number] = _Seen(visits, before, sum(groups) + uncommitted)
    return seen


def _run_amdgcn(text: str, *, forward: bool) -> dict[int, _Seen]:
    """Vector loads in flight before and after each wait for vmcnt or loadcnt, by line."""
    target = re.search(r'\.amdgcn_target "[^"]*gfx(\d+)[0-9a-f]{2}"', text)
    assert target is not None
    stores_count = int(target[1]) <= 9
    seen: dict[int, _Seen] = {}
    queue: list[bool] = []  # True for a load
    for number, line in _steps(text, r"\.LBB[\w.]+(?=:)", r"\bs_c?branch\w*\s+(\.L\w+)", r"s_cbranch", forward=forward):
        words = line.split(";")[0].split()
        if not words:
            continue
        opcode = words[0]
        if re.match(r"(global|buffer|flat|scratch)_load_", opcode) and "async" not in opcode:
            # What a thread spilled takes a place, but is no load of the kernel.
            queue.append(not opcode.startswith("scratch") and "Folded Reload" not in line)
        elif re.match(r"(global|buffer|flat|scratch)_store", opcode):
            queue += [False] if stores_count else []
        elif re.match(r"(global|buffer|flat)_atomic", opcode):
            returns = {"glc", "sc0", "th:TH_ATOMIC_RETURN"} & set(words)
            queue += [False] if stores_count or returns else []
        elif found := re.match(r"s_waitcnt\b.*vmcnt\((\d+)\)|s_wait_loadcnt(_dscnt)? (\S+)", " ".join(words)):
            # The wait for two counters has that of loads in its high byte.
            depth = int(found[1]) if found[1] else int(found[3], 0) >> (8 if found[2] else 0)
            before = sum(queue)
            queue = queue[len(queue) - depth :] if depth < len(queue) else queue
            visits = seen[number].visits + 1 if number in seen else 1
            seen[number] = _Seen(visits, before, sum(queue))
    return seen


def _steps(text: str, label: str, branch: str, conditional: str, *, forward: bool) -> Iterator[tuple[int, str]]:
    """Lines in the order in which they run, numbered from 1."""
    lines = text.split("\n")
    labels = {found[0]: at for at, line in enumerate(lines) if (found := re.match(label, line))}
    taken: dict[int, int] = {}
    at = steps = 0
    while at < len(lines) and steps < MOST_STEPS:
        steps += 1
        line = lines[at]
        yield at + 1, line
        found = re.search(branch, line)
        goes = labels.get(found[1]) if found else None
        if goes is None:
            at += 1
            continue
        if not re.search(conditional, line):
            if goes < at:
                taken[at] = taken.get(at, 0) + 1
                if taken[at] > TRIPS * TRIPS:
                    return
            at = goes
        elif "s_cbranch_execz" in line:
            at += 1  # around code that no lane is left for: a full block has lanes
        elif "s_cbranch_execnz" in line and goes > at:
            at = goes  # to such code, where it stands out of line
        elif goes <= at:
            taken[at] = taken.get(at, 0) + 1
            if taken[at] % TRIPS:
                at = goes
            else:
                at += 1
        else:
            at = goes if forward else at + 1
