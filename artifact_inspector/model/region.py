"""Kinds of regions, and how a loop is pipelined."""

from __future__ import annotations

import re
from typing import NamedTuple

from artifact_inspector.model.word import Word

_LOOP = re.compile(r"loop([@#])(\d+)")


class RegionId(NamedTuple):
    """A parsed region ID: `helper/loop@9/loads` is the loads part of a split loop at line 9 in `helper`.

    Example:
        >>> RegionId.parse("helper/loop@9/loads")
        RegionId(function='helper/', place=9, is_line=True, rest='/loads')
        >>> RegionId.parse("helper/loop@9/loads").whole
        'helper/loop@9'
        >>> RegionId.parse("straight").is_loop
        False
    """

    function: str
    """Prefix of the loop ID, with its slash; empty in a file with one function."""
    place: int | None
    """Line of the loop header, or the loop's number; None if it is not a loop."""
    is_line: bool
    rest: str
    """Disambiguating suffix: `#2` on one line, `/2` or `/loads` of one loop; the whole ID if it is not a
    loop."""

    @property
    def is_loop(self) -> bool:
        """True for a loop, and for a part of a split loop."""
        return self.place is not None

    @property
    def whole(self) -> str:
        """The ID of the loop that this one is a part or a copy of."""
        if self.place is None:
            return self.rest
        return f"{self.function}loop{'@' if self.is_line else '#'}{self.place}{self.rest.partition('/')[0]}"

    @classmethod
    def parse(cls, text: str) -> RegionId:
        """Parse an ID as users write it."""
        found = _LOOP.search(text)
        if found is None:
            return cls("", None, False, text)
        return cls(text[: found.start()], int(found[2]), found[1] == "@", text[found.end() :])


class RegionKind(Word):
    """Kind of a region."""

    LOOP = "loop"
    STRAIGHT = "straight"
    """Code outside loops."""
    PARTITION = "partition"
    """Code that some of the warps run in a warp-specialised kernel."""


class PipelineKind(Word):
    """How the loads of a loop run ahead."""

    GROUPS = "cp.async groups"
    TENSORS = "TMA + mbarrier"
    DIRECT = "direct to LDS"
    """AMD's loads that write directly to shared memory."""
    REGISTERS = "register prefetch"
    COPIES = "groups of copies"
    """For an unknown target."""


class SlotKind(Word):
    """Content of the code between two schedule hints of a loop."""

    MEMORY = "memory"
    MATRIX = "matrix"
    MIXED = "mixed"
