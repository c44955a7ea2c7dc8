"""AMDGCN: instructions, waits, locations and blocks of text as Triton's versions printed it."""

from __future__ import annotations

import pytest

from artifact_inspector.errors import ParseError
from artifact_inspector.formats.amdgcn.parser import FORMAT, OPCODES, parse
from artifact_inspector.model import EventKind, Function, Instruction, Module, Queue, Stage, WaitOp
from artifact_inspector.model.text import SourceText


def vmcnt(depth: int) -> WaitOp:
    return WaitOp("s_waitcnt vmcnt", depth, Queue.LOADS, template="{op}({depth})")


FILES = '\t.file\t1 "/home/user/src" "kernels.py"\n\t.file\t2 "/venv/triton/language" "standard.py"\n'


def module(body: str, gfx: str = "gfx942", tail: str = "\n.Lfunc_end0:\n") -> Module:
    head = f'\t.amdgcn_target "amdgcn-amd-amdhsa--{gfx}"\n\t.text\n\t.type\tk,@function\nk:  ; @k\n'
    return parse(SourceText("k.amdgcn", f"{head}{FILES}{body}{tail}"), Stage.AMDGCN)


def function(body: str, gfx: str = "gfx942") -> Function:
    (only,) = module(body, gfx).functions
    return only


def one(line: str, gfx: str = "gfx942") -> Instruction:
    (only,) = function(f"\t{line}", gfx).instructions
    return only


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("global_load_dwordx4 v[14:17], v[22:23], off", EventKind.GLOBAL_LOAD),
        ("flat_load_ushort v2, v[4:5]", EventKind.GLOBAL_LOAD),
        ("buffer_load_dwordx4 v[2:5], v11, s[24:27], 0 offen", EventKind.GLOBAL_LOAD),
        ("buffer_load_dwordx4 v2, s[8:11], 0 offen lds", EventKind.ASYNC_COPY),
        ("global_load_lds_dwordx4 v[2:3], off", EventKind.ASYNC_COPY),
        ("global_load_async_to_lds_b128 v32, v[2:3], off", EventKind.ASYNC_COPY),
        ("tensor_load_to_lds s[0:3], s[72:79]", EventKind.ASYNC_COPY),
        ("tensor_store_from_lds s[8:11], s[0:7]", EventKind.GLOBAL_STORE),
        ("buffer_load_dword v63, off, s[0:3], 0 offset:4 ; 4-byte Folded Reload", EventKind.LOCAL_LOAD),
        ("buffer_store_dword v1, off, s[0:3], 0 ; 4-byte Folded Spill", EventKind.LOCAL_STORE),
        ("buffer_store_dword v0, v7, s[8:11], 0 offen", EventKind.GLOBAL_STORE),
        ("scratch_load_b32 v11, off, off offset:3832", EventKind.LOCAL_LOAD),
        ("s_load_dwordx8 s[4:11], s[0:1], 0x8", EventKind.SCALAR_LOAD),
        ("global_atomic_cmpswap v3, v[1:2], v[3:4], off glc", EventKind.ATOMIC),
        ("ds_add_rtn_f32 v1, v2, v3", EventKind.ATOMIC),
        ("ds_storexchg_rtn_b32 v1, v2, v3", EventKind.ATOMIC),
        ("ds_load_tr16_b128 v[170:173], v94 offset:4608", EventKind.SHARED_LOAD),
        ("ds_write2st64_b64 v32, v[2:3], v[6:7] offset1:8", EventKind.SHARED_STORE),
        ("ds_bpermute_b32 v4, v27, v14", EventKind.SHUFFLE),
        ("v_mov_b32_dpp v5, v4 row_shr:8 row_mask:0xf bank_mask:0xf", EventKind.SHUFFLE),
        ("v_add_f32_dpp v4, v4, v4 row_shr:8 row_mask:0xf bank_mask:0xf", EventKind.FLOAT),
        ("v_mfma_f32_32x32x8f16 v[0:15], v[54:55], v[52:53], v[0:15]", EventKind.MATRIX),
        ("v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v41", EventKind.MATRIX),
        ("v_dot2_f32_f16 v99, v69, v120, v99", EventKind.FLOAT),
        ("v_cmp_gt_f32_e64 s[2:3], s14, v38", EventKind.FLOAT),
        ("v_cmp_gt_i32_e64 s[2:3], s14, v38", EventKind.INTEGER),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", EventKind.FLOAT),
        ("v_pk_add_u16 v0, v1, v2", EventKind.INTEGER),
        ("v_mul_lo_u32 v3, s0, v1", EventKind.INTEGER),
        ("s_mul_f32 s9, s2, 0x4f7ffffe", EventKind.FLOAT),
        ("v_cvt_pk_f16_f32 v32, v16, v17", EventKind.MOVE),
        ("v_accvgpr_read_b32 v62, a0", EventKind.MOVE),
        ("s_barrier", EventKind.BARRIER),
        ("s_barrier_signal -1", EventKind.OTHER),
        ("s_barrier_wait -1", EventKind.BARRIER),
        ("s_setprio 1", EventKind.SCHEDULE_HINT),
        ("s_clause 0x1", EventKind.OTHER),
        ("s_swappc_b64 s[30:31], s[0:1]", EventKind.BRANCH),
        ("v_frobnicate_b32 v0, v1", EventKind.UNKNOWN),
    ],
)
def test_the_kind_follows_from_opcode_operands_and_comment(line: str, kind: EventKind) -> None:
    assert one(line).kind is kind


@pytest.mark.parametrize(
    ("line", "results", "reads"),
    [
        ("global_load_dwordx2 v[10:11], v[23:24], off", "v10 v11", "v23 v24"),
        ("global_store_dwordx2 v[68:69], v[50:51], off", "", "v68 v69 v50 v51"),
        ("buffer_load_dwordx4 v2, s[8:11], 0 offen lds", "", "v2 s8 s9 s10 s11"),
        ("global_load_lds_dwordx4 v[2:3], off", "", "v2 v3"),
        ("global_atomic_add_f32 v43, v0, s[0:1]", "", "v43 v0 s0 s1"),
        ("global_atomic_cmpswap v3, v[1:2], v[3:4], off glc", "v3", "v1 v2 v3 v4"),
        ("global_atomic_add_f32 v3, v0, v1, s[0:1] th:TH_ATOMIC_RETURN", "v3", "v0 v1 s0 s1"),
        ("ds_read2_b32 v[30:31], v8 offset1:4", "v30 v31", "v8"),
        ("ds_write2_b32 v10, v6, v9 offset1:4", "", "v10 v6 v9"),
        ("ds_add_u32 v0, v1", "", "v0 v1"),
        ("ds_load_u16_d16_hi v21, v96 offset:8768", "v21", "v96 v21"),
        ("v_fmac_f32_e32 v11, v15, v11", "v11", "v15 v11 v11"),
        ("v_fma_f32 v15, -v5, |v11|, 1.0", "v15", "v5 v11"),
        ("v_mfma_f32_4x4x4f16 a[0:3], v[4:5], v[6:7], a[0:3]", "a0 a1 a2 a3", "v4 v5 v6 v7 a0 a1 a2 a3"),
        ("v_add_co_u32_e32 v17, vcc, s0, v13", "v17 vcc_lo vcc_hi", "s0 v13"),
        ("v_mad_u64_u32 v[2:3], s[0:1], v9, v1, 0", "v2 v3 s0 s1", "v9 v1"),
        ("v_cmp_gt_i32_e64 s[2:3], s14, v38", "s2 s3", "s14 v38"),
        ("v_cmpx_gt_i32_e64 s5, v0", "", "s5 v0"),
        ("v_cmpx_gt_i32_e64 s[0:1], s5, v0", "s0 s1", "s5 v0"),
        ("s_cmp_lt_i32 s25, 64", "", "s25"),
        ("s_addk_i32 s10, 0xff80", "s10", "s10"),
        ("v_permlane32_swap_b32_e32 v32, v34", "v32 v34", "v32 v34"),
        ("v_cvt_f32_f16_sdwa v53, v14 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", "v53", "v14"),
        # gfx1250 names registers above 255 in a comment
        ("v_lshlrev_b32_e32 v124, 8, v1 /*v257*/", "v124", "v257"),
        ("v_add_nc_u64_e32 v[0:1] /*v[256:257]*/, v[6:7], v[2:3]", "v256 v257", "v6 v7 v2 v3"),
        ("v_mov_b16_e32 v9.l, 0", "v9", ""),
    ],
)  # fmt: skip
def test_operands_name_what_is_written_and_what_is_read(line: str, results: str, reads: str) -> None:
    operands = one(line).operands
    assert (" ".join(operands.results), " ".join(operands.reads)) == (results, reads)


@pytest.mark.parametrize(
    ("line", "gfx", "wait"),
    [
        ("s_waitcnt vmcnt(6) lgkmcnt(0)", "gfx942", vmcnt(6)),
        ("s_waitcnt vmcnt(62)", "gfx90a", vmcnt(62)),
        ("s_waitcnt lgkmcnt(0)", "gfx942", None),
        ("s_waitcnt_vscnt null, 0x0", "gfx1100", None),
        ("s_waitcnt_depctr depctr_va_vdst(0)", "gfx1100", None),
        ("s_waitcnt_vmcnt null, 0x3", "gfx1030", WaitOp("s_waitcnt_vmcnt", 3, Queue.LOADS)),
        ("s_waitcnt 0", "gfx942", vmcnt(0)),
        # vmcnt in bits 3:0 and 15:14 (gfx9, gfx10), bits 15:10 (gfx11); all ones: no wait
        ("s_waitcnt 0x0f70", "gfx906", vmcnt(0)),
        ("s_waitcnt 0x4f74", "gfx90a", vmcnt(20)),
        ("s_waitcnt 0xc07f", "gfx942", None),
        ("s_waitcnt 0x3f70", "gfx1030", vmcnt(0)),
        ("s_waitcnt 0x0bf7", "gfx1100", vmcnt(2)),
        ("s_waitcnt 0xfc07", "gfx1100", None),
        ("s_waitcnt 0x0f7f", "gfx803", None),
        ("s_wait_loadcnt 0x17", "gfx1200", WaitOp("s_wait_loadcnt", 23, Queue.LOADS)),
        ("s_wait_loadcnt_dscnt 0x103", "gfx1200", WaitOp("s_wait_loadcnt_dscnt", 1, Queue.LOADS)),
        ("s_wait_asynccnt 0x4", "gfx1250", WaitOp("s_wait_asynccnt", 4, Queue.COPIES)),
        ("s_wait_tensorcnt 0xa", "gfx1250", WaitOp("s_wait_tensorcnt", 10, Queue.TENSORS)),
        ("s_wait_dscnt 0x0", "gfx1200", None),
        ("s_wait_storecnt_dscnt 0x0", "gfx1200", None),
        ("s_wait_alu depctr_va_vdst(0)", "gfx1200", None),
    ],
)
def test_only_waits_for_vector_loads_are_waits(line: str, gfx: str, wait: WaitOp | None) -> None:
    found = module(f"\t{line}", gfx)
    (instruction,) = found.functions[0].instructions
    assert FORMAT.wait(instruction, found) == wait
    assert instruction.kind is (EventKind.OTHER if wait is None else EventKind.WAIT)


def test_a_dual_issue_line_holds_two_operations() -> None:
    found = function("\tv_dual_mul_f32 v40, v31, v28 :: v_dual_mov_b32 v42, 0").instructions
    assert [(each.line, each.opcode, each.kind) for each in found] == [
        (7, "v_dual_mul_f32", EventKind.FLOAT),
        (7, "v_dual_mov_b32", EventKind.MOVE),
    ]
    assert [each.operands.results for each in found] == [("v40",), ("v42",)]
    whole = found[0].decode("v_dual_mul_f32 v40, v31, v28 :: v_dual_mov_b32 v42, 0")
    assert whole == (("v40", "v42"), ("v31", "v28"))


def test_locations_carry_the_inline_chain_and_line_zero_carries_none() -> None:
    body = """\
\t.loc\t1 8 0 prologue_end              ; kernels.py:8:0
\ts_mov_b32 s0, 0
\t.loc\t2 260 15 is_stmt 0              ; standard.py:260:15 @[ standard.py:290:36 @[ kernels.py:22:17 ] ]
\tv_add_f32_e32 v2, v5, v10
\t.loc\t1 0 0 is_stmt 0                 ; :0:0
\ts_mov_b32 s1, 0
\t.loc\t1 21 13
\tglobal_load_dwordx4 v[14:17], v[22:23], off"""
    found = function(body)
    assert [each.location and [tuple(frame) for frame in each.location] for each in found.instructions] == [
        [("/home/user/src/kernels.py", 8, 0)],
        [
            ("/venv/triton/language/standard.py", 260, 15),
            ("/venv/triton/language/standard.py", 290, 36),
            ("/home/user/src/kernels.py", 22, 17),
        ],
        None,
        [("/home/user/src/kernels.py", 21, 13)],
    ]
    assert found.location == found.instructions[0].location


def test_blocks_begin_at_labels_and_at_the_names_of_unlabelled_ones() -> None:
    body = """\
.Lfunc_begin0:
; %bb.2:
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
\ts_branch .LBB0_0
\t.p2align\t8
; %bb.3:
.LBB0_0:                                ; =>This Inner Loop Header: Depth=1
\tv_mov_b32_e32 v0, 0
.Ltmp1:
\ts_cbranch_execz .LBB0_2
; %bb.1:
\tglobal_load_dword v5, v[2:3], off
\t; sched_barrier mask(0x00000000)
.LBB0_2:
\ts_cbranch_vccnz .LBB0_0
; %bb.4:
\ts_endpgm"""
    assert [(b.label, b.start, b.stop, b.successors) for b in function(body).blocks] == [
        ("%bb.2", 0, 2, (1,)),
        (".LBB0_0", 2, 4, (3, 2)),
        ("%bb.1", 4, 5, (3,)),
        (".LBB0_2", 5, 6, (1, 4)),
        ("%bb.4", 6, 7, ()),
    ]


def test_a_call_returns_and_a_return_does_not() -> None:
    body = "\ts_swappc_b64 s[30:31], s[0:1]\n\tv_nop\n\ts_setpc_b64 s[30:31]\n.LBB0_1:\n\ts_endpgm"
    assert [(b.start, b.stop, b.successors) for b in function(body).blocks] == [(0, 3, ()), (3, 4, ())]


@pytest.mark.parametrize(
    ("far", "length"),
    [  # as LLVM prints a branch out of range: gfx9 to gfx11, gfx12, gfx1250, and older ones backwards
        (
            "s_getpc_b64 s[4:5]\n.Lpost_getpc0:\n\ts_add_u32 s4, s4, (.LBB0_1-.Lpost_getpc0)&4294967295\n"
            "\ts_addc_u32 s5, s5, (.LBB0_1-.Lpost_getpc0)>>32\n\ts_setpc_b64 s[4:5]",
            4,
        ),
        (
            "s_getpc_b64 vcc\n.Lpost_getpc0:\n\ts_wait_alu 0xfffe\n"
            "\ts_add_co_u32 vcc_lo, vcc_lo, (.LBB0_1-.Lpost_getpc0)&4294967295\n"
            "\ts_add_co_ci_u32 vcc_hi, vcc_hi, (.LBB0_1-.Lpost_getpc0)>>32\n"
            "\ts_wait_alu 0xfffe\n\ts_setpc_b64 vcc",
            6,
        ),
        (
            "s_get_pc_i64 s[4:5]\n.Lpost_getpc0:\n\ts_add_nc_u64 s[4:5], s[4:5], .LBB0_1-.Lpost_getpc0\n"
            "\ts_set_pc_i64 s[4:5]",
            3,
        ),
        ("s_add_pc_i64 .LBB0_1-.Lpost_addpc0\n.Lpost_addpc0:", 1),
        (
            "s_getpc_b64 s[4:5]\n.Lpost_getpc0:\n\ts_sub_u32 s4, s4, (.Lpost_getpc0-.LBB0_1)&4294967295\n"
            "\ts_subb_u32 s5, s5, (.Lpost_getpc0-.LBB0_1)>>32\n\ts_setpc_b64 s[4:5]",
            4,
        ),
    ],
)
def test_a_branch_out_of_range_goes_to_its_label(far: str, length: int) -> None:
    body = f"\tv_nop\n.LBB0_1:\n\ts_cbranch_scc0 .LBB0_2\n; %bb.3:\n\t{far}\n.LBB0_2:\n\ts_endpgm"
    # 0: v_nop, 1: the loop's head and its way out, 2: the way back, 3: s_endpgm
    assert [(b.start, b.stop, b.successors) for b in function(body).blocks] == [
        (0, 1, (1,)),
        (1, 2, (3, 2)),
        (2, 2 + length, (1,)),
        (2 + length, 3 + length, ()),
    ]


def test_a_jump_to_registers_that_another_sum_fills_goes_nowhere_known() -> None:
    body = (
        "\ts_getpc_b64 s[4:5]\n.Lpost_getpc0:\n\ts_add_u32 s4, s4, (.LBB0_1-.Lpost_getpc0)&4294967295\n"
        "\ts_setpc_b64 s[30:31]\n.LBB0_1:\n\ts_endpgm"
    )
    assert [b.successors for b in function(body).blocks] == [(), ()]


def test_labels_of_inline_asm_cut_no_block() -> None:
    body = "\t;;#ASMSTART\nspin:\n.Lspin:\n\ts_cbranch_scc1 .Lspin\n\t;;#ASMEND\n\ts_endpgm"
    assert len(function(body).blocks) == 1


TWO_KERNELS = """\
\t.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
\t.text
\t.type\thelper,@function
helper:                                 ; @helper
\ts_setpc_b64 s[30:31]
.Lfunc_end0:
\t.size\thelper, .Lfunc_end0-helper
\t.section\t.AMDGPU.csdata,"",@progbits
; NumVgprs: 1
\t.text
\t.globl\tk                               ; -- Begin function k
\t.type\tk,@function
k:                                      ; @k
\tv_nop
\ts_endpgm
.Lfunc_end1:
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel k
\t\t.amdhsa_private_segment_fixed_size 64
\t\t.amdhsa_next_free_vgpr 92
\t\t.amdhsa_accum_offset 88
\t.end_amdhsa_kernel
\t.text
\t.section\t.debug_abbrev,"",@progbits
\t.byte\t1                               ; Abbreviation Code
\tnot_an_instruction v0
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     4
    .name:           k
    .private_segment_fixed_size: 64
    .sgpr_count:     26
    .sgpr_spill_count: 0
    .vgpr_count:     92
    .vgpr_spill_count: 3
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
...
\t.end_amdgpu_metadata
"""


def test_a_file_may_hold_several_functions_and_its_data_is_passed_over() -> None:
    found = parse(SourceText("k.amdgcn", TWO_KERNELS), Stage.AMDGCN)
    assert [(each.name, each.line, [i.line for i in each.instructions]) for each in found.functions] == [
        ("helper", 4, [5]),
        ("k", 13, [14, 15]),
    ]
    assert found.problems == ()


def test_the_attributes_are_what_directives_and_metadata_say() -> None:
    attributes = parse(SourceText("k.amdgcn", TWO_KERNELS), Stage.AMDGCN).attributes
    assert attributes == {
        "target": "gfx942",
        "vgpr_count": "92",
        "agpr_count": "4",
        "sgpr_count": "26",
        "vgpr_spill_count": "3",
        "sgpr_spill_count": "0",
        "private_segment_fixed_size": "64",
        "wavefront_size": "64",
        "next_free_vgpr": "92",
        "accum_offset": "88",
    }


@pytest.mark.parametrize(
    ("triple", "target"),
    [
        ("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a"),
        ("amdgcn-amd-amdhsa--gfx9-4-generic", "gfx9-4-generic"),
        ("amdgpu9.42-amd-amdhsa-unknown-gfx942", "gfx942"),
    ],
)
def test_the_target_is_the_processor(triple: str, target: str) -> None:
    text = f'\t.amdgcn_target "{triple}"\n\t.type\tk,@function\nk:\n\ts_endpgm\n.Lfunc_end0:\n'
    assert parse(SourceText("k", text), Stage.AMDGCN).attributes == {"target": target}


def test_windows_line_ends_change_nothing() -> None:
    plain, dos = (
        parse(SourceText("k", each), Stage.AMDGCN) for each in (TWO_KERNELS, TWO_KERNELS.replace("\n", "\r\n"))
    )
    assert plain == dos


def test_a_cut_off_file_keeps_what_stands_in_it() -> None:
    found = module("\tv_nop\n\ts_branch .LBB0_9\n\t!garbage", tail="")
    assert [each.opcode for each in found.functions[0].instructions] == ["v_nop", "s_branch"]
    assert found.problems == (
        "line 9: not an instruction: '!garbage'",
        "line 4: function k is not closed",
        "line 4: no label .LBB0_9 in function k",
    )


def test_a_cut_off_file_is_not_whole_however_much_else_is_wrong() -> None:
    assert not module("\t!garbage\n" * 100, tail="").is_complete


@pytest.mark.parametrize("text", ["", "\x00\x01\ufffd\n", '\t.amdgcn_target "amdgcn--gfx942"\n'])
def test_a_text_without_a_function_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ParseError, match="no AMDGCN function") as caught:
        parse(SourceText("k.amdgcn", text), Stage.AMDGCN)
    assert caught.value.remedy is not None
    assert caught.value.span.label == "k.amdgcn:1:1"


def test_amdgcn_is_known_by_its_target() -> None:
    assert FORMAT.sniff(TWO_KERNELS)
    assert not FORMAT.sniff(".version 8.4\n.target sm_80\n")


def test_every_opcode_row_has_one_kind() -> None:
    assert OPCODES.kind("v_mfma_f32_32x32x8_f16") is EventKind.MATRIX
    assert EventKind.UNKNOWN not in OPCODES.rows.values()


# -- transfers and matrix operations -------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("global_load_ubyte v1, v[2:3], off", 1),
        ("buffer_load_sbyte_d16_hi v1, v2, s[0:3], 0 offen", 1),
        ("global_load_d16_hi_u8 v1, v[2:3], off", 1),
        ("global_load_ushort v1, v[2:3], off", 2),
        ("global_load_short_d16_hi v1, v[2:3], off", 2),
        ("global_load_d16_b16 v3, v34, s[2:3] offset:8", 2),
        ("global_load_dword v1, v[2:3], off", 4),
        ("flat_load_dwordx3 v[1:3], v[4:5]", 12),
        ("buffer_load_dwordx4 v[2:5], v11, s[24:27], 0 offen", 16),
        ("buffer_load_dwordx4 v2, s[8:11], 0 offen lds", 16),
        ("global_load_lds_dword v[2:3], off", 4),
        ("global_load_b96 v[1:3], v[4:5], off", 12),
        ("global_load_b128 v[1:4], v[1:2], off", 16),
        ("global_load_tr16_b128 v[1:4], v[1:2], off", 16),
        ("global_load_async_to_lds_b64 v32, v[2:3], off", 8),
        ("buffer_load_format_xyz v[1:3], v4, s[0:3], 0 idxen", 12),
        ("buffer_load_format_d16_xy v1, v4, s[0:3], 0 idxen", 4),
        ("buffer_store_byte v1, v0, s[0:3], 0 offen", 1),
        ("global_store_short_d16_hi v[0:1], v2, off", 2),
        ("global_store_d16_hi_b16 v[35:36], v25, off", 2),
        ("global_store_dwordx2 v[0:1], v[16:17], off", 8),
        ("scratch_load_dwordx2 v[0:1], off, off offset:80", 8),
        # an atomic's opcode names the type that stands in memory, without one it has 4 bytes
        ("global_atomic_add v[0:1], v2, off", 4),
        ("global_atomic_add_x2 v[0:1], v[2:3], off", 8),
        ("global_atomic_cmpswap v6, v[4:5], v[6:7], off sc0", 4),
        ("global_atomic_cmpswap_b64 v[6:7], v[4:5], v[6:9], off", 8),
        ("global_atomic_pk_add_f16 v[8:9], v10, off", 4),
        ("global_atomic_pk_add_bf16 v[8:9], v10, off", 4),
        ("global_atomic_add_f64 v[8:9], v[10:11], off", 8),
        ("image_load v[0:3], v[4:5], s[0:7] dmask:0xf", None),
    ],
)
def test_the_opcode_tells_the_bytes_of_one_thread(line: str, size: int | None) -> None:
    found = FORMAT.transfer(one(line), module(""))
    assert found is not None
    assert found.bytes == size


# LLVM's SIInsertWaitcnts.cpp: up to gfx9 vmcnt counts everything, from gfx10 on stores have vscnt (storecnt).
@pytest.mark.parametrize(
    ("line", "gfx", "queue"),
    [
        ("global_load_dword v1, v[2:3], off", "gfx942", Queue.LOADS),
        ("global_load_b32 v1, v[2:3], off", "gfx1200", Queue.LOADS),
        ("global_store_dword v[2:3], v1, off", "gfx906", Queue.LOADS),
        ("global_store_dword v[2:3], v1, off", "gfx950", Queue.LOADS),
        ("global_store_dword v[2:3], v1, off", "gfx1030", Queue.STORES),
        ("buffer_store_b32 v1, v0, s[0:3], 0 offen", "gfx1100", Queue.STORES),
        ("global_atomic_add_f32 v[0:1], v4, off", "gfx942", Queue.LOADS),
        ("global_atomic_add_f32 v[0:1], v4, off", "gfx1100", Queue.STORES),
        ("global_atomic_add_f32 v2, v[0:1], v4, off glc", "gfx1100", Queue.LOADS),
        ("global_atomic_add_f32 v2, v[0:1], v4, off th:TH_ATOMIC_RETURN", "gfx1200", Queue.LOADS),
        ("global_load_lds_dwordx4 v[2:3], off", "gfx950", Queue.LOADS),
        ("global_load_async_to_lds_b128 v32, v[2:3], off", "gfx1250", Queue.COPIES),
        ("tensor_load_to_lds s[0:3], s[72:79]", "gfx1250", Queue.TENSORS),
        ("tensor_store_from_lds s[8:11], s[0:7]", "gfx1250", Queue.TENSORS),
        ("scratch_load_b32 v11, off, off offset:3832", "gfx1100", Queue.LOADS),
        ("scratch_store_b32 off, v9, off", "gfx1100", Queue.STORES),
        ("buffer_load_dword v63, off, s[0:3], 0 offset:4 ; 4-byte Folded Reload", "gfx1030", Queue.LOADS),
        ("buffer_store_dword v1, off, s[0:3], 0 ; 4-byte Folded Spill", "gfx1030", Queue.STORES),
    ],
)
def test_the_generation_tells_which_counter_counts_a_transfer(line: str, gfx: str, queue: Queue) -> None:
    found = FORMAT.transfer(one(line, gfx), module("", gfx))
    assert found is not None
    assert found.queue is queue
    assert found.is_per_block is line.startswith("tensor")


@pytest.mark.parametrize(
    ("line", "cache"),
    [
        ("buffer_load_dwordx4 v[2:5], v0, s[0:3], 0 offen sc0 nt", ("sc0", "nt")),
        ("global_load_dword v1, v[2:3], off offset:16 glc slc dlc", ("glc", "slc", "dlc")),
        ("global_load_b32 v1, v[2:3], off th:TH_LOAD_NT scope:SCOPE_SYS", ("th:TH_LOAD_NT", "scope:SCOPE_SYS")),
        ("buffer_load_dwordx2 v[22:23], v19, s[4:7], 0 offen", ()),
        # these ask for the old value
        ("global_atomic_cmpswap v6, v[4:5], v[6:7], off sc0 sc1", ("sc1",)),
        ("global_atomic_add_u32 v1, v[2:3], v4, off th:TH_ATOMIC_RETURN scope:SCOPE_DEV", ("scope:SCOPE_DEV",)),
    ],
)
def test_modifiers_tell_the_cache_policy(line: str, cache: tuple[str, ...]) -> None:
    found = FORMAT.transfer(one(line), module(""))
    assert found is not None
    assert found.cache == cache


@pytest.mark.parametrize("line", ["ds_add_f32 v1, v2", "ds_read_b32 v1, v2", "s_load_dword s0, s[2:3], 0x0"])
def test_what_no_vector_memory_counter_counts_is_no_transfer(line: str) -> None:
    assert FORMAT.transfer(one(line), module("")) is None


@pytest.mark.parametrize(
    ("line", "op", "shape", "types"),
    [
        ("v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[66:67], v[0:15]", "v_mfma", "m32n32k8", "f16×f16→f32"),
        ("v_mfma_f32_32x32x8f16 a[0:15], v[20:21], v[66:67], a[0:15]", "v_mfma", "m32n32k8", "f16×f16→f32"),
        ("v_mfma_f32_32x32x8bf16_1k a[0:15], v[2:3], v[6:7], 0", "v_mfma", "m32n32k8", "bf16×bf16→f32"),
        ("v_mfma_i32_32x32x16_i8 a[0:15], v[2:3], v[6:7], 0", "v_mfma", "m32n32k16", "i8×i8→i32"),
        ("v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[2:3], v[6:7], 0", "v_mfma", "m16n16k32", "bf8×fp8→f32"),
        ("v_mfma_f32_32x32x4_xf32 a[0:15], v[2:3], v[6:7], 0", "v_mfma", "m32n32k4", "xf32×xf32→f32"),
        ("v_mfma_f64_16x16x4f64 a[0:7], v[2:3], v[6:7], 0", "v_mfma", "m16n16k4", "f64×f64→f64"),
        # CDNA3 ISA, "Matrix Arithmetic Instructions": …_2B_…, …_4B_…, …_16B_… compute as many products;
        # the same instructions have no number in their names on gfx908 and gfx90a
        ("v_mfma_f32_32x32x4_2b_f16 a[0:31], v[2:3], v[6:7], 0", "v_mfma", "m32n32k4×2", "f16×f16→f32"),
        ("v_mfma_f32_32x32x4f16 a[0:31], v[2:3], v[6:7], 0", "v_mfma", "m32n32k4×2", "f16×f16→f32"),
        ("v_mfma_f32_16x16x4f16 a[0:15], v[2:3], v[6:7], 0", "v_mfma", "m16n16k4×4", "f16×f16→f32"),
        ("v_mfma_f32_16x16x4f32 a[0:3], v2, v6, 0", "v_mfma", "m16n16k4", "f32×f32→f32"),
        ("v_mfma_f32_4x4x4f16 a[0:3], v[2:3], v[6:7], 0", "v_mfma", "m4n4k4×16", "f16×f16→f32"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[2:3], v[6:7], 0", "v_mfma", "m4n4k4×16", "f16×f16→f32"),
        ("v_mfma_f64_4x4x4f64 a[0:1], v[2:3], v[6:7], 0", "v_mfma", "m4n4k4×4", "f64×f64→f64"),
        # LLVM: cbsz and blgp number the formats of a and b: fp8, bf8, fp6, bf6, fp4
        (
            "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[10:13], v[0:3] cbsz:2 blgp:4",
            "v_mfma",
            "m16n16k128",
            "fp6×fp4→f32",
        ),
        (
            "v_mfma_scale_f32_32x32x64_f8f6f4 a[0:15], v[56:63], v[64:71], 0, v1, v3",
            "v_mfma_scale",
            "m32n32k64",
            "fp8×fp8→f32",
        ),
        ("v_smfmac_f32_16x16x64_bf8_fp8 v[0:3], v[4:7], v[8:15], v16", "v_smfmac", "m16n16k64", "bf8×fp8→f32"),
        ("v_wmma_f32_16x16x16_f16 v[9:16], v[81:88], v[65:72], v[9:16]", "v_wmma", "m16n16k16", "f16×f16→f32"),
        ("v_wmma_bf16_16x16x16_bf16 v[9:16], v[81:88], v[65:72], v[9:16]", "v_wmma", "m16n16k16", "bf16×bf16→bf16"),
        (
            "v_wmma_i32_16x16x16_iu8 v[9:16], v[81:84], v[65:68], v[9:16] neg_lo:[1,1,0]",
            "v_wmma",
            "m16n16k16",
            "iu8×iu8→i32",
        ),
        ("v_wmma_f32_16x16x16_fp8_bf8 v[0:7], v[8:9], v[10:11], v[0:7]", "v_wmma", "m16n16k16", "fp8×bf8→f32"),
        ("v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20", "v_swmmac", "m16n16k32", "f16×f16→f32"),
        ("v_wmma_f32_16x16x32_f16 v[56:63], v[166:173], v[102:109], v[56:63]", "v_wmma", "m16n16k32", "f16×f16→f32"),
        (
            "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:31], v[0:7] matrix_b_fmt:MATRIX_FMT_FP4",
            "v_wmma",
            "m16n16k128",
            "fp8×fp4→f32",
        ),
        (
            "v_wmma_scale16_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15], v1, v2",
            "v_wmma_scale16",
            "m32n16k128",
            "f4×f4→f32",
        ),
    ],
)
def test_a_wavefront_issues_a_product_of_the_named_shape(line: str, op: str, shape: str, types: str) -> None:
    found = FORMAT.matrix(one(line), module(""))
    assert found is not None
    assert (found.op, found.shape, found.types, found.issuer) == (op, shape, types, "wavefront")
    assert found.family == ("wmma" if "wm" in op else "mfma")
