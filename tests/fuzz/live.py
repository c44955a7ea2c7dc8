"""`python -m tests.fuzz.live`: a real compile loop fills a cache and deletes from it while scans read it.

The writer is Triton itself, in a process of its own, with its temporary directories and its renaming. Each
scan inspects whatever is there for all that can be known and makes the document; a second one with the index.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.index import Index
from tests.fuzz.checks import EscapeError, check_kernel

__all__ = ["scan"]

_TARGETS = (("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64))


def _write(directory: str) -> None:
    """Compile for as long as the process that scans is there, and delete an entry after most compiles."""
    os.environ["TRITON_CACHE_DIR"] = directory
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from artifact_inspector.kernels import gemv_loads_first

    kernel = next(one for one in vars(gemv_loads_first).values() if isinstance(one, triton.JITFunction))
    chance = random.Random(7)
    reader = os.getppid()
    while os.getppid() == reader:  # an orphan would go on for ever
        constants = {(at,): chance.choice((32, 64, 128)) for at, one in enumerate(kernel.params) if one.is_constexpr}
        signature = {
            one.name: "constexpr" if one.is_constexpr else "*fp16" if one.name.endswith("_ptr") else "i32"
            for one in kernel.params
        }
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        triton.compile(source, target=GPUTarget(*chance.choice(_TARGETS)))
        print("compiled", flush=True)
        entries = [entry for entry in Path(directory).iterdir() if entry.is_dir()]
        if len(entries) > 1 and chance.random() < 0.8:
            shutil.rmtree(chance.choice(entries), ignore_errors=True)


def scan(directory: Path, index: Path) -> tuple[int, int]:
    """Kernels that were found, and problems that were told, in one look at a cache."""
    kernels = check_kernel(directory)
    said: list[str] = []
    entries = open_cache(directory).entries
    for kernel in read_kernels(entries, None, ReadOptions(None, lambda: Index(index, said.append))):
        if any("inspector itself failed" in problem.problem for problem in kernel.problems):
            raise EscapeError(str(kernel.problems))
    return len(kernels), sum(len(kernel.problems) for kernel in kernels)


def main() -> None:
    """Scan as often as is asked for, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.live", description=__doc__)
    parser.add_argument("--scans", type=int, default=1000)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        _write(asked.write)
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as log:
        cache, index = Path(place, "cache"), Path(place, "index.sqlite3")
        cache.mkdir()
        command = [sys.executable, "-m", "tests.fuzz.live", "--write", str(cache)]
        writer = subprocess.Popen(command, stdout=log)
        seen: Counter[int] = Counter()
        problems = 0
        try:
            while not any(cache.iterdir()) and writer.poll() is None:
                time.sleep(0.1)
            for _ in range(asked.scans):
                found, told = scan(cache, index)
                seen[found] += 1
                problems += told
                if writer.poll() is not None:
                    raise SystemExit("the writer ended")
        finally:
            writer.kill()
            writer.wait()
        log.seek(0)
        compiled = len(log.read().splitlines())
    print(
        f"{asked.scans} scans beside {compiled} compiles: {min(seen)} to {max(seen)} kernels each, "
        f"{problems} problems told in words, none escaped"
    )


if __name__ == "__main__":
    main()
