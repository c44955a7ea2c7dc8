"""The predicted times of one launch of two kernels, as one figure for the pair."""

from __future__ import annotations

from dataclasses import dataclass

SAME_WITHIN = 0.02
"""Ratios this close to 1 count as equal: the model ranks launches, it does not predict times."""


@dataclass(frozen=True, slots=True)
class PairPrice:
    """One launch of both kernels, by the cost model that `rank` uses."""

    ratio: float | None
    """Predicted time of the right kernel ÷ that of the left; None if one is unknown."""
    left_cycles: float | None
    """Estimated cycles of a multiprocessor."""
    right_cycles: float | None
    left_bottleneck: str | None
    """The largest term of the cost."""
    right_bottleneck: str | None
    launch: str
    """The grid and the numbers among the arguments."""
    gpu: str
    problem: str = ""
    """Why a cost is unknown; empty if both are known."""

    @property
    def sentence(self) -> str:
        """The ratio with its launch, or why it is unknown."""
        if self.ratio is None:
            return f"Predicted time: unknown ({self.problem})."
        relation = f"{self.ratio:.2f}× the old one"
        if abs(self.ratio - 1) <= SAME_WITHIN:
            relation = f"equal ({self.ratio:.2f}×)"
        terms = [term for term in (self.left_bottleneck, self.right_bottleneck) if term]
        bound = f", bound by {' → '.join(dict.fromkeys(terms))}" if terms else ""
        return f"Predicted time: {relation}{bound} ({self.launch}, {self.gpu})."
