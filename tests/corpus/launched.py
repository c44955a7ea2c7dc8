"""A launch that is simulated once for all tests."""

from __future__ import annotations

from functools import cache

from saved import ROOT

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import Prediction, predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache


@cache
def gemv() -> Prediction:
    case = ROOT / "tests" / "oracle" / "counters" / "gemv"
    (entry,) = [entry for entry in open_cache(case).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    (request,) = parse_document((case / "launch.json").read_text(), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    return predict_counters(simulate_launch(loaded, launch))
