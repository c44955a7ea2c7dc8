"""The words for a kernel's regions, and for how a loop among them is pipelined."""

from __future__ import annotations

import re
from typing import NamedTuple

from artifact_inspector.model.word import Word

_LOOP = re.compile(r"loop([@#])(\d+)")


class RegionId(NamedTuple):
    """A region's id, taken apart: `helper/loop@9/loads` is what is left of a loop of line 9 in `helper`.

    Example:
        >>> RegionId.parse("helper/loop@9/loads")
        RegionId(function='helper/', place=9, is_line=True, rest='/loads')
        >>> RegionId.parse("helper/loop@9/loads").whole
        'helper/loop@9'
        >>> RegionId.parse("straight").is_loop
        False
    """

    function: str
    """What stands in front of the loop, with its slash; empty in a file of one function."""
    place: int | None
    """Line of the loop's header, else its number; None for what is no loop."""
    is_line: bool
    rest: str
    """Which of several: `#2` on one line, `/2` or `/loads` of one loop; all of what is no loop's id."""

    @property
    def is_loop(self) -> bool:
        """True for a loop's, and for what is left of one."""
        return self.place is not None

    @property
    def whole(self) -> str:
        """The id of the loop that this one is a part or a copy of."""
        if self.place is None:
            return self.rest
        return f"{self.function}loop{'@' if self.is_line else '#'}{self.place}{self.rest.partition('/')[0]}"

    @classmethod
    def parse(cls, text: str) -> RegionId:
        """The parts of an id as users write it."""
        found = _LOOP.search(text)
        if found is None:
            return cls("", None, False, text)
        return cls(text[: found.start()], int(found[2]), found[1] == "@", text[found.end() :])


class RegionKind(Word):
    """What a region is."""

    LOOP = "loop"
    STRAIGHT = "straight"
    """Code outside loops."""
    PARTITION = "partition"
    """What some of the warps run, where a kernel is warp-specialised."""


class PipelineKind(Word):
    """How the loads of a loop run ahead."""

    GROUPS = "cp.async groups"
    TENSORS = "TMA + mbarrier"
    DIRECT = "direct to LDS"
    """AMD's loads that write to shared memory."""
    REGISTERS = "register prefetch"
    COPIES = "groups of copies"
    """Of a target that is not known."""


class SlotKind(Word):
    """What stands between two schedule hints of a loop."""

    MEMORY = "memory"
    MATRIX = "matrix"
    MIXED = "mixed"
