"""Writes rows as NDJSON, SQLite or Parquet; a file is complete or absent.

Rows are written as they come, so that a cache of any size needs little memory.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.scratch import prefix_beside

BATCH_ROWS = 2000
TableRow = Mapping[str, Any]
Schema = Mapping[str, Mapping[str, str]]
"""Table → its columns → their SQL types. The column `row` names the table of a row."""


def write_ndjson(path: Path, _schema: Schema, rows: Iterable[TableRow]) -> None:
    """One JSON object per line."""
    with _replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def write_sqlite(path: Path, schema: Schema, rows: Iterable[TableRow]) -> None:
    """One table for each kind of row: `kernel`, `region`, `launch`."""
    with _replacing(path) as temporary, closing(sqlite3.connect(temporary)) as database:
        for table, columns in schema.items():
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            database.execute(f'CREATE TABLE "{table}" ({listed})')
        for row in rows:
            columns = schema[row["row"]]
            marks = ", ".join("?" * len(columns))
            database.execute(f'INSERT INTO "{row["row"]}" VALUES ({marks})', [row[name] for name in columns])
        database.commit()


def write_parquet(path: Path, schema: Schema, rows: Iterable[TableRow]) -> None:
    """One table with all rows.

    Raises:
        UsageError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("--parquet needs the package pyarrow.", "pip install 'artifact-inspector[export]'") from None
    types = {
        "TEXT": pyarrow.string(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "BOOLEAN": pyarrow.bool_(),
    }  # fmt: skip
    columns = {name: kind for table in schema.values() for name, kind in table.items()}
    fields = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    with _replacing(path) as temporary, parquet.ParquetWriter(temporary, fields) as writer:
        for batch in _batches(rows):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=fields))


WRITERS: Mapping[str, Callable[[Path, Schema, Iterable[TableRow]], None]] = {
    "parquet": write_parquet,
    "sqlite": write_sqlite,
    "ndjson": write_ndjson,
}


def _batches(rows: Iterable[TableRow]) -> Iterator[Sequence[TableRow]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH_ROWS)):
        yield batch


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside the path, which takes its place at the end of the block."""
    try:
        with TemporaryDirectory(prefix=prefix_beside(path), dir=path.parent) as directory:
            temporary = Path(directory, path.name)
            yield temporary
            os.replace(temporary, path)  # noqa: PTH105 - atomic
    except (OSError, sqlite3.Error) as error:
        raise CacheError(f"{path} could not be written: {getattr(error, 'strerror', None) or error}.") from None
