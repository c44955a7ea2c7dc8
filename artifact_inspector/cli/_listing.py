"""Print a cache: a list of kernels, one kernel in full, the lines of a region, or a JSON document.

Does not import typer, which would take a third of the time of a list whose facts are cached.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from artifact_inspector.cli._first_page import print_first_page
from artifact_inspector.cli._groups import AssembledCode, ListOptions, MachineCode, Selection
from artifact_inspector.cli._loading import OpenedKernels, has_facts, make_timing_reader, open_selected, source_reader
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.fact_index import batches
from artifact_inspector.facts.kept_diagnosis import attach, read_kept_diagnoses
from artifact_inspector.facts.selection import narrow, parse_stages, parse_targets, pick_stage
from artifact_inspector.files.artifact import Artifact, Problem
from artifact_inspector.files.autotuning import read_autotune_results
from artifact_inspector.files.index import index_opener
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.console import show, write
from artifact_inspector.report.kernel_rows import kernel_cells
from artifact_inspector.report.progress import progress_bar

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, View
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.hardware.targets import Target
    from artifact_inspector.model import Stage


def print_cache(selection: Selection, code: MachineCode, view: ListOptions) -> None:
    """Print a cache: one row per kernel, one kernel in full, or the lines of one region."""
    stages, other_targets = parse_stages(view.stage or ()), parse_targets(view.on or ())
    is_assembled = isinstance(code, AssembledCode) and code.assemble
    if sys.stderr.isatty() and selection == Selection(selection.cache) and view == ListOptions():
        print_first_page(selection.cache)
    opened = open_selected(selection, code, stages, assemble=is_assembled, scheduler=view.scheduler)
    cache, artifacts = opened.cache, opened.artifacts
    is_file = selection.cache is not None and selection.cache.is_file() and not cache.container
    is_story = len(artifacts) == 1 and (selection.name is not None or view.region is not None or is_file)
    is_list = not (view.ir or view.json or is_story)
    if view.region is not None and len(artifacts) != 1:
        raise UsageError(
            f"--region selects a loop of one kernel; {len(artifacts)} match.", "Give a NAME or hash that fits one."
        )
    packs = is_list and len(artifacts) > 1
    quiet = index_opener(lambda notice: None)  # the list reports what is wrong with the index
    has_diagnoses = (packs or is_story) and not (view.no_index or view.json)
    diagnoses = read_kept_diagnoses(artifacts, quiet) if has_diagnoses else {}

    view_row = _show_row if packs else kernel_cells  # one kernel needs no label of its variant

    def view_diagnosed(kernel: KernelFacts) -> None:
        attach(kernel, diagnoses)
        view_row(kernel)

    row_view = view_diagnosed if diagnoses else view_row
    if view.json and not view.ir:
        kernels_have_facts = _write_document(opened, view, stages, compiles=is_story)
    else:
        kernels = list(_select_kernels(opened, view, stages, row_view if is_list else None, packs=packs))
        if view.ir:
            _list_region(kernels, opened.disassemble, view)
        elif is_story:
            attach(kernels[0], diagnoses)
            is_full = view.full or bool(stages)
            _print_story(cache, kernels[0], other_targets, is_full=is_full, is_one_region=view.region is not None)
        else:
            timings = make_timing_reader(cache, read_autotune_results(cache))
            is_narrowed = selection.name is not None
            is_sorted = view.newest or view.sort is not None
            report = CacheReport(
                cache, kernels, is_narrowed, other_targets, view.limit, is_sorted, view.legend, timings
            )
            show(report, sys.stdout)
        kernels_have_facts = [has_facts(kernel) for kernel in kernels]
    opened.exit_if_failed(kernels_have_facts)


def _show_row(kernel: KernelFacts) -> None:
    CacheReport.view(kernel)
    has_facts(kernel)


def _print_story(
    cache: Cache, kernel: KernelFacts, other_targets: tuple[Target, ...], *, is_full: bool, is_one_region: bool
) -> None:
    from artifact_inspector.passes.retargeting import compile_for_targets  # a list needs neither
    from artifact_inspector.report.kernel_report import KernelReport

    recompiled = compile_for_targets(kernel, other_targets) if other_targets and not is_one_region else ()
    story = KernelReport(
        cache,
        kernel,
        other_targets,
        recompiled,
        is_full=is_full,
        is_one_region=is_one_region,
        source_readers=source_reader,
        timings=make_timing_reader(cache, read_autotune_results(cache))(kernel),
    )
    print_report(story)


def _write_document(opened: OpenedKernels, view: ListOptions, stages: Sequence[Stage], *, compiles: bool) -> list[bool]:
    """Write the JSON of some kernels; return for each whether anything about it could be read.

    Args:
        compiles: also compile each kernel for the other targets.
    """
    from artifact_inspector.api.kept_values import is_object_text, kept_values
    from artifact_inspector.passes.retargeting import RetargetedKernel, compile_for_targets
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.cache import KernelPart, kernel_document, kernel_text, write_cache

    cache, encoding, other_targets = opened.cache, sys.stdout.encoding, parse_targets(view.on or ())
    tunings = read_autotune_results(cache)
    timings = make_timing_reader(cache, tunings)

    def recompile(kernel: KernelFacts) -> tuple[RetargetedKernel, ...]:
        return compile_for_targets(kernel, other_targets) if compiles else ()

    def compute(artifacts: Sequence[Artifact]) -> Iterator[KernelPart]:
        selected = replace(opened, artifacts=tuple(artifacts), shows_progress=False)  # one bar for all batches, below
        for kernel in _select_kernels(selected, view, stages):
            document = kernel_document(kernel, other_targets, recompile(kernel), timings(kernel))
            yield KernelPart(has_facts(kernel), kernel.problems, kernel_text(document, encoding))

    def state_of(artifact: Artifact) -> str:
        return f"{as_text(artifact, encoding)}{encoding} {sorted(artifact.constants.items())} {artifact.is_assembled}"

    filters = (view.finding, view.verdict, view.severity, stages, view.region)
    narrows = any(filters) or view.newest or view.sort or other_targets or tunings
    keeps = not (narrows or opened.disassemble or view.no_index)
    open_index = index_opener(lambda notice: None) if keeps else None  # reading facts reports what is wrong with it

    def is_part(value: object) -> bool:
        match value:
            case [bool(), list() as problems, text]:
                return is_object_text(text) and all(map(_is_problem, problems))
        return False

    def read_parts(advance: Callable[[str], None]) -> Iterator[KernelPart]:
        for batch in batches(opened.artifacts):  # so that the first of thousands is written soon
            parts = kept_values(batch, b"document", state_of, compute, open_index, is_part)
            for (is_known, problems, text), artifact in zip(parts, batch, strict=True):
                advance(artifact.display_name)
                yield KernelPart(is_known, [Problem(*x) for x in problems], text)

    with progress_bar(len(opened.artifacts), "reading", is_streamed=True) as advance:
        # whose text holds no command of a CI system
        return write_cache(cache, read_parts(advance), encoding, lambda text: write(text, sys.stdout, commands=True))


def _is_problem(value: object) -> bool:
    return isinstance(value, list) and len(value) == len(Problem._fields) and all(isinstance(x, str) for x in value)


def _select_kernels(
    opened: OpenedKernels,
    view: ListOptions,
    stages: Sequence[Stage],
    row_view: View | None = None,
    *,
    packs: bool = False,
) -> Iterable[KernelFacts]:
    """The requested kernels in the requested order."""
    kernels: Iterable[KernelFacts] = opened.inspect(row_view, index=not view.no_index, packs=packs)
    if stages or view.region is not None:
        kernels = (narrow(kernel, stages, view.region) for kernel in kernels)
    sort = "time" if view.newest else view.sort
    filters = {"--finding": view.finding, "--verdict": view.verdict, "--severity": view.severity}
    active_filters = [option for option, values in filters.items() if values]
    if not active_filters and sort is None:
        return kernels
    from artifact_inspector.vocabulary.selection import parse_choice, sort_kernels

    is_match = parse_choice(view.finding or (), view.verdict or (), view.severity)
    if sort is not None:
        sort_kernels((), sort)  # refuse an unknown key before reading anything
    all_kernels = list(kernels)
    matching = [kernel for kernel in all_kernels if is_match(kernel)]
    if all_kernels and not matching:
        remedy = (
            f"Remove one of {', '.join(active_filters)}."
            if len(active_filters) > 1
            else f"Change or remove {active_filters[0]}."
        )
        raise UsageError(f"None of {len(all_kernels)} kernels matches all filters.", remedy)
    return matching if sort is None else sort_kernels(matching, sort)


def _list_region(kernels: list[KernelFacts], disassemble: Disassemble | None, view: ListOptions) -> None:
    from artifact_inspector.facts.modules import read_module, read_source
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
    if view.json:
        print_json(listing_document(kernel, facts, region.id, lines))
    else:
        is_whole = view.context is None and len(lines) <= MAX_FULL_LINES
        excerpt = None if is_whole else make_excerpt(module, region, lines, 1 if view.context is None else view.context)
        print_report(Listing(facts, region, lines, excerpt))
