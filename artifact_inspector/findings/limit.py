"""What limits a kernel, in one sentence with its evidence: the first sentence of its report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.findings._rule import Finding, Severity
from artifact_inspector.model import Stage
from artifact_inspector.model.string_enum import StringEnum

_NO_LIMIT = frozenset({"AI012"})
"""A contradiction of two files is not a property of the kernel."""

POSSIBLE_ERRORS = frozenset({"AI025"})
"""Findings about the result of a kernel, not its speed."""


class LimitedBy(StringEnum):
    """What a limit is read from."""

    FINDING = "finding"
    WORK = "work"
    """Instructions, FLOP and bytes of its main loop, compared with the peak rates of its target."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a kernel, and by which evidence."""

    by: LimitedBy
    lead: str
    """`What limits it`, `Possible error`, `First to look at`; empty if the description is a complete sentence."""
    description: str
    """The fact with its figures."""
    code: str = ""
    """Code of the finding."""
    stage: Stage | None = None
    """The stage whose lines are the evidence."""
    lines: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    """Lines of the user's code."""

    @property
    def sentence(self) -> str:
        """Lead and description."""
        return f"{self.lead}: {self.description}" if self.lead else self.description


def find_limit(kernel: KernelFacts, launch: Iterable[Finding] = ()) -> Limit:
    """The most important finding; without one, what the code shows to cost most; else `unknown`."""
    first = find_first(find_findings(kernel), launch)
    if first is not None:
        lead, remark = "What limits it" if first.severity is Severity.WARNING else "First to look at", first.remark
        lead = "Possible error" if first.code in POSSIBLE_ERRORS else lead
        return Limit(LimitedBy.FINDING, lead, remark.message, first.code, remark.stage, remark.lines, remark.sources)
    return (not kernel.truncated and _of_work(kernel)) or Limit(LimitedBy.UNKNOWN, "", _describe_no_limit(kernel))


def find_first(findings: Iterable[Finding], launch: Iterable[Finding] = ()) -> Finding | None:
    """The first finding that explains what limits a kernel; None without one.

    Warnings on a launch are based on counters: they come before notes on the kernel.

    Args:
        launch: findings of a simulated launch, in their order.
    """
    candidates = (finding for finding in findings if finding.code not in _NO_LIMIT)
    first = min(candidates, key=lambda finding: finding.severity is not Severity.WARNING, default=None)
    if first is None or first.severity is not Severity.WARNING:
        return next((finding for finding in launch if finding.severity is Severity.WARNING), first)
    return first


def _of_work(kernel: KernelFacts) -> Limit | None:
    """What the code of its main loop costs most."""
    from artifact_inspector.findings.code_cost import find_code_cost  # a list, which calls few functions, needs it not

    cost = find_code_cost(kernel)
    if cost is None:
        return None
    return Limit(LimitedBy.WORK, "Costliest in the code", cost.description, "", cost.stage, cost.lines, cost.sources)


def _describe_no_limit(kernel: KernelFacts) -> str:
    occupancy = kernel.occupancy
    if kernel.last is None:
        return "No stage could be read, so nothing is known about its speed."
    if kernel.truncated:
        return f"A file of this kernel is cut off ({kernel.truncated}), so nothing says what limits it."
    if kernel.problems:
        return "No finding says what limits this kernel, but its files have problems (listed below)."
    message = "No finding says what limits this kernel"
    if occupancy is None or occupancy.warps is None or not occupancy.limited_by:
        return f"{message}."
    by = " and ".join(occupancy.limited_by)
    return f"{message}; {occupancy.warps} of {occupancy.max_warps} warps per {occupancy.unit} fit, limited by {by}."
