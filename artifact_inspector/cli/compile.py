"""`inspect-kernel compile` and `demo`: the reference kernels for any GPU, with none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import DEMO_TARGETS, OUT, Json, Out, Targets
from artifact_inspector.cli.inspect import report

if TYPE_CHECKING:
    from artifact_inspector.compiling import CompileResult


@app.command()
def compile(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="[KERNEL…]", help="Reference kernels; all by default.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", metavar="GPU", help="GPUs to compile for: sm_75,gfx90a,MI300X …"),
    ] = None,
    out: Out = OUT,
    json: Json = False,
) -> None:
    """Compile the reference kernels for some GPUs, with none of them at hand."""
    with exit_codes(json=json):
        from artifact_inspector.report.compiled import compiled_document, compiled_table
        from artifact_inspector.report.console import show, write
        from artifact_inspector.report.json import as_text

        rows = _compile(kernels or [], target or DEMO_TARGETS, out)
        if json:
            write(as_text(compiled_document(rows), sys.stdout.encoding), sys.stdout)
        else:
            show(compiled_table(rows, out), sys.stdout)
        _found_refusals(rows)


@app.command()
def demo(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.")
    ] = None,
    out: Out = OUT,
    json: Json = False,
    target: Targets = None,
) -> None:
    """Compile the reference kernels for a T4 and an MI250X, with no GPU, and report on them."""
    with exit_codes(json=json):
        from artifact_inspector.report.compiled import refusals
        from artifact_inspector.report.console import show

        rows = _compile([], target or DEMO_TARGETS, out)
        report(out, name, target or [], [], None, [], None, json=json, ir=False, sass=False)
        if any(row.directory is None for row in rows):
            show(refusals(rows), sys.stderr)
        _found_refusals(rows)


def _compile(names: list[str], targets: list[str], out: Path) -> Sequence[CompileResult]:
    from artifact_inspector.compiling import REFERENCE_KERNELS, compile_reference
    from artifact_inspector.report.progress import progress_bar
    from artifact_inspector.report.selection import parse_targets

    wanted = parse_targets(targets)
    with progress_bar(len(names or REFERENCE_KERNELS) * len(wanted), "compiling") as advance:
        return compile_reference(
            names,
            [str(one) for one in wanted],
            out,
            progress=lambda row: advance(f"{row.kernel} {row.target}"),
        )


def _found_refusals(rows: Sequence[CompileResult]) -> None:
    if any(row.directory is None for row in rows):
        raise typer.Exit(FOUND)
