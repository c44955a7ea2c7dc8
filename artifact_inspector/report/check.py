"""The comparison of a cache with a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from artifact_inspector.comparison.baseline import Baseline
from artifact_inspector.comparison.corpus import Corpus
from artifact_inspector.report.corpus import CorpusReport, describe_failures
from artifact_inspector.version import __version__


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether the check passed, then the changes, worst first."""

    baseline: Baseline
    corpus: Corpus
    gates: Sequence[str]
    is_strict: bool = False
    """True to fail on any change of a gated fact."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        failures = self.corpus.failures(self.gates, is_strict=self.is_strict)
        if failures:
            yield Text(describe_failures(failures), "bold red")
        elif self.gates:
            verb = "changed" if self.is_strict else "got worse"
            yield Text(f"Passed: no gated fact {verb} ({', '.join(self.gates)}).", "bold green")
        else:
            yield Text("Passed: no gates are set.", "bold green")
        yield from _notes(self.baseline)
        yield CorpusReport(self.corpus, ())


def _notes(baseline: Baseline) -> Iterator[Text]:
    if baseline.generator != __version__:
        yield Text(
            f"The baseline was recorded by inspect-kernel {baseline.generator}; this is {__version__}. "
            "Facts that only one version reports count as changed.",
            "yellow",
        )
