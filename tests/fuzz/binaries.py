"""`python -m tests.fuzz.binaries`: damaged cubins and hsacos through our reader, nvdisasm and llvm-objdump."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from artifact_inspector.errors import CacheError
from artifact_inspector.files.binaries import read_cubin, read_hsaco, read_loaded_sections
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.files.objdump import disassemble_hsaco, find_objdump
from artifact_inspector.model import Stage
from tests.fuzz.checks import check_text
from tests.fuzz.mutants import damage_bytes

__all__ = ["give"]

FIXTURES = Path(__file__).parents[2] / "fixtures"
_LARGEST = 40_000


def give(suffix: str, numbers: range) -> Counter[str]:
    """How damaged binaries were taken: `read`, `disassembled`, and `refused` by either.

    What is disassembled is read, too. Errors that are none of ours are let through.
    """
    tool, objdump = (find_disassembler(), None) if suffix == "cubin" else (None, find_objdump())
    files = [path for path in sorted(FIXTURES.rglob(f"*.{suffix}")) if path.stat().st_size < _LARGEST]
    found: Counter[str] = Counter()
    for number in numbers:
        chance = random.Random(f"{suffix} {number}")
        data = damage_bytes(chance.choice(files).read_bytes(), chance)
        try:
            (read_cubin if suffix == "cubin" else read_hsaco)(data)
            read_loaded_sections(data, suffix)
            found["read"] += 1
        except CacheError:
            found["refused"] += 1
        if tool is None and objdump is None:
            continue
        try:
            text = disassemble(data, tool) if suffix == "cubin" else disassemble_hsaco(data, objdump)
            is_read = check_text(text, Stage.SASS if suffix == "cubin" else Stage.AMDGCN)
            found["disassembled" if is_read else "disassembled to nothing"] += 1
        except CacheError as error:
            found["refused by the tool" if "not disassembled: " in str(error) else str(error)] += 1
    return found


def main() -> None:
    """Give both kinds of binaries to their tools, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.binaries", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"XDG_CACHE_HOME": home}):
        for suffix in ("cubin", "hsaco"):
            started = time.monotonic()
            said = ", ".join(
                f"{count} {what}" for what, count in give(suffix, range(asked.first, asked.first + asked.count)).items()
            )
            print(f"{asked.count} of {suffix}: {said}; {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
