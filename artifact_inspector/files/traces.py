"""Writes the kernels of a tritonparse trace as a Triton cache.

A trace is a text with one JSON object per line. A `compilation` event has the texts of all stages but no binary,
the metadata, the source and the constants; a `launch` event has the grid and the arguments. Mapped files have
the same events. Other events (`launch_diff`, `autotune` …) are not needed. Trace paths only name directories.

Source: github.com/meta-pytorch/tritonparse, tritonparse/structured_logging.py.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from artifact_inspector.files.artifact import SUFFIXES, sanitize
from artifact_inspector.files.records import MANIFEST, MAX_RECORD_BYTES
from artifact_inspector.model.limits import PROBLEMS, TRACE_LINE_MIB

TRACE_SUFFIXES = (".ndjson", ".jsonl")
_MAX_ALIGNMENT = 512
"""The alignment of torch's allocator; a larger one is chance."""
_MAX_LAUNCHES = 10_000


def is_trace(head: bytes, name: str) -> bool:
    """Whether a file with this beginning and name may be a trace."""
    return name.endswith(TRACE_SUFFIXES) and head.lstrip().startswith(b"{")


class TraceWriter:
    """Collects the events of one trace, and writes its kernels into a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._entries: dict[str, dict[str, Any]] = {}
        self._launches: dict[str, dict[str, Any]] = {}
        self._has_kernels = False

    def convert(self, stream: IO[bytes], spend: Callable[[int], None]) -> Iterator[str]:
        """Write the kernels and the record of launches.

        Args:
            spend: called with the bytes of each file; raises where they are too many.

        Returns:
            What is wrong with the trace, as the end of a sentence each.
        """
        max_bytes, problems = TRACE_LINE_MIB.value << 20, 0
        number = 0
        while line := stream.readline(max_bytes + 1):
            number += 1
            sentence = ""
            if len(line) > max_bytes:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(1 << 20)
                sentence = f"event of more than {TRACE_LINE_MIB.value} MiB: set {TRACE_LINE_MIB.variable} to read it"
            elif line.strip():
                try:
                    sentence = self._add_event(json.loads(line), spend)
                except (ValueError, RecursionError) as error:
                    sentence = f"not a JSON object ({str(error)[:80]})"
                except (TypeError, LookupError, AttributeError, OSError) as error:
                    sentence = f"not an event of tritonparse ({type(error).__name__}: {str(error)[:80]})"
            if sentence:
                problems += 1
                if problems <= PROBLEMS.value:
                    yield f"line {number}: {sentence}"
        if problems > PROBLEMS.value:
            yield f"{problems - PROBLEMS.value} more events could not be read"
        if not self._has_kernels:
            yield "no `compilation` event: it is no trace of tritonparse, or it has only launches"
            return
        yield from self._write_record(spend)

    def _add_event(self, event: Mapping[str, Any], spend: Callable[[int], None]) -> str:
        kind = event["event_type"]
        if kind == "compilation":
            return self._add_kernel(event["payload"], spend)
        if kind == "launch" and len(self._launches) < _MAX_LAUNCHES:
            row = _launch_row(event)
            self._launches.setdefault(json.dumps(row), row)
        return ""

    def _add_kernel(self, payload: Mapping[str, Any], spend: Callable[[int], None]) -> str:
        metadata, paths = payload.get("metadata") or {}, payload.get("file_path") or {}
        digest = str(metadata.get("hash") or "")
        parents = {PurePosixPath(str(path)).parent.name for path in paths.values()}
        name = sanitize(parents.pop() if len(parents) == 1 else digest).replace("/", "_")[:128]
        if name in ("", ".", ".."):
            return "a compilation without a hash or a path"
        texts = {PurePosixPath(str(file)).name: text for file, text in (payload.get("file_content") or {}).items()}
        missing = [file for file, text in texts.items() if not isinstance(text, str) or text.startswith("<")]
        texts = {file: text for file, text in texts.items() if file not in missing}
        if not texts:
            return f"the compilation {name[:12]} has no texts"
        directory = self._directory / name
        if directory.exists():
            return ""  # compiled once more, or loaded from the cache by another process
        directory.mkdir(parents=True)
        stem = next(iter(texts)).rpartition(".")[0]
        texts.setdefault(f"{stem}.json", json.dumps({key: metadata[key] for key in metadata if key not in _ADDED_KEYS}))
        for file, text in texts.items():
            if file.rpartition(".")[2] in SUFFIXES:
                content = text.encode(errors="replace")
                spend(len(content))
                (directory / sanitize(file)).write_bytes(content)
        self._has_kernels = True
        self._entries[digest or name] = _entry_row(name, payload, metadata)
        return "" if not missing else f"{', '.join(map(sanitize, missing[:5]))}: the trace has no text of it"

    def _write_record(self, spend: Callable[[int], None]) -> Iterator[str]:
        launches = [row for row in self._launches.values() if row["hash"] in self._entries]
        if len(launches) < len(self._launches):
            yield f"{len(self._launches) - len(launches)} launches of kernels that the trace has no compilation of"
        entries = [entry for entry in self._entries.values() if entry["constants"]]
        text = json.dumps({"schema_version": 1, "entries": entries, "launches": launches}).encode()
        if len(text) > MAX_RECORD_BYTES:
            yield f"the {len(launches):,} launches are too large to record"
            return
        if entries or launches:
            spend(len(text))
            (self._directory / MANIFEST).write_bytes(text)


_ADDED_KEYS = frozenset({"cache_hit", "env", "src_attrs", "src_cache_key", "src_constants"})
"""Keys that tritonparse adds to the metadata of Triton."""


def _entry_row(name: str, payload: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    source = payload.get("python_source") or {}
    target = metadata.get("target") or {}
    arch = str(target.get("arch", ""))
    return {
        "kernel": metadata.get("name"),
        "place": f"captured at {source.get('file_path')}:{source.get('start_line')}",
        "target": f"sm_{arch}" if target.get("backend") == "cuda" else arch,
        "triton": metadata.get("triton_version"),
        "constants": _named_constants(str(source.get("code") or ""), metadata.get("src_constants") or {}),
        "directory": name,
    }


def _named_constants(code: str, constants: Mapping[str, Any]) -> dict[str, Any]:
    """The constants by parameter; empty without the source, which has the names."""
    try:
        functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
        names = [argument.arg for argument in (*functions[0].args.posonlyargs, *functions[0].args.args)]
        return {
            names[path[0]]: value
            for key, value in constants.items()
            if len(path := ast.literal_eval(key)) == 1
            and (value is None or isinstance(value, bool | int | float | str))
        }
    except (SyntaxError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return {}


def _launch_row(event: Mapping[str, Any]) -> dict[str, Any]:
    metadata = event["compilation_metadata"]
    grid = [int(extent) for extent in event["grid"]]
    return {
        "grid": [*grid, 1, 1][:3],
        "args": {name: _argument(value) for name, value in event["extracted_args"].items()},
        "hash": str(metadata["hash"]),
        "kernel": str(event.get("name")),
    }


def _argument(value: Any) -> Any:
    """An argument as `compiling.arguments` writes it."""
    if not isinstance(value, dict):
        return value
    if value.get("type") != "tensor":
        inner = value.get("value")
        return inner if inner is None or isinstance(inner, bool | int | float) else str(inner)[:200]
    pointer = int(str(value.get("data_ptr") or "0"), 0)
    return {
        "shape": value["shape"],
        "stride": value["stride"],
        "dtype": str(value["dtype"]).removeprefix("torch."),
        "alignment": min(pointer & -pointer, _MAX_ALIGNMENT) or 1,
        "ptr": pointer,
    }
