"""`inspect-kernel export`: facts as a table for DuckDB, polars, pandas or SQL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.vocabulary.tables import Cell


@command()
def export(
    selection: Selection,
    code: MachineCode,
    parquet: Path | None = options.option("--parquet FILE", "Write one Parquet file; needs the package pyarrow.", None),
    sqlite: Path | None = options.option("--sqlite FILE", "Write a SQLite database with three tables.", None),
    ndjson: Path | None = options.option("--ndjson FILE", "Write one JSON object per line.", None),
    label: str | None = options.option("--label TEXT", "Set the column `label`: a release, a date, a branch.", None),
    no_index: options.NoIndex = False,
) -> None:
    """Write the facts of a cache as a table: one row per kernel, region and launch."""
    from artifact_inspector.cli._loading import has_facts, open_selected
    from artifact_inspector.cli._output import write_line
    from artifact_inspector.compiling.ask.manifest import read_launches
    from artifact_inspector.files.tables import WRITERS
    from artifact_inspector.vocabulary.tables import RowKind, columns_of, fact_rows, launch_row

    files = {"parquet": parquet, "sqlite": sqlite, "ndjson": ndjson}
    requested = {kind: file for kind, file in files.items() if file is not None}
    if len(requested) != 1:
        raise UsageError(f"{len(requested)} output files are given.", "Give one of --parquet, --sqlite and --ndjson.")
    ((format, file),) = requested.items()
    opened = open_selected(selection, code)
    title, root = opened.cache.title, opened.cache.root
    hashes = {artifact.hash for artifact in opened.artifacts}
    kernels_have_facts: list[bool] = []
    counts = dict.fromkeys(RowKind, 0)

    def rows() -> Iterator[dict[str, Cell]]:
        for kernel in opened.inspect(index=not no_index):
            kernels_have_facts.append(has_facts(kernel))
            yield from fact_rows(kernel, title, label)
        yield from (launch_row(row, title, label) for row in read_launches(root) if row.get("hash") in hashes)

    def counted_rows() -> Iterator[dict[str, Cell]]:
        for row in rows():
            counts[RowKind(row["row"])] += 1
            yield row

    schema = {kind.value: {column.name: column.type.value for column in columns_of(kind)} for kind in RowKind}
    WRITERS[format](file, schema, counted_rows())
    written = ", ".join(f"{count} {kind} rows" for kind, count in counts.items())
    write_line(f"{file}: {written}.", sys.stdout)
    opened.exit_if_failed(kernels_have_facts)
