"""LLVM's own parser judges functions, blocks, instructions and operands."""

from __future__ import annotations

import re

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.formats.llvm.parser import FORMAT
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

binding = pytest.importorskip("llvmlite.binding")

LOOP = r"""
@global_smem = external addrspace(3) global [0 x i8], align 16

define internal fastcc float @helper(float %x) {
  %y = call float @llvm.fma.f32(float %x, float 2.0, float %x)
  ret float %y
}

define ptx_kernel void @k(ptr addrspace(1) %0, ptr addrspace(1) %1, i32 %2) local_unnamed_addr {
  %4 = icmp sgt i32 %2, 0
  br i1 %4, label %.lr.ph, label %"the end"

.lr.ph:                                           ; preds = %3, %.lr.ph
  %5 = phi i32 [ 0, %3 ], [ %14, %.lr.ph ]
  %6 = phi float [ 0.0, %3 ], [ %13, %.lr.ph ]
  %7 = sext i32 %5 to i64
  %8 = getelementptr half, ptr addrspace(1) %0, i64 %7
  %9 = tail call { i32, i32 } asm sideeffect "mov.u32 $0, 0x0;\0A\09@$3 ld.global.v2.b32 { $0, $1 }, [ $2 + 0 ];", "=r,=r,l,b"(ptr addrspace(1) %8, i1 %4)
  %10 = extractvalue { i32, i32 } %9, 0
  %11 = bitcast i32 %10 to float
  %12 = load float, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 8), align 4
  %13 = call float @helper(float %11)
  store <2 x half> <half 0xH0000, half 0xH3C00>, ptr addrspace(3) @global_smem, align 4
  %14 = add i32 %5, 1
  %15 = icmp slt i32 %14, %2
  br i1 %15, label %.lr.ph, label %"the end"

"the end":                                        ; preds = %.lr.ph, %3
  %16 = trunc i32 %2 to i8
  switch i8 %16, label %18 [
    i8 0, label %17
    i8 1, label %18
  ]

17:                                               ; preds = %"the end"
  call void @llvm.nvvm.barrier0()
  br label %18

18:                                               ; preds = %17, %"the end", %"the end"
  ret void
}

declare float @llvm.fma.f32(float, float, float)
declare void @llvm.nvvm.barrier0()
"""

MASKED = r"""
define amdgpu_kernel void @k(ptr addrspace(1) inreg %0, <8 x i1> %1, ptr addrspace(3) %2) {
  %4 = tail call <8 x half> @llvm.masked.load.v8f16.p1(ptr addrspace(1) %0, i32 16, <8 x i1> %1, <8 x half> zeroinitializer)
  fence syncscope("workgroup") release
  store <8 x half> %4, ptr addrspace(3) %2, align 16
  %5 = atomicrmw fadd ptr addrspace(1) %0, float 1.0 syncscope("agent") monotonic, align 4
  %6 = insertelement <2 x float> poison, float %5, i64 0
  %7 = shufflevector <2 x float> %6, <2 x float> poison, <2 x i32> zeroinitializer
  %8 = select i1 true, <2 x float> %7, <2 x float> %6
  ret void
}

declare <8 x half> @llvm.masked.load.v8f16.p1(ptr addrspace(1), i32, <8 x i1>, <8 x half>)
"""


@pytest.mark.parametrize("text", [LOOP, MASKED])
def test_functions_blocks_instructions_and_operands_are_those_of_llvm(text):
    ours = FORMAT.parse(SourceText("k.llir", text), Stage.LLIR)
    assert ours.problems == ()
    # The module must outlive what is taken from it.
    module = binding.parse_assembly(text)
    judged = [function for function in module.functions if not function.is_declaration]
    assert [function.name for function in judged] == [function.name for function in ours.functions]
    for theirs, function in zip(judged, ours.functions, strict=True):
        assert len(list(theirs.arguments)) == len(function.arguments)
        assert [len(list(block.instructions)) for block in theirs.blocks] == [
            block.stop - block.start for block in function.blocks
        ]
        every = [instruction for block in theirs.blocks for instruction in block.instructions]
        for judge, instruction in zip(every, function.instructions, strict=True):
            if judge.opcode not in ("call", "phi"):
                assert instruction.opcode == judge.opcode
            values = [o for o in judge.operands if o.value_kind.name in ("instruction", "argument")]
            assert len(instruction.operands.reads) == len(values), instruction.text
            assert bool(instruction.operands.results) == (str(judge.type) != "void"), instruction.text


def test_predecessors_are_those_that_llvm_prints():
    (function,) = (f for f in FORMAT.parse(SourceText("k.llir", LOOP), Stage.LLIR).functions if f.name == "k")
    printed = {
        label.strip('"'): {name.strip('%"') for name in re.findall(r'%(?:"[^"]*"|[-\w.$]+)', preds)}
        for label, preds in re.findall(r"^(\S.*):\s+; preds = (.*)$", str(binding.parse_assembly(LOOP)), re.M)
    }
    found: dict[str, set[str]] = {}
    for block in function.blocks:
        for successor in block.successors:
            found.setdefault(function.blocks[successor].label, set()).add(block.label)
    assert found == printed
    assert len(found) == 4


READS_ALL = 22
"""The LLVM whose parser reads every fixture; older ones refuse what later versions write."""


@pytest.mark.parametrize("kernel", saved_kernels(), ids=lambda kernel: kernel.path)
def test_every_saved_file_has_the_functions_blocks_and_instructions_that_llvm_finds(kernel: Saved) -> None:
    try:
        module = binding.parse_assembly(kernel.text(Stage.LLIR))
    except RuntimeError as refusal:
        if binding.llvm_version_info[0] >= READS_ALL:
            raise
        pytest.skip(f"LLVM {binding.llvm_version_info[0]} does not read it: {refusal}")
    ours = kernel.module(Stage.LLIR).functions
    judged = [function for function in module.functions if not function.is_declaration]
    assert [function.name for function in judged] == [function.name for function in ours]
    for theirs, function in zip(judged, ours, strict=True):
        # One call of inline assembly is one instruction to LLVM and one for each event here.
        assert [len(list(block.instructions)) for block in theirs.blocks] == [
            len({instruction.line for instruction in function.instructions[block.start : block.stop]})
            for block in function.blocks
        ]
