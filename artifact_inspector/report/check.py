"""A cache held against a baseline, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from artifact_inspector.comparison.baseline import Baseline
from artifact_inspector.comparison.corpus import Corpus
from artifact_inspector.report.corpus import CorpusReport
from artifact_inspector.version import __version__


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether the check passed, then what changed, worst first."""

    baseline: Baseline
    corpus: Corpus
    gates: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        failures = self.corpus.failures(self.gates)
        if failures:
            yield Text(f"failed on {', '.join(failures)}", "bold red")
        elif self.gates:
            yield Text(f"passed: nothing of {', '.join(self.gates)} changed", "bold green")
        else:
            yield Text("passed: it was asked to fail on nothing", "bold green")
        yield from _notes(self.baseline)
        yield CorpusReport(self.corpus, ())


def _notes(baseline: Baseline) -> Iterator[Text]:
    if baseline.generator != __version__:
        yield Text(
            f"the baseline was recorded by inspect-kernel {baseline.generator}, this is {__version__}: "
            "a fact that only one of them tells counts as changed",
            "yellow",
        )
