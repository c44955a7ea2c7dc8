"""An hsaco as text, by an llvm-objdump played here and by a real one where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from saved import saved

from artifact_inspector.errors import CacheError
from artifact_inspector.files.objdump import disassemble_hsaco, find_objdump
from artifact_inspector.formats.amdgcn.parser import FORMAT
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.model.text import SourceText

PRINTED = r"""
kernel.hsaco:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001600 <k>:
; k():
; /src/k.py:9
	s_load_dwordx2 s[2:3], s[0:1], 0x0                         // 000000001600: C0060080 00000000
	s_nop 0                                                    // 000000001608: BF800000
; /src/k.py:11
	buffer_load_dwordx4 v[56:59], v1, s[0:3], 0 offen offset:1024// 00000000160C: E05C1400 80003801
	s_cbranch_scc1 65533                                       // 000000001614: BF85FFFD <k+0xc>
	s_endpgm                                                   // 000000001618: BF810000
	s_code_end                                                 // 00000000161C: BF9F0000
"""


def tool(path: Path, body: str) -> Path:
    made = path / "llvm-objdump"
    made.write_text(f"#!/bin/sh\n{body}\n")
    made.chmod(0o755)
    return made


def hsaco() -> bytes:
    return saved("3.6.0/gfx942/copy").artifact.files["hsaco"].read_bytes()


def test_code_gets_its_labels_and_lines_back_and_loses_its_padding(tmp_path: Path) -> None:
    (tmp_path / "printed").write_text(PRINTED)
    text = disassemble_hsaco(hsaco(), tool(tmp_path, f"cat {tmp_path}/printed"))
    module = FORMAT.parse(SourceText("k.hsaco", text), Stage.AMDGCN)
    assert module.problems == ()
    assert module.attributes["target"] == "gfx942"
    (function,) = module.functions
    assert [x.opcode for x in function.instructions] == [
        "s_load_dwordx2", "buffer_load_dwordx4", "s_cbranch_scc1", "s_endpgm",
    ]  # fmt: skip
    load = function.instructions[1]
    assert load.kind is EventKind.GLOBAL_LOAD
    assert load.location is not None
    assert load.location[0][:2] == ("/src/k.py", 11)
    # 0x1600 + 0xc is the load: a loop of its own
    assert [block.successors for block in function.blocks] == [(1,), (1, 2), ()]


@pytest.mark.parametrize("body", ["exit 1", "echo nothing of use"])
def test_a_tool_that_fails_or_prints_no_code_is_named(tmp_path: Path, body: str) -> None:
    with pytest.raises(CacheError, match=r"not disassembled: .*does not read this gfx942 hsaco"):
        disassemble_hsaco(hsaco(), tool(tmp_path, body))


def test_without_a_tool_and_without_an_hsaco_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="no llvm-objdump was found"):
        disassemble_hsaco(hsaco(), None)
    with pytest.raises(CacheError, match="is not in hsaco format"):
        disassemble_hsaco(b"\x7fELF" + bytes(60), tool(tmp_path, "exit 1"))


@pytest.mark.parametrize("name", ["copy", "register_spill"])
def test_a_real_tool_prints_the_code_that_was_saved_as_text(name: str) -> None:
    found = find_objdump()
    if found is None:
        pytest.skip("no llvm-objdump")
    kernel = saved(f"3.6.0/gfx942/{name}")
    try:
        text = disassemble_hsaco(kernel.artifact.files["hsaco"].read_bytes(), found)
    except CacheError as refusal:
        pytest.skip(refusal.message)  # older than the target
    (function,) = FORMAT.parse(SourceText("k.hsaco", text), Stage.AMDGCN).functions
    kinds = (EventKind.GLOBAL_LOAD, EventKind.GLOBAL_STORE, EventKind.FLOAT, EventKind.WAIT)
    (own,) = kernel.module(Stage.AMDGCN).functions
    for kind in kinds:
        assert sum(x.kind is kind for x in function.instructions) == sum(x.kind is kind for x in own.instructions)
