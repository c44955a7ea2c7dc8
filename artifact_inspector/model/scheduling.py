"""Requests about loops and warps: pipeline depth, number of warps, registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LoopHeader(NamedTuple):
    """Attributes of the operation that opens a loop of tensor-level IR."""

    num_stages: int | None = None
    """The pipeline stages that the loop itself requests."""
    bounds: tuple[str, str, str] | None = None
    """Lower bound, upper bound and step."""
    is_flattened: bool = False
    """True if the loop is to be flattened with the loop inside it (`tl.range(…, flatten=True)`)."""


class WarpRequest(NamedTuple):
    """What one operation requests for the warps that run it, or that it starts."""

    registers: tuple[int, ...] = ()
    """Registers per thread for each partition that it starts; or the limit that the instruction sets."""
    warps: Mapping[str, int] = {}
    """Number of warps by partition number."""
    priority: int | None = None
    """Priority of the wavefront from this instruction on."""
