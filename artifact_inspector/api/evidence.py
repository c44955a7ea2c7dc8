"""What a failed assertion shows: the region at every stage, its lines, and the page of the finding."""

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
"""Findings that explain a verdict."""
MATRIX = ("AI004", "AI005", "AI014")
SPILLS = ("AI007",)

MARGIN = 8
"""Columns that a test runner puts in front."""
LEAST_WIDTH = 72
MOST_LINES = 12


def explain(cache: Cache, kernel: KernelFacts, codes: Iterable[str]) -> str:
    """The story of a kernel that was narrowed to a region, and the pages of those findings that it has.

    Args:
        codes: findings that bear on the assertion.
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
    """Where the last stage keeps values in a thread's own memory, a sentence for each kind of access."""
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
    """Matrix instructions of that name and shape."""
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
    """How many there are, how many were wanted, and which there are instead."""
    what = " ".join(word for word in (op, shape) if word) or "matrix instructions"
    where = "" if stage is None else f" at {stage.value}"
    wanted = "some" if count is None else str(count)
    have = [
        f"{one.count} × {one.op}"
        + ("" if one.matrix is None else f" {one.matrix.shape} ({one.matrix.types})")
        for one in work
    ]
    others = have and found != sum(one.count for one in work)
    instead = f"; there are {', '.join(have)}" if others else ""
    verb = "was" if count == 1 else "were"
    return f"has {found or 'no'} {what}{where}, where {wanted} {verb} expected{instead}"
