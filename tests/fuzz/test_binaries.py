"""Cubins and hsacos of malice: a small file costs little, whatever its tables say."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.files.binaries import read_cubin, read_hsaco, read_interface, read_loaded_sections
from tests.fuzz.binaries import give

FIXTURES = Path(__file__).parents[2] / "fixtures"
CUBIN = next(FIXTURES.glob("3.6.0/sm_80/copy/*/copy.cubin")).read_bytes()
HSACO = next(FIXTURES.glob("3.6.0/gfx942/copy/*/copy.hsaco")).read_bytes()


def elf(like: bytes, sections: list[tuple[int, int, int, int]], content: bytes) -> bytes:
    """A file with such sections (name, type, offset, size), whose names stand in the content."""
    head = bytearray(like[:64])
    start = 64 + len(content)
    struct.pack_into("<Q", head, 0x28, start)
    struct.pack_into("<HHH", head, 0x3A, 64, len(sections), 0)
    rows = (struct.pack("<IIQQQQIIQQ", *row[:2], 0, 0, *row[2:], 0, 0, 0, 0) for row in sections)
    return bytes(head) + content + b"".join(rows)


NAMES = b"\0.nv.info.k\0.text.k\0.note\0"
MANY = 20_000
BOMBS = {
    "sections upon each other": [(1, 1, 64, 4_000_000)] * MANY,
    "one name for all": [(0, 3, 64, 100), *[(40, 1, 64, 0)] * MANY],
    "a section of notes without end": [(0, 3, 64, len(NAMES)), (20, 7, 64, 4_000_000)],
    "attributes without end": [(0, 3, 64, len(NAMES)), (1, 1, 64, 4_000_000)],
}


@pytest.mark.parametrize("like", [CUBIN, HSACO], ids=["cubin", "hsaco"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_tables_that_ask_for_much_are_refused_at_once(like: bytes, bomb: str) -> None:
    data = elf(like, BOMBS[bomb], NAMES + b"a" * 4_000_000)
    before = time.process_time()
    for read in (read_cubin, read_interface) if like is CUBIN else (read_hsaco,):
        with pytest.raises(CacheError):
            read(data)
    if "without end" not in bomb:
        with pytest.raises(CacheError):
            read_loaded_sections(data, "cubin" if like is CUBIN else "hsaco")
    assert time.process_time() - before < 2


@pytest.mark.parametrize("suffix", ["cubin", "hsaco"])
def test_damaged_binaries_and_their_tools_end_in_words(
    suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = give(suffix, range(4))
    assert found["read"] + found["refused"] == 4
