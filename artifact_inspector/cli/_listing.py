"""Print a cache: a list of kernels, one kernel in full, the lines of a region, or a JSON document.

Does not import typer, which would take a third of the time of a list whose facts are cached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from artifact_inspector.cli._loading import (
    assemble_missing,
    exit_if_no_facts,
    exit_if_unreadable,
    has_facts,
    inspect_kernels,
    make_disassembler,
    make_timing_reader,
    open_cache_or_fail,
    source_reader,
)
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.hardware.targets import Target


class RowSelection(NamedTuple):
    """The rows of a list, and their order."""

    sort: str | None = None
    findings: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    severity: str | None = None
    limit: int | None = None


def print_cache(
    path: Path | None,
    name: str | None = None,
    targets: Sequence[str] = (),
    stages: Sequence[str] = (),
    region: str | None = None,
    other_gpus: Sequence[str] = (),
    nvdisasm: Path | None = None,
    *,
    json: bool = False,
    ir: bool = False,
    sass: bool = False,
    context: int | None = None,
    assemble: bool = False,
    rows: RowSelection | None = None,
    index: bool = True,
) -> None:
    """Print a cache: one row per kernel, one kernel in full, or the lines of one region."""
    from artifact_inspector.facts.selection import narrow, parse_filters, parse_stages, parse_targets, select_kernels
    from artifact_inspector.report.cache_report import CacheReport
    from artifact_inspector.report.console import show

    rows = rows or RowSelection()
    kernel_selectors, stage_filter, other_targets = (
        parse_filters(targets),
        parse_stages(stages),
        parse_targets(other_gpus),
    )
    cache = open_cache_or_fail(path)
    assembly = assemble_missing(select_kernels(cache, name, kernel_selectors, stage_filter), enabled=assemble)
    artifacts, cache = assembly.kernels, replace(cache, problems=(*cache.problems, *assembly.problems))
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    is_file = path is not None and path.is_file() and not cache.container
    is_story = len(artifacts) == 1 and (name is not None or region is not None or is_file)
    is_list = not (ir or json or is_story)
    if region is not None and len(artifacts) != 1:
        raise UsageError(
            f"--region selects a loop of one kernel; {len(artifacts)} match.", "Give a NAME or hash that fits one."
        )
    inspected = inspect_kernels(artifacts, disassemble, CacheReport.view if is_list else None, index=index)
    narrowed_kernels = (narrow(kernel, stage_filter, region) for kernel in inspected)
    if json and not ir:
        kernels_have_facts = _write_document(
            cache, _select_kernels(narrowed_kernels, rows), other_targets, compiles=is_story
        )
        if kernels_have_facts or cache.problems:
            exit_if_no_facts(kernels_have_facts)
        assembly.exit_if_refused()
        return
    kernels = list(_select_kernels(narrowed_kernels, rows))
    if ir:
        _list_region(kernels, disassemble, context, json=json)
    elif is_story:
        from artifact_inspector.passes.retargeting import compile_for_targets
        from artifact_inspector.report.kernel_report import KernelReport

        is_one_region = region is not None
        recompiled = compile_for_targets(kernels[0], other_targets) if other_targets and not is_one_region else ()
        timings = make_timing_reader(cache)(kernels[0])
        story = KernelReport(
            cache,
            kernels[0],
            other_targets,
            recompiled,
            is_one_region=is_one_region,
            source_readers=source_reader,
            timings=timings,
        )
        print_report(story)
    else:
        is_narrowed, is_sorted = name is not None, rows.sort is not None
        show(
            CacheReport(cache, kernels, is_narrowed, other_targets, rows.limit, is_sorted, make_timing_reader(cache)),
            sys.stdout,
        )
    if kernels or cache.problems:
        exit_if_unreadable(kernels)
    assembly.exit_if_refused()


def _write_document(
    cache: Cache, kernels: Iterable[KernelFacts], other_targets: tuple[Target, ...], *, compiles: bool
) -> list[bool]:
    """Write the JSON of some kernels; return for each whether anything about it could be read.

    Args:
        compiles: also compile each kernel for the other targets.
    """
    from artifact_inspector.passes.retargeting import RetargetedKernel, compile_for_targets
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json.cache import write_cache

    kernels_have_facts: list[bool] = []

    def record_kernel(kernel: KernelFacts) -> KernelFacts:
        kernels_have_facts.append(has_facts(kernel))
        return kernel

    def recompile(kernel: KernelFacts) -> tuple[RetargetedKernel, ...]:
        return compile_for_targets(kernel, other_targets) if compiles else ()

    encoding = sys.stdout.encoding
    timings = make_timing_reader(cache)
    write_cache(
        cache,
        map(record_kernel, kernels),
        other_targets,
        encoding,
        lambda text: write(text, sys.stdout),
        recompile,
        timings,
    )
    return kernels_have_facts


def _select_kernels(kernels: Iterable[KernelFacts], rows: RowSelection) -> Iterable[KernelFacts]:
    """The requested kernels in the requested order."""
    if rows == RowSelection(limit=rows.limit):
        return kernels
    from artifact_inspector.vocabulary.selection import parse_choice, sort_kernels

    is_match = parse_choice(rows.findings, rows.verdicts, rows.severity)
    if rows.sort is not None:
        sort_kernels((), rows.sort)  # refuse an unknown key before reading anything
    all_kernels = list(kernels)
    matching = [kernel for kernel in all_kernels if is_match(kernel)]
    if all_kernels and not matching:
        filters: dict[str, object] = {
            "--finding": rows.findings,
            "--verdict": rows.verdicts,
            "--severity": rows.severity,
        }
        active_filters = [option for option, values in filters.items() if values]
        remedy = (
            f"Remove one of {', '.join(active_filters)}."
            if len(active_filters) > 1
            else f"Change or remove {active_filters[0]}."
        )
        raise UsageError(f"None of {len(all_kernels)} kernels matches all filters.", remedy)
    return matching if rows.sort is None else sort_kernels(matching, rows.sort)


def _list_region(
    kernels: list[KernelFacts], disassemble: Disassemble | None, context: int | None, *, json: bool
) -> None:
    from artifact_inspector.facts.modules import read_module, read_source
    from artifact_inspector.facts.selection import pick_stage
    from artifact_inspector.report.json.views import listing_document
    from artifact_inspector.report.listing import MAX_FULL_LINES, Listing, list_lines, make_excerpt

    if len(kernels) != 1:
        raise UsageError(f"--ir prints one kernel; {len(kernels)} match.", "Give a NAME or hash that fits one.")
    kernel = kernels[0]
    facts = pick_stage(kernel)
    source = read_source(kernel.artifact, facts.stage, [], disassemble)
    module = read_module(kernel.artifact, facts.stage, [], disassemble)
    region = facts.region(kernel.principal or "") or next(iter(facts.regions), None)
    if source is None or module is None or region is None:
        raise CacheError(f"{facts.file} has no loop or code region to print.", "Choose another stage with --stage.")
    work = facts.work.get(region.id)
    levels = {} if work is None else dict(work.in_flight.levels)
    lines = list_lines(source, module, region, levels)
    if json:
        print_json(listing_document(kernel, facts, region.id, lines))
    else:
        is_whole = context is None and len(lines) <= MAX_FULL_LINES
        excerpt = None if is_whole else make_excerpt(module, region, lines, 1 if context is None else context)
        print_report(Listing(facts, region, lines, excerpt))
