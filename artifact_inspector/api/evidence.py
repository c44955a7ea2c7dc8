"""The evidence of a failed assertion: the region at every stage, its lines, and pages of findings."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult

from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import RULES, find_findings
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.report.console import to_text
from artifact_inspector.report.findings import RulePages
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.report.phrases import plural

ORDER = ("AI001", "AI002", "AI003")
"""Codes of findings that explain a verdict."""
MATRIX = ("AI004", "AI005", "AI014")
SPILLS = ("AI007",)

INDENT = 8
"""Columns that a test runner indents by."""
MIN_WIDTH = 72
MAX_LINES = 12


def format_evidence(cache: Cache, kernel: KernelFacts, codes: Iterable[str]) -> str:
    """The report of a kernel narrowed to a region, and the pages of its findings.

    Args:
        codes: findings that are relevant to the assertion.
    """
    width = max(MIN_WIDTH, shutil.get_terminal_size((100, 24)).columns - INDENT)
    return to_text(_Evidence(cache, kernel, frozenset(codes)), width).rstrip()


class _Evidence:
    def __init__(self, cache: Cache, kernel: KernelFacts, codes: frozenset[str]) -> None:
        self.cache = cache
        self.kernel = kernel
        self.codes = codes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield KernelReport(self.cache, self.kernel, is_one_region=True, with_definitions=False)
        relevant_findings = [finding for finding in find_findings(self.kernel) if finding.code in self.codes]
        if relevant_findings:
            yield ""
            for finding in relevant_findings:
                source_list = ", ".join(finding.remark.sources)
                yield f"{finding.code} {finding.remark.message}" + (f" ({source_list})" if source_list else "")
            yield ""
            codes = {finding.code for finding in relevant_findings}
            yield RulePages([rule for rule in RULES if rule.code in codes])


def spill_lines(kernel: KernelFacts) -> Iterator[str]:
    """The lines of local-memory loads and stores in the last stage, one sentence per kind."""
    last = kernel.last
    module = None if last is None else read_module(kernel.artifact, last.stage, [])
    if last is None or module is None:
        return
    for kind, access_name in ((EventKind.LOCAL_STORE, "store"), (EventKind.LOCAL_LOAD, "load")):
        lines = [x.line for function in module.functions for x in function.instructions if x.kind is kind]
        if lines:
            line_list = ", ".join(str(line) for line in lines[:MAX_LINES])
            omitted = f" and {len(lines) - MAX_LINES} more" if len(lines) > MAX_LINES else ""
            yield (
                f"{len(lines)} {plural(access_name, len(lines))} of local memory at {last.stage.value} "
                f"{plural('line', len(lines))} {line_list}{omitted}"
            )


def count_matching(work: Iterable[MatrixWork], op: str | None, shape: str | None) -> int:
    """The number of matrix instructions with that opcode and shape."""
    return sum(
        matrix_work.count
        for matrix_work in work
        if (op is None or matrix_work.op == op)
        and (shape is None or (matrix_work.matrix is not None and matrix_work.matrix.shape == shape))
    )


def describe_shortfall(
    count_present: int,
    count: int | None,
    op: str | None,
    shape: str | None,
    stage: Stage | None,
    work: Iterable[MatrixWork],
) -> str:
    """The sentence of a failed count: the actual number, the expected number, and what there is instead."""
    instruction_name = " ".join(name_part for name_part in (op, shape) if name_part) or "matrix instructions"
    stage_text = "" if stage is None else f" at {stage.value}"
    expected = "at least 1" if count is None else str(count)
    present = [
        f"{matrix_work.count} × {matrix_work.op}"
        + ("" if matrix_work.matrix is None else f" {matrix_work.matrix.shape} ({matrix_work.matrix.types})")
        for matrix_work in work
    ]
    has_others = present and count_present != sum(matrix_work.count for matrix_work in work)
    present_text = f"; present: {', '.join(present)}" if has_others else ""
    return f"has {count_present or 'no'} {instruction_name}{stage_text}; expected {expected}{present_text}"
