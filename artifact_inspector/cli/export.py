"""`inspect-kernel export`: facts as a table for DuckDB, polars, pandas or SQL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._loading import (
    exit_if_no_facts,
    has_facts,
    inspect_kernels,
    make_disassembler,
    open_cache_or_fail,
)
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    NoIndex,
    Nvdisasm,
    ReadTargets,
    Sass,
    Where,
    read_selectors,
)
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.vocabulary.tables import Cell

_File = Path | None


@app.command()
def export(
    cache: CacheDirectory = None,
    name: KernelName = None,
    parquet: Annotated[_File, typer.Option(metavar="FILE", help="Write one Parquet file; needs pyarrow.")] = None,
    sqlite: Annotated[_File, typer.Option(metavar="FILE", help="Write a SQLite database with three tables.")] = None,
    ndjson: Annotated[_File, typer.Option(metavar="FILE", help="Write one JSON object per line.")] = None,
    label: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Set the column `label`: a release, a date, a branch.")
    ] = None,
    target: ReadTargets = None,
    properties: Where = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
) -> None:
    """Write the facts of a cache as a table: one row per kernel, region and launch."""
    with exit_codes(json=False):
        from artifact_inspector.compiling.ask.manifest import read_launches
        from artifact_inspector.facts.selection import parse_filters, select_kernels
        from artifact_inspector.files.tables import WRITERS
        from artifact_inspector.vocabulary.tables import RowKind, columns_of, fact_rows, launch_row

        files = {"parquet": parquet, "sqlite": sqlite, "ndjson": ndjson}
        requested = {kind: file for kind, file in files.items() if file is not None}
        if len(requested) != 1:
            raise UsageError(
                f"{len(requested)} output files are given.", "Give one of --parquet, --sqlite and --ndjson."
            )
        ((kind, file),) = requested.items()
        opened = open_cache_or_fail(cache)
        artifacts = select_kernels(opened, name, parse_filters(read_selectors(target, properties)))
        disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
        hashes = {artifact.hash for artifact in artifacts}
        kernels_have_facts: list[bool] = []
        counts = dict.fromkeys(RowKind, 0)

        def rows() -> Iterator[dict[str, Cell]]:
            for kernel in inspect_kernels(artifacts, disassemble, index=not no_index):
                kernels_have_facts.append(has_facts(kernel))
                yield from fact_rows(kernel, opened.title, label)
            yield from (
                launch_row(x, opened.title, label) for x in read_launches(opened.root) if x.get("hash") in hashes
            )

        def counted() -> Iterator[dict[str, Cell]]:
            for row in rows():
                counts[RowKind(row["row"])] += 1
                yield row

        schema = {kind.value: {c.name: c.type.value for c in columns_of(kind)} for kind in RowKind}
        WRITERS[kind](file, schema, counted())
        written = ", ".join(f"{count} {kind} rows" for kind, count in counts.items())
        write_line(f"{file}: {written}.", sys.stdout)
        exit_if_no_facts(kernels_have_facts)
