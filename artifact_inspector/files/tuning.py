"""Triton's own timings of an autotuned kernel: `NAME.autotune.json`, kept with `TRITON_CACHE_AUTOTUNING=1`.

**Source**: triton/runtime/autotuner.py, `Autotuner.check_disk_cache` (3.4 and later).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from artifact_inspector.files.artifact import Artifact, Cache
from artifact_inspector.files.reading import read_content

__all__ = ["Timing", "Tuning", "read_tunings"]

SUFFIX = ".autotune.json"
MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Timing:
    """One configuration with its time."""

    constants: Mapping[str, object]
    num_warps: int | None
    num_stages: int | None
    milliseconds: float | None
    """The median; None for a configuration that could not be launched."""

    def is_of(self, artifact: Artifact, extents: frozenset[int]) -> bool:
        """Whether an entry may be of this configuration: by warps, stages, and its constants.

        Args:
            extents: of the entry's tiles, which tell of constants that no record has.
        """
        if (self.num_warps, self.num_stages) != (artifact.num_warps, artifact.num_stages):
            return False
        for name, value in self.constants.items():
            if name in artifact.constants:
                if artifact.constants[name] != value:
                    return False
            elif "BLOCK" in name.upper() and isinstance(value, int) and value not in extents:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Tuning:
    """The timings of one kernel for one key, the fastest first."""

    kernel: str
    """The Python function."""
    key: tuple[str, ...]
    """Values of the arguments that it was tuned by, and the types of its tensors."""
    timings: tuple[Timing, ...]


def read_tunings(cache: Cache, kernel: str) -> tuple[Tuning, ...]:
    """What a cache has of a kernel; a file that cannot be read, or is of another shape, tells nothing."""
    found = []
    for other in cache.others:
        if other.path.rpartition("/")[2] == f"{kernel}{SUFFIX}":
            try:
                document = json.loads(read_content(cache.root / other.path, MOST_BYTES))
                timings = [_timing(*row) for row in document["configs_timings"]]
                key = tuple(str(part) for part in document["key"])
            except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
                continue
            timings.sort(key=lambda timing: (timing.milliseconds is None, timing.milliseconds or 0))
            found.append(Tuning(kernel, key, tuple(timings)))
    return tuple(sorted(found, key=lambda tuning: tuning.key))


def _timing(config: Mapping[str, Any], times: Any) -> Timing:
    median = times[0] if isinstance(times, list) else times
    is_time = isinstance(median, int | float) and math.isfinite(median) and median >= 0
    return Timing(
        dict(config["kwargs"]),
        config.get("num_warps"),
        config.get("num_stages"),
        float(median) if is_time else None,
    )
