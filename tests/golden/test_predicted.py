"""What is predicted of launches is what it was: one file per launch.

A saved kernel runs with arguments that its code suggests, on a part of its grid. `launches/<kernel>.json` has the
counters, times and stalls, and the timelines of two resident warps. `--update-golden` writes it anew where the change
is meant.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goldens import hold, plain
from saved import saved

from artifact_inspector.diagnosis.assumed_launch import assume_launch
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import estimate_candidate
from artifact_inspector.execution.timing.residency import find_residency
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.objdump import binary_disassembler

FOLDER = Path(__file__).parent / "launches"
CTAS, L2_BYTES, WAVE, MULTIPROCESSORS = 24, 1 << 18, 8, 4
"""A small launch on a small GPU, so that it has waves, and an L2 that does not hold its tensors."""
EXTENTS = {4096: 320, 1 << 24: 20_000}
"""Suggested ones, and smaller ones that tiles do not divide."""
LIMIT = 5_000_000
PLAIN = (
    *("3.6.0/sm_80/softmax", "3.6.0/sm_80/two_loops", "3.6.0/sm_80/atomic_cas", "3.6.0/gfx942/gemv_splitk"),
    *("3.6.0/gfx1100/layer_norm", "3.6.0/gfx942/atomic_cas"),
)
LONG = (
    *("3.6.0/sm_80/while_loop", "3.6.0/sm_90/layer_norm", "3.6.0/sm_80/register_spill", "3.6.0/sm_80/causal"),
    *("3.6.0/sm_90/matmul_descriptor", "3.6.0/sm_90/tma_warp_specialized"),
    *("3.6.0/gfx942/persistent_matmul", "3.6.0/gfx942/register_spill", "3.6.0/gfx1100/matmul_square"),
    *("3.6.0/gfx950/dot_scaled", "3.6.0/gfx942/matmul_descriptor", "3.6.0/sm_80/int_reduce"),
)
LEFT_OUT = frozenset(("by_line", "hash"))


def request_of(artifact: Artifact) -> LaunchRequest:
    """The launch that the code suggests, on a few CTAs of its grid."""
    request = assume_launch(artifact)
    x, y, z = (int(extent) for extent in request.grid)
    across = min(y, max(2, CTAS // x))
    arguments = {
        name: EXTENTS.get(value, value) if type(value) is int else value for name, value in request.arguments.items()
    }
    return replace(request, grid=(min(x, CTAS // across), across, min(z, 2)), arguments=arguments)


def rounded(value: Any) -> Any:
    """To six digits, as the last ones of sums depend on their order."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def shortened(found: dict[str, Any]) -> dict[str, Any]:
    """One line for each source line, access and span; the first and last warp, and percent of each time slot."""
    for name in ("by_source", "stalls"):
        found[name] = [" ".join(f"{key}={value}" for key, value in row.items()) for row in found.get(name, ())]
    for access in found.get("shared_accesses", ()):
        access["line"] = " ".join(map(str, access["line"].values()))
        access["warp_access"]["addresses"] = " ".join(map(str, access["warp_access"]["addresses"]))
    if (order := found.get("cta_order")) is not None:
        order["ctas"] = [order["ctas"][0], order["ctas"][-1]]
    if isinstance(resident := found.get("resident"), dict):
        units = resident["unit_utilization"]
        units |= {unit: " ".join(f"{100 * share:.0f}" for share in shares) for unit, shares in units.items()}
        warps = resident["timelines"] = [*resident["timelines"][:1], *resident["timelines"][1:][-1:]]
        for warp in warps:
            warp["spans"] = " ".join(f"{span['end']:.0f} {span['activity'].split(':')[0]}," for span in warp["spans"])
    return found


def predicted(path: str) -> dict[str, object]:
    """All that is predicted of a launch."""
    artifact = saved(path).artifact
    loaded, request = load_kernel(artifact, binary_disassembler()), request_of(artifact)
    found: dict[str, object] = {"launch": [request.grid, request.arguments]}

    def simulate() -> Any:
        fitted, launch = match_launch(loaded, request, artifact.constants)
        run = simulate_launch(fitted, launch, limit=LIMIT, footprints=True, l2_bytes=L2_BYTES)
        return predict_counters(run, L2_BYTES, (WAVE, "assumed"), MULTIPROCESSORS, limit=LIMIT)

    told = plain(simulate())
    found |= {name: told[name] for name in told if name not in LEFT_OUT}
    candidate = RankingCandidate(artifact, request, artifact.constants)
    for name, estimate in (
        ("ranked", lambda: estimate_candidate(candidate, binary_disassembler(), gpu=None, limit=LIMIT)),
        ("resident", lambda: find_residency(candidate, binary_disassembler(), limit=LIMIT)),
    ):
        try:
            value = estimate()
        except UsageError as error:
            value = error.message
        found[name] = value
    return shortened(rounded(plain(found)))


@pytest.mark.parametrize("path", [*PLAIN, *(pytest.param(path, marks=pytest.mark.long) for path in LONG)])
def test_what_is_predicted_is_what_it_was(path: str, request: pytest.FixtureRequest) -> None:
    hold(FOLDER / f"{path.replace('/', '.')}.json", predicted(path), request)
