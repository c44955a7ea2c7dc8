"""Find saved compiler output by kernel, target and Triton version."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from artifact_inspector.api._plain import errors_are_the_callers
from artifact_inspector.api.view import Inspection
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.selection import choose, parse_which
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.model import TritonVersion

OWN = Path(__file__).parents[2] / "fixtures"
"""The fixtures of this project; they exist in a checkout only."""
MOST_NAMES = 8


class SavedIR:
    """Kernels in directories of saved compiler output: caches, or directories of them.

    If no named directory has a matching kernel, the fixtures of this project are searched.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self.directories = (*directories, *([OWN] if (OWN / "manifest.json").is_file() else []))
        self._caches: dict[Path, Cache] = {}
        self._read: dict[tuple[Path, str, str], Inspection] = {}

    @errors_are_the_callers
    def __call__(
        self, kernel: str | None = None, *, target: str | None = None, triton: str | None = None
    ) -> Inspection:
        """The one kernel that matches.

        Args:
            kernel: a name or part of one, or a directory that contains it.
            target: `sm_80`, `gfx942`, `T4` …
            triton: the version that compiled it, `3.6.0` or `3.6`, also as the name of a directory.

        Raises:
            UsageError: none or several match; the remedy lists them.
        """
        cache, found = self._find(kernel, target, triton)
        if len(found) > 1:
            titles = [f"{x.display_name} for {x.target} in {x.directory}" for x in found]
            more = f" and {len(titles) - MOST_NAMES} more" if len(titles) > MOST_NAMES else ""
            raise UsageError(
                f"{len(found)} saved kernels match: {', '.join(titles[:MOST_NAMES])}{more}.",
                "Give the whole name, target= or triton=.",
            )
        return self._inspection(cache, found[0])

    @errors_are_the_callers
    def all(
        self, kernel: str | None = None, *, target: str | None = None, triton: str | None = None
    ) -> list[Inspection]:
        """All kernels that match in the first directory that has one.

        Raises:
            UsageError: none matches.
        """
        cache, found = self._find(kernel, target, triton)
        return [self._inspection(cache, artifact) for artifact in found]

    def _find(
        self, kernel: str | None, target: str | None, triton: str | None
    ) -> tuple[Cache, list[Artifact]]:
        why = UsageError(
            "No directory of saved compiler output is configured.", "Give one: pytest --saved-ir=DIR."
        )
        for place, directory in enumerate(self.directories):
            if directory not in self._caches:
                self._caches[directory] = open_cache(directory)
            cache = self._caches[directory]
            try:
                return cache, _narrow(cache, kernel, target, triton)
            except UsageError as error:
                why = error if place == 0 else why
        raise why

    def __repr__(self) -> str:
        return f"<saved compiler output in {', '.join(x.name for x in self.directories) or 'no directory'}>"

    def _inspection(self, cache: Cache, artifact: Artifact) -> Inspection:
        key = (cache.root, artifact.directory, artifact.stem)
        if key not in self._read:
            self._read[key] = Inspection(inspect_artifact(artifact), cache)
        return self._read[key]


def _narrow(cache: Cache, kernel: str | None, target: str | None, triton: str | None) -> list[Artifact]:
    found = [*choose(cache, kernel, parse_which([] if target is None else [target]))]
    # an exact directory name wins over names that contain the word
    inside = [x for x in found if kernel in x.directory.split("/")]
    found = inside or found
    if triton is not None:
        fitting = [x for x in found if _is_of(x, triton)]
        if not fitting:
            have = dict.fromkeys(x.triton_version or "unknown" for x in found)
            raise UsageError(
                f"No matching saved kernel is from Triton {triton}.",
                f"Available versions: {', '.join(have) or 'none'}.",
            )
        found = fitting
    if not found:
        raise UsageError(f"No kernels in {cache.root}.", "Give a cache: pytest --saved-ir=DIR.")
    return found


def _is_of(artifact: Artifact, version: str) -> bool:
    """Whether the metadata or a directory names this version."""
    said = (artifact.triton_version, *artifact.directory.split("/"))
    return any(one is not None and TritonVersion(one).is_of(version) for one in said)
