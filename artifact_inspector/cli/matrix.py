"""`inspect-kernel matrix`: all variants of one kernel in a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import AssembledCode, Selection
from artifact_inspector.cli._output import notice, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.cli._loading import OpenedKernels
    from artifact_inspector.comparison.matrix import Matrix


@command()
def matrix(
    selection: Selection,
    code: AssembledCode,
    sort: list[str] | None = options.option(
        "--sort COLUMN", "Sort by shared, registers, spills, wait, mma, flight, occupancy ...; -shared reverses.", None
    ),
    passes: bool = options.option(
        "--passes", "Compile each variant again and name the compiler pass that set its verdict.", False
    ),
    show_causes: bool = options.option(
        "--why", "Print how many variants each argument type, constant or option causes.", False
    ),
    html: options.Html = None,
    sources: options.SourceDirectory = None,
    json: options.Json = False,
) -> None:
    """Compare all variants of one kernel: its targets, versions and configurations."""
    from artifact_inspector.cli._loading import has_facts, open_selected
    from artifact_inspector.comparison.matrix import find_matrix
    from artifact_inspector.files.autotuning import read_autotune_results
    from artifact_inspector.model.text import split_option_values
    from artifact_inspector.report.json.comparison import matrix_document
    from artifact_inspector.report.kernel_blocks import tunings_block
    from artifact_inspector.report.variant_matrix import MatrixReport
    from artifact_inspector.vocabulary.rows import summarise

    if passes and json:
        raise UsageError(
            "--passes prints text only, not JSON.", "For one kernel as JSON: inspect-kernel passes CACHE NAME --json."
        )
    opened = open_selected(selection, code, assemble=code.assemble and not show_causes)
    if show_causes:
        from artifact_inspector.cli._causes import print_causes

        print_causes(opened.artifacts, json=json)
        return
    kernels = list(opened.inspect(summarise))
    variants = find_matrix(kernels, split_option_values(sort or []))
    if json:
        print_json(matrix_document(variants))
    else:
        print_report(MatrixReport(variants, opened.cache.title))
        tunings = read_autotune_results(opened.cache, variants.name)
        if tunings:
            print_report(tunings_block(tunings, variants.variants))
    if html is not None:
        _write_page(html, variants, opened, sources)
    if passes:
        _write_passes(variants)
    opened.exit_if_failed([has_facts(kernel) for kernel in kernels])


def _write_page(html: Path, variants: Matrix, opened: OpenedKernels, sources: Path | None) -> None:
    from artifact_inspector.cli._pages import view_kernels, write_page
    from artifact_inspector.report.html import matrix_page

    artifacts = tuple(variant.kernel.artifact for variant in variants.variants)
    _, views = view_kernels(replace(opened, artifacts=artifacts), directory=sources)
    write_page(html, matrix_page(variants, views))


def _write_passes(variants: Matrix) -> None:
    """Print for each variant the compiler pass that set its verdict."""
    from artifact_inspector.passes.attribution import find_passes, select_earliest
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.passes import describe_decision
    from artifact_inspector.vocabulary.fact import Category
    from artifact_inspector.vocabulary.names import name_regions

    write_lines("\npasses\n", sys.stdout)
    for variant in variants.variants:
        label = " ".join(filter(None, (variant.summary.triton, variant.summary.target, variant.label)))
        principal = variant.kernel.principal_region
        name = None if principal is None else name_regions(variant.kernel).get(principal.id)
        rows = variant.summary.rows
        verdicts = [row for row in rows if row.category == Category.VERDICT.value and row.region == name]
        if not verdicts:
            write_lines(f"  {label}: no verdict\n", sys.stdout)
            continue
        last = verdicts[-1]
        questions = select_earliest([(last.key, last.category, last.label)])
        attribution = find_passes(variant.kernel.artifact, questions, {last.key: last.value}, notice=notice)
        write_lines(f"{describe_decision(f'{label}: {last.value}', questions[0], attribution)}\n", sys.stdout)
