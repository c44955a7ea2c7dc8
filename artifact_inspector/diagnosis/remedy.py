"""Changes that were tried against a cause."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that lowers the predicted time."""

    change: str
    """`num_stages=4`."""
    patch: str | None
    """Source edit as a unified diff; None if only options or constants change."""
    gain: float
    """Predicted time before ÷ after."""
    costs: tuple[str, ...]
    """What it takes in addition: registers, shared memory, occupancy."""
    verified: bool
    """Whether the compiled change was simulated: it changes the code, and its first cause differs or shrinks."""


@dataclass(frozen=True, slots=True)
class RemedySearch:
    """The remedies of one launch."""

    remedies: tuple[Remedy, ...]
    """The largest gain first; at most three."""
    tried: int
    """Configurations that were compiled and simulated."""
    reason: str
    """Why there is none; empty if there is one."""
