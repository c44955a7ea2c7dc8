"""A tritonparse trace reads as the cache that it came from."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.errors import CacheError
from artifact_inspector.execution.launch_requests import parse_recorded
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model.limits import TRACE_LINE_MIB

TEXTS = (".ttir", ".ttgir", ".llir", ".ptx", ".amdgcn", ".json")


def compilation(entry: Path) -> dict:
    """The event that tritonparse writes for an entry of a cache."""
    files = [file for file in sorted(entry.iterdir()) if not file.name.startswith("__grp__")]
    metadata = json.loads(next(entry.glob("[!_]*.json"), next(entry.glob("_[!_]*.json"), None)).read_text())
    return {
        "event_type": "compilation",
        "pid": 1,
        "stack": [{"line": 3, "name": "main", "filename": ["/a.py", 1], "loc": "f[g](x)"}],
        "timestamp": "2026-07-07T19:58:27.%fZ",
        "payload": {
            "metadata": {"cache_hit": True, **metadata, "src_constants": {"(1,)": 64}},
            "file_path": {file.name: f"/home/u/.triton/cache/{entry.name}/{file.name}" for file in files},
            "file_content": {file.name: file.read_text() for file in files if file.suffix in TEXTS},
            "python_source": {
                "file_path": "/a.py",
                "start_line": 3,
                "end_line": 5,
                "code": "@triton.jit\ndef k(x, B: tl.constexpr):\n    pass\n",
            },
        },
    }


def launch(digest: str, **changes: object) -> dict:
    tensor = {
        "type": "tensor",
        "shape": [64, 32],
        "dtype": "torch.float16",
        "stride": [32, 1],
        "data_ptr": "0x7e744ac00200",
    }
    return {
        "event_type": "launch",
        "name": "k",
        "grid": [4],
        "compilation_metadata": {"hash": digest},
        "extracted_args": {"x": tensor, "n": {"type": "int", "value": 7}, "f": {"type": "float", "value": 0.5}},
        **changes,
    }


def write_trace(path: Path, events: list) -> Path:
    text = "".join((event if isinstance(event, str) else json.dumps(event)) + "\n" for event in events).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def document(path: Path) -> dict:
    done = CliRunner().invoke(app, [str(path), "--json", "--no-index"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["ndjson", "ndjson.gz", "bin.ndjson"])
def test_a_trace_and_its_cache_give_equal_json(tmp_path: Path, suffix: str) -> None:
    entries = [*(FIXTURES / "3.6.0" / "sm_80").glob("*/*"), *(FIXTURES / "3.9.0").glob("gfx942/softmax/*")]
    entries = [entry for entry in entries if entry.is_dir()][:: 1 if suffix == "ndjson" else 8]
    cache = tmp_path / "cache"
    for entry in entries:
        (cache / entry.name).mkdir(parents=True)
        for file in entry.iterdir():
            if file.suffix in TEXTS and not file.name.startswith("__grp__"):
                (cache / entry.name / file.name).write_bytes(file.read_bytes())
    trace = write_trace(
        tmp_path / f"trace.{suffix}", [*map(compilation, entries), {"event_type": "launch_diff", "name": "k"}]
    )
    if suffix == "bin.ndjson":  # one gzip member for each event
        trace.write_bytes(b"".join(gzip.compress(line) for line in trace.read_bytes().splitlines(keepends=True)))
    expected, actual = document(cache), document(trace)
    # the trace has more: where the source is
    assert [file["kind"] for file in actual.pop("other_files")] == ["manifest of compiled kernels"]
    assert expected.pop("other_files") == []
    assert {kernel.pop("requested_kernel") for kernel in actual["kernels"]} == {"captured at /a.py:3"}
    assert {kernel.pop("requested_kernel") for kernel in expected["kernels"]} == {None}
    assert len(expected["kernels"]) == len(entries)
    assert actual == expected


def test_its_constants_and_launches_are_recorded(tmp_path: Path) -> None:
    entry = next((FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir())
    digest = compilation(entry)["payload"]["metadata"]["hash"]
    events = [
        compilation(entry),
        compilation(entry),
        launch(digest),
        launch(digest),
        launch(digest, grid=[2, 3]),
        launch("gone"),
    ]
    cache = open_cache(write_trace(tmp_path / "t.ndjson", events))
    assert [dict(entry.constants) for entry in cache.entries] == [{"B": 64}]
    rows = read_launches(cache.root)
    assert [row["grid"] for row in rows] == [[4, 1, 1], [2, 3, 1]]
    (request, _) = parse_recorded(rows, cache.root)
    assert (request.arguments["n"], request.arguments["f"]) == (7, 0.5)
    tensor = request.arguments["x"]
    assert (tensor.shape, tensor.dtype, tensor.pointer) == ((64, 32), "float16", 0x7E744AC00200)
    assert [problem.problem for problem in cache.missing] == [
        "1 launches of kernels that the trace has no compilation of"
    ]


def test_a_text_that_the_trace_lacks_is_named(tmp_path: Path) -> None:
    event = compilation(next((FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir()))
    event["payload"]["file_content"]["softmax_kernel.llir"] = "<file too large: 20000000 bytes>"
    cache = open_cache(write_trace(tmp_path / "t.ndjson", [event]))
    assert "llir" not in cache.entries[0].files
    assert "softmax_kernel.llir" in cache.missing[0].problem


HOSTILE = [
    '{"event_type": "compilation", "payload": {"metadata": {"hash": "../../x"}, "file_content": {"a.ptx": "1"}}}',
    '{"event_type": "compilation", "payload": {"file_path": {"a": "/x/../a.ptx"}, "file_content": {"../../../a.ptx": "1"}}}',
    '{"event_type": "compilation", "payload": {"metadata": {"hash": "h"}, "file_content": {"/etc/a.ptx": "1"}}}',
    '{"event_type": "compilation", "payload": []}',
    '{"event_type": "compilation"}',
    '{"event_type": "launch", "compilation_metadata": 3}',
    '{"a": ' + "[" * 5000,
    "[1, 2]",
    "not json",
    '{"event_type": "launch", "grid": ["x"], "compilation_metadata": {"hash": "h"}, "extracted_args": {}}',
    '{"event_type": "launch", "grid": [1], "compilation_metadata": {"hash": ["h"]}, "extracted_args": {"x": {"type": "tensor"}}}',
]


def test_hostile_events_are_named_and_write_nothing_outside(tmp_path: Path) -> None:
    good = compilation(next((FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir()))
    trace = write_trace(tmp_path / "t.ndjson", [good, *HOSTILE])
    before = set(tmp_path.rglob("*"))
    cache = open_cache(trace)
    assert "softmax_kernel" in [entry.stem for entry in cache.entries]
    assert set(tmp_path.rglob("*")) == before
    files = [file for file in cache.root.parent.rglob("*") if file.is_file()]
    assert all(file.parent.parent in (cache.root, cache.root.parent) for file in files)
    assert {problem.problem.partition(":")[0] for problem in cache.missing} >= {
        f"line {n}" for n in (5, 6, 7, 8, 9, 10, 11, 12)
    }


def test_a_trace_without_kernels_or_with_a_huge_event_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CacheError, match="no `compilation` event"):
        open_cache(write_trace(tmp_path / "a.ndjson", [launch("x")]))
    monkeypatch.setenv(TRACE_LINE_MIB.variable, "1")
    good = compilation(next((FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir()))
    cache = open_cache(write_trace(tmp_path / "b.ndjson", [json.dumps({"x": "y" * (3 << 20)}), good]))
    assert len(cache.entries) == 1
    assert TRACE_LINE_MIB.variable in cache.missing[0].problem


def test_a_launch_whose_hash_is_no_text_is_one_without_a_kernel(tmp_path: Path) -> None:
    entry = next(entry for entry in (FIXTURES / "3.6.0" / "sm_80").glob("copy/*") if entry.is_dir())
    found = document(write_trace(tmp_path / "t.ndjson", [compilation(entry), launch({"a": []})]))  # type: ignore[arg-type]
    assert len(found["kernels"]) == 1
    assert "1 launches of kernels that the trace has no compilation of" in json.dumps(found["problems"])


def test_a_directory_of_traces_has_their_kernels_and_launches(tmp_path: Path) -> None:
    entries = [next((FIXTURES / "3.6.0" / target / "softmax").iterdir()) for target in ("sm_80", "gfx942")]
    for number, entry in enumerate(entries):
        events = [compilation(entry), launch(compilation(entry)["payload"]["metadata"]["hash"], grid=[number + 1])]
        write_trace(tmp_path / f"rank_{number}.ndjson.gz", events)
    cache = open_cache(tmp_path)
    assert [entry.directory for entry in cache.entries] == [
        f"rank_{number}.ndjson.gz/{entries[number].name}" for number in (1, 0)
    ]
    assert sorted(row["grid"] for row in read_launches(cache.root)) == [[1, 1, 1], [2, 1, 1]]
