"""Compares, conditions and masks, as each language spells them."""

from __future__ import annotations

import pytest

from artifact_inspector.formats.amdgcn import parser as amdgcn
from artifact_inspector.formats.llvm import parser as llvm
from artifact_inspector.formats.mlir import parser as mlir
from artifact_inspector.formats.ptx import parser as ptx
from artifact_inspector.formats.sass import parser as sass
from artifact_inspector.model import EventKind, Instruction, Operands
from artifact_inspector.model.condition import ConditionRole, LaneChange, Masking

Reads = tuple[str, ...]


def instruction(text: str, *, results: Reads = (), reads: Reads = (), guard: str | None = None) -> Instruction:
    opcode = text.partition(" = ")[2] or text
    return Instruction(
        1, opcode.split(" ")[0], EventKind.INTEGER, None, guard, text, lambda _: Operands(results, reads)
    )


@pytest.mark.parametrize(
    ("language", "text", "role"),
    [
        (ptx, "setp.lt.s32 %p1, %r1, %r2", ConditionRole.COMPARE),
        (ptx, "setp.lt.f32 %p1, %r1, %r2", ConditionRole.NONE),
        (ptx, "and.pred %p3, %p1, %p2", ConditionRole.LOGIC),
        (ptx, "mov.pred %p3, -1", ConditionRole.TRUE),
        (ptx, "mov.pred %p3, %p1", ConditionRole.LOGIC),
        (ptx, "selp.b32 %r3, 16, 0, %p1", ConditionRole.FOLD),
        (ptx, "selp.b32 %r3, %r1, %r2, %p1", ConditionRole.NONE),
        (ptx, "div.s32 %r3, %r1, %r2", ConditionRole.DIVISION),
        (ptx, "div.full.f32 %r3, %r1, %r2", ConditionRole.NONE),
        (amdgcn, "v_cmp_gt_i32_e32 vcc, s4, v0", ConditionRole.COMPARE),
        (amdgcn, "v_cmp_gt_f32_e32 vcc, s4, v0", ConditionRole.NONE),
        (amdgcn, "s_and_saveexec_b64 s[0:1], vcc", ConditionRole.LOGIC),
        (amdgcn, "s_mov_b32 s4, 0x80000000", ConditionRole.OUT_OF_BOUNDS),
        (amdgcn, "v_bfrev_b32_e32 v1, 1", ConditionRole.OUT_OF_BOUNDS),
        (amdgcn, "v_mov_b32_e32 v1, 1", ConditionRole.NONE),
        (amdgcn, "v_cndmask_b32_e32 v1, v2, v3, vcc", ConditionRole.SELECT),
        (amdgcn, "v_rcp_iflag_f32_e32 v1, v2", ConditionRole.DIVISION),
        (amdgcn, "v_mul_f32_e32 v1, 0x4f7ffffe, v1", ConditionRole.RECIPROCAL),
        (amdgcn, "v_mul_f32_e32 v1, 0x5f7ffffc, v1", ConditionRole.WIDE_RECIPROCAL),
        (amdgcn, "v_mul_f32_e32 v1, v2, v1", ConditionRole.NONE),
        (llvm, "%1 = icmp slt i32 %a, %b", ConditionRole.COMPARE),
        (llvm, "%1 = and i1 %a, %b", ConditionRole.LOGIC),
        (llvm, "%1 = and i32 %a, %b", ConditionRole.NONE),
        (llvm, "%1 = select i1 %a, i1 %b, i1 false", ConditionRole.LOGIC),
        (llvm, "%1 = select i1 %a, i32 %b, i32 -2147483648", ConditionRole.FOLD),
        (llvm, "%1 = select i1 %a, i32 %b, i32 %c", ConditionRole.NONE),
        (llvm, "%1 = srem i32 %a, %b", ConditionRole.DIVISION),
        (llvm, "setp.ne.b32 p, $1, 0", ConditionRole.COMPARE),
        (mlir, "%1 = arith.cmpi slt, %a, %b : tensor<8xi32>", ConditionRole.COMPARE),
        (mlir, "%1 = arith.cmpf olt, %a, %b : tensor<8xf32>", ConditionRole.NONE),
        (mlir, "%1 = arith.andi %a, %b : tensor<8xi1>", ConditionRole.LOGIC),
        (mlir, "%1 = arith.andi %a, %b : tensor<8xi16>", ConditionRole.NONE),
        (mlir, "%1 = arith.ceildivsi %a, %b : i32", ConditionRole.DIVISION),
        (mlir, "%1 = arith.divf %a, %b : f32", ConditionRole.NONE),
        (sass, "ISETP.GE.AND P0, PT, R0, R1, PT", ConditionRole.NONE),
    ],
)
def test_an_instruction_has_one_role_among_conditions(language: object, text: str, role: ConditionRole) -> None:
    conditions = language.FORMAT.conditions  # type: ignore[attr-defined]
    found = instruction(text)
    assert conditions.role(found) is role
    assert conditions.is_relevant(found.opcode) or role is ConditionRole.NONE


def test_the_condition_code_of_amd_is_among_the_operands_where_it_is_implied() -> None:
    conditions = amdgcn.FORMAT.conditions
    assert conditions.operands(instruction("s_cmp_lt_i32 s1, s2", reads=("s1", "s2"))).results == ("scc",)
    chosen = instruction("s_cselect_b32 s1, s2, s3", results=("s1",), reads=("s2", "s3"))
    assert conditions.operands(chosen) == (("s1",), ("s2", "s3", "scc"))
    assert conditions.operands(instruction("v_dual_cndmask_b32 v1, v2, v3", reads=("v2",))).reads == ("v2", "vcc_lo")


def test_a_guard_that_is_constantly_true_turns_nothing_off() -> None:
    call = 'asm sideeffect "@$1 ld.global.b32 { $0 }, [ $2 + 0 ];", "=r,b,l"(i1 MASK, ptr addrspace(1) %p)'
    conditions = llvm.FORMAT.conditions
    assert conditions.masking(instruction(call.replace("MASK", "true"), guard="$1")) is Masking.NONE
    assert conditions.masking(instruction(call.replace("MASK", "%m"), guard="$1")) is Masking.DIRECT


@pytest.mark.parametrize(
    ("language", "text", "guard", "masking"),
    [
        (ptx, "ld.global.b32 %r1, [%rd1]", "%p1", Masking.DIRECT),
        (ptx, "ld.global.b32 %r1, [%rd1]", None, Masking.NONE),
        (ptx, "cp.async.cg.shared.global [%r4], [%rd1], 16, 16", None, Masking.NONE),
        (ptx, "cp.async.cg.shared.global [ %r4 + 0 ], [ %rd1 + 0 ], 0x10, %r3", None, Masking.FOLDED),
        (amdgcn, "buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", None, Masking.FOLDED),
        (amdgcn, "global_load_dwordx4 v[0:3], v[4:5], off", None, Masking.NONE),
    ],
)
def test_an_access_says_how_it_may_be_turned_off(
    language: object, text: str, guard: str | None, masking: Masking
) -> None:
    assert language.FORMAT.conditions.masking(instruction(text, guard=guard)) is masking  # type: ignore[attr-defined]


def test_the_mask_of_an_access_stands_where_the_language_puts_it() -> None:
    reads = ("%r4", "%rd1", "%r3")
    copy = instruction("cp.async.cg.shared.global [ %r4 + 0 ], [ %rd1 + 0 ], 0x10, %r3", reads=reads)
    assert ptx.FORMAT.conditions.mask(copy) == ("%r3",)
    plain = instruction("ld.global.b32 %r1, [%rd1]", reads=("%rd1",))
    assert ptx.FORMAT.conditions.mask(plain) == ()
    buffer = instruction("buffer_load_dword v0, v4, s[0:3], 0 offen", reads=("v4", "s0", "s1"))
    assert amdgcn.FORMAT.conditions.mask(buffer) == ("v4",)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("s_and_saveexec_b64 s[0:1], vcc", LaneChange.NARROWS),
        ("v_cmpx_gt_i32_e32 s4, v0", LaneChange.NARROWS),
        ("s_or_b64 exec, exec, s[0:1]", LaneChange.RESTORES),
        ("s_mov_b32 exec_lo, s4", LaneChange.RESTORES),
        ("s_or_b64 s[2:3], s[2:3], s[0:1]", None),
        ("v_add_u32_e32 v0, v1, v2", None),
    ],
)
def test_the_mask_of_lanes_is_narrowed_and_restored(text: str, change: LaneChange | None) -> None:
    assert amdgcn.FORMAT.conditions.lane_change(instruction(text)) is change
    assert amdgcn.FORMAT.conditions.has_lane_mask
    assert not ptx.FORMAT.conditions.has_lane_mask
