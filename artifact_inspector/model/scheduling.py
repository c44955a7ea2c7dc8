"""What loops and warps are asked to do: how deep to be pipelined, by how many, with how many registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LoopHeader(NamedTuple):
    """What the operation that opens a loop of tensor-level IR says of it."""

    num_stages: int | None = None
    """The stages that the loop itself asks for."""
    bounds: tuple[str, str, str] | None = None
    """The values where its variable begins and ends, and the step."""
    flattens: bool = False
    """It asks to be made one loop with the loop inside it (`tl.range(…, flatten=True)`)."""


class WarpRequest(NamedTuple):
    """What one operation asks for the warps that run it, or that it starts."""

    registers: tuple[int, ...] = ()
    """Per thread, for each partition that it starts; of an instruction that sets a limit, that limit."""
    warps: Mapping[str, int] = {}
    """Warps by the number of the partition."""
    priority: int | None = None
    """Of the wavefront, from here on."""
