"""AMDGCN run on paper touches the bytes that the same kernel's SASS does, and that Triton's interpreter does."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from launches_on_paper import INTERPRETED, LAUNCHES, ROOT, ranges

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.simulation import SimulatedLaunch, simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100")
NVIDIA = "sm_80"
TOOL = find_disassembler()


@cache
def run(name: str, target: str) -> SimulatedLaunch:
    paper = LAUNCHES[name]
    arguments = {key: Tensor(*value) if isinstance(value, tuple) else value for key, value in paper.arguments.items()}
    (entry,) = open_cache(ROOT / "fixtures" / "3.6.0" / target / name).entries
    if target == NVIDIA and TOOL is None and "sass" not in entry.files:
        pytest.skip("no nvdisasm")
    loaded = load_kernel(entry, lambda _suffix, binary: disassemble(binary, TOOL))
    return simulate_launch(loaded, KernelLaunch(paper.grid, arguments))


def touched(found: SimulatedLaunch) -> dict[str, Any]:
    def whole(marks: np.ndarray, granule: int) -> Any:
        return ranges(np.repeat(marks != 0, granule))

    return {
        region.name: {
            "read": whole(region.read_marks, region.granule_bytes),
            "written": whole(region.written_marks, region.granule_bytes),
        }
        for region in found.memory.regions
    }


def saved(target: str, name: str) -> bool:
    return (ROOT / "fixtures" / "3.6.0" / target / name).exists()


PAIRS = [(name, target) for name in LAUNCHES for target in (*AMD, NVIDIA) if saved(target, name)]


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_bytes_are_those_of_the_interpreter(name: str, target: str) -> None:
    found = run(name, target)
    assert found.counters.out_of_bounds == []
    assert found.loaded.program.unsupported_opcodes == ()
    if any("atomic" in reason for ended in found.unfinished for reason in ended.reasons):
        return  # a loop that waits for an atomic: told as unknown
    assert found.unfinished == ()
    assert touched(found) == json.loads(INTERPRETED.read_text())[name]


def test_instructions_are_those_counted_by_hand() -> None:
    """`copy` has 17 from where its arguments are preloaded, no branch; `early_return` 76, of which workgroups
    without a row run three: comparison, branch, end. Workgroups of both have four waves."""
    assert sum(run("copy", "gfx942").counters.warps_executed) == 3 * 4 * 17
    found = run("early_return", "gfx942")
    assert sum(found.counters.warps_executed) == 5 * 4 * 76 + 3 * 4 * 3
