"""Kernels of two sides by what their decisive fact means: worse first, each with its cause and price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.diagnosis.remedy import Remedy
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Sign


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """One kernel on both sides."""

    change: Change
    passes: tuple[str, ...] = ()
    """The pass that set the decisive fact on each side; empty unless requested."""
    remedies: tuple[Remedy, ...] = ()
    """Changes that lower the predicted time of the new kernel, the largest gain first; empty unless requested."""
    trials: tuple[str, ...] = ()
    """A later release, and options if no time is predicted, with which the new kernel compiles to something better."""
    untried: str = ""
    """Why there is no remedy; empty if there is one, or none was requested."""

    @property
    def severity(self) -> tuple[float, ...]:
        """Sorts the worst first: by predicted time, then by the consequence of the decisive fact."""
        headline, price = self.change.headline, self.change.price
        rank = Consequence.OTHER.rank if headline is None else rank_of(headline.fact)
        ratio = None if price is None else price.ratio
        return (tuple(Sign).index(self.change.direction), -(ratio or 1.0), rank)


@dataclass(frozen=True, slots=True)
class Regressions:
    """The outcomes of two sides."""

    corpus: Corpus
    outcomes: tuple[KernelOutcome, ...]
    """Worst first; without kernels whose code is equal."""

    def count(self, direction: Sign) -> int:
        """Kernels with that direction."""
        return sum(outcome.change.direction is direction for outcome in self.outcomes)

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
    outcomes = [KernelOutcome(change.with_price(predict(change))) for change in changed]
    outcomes.sort(key=lambda outcome: (outcome.severity, str(outcome.change.left)))
    return Regressions(corpus, tuple(outcomes))
