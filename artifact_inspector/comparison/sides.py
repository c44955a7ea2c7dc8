"""One side of a comparison: a cache, or kernels of a cache, as the command line names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import filter_kernels, parse_filters
from artifact_inspector.files.cache import Artifact, Cache


@dataclass(frozen=True, slots=True)
class CacheSelector:
    """A cache directory, with a selection of its kernels."""

    directory: Path
    name: str | None
    """Part of a name or hash; None for all."""


def parse_cache_selector(text: str) -> CacheSelector:
    """`CACHE`, or `CACHE:NAME` if no directory has that full name.

    Example:
        >>> parse_cache_selector("fixtures/3.2.0:gemv")
        CacheSelector(directory=PosixPath('fixtures/3.2.0'), name='gemv')
    """
    path = Path(text).expanduser()
    directory, _, name = text.rpartition(":")
    # a Windows drive is not a cache, and a name has no separator
    is_drive = len(directory) == 1 and not Path(directory).is_dir()
    if path.exists() or is_drive or not directory or not name or set(name) & {"/", "\\"}:
        return CacheSelector(path, None)
    return CacheSelector(Path(directory).expanduser(), name)


def narrow_side(
    cache: Cache,
    selector: CacheSelector,
    selectors: Sequence[str],
    choose: Callable[[Cache, str | None], tuple[Artifact, ...]],
) -> tuple[Artifact, ...]:
    """The kernels of one side.

    Args:
        selectors: each a target (`sm_75`, `T4`), a version of Triton that the cache has (`3.2.0`), warps,
            stages, a tile, a constant or an option as `parse_filters` takes them, or part of a name or hash.
        choose: the kernels of a cache that match a part of a name or hash.

    Raises:
        UsageError: no kernel matches.
    """
    artifacts = choose(cache, selector.name)
    for value in selectors:
        filters = parse_filters([value], otherwise_target=False)
        if filters:
            artifacts = filter_kernels(artifacts, filters, with_counts=False)
            continue
        artifacts = tuple(x for x in choose(cache, value) if x in artifacts)
        if not artifacts:
            raise UsageError(
                f"No kernel of this side matches {value!r} and the other selectors.", "Remove one of the selectors."
            )
    return artifacts
