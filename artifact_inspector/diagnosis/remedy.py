"""Changes that were tried against a cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """Whether the change passed all its checks: the code changes, the first cause disappears or shrinks, the same
    bytes are read and written, and a source edit gives equal results in Triton's interpreter."""


@dataclass(frozen=True, slots=True)
class RemedySearch:
    """The remedies of one launch."""

    remedies: tuple[Remedy, ...]
    """The largest gain first; at most three."""
    tried: int
    """Variants that were compiled and simulated."""
    reason: str
    """Why there is none; empty if there is one."""
    edited_files: Mapping[str, str] = field(default_factory=dict)
    """Patch → the whole changed file."""
