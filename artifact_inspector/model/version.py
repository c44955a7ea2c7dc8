"""A version of Triton, as caches and users write it."""

from __future__ import annotations

import re
from functools import lru_cache

Release = tuple[int, int]
"""Major and minor number: (3, 2) for 3.2.0."""

_NUMBERS = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d+)?")


class TritonVersion(str):
    """A version as written; `3.0/3.1` if several releases are possible.

    Example:
        >>> TritonVersion("3.0/3.1").since((3, 1)) is None, TritonVersion("3.10.0").since((3, 2))
        (True, True)
    """

    __slots__ = ()

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every possible release, oldest first; empty if the text has none."""
        return _releases(str(self))

    @property
    def release(self) -> Release | None:
        """The oldest possible release."""
        return next(iter(self.releases), None)

    def since(self, release: Release) -> bool | None:
        """Whether it is that release or a later one; None if unknown."""
        answers = {one >= release for one in self.releases}
        return answers.pop() if len(answers) == 1 else None

    def is_of(self, wanted: str) -> bool:
        """Whether it equals the requested version, or belongs to that release: `3.2.0` belongs to `3.2`."""
        return self == wanted or self.startswith(f"{wanted}.")

    def fits(self, wanted: str) -> bool:
        """Whether it may be the requested version: `3.2` may be `3.2.0`.

        Older caches only show the release.
        """
        return any(
            TritonVersion(one).is_of(wanted) or TritonVersion(wanted).is_of(one) for one in self.split("/")
        )


@lru_cache(maxsize=256)
def _releases(text: str) -> tuple[Release, ...]:
    found = [_NUMBERS.match(one) for one in text.split("/")]
    return tuple(sorted((int(match[1]), int(match[2])) for match in found if match is not None))
