"""The effect of the options that findings suggest, tried on each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.comparison.reach import Reach
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Finding, Switch
from artifact_inspector.report.reach import describe_reach
from artifact_inspector.report.words import plural


@dataclass(frozen=True, slots=True)
class Tried:
    """One suggested option, and its effect on the kernel."""

    finding: Finding
    switch: Switch
    reach: Reach | None
    """The stages that changed; None if the kernel did not compile with it."""
    is_gone: bool | None
    """Whether the finding disappeared; None if unknown."""
    message: str | None
    """Why the kernel did not compile."""

    @property
    def answer(self) -> str:
        """The effect, in one or two sentences."""
        if self.reach is None:
            first = (self.message or "").strip().splitlines()
            return f"Compilation failed: {first[0] if first else 'no reason given'}"
        said = describe_reach(self.reach)
        if not self.reach.reached:
            return said
        return f"{said} The finding {'disappeared' if self.is_gone else 'remains'}."

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

    kernels: Sequence[tuple[KernelFacts, Sequence[Tried], Sequence[str]]]
    """Kernel, tried options, and notes on the compilation."""
    silent: int = 0
    """Number of findings that no option remedies."""

    def brief(self) -> RenderableType:
        """One line for each tried option."""
        lines = [
            f"{kernel.artifact.display_name} {one.finding.code} {one.switch.words}: {one.answer}"
            for kernel, tried, _ in self.kernels
            for one in tried
        ]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines or [self._rest()]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for kernel, tried, notes in self.kernels:
            artifact = kernel.artifact
            head = Text(artifact.display_name, "bold")
            yield head.append(f"  {artifact.target}  {artifact.hash[:8]}", "dim")
            for code in dict.fromkeys(one.finding.code for one in tried):
                own = [one for one in tried if one.finding.code == code]
                said = f"{code}  {own[0].finding.remark.message}"
                yield Padding(Text(said, overflow="fold"), (0, 0, 0, 2))
                for one in own:
                    text = Text(f"{one.switch.words}: ", "bold", overflow="fold")
                    text.append(one.answer, "")
                    yield Padding(text, (0, 0, 0, 9))
            yield from (Padding(Text(note, "dim", overflow="fold"), (0, 0, 0, 2)) for note in notes)
            yield ""
        yield Text(self._rest(), "dim")

    def _rest(self) -> str:
        return f"{self.silent} {plural('finding', self.silent)} without an option to try"
