"""Running a disassembler on what nobody vouches for; the tools here are scripts that misbehave."""

from __future__ import annotations

import struct
import sys
import time
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files import disassembly
from artifact_inspector.files.disassembly import (
    CACHE_VARIABLE,
    Disassembler,
    disassemble,
    disassemble_all,
    find_disassembler,
)
from artifact_inspector.model.limits import TOOL_SECONDS

GOOD = "print('/*0000*/  NOP ;')"


def cubin(arch: int = 90, machine: int = 190) -> bytes:
    """The head of an ELF file: class 64, ABI 7, the machine at byte 18, the flags at byte 48."""
    head = bytearray(64)
    head[:9] = b"\x7fELF\x02\x01\x01\x33\x07"
    head[18:20] = struct.pack("<H", machine)
    head[48:52] = struct.pack("<I", arch)
    return bytes(head)


def program(path: Path, body: str, version: str = "V13.1.80") -> Path:
    """A script that tells its version as nvdisasm does, and else does what it is told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = f"nvdisasm: NVIDIA (R) CUDA disassembler\\nrelease, {version}"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        f"if '--version' in sys.argv:\n    print('{told}'); sys.exit()\n{body}\n"
    )
    path.chmod(0o755)
    return path


def tool(path: Path, body: str, version: str = "V13.1.80") -> Disassembler:
    found = find_disassembler(program(path / "nvdisasm", body, version))
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    disassembly._evict_oldest.cache_clear()
    disassembly._probe.cache_clear()
    return tmp_path / "xdg" / "artifact-inspector" / "sass"


def test_a_tool_tells_the_toolkit_it_is_of(tmp_path: Path) -> None:
    found = tool(tmp_path, GOOD, "V12.8.55")
    assert (found.version, found.release) == ("12.8.55", (12, 8))


def test_the_path_given_comes_first_then_triton_s_then_path_then_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "site" / "triton"
    places = [
        wheel / "backends" / "nvidia" / "bin" / "nvdisasm",
        tmp_path / "path" / "nvdisasm",
        tmp_path / "cuda" / "bin" / "nvdisasm",
    ]
    for place in places:
        program(place, GOOD)
    (wheel / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.delitem(sys.modules, "triton", raising=False)  # another test may have imported it
    monkeypatch.setenv("PATH", str(places[1].parent))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    given = program(tmp_path / "given", GOOD)
    assert find_disassembler(given) == Disassembler(given, "13.1.80")
    for place in places:
        assert find_disassembler() == Disassembler(place, "13.1.80")
        place.unlink()
        disassembly._probe.cache_clear()
    monkeypatch.delenv("CUDA_HOME")
    assert find_disassembler() is None


@pytest.mark.parametrize("text", ["#!/bin/sh\necho V1.2\n", "\x7fELF"])
def test_a_path_to_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    path.chmod(0o755)
    with pytest.raises(UsageError, match="is not a working nvdisasm"):
        find_disassembler(path)
    with pytest.raises(UsageError, match="is not a working nvdisasm"):
        find_disassembler(tmp_path / "nowhere")


def test_with_no_tool_the_remedy_names_the_ways_to_get_one() -> None:
    with pytest.raises(CacheError, match=r"^not disassembled: no nvdisasm was found") as caught:
        disassemble(cubin(), None)
    assert "--nvdisasm" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"nonsense" * 20, cubin(machine=224), cubin(arch=7)], ids=range(5)
)
def test_what_is_no_cubin_reaches_no_tool(tmp_path: Path, content: bytes) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(CacheError, match=r"^not disassembled: "):
        disassemble(content, tool(tmp_path, f"open({str(marker)!r}, 'w')"))
    assert not marker.exists()


def test_the_tool_works_on_a_copy_in_a_directory_of_its_own(tmp_path: Path) -> None:
    body = (
        "import stat\npath = sys.argv[-1]\n"
        "print('/*0000*/', open(path, 'rb').read(4), path, oct(os.stat(os.path.dirname(path)).st_mode))"
    )
    text = disassemble(cubin(), tool(tmp_path, body))
    assert "b'\\x7fELF'" in text
    assert "0o40700" in text
    assert not Path(text.split()[2]).exists()


def test_a_tool_that_hangs_is_stopped_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tool(tmp_path, "import subprocess\nsubprocess.run(['sleep', '60'])")
    monkeypatch.setenv(TOOL_SECONDS.variable, "1")
    start = time.monotonic()
    with pytest.raises(CacheError, match=r"took more than \d+ s"):
        disassemble(cubin(), hanging)
    assert time.monotonic() - start < 20  # far below the minute that its child sleeps


def test_a_tool_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="printed more than expected for this file"):
        disassemble(cubin(), tool(tmp_path, "while True: print('/*0000*/' * 1000)"))


@pytest.mark.parametrize("body", ["", "print('hello')", "sys.stdout.buffer.write(bytes(range(256)))"])
def test_a_tool_that_prints_no_code_is_an_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(CacheError, match="printed no code"):
        disassemble(cubin(), tool(tmp_path, body))


@pytest.mark.parametrize(
    ("arch", "version", "remedy"),
    [
        # Triton 3.9's refuses Volta, 3.6's does not know sm_103, 3.2's nothing after sm_90.
        (70, "V13.1.80", "CUDA 12 reads it"),
        (103, "V12.8.55", "CUDA 12.9 or later reads it"),
        (100, "V12.4.127", "CUDA 12.8 or later reads it"),
        (90, "V12.4.127", "truncated or damaged"),
    ],
)
def test_a_refusal_says_which_tool_would_do(tmp_path: Path, arch: int, version: str, remedy: str) -> None:
    refusing = tool(tmp_path, "sys.stderr.write('nvdisasm fatal : no\\n' * 999); sys.exit(1)", version)
    with pytest.raises(CacheError, match=rf"does not read this sm_{arch} cubin \(nvdisasm fatal : no") as caught:
        disassemble(cubin(arch), refusing)
    assert remedy in str(caught.value.remedy)


def test_branches_are_followed_only_where_one_is_indirect(tmp_path: Path) -> None:
    body = "print('/*0000*/  {} ;', '-ndf' in sys.argv)"
    assert disassemble(cubin(), tool(tmp_path, body.format("BRA"))).split()[-1] == "True"
    disassembly._probe.cache_clear()
    text = disassemble(cubin(80), tool(tmp_path, body.format("@P0 BRX R2 -0x10")))
    assert text.split()[-1] == "False"


def test_a_second_look_needs_no_tool(tmp_path: Path, kept: Path) -> None:
    first = tool(tmp_path, GOOD)
    text = disassemble(cubin(), first)
    first.path.unlink()
    assert disassemble(cubin(), first) == text
    assert len(list(kept.iterdir())) == 1
    with pytest.raises(CacheError):
        disassemble(cubin(80), first)
    with pytest.raises(CacheError):  # another version may print another text
        disassemble(cubin(), first._replace(version="13.2"))


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_kept_text_that_is_damaged_is_made_again(tmp_path: Path, kept: Path, content: bytes | None) -> None:
    found = tool(tmp_path, GOOD)
    text = disassemble(cubin(), found)
    (only,) = kept.iterdir()
    only.write_bytes(only.read_bytes()[:-5] if content is None else content)
    assert disassemble(cubin(), found) == text


def test_keeping_can_be_switched_off_and_a_place_that_cannot_be_written_is_no_fault(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tool(tmp_path, GOOD)
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert "NOP" in disassemble(cubin(), found)
    assert not kept.exists()
    monkeypatch.delenv(CACHE_VARIABLE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "NOP" in disassemble(cubin(), found)


def test_the_oldest_texts_go_when_there_are_too_many(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tool(tmp_path, GOOD)
    disassemble(cubin(), found)
    (old,) = kept.iterdir()
    disassembly._evict_oldest.cache_clear()
    monkeypatch.setattr(disassembly, "MAX_CACHE_BYTES", 1)
    disassemble(cubin(80), found)
    assert not old.exists()
    assert len(list(kept.iterdir())) == 1


def test_all_that_can_be_read_is_kept_and_the_rest_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    good, bad = tmp_path / "good.cubin", tmp_path / "bad.cubin"
    good.write_bytes(cubin())
    bad.write_bytes(b"no cubin")
    told: list[Path] = []
    disassemble_all([good, bad, tmp_path / "missing.cubin"], tool(tmp_path, GOOD), told.append)
    assert {path.stem for path in told} == {"good", "bad", "missing"}
    assert sum(path.is_file() for path in (tmp_path / "cache").rglob("*")) == 1


def repeated(copies: int, *, counted_elsewhere: bool = False) -> bytes:
    """A real cubin whose code is listed by many sections, so that a tool prints it as often."""
    data = bytearray(next(FIXTURES.glob("3.6.0/sm_80/copy/*/copy.cubin")).read_bytes())
    start, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    rows = [bytearray(data[start + 64 * number : start + 64 * number + 64]) for number in range(count)]
    code = max(rows, key=lambda row: struct.unpack_from("<Q", row, 8)[0] & 4)  # executable
    rows += [code] * copies
    if counted_elsewhere:
        struct.pack_into("<Q", rows[0], 0x20, len(rows))
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<H", data, 0x3C, 0 if counted_elsewhere else len(rows))
    return bytes(data) + b"".join(rows)


@pytest.mark.parametrize("counted_elsewhere", [False, True])
def test_a_small_cubin_that_lists_its_code_many_times_reaches_no_tool(tmp_path: Path, counted_elsewhere: bool) -> None:
    mark = tmp_path / "ran"
    bomb = tool(tmp_path, f"open({str(mark)!r}, 'w')\n{GOOD}")
    with pytest.raises(CacheError, match="overlapping sections"):
        disassemble(repeated(2000, counted_elsewhere=counted_elsewhere), bomb)
    assert not mark.exists()
    assert "/*0000*/" in disassemble(repeated(0), bomb)


@pytest.mark.long
def test_the_real_tool_has_limits_on_a_cubin_that_costs_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 copies of one kernel take nvdisasm a minute and 3 GiB: here it ends by its limits."""
    nvdisasm = find_disassembler()
    if nvdisasm is None:
        pytest.skip("no nvdisasm")
    monkeypatch.setattr(disassembly, "refuse_repeated_contents", lambda *_: None)
    monkeypatch.setenv(TOOL_SECONDS.variable, "3")
    before = time.monotonic()
    with pytest.raises(CacheError, match=r"took more than 3 s|printed more than expected|allocation"):
        disassemble(repeated(2000), nvdisasm)
    assert time.monotonic() - before < 30
    assert "EXIT" in disassemble(repeated(0), nvdisasm)


@pytest.mark.long
def test_a_tool_gets_memory_by_the_size_of_its_file(tmp_path: Path) -> None:
    hungry = tool(tmp_path, f"time.sleep(0.3); held = bytearray(1 << 30)\n{GOOD}")
    with pytest.raises(CacheError, match="bytearray"):
        disassemble(cubin(), hungry)
    large = cubin() + bytes(12 << 20)
    assert "/*0000*/" in disassemble(large, hungry)
