"""The record beside a cache loses no launch; values of tensors are stored once, in files that are checked."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artifact_inspector.compiling.ask import manifest
from artifact_inspector.compiling.ask.manifest import add_to_manifest, create_directory, read_launches, read_manifest
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.launch_requests import parse_recorded
from artifact_inspector.files.records import MANIFEST, MAX_RECORD_BYTES
from artifact_inspector.files.tensor_values import VALUES_DIRECTORY


def launch(number: int, *tensors: list[int]) -> dict[str, Any]:
    args = {f"index{position}": tensor(values) for position, values in enumerate(tensors)}
    return {"hash": f"{number:064x}", "kernel": "k", "target": "sm_90", "grid": [number + 1, 1, 1], "args": args}


def tensor(values: list[int]) -> dict[str, Any]:
    return {"shape": [len(values)], "stride": [1], "dtype": "int64", "alignment": 512, "values": values}


def test_a_full_record_refuses_a_launch_and_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_RECORD_BYTES", 3000)
    rows = [{"kernel": f"k{number}"} for number in range(40)]
    add_to_manifest(tmp_path, (), rows)
    with pytest.raises(CacheError, match=r"200 new launches; at most 0 MiB are read\. It is unchanged"):
        add_to_manifest(tmp_path, (), [{"kernel": f"new{number}"} for number in range(200)])
    assert read_launches(tmp_path) == rows


def test_a_full_record_drops_entries_without_a_kernel_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "present").mkdir()
    rows = [{"kernel": "k", "place": f"{n}.py:k", "directory": "present" if n == 3 else "gone"} for n in range(40)]
    (tmp_path / MANIFEST).write_text(json.dumps({"entries": rows}))
    monkeypatch.setattr(manifest, "MAX_RECORD_BYTES", 3000)
    add_to_manifest(tmp_path, (), [{"kernel": "new"}])
    assert read_manifest(tmp_path) == [rows[3]]
    assert read_launches(tmp_path) == [{"kernel": "new"}]


def test_1000_configurations_keep_their_index_tensors(tmp_path: Path) -> None:
    """One file for each different tensor, however many launches refer to it."""
    rows, columns = [n * 7 % 60_000 for n in range(60_000)], [-n for n in range(60_000)]
    add_to_manifest(tmp_path, (), [launch(number, rows, columns) for number in range(1000)])
    add_to_manifest(tmp_path, (), [launch(0, list(rows), list(columns))])  # the same launch again
    recorded = read_launches(tmp_path)
    assert len(recorded) == 1000
    assert len(list((tmp_path / VALUES_DIRECTORY).iterdir())) == 2
    assert (tmp_path / MANIFEST).stat().st_size < 2 << 20
    requests = parse_recorded(recorded, tmp_path)
    assert [request.grid[0] for request in requests] == list(range(1, 1001))
    assert not any(request.notes for request in requests)
    values = {request.arguments["index0"].values for request in requests}
    assert len(values) == 1
    assert values.pop().elements.tolist() == rows
    assert requests[999].arguments["index1"].values.elements.tolist() == columns


@pytest.mark.exhaustive
def test_a_record_of_200_mb_keeps_every_launch(tmp_path: Path) -> None:
    """Today's captures record at most 65,536 elements of a tensor."""
    tensors = [list(range(number << 31, (number << 31) + 65_536)) for number in range(1, 382)]
    add_to_manifest(tmp_path, (), [launch(number, values) for number, values in enumerate(tensors)])
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) > 199e6
    requests = parse_recorded(read_launches(tmp_path), tmp_path)
    assert len(requests) == 381
    for request, values in zip(requests, tensors, strict=True):
        assert request.notes == ()
        assert request.arguments["index0"].values.elements[-1] == values[-1]


@pytest.mark.parametrize(
    "elements", [[0] * 300, [-128, 127] * 150, [-129] * 300, [1 << 31] * 257, [-(1 << 63)] * 300, [(1 << 64) - 1] * 300]
)
def test_numpy_reads_the_files(tmp_path: Path, elements: list[int]) -> None:
    add_to_manifest(tmp_path, (), [launch(0, elements)])
    (file,) = (tmp_path / VALUES_DIRECTORY).iterdir()
    assert np.load(file, allow_pickle=False).tolist() == elements
    assert file.stem == hashlib.sha256(file.read_bytes()).hexdigest()


def test_small_and_strange_values_stay_in_the_record(tmp_path: Path) -> None:
    strange = [launch(0, [1, 2, 3]), launch(1, [1 << 70] * 300), launch(2, ["x"] * 300)]  # type: ignore[list-item]
    add_to_manifest(tmp_path, (), strange)
    assert read_launches(tmp_path) == strange


def test_values_that_cannot_be_written_stay_in_the_record(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / VALUES_DIRECTORY).symlink_to(elsewhere)
    add_to_manifest(tmp_path / "cache", (), [launch(0, [5] * 300)])
    assert read_launches(tmp_path / "cache") == [launch(0, [5] * 300)]
    assert not list(elsewhere.iterdir())


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


HOSTILE_FILES = {
    "a pickle": _npy(np.array([{}], object)),
    "a structure": _npy(np.zeros(4, "i4,f4")),
    "text": _npy(np.array(["x"])),
    "two dimensions": _npy(np.zeros((2, 2))),
    "a header of 1 TB": _npy(np.zeros(4, "i8")).replace(b"(4,)", b"(137438953472,)"),
    "a short file": _npy(np.zeros(400, "i8"))[:-8],
    "a header that is code": _npy(np.zeros(4, "i8")).replace(b"'<i8'", b"exit()"),
    "no array": b"PK\x03\x04",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_hostile_file_of_values_is_a_note(tmp_path: Path, name: str) -> None:
    digest = hashlib.sha256(HOSTILE_FILES[name]).hexdigest()
    (tmp_path / VALUES_DIRECTORY).mkdir()
    (tmp_path / VALUES_DIRECTORY / f"{digest}.npy").write_bytes(HOSTILE_FILES[name])
    (request,) = parse_recorded([launch(0, {"sha256": digest})], tmp_path)  # type: ignore[arg-type]
    assert request.arguments["index0"].values is None
    assert request.notes == ("the values of index0 are unknown: the file is not a NumPy array of numbers",)


@pytest.mark.parametrize("reference", ["../../x", "a" * 63, "A" * 64, 7, None, "x\0", "a" * 64])
def test_a_reference_is_a_digest_and_no_path(tmp_path: Path, reference: object) -> None:
    row = {"grid": [1], "args": {"x": {"shape": [4], "dtype": "i64", "values": {"sha256": reference}}}}
    (request,) = parse_recorded([row], tmp_path)
    assert request.arguments["x"].values is None
    (note,) = request.notes
    assert "the values of x are unknown" in note


def test_a_changed_or_removed_file_of_values_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_to_manifest(tmp_path, (), [launch(0, [5] * 300, [6] * 300)])
    monkeypatch.setenv("ARTIFACT_INSPECTOR_MOST_VALUES_MIB", "0")
    (request,) = parse_recorded(read_launches(tmp_path), tmp_path)
    assert all("set ARTIFACT_INSPECTOR_MOST_VALUES_MIB" in note for note in request.notes)
    monkeypatch.delenv("ARTIFACT_INSPECTOR_MOST_VALUES_MIB")
    changed, removed = sorted((tmp_path / VALUES_DIRECTORY).iterdir())
    changed.write_bytes(_npy(np.zeros(300, "i1")))
    removed.unlink()
    (request,) = parse_recorded(read_launches(tmp_path), tmp_path)
    assert sorted(note.rpartition(" ")[2] for note in request.notes) == ["changed", "missing"]


@pytest.mark.long
def test_a_record_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    entries = json.dumps({"entries": [{"kernel": "k"}]})
    place = tmp_path / MANIFEST
    place.write_text(entries + " " * (MAX_RECORD_BYTES - len(entries)))
    assert read_manifest(tmp_path) == [{"kernel": "k"}]
    place.write_text(entries + " " * (MAX_RECORD_BYTES - len(entries) + 1))
    assert read_manifest(tmp_path) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"entries": 1}', pytest.param("[" * 100_000, id="deep")])
def test_a_record_that_cannot_be_read_is_not_written_over(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(UsageError, match=r"inspect-kernel\.json cannot be read, and its contents would be lost"):
        create_directory(tmp_path)
    add_to_manifest(tmp_path, (), [{"kernel": "k"}])
    assert (tmp_path / MANIFEST).read_text() == text
