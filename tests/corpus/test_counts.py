"""Counts of events, held against grep on every saved file."""

from __future__ import annotations

import grep
import pytest
from saved import Saved, each_stage, saved_kernels

from artifact_inspector.model import Stage

KERNELS = saved_kernels()
NOWHERE = {
    "ttir": {"async_copy", "commit", "wait", "shared_load", "shared_store", "barrier", "layout_conversion"},
    "ttgir": {"barrier"},
    "llir": {"layout_conversion"},
    "ptx": {"layout_conversion"},
    "amdgcn": {"async_copy", "commit", "layout_conversion"},
    "sass": {"async_copy", "commit", "wait", "matrix", "atomic", "layout_conversion"},
}
"""Kinds that a stage has no instruction for, or that no fixture shows there."""


@each_stage(KERNELS, is_slow=True)
def test_counts_are_those_of_grep(kernel: Saved, stage: Stage) -> None:
    assert kernel.facts.stages[stage].counts == grep.count(stage.value, kernel.text(stage))


@pytest.mark.parametrize("stage", Stage)
def test_grep_finds_every_kind_somewhere(stage: Stage) -> None:
    found = {
        kind for k in KERNELS if stage in k.stages for kind, n in grep.count(stage.value, k.text(stage)).items() if n
    }
    assert set(grep.KINDS) - found <= NOWHERE[stage.value]


def test_grep_opens_inline_assembly_and_leaves_declarations_and_comments_alone() -> None:
    text = """
declare float @llvm.fma.f32(float, float, float)
define void @k(ptr addrspace(1) %0) {
  %2 = tail call i32 asm sideeffect "mov.u32 $0, 0x0;\\0A\\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) %0, i1 true)
  ; %3 = fadd float %2, %2
  %4 = load float, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @global_smem, i32 8), align 4
  ret void
}
"""
    assert {kind: n for kind, n in grep.count("llir", text).items() if n} == {"global_load": 1, "shared_load": 1}
