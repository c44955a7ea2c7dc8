"""Find saved compiler output by kernel, target and Triton version."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from artifact_inspector.api._tracebacks import hide_internal_frames
from artifact_inspector.api.inspection import Inspection
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.selection import parse_filters, select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.model import TritonVersion

PROJECT_FIXTURES = Path(__file__).parents[2] / "fixtures"
"""The fixtures of this project; they exist in a checkout only."""
MAX_NAMES = 8


class SavedIR:
    """Kernels in directories of saved compiler output: caches, or directories of them.

    If no named directory has a matching kernel, the fixtures of this project are searched.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self.directories = (
            *directories,
            *([PROJECT_FIXTURES] if (PROJECT_FIXTURES / "manifest.json").is_file() else []),
        )
        self._caches: dict[Path, Cache] = {}
        self._inspections: dict[tuple[Path, str, str], Inspection] = {}

    @hide_internal_frames
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
        cache, artifacts = self._find(kernel, target, triton)
        if len(artifacts) > 1:
            titles = [f"{x.display_name} for {x.target} in {x.directory}" for x in artifacts]
            omitted = f" and {len(titles) - MAX_NAMES} more" if len(titles) > MAX_NAMES else ""
            raise UsageError(
                f"{len(artifacts)} saved kernels match: {', '.join(titles[:MAX_NAMES])}{omitted}.",
                "Give the whole name, target= or triton=.",
            )
        return self._inspection(cache, artifacts[0])

    @hide_internal_frames
    def all(
        self, kernel: str | None = None, *, target: str | None = None, triton: str | None = None
    ) -> list[Inspection]:
        """All kernels that match in the first directory that has one.

        Raises:
            UsageError: none matches.
        """
        cache, artifacts = self._find(kernel, target, triton)
        return [self._inspection(cache, artifact) for artifact in artifacts]

    def _find(self, kernel: str | None, target: str | None, triton: str | None) -> tuple[Cache, list[Artifact]]:
        error_to_raise = UsageError(
            "No directory of saved compiler output is configured.", "Give one: pytest --saved-ir=DIR."
        )
        for index, directory in enumerate(self.directories):
            if directory not in self._caches:
                self._caches[directory] = open_cache(directory)
            cache = self._caches[directory]
            try:
                return cache, _select(cache, kernel, target, triton)
            except UsageError as error:
                error_to_raise = error if index == 0 else error_to_raise
        raise error_to_raise

    def __repr__(self) -> str:
        return f"<saved compiler output in {', '.join(x.name for x in self.directories) or 'no directory'}>"

    def _inspection(self, cache: Cache, artifact: Artifact) -> Inspection:
        key = (cache.root, artifact.directory, artifact.stem)
        if key not in self._inspections:
            self._inspections[key] = Inspection(inspect_artifact(artifact), cache)
        return self._inspections[key]


def _select(cache: Cache, kernel: str | None, target: str | None, triton: str | None) -> list[Artifact]:
    artifacts = [*select_kernels(cache, kernel, parse_filters([] if target is None else [target]))]
    # an exact directory name wins over names that contain the word
    in_directory = [x for x in artifacts if kernel in x.directory.split("/")]
    artifacts = in_directory or artifacts
    if triton is not None:
        of_version = [x for x in artifacts if _is_of_version(x, triton)]
        if not of_version:
            versions = dict.fromkeys(x.triton_version or "unknown" for x in artifacts)
            raise UsageError(
                f"No matching saved kernel is from Triton {triton}.",
                f"Available versions: {', '.join(versions) or 'none'}.",
            )
        artifacts = of_version
    if not artifacts:
        raise UsageError(f"No kernels in {cache.title}.", "Give a cache: pytest --saved-ir=DIR.")
    return artifacts


def _is_of_version(artifact: Artifact, version: str) -> bool:
    """Whether the metadata or a directory names this version."""
    names = (artifact.triton_version, *artifact.directory.split("/"))
    return any(version_name is not None and TritonVersion(version_name).matches(version) for version_name in names)
