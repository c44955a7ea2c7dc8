"""A version of Triton, as caches and users write it."""

from __future__ import annotations

import re
from functools import lru_cache

Release = tuple[int, int]
"""Major and minor number: (3, 2) for 3.2.0."""

_ALL_NUMBERS = re.compile(r"\d+")
_NUMBERS = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d+)?")


class TritonVersion(str):
    """A version as written; `3.0/3.1` if several releases are possible.

    Example:
        >>> TritonVersion("3.0/3.1").since((3, 1)) is None, TritonVersion("3.10.0").since((3, 2))
        (True, True)
        >>> TritonVersion("3.10.0").numbers > TritonVersion("3.9.0+git1a2b").numbers > (3, 5)
        True
    """

    __slots__ = ()

    @property
    def candidates(self) -> list[str]:
        """Every possible version, as written."""
        return self.split("/")

    @property
    def is_exact(self) -> bool:
        """Whether it names one version, not only its release: `3.2.0`."""
        return "/" not in self and self.count(".") >= 2

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every possible release, oldest first; empty if the text has none."""
        return _releases(str(self))

    @property
    def release(self) -> Release | None:
        """The oldest possible release."""
        return next(iter(self.releases), None)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of a single version, to be ordered by: (3, 2, 0) for `3.2.0` and `3.2.0+git1a2b`."""
        return tuple(int(number) for number in _ALL_NUMBERS.findall(self.partition("+")[0]))

    def since(self, release: Release) -> bool | None:
        """Whether it is that release or a later one; None if unknown."""
        results = {possible >= release for possible in self.releases}
        return results.pop() if len(results) == 1 else None

    def matches(self, requested: str) -> bool:
        """Whether it equals the requested version, or belongs to that release: `3.2.0` belongs to `3.2`."""
        return self == requested or self.startswith(f"{requested}.")

    def may_match(self, requested: str) -> bool:
        """Whether it may be the requested version: `3.2` may be `3.2.0`.

        Older caches only show the release.
        """
        return any(
            TritonVersion(version).matches(requested) or TritonVersion(requested).matches(version)
            for version in self.candidates
        )


@lru_cache(maxsize=256)
def _releases(text: str) -> tuple[Release, ...]:
    matches = [_NUMBERS.match(version) for version in text.split("/")]
    return tuple(sorted((int(match[1]), int(match[2])) for match in matches if match is not None))
