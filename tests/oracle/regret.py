"""How good rankings are: folders of launches with their measured times, ranked, and what the order costs.

    python tests/oracle/regret.py FOLDER [KERNEL …] [--verbose]

A folder has one of each kernel, with `cache/`, `launches.json` (as `rank --launch` reads it) and `times.json`, a
row with `milliseconds` for each launch. Printed are the measured time of the first over the best there is, the
best of the first five over it, and the rank correlation.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.api.launches import pair_launches
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import RankedLaunch, rank_launches
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler


class Regret(NamedTuple):
    """What an order costs."""

    first: float
    """Time of the first over the best."""
    five: float
    """The best time of the first five over the best."""
    correlation: float
    """Spearman's."""


def rank_folder(folder: Path, gpu: str = "H200", processors: int = 2) -> tuple[list[RankedLaunch], list[float]]:
    """A kernel's launches in order, and the measured milliseconds of each."""
    rows = [row for row in json.loads((folder / "times.json").read_text()) if "hash" in row]
    requests = parse_document((folder / "launches.json").read_text(), "launches.json")
    pairs = pair_launches(open_cache(folder / "cache"), None, (), requests)
    contestants = [RankingCandidate(entry, request, entry.constants) for entry, request in pairs]
    tool = find_disassembler(None)
    found = rank_launches(contestants, lambda _, binary: disassemble(binary, tool), gpu=gpu, processors=processors)
    return found, [rows[row.launch]["milliseconds"] for row in found]


def regret_of(times: list[float]) -> Regret:
    """What an order costs whose launches took these times."""
    best, count = min(times), len(times)
    places = sorted(range(count), key=times.__getitem__)
    measured = [places.index(at) for at in range(count)]
    apart = sum((at - place) ** 2 for at, place in enumerate(measured))
    return Regret(times[0] / best, min(times[:5]) / best, 1 - 6 * apart / (count * (count**2 - 1)))


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    root, names = Path(words[0]), words[1:]
    for folder in sorted(path.parent for path in root.glob("*/times.json")):
        if names and folder.name not in names:
            continue
        started = time.perf_counter()
        found, times = rank_folder(folder)
        cost = regret_of(times)
        seconds = time.perf_counter() - started
        unknown = sum(1 for row in found if row.missing_inputs)
        lacking = f", {unknown} lack something" if unknown else ""
        print(
            f"{folder.name:30} {len(times):3} launches  first {cost.first:.3f}  best of five {cost.five:.3f}  "
            f"rank correlation {cost.correlation:.2f}  {seconds:.0f} s{lacking}",
            flush=True,
        )
        if "--verbose" in sys.argv:
            for row, milliseconds in zip(found, times, strict=True):
                terms = sorted(row.terms.items(), key=lambda term: -term[1])[:5]
                told = " ".join(f"{name} {cycles:.0f}" for name, cycles in terms)
                print(
                    f"    {milliseconds:8.4f} ms  score {row.score or 0:12.0f}  {row.bottleneck}  {row.label}: {told}"
                )


if __name__ == "__main__":
    main()
