"""Several cubins as one, disassembled by one start of nvdisasm."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.files import disassembly
from artifact_inspector.files.disassembly import CACHE_VARIABLE, disassemble, disassemble_all, find_disassembler
from artifact_inspector.files.merged_cubins import merge_cubins, merge_key, normalize, split_functions

TOOL = find_disassembler()
CUBINS = [path for path in sorted(FIXTURES.rglob("*.cubin")) if "broken" not in path.parts]


def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[Path]) -> list[str]:
    """The disassemblies that `disassemble_all` leaves in an empty cache, without a later start of the tool."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setattr(disassembly, "_run_and_check", lambda *_: "")
    assert TOOL is not None
    disassemble_all(paths, TOOL, lambda _: None)
    return [disassemble(path.read_bytes(), TOOL) for path in paths]


@pytest.mark.skipif(TOOL is None, reason="no nvdisasm")
def test_one_start_gives_each_cubin_the_text_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = defaultdict(list)
    for path in CUBINS:
        groups[merge_key(path.read_bytes())].append(path)
    largest = max(groups.values(), key=len)
    monkeypatch.setattr(disassembly.os, "cpu_count", lambda: 1)
    assert len(largest) > 2
    alone = [disassembly._run_and_check(path.read_bytes(), TOOL, "sm") for path in largest]  # type: ignore[arg-type]
    assert texts(tmp_path, monkeypatch, largest) == [normalize(text) for text in alone]


@pytest.mark.skipif(TOOL is None, reason="no nvdisasm")
def test_kernels_of_one_name_keep_their_names_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = FIXTURES.glob("3.6.0/sm_80/copy/*/copy.cubin")
    other = tmp_path / "copy.cubin"
    other.write_bytes(path.read_bytes() + b"\0")
    monkeypatch.setattr(disassembly.os, "cpu_count", lambda: 1)
    first, second = texts(tmp_path / "cache", monkeypatch, [path, other])
    assert first == second
    assert "copy:" in first
    assert "//## File" in first


def test_what_cannot_be_merged_is_refused() -> None:
    (path,) = FIXTURES.glob("3.6.0/sm_80/copy/*/copy.cubin")
    damaged = path.read_bytes().replace(b".debug_line\0", b".debug_Line\0")
    with pytest.raises(LookupError):
        merge_cubins([path.read_bytes(), damaged])


def test_a_text_is_the_same_whatever_else_its_cubin_has() -> None:
    head = '\t.headerflags\t@"EF_CUDA_SM90"\n\n'
    one = "//---- .text.a__merged_0__   --------------------------\n.L_x_4:\n  NOP;   /* 0x0000000000007918 */\n"
    two = "//---- .text.b__merged_1__ --------------------------\n.L_x_7:\n  BRA `(.L_x_7);\n"
    symbols = "\n\n//---- SYMBOLS ----\n\t.type x,@object\n"
    parts = split_functions(head + one + two + symbols)
    assert parts == [
        f"{head}//---- .text.a --------------------------\n.L_0:\n  NOP; /* 0x0000000000007918 */\n",
        f"{head}//---- .text.b --------------------------\n.L_0:\n  BRA `(.L_0);\n",
    ]


def test_a_name_that_prints_the_heading_of_another_function_is_noticed() -> None:
    headings = [f"//---- .text.a__merged_{number}__ ----\n" for number in (0, 1, 2)]
    assert len(split_functions("".join(headings))) == 3
    for forged in ([0, 1, 1, 2], [0, 2], [1, 2], [0, 2, 1], []):
        with pytest.raises(ValueError, match="in order"):
            split_functions("".join(headings[number] for number in forged))


def test_two_sections_of_one_name_are_not_merged() -> None:
    (path,) = FIXTURES.glob("3.6.0/sm_80/copy/*/copy.cubin")
    data = bytearray(path.read_bytes())
    table, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    rows = [bytes(data[table + 64 * at : table + 64 * at + 64]) for at in range(count)]
    code = max(rows, key=lambda row: struct.unpack_from("<Q", row, 8)[0] & 4)
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<H", data, 0x3C, count + 1)
    with pytest.raises(ValueError, match="too many values"):
        merge_cubins([bytes(data) + b"".join([*rows, code])])
