"""What a side of a comparison is: a cache, or kernels of one, as they are named on a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import filter_kernels, parse_filters
from artifact_inspector.files.cache import Artifact, Cache


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
        selectors: each a target (`sm_75`, `T4`), a version of Triton that the cache has (`3.2.0`), warps,
            stages, a tile, a constant or an option as `parse_filters` takes them, or part of a name or hash.
        choose: those of a cache that a part of a name or hash fits.

    Raises:
        UsageError: none is left.
    """
    chosen = choose(cache, place.name)
    for word in selectors:
        which = parse_filters([word], otherwise_target=False)
        if which:
            chosen = filter_kernels(chosen, which, counted=False)
            continue
        chosen = tuple(x for x in choose(cache, word) if x in chosen)
        if not chosen:
            raise UsageError(f"No kernel here is called {word!r} too.", "Say less of it.")
    return chosen
