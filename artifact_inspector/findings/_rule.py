"""Rules and their findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING

from artifact_inspector.analysis.order.reference_regions import STRAIGHT
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._switch import Switch
from artifact_inspector.model import Consequence, Severity, SourceLine, Stage

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

__all__ = ["Consequence", "Finding", "Remark", "Rule", "Severity", "describe_region", "find_dots", "report_nothing"]


@dataclass(frozen=True, slots=True)
class Remark:
    """A problem at one location."""

    message: str
    """The problem, its location and figures, then its likely cost."""
    stage: Stage | None
    """The stage whose lines are the evidence; None if the evidence is not text (a binary)."""
    lines: tuple[int, ...] = ()
    """Lines of that stage's file."""
    sources: tuple[str, ...] = ()
    """Lines of the user's code, `file.py:line`."""
    is_minor: bool = False
    """True for a note of a rule that otherwise warns."""

    @property
    def called_from(self) -> tuple[tuple[str, ...], ...]:
        """For each of these lines, the calls that it was inlined through; empty if it was not inlined."""
        calls = tuple(line.called_from if isinstance(line, SourceLine) else () for line in self.sources)
        return calls if any(calls) else ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark of a rule."""

    code: str
    """`AI001` and on; a code never changes its meaning."""
    name: str
    """The rule's name, as `clustered-loads`."""
    severity: Severity
    remark: Remark


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to look for: a code that never changes its meaning, and a page that explains it."""

    code: str
    name: str
    severity: Severity
    consequence: Consequence
    """What it affects; findings are sorted by it."""
    look: Callable[[KernelFacts], Iterable[Remark]]
    page: str | None
    """The docstring of the rule's module: title, meaning, conditions, cost."""
    look_at_launch: Callable[[Prediction], Iterable[Remark]] | None = None
    """Its remarks on a simulated launch."""
    switches: Callable[[KernelFacts], Iterable[Switch]] | None = None
    """Options of the compile that may solve the problem."""

    def find(self, kernel: KernelFacts) -> Iterator[Finding]:
        """The findings of the rule for a kernel."""
        for remark in self.look(kernel):
            severity = Severity.NOTE if remark.is_minor else self.severity
            yield Finding(self.code, self.name, severity, remark)

    def find_in_launch(self, prediction: Prediction) -> Iterator[Finding]:
        """The findings of the rule for a launch."""
        if self.look_at_launch is not None:
            for remark in self.look_at_launch(prediction):
                yield Finding(self.code, self.name, self.severity, remark)

    @property
    def explanation(self) -> str:
        """The rule's page, as Markdown."""
        return cleandoc(self.page or "")


def describe_region(region: str) -> str:
    """The id of a loop; words for straight-line code."""
    return region.replace(STRAIGHT, "straight-line code")


def report_nothing(_kernel: KernelFacts) -> Iterable[Remark]:
    """No remarks: rules on launches report nothing without a launch."""
    return ()


def find_dots(
    kernel: KernelFacts, region: str, of: Collection[str] = ()
) -> tuple[Stage | None, tuple[int, ...], tuple[str, ...]]:
    """The locations of the dots of a region: tensor-level stage, lines there, lines of the user's code.

    Args:
        of: only the dots of these lines of the user's code; empty for all.
    """
    for stage in (Stage.TTGIR, Stage.TTIR):
        facts = kernel.stages.get(stage)
        work = None if facts is None else facts.work.get(region)
        if work is not None and work.matrix:
            matching_dots = [dot for dot in work.matrix if not of or not set(of).isdisjoint(dot.sources)]
            lines = tuple(dot.lines[0] for dot in matching_dots)
            return stage, lines, tuple(dict.fromkeys(s for dot in matching_dots for s in dot.sources))
    return None, (), ()
