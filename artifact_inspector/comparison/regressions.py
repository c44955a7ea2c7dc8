"""Kernels of two sides by what their decisive fact means: worse first, each with its cause and price."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.comparison.pair_price import SAME_WITHIN, PairPrice
from artifact_inspector.diagnosis.remedy import Remedy
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Sign


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """One kernel on both sides."""

    change: Change
    price: PairPrice | None = None
    """The predicted times of a launch of both; None without a launch."""
    passes: tuple[str, ...] = ()
    """The pass that set the decisive fact on each side; empty unless requested."""
    remedies: tuple[Remedy, ...] = ()
    """Changes that lower the predicted time of the new kernel, the largest gain first; empty unless requested."""
    trials: tuple[str, ...] = ()
    """Options with which the new kernel compiles to something better, where no time is predicted."""
    untried: str = ""
    """Why there is no remedy; empty if there is one, or none was requested."""

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
    def sentence(self) -> str:
        """The decisive fact; a predicted time of another direction comes first. Empty if nothing is decisive."""
        headline, ratio = self.headline, self.ratio
        conflicts = None if self.price is None else self.price.decisive_conflicts
        if conflicts is not None and (headline is None or not _is_most(headline, ratio)):
            change = f"bank conflicts per warp and trip {conflicts.left:g} → {conflicts.right:g}, at {conflicts.source}"
            return f"{self.direction.capitalize()}: {change}."
        if ratio is None or (headline is not None and headline.fact.direction is self.direction):
            lead = "" if self.direction is Sign.NEUTRAL else f"{self.direction.capitalize()}: "
            return "" if headline is None else headline.describe(lead, ratio)
        lead = f"{self.direction.capitalize()}: {ratio:.2f}× the old predicted time"
        if headline is not None:
            if self.direction is Sign.NEUTRAL:  # the price of one fact would contradict it: others make up for it
                headline = headline._replace(fact=headline.fact._replace(price=None))
            return headline.describe(f"{lead}, although ")
        return f"{lead}." if self.direction is Sign.NEUTRAL else f"{lead}; no single fact explains it."

    @property
    def severity(self) -> tuple[float, ...]:
        """Sorts the worst first: by predicted time, then by the consequence of the decisive fact."""
        rank = Consequence.OTHER.rank if self.headline is None else rank_of(self.headline.fact)
        return (tuple(Sign).index(self.direction), -(self.ratio or 1.0), rank)


def _is_most(headline: Headline, ratio: float | None) -> bool:
    """Whether the price of a fact is most of the ratio."""
    return ratio is not None and 2 * abs(math.log(headline.fact.price or 1)) > abs(math.log(ratio))


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
    prices = [predict(change) for change in changed]
    outcomes = [
        KernelOutcome(change if price is None else change.with_prices(price.facts), price)
        for change, price in zip(changed, prices, strict=True)
    ]
    outcomes.sort(key=lambda outcome: (outcome.severity, str(outcome.change.left)))
    return Regressions(corpus, tuple(outcomes))
