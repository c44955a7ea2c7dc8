"""How long a cache takes beside what others do with the same files: one table of whole processes.

    pip install -e '.[test,bench]' && python tests/bench/rivals.py

All commands are run in turn, as often as `--rounds` says, and each is held against `inspect-kernel CACHE` of the same
round: what else the machine does falls on all of them. Processor time is that of the process and its children.

- tritonparse: its full parse of a trace that holds just these files, without its command line, which loads torch.
- llvmlite: LLVM's own parser over the LLIR alone.
- scan: every line of every text split into words and its first word counted, which is as little as Python can do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TEXTS = {".ttir": "//", ".ttgir": "//", ".llir": ";", ".ptx": "//", ".amdgcn": ";"}
"""Suffix → what begins a comment."""
FEW, BYTES = 28, 6_500_000
"""The small cache: so many kernels of the fixtures, those of one size that come nearest to so many bytes."""

TRITONPARSE = """
import sys
from tritonparse.parse.utils import unified_parse
unified_parse(sys.argv[1], out=sys.argv[2], overwrite=True)
"""
LLVMLITE = """
import sys
from pathlib import Path
from llvmlite import binding
for file in Path(sys.argv[1]).rglob("*.llir"):
    try:
        binding.parse_assembly(file.read_text())
    except RuntimeError:
        print(file.name)
"""
SCAN = f"""
import sys
from collections import Counter
from pathlib import Path
for file in Path(sys.argv[1]).rglob("*"):
    if file.suffix in {set(TEXTS)}:
        print(len(Counter(words[0] for line in file.read_text().splitlines() if (words := line.split()))))
"""


class Run(NamedTuple):
    """What one process took, with its children."""

    processor: float
    passed: float
    megabytes: float
    """Of the largest of its processes."""


class Command(NamedTuple):
    """One row of the table."""

    words: list[str]
    settings: Mapping[str, str] = {}
    cores: int | None = None
    forgets: Path | None = None
    """A directory that is emptied before each run."""
    bytes: int = 0
    """Of the files that it reads."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kernels", type=int, default=FEW, help="more than there are: copies with changed text")
    parser.add_argument("--cache", type=Path, help="this cache instead of fixtures")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        cache = asked.cache or made(asked.kernels, place / "cache")
        commands = listed(cache, place)
        taken: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(asked.rounds):
            for name, command in commands.items():
                taken[name].append(measured(command))
        write(cache, commands, taken)


# -- what is read ----------------------------------------------------------------------


def made(count: int, place: Path) -> Path:
    """A cache of so many kernels of the fixtures."""
    found = sorted({file.parent for file in (ROOT / "fixtures").rglob("*.ttir")}, key=lambda at: (size_of(at), at))
    if count <= len(found):
        windows = (found[first : first + count] for first in range(len(found) - count + 1))
        found = min(windows, key=lambda some: abs(sum(map(size_of, some)) - BYTES))
    for number in range(count):
        copy, (source, name) = number // len(found), (found[number % len(found)], f"{number:052}")
        shutil.copytree(source, place / name)
        for file in (place / name).iterdir() if copy else ():
            if file.suffix in TEXTS:  # or one text would be read for all of its copies
                file.write_text(f"{file.read_text()}{TEXTS[file.suffix]} copy {copy}\n")
    return place


def size_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def events(cache: Path) -> Iterator[dict[str, object]]:
    """The kernels of a cache as tritonparse's own hook writes them down."""
    for first in sorted(cache.rglob("*.ttir")):
        files = [file for file in first.parent.iterdir() if file.suffix in TEXTS]
        told = json.loads(first.with_suffix(".json").read_text())
        backend = told.get("target")
        told = {**told, **(backend if isinstance(backend, dict) else {}), "hash": first.parent.name}
        content = {file.name: file.read_text() for file in files}
        paths = {file.name: str(file) for file in files}
        payload = {"metadata": told, "file_path": paths, "file_content": content}
        yield {"event_type": "compilation", "pid": 1, "stack": [], "payload": payload}


# -- what reads it ---------------------------------------------------------------------


def listed(cache: Path, place: Path) -> dict[str, Command]:
    """The commands by name; a rival that is not installed is named and left out."""
    whole = size_of(cache)
    ours = partial(Command, bytes=whole)
    words = [sys.executable, "-m", "artifact_inspector", str(cache)]
    home = place / "home"
    fresh = {"XDG_CACHE_HOME": str(home)}
    kept = {"XDG_CACHE_HOME": str(place / "kept")}
    measured(Command(words, kept))
    commands = {
        "inspect-kernel CACHE": ours(words, fresh, forgets=home),
        "the same, on one core": ours(words, fresh, cores=1, forgets=home),
        "the same, a second time": ours(words, kept),
        "inspect-kernel CACHE --json": ours([*words, "--json"], fresh, forgets=home),
    }
    if find_spec("tritonparse") is None:
        print("tritonparse is not installed: pip install tritonparse", file=sys.stderr)
    else:
        trace = place / "dedicated_log_triton_trace_bench.ndjson"
        trace.write_text("".join(f"{json.dumps(event)}\n" for event in events(cache)))
        said = [sys.executable, "-c", TRITONPARSE, str(trace), str(place / "parsed")]
        commands["tritonparse, full parse"] = Command(said, bytes=trace.stat().st_size)
    if find_spec("llvmlite") is not None:
        size = sum(file.stat().st_size for file in cache.rglob("*.llir"))
        commands["llvmlite, the LLIR alone"] = Command([sys.executable, "-c", LLVMLITE, str(cache)], bytes=size)
    commands["scan"] = Command([sys.executable, "-c", SCAN, str(cache)], bytes=whole)
    return commands


def measured(command: Command) -> Run:
    """Run it once, its output thrown away."""
    if command.forgets is not None:
        shutil.rmtree(command.forgets, ignore_errors=True)
    own = os.sched_getaffinity(0)
    some = set(sorted(own)[: command.cores]) if command.cores else own
    started = time.perf_counter()
    os.sched_setaffinity(0, some)  # which a child inherits
    with subprocess.Popen(
        command.words,
        cwd=ROOT,
        env={**os.environ, "ARTIFACT_INSPECTOR_INDEX": "", **command.settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        os.sched_setaffinity(0, own)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command.words} ended with {process.returncode}: {said.decode()[-500:]}")
    return Run(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024)


def write(cache: Path, commands: Mapping[str, Command], taken: Mapping[str, list[Run]]) -> None:
    """The table, as Markdown."""
    count = len(list(cache.rglob("*.ttir")))
    print(f"{count} kernels, {size_of(cache) / 1e6:.1f} MB; medians of {len(next(iter(taken.values())))} rounds\n")
    print("| what | processor s | passed s | MB/s of processor | largest process MB | × of the first |")
    print("|---|---|---|---|---|---|")
    first = next(iter(taken.values()))
    for name, runs in taken.items():
        processor, passed, megabytes = (statistics.median(column) for column in zip(*runs, strict=True))
        ratio = statistics.median(a.processor / b.processor for a, b in zip(runs, first, strict=True))
        speed = commands[name].bytes / 1e6 / processor
        print(f"| {name} | {processor:.2f} | {passed:.2f} | {speed:.1f} | {megabytes:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
