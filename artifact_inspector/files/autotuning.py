"""Reads Triton's own autotuner timings: `NAME.autotune.json`, written with `TRITON_CACHE_AUTOTUNING=1`.

**Source**: triton/runtime/autotuner.py, `Autotuner.check_disk_cache` (3.4 and later).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.files.artifact import Artifact, Cache
from artifact_inspector.files.reader import read_content
from artifact_inspector.model.tile import Tile

SUFFIX = ".autotune.json"
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class AutotuneTiming:
    """One configuration with its time."""

    constants: Mapping[str, object]
    num_warps: int | None
    num_stages: int | None
    milliseconds: float | None
    """Median time; None for a configuration that could not be launched."""

    def is_of(self, artifact: Artifact, tiles: Iterable[Tile]) -> bool:
        """Whether an entry may have this configuration: compares warps, stages and constants.

        Args:
            tiles: of the entry; their extents are compared with constants that no record has.
        """
        if (self.num_warps, self.num_stages) != (artifact.num_warps, artifact.num_stages):
            return False
        extents = {extent for tile in tiles for extent in tile.extents}
        for name, value in self.constants.items():
            if name in artifact.constants:
                if artifact.constants[name] != value:
                    return False
            elif "BLOCK" in name.upper() and isinstance(value, int) and value not in extents:
                return False
        return True


@dataclass(frozen=True, slots=True)
class AutotuneResult:
    """The timings of one kernel for one autotuning key, fastest first."""

    kernel: str
    """Name of the Python function."""
    key: tuple[str, ...]
    """Values of the arguments in the autotuning key, and the types of its tensors."""
    timings: tuple[AutotuneTiming, ...]


@dataclass(frozen=True, slots=True)
class EntryTiming:
    """Triton's own timings of one entry, for one autotuning key."""

    key: tuple[str, ...]
    """Values of the arguments in the autotuning key, and the types of its tensors."""
    milliseconds: tuple[float | None, ...]
    """Times of each configuration that the entry may have, fastest first; None if it was not launched."""
    fastest: float | None
    """Time of the fastest configuration for this key, in milliseconds."""
    configurations: int
    """Number of configurations timed for this key."""

    @property
    def is_fastest(self) -> bool:
        """True if no configuration was faster."""
        return self.fastest is not None and set(self.milliseconds) == {self.fastest}


def entry_timings(
    tunings: Sequence[AutotuneResult], cache: Cache, artifact: Artifact, tiles: Iterable[Tile]
) -> tuple[EntryTiming, ...]:
    """Triton's timings of an entry.

    Empty if the kernel has entries for several GPUs: the file does not say which GPU was timed.
    """
    kernel_results = [tuning for tuning in tunings if tuning.kernel == artifact.display_name]
    if not kernel_results or len({entry.target for entry in cache.entries if entry.name == artifact.name}) > 1:
        return ()
    timings, shapes = [], tuple(tiles)
    for tuning in kernel_results:
        milliseconds = [timing.milliseconds for timing in tuning.timings if timing.is_of(artifact, shapes)]
        if milliseconds:
            fastest = tuning.timings[0].milliseconds
            timings.append(EntryTiming(tuning.key, tuple(milliseconds), fastest, len(tuning.timings)))
    return tuple(timings)


def read_autotune_results(cache: Cache, kernel: str | None = None) -> tuple[AutotuneResult, ...]:
    """The timings in a cache, for one kernel or all; unreadable files are ignored."""
    results = []
    for other_file in cache.others:
        name = other_file.path.rpartition("/")[2].removesuffix(SUFFIX)
        if other_file.path.endswith(SUFFIX) and kernel in (None, name):
            try:
                document = json.loads(read_content(cache.root / other_file.path, MAX_BYTES))
                timings = [_timing(*row) for row in document["configs_timings"]]
                key = tuple(str(component) for component in document["key"])
            except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
                continue
            timings.sort(key=lambda timing: (timing.milliseconds is None, timing.milliseconds or 0))
            results.append(AutotuneResult(name, key, tuple(timings)))
    return tuple(sorted(results, key=lambda tuning: (tuning.kernel, tuning.key)))


def _timing(config: Mapping[str, Any], times: Any) -> AutotuneTiming:
    median = times[0] if isinstance(times, list) else times
    is_time = isinstance(median, int | float) and math.isfinite(median) and median >= 0
    return AutotuneTiming(
        dict(config["kwargs"]), config.get("num_warps"), config.get("num_stages"), float(median) if is_time else None
    )
