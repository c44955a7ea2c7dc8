"""The record beside a cache: no longer than it is read, and no more is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifact_inspector.compiling.ask import manifest
from artifact_inspector.compiling.ask.manifest import (
    add_to_manifest,
    create_directory,
    read_launches,
    read_manifest,
)
from artifact_inspector.errors import UsageError
from artifact_inspector.files.records import MANIFEST, MAX_RECORD_BYTES


def test_a_record_that_has_grown_beyond_what_is_read_keeps_the_later_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_RECORD_BYTES", 3000)
    for number in range(150):
        add_to_manifest(tmp_path, (), [{"kernel": f"k{number}"}])
        assert read_launches(tmp_path)[-1] == {"kernel": f"k{number}"}
    assert 30 < len(read_launches(tmp_path)) < 150
    assert (tmp_path / MANIFEST).stat().st_size <= 3000


def test_a_record_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    entries = json.dumps({"entries": [{"kernel": "k"}]})
    place = tmp_path / MANIFEST
    place.write_text(entries + " " * (MAX_RECORD_BYTES - len(entries)))
    assert read_manifest(tmp_path) == [{"kernel": "k"}]
    place.write_text(entries + " " * (MAX_RECORD_BYTES - len(entries) + 1))
    assert read_manifest(tmp_path) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"entries": 1}', "[" * 100_000])
def test_a_record_that_cannot_be_read_is_not_written_over(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(UsageError, match=r"inspect-kernel\.json cannot be read, and its contents would be lost"):
        create_directory(tmp_path)
    add_to_manifest(tmp_path, (), [{"kernel": "k"}])
    assert (tmp_path / MANIFEST).read_text() == text
