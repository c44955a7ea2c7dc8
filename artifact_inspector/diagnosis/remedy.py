"""Changes that were tried against a cause."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from artifact_inspector.diagnosis.cause import Diagnosis

SURE_GAIN = 1.15
"""On an H200, 75 of 75 remedies from here on were faster, and 12 of 18 below (docs/lab/diagnosis.md)."""
UNGAINED = "; listed later, since no change tried gains more than that of the first cause"


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
    cause: str
    """The cause that it removes, or reduces most."""
    verified: bool
    """Whether the change passed all its checks: the code changes, its cause disappears or shrinks, the same
    bytes are read and written, and a source edit gives equal results in Triton's interpreter."""
    sampled: bool = False
    """Whether both times are those of some CTAs: the budget ended before all were simulated."""

    @property
    def prediction(self) -> str:
        """The predicted gain, and why it may be wrong."""
        doubts = ["by a sample of CTAs"] * self.sampled + ["unsure: measure it"] * (self.gain < SURE_GAIN)
        return f"predicted {self.gain:.2f}× as fast" + f" ({'; '.join(doubts)})" * bool(doubts)


def order_by_gain(diagnosis: Diagnosis, remedies: Sequence[Remedy]) -> Diagnosis:
    """The diagnosis with the cause first whose change gains most, if that is sure; else as it was, by shares."""
    names = {cause.kind.value for cause in diagnosis.causes}
    sure = [one for one in remedies if one.verified and not one.sampled and one.gain >= SURE_GAIN]
    best = max((one for one in sure if one.cause in names), key=lambda one: one.gain, default=None)
    if best is None or best.cause == diagnosis.causes[0].kind.value:
        return diagnosis
    first = next(cause for cause in diagnosis.causes if cause.kind.value == best.cause)
    first, others = first.with_note(""), [cause for cause in diagnosis.causes if cause is not first]
    causes = [one.with_note(UNGAINED if (one.share or 0) > (first.share or 0) else "") for one in others]
    return replace(diagnosis, causes=(first, *causes), summary=first.text)


@dataclass(frozen=True, slots=True)
class RemedySearch:
    """The remedies of one launch."""

    remedies: tuple[Remedy, ...]
    """The largest gain first; at most three."""
    tried: int
    """Variants that were compiled and simulated."""
    reason: str
    """Why there is none, or why not all changes were tried; else empty."""
    edited_files: Mapping[str, str] = field(default_factory=dict)
    """Patch → the whole changed file."""


def describe_launch_change(source: str, kernel: str, file: str) -> str:
    """Where a change that is no edit of the kernel is made: at the calls `kernel[grid](…)`."""
    lines = [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and ast.unparse(node.func.value) == kernel
    ]
    where = f" at {file}:{', '.join(map(str, lines))}" if lines else ""
    return f"is no edit of the kernel. Set it where {kernel} is launched{where}."
