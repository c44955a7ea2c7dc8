"""Kinds of regions, and how a loop is pipelined."""

from __future__ import annotations

import re
from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum

_LOOP = re.compile(r"loop([@#])(\d+)")


class RegionId(NamedTuple):
    """A parsed region ID: `helper/loop@9/loads` is the loads part of a split loop at line 9 in `helper`.

    Example:
        >>> RegionId.parse("helper/loop@9/loads")
        RegionId(function='helper/', position=9, is_line=True, suffix='/loads')
        >>> RegionId.parse("helper/loop@9/loads").loop_id
        'helper/loop@9'
        >>> RegionId.parse("straight").is_loop
        False
    """

    function: str
    """Prefix of the loop ID, with its slash; empty in a file with one function."""
    position: int | None
    """Line of the loop header, or the loop's number; None if it is not a loop."""
    is_line: bool
    suffix: str
    """Disambiguating suffix: `#2` on one line, `/2` or `/loads` of one loop; the whole ID if it is not a loop."""

    @property
    def is_loop(self) -> bool:
        """True for a loop, and for a part of a split loop."""
        return self.position is not None

    @property
    def loop_id(self) -> str:
        """The ID of the loop that this one is a part or a copy of."""
        if self.position is None:
            return self.suffix
        return f"{self.function}loop{'@' if self.is_line else '#'}{self.position}{self.suffix.partition('/')[0]}"

    @classmethod
    def parse(cls, text: str) -> RegionId:
        """Parse an ID as users write it."""
        match = _LOOP.search(text)
        if match is None:
            return cls("", None, False, text)
        return cls(text[: match.start()], int(match[2]), match[1] == "@", text[match.end() :])


class RegionKind(StringEnum):
    """Kind of a region."""

    LOOP = "loop"
    STRAIGHT = "straight"
    """Code outside loops."""
    PARTITION = "partition"
    """Code that some of the warps run in a warp-specialised kernel."""


class PipelineKind(StringEnum):
    """How the loads of a loop run ahead."""

    GROUPS = "cp.async groups"
    TENSORS = "TMA + mbarrier"
    DIRECT = "direct to LDS"
    """AMD's loads that write directly to shared memory."""
    REGISTERS = "register prefetch"
    COPIES = "groups of copies"
    """For an unknown target."""


class SlotKind(StringEnum):
    """Content of the code between two schedule hints of a loop."""

    MEMORY = "memory"
    MATRIX = "matrix"
    MIXED = "mixed"
