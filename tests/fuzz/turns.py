"""Cases of every surface in turn, of which a file keeps how many were tried, how they ended, and what was found."""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.checks import SECONDS, within
from tests.fuzz.surfaces import SURFACES, make

__all__ = ["again", "take_turns"]


def take_turns(state: Path, count: int, seconds: float, word: str = "") -> int:
    """Go on until each surface whose name has a word had so many cases in all, or the time is over.

    Returns:
        How many finds the file has.
    """
    told: dict[str, Any] = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    end = time.monotonic() + seconds
    chosen = [name for name in SURFACES if word in name]
    for name in chosen:
        told.setdefault(name, {"tried": 0, "ended": {}, "found": []})
    while time.monotonic() < end:
        name = min(chosen, key=lambda one: told[one]["tried"])
        if told[name]["tried"] >= count:
            break
        _some(name, told[name], min(count, told[name]["tried"] + 20))
        beside = state.with_suffix(".new")
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        beside.replace(state)
    for name in chosen:
        ended = ", ".join(f"{count} {how}" for how, count in sorted(told[name]["ended"].items()))
        print(f"{name}: {told[name]['tried']} cases, {len(told[name]['found'])} finds ({ended})", flush=True)
    return sum(len(one["found"]) for one in told.values())


def _some(name: str, told: dict[str, Any], stop: int) -> None:
    """The next cases of a surface."""
    ended = Counter(told["ended"])
    for number in range(told["tried"], stop):
        try:
            with within(SECONDS):
                ended[again(f"{name} {number}")] += 1
        except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            told["found"].append(f"{name} {number}: {type(error).__name__} at {where}: {error}"[:400])
            print(told["found"][-1], flush=True)
    told["tried"], told["ended"] = stop, dict(ended)


def again(name: str) -> str:
    """Make one case again, `names 59`; what came of it."""
    surface, _, number = name.rpartition(" ")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112
    with tempfile.TemporaryDirectory(prefix="surface-", dir=memory) as place:
        return make(surface, int(number), Path(place))
