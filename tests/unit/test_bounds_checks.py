"""Compares that decide accesses and integer divisions, on code written after real files."""

import pytest
from handwritten import OFFSETS, address, amdgcn, ptx, tensors

from artifact_inspector.analysis.access.accesses import StageAccesses
from artifact_inspector.analysis.access.bounds_checks import CheckKind, find_bounds_checks
from artifact_inspector.model import Stage


def lines(found: StageAccesses, check: CheckKind) -> list[int]:
    checks = find_bounds_checks(found.code, found.accesses)
    return [item.line for item in checks if item.kind is check]


def test_a_compare_counts_when_it_reaches_a_mask() -> None:
    masked = """
    %t = tt.splat %odd : i32 -> tensor<1024xi32>
    %c1 = arith.cmpi slt, %i, %t : tensor<1024xi32>
    %c2 = arith.cmpi sge, %i, %s : tensor<1024xi32>
    %m = arith.andi %c1, %c2 : tensor<1024xi1>
    %unused = arith.cmpi eq, %i, %t : tensor<1024xi32>
    %x = tt.load %a, %m : tensor<1024x!tt.ptr<f16>>
    """
    found = tensors(Stage.TTIR, OFFSETS + address("%p") + masked)
    texts = [
        next(x.text for x in found.code.function.instructions if x.line == line).split(" ")[0]
        for line in lines(found, CheckKind.COMPARE)
    ]
    assert texts == ["%c1", "%c2"]


def test_the_compare_of_a_guard_counts_and_that_of_a_branch_does_not() -> None:
    found = ptx(
        "setp.lt.s32 %p1, %r1, %r2;",
        "setp.lt.s32 %p2, %r3, %r4;",
        "@%p1 ld.global.b32 { %r5 }, [ %rd1 + 0 ];",
        "selp.b32 %r6, %r5, %r1, %p2;",
    )
    assert lines(found, CheckKind.COMPARE) == [6]


def test_a_float_compare_is_no_bound() -> None:
    found = ptx("setp.lt.f32 %p1, %r1, %r2;", "@%p1 ld.global.b32 { %r5 }, [ %rd1 + 0 ];")
    assert lines(found, CheckKind.COMPARE) == []


def test_the_compare_behind_the_size_of_a_copy_counts() -> None:
    found = ptx(
        "setp.lt.s32 %p1, %r1, %r2;",
        "selp.b32 %r3, 16, 0, %p1;",
        "cp.async.cg.shared.global [ %r4 + 0 ], [ %rd1 + 0 ], 0x10, %r3;",
    )
    assert lines(found, CheckKind.COMPARE) == [6]


def test_the_compare_that_turns_lanes_off_counts() -> None:
    found = amdgcn(
        "v_cmp_gt_i32_e32 vcc, s4, v0",
        "s_and_saveexec_b64 s[0:1], vcc",
        "global_load_dword v1, v[2:3], off",
        "s_or_b64 exec, exec, s[0:1]",
    )
    assert lines(found, CheckKind.COMPARE) == [5]


def test_a_compare_that_narrows_the_lanes_itself_counts() -> None:
    found = amdgcn("s_mov_b32 s1, exec_lo", "v_cmpx_gt_i32_e32 s4, v0", "global_load_b32 v1, v[2:3], off")
    assert lines(found, CheckKind.COMPARE) == [6]


def test_the_compare_that_sends_an_offset_out_of_the_buffer_counts() -> None:
    found = amdgcn(
        "v_bfrev_b32_e32 v5, 1",
        "v_cmp_gt_i32_e32 vcc, s4, v0",
        "v_cndmask_b32_e32 v6, v5, v0, vcc",
        "buffer_load_dword v1, v6, s[0:3], 0 offen",
    )
    assert lines(found, CheckKind.COMPARE) == [6]


def test_a_choice_between_two_offsets_is_no_bound() -> None:
    # The last step of a remainder.
    found = amdgcn(
        "v_cmp_le_u32_e32 vcc, s0, v1", "v_cndmask_b32_e32 v1, v1, v2, vcc", "buffer_load_dword v1, v1, s[0:3], 0 offen"
    )
    assert lines(found, CheckKind.COMPARE) == []


@pytest.mark.parametrize("opcode", ["rem.s32", "div.u32", "rem.u64"])
def test_integer_divisions_count_and_float_ones_do_not(opcode: str) -> None:
    found = ptx(f"{opcode} %r1, %r2, %r3;", "div.full.f32 %r4, %r5, %r6;")
    assert lines(found, CheckKind.DIVISION) == [6]


@pytest.mark.parametrize(
    "body",
    [
        # Up to LLVM 23, and since.
        ["v_rcp_iflag_f32_e32 v1, v1", "v_mul_f32_e32 v1, 0x4f7ffffe, v1"],
        ["v_rcp_f32_e32 v1, v1", "v_mul_f32_e32 v1, 0x4f7ffffe, v1"],
    ],
)
def test_the_reciprocal_of_an_integer_counts_once(body: list[str]) -> None:
    assert len(lines(amdgcn(*body), CheckKind.DIVISION)) == 1


def test_the_reciprocal_of_a_float_is_no_division_of_integers() -> None:
    assert lines(amdgcn("v_rcp_f32_e32 v1, v1", "v_mul_f32_e32 v1, v2, v1"), CheckKind.DIVISION) == []
