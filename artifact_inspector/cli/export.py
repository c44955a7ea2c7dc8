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


_SUFFIXES = {
    ".parquet": "parquet", ".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}  # fmt: skip


@command()
def export(
    selection: Selection,
    code: MachineCode,
    output: Path | None = options.option(
        "--output -o FILE",
        "Write this .parquet, .db, .sqlite, .ndjson or .jsonl, or a directory of Parquet files.",
        None,
    ),
    parquet: Path | None = options.option("--parquet FILE", "Write one Parquet file; needs the package pyarrow.", None),
    sqlite: Path | None = options.option("--sqlite FILE", "Write a SQLite database with three tables.", None),
    ndjson: Path | None = options.option("--ndjson FILE", "Write one JSON object per line.", None),
    label: str | None = options.option("--label TEXT", "Set the column `label`: a release, a date, a branch.", None),
    scheduler: options.Scheduler = None,
    index: Path | None = options.option(
        "--index FILE",
        "Share rows of parsed kernels: a file, or s3://bucket/index. Default: in the output directory.",
        None,
    ),
    no_index: options.NoIndex = False,
) -> None:
    """Write the facts of a cache as a table: one row per kernel, region and launch."""
    files = {"parquet": parquet, "sqlite": sqlite, "ndjson": ndjson}
    requested = [(format, file) for format, file in files.items() if file is not None]
    if output is not None:
        if output.suffix and output.suffix.lower() not in _SUFFIXES:
            raise UsageError(
                f"{output.name} names no format.", f"Expected a directory or one of {', '.join(_SUFFIXES)}."
            )
        requested.append((_SUFFIXES.get(output.suffix.lower(), ""), output))
    if len(requested) != 1:
        raise UsageError(f"{len(requested)} output files are given.", "Give one: --output FILE.parquet, or --sqlite …")
    ((format, file),) = requested
    if format:
        if scheduler is not None or index is not None:
            raise UsageError(f"--scheduler and --index write a directory, not {file.name}.", "Give --output DIRECTORY.")
        _export_file(selection, code, format, file, label, index=not no_index)
        return
    if code.sass or code.nvdisasm is not None:
        raise UsageError("A directory has no facts of disassembled code.", "Remove --sass, or give FILE.parquet.")
    _export_directory(selection, file, label, scheduler, index)


def _export_directory(
    selection: Selection, out: Path, label: str | None, scheduler: str | None, index: Path | None
) -> None:
    from artifact_inspector.api.dataset import write_dataset
    from artifact_inspector.cli._exit import UNREADABLE
    from artifact_inspector.cli._loading import read_filters
    from artifact_inspector.cli._output import write_line
    from artifact_inspector.files.cache import default_directory, local_path

    cache = default_directory() if selection.cache is None else local_path(selection.cache)
    summary = write_dataset(
        cache, out, label=label, name=selection.name, filters=read_filters(selection.target, selection.properties),
        scheduler=scheduler, index=index,
    )  # fmt: skip
    for kind, sentences in (("failed", summary.failures), ("incomplete", summary.problems)):
        if sentences:
            more = f" ({len(sentences) - 1} more)" if len(sentences) > 1 else ""
            write_line(f"{cache} is {kind}: {sentences[0]}{more}.", sys.stderr)
    rows = ", ".join(f"{summary.rows.get(kind, 0)} {kind} rows" for kind in ("kernel", "region", "launch"))
    write_line(
        f"{out}: {rows}; wrote {summary.written} of {summary.partitions} partitions, parsed {summary.parsed} kernels.",
        sys.stdout,
    )
    if summary.failures:
        raise SystemExit(UNREADABLE)


def _export_file(
    selection: Selection, code: MachineCode, format: str, file: Path, label: str | None, *, index: bool
) -> None:
    from artifact_inspector.cli._loading import has_facts, open_selected
    from artifact_inspector.cli._output import write_line
    from artifact_inspector.compiling.ask.manifest import read_launches
    from artifact_inspector.files.tables import WRITERS
    from artifact_inspector.vocabulary.tables import RowKind, columns_of, fact_rows, launch_row

    opened = open_selected(selection, code)
    title, root = opened.cache.title, opened.cache.root
    hashes = {artifact.hash for artifact in opened.artifacts}
    kernels_have_facts: list[bool] = []
    counts = dict.fromkeys(RowKind, 0)

    def rows() -> Iterator[dict[str, Cell]]:
        for kernel in opened.inspect(index=index):
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
