"""`inspect-kernel matrix`: all variants of one kernel in a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    Assemble,
    CacheDirectory,
    Html,
    Json,
    KernelName,
    Nvdisasm,
    Sass,
    Targets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._reading import (
    assembled,
    disassembler,
    inspect_kernels,
    open_or_advise,
    refuse_unreadable,
)
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.matrix import Matrix
    from artifact_inspector.facts.modules import Disassemble


@app.command()
def matrix(
    cache: CacheDirectory = None,
    name: KernelName = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(
            "--sort",
            metavar="COLUMN",
            help="Sort by shared, registers, spills, wait, mma, flight, occupancy ...; -shared reverses.",
        ),
    ] = None,
    target: Targets = None,
    where: Where = None,
    passes: Annotated[
        bool,
        typer.Option(
            "--passes",
            metavar="",
            help="Compile each variant again and name the compiler pass that set its verdict.",
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            metavar="",
            help="Print how many variants each argument type, constant or option causes.",
        ),
    ] = False,
    html: Html = None,
    json: Json = False,
    assemble: Assemble = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Compare all variants of one kernel: its targets, versions and configurations."""
    with exit_codes(json=json):
        from artifact_inspector.comparison.matrix import find_matrix
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.files.tuning import read_tunings
        from artifact_inspector.model.text import split_words
        from artifact_inspector.report.json.comparison import matrix_document
        from artifact_inspector.report.matrix import MatrixReport
        from artifact_inspector.report.tuning import tunings_block
        from artifact_inspector.vocabulary.rows import summarise

        if passes and json:
            raise UsageError(
                "--passes prints text only, not JSON.",
                "For one kernel as JSON: inspect-kernel passes CACHE NAME --json.",
            )
        found = open_or_advise(cache)
        named = choose(found, name, parse_which(read_selectors(target, where)))
        if why:
            from artifact_inspector.cli._causes import print_causes

            print_causes(named, json=json)
            return
        assembly = assembled(named, wanted=assemble)
        chosen = assembly.kernels
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernels = list(inspect_kernels(chosen, disassemble, summarise))
        forms = find_matrix(kernels, split_words(sort or []))
        if json:
            print_json(matrix_document(forms))
        else:
            print_report(MatrixReport(forms))
            tunings = read_tunings(found, forms.name)
            if tunings:
                print_report(tunings_block(tunings, forms.forms))
        if html is not None:
            _write_page(html, forms, disassemble)
        if passes:
            _write_passes(forms)
        refuse_unreadable(kernels)
        assembly.exit_if_refused()


def _write_page(html: Path, forms: Matrix, disassemble: Disassemble | None) -> None:
    from artifact_inspector.cli._pages import view_kernels, write_page
    from artifact_inspector.report.html import matrix_page

    _, views = view_kernels([form.kernel.artifact for form in forms.forms], disassemble)
    write_page(html, matrix_page(forms, views))


def _write_passes(forms: Matrix) -> None:
    """Print for each variant the compiler pass that set its verdict."""
    from artifact_inspector.passes.attribution import attribute, earliest
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.passes import describe_decision
    from artifact_inspector.vocabulary.fact import Category
    from artifact_inspector.vocabulary.names import name_regions

    write_lines("\npasses\n", sys.stdout)
    for form in forms.forms:
        label = " ".join(filter(None, (form.summary.triton, form.summary.target, form.label)))
        principal = form.kernel.principal_region
        name = None if principal is None else name_regions(form.kernel).get(principal.id)
        rows = form.summary.rows
        verdicts = [row for row in rows if row.category == Category.VERDICT.value and row.region == name]
        if not verdicts:
            write_lines(f"  {label}: no verdict\n", sys.stdout)
            continue
        last = verdicts[-1]
        asked = earliest([(last.key, last.category, last.label)])
        found = attribute(
            form.kernel.artifact,
            asked,
            {last.key: last.value},
            notice=lambda said: write_lines(f"{said} …\n", sys.stderr),
        )
        write_lines(f"{describe_decision(f'{label}: {last.value}', asked[0], found)}\n", sys.stdout)
