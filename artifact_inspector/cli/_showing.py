"""Print a cache: a list of kernels, one kernel in full, the lines of a region, or a JSON document.

Does not import typer, which would take a third of the time of a list whose facts are cached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from artifact_inspector.cli._reading import (
    assembled,
    disassembler,
    inspect_kernels,
    is_known,
    open_or_advise,
    quotes_of,
    refuse_unknown,
    refuse_unreadable,
    timings_of,
)
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.hardware.targets import Target


class Rows(NamedTuple):
    """The rows of a list, and their order."""

    sort: str | None = None
    findings: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    severity: str | None = None
    limit: int | None = None


def report(
    path: Path | None,
    name: str | None = None,
    targets: Sequence[str] = (),
    stages: Sequence[str] = (),
    region: str | None = None,
    on: Sequence[str] = (),
    nvdisasm: Path | None = None,
    *,
    json: bool = False,
    ir: bool = False,
    sass: bool = False,
    context: int | None = None,
    assemble: bool = False,
    rows: Rows | None = None,
    index: bool = True,
) -> None:
    """Print a cache: one row per kernel, one kernel in full, or the lines of one region."""
    from artifact_inspector.facts.selection import choose, narrow, parse_stages, parse_targets, parse_which
    from artifact_inspector.report.console import show
    from artifact_inspector.report.text import CacheReport

    rows = rows or Rows()
    wanted, only, others = parse_which(targets), parse_stages(stages), parse_targets(on)
    cache = open_or_advise(path)
    assembly = assembled(choose(cache, name, wanted, only), wanted=assemble)
    chosen, cache = assembly.kernels, replace(cache, problems=(*cache.problems, *assembly.problems))
    disassemble = disassembler(chosen, nvdisasm, sass=sass)
    is_file = path is not None and path.is_file()
    is_story = len(chosen) == 1 and (name is not None or region is not None or is_file)
    is_list = not (ir or json or is_story)
    if region is not None and len(chosen) != 1:
        raise UsageError(
            f"--region selects a loop of one kernel; {len(chosen)} match.",
            "Give a NAME or hash that fits one.",
        )
    found = inspect_kernels(chosen, disassemble, CacheReport.view if is_list else None, index=index)
    narrowed_ones = (narrow(kernel, only, region) for kernel in found)
    if json and not ir:
        known = _write_document(cache, _chosen(narrowed_ones, rows), others, compiles=is_story)
        if known or cache.problems:
            refuse_unknown(known)
        assembly.exit_if_refused()
        return
    kernels = list(_chosen(narrowed_ones, rows))
    if ir:
        _list_region(kernels, disassemble, context, json=json)
    elif is_story:
        from artifact_inspector.passes.elsewhere import compile_elsewhere
        from artifact_inspector.report.story import KernelReport

        of_region = region is not None
        made = compile_elsewhere(kernels[0], others) if others and not of_region else ()
        told = timings_of(cache)(kernels[0])
        story = KernelReport(
            cache, kernels[0], others, made, one_region=of_region, quotes=quotes_of, timings=told
        )
        print_report(story)
    else:
        narrowed, is_sorted = name is not None, rows.sort is not None
        show(
            CacheReport(cache, kernels, narrowed, others, rows.limit, is_sorted, timings_of(cache)),
            sys.stdout,
        )
    if kernels or cache.problems:
        refuse_unreadable(kernels)
    assembly.exit_if_refused()


def _write_document(
    cache: Cache, kernels: Iterable[KernelFacts], others: tuple[Target, ...], *, compiles: bool
) -> list[bool]:
    """Write the JSON of some kernels; return for each whether anything about it could be read.

    Args:
        compiles: also compile each kernel for the other targets.
    """
    from artifact_inspector.passes.elsewhere import Elsewhere, compile_elsewhere
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json.streamed import write_cache

    known: list[bool] = []

    def told(kernel: KernelFacts) -> KernelFacts:
        known.append(is_known(kernel))
        return kernel

    def made(kernel: KernelFacts) -> tuple[Elsewhere, ...]:
        return compile_elsewhere(kernel, others) if compiles else ()

    encoding = sys.stdout.encoding
    timings = timings_of(cache)
    write_cache(
        cache, map(told, kernels), others, encoding, lambda text: write(text, sys.stdout), made, timings
    )
    return known


def _chosen(found: Iterable[KernelFacts], rows: Rows) -> Iterable[KernelFacts]:
    """The requested kernels in the requested order."""
    if rows == Rows(limit=rows.limit):
        return found
    from artifact_inspector.vocabulary.choice import order, parse_choice

    is_meant = parse_choice(rows.findings, rows.verdicts, rows.severity)
    if rows.sort is not None:
        order((), rows.sort)  # refuse an unknown key before reading anything
    kernels = list(found)
    meant = [kernel for kernel in kernels if is_meant(kernel)]
    if kernels and not meant:
        filters: dict[str, object] = {
            "--finding": rows.findings,
            "--verdict": rows.verdicts,
            "--severity": rows.severity,
        }
        given = [option for option, values in filters.items() if values]
        remedy = f"Remove one of {', '.join(given)}." if len(given) > 1 else f"Change or remove {given[0]}."
        raise UsageError(f"None of {len(kernels)} kernels matches all filters.", remedy)
    return meant if rows.sort is None else order(meant, rows.sort)


def _list_region(
    kernels: list[KernelFacts], disassemble: Disassemble | None, context: int | None, *, json: bool
) -> None:
    from artifact_inspector.facts.modules import read_module, read_source
    from artifact_inspector.facts.selection import pick_stage
    from artifact_inspector.report.json.listing import listing_document
    from artifact_inspector.report.listing import SHORT, Listing, excerpt_of, list_lines

    if len(kernels) != 1:
        raise UsageError(
            f"--ir prints one kernel; {len(kernels)} match.", "Give a NAME or hash that fits one."
        )
    kernel = kernels[0]
    facts = pick_stage(kernel)
    source = read_source(kernel.artifact, facts.stage, [], disassemble)
    module = read_module(kernel.artifact, facts.stage, [], disassemble)
    found = facts.region(kernel.principal or "") or next(iter(facts.regions), None)
    if source is None or module is None or found is None:
        raise CacheError(
            f"{facts.file} has no loop or code region to print.", "Choose another stage with --stage."
        )
    work = facts.work.get(found.id)
    levels = {} if work is None else dict(work.in_flight.levels)
    lines = list_lines(source, module, found, levels)
    if json:
        print_json(listing_document(kernel, facts, found.id, lines))
    else:
        is_whole = context is None and len(lines) <= SHORT
        excerpt = None if is_whole else excerpt_of(module, found, lines, 1 if context is None else context)
        print_report(Listing(facts, found, lines, excerpt))
