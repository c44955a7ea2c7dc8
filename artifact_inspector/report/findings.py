"""Findings as text, and the explanations of their rules."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.outline import may_gain_swap_loops
from artifact_inspector.files.sources import SourceLineReader
from artifact_inspector.findings import RULES, Finding, Remark, Rule, Severity, SwitchKind, find_findings
from artifact_inspector.findings.limit import Limit, find_first
from artifact_inspector.model import Stage
from artifact_inspector.report.layout import folded_column, text_column
from artifact_inspector.report.phrases import plural, span
from artifact_inspector.vocabulary.selection import is_called, sort_kernels
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_ambiguous

_STYLES = {Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}
MAX_LINES = 6
MAX_QUOTES = 2
"""Source lines printed with a finding."""


def no_source(_kernel: KernelFacts) -> SourceLineReader:
    """A source line reader without any source."""
    return lambda _location: None


class FindingsReport:
    """The findings of some kernels, the worst kernel first."""

    def __init__(
        self,
        kernels: Sequence[KernelFacts],
        source_readers: Callable[[KernelFacts], SourceLineReader] = no_source,
        cache: str = "",
    ) -> None:
        """`source_readers` makes the source line reader of a kernel; `cache` is named in the commands that continue."""
        self.cache = cache
        self.kernels = sort_kernels(kernels, "cost")
        self.source_readers = source_readers

    def brief(self) -> RenderableType:
        """One line for each kind of finding with its count, warnings first."""
        messages_by_kind: dict[str, list[str]] = {}
        for kernel in self.kernels:
            for finding in find_findings(kernel):
                head = f"{finding.code} {finding.severity.value} {finding.name}"
                messages_by_kind.setdefault(head, []).append(
                    f"{kernel.artifact.display_name}: {finding.remark.message}"
                )
        order = sorted(
            messages_by_kind, key=lambda head: (Severity.WARNING.value not in head, -len(messages_by_kind[head]))
        )
        lines = [f"{head} ×{len(messages_by_kind[head])}  {messages_by_kind[head][0]}" for head in order]
        lines = [*(lines or ["0 findings"]), *filter(None, [_describe_unread(self.kernels)])]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        total = 0
        variants = [Compiled(kernel.artifact, kernel.program) for kernel in self.kernels]
        labels = label_ambiguous(variants, find_varying(variant.artifact for variant in variants))
        for kernel, label in zip(self.kernels, labels, strict=True):
            kernel_findings = find_findings(kernel)
            total += len(kernel_findings)
            if kernel_findings:
                artifact = kernel.artifact
                head = Text(artifact.display_name, "bold")
                target = "" if artifact.target is None else f"  {artifact.target}"
                variant = f"  {label}" if label else ""
                yield head.append(f"{variant}{target}  {artifact.hash[:8]}", "dim")
                yield Padding(_table(kernel_findings, self.source_readers(kernel)), (0, 0, 1, 2))
                if total == len(kernel_findings) and self.cache:  # the worst kernel
                    command = shlex.join([self.cache, artifact.hash[:8]])
                    remedies = Table.grid(text_column(), folded_column(), padding=(0, 2, 0, 0))
                    for row in describe_remedies(kernel, command):
                        remedies.add_row(*row)
                    yield Padding(remedies, (0, 0, 1, 2))
        kernels = f"{len(self.kernels)} {plural('kernel', len(self.kernels))}"
        yield Text(
            f"{total} {plural('finding', total)} in {kernels}. "
            "Explain one with `inspect-kernel findings --explain CODE`.",
            "dim",
        )
        if unread := _describe_unread(self.kernels):
            yield Text(unread, "dim")


def _describe_unread(kernels: Iterable[KernelFacts]) -> str:
    """Which rule can't judge the atomics of some kernels; empty if every atomic is in machine code."""
    stages = [kernel.last for kernel in kernels if kernel.last is not None and kernel.last.stage is Stage.PTX]
    count = sum(may_gain_swap_loops(stage.counts) for stage in stages)
    kernels_text = f"{count} {plural('kernel', count)}"
    return f"AI027 needs --sass for {kernels_text}: ptxas may make loops of the atomics." if count else ""


def describe_remedies(kernel: KernelFacts, command: str) -> Iterator[tuple[str, str]]:
    """What to try for the first finding, and the commands that do it."""
    first = find_first(find_findings(kernel))
    rule = None if first is None else next(rule for rule in RULES if rule.code == first.code)
    switches = [] if rule is None or rule.switches is None else list(rule.switches(kernel))
    texts = [x.description for x in switches if x.kind is not SwitchKind.PADDING]
    yield from (("try", x.description) for x in switches if x.kind is SwitchKind.PADDING)
    if texts:
        yield "try", f"{' or '.join(texts)}: `inspect-kernel findings {command} --try` compiles and compares it"
    elif rule is not None:
        yield "remedy", f"`inspect-kernel findings --explain {rule.code}`"
    if kernel.last is not None and kernel.last.stage.order >= Stage.PTX.order:
        yield "cost", f"`inspect-kernel advise {command}` predicts the time of a launch and of changes"


def findings_table(findings: Iterable[Finding]) -> RenderableType:
    """Findings only: code, severity, message and location."""
    return _table(findings, lambda _location: None)


def findings_block(
    kernel: KernelFacts, read_line: SourceLineReader, *, is_first_printed: bool = False
) -> RenderableType | None:
    """The findings of one kernel; None if there are none.

    Args:
        is_first_printed: leave out the one that limits the kernel.
    """
    findings = find_findings(kernel)
    first = find_first(findings) if is_first_printed else None
    findings = tuple(finding for finding in findings if finding is not first)
    if not findings:
        return None
    suffix = "" if first is None else " more"
    head = Text(f"{len(findings)}{suffix} {plural('finding', len(findings))}", "bold")
    return Group(head, Padding(_table(findings, read_line), (0, 0, 0, 2)))


def _table(findings: Iterable[Finding], read_line: SourceLineReader) -> Table:
    grid = Table.grid(text_column(), text_column(), folded_column(), padding=(0, 2, 0, 0))
    for finding in findings:
        style = _STYLES[finding.severity]
        text = Text(finding.remark.message)
        text.append(f"  {describe_evidence(finding.remark)}".rstrip(), "dim")
        for line in finding.remark.sources[:MAX_QUOTES]:
            source_text = read_line(line)
            if source_text is not None:
                text.append(f"\n{line.rpartition(':')[2]} │ {source_text}", "italic")
        grid.add_row(Text(finding.code, style), Text(finding.severity.value, style), text)
    return grid


def describe_evidence(remark: Remark | Limit) -> str:
    """`matmul.py:40 · ptx lines 193, 201`."""
    texts = [", ".join(remark.sources[:MAX_LINES])] if remark.sources else []
    if remark.stage is not None and remark.lines:
        lines = ", ".join(str(line) for line in remark.lines[:MAX_LINES])
        line_range = f" … ({span(remark.lines[0], remark.lines[-1])})" if len(remark.lines) > MAX_LINES else ""
        texts.append(f"{remark.stage.value} {plural('line', len(remark.lines))} {lines}{line_range}")
    return " · ".join(texts)


def pick_rules(name: str) -> tuple[Rule, ...]:
    """The rule of that code or name; every rule for `all`.

    Raises:
        UsageError: there is no such rule.
    """
    matching_rules = tuple(rule for rule in RULES if is_called(rule, name))
    if name.lower() == "all":
        return RULES
    if not matching_rules:
        similar = get_close_matches(name.lower(), [rule.name for rule in RULES], 2)
        rule_names = ", ".join(f"{rule.code} {rule.name}" for rule in RULES)
        remedy = f"Did you mean {' or '.join(similar)}?" if similar else f"Expected one of {rule_names}."
        raise UsageError(f"Unknown finding {name!r}.", remedy)
    return matching_rules


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
