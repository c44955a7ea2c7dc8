"""How time and memory grow with files that grow in one respect.

`python -m tests.fuzz.growth [WORD] [--as read|floor|list|whole|page] [--to 50000000] [--by 10]` measures
each kind of file at a size and at a tenth of it, each in a process of its own, and prints a table: 1.0 where a file ten times as
long takes ten times as much. `read` is the file alone, with all that analyses ask of it; `list` the line of
a kernel that is the file; `whole` all that is known of it, as JSON; `page` its HTML page;
`floor` what Python's own `json` takes, of kinds that are JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import artifact_inspector
from artifact_inspector.model import Stage
from tests.fuzz.checks import check_kernel
from tests.fuzz.generators import GENERATORS
from tests.fuzz.guided import READERS
from tests.fuzz.tables import TABLES
from tests.fuzz.views import check_view

__all__ = ["KINDS", "ask_for", "count_steps", "exponent", "measure"]

KINDS: Mapping[str, tuple[str, Callable[[int], str | bytes]]] = {
    **{name: (stage.value, make) for name, (stage, make) in GENERATORS.items()},
    **TABLES,
}
_STAGES = {stage.value for stage in Stage}
_BOUNDS = {"metadata": 1_000_000, "hsaco": 600_000}
"""Bytes of a kind beyond which it is not read."""
_BOUNDED = {"cubin: kernels": 9_000_000}
_PACKAGE = str(Path(artifact_inspector.__file__).parent)
_MOST_MIB, _MOST_SECONDS = 16 << 10, 900


class Cost(NamedTuple):
    """What a file took."""

    size: int
    """Bytes of the file."""
    seconds: float
    """Of the processor."""
    mib: float
    """At most, beyond what was taken before it was read."""


def measure(name: str, size: int, way: str = "read") -> Cost | str:
    """What a file of a kind takes in a process of its own; the last line of what it says where it is stopped."""
    with tempfile.TemporaryDirectory(prefix="growth-") as place:
        path = _write(name, size, Path(place))
        length = path.stat().st_size
        command = [sys.executable, "-m", "tests.fuzz.growth", "--child", way, str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        said = ended.stdout.strip().splitlines()
    if ended.returncode == 0 and said:
        return Cost(length, *json.loads(said[-1]))
    return (ended.stderr.strip().splitlines() or [f"stopped ({ended.returncode})"])[-1][:100]


def count_steps(ask: Callable[[], object]) -> int:
    """Lines of the package that run, those of a loop as often as it turns: a cost without a clock."""
    count = 0

    def each(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return each

    def first(frame: FrameType, event: str, _: Any) -> Any:
        return each if _PACKAGE in frame.f_code.co_filename else None

    sys.settrace(first)
    try:
        ask()
    finally:
        sys.settrace(None)
    return count


def ask_for(name: str, size: int, way: str, place: Path) -> Callable[[], object]:
    """What looks at a file of a kind, as a command does."""
    return _asked(way, _write(name, size, place))


def _write(name: str, size: int, place: Path) -> Path:
    suffix, make = KINDS[name]
    path = Path(place, "A" * 8, f"k.{suffix}")
    path.parent.mkdir(parents=True)
    content = make(size)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _asked(way: str, path: Path) -> Callable[[], object]:
    """What looks at a file, as a command does."""
    cache = path.parent.parent
    if way == "read":
        return partial(READERS[path.suffix[1:]](), path.read_bytes())
    if way == "floor":
        return partial(json.loads, path.read_bytes())
    if way == "whole":
        return partial(check_kernel, cache)
    return partial(check_view, {"list": "rows", "page": "page"}[way], cache, cache, cache)


def _child(way: str, path: Path) -> None:
    """Look at one file, and say what that took."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MIB << 20, _MOST_MIB << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    ask = _asked(way, path)
    before = _most_mib()
    started = time.process_time()
    gc.disable()
    ask()
    taken = time.process_time() - started
    print(json.dumps([taken, _most_mib() - before]))


def _most_mib() -> float:
    """Memory that this process had at most; what `getrusage` says begins with that of the process before it."""
    said = Path("/proc/self/status").read_text(encoding="utf-8").partition("VmHWM:")[2]
    return int(said.split()[0]) / 1024


def exponent(name: str, largest: int, way: str = "read", by: int = 10) -> tuple[float, float, Cost] | str:
    """How time and memory grow up to a size from a part of it, and what that takes; words where it is stopped."""
    small, large = (measure(name, size, way) for size in (largest // by, largest))
    for one in (small, large):
        if isinstance(one, str):
            return one
    assert isinstance(small, Cost)
    assert isinstance(large, Cost)
    longer, slower, larger = (
        math.log(max(after, 1e-3) / max(before, 1e-3)) for before, after in zip(small, large, strict=True)
    )
    return slower / longer, larger / longer, large


def main() -> None:
    """Measure all kinds of files, or those whose name holds a word."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--as", choices=("read", "floor", "list", "whole", "page"), default="read", dest="way")
    parser.add_argument("--to", type=int, default=50_000_000, help="bytes of the largest file")
    parser.add_argument("--by", type=int, default=10, help="how many times as large as the other")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child[0], Path(asked.child[1]))
        return
    for name, (kind, _) in KINDS.items():
        wanted = {"read": READERS.keys(), "floor": {"launch", "metadata"}}.get(asked.way, _STAGES)
        if asked.word not in name or kind not in wanted:
            continue
        largest = min(asked.to, _BOUNDS.get(kind, asked.to), _BOUNDED.get(name, asked.to))
        found = exponent(name, largest, asked.way, asked.by)
        if isinstance(found, str):
            print(f"| {name} | {asked.way} | stopped at {found} |", flush=True)
            continue
        time_grows, memory_grows, cost = found
        print(
            f"| {name} | {cost.size / 1e6:.3g} | {cost.seconds:.1f} | {time_grows:.2f} | {cost.mib:,.0f} | {memory_grows:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
