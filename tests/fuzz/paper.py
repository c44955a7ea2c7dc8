"""`python -m tests.fuzz.paper`: damaged machine code run on paper, with arguments for all that it takes."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.prediction import prediction_document
from tests.fuzz.checks import SECONDS, within
from tests.fuzz.corpus import kernels
from tests.fuzz.mutants import damage

__all__ = ["run_on_paper"]

_STEPS = 3000


@cache
def _launches(suffix: str) -> tuple[tuple[Path, tuple[LaunchRequest, ...]], ...]:
    """Kernels that have such code, each with a launch of two CTAs."""
    found = []
    for path in kernels():
        if not any(file.suffix == f".{suffix}" for file in path.iterdir()):
            continue
        (artifact,) = open_cache(path).entries
        given: dict[str, Any] = {}
        for parameter in load_kernel(artifact, None).parameters:
            if parameter.type.startswith("*"):
                given[parameter.argument] = {"shape": [256], "dtype": parameter.type}
            elif parameter.type:
                given[parameter.argument] = 64
        found.append((path, parse_document_of({"grid": [2], "args": given}, "launch")))
    return tuple(found)


def run_on_paper(suffix: str, number: int) -> str:
    """What came of a mutant: `run`, or `refused` in words."""
    chance = random.Random(f"{suffix} {number}")
    path, requests = chance.choice(_launches(suffix))
    with tempfile.TemporaryDirectory(prefix="paper-") as place:
        target = Path(place, path.name)
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("*.cubin", "*.hsaco"))
        (file,) = target.glob(f"*.{suffix}")
        text = file.read_text(encoding="utf-8")
        file.write_bytes(damage(text, (text,), chance).encode("utf-8", "surrogatepass"))
        try:
            with within(SECONDS):
                pairs = pair_launches(open_cache(Path(place)), None, (), requests)
                found = predict_launches(pairs, None, steps=_STEPS)
                json.dumps(encode(prediction_document(found)), allow_nan=False)
        except InspectorError:
            return "refused"
    return "run"


def main() -> None:
    """Run as many mutants of either language as are asked for; what escapes is let through."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.paper", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="of each language")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    asked = parser.parse_args()
    for suffix in ("amdgcn", "sass"):
        came: Counter[str] = Counter()
        for number in range(asked.first, asked.first + asked.count):
            try:
                came[run_on_paper(suffix, number)] += 1
            except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
                came["escaped"] += 1
                print(f"{suffix} {number}: {type(error).__name__}: {error}"[:300], flush=True)
        print(f"{asked.count} of {suffix}: {', '.join(f'{count} {what}' for what, count in came.items())}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
