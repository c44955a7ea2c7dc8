"""Stages written by hand, for tests of what is said about memory accesses."""

from __future__ import annotations

from textwrap import dedent

from artifact_inspector.analysis.access.accesses import StageAccesses, find_accesses
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

HEAD = "%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32, %odd: i32"

OFFSETS = """
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %pid = tt.get_program_id x : i32
    %c = arith.constant 1024 : i32
    %o = arith.muli %pid, %c : i32
    %s = tt.splat %o : i32 -> tensor<1024xi32>
    %i = arith.addi %s, %r : tensor<1024xi32>
"""


def stage(which: Stage, text: str) -> StageAccesses:
    """The one function of a text at a stage."""
    language = format_of(which)
    module = language.parse(SourceText(f"k.{which.value}", text), which)
    function = module.functions[0]
    code = Code(function, language)
    return StageAccesses(code, module, language, find_accesses(code, module, language))


def tensors(which: Stage, body: str, header: str = "") -> StageAccesses:
    """A kernel of tensor-level IR with these operations; its first one stands in line 3."""
    text = f"module {header} {{\n  tt.func public @k({HEAD}) {{\n{dedent(body)}\n    tt.return\n  }}\n}}\n"
    return stage(which, text)


def ptx(*statements: str) -> StageAccesses:
    """A kernel of k.py with these statements; the first one stands in line 6."""
    body = "\n".join(f"\t{statement}" for statement in statements)
    head = '.version 8.7\n.target sm_80\n.file 1 "k.py"\n.visible .entry k()\n{\n'
    return stage(Stage.PTX, f"{head}{body}\n\tret;\n}}\n")


def ptx_load(opcode: str, line: int = 5) -> StageAccesses:
    """One load into a register, in line 7, that stands at a line of k.py."""
    return ptx(f".loc 1 {line} 1", f"{opcode} {{ %r1 }}, [ %rd1 + 0 ];")


def amdgcn(*statements: str) -> StageAccesses:
    """A kernel of these statements and labels; the first one stands in line 5."""
    body = "\n".join(text if text.endswith(":") else f"\t{text}" for text in statements)
    head = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n\t.type\tk,@function\nk:\n'
    return stage(Stage.AMDGCN, f"{head}{body}\n\ts_endpgm\n.Lfunc_end0:\n")


def llir(*statements: str) -> StageAccesses:
    """A kernel of these statements and labels, with a pointer %p and a condition %m."""
    body = "\n".join(text if text.endswith(":") else f"  {text}" for text in statements)
    return stage(Stage.LLIR, f"define void @k(ptr addrspace(1) %p, i1 %m) {{\n{body}\n}}\n")


def address(pointer: str, offsets: str = "%i", elements: int = 1024) -> str:
    """Operations that make %a, the addresses of `elements` f16 behind a pointer."""
    return f"""
    %b = tt.splat {pointer} : !tt.ptr<f16> -> tensor<{elements}x!tt.ptr<f16>>
    %a = tt.addptr %b, {offsets} : tensor<{elements}x!tt.ptr<f16>>, tensor<{elements}xi32>
    """
