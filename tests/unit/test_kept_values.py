"""Values of kernels in an index that says something else: they are computed again."""

from __future__ import annotations

from pathlib import Path

import pytest
from saved import ROOT

from artifact_inspector.api.kept_values import is_object_text, kept_values
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.index import Index

CACHE = ROOT / "fixtures" / "3.6.0" / "sm_90"


@pytest.mark.parametrize("damage", [b"nonsense", b"[" * 100_000, b"[1, 2]", b'"x"', b"null", b"\xff"])
def test_what_has_another_form_is_computed_again(tmp_path: Path, damage: bytes) -> None:
    artifacts = open_cache(CACHE).entries[:3]

    def open_index() -> Index:
        return Index(tmp_path / "index.sqlite", pytest.fail)

    def values() -> tuple[list[object], list[str]]:
        computed: list[str] = []

        def compute(missing):  # type: ignore[no-untyped-def]
            for artifact in missing:
                computed.append(artifact.hash)
                yield {"hash": artifact.hash}

        found = kept_values(
            artifacts, b"test", lambda x: x.hash, compute, open_index, lambda value: isinstance(value, dict)
        )
        return list(found), computed

    expected = [{"hash": artifact.hash} for artifact in artifacts]
    assert values() == (expected, [artifact.hash for artifact in artifacts])
    assert values() == (expected, [])
    with open_index() as index:
        index.put(dict.fromkeys(_keys(tmp_path / "index.sqlite")[:1], damage))
    found, computed = values()
    assert found == expected
    assert len(computed) == 1


def _keys(file: Path) -> list[bytes]:
    import sqlite3

    connection = sqlite3.connect(file)
    keys = [key for (key,) in connection.execute("SELECT key FROM facts")]
    connection.close()
    return keys


@pytest.mark.parametrize(
    ("text", "expected"), [("{}", True), ('{"a": NaN}', False), ("[]", False), ("{", False), (3, False)]
)
def test_the_text_of_an_object_is_json_of_one(text: object, expected: bool) -> None:
    assert is_object_text(text) is expected
