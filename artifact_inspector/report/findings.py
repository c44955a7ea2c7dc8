"""Findings as text, and the explanations of their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.sources import Quote
from artifact_inspector.findings import RULES, Finding, Remark, Rule, Severity, find_findings
from artifact_inspector.findings.limit import Limit
from artifact_inspector.report.words import plural, span
from artifact_inspector.vocabulary.choice import is_called
from artifact_inspector.vocabulary.forms import Compiled, tell_apart, vary_in

_STYLES = {Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}
MOST_LINES = 6
MOST_QUOTES = 2
"""Source lines printed with a finding."""


def nothing_to_quote(_kernel: KernelFacts) -> Quote:
    """A source line reader without any source."""
    return lambda _where: None


class FindingsReport:
    """The findings of some kernels, kernel by kernel."""

    def __init__(
        self, kernels: Sequence[KernelFacts], quotes: Callable[[KernelFacts], Quote] = nothing_to_quote
    ) -> None:
        """`quotes` makes the source line reader of a kernel."""
        self.kernels = kernels
        self.quotes = quotes

    def brief(self) -> RenderableType:
        """One line for each kind of finding with its count, warnings first."""
        told: dict[str, list[str]] = {}
        for kernel in self.kernels:
            for finding in find_findings(kernel):
                head = f"{finding.code} {finding.severity.value} {finding.name}"
                told.setdefault(head, []).append(f"{kernel.artifact.display_name}: {finding.remark.message}")
        order = sorted(told, key=lambda head: (Severity.WARNING.value not in head, -len(told[head])))
        lines = [f"{head} ×{len(told[head])}  {told[head][0]}" for head in order]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines or ["0 findings"]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        total = 0
        forms = [Compiled(kernel.artifact, kernel.program) for kernel in self.kernels]
        labels = tell_apart(forms, vary_in(form.artifact for form in forms))
        for kernel, label in zip(self.kernels, labels, strict=True):
            found = find_findings(kernel)
            total += len(found)
            if found:
                artifact = kernel.artifact
                head = Text(artifact.display_name, "bold")
                target = "" if artifact.target is None else f"  {artifact.target}"
                form = f"  {label}" if label else ""
                yield head.append(f"{form}{target}  {artifact.hash[:8]}", "dim")
                yield Padding(_table(found, self.quotes(kernel)), (0, 0, 1, 2))
        kernels = f"{len(self.kernels)} {plural('kernel', len(self.kernels))}"
        yield Text(
            f"{total} {plural('finding', total)} in {kernels}. "
            "Explain one with `inspect-kernel findings --explain CODE`.",
            "dim",
        )


def findings_table(found: Iterable[Finding]) -> RenderableType:
    """Findings only: code, severity, message and location."""
    return _table(found, lambda _where: None)


def findings_block(kernel: KernelFacts, quote: Quote) -> RenderableType | None:
    """The findings of one kernel; None if there are none."""
    found = find_findings(kernel)
    if not found:
        return None
    head = Text(f"{len(found)} {plural('finding', len(found))}", "bold")
    return Group(head, Padding(_table(found, quote), (0, 0, 0, 2)))


def _table(found: Iterable[Finding], quote: Quote) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for finding in found:
        style = _STYLES[finding.severity]
        text = Text(finding.remark.message)
        text.append(f"  {place_text(finding.remark)}".rstrip(), "dim")
        for line in finding.remark.sources[:MOST_QUOTES]:
            said = quote(line)
            if said is not None:
                text.append(f"\n{line.rpartition(':')[2]} │ {said}", "italic")
        grid.add_row(Text(finding.code, style), Text(finding.severity.value, style), text)
    return grid


def place_text(remark: Remark | Limit) -> str:
    """`matmul.py:40 · ptx lines 193, 201`."""
    parts = [", ".join(remark.sources[:MOST_LINES])] if remark.sources else []
    if remark.stage is not None and remark.lines:
        lines = ", ".join(str(line) for line in remark.lines[:MOST_LINES])
        more = f" … ({span(remark.lines[0], remark.lines[-1])})" if len(remark.lines) > MOST_LINES else ""
        parts.append(f"{remark.stage.value} {plural('line', len(remark.lines))} {lines}{more}")
    return " · ".join(parts)


def pick_rules(word: str) -> tuple[Rule, ...]:
    """The rule of that code or name; every rule for `all`.

    Raises:
        UsageError: there is no such rule.
    """
    found = tuple(rule for rule in RULES if is_called(rule, word))
    if word.lower() == "all":
        return RULES
    if not found:
        known = ", ".join(f"{rule.code} {rule.name}" for rule in RULES)
        raise UsageError(f"Unknown finding {word!r}.", f"Expected one of {known}.")
    return found


class RulePages:
    """Explanations of rules: when they apply, what they cost, what to do."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.markdown import Markdown  # and Pygments, and a parser of Markdown

        for number, rule in enumerate(self.rules):
            if number:
                yield ""
            yield Text(f"{rule.code} {rule.name} ({rule.severity.value})", "bold")
            yield Padding(Markdown(rule.explanation), (0, 0, 0, 2))
