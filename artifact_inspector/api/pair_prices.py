"""Predicts the time of one launch of two kernels with the cost model of `rank`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_recorded
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import RankedLaunch, gpu_model_of, rank_launches
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact

MAX_STEPS = 5_000_000
"""Steps after which a simulated launch counts as endless: a comparison must stay fast."""


def find_pair_launch(left: Artifact, right: Artifact, roots: Sequence[Path]) -> LaunchRequest | None:
    """A recorded launch that fits both kernels; None if there is none.

    A launch of one kernel fits the other one if both have the same tiles: its grid then covers the same work.

    Args:
        roots: the cache directories whose records are read, the new kernel's last.
    """
    programs = Candidate(left).program, Candidate(right).program
    if programs[0] is None or programs[1] is None or programs[0].tiles != programs[1].tiles:
        return None
    for artifact, root in ((artifact, root) for artifact in (right, left) for root in reversed(roots)):
        rows = [row for row in read_launches(root) if row.get("hash") == artifact.hash]
        rows = [row for row in rows if not row.get("tuning")] or rows
        if rows:
            (request,) = parse_recorded(rows[:1], root)
            return replace(request, kernel_hash=None)
    return None


def predict_pair(
    left: Artifact,
    right: Artifact,
    request: LaunchRequest,
    disassemble: Disassemble | None,
    gpu: str | None = None,
    steps: int = MAX_STEPS,
) -> PairPrice:
    """The predicted cost of one launch of both kernels.

    Args:
        gpu: the product to model; by default that of the target.
        steps: instructions after which a launch counts as endless.
    """
    launch = _describe_launch(request, left)
    if left.target is None or right.target is None or left.target.arch != right.target.arch:
        return _unknown(launch, "", "the two are compiled for different GPUs")
    try:
        name = gpu_model_of(left.target, gpu).name
        candidates = [RankingCandidate(artifact, request, artifact.constants) for artifact in (left, right)]
        rows = {row.launch: row for row in rank_launches(candidates, disassemble, gpu=gpu, limit=steps)}
    except InspectorError as error:
        return _unknown(launch, gpu or "", error.message.splitlines()[0].rstrip("."))
    problems = [_describe_problem(side, rows[index]) for index, side in enumerate(("the old kernel", "the new kernel"))]
    scores = rows[0].score, rows[1].score
    is_known = None not in scores and not any(problems)
    return PairPrice(
        (scores[1] or 0.0) / scores[0] if is_known and scores[0] else None,
        scores[0],
        scores[1],
        rows[0].bottleneck,
        rows[1].bottleneck,
        launch,
        name,
        next(filter(None, problems), ""),
    )


def _unknown(launch: str, gpu: str, problem: str) -> PairPrice:
    return PairPrice(None, None, None, None, None, launch, gpu, problem)


def _describe_problem(side: str, row: RankedLaunch) -> str:
    if not row.fits:
        return f"{side} does not fit on a multiprocessor"
    if row.score is None or row.missing_inputs:
        return f"{side} depends on {', '.join(row.missing_inputs[:2]) or 'missing inputs'}"
    return ""


def _describe_launch(request: LaunchRequest, artifact: Artifact) -> str:
    numbers = [
        f"{name}={value}"
        for name, value in request.kernel_arguments(artifact.constants).items()
        if isinstance(value, int) and not isinstance(value, bool) and "stride" not in name.lower()
    ]
    return " ".join(["grid", ",".join(map(str, request.grid)), *numbers[:4]])
