"""The effect of the options that findings suggest, tried on each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.reach import Reach
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Finding, Switch
from artifact_inspector.report.change_effect import describe_effect
from artifact_inspector.report.phrases import plural


@dataclass(frozen=True, slots=True)
class RemedyTrial:
    """One suggested option, and its effect on the kernel."""

    finding: Finding
    switch: Switch
    reach: Reach | None
    """The stages that changed; None if the kernel did not compile with it."""
    is_resolved: bool | None
    """Whether the finding disappeared; None if unknown."""
    message: str | None
    """Why the kernel did not compile."""

    @property
    def effect(self) -> str:
        """The effect, in one or two sentences."""
        if self.reach is None:
            first = (self.message or "").strip().splitlines()
            return f"Compilation failed: {first[0] if first else 'no reason given'}"
        effect = describe_effect(self.reach)
        if not self.reach.reached:
            return effect
        return f"{effect} The finding {'disappeared' if self.is_resolved else 'remains'}."

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories of the differing facts, the most important first."""
        return () if self.reach is None else self.reach.categories

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """The facts that differ."""
        return () if self.reach is None else self.reach.facts


@dataclass(frozen=True, slots=True)
class RemediesReport:
    """Each kernel with its findings that suggest an option, and the effect of each option."""

    kernels: Sequence[tuple[KernelFacts, Sequence[RemedyTrial], Sequence[str]]]
    """Kernel, tried options, and notes on the compilation."""
    untried_count: int = 0
    """Number of findings that no option remedies."""

    def brief(self) -> RenderableType:
        """One line for each tried option."""
        lines = [
            f"{kernel.artifact.display_name} {trial.finding.code} {trial.switch.description}: {trial.effect}"
            for kernel, trials, _ in self.kernels
            for trial in trials
        ]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines or [self._describe_untried()]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for kernel, trials, notes in self.kernels:
            artifact = kernel.artifact
            head = Text(artifact.display_name, "bold")
            yield head.append(f"  {artifact.target}  {artifact.hash[:8]}", "dim")
            for code in dict.fromkeys(trial.finding.code for trial in trials):
                rule_trials = [trial for trial in trials if trial.finding.code == code]
                finding_text = f"{code}  {rule_trials[0].finding.remark.message}"
                yield Padding(Text(finding_text, overflow="fold"), (0, 0, 0, 2))
                for trial in rule_trials:
                    text = Text(f"{trial.switch.description}: ", "bold", overflow="fold")
                    text.append(trial.effect, "")
                    yield Padding(text, (0, 0, 0, 9))
            yield from (Padding(Text(note, "dim", overflow="fold"), (0, 0, 0, 2)) for note in notes)
            yield ""
        yield Text(self._describe_untried(), "dim")

    def _describe_untried(self) -> str:
        return f"{self.untried_count} {plural('finding', self.untried_count)} without an option to try"
