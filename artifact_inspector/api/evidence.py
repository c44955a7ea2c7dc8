"""The evidence of a failed assertion: the region at every stage, its lines, and pages of findings."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult

from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import RULES, find_findings
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.report.console import to_text
from artifact_inspector.report.findings import RulePages
from artifact_inspector.report.story import KernelReport
from artifact_inspector.report.words import plural

ORDER = ("AI001", "AI002", "AI003")
"""Codes of findings that explain a verdict."""
MATRIX = ("AI004", "AI005", "AI014")
SPILLS = ("AI007",)

MARGIN = 8
"""Columns that a test runner indents by."""
LEAST_WIDTH = 72
MOST_LINES = 12


def explain(cache: Cache, kernel: KernelFacts, codes: Iterable[str]) -> str:
    """The report of a kernel narrowed to a region, and the pages of its findings.

    Args:
        codes: findings that are relevant to the assertion.
    """
    width = max(LEAST_WIDTH, shutil.get_terminal_size((100, 24)).columns - MARGIN)
    return to_text(_Evidence(cache, kernel, frozenset(codes)), width).rstrip()


class _Evidence:
    def __init__(self, cache: Cache, kernel: KernelFacts, codes: frozenset[str]) -> None:
        self.cache = cache
        self.kernel = kernel
        self.codes = codes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield KernelReport(self.cache, self.kernel, one_region=True, explained=False)
        made = [finding for finding in find_findings(self.kernel) if finding.code in self.codes]
        if made:
            yield ""
            for finding in made:
                places = ", ".join(finding.remark.sources)
                yield f"{finding.code} {finding.remark.message}" + (f" ({places})" if places else "")
            yield ""
            codes = {finding.code for finding in made}
            yield RulePages([rule for rule in RULES if rule.code in codes])


def spill_lines(kernel: KernelFacts) -> Iterator[str]:
    """The lines of local-memory loads and stores in the last stage, one sentence per kind."""
    last = kernel.last
    module = None if last is None else read_module(kernel.artifact, last.stage, [])
    if last is None or module is None:
        return
    for kind, what in ((EventKind.LOCAL_STORE, "store"), (EventKind.LOCAL_LOAD, "load")):
        lines = [x.line for function in module.functions for x in function.instructions if x.kind is kind]
        if lines:
            shown = ", ".join(str(line) for line in lines[:MOST_LINES])
            more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
            yield (
                f"{len(lines)} {plural(what, len(lines))} of local memory at {last.stage.value} "
                f"{plural('line', len(lines))} {shown}{more}"
            )


def count_matching(work: Iterable[MatrixWork], op: str | None, shape: str | None) -> int:
    """The number of matrix instructions with that opcode and shape."""
    return sum(
        found.count
        for found in work
        if (op is None or found.op == op)
        and (shape is None or (found.matrix is not None and found.matrix.shape == shape))
    )


def describe_shortfall(
    found: int,
    count: int | None,
    op: str | None,
    shape: str | None,
    stage: Stage | None,
    work: Iterable[MatrixWork],
) -> str:
    """The sentence of a failed count: the actual number, the expected number, and what there is instead."""
    what = " ".join(word for word in (op, shape) if word) or "matrix instructions"
    where = "" if stage is None else f" at {stage.value}"
    wanted = "at least 1" if count is None else str(count)
    have = [
        f"{one.count} × {one.op}"
        + ("" if one.matrix is None else f" {one.matrix.shape} ({one.matrix.types})")
        for one in work
    ]
    others = have and found != sum(one.count for one in work)
    instead = f"; present: {', '.join(have)}" if others else ""
    return f"has {found or 'no'} {what}{where}; expected {wanted}{instead}"
