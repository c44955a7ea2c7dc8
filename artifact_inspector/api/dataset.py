"""The facts of any number of kernels as a directory of Parquet files, one for each partition of a cache.

A partition is some directories of kernels, or one archive or trace. A file that exists is not written again, so a run
that was stopped continues. Kernels with the same content are parsed once: their rows are kept in an index.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.errors import CacheError, InspectorError, UsageError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_part
from artifact_inspector.files.cluster import map_jobs
from artifact_inspector.files.digests import content_digest, index_key, package_digest
from artifact_inspector.files.index import unpack
from artifact_inspector.files.remote import address_of
from artifact_inspector.files.remote_index import open_shared_index
from artifact_inspector.files.tables import WRITERS
from artifact_inspector.files.walker import kernel_directories
from artifact_inspector.vocabulary.tables import Cell, RowKind, columns_of, fact_rows, launch_row

KERNELS_PER_PARTITION = 250
KERNELS_PER_READ = 25
"""Kernels that are looked up, parsed and stored together."""
INDEX_NAME = "index.sqlite3"
_PATTERN = "part-*.parquet"


@dataclass(frozen=True)
class ExportPartition:
    """Kernels that one process reads, and the file for their rows."""

    root: Path
    directories: tuple[str, ...]
    """Below the root; empty for an archive."""
    archive: str
    """Below the root; `.` if the root is one."""
    file: Path
    title: str
    label: str | None
    name: str | None
    filters: tuple[KernelFilter, ...]
    index: Path
    cores: int | None = 1


class PartitionSummary(NamedTuple):
    """What a partition had."""

    rows: Mapping[str, int]
    """Kind of a row → number."""
    parsed: int
    """Kernels that the index lacked."""
    problems: tuple[str, ...]
    hashes: tuple[str, ...]


@dataclass(frozen=True)
class DatasetSummary:
    """What a run wrote."""

    rows: Mapping[str, int]
    partitions: int
    written: int
    """Partitions of this run; the others were complete."""
    parsed: int
    problems: tuple[str, ...]
    failures: tuple[str, ...]
    """Partitions that could not be written."""


def write_dataset(
    cache: Path,
    out: Path,
    *,
    label: str | None = None,
    name: str | None = None,
    filters: tuple[KernelFilter, ...] = (),
    scheduler: str | None = None,
    index: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DatasetSummary:
    """Write the facts of a cache into a directory, here or on the workers of a Dask scheduler.

    Args:
        index: file or fsspec address of the rows of kernels already parsed, shared by all workers; by default in the
            directory.
        progress: called with partitions done and in all.

    Raises:
        CacheError: there is no kernel, the scheduler does not respond, or nothing can be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(f"{out} cannot be written: {error.strerror or error}.") from None
    index = index or out / INDEX_NAME
    open_shared_index(index)  # an error of the address is one of the caller
    make = partial(
        ExportPartition, cache.absolute(), title=str(cache), label=label, name=name, filters=filters,
        index=index if address_of(index) else index.absolute(), cores=None if scheduler is None else 1,
    )  # fmt: skip
    problems: list[str] = []
    partitions = list(_find_partitions(cache.absolute(), out.absolute(), make, problems))
    files = {partition.file for partition in partitions}
    for stale in set(out.absolute().glob(_PATTERN)) - files:
        stale.unlink(missing_ok=True)
    pending = [partition for partition in partitions if not partition.file.exists()]
    rows, hashes = Counter[str](), set[str]()
    for partition in partitions:
        if partition.file.exists():
            _count_rows(partition.file, rows, hashes)
    parsed, failures = 0, list[str]()
    results = map_jobs(scheduler, write_partition, pending) if scheduler else enumerate(map(write_partition, pending))
    done = len(partitions) - len(pending)
    for number, result in results:
        if isinstance(result, BaseException):
            unknown = f"{type(result).__name__}: {str(result)[:200]}"
            message = result.message if isinstance(result, InspectorError) else unknown
            failures.append(f"{pending[number].directories[:1] or pending[number].archive}: {message}")
        else:
            rows.update(result.rows)
            hashes.update(result.hashes)
            parsed += result.parsed
            problems += result.problems
        done += 1
        progress(done, len(partitions))
    if partitions and not partitions[0].archive:
        rows.update(_write_launches(partitions[0], out, hashes))
    if not rows and not failures:
        raise CacheError(f"No kernel of {cache} matches.", "Give a Triton cache with kernels.")
    return DatasetSummary(rows, len(partitions), len(pending), parsed, tuple(problems), tuple(failures))


def _find_partitions(
    root: Path, out: Path, make: Callable[..., ExportPartition], problems: list[str]
) -> Iterator[ExportPartition]:
    if root.is_dir():
        directories, archives = kernel_directories(root, lambda p: problems.append(f"{p.path}: {p.problem}"))
    else:
        directories, archives = [], ["."]
    if not directories and not archives:
        raise CacheError(f"No kernels in {root}.", "Give a Triton cache, or a directory of archives or traces.")
    parts: list[tuple[tuple[str, ...], str]] = [((), archive) for archive in archives] if not directories else []
    for start in range(0, len(directories), KERNELS_PER_PARTITION):
        parts.append((tuple(directories[start : start + KERNELS_PER_PARTITION]), ""))
    for number, (names, archive) in enumerate(parts):
        state = [(name, _modified(root / name)) for name in (*names, archive)]
        draft = make(names, archive, out)
        key = repr((state, package_digest(), draft.title, draft.label, draft.name, draft.filters))
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=8).hexdigest()
        yield replace(draft, file=out / f"part-{number:06}-{digest}.parquet")


def _modified(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def write_partition(partition: ExportPartition) -> PartitionSummary:
    """Write the rows of one partition; in the process of a worker too."""
    cache = open_part(partition.root, partition.directories, partition.archive)
    try:
        artifacts = select_kernels(cache, partition.name, partition.filters, ()) if cache.entries else ()
    except UsageError:
        artifacts = ()  # none matches here
    counts, parsed = Counter[str](), list[int]()

    def rows() -> Iterator[dict[str, Cell]]:
        yield from _indexed_rows(artifacts, partition, parsed)
        if partition.archive:
            yield from _launches(cache, partition, {artifact.hash for artifact in artifacts})

    _write(partition.file, rows(), counts)
    problems = tuple(f"{problem.path}: {problem.problem}" for problem in (*cache.missing, *cache.problems))
    hashes = tuple(dict.fromkeys(artifact.hash for artifact in artifacts))
    return PartitionSummary(counts, len(parsed), problems, hashes)


def _indexed_rows(
    artifacts: Sequence[Artifact], partition: ExportPartition, parsed: list[int]
) -> Iterator[dict[str, Cell]]:
    """The rows of kernels in order; each content is parsed once.

    Chunks are read from a start that differs between partitions: workers with copies of a cache share the work.
    """
    texts: dict[int, bytes] = {}
    start = int.from_bytes(blake2b(partition.file.name.encode()).digest()[:4], "little") % max(1, len(artifacts))
    order = [*range(start, len(artifacts)), *range(start)]
    for first in range(0, len(order), KERNELS_PER_READ):
        chunk = order[first : first + KERNELS_PER_READ]
        digests = [content_digest(artifacts[number]) for number in chunk]
        keys = [None if x is None else index_key(x, is_portable=True) for x in digests]
        with open_shared_index(partition.index) as index:
            packed = index.get_packed({key for key in keys if key is not None})
            stored = {key: value for key, data in packed.items() if (value := unpack(data)) is not None}
            owners = {key or number.to_bytes(4, "little"): number for number, key in zip(chunk, keys, strict=True)}
            missing = {key: number for key, number in owners.items() if key not in stored}
            kernels = [artifacts[number] for number in missing.values()]
            rows = (
                json.dumps(list(fact_rows(kernel, ""))).encode()
                for kernel in read_kernels(kernels, None, ReadOptions(cores=partition.cores))
            )
            fresh = dict(zip(missing, rows, strict=True))
            parsed += missing.values()
            index.put({key: text for key, text in fresh.items() if len(key) == 32})
        texts |= {
            number: (stored | fresh)[key or number.to_bytes(4, "little")]
            for number, key in zip(chunk, keys, strict=True)
        }
    for number, artifact in enumerate(artifacts):
        identity = {"cache": partition.title, "label": partition.label, "hash": artifact.hash}
        for row in json.loads(texts.pop(number)):
            yield {**row, **identity, "directory": artifact.directory}


def _launches(cache: Cache, partition: ExportPartition, hashes: set[str]) -> Iterator[dict[str, Cell]]:
    for row in read_launches(cache.root):
        if row.get("hash") in hashes:
            yield launch_row(row, partition.title, partition.label)


def _write_launches(partition: ExportPartition, out: Path, hashes: set[str]) -> Counter[str]:
    """Write the launches that the record of the cache has."""
    rows = list(_launches(Cache(partition.root, (), (), ()), partition, hashes))
    counts, file = Counter[str](), out / "launches.parquet"
    if rows:
        _write(file, rows, counts)
    else:
        file.unlink(missing_ok=True)
    return counts


def _write(file: Path, rows: Iterable[dict[str, Cell]], counts: Counter[str]) -> None:
    def counted() -> Iterator[dict[str, Cell]]:
        for row in rows:
            counts[str(row["row"])] += 1
            yield row

    schema = {kind.value: {column.name: column.type.value for column in columns_of(kind)} for kind in RowKind}
    WRITERS["parquet"](file, schema, counted())


def _count_rows(file: Path, rows: Counter[str], hashes: set[str]) -> None:
    from pyarrow import parquet

    try:
        table = parquet.read_table(file, columns=["row", "hash"])
    except (OSError, ValueError):
        file.unlink(missing_ok=True)
        return
    rows.update(table["row"].to_pylist())
    hashes.update(table["hash"].to_pylist())
