"""Launches to begin with: of every saved kernel whose machine code runs on paper, one that fits it."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.kernel_loader import KernelParameter, load_kernel
from artifact_inspector.files.cache import open_cache

__all__ = ["launch_of", "launchable"]

ROOT = Path(__file__).parents[2]
_PLACES = (ROOT / "fixtures", ROOT / "tests" / "oracle" / "counters")
_LARGEST = 150_000
"""Bytes of machine code."""


@cache
def launchable() -> tuple[tuple[Path, tuple[KernelParameter, ...]], ...]:
    """Directories of kernels with machine code that is text, and what each takes: of every release that has one."""
    found = []
    for place in _PLACES:
        for code in sorted((*place.rglob("*.sass"), *place.rglob("*.amdgcn"))):
            if code.stat().st_size > _LARGEST:
                continue
            try:
                (artifact,) = open_cache(code.parent).entries
                found.append((code.parent, load_kernel(artifact, None).parameters))
            except (InspectorError, ValueError):
                continue
    return tuple(found)


def launch_of(chance: random.Random) -> tuple[Path, dict[str, Any]]:
    """One of them, with a launch of two CTAs."""
    path, parameters = chance.choice(launchable())
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.type.startswith(("*", "!")):
            kind = parameter.type if parameter.type.startswith("*") else "fp16"
            arguments.setdefault(parameter.argument, _tensor(kind, chance))
        elif parameter.type:
            arguments.setdefault(parameter.argument, chance.choice((64, 64, 1, 16, 256)))
    if "arg0" in arguments and chance.random() < 0.7:  # a text that names none: they are taken in their order
        arguments = {f"a{at}": given for at, given in enumerate(arguments.values())}
    return path, {"grid": chance.choice(([2], [2, 1, 1], "2", "cdiv(64, 32)")), "args": arguments}


def _tensor(kind: str, chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"shape": [16, 16], "dtype": kind}
    what = chance.randrange(5)
    if what == 0:
        found["stride"] = [16, 1]
    elif what == 1:
        found["ptr"] = 0x7F0000000000 + 0x10000 * chance.randrange(4)
    elif what == 2 and "i" in kind:
        found["values"] = list(range(256))
    elif what == 3:
        return {"descriptor": found}
    return found
