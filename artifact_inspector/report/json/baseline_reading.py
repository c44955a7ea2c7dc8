"""Reads a baseline. Imports nothing that only writes one: a check of unchanged kernels is mostly imports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from artifact_inspector.comparison.baseline import Baseline, BaselineKernel, RecordedTime
from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.cache import Artifact
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Arch, Backend, TritonVersion
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.json._document import SCHEMA_VERSION
from artifact_inspector.version import __version__
from artifact_inspector.vocabulary.fact import Row, Value
from artifact_inspector.vocabulary.rows import CATEGORIES, Summary

_MOST_SHARED = 50_000
"""Texts and rows that are kept to find equal ones; a row takes 260 bytes here."""
_ROW_TEXTS = itemgetter("key", "category", "label", "unit", "step", "region")


def parse_baseline(text: str, name: str) -> Baseline:
    """The content of a baseline file.

    Args:
        name: of the file, for messages.

    Raises:
        CacheError: it is not a baseline, has an unknown schema version, or is damaged.
    """
    again = "Give a baseline, or record one: inspect-kernel baseline CACHE -o baseline.json"
    try:
        document = json.loads(text, object_hook=partial(_share_equal, {}))
    except ValueError as error:
        raise CacheError(f"{name} is not JSON: {error}.", again) from None
    except RecursionError:
        raise CacheError(f"{name} is nested too deeply.", again) from None
    if not isinstance(document, dict) or document.get("document") != "baseline":
        raise CacheError(f"{name} is not a baseline.", again)
    version, generator = document.get("schema_version"), document.get("generator")
    if version not in (1, SCHEMA_VERSION):
        raise CacheError(
            f"{name} has schema version {version}, but inspect-kernel {__version__} reads "
            f"versions 1 to {SCHEMA_VERSION}.",
            again if generator is None else f"{again}, or check with inspect-kernel {generator}.",
        )
    try:
        document = upgrade_document(document)
        records = document["kernels"]
        kernels = tuple(_parse_recorded(records.pop()) for _ in range(len(records)))[::-1]
        return Baseline(str(document["generator"]), kernels, frozenset(map(str, document.get("fact_keys", ()))))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise CacheError(f"{name} is damaged: {reason}.", again) from None


def _share_equal(seen: dict[Any, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The first of equal rows, or a record with shared texts: 10,000 kernels have 310,000 rows, most of them equal."""
    try:
        equal: dict[str, Any] | None = seen.get((*record, *record.values(), record["value"].__class__))
        is_row = equal is None and len(seen) < _MOST_SHARED
    except (KeyError, TypeError):  # no row, or one whose value is a list
        equal, is_row = None, False
    if equal is None:
        equal = {key: seen.setdefault(x, x) if x.__class__ is str else x for key, x in record.items()}
    if is_row:
        identity = (*equal, *equal.values(), equal["value"].__class__)
        seen[identity] = equal
    return equal


_RENAMED_FACTS: Mapping[str, str] = {
    "shared.values handed to partitions": "shared.values captured by partitions",
    "in_flight.covered": "in_flight.overlap",
}
"""Key of a fact in version 1 → in version 2, without the name of its region."""


def upgrade_document(document: dict[str, Any]) -> dict[str, Any]:
    """A baseline of version 1 in version 2: only keys of facts changed. Other documents keep their keys."""
    if document.get("schema_version") != 1:
        return document
    for row in (row for kernel in document.get("kernels", []) for row in kernel.get("facts", [])):
        region = f"{row['region']}." if row.get("region") else ""
        key = row["key"].removeprefix(region)
        row["key"] = region + _RENAMED_FACTS.get(key, key)
    return {**document, "schema_version": 2}


def _parse_recorded(record: Mapping[str, Any]) -> BaselineKernel:
    on = record["target"]
    gpu = None if on is None else Target(Backend(on["backend"]), Arch(_text(on["arch"])), int(on["warp_size"]))
    signature, tiles = record["signature"], record["tiles"]
    artifact = Artifact(
        directory=".",
        stem=_text(record["name"]),
        name=_text(record["symbol"]),
        display_name=_text(record["name"]),
        hash=_text(record["hash"]),
        target=gpu,
        triton_version=None if record["triton_version"] is None else TritonVersion(_text(record["triton_version"])),
        num_warps=_number(record["num_warps"]),
        num_stages=_number(record["num_stages"]),
        shared_bytes=_number(record["shared_bytes"]),
        state=Completeness.RECORDED,
        files={},
        metadata={},
    )
    summary = Summary(
        name=artifact.display_name,
        target=None if gpu is None else gpu.arch,
        triton=artifact.triton_version,
        signature=None if signature is None else tuple(map(_text, signature)),
        tiles=None if tiles is None else tuple(Tile(_text(tile)) for tile in tiles),
        options={_text(key): _value(value) for key, value in record["options"].items()},
        steps=tuple(map(_text, record["steps"])),
        rows=tuple(_parse_row(row) for row in record["facts"]),
    )
    digests = {_text(key): _text(value) for key, value in record["digests"].items()}
    source = None if record["source"] is None else _text(record["source"])
    times = tuple(_parse_time(time) for time in record.get("times", ()))
    return BaselineKernel(artifact=artifact, summary=summary, digests=digests, source=source, times=times)


def _parse_time(time: Mapping[str, Any]) -> RecordedTime:
    launch, (gpu, bottleneck) = time["launch"], (time[key] and _text(time[key]) for key in ("gpu", "bottleneck"))
    if not isinstance(launch, dict) or not isinstance(launch.get("args"), dict):
        raise TypeError("a recorded launch has no arguments")
    microseconds, cycles = (time[key] and float(time[key]) for key in ("microseconds", "cycles"))
    return RecordedTime(launch, gpu, microseconds, cycles, bottleneck, time.get("is_sampled") is not False)


def _parse_row(row: Mapping[str, Any]) -> Row:
    key, category, label, unit, step, region = texts = _ROW_TEXTS(row)
    if set(map(type, texts)) != {str}:
        raise TypeError(f"{texts!r:.120} are not texts")
    if category not in CATEGORIES:
        raise ValueError(f"{category!r} is not a category of facts")
    return Row(key, category, label, unit, _value(row["value"]), step, region)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _number(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r:.40} is not a number")


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(map(_text, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r:.40} is not a value of a fact")
