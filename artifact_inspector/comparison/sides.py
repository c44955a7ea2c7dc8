"""What a side of a comparison is: a cache, or kernels of one, as they are named on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.hardware.targets import parse_target

__all__ = ["Place", "narrow_side", "parse_place"]

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[.+]?\w+)?")


@dataclass(frozen=True, slots=True)
class Place:
    """A cache directory, and which of its kernels are meant."""

    directory: Path
    name: str | None
    """Part of a name or hash; None for all."""


def parse_place(text: str) -> Place:
    """`CACHE`, or `CACHE:NAME` where no directory bears the whole as its name.

    Example:
        >>> parse_place("fixtures/3.2.0:gemv")
        Place(directory=PosixPath('fixtures/3.2.0'), name='gemv')
    """
    whole = Path(text).expanduser()
    directory, _, name = text.rpartition(":")
    # a drive of Windows is no cache, and a name has no separator
    is_drive = len(directory) == 1 and not Path(directory).is_dir()
    if whole.is_dir() or is_drive or not directory or not name or set(name) & {"/", "\\"}:
        return Place(whole, None)
    return Place(Path(directory).expanduser(), name)


def narrow_side(
    cache: Cache,
    place: Place,
    selectors: Sequence[str],
    choose: Callable[[Cache, str | None], tuple[Artifact, ...]],
) -> tuple[Artifact, ...]:
    """The kernels of one side.

    Args:
        selectors: each a target (`sm_75`, `T4`), a version of Triton that the cache has (`3.2.0`), or part
            of a name or hash.
        choose: those of a cache that a part of a name or hash fits.

    Raises:
        UsageError: none is left.
    """
    chosen = choose(cache, place.name)
    for word in selectors:
        if _VERSION.fullmatch(word):
            versions = {x.triton_version for x in chosen}
            left = tuple(x for x in chosen if x.triton_version is not None and x.triton_version.fits(word))
            there = ", ".join(sorted(str(v) for v in versions if v is not None)) or "none that is known"
            told = (f"No kernel here is of Triton {word}.", f"There are {there}.")
        else:
            try:
                target = parse_target(word)
            except UsageError:
                chosen = tuple(x for x in choose(cache, word) if x in chosen)
                if not chosen:
                    raise
                continue
            left = tuple(x for x in chosen if x.target is not None and x.target.arch == target.arch)
            archs = ", ".join(sorted({str(x.target) for x in chosen if x.target is not None})) or "none"
            told = (f"No kernel here is for {target}.", f"There are {archs}.")
        if not left:
            raise UsageError(*told)
        chosen = left
    return chosen
