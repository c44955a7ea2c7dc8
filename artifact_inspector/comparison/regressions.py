"""Kernels of two sides by what their decisive fact means: worse first, each with its cause and price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.comparison.pair_price import SAME_WITHIN, PairPrice
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Sign


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """One kernel on both sides."""

    change: Change
    price: PairPrice | None = None
    """The predicted times of a launch of both; None without a launch."""

    @property
    def ratio(self) -> float | None:
        """Predicted time of the new kernel ÷ that of the old one."""
        return None if self.price is None else self.price.ratio

    @property
    def direction(self) -> Sign:
        """By the predicted time where it is known, else by the decisive fact."""
        if self.ratio is None:
            return self.change.direction
        if abs(self.ratio - 1) <= SAME_WITHIN:
            return Sign.NEUTRAL
        return Sign.WORSE if self.ratio > 1 else Sign.BETTER

    @property
    def headline(self) -> Headline | None:
        """The decisive fact of the outcome's direction; the decisive fact of all if none has it."""
        headlines = self.change.headlines
        return next((one for one in headlines if one.fact.direction is self.direction), self.change.headline)

    @property
    def severity(self) -> tuple[float, ...]:
        """Sorts the worst first: by predicted time, then by the consequence of the decisive fact."""
        rank = Consequence.OTHER.rank if self.headline is None else rank_of(self.headline.fact)
        return (tuple(Sign).index(self.direction), -(self.ratio or 1.0), rank)


@dataclass(frozen=True, slots=True)
class Regressions:
    """The outcomes of two sides."""

    corpus: Corpus
    outcomes: tuple[KernelOutcome, ...]
    """Worst first; without kernels whose code is equal."""

    def count(self, direction: Sign) -> int:
        """Kernels with that direction."""
        return sum(outcome.direction is direction for outcome in self.outcomes)

    @property
    def unchanged(self) -> int:
        """Kernels whose code is equal."""
        return len(self.corpus.changes) - len(self.outcomes)


def find_regressions(
    corpus: Corpus, predict: Callable[[Change], PairPrice | None] = lambda change: None
) -> Regressions:
    """The outcomes of a comparison, worst first.

    Args:
        predict: the predicted times of a launch of both kernels; None without a launch.
    """
    changed = [change for change in corpus.changes if change.degree not in (Degree.IDENTICAL, Degree.BENIGN)]
    outcomes = [KernelOutcome(change, predict(change)) for change in changed]
    outcomes.sort(key=lambda outcome: (outcome.severity, str(outcome.change.left)))
    return Regressions(corpus, tuple(outcomes))
