"""AMDGCN run on paper touches the bytes that the same kernel's SASS does, and that Triton's interpreter does."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from launches_on_paper import INTERPRETED, LAUNCHES, ROOT, ranges

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import SimulatedLaunch, simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.prediction import prediction_document

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


@pytest.mark.parametrize(
    ("name", "target"),
    [pytest.param(*pair, marks=[] if pair[1] in ("gfx942", NVIDIA) else pytest.mark.long) for pair in PAIRS],
)
def test_bytes_are_those_of_the_interpreter(name: str, target: str) -> None:
    found = run(name, target)
    assert found.counters.out_of_bounds == []
    assert found.loaded.program.unsupported_opcodes == ()
    assert found.unfinished == ()
    expected = json.loads(INTERPRETED.read_text())[name]
    if any(step.assumes_swap for step in found.loaded.program.steps):  # what it expects is loaded first
        expected["c_ptr"]["read"] = expected["c_ptr"]["written"]
    assert touched(found) == expected


def test_instructions_are_those_counted_by_hand() -> None:
    """`copy` has 17 from where its arguments are preloaded, no branch; `early_return` 76, of which workgroups
    without a row run three: comparison, branch, end. Workgroups of both have four waves."""
    assert sum(run("copy", "gfx942").counters.warps_executed) == 3 * 4 * 17
    found = run("early_return", "gfx942")
    assert sum(found.counters.warps_executed) == 5 * 4 * 76 + 3 * 4 * 3


SWAPPING = ("3.0.0/gfx90a", "3.2.0/gfx90a", "3.6.0/gfx90a", "3.6.0/gfx1100", "3.9.0/gfx906")


@pytest.mark.parametrize("place", [*SWAPPING, "3.6.0/gfx942"])
def test_each_sum_of_a_gemv_is_swapped_once(place: str) -> None:
    """Triton IR states how many sums a CTA adds, one for each lane of its waves; targets that have `atomic_add` need no swap."""
    (entry,) = open_cache(ROOT / "fixtures" / place / "gemv_splitk").entries
    (listing,) = (ROOT / "fixtures" / place / "gemv_splitk").glob("*/*.amdgcn")
    (match,) = re.findall(r"tt\.atomic_rmw fadd.*?, tensor<(\d+)xf32>", listing.with_suffix(".ttir").read_text())
    columns, arguments = int(match), {"a": (512,), "b": (512, 512), "c": (512,)}
    loaded = load_kernel(entry, lambda _suffix, binary: disassemble(binary, TOOL))
    values = [Tensor(shape, "fp32" if name == "c" else "fp16") for name, shape in arguments.items()]
    names = dict.fromkeys(parameter.argument for parameter in loaded.parameters if parameter.type)
    grid = (512 // columns, 2, 1)
    found = simulate_launch(loaded, KernelLaunch(grid, dict(zip(names, [*values, 512], strict=True))))
    prediction = predict_counters(found)
    assert prediction.counters.instructions is not None
    swaps = [step.index for step in loaded.program.steps if "cmpswap" in step.opcode]
    assert len(swaps) == listing.read_text().count("_cmpswap")
    assert bool(swaps) == (place in SWAPPING) == any("compare-and-swap" in note for note in prediction.notes)
    assert list(prediction.notes) == encode(prediction_document([prediction]))["notes"]
    atomics = [step.index for step in loaded.program.steps if "_atomic_" in step.opcode]
    sums = grid[0] * grid[1] * columns
    assert sum(found.counters.threads_executed[at] for at in atomics) == sums
    assert sum(found.counters.active_threads[at] for at in atomics) == sums
    assert prediction.counters.global_atomic_instructions == sums // loaded.program.warp_size
    assert prediction.counters.unique_bytes_written == 512 * 4
