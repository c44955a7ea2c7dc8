"""Reuses the stages after TTGIR of a finished compile, for a compile with equal TTGIR.

Configurations often differ in an option, such as `num_stages`, that changes nothing in this kernel. The options and
metadata that later stages read are recorded while they run. A later compile takes their results if its TTGIR is equal,
and all of its metadata but what they did not read. So no list of options has to fit a version of Triton.

Source: triton/compiler/compiler.py, `compile` (3.0 to 3.9): a stage maps a module and the metadata to the next module,
    and the metadata has all options and the relevant environment variables.
"""

from __future__ import annotations

import json
import os
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.publishing import entry_metadata

_STAGE = "ttgir"
_ALL = "*"
_TYPES: Mapping[str, Callable[[Path], str | bytes]] = {"str": Path.read_text, "bytes": Path.read_bytes}
_finished: dict[str, list[tuple[Mapping[str, Any], Path]]] = {}
"""Digest of a TTGIR → records of compiles with their entries. Child processes inherit it."""


class StageRecord:
    """What the later stages of a compile in this process depend on, and what they change."""

    def __init__(self) -> None:
        self.text: str | None = None
        """Digest of the TTGIR; None before the later stages."""
        self.metadata: dict[str, str] = {}
        """Metadata before the later stages."""
        self.reads = {"ir_override"}  # Triton reads it between stages
        """Names of options and metadata; `*` for all."""
        self.writes: dict[str, None] = {}
        """Names of metadata, in order."""
        self.types: dict[str, str] = {}
        """Stage → type of its result; empty if the stages were reused."""
        self.offset = 0
        """Size of the compiler's output before the later stages, in bytes."""

    def as_json(self) -> dict[str, Any] | None:
        """The record, for `remember`; None if its stages cannot be reused."""
        if self.text is None or not self.types or not {*self.types.values()} <= _TYPES.keys() or _ALL in self.reads:
            return None
        return {**vars(self), "reads": sorted(self.reads), "writes": [*self.writes]}


def remember(record: Mapping[str, Any] | None, entry: Path) -> None:
    """Let compiles that start from now on reuse the stages of a finished one."""
    if record is not None:
        _finished.setdefault(record["text"], []).append((record, entry))


@contextmanager
def reused_stages(target: Any, record: StageRecord) -> Iterator[None]:
    """Reuse finished stages in the one compile of a block; their output is printed to standard error again.

    Args:
        record: empty; filled by the compile.
    """
    from triton.compiler.compiler import make_backend  # only in processes that have Triton

    knobs = getattr(sys.modules["triton"], "knobs", None)
    hook = getattr(getattr(knobs, "runtime", None), "add_stages_inspection_hook", None)
    is_overridden = os.environ.get("TRITON_KERNEL_OVERRIDE", "0") != "0"
    if hook or getattr(getattr(knobs, "compilation", None), "override", is_overridden):  # these may change any stage
        yield
        return
    backend: Any = type(make_backend(target))
    add_stages = backend.add_stages

    def add_reused(self: Any, stages: dict[str, Any], options: Any, *arguments: Any) -> None:
        watched: dict[str, Any] = {}
        add_stages(self, stages, options, *arguments)
        add_stages(self, watched, _watch_options(options, record), *arguments)
        names = [*stages]
        later = names[names.index(_STAGE) + 1 :] if _STAGE in names else []
        results: dict[str, Any] = {}

        def run(name: str, stage: Callable[[Any, Any], Any], module: Any, metadata: dict[str, Any]) -> Any:
            if name == later[0]:
                _begin(record, module, metadata)
                results.update(_find_results(record, later, metadata))
            if name in results:
                return results[name]
            result = stage(module, _WatchedMetadata(metadata, record))
            record.types[name] = type(result).__name__
            return result

        def replaced(name: str, stage: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            return lambda module, metadata: run(name, stage, module, metadata)

        stages.update({name: replaced(name, watched[name]) for name in later})

    backend.add_stages = add_reused
    try:
        yield
    finally:
        backend.add_stages = add_stages


class _WatchedMetadata(UserDict[str, Any]):
    """Metadata that records which names are read and written."""

    def __init__(self, data: dict[str, Any], record: StageRecord) -> None:
        self.data, self._record = data, record

    def __getitem__(self, name: str) -> Any:
        self._record.reads.add(name)
        return self.data[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._record.writes[name] = None
        self.data[name] = value

    def __iter__(self) -> Iterator[str]:
        self._record.reads.add(_ALL)
        return iter(self.data)


def _watch_options(options: Any, record: StageRecord) -> Any:
    """A copy of the options that records which are read; any other attribute may depend on all.

    It equals no other options, so that a function with a cache reads it again.
    """
    kind, names = type(options), frozenset(vars(options))

    class _WatchedOptions(kind):  # type: ignore[misc, valid-type]
        def __getattribute__(self, name: str) -> Any:
            if name != "__class__":
                record.reads.add(name if name in names else _ALL)
            return super().__getattribute__(name)

        def __hash__(self) -> int:
            return id(self)

    watched = object.__new__(_WatchedOptions)
    object.__getattribute__(watched, "__dict__").update(vars(options))
    return watched


def _begin(record: StageRecord, module: Any, metadata: Mapping[str, Any]) -> None:
    record.text = sha256(str(module).encode()).hexdigest()
    record.metadata = {name: repr(value) for name, value in metadata.items()}
    with suppress(OSError):  # no file that is read again
        record.offset = os.lseek(2, 0, os.SEEK_END)


def _find_results(record: StageRecord, stages: list[str], metadata: dict[str, Any]) -> dict[str, Any]:
    """The results of later stages by a finished compile, with their changes of the metadata; empty if there is none."""
    for finished, entry in _finished.get(record.text or "", ()):
        names = record.metadata.keys() | finished["metadata"].keys()
        differing = {name for name in names if record.metadata.get(name) != finished["metadata"].get(name)}
        path = entry_metadata(entry)
        if path is None or differing & {*finished["reads"]} or [*finished["types"]] != stages:
            continue
        try:
            results = {name: _TYPES[kind](path.with_suffix(f".{name}")) for name, kind in finished["types"].items()}
            new_metadata = json.loads(path.read_text())
            remarks = path.with_suffix(".remarks")
            output = remarks.read_bytes()[finished["offset"] :] if remarks.is_file() else b""
            metadata.update({name: new_metadata[name] for name in finished["writes"]})
        except (OSError, ValueError, KeyError):
            continue
        os.write(2, output)
        return results
    return {}
