"""What AMDGCN instructions compute, one by one: a few lines of code, run over one wave or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from artifact_inspector.execution.amdgcn import semantics as amdgcn
from artifact_inspector.execution.amdgcn.environment import AmdgcnEnvironment
from artifact_inspector.execution.interpreter import access_counting
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.cta_memory import CtaMemory
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import InputNames, UnknownValue
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.simulation import UnfinishedCtas, run_machines
from artifact_inspector.formats import format_of
from artifact_inspector.formats.amdgcn.kernel import read_initial_state
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

TEXT = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"
\t.type\tk,@function
k:
{code}
\ts_endpgm
.Lfunc_end0:
\t.amdhsa_kernel k
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t.end_amdhsa_kernel
\t.amdgpu_metadata
    .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .name:           k
    .wavefront_size: {wave}
\t.end_amdgpu_metadata
"""


def run(
    code: str, target: str = "gfx942", threads: int = 64, ctas: int = 1, values: tuple[int, ...] | None = None
) -> tuple[Machine, StepCounters, list[UnfinishedCtas]]:
    """The machine after some statements, one on each line, labels ending in a colon."""
    wave = 32 if target.startswith("gfx1") else 64
    lines = [line if line.endswith(":") else f"\t{line}" for line in map(str.strip, code.strip().splitlines())]
    text = TEXT.format(target=target, code="\n".join(lines), wave=wave)
    module = format_of(Stage.AMDGCN).parse(SourceText("k.amdgcn", text), Stage.AMDGCN)
    beginning = read_initial_state(text, "k")
    program = amdgcn.read_program(module, "k", beginning, 128)
    launch = place_tensors(KernelLaunch((ctas, 1, 1), {"x": Tensor((256,), "int32", values=values), "n": 7}))
    names, counts, memory = InputNames(), StepCounters(len(program.steps), 10_000), GlobalMemory(launch)
    given = [(name, launch.arguments[name]) for name in ("x", "n")]
    environment = AmdgcnEnvironment(program, beginning, launch, given, threads, names)
    machine = Machine(program, np.arange(ctas), threads, memory, counts, names, environment)
    environment.initialize(machine)
    return machine, counts, run_machines(machine)


def value(machine: Machine, name: str) -> object:
    found = machine.read_register(name)
    if isinstance(found, np.ndarray):
        return found.tolist() if found.min() != found.max() else found.flat[0].item()
    return found


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        ("s_load_dword s4, s[0:1], 0x8", "s4", 7),
        ("s_movk_i32 s4, 0xffff", "s4", 0xFFFFFFFF),
        ("s_mov_b32 s3, 5\ns_sub_i32 s4, s3, 7", "s4", 0xFFFFFFFE),
        ("s_mov_b32 s3, -1\ns_add_u32 s5, s3, 1\ns_addc_u32 s4, 0, 0", "s4", 1),
        ("s_mov_b32 s3, 0x7fffffff\ns_add_i32 s5, s3, 1\ns_cselect_b32 s4, 1, 0", "s4", 1),
        ("s_mov_b32 s3, 5\ns_lshl2_add_u32 s4, s3, 7", "s4", 27),
        ("s_mov_b32 s3, 0x40000000\ns_lshl2_add_u32 s5, s3, 7\ns_cselect_b32 s4, s5, 0", "s4", 7),  # it carries
        ("s_mov_b32 s3, 0\ns_sub_u32 s5, s3, 1\ns_subb_u32 s4, 9, 0", "s4", 8),
        ("s_mov_b32 s3, -1\ns_mul_hi_u32 s4, s3, s3", "s4", 0xFFFFFFFE),
        ("s_mov_b32 s3, -8\ns_ashr_i32 s4, s3, 1", "s4", 0xFFFFFFFC),
        ("s_mov_b32 s3, 0xabcd\ns_bfe_u32 s4, s3, 0x80004", "s4", 0xBC),
        ("s_mov_b32 s3, 0x80\ns_bfe_i32 s4, s3, 0x10007", "s4", 0xFFFFFFFF),
        ("s_bfm_b32 s4, 5, 3", "s4", 0xF8),
        ("v_mov_b32_dpp v1, v0 wave_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\nv_readlane_b32 s4, v1, 9", "s4", 10),
        ("v_mov_b32_dpp v1, v0 wave_ror:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\nv_readlane_b32 s4, v1, 0", "s4", 63),
        ("s_mov_b64 s[2:3], -2\ns_lshr_b64 s[4:5], s[2:3], 33", "s4", 0x7FFFFFFF),
        ("s_mov_b32 s3, -5\ns_abs_i32 s4, s3", "s4", 5),
        ("s_mov_b32 s3, 3\ns_cmp_lt_i32 s3, -1\ns_cselect_b32 s4, 1, 2", "s4", 2),
        ("s_mov_b32 s3, 4\ns_addk_i32 s3, 0xfffe\ns_mov_b32 s4, s3", "s4", 2),
        ("s_mov_b32 s3, 6\ns_bitcmp1_b32 s3, 1\ns_cselect_b32 s4, 1, 0", "s4", 1),
        ("s_mov_b32 s3, 0x3ff000\ns_flbit_i32 s4, s3", "s4", 10),
        ("s_mov_b32 s3, 0xff000000\ns_flbit_i32 s4, s3", "s4", 8),
        ("s_mov_b32 s3, -1\ns_flbit_i32 s4, s3", "s4", 0xFFFFFFFF),
        ("s_mov_b64 s[2:3], -3\ns_cls_i32_i64 s4, s[2:3]", "s4", 62),
        ("s_mov_b64 s[2:3], 2\ns_flbit_i32_b64 s4, s[2:3]", "s4", 62),
        ("s_mov_b32 s4, 6\ns_bitset1_b32 s4, 31", "s4", 0x80000006),
        ("s_mov_b32 s4, 6\ns_bitset0_b32 s4, 1", "s4", 4),
        ("v_mov_b32_e32 v1, 5\nv_pk_mov_b32 v[2:3], v[0:1], v[0:1] op_sel:[1,0]\nv_readlane_b32 s4, v2, 9", "s4", 5),
        ("v_mov_b32_e32 v1, 5\nv_pk_mov_b32 v[2:3], v[0:1], v[0:1] op_sel:[1,0]\nv_readlane_b32 s4, v3, 9", "s4", 9),
        ("v_mov_b32_e32 v1, 5\nv_swap_b32 v1, v0\nv_sub_u32_e32 v2, v1, v0\nv_readlane_b32 s4, v2, 9", "s4", 4),
        ("v_mov_b32_e32 v1, 0x90\nv_bfe_i32 v2, v1, 4, 4\nv_readfirstlane_b32 s4, v2", "s4", 0xFFFFFFF9),
        ("v_mov_b32_e32 v1, -1\nv_mul_hi_u32 v2, v1, v1\nv_readfirstlane_b32 s4, v2", "s4", 0xFFFFFFFE),
        ("v_mov_b32_e32 v1, 3\nv_lshl_or_b32 v2, v1, 4, 5\nv_readlane_b32 s4, v2, 63", "s4", 0x35),
        ("v_mov_b32_e32 v1, 6\nv_xad_u32 v2, v1, 3, 10\nv_readfirstlane_b32 s4, v2", "s4", 15),
        ("v_mov_b32_e32 v1, 0x44332211\nv_perm_b32 v2, v1, v1, 0x0c000304\nv_readfirstlane_b32 s4, v2", "s4", 0x114411),
        ("v_readlane_b32 s4, v0, 17", "s4", 17),
        ("v_cmp_gt_u32_e64 s[4:5], 3, v0", "s4", 7),
        ("v_cmp_eq_u32_e32 vcc, 33, v0\ns_mov_b32 s4, vcc_hi", "s4", 2),
        ("v_mbcnt_lo_u32_b32 v1, -1, 0\nv_mbcnt_hi_u32_b32 v1, -1, v1\nv_readlane_b32 s4, v1, 40", "s4", 40),
        ("v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\nv_readlane_b32 s4, v1, 18", "s4", 17),
        ("v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\nv_readlane_b32 s4, v1, 16", "s4", 0),
        ("v_mov_b32_dpp v1, v0 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf\nv_readlane_b32 s4, v1, 5", "s4", 6),
        ("v_lshrrev_b32_sdwa v1, v0, v0 dst_sel:DWORD src0_sel:BYTE_1 src1_sel:DWORD\nv_readlane_b32 s4, v1, 9", "s4", 9),
        ("v_lshlrev_b32_e32 v1, 2, v0\nv_xor_b32_e32 v1, 4, v1\nds_bpermute_b32 v2, v1, v0\nv_readlane_b32 s4, v2, 8", "s4", 9),
        ("v_add_u32_e32 v1, 3, v0\nv_lshlrev_b32_e32 v1, 2, v1\nds_permute_b32 v2, v1, v0\nv_readlane_b32 s4, v2, 9", "s4", 6),
        ("v_lshlrev_b32_e32 v1, 3, v0\nds_permute_b32 v2, v1, v0\nv_readlane_b32 s4, v2, 2", "s4", 33),  # 1 gives as well
        ("v_lshlrev_b32_e32 v1, 3, v0\nds_permute_b32 v2, v1, v0\nv_readlane_b32 s4, v2, 3", "s4", 0),  # nobody gives
        ("v_lshlrev_b32_e32 v1, 2, v0\nv_cmp_gt_u32_e32 vcc, 8, v0\ns_and_b64 exec, exec, vcc\nv_xor_b32_e32 v1, 32, v1\n"
         "ds_bpermute_b32 v2, v1, v0\nv_readlane_b32 s4, v2, 3", "s4", 0),  # lane 11 is off
        ("global_load_dword v3, v0, s[0:1]\nv_cmp_gt_u32_e32 vcc, 8, v0\ns_and_b64 exec, exec, vcc\nv_lshlrev_b32_e32 v1, 2, v0\n"
         "v_mov_b32_e32 v3, v0\nds_permute_b32 v2, v1, v3\nv_readlane_b32 s4, v2, 7", "s4", 7),  # what is off is not known
        ("v_mov_b32_e32 v1, 0x40000000\nv_mov_b32_e32 v2, 1.0\nv_fmamk_f32 v3, v1, 0x40400000, v2\nv_readfirstlane_b32 s4, v3", "s4", 0x40E00000),  # 2 · 3 + 1
        ("v_mov_b32_e32 v1, 0x40000000\nv_mov_b32_e32 v2, 1.0\nv_fmaak_f32 v3, v1, v2, 0x40400000\nv_readfirstlane_b32 s4, v3", "s4", 0x40A00000),  # 2 · 1 + 3
        ("v_sub_u32_e64 v1, v0, 1 clamp\nv_readfirstlane_b32 s4, v1", "s4", 0),
        ("v_sub_u32_e64 v1, v0, 1 clamp\nv_readlane_b32 s4, v1, 5", "s4", 4),
    ],
)  # fmt: skip
def test_a_number_is_what_the_manual_says(code: str, name: str, expected: int) -> None:
    machine, _, ended = run(code)
    assert ended == []
    assert value(machine, name) == expected


@pytest.mark.parametrize(("low", "high", "count"), [(5, 0, 3), (0xFFFFFFFF, 1, 2), (0x80000000, 7, 4), (1, 0, 0)])
def test_a_shifted_sum_of_64_bits_is_that_of_its_halves(low: int, high: int, count: int) -> None:
    code = f"""
        v_mov_b32_e32 v2, {low:#x}
        v_mov_b32_e32 v3, {high:#x}
        v_mov_b32_e32 v4, 0xfffffff0
        v_mov_b32_e32 v5, 2
        v_lshl_add_u64 v[6:7], v[2:3], {count}, v[4:5]
    """
    machine, _, _ = run(code)
    total = (((high << 32 | low) << count) + (2 << 32 | 0xFFFFFFF0)) & (1 << 64) - 1
    assert (value(machine, "v6"), value(machine, "v7")) == (total & 0xFFFFFFFF, total >> 32)


def test_a_kernel_that_declares_nothing_uses_no_lds_and_starts_with_its_workgroup() -> None:
    text = ".amdhsa_kernel k\n.amdhsa_user_sgpr_count 2\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.end_amdhsa_kernel\n"
    state = read_initial_state(text, "k")
    assert (state.lds_bytes, state.max_threads, state.wavefront_size) == (0, 0, 64)
    assert (state.kernarg_register, dict(state.workgroup_registers)) == (0, {0: "s2"})
    more = text.replace(".end", ".amdhsa_group_segment_fixed_size 4096\n.amdhsa_wavefront_size32 1\n"
                        ".amdhsa_system_sgpr_workgroup_id_z 1\n.end")  # fmt: skip
    assert read_initial_state(more, "k").lds_bytes == 4096
    assert read_initial_state(more, "k").wavefront_size == 32
    assert dict(read_initial_state(more, "k").workgroup_registers) == {0: "s2", 2: "s3"}


def test_behind_a_comma_a16_is_a_register() -> None:
    machine, _, _ = run("v_accvgpr_write_b32 a16, v0\nv_accvgpr_read_b32 v1, a16\nv_readlane_b32 s4, v1, 9")
    assert value(machine, "s4") == 9


@pytest.mark.parametrize(
    ("opcode", "begin", "size", "lines"), [("dwordx2", 124, 8, 2), ("dwordx3", 0, 12, 1), ("dwordx4", 4, 16, 1)]
)
def test_an_access_need_not_lie_at_a_multiple_of_its_bytes(opcode: str, begin: int, size: int, lines: int) -> None:
    machine, counts, _ = run(
        "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32_e32 v1, 0\n"
        f"global_load_{opcode} v[4:7], v1, s[2:3] offset:{begin}"
    )
    region = machine.memory.regions[0]
    assert np.flatnonzero(region.read_marks).tolist() == list(range(begin // 4, (begin + size) // 4))
    assert sum(counts.sectors) == lines


def test_a_lane_that_keeps_a_scalar_register_is_one() -> None:
    machine, counts, unfinished = run("""
    s_mov_b32 s3, 5
    v_writelane_b32 v9, s3, 7
    v_writelane_b32 v9, 6, 8
    v_writelane_b32 v8, s3, 7
    v_cmp_gt_u32_e64 s[4:5], 3, v0
    s_mov_b64 exec, s[4:5]
    v_readlane_b32 s6, v9, 7
    v_readlane_b32 s7, v9, 8
    v_mov_b32_e32 v1, v8
    """)
    assert not unfinished
    assert (value(machine, "s6"), value(machine, "s7")) == (5, 6)
    assert machine.registers.keys() & {"v8", "v9"} == {"v8"}  # another instruction reads v8
    assert counts.threads_executed[6:9] == [3, 3, 3]
    assert machine.program.steps[6].text == "v_readlane_b32 s6, v9, 7"


def test_the_first_lane_of_a_wave_without_lanes_is_unknown() -> None:
    machine, _, unfinished = run("""
    v_cmp_gt_u32_e64 s[4:5], 70, v0
    s_and_b64 exec, exec, s[4:5]
    v_mov_b32_e32 v1, 5
    v_readfirstlane_b32 s6, v1
    v_cmp_gt_u32_e64 s[4:5], 64, v0
    s_and_b64 exec, exec, s[4:5]
    v_mov_b32_e32 v1, 6
    v_readfirstlane_b32 s7, v1
    """, threads=128)  # fmt: skip
    assert not unfinished
    assert value(machine, "s6") == 5
    first_lanes = machine.read_register("s7")
    assert isinstance(first_lanes, UnknownValue)
    assert (np.broadcast_to(first_lanes.unknown_bits, (1, 128)) != 0).tolist() == [[False] * 64 + [True] * 64]


def test_an_integer_division_by_floats_is_exact() -> None:
    code = """
    s_mov_b32 s2, 1000003
    s_mov_b32 s3, 97
    v_cvt_f32_u32_e32 v1, s3
    v_rcp_iflag_f32_e32 v1, v1
    v_mul_f32_e32 v1, 0x4f7ffffe, v1
    v_cvt_u32_f32_e32 v1, v1
    s_sub_i32 s5, 0, s3
    v_readfirstlane_b32 s6, v1
    s_mul_i32 s5, s5, s6
    s_mul_hi_u32 s5, s6, s5
    s_add_i32 s6, s6, s5
    s_mul_hi_u32 s5, s2, s6
    s_mul_i32 s7, s5, s3
    s_sub_i32 s7, s2, s7
    s_cmp_ge_u32 s7, s3
    s_addc_u32 s4, s5, 0
    """
    machine, _, _ = run(code)
    assert value(machine, "s4") == 1000003 // 97


def test_lanes_that_exec_has_off_keep_what_they_held_and_touch_nothing() -> None:
    code = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_mov_b32_e32 v1, 1
    v_lshlrev_b32_e32 v2, 2, v0
    v_cmp_gt_u32_e32 vcc, 3, v0
    s_and_saveexec_b64 s[4:5], vcc
    v_mov_b32_e32 v1, 2
    global_store_dword v2, v1, s[2:3]
    s_or_b64 exec, exec, s[4:5]
    """
    machine, _, _ = run(code)
    assert machine.read_register("v1").tolist() == [[2] * 3 + [1] * 61]
    assert machine.memory.count_unique_bytes() == (0, 12)


def test_waves_part_at_a_scalar_branch_and_meet_at_a_barrier() -> None:
    code = """
    v_readfirstlane_b32 s2, v0
    s_cmp_eq_u32 s2, 0
    s_cbranch_scc1 .LBB0_1
    s_nop 0
    s_nop 0
    .LBB0_1:
    s_barrier
    """
    _, counts, ended = run(code, threads=256)
    assert ended == []
    assert counts.warps_executed == [4, 4, 4, 3, 3, 4, 4]


def test_a_buffer_reads_nought_behind_its_end() -> None:
    code = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_mov_b32 s6, 16
    s_mov_b32 s7, 0x27000
    v_lshlrev_b32_e32 v1, 2, v0
    buffer_load_dword v2, v1, s[4:7], 0 offen
    """
    machine, counts, _ = run(code, values=tuple(range(10, 266)))
    assert machine.read_register("v2").tolist() == [[10, 11, 12, 13] + [0] * 60]
    assert machine.memory.count_unique_bytes() == (16, 0)
    assert counts.sectors[4] == 1


def test_ctas_that_store_in_different_lanes_are_counted_by_sets_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[LaneAccesses] = []
    count = access_counting._count_lanes
    monkeypatch.setattr(
        access_counting, "_count_lanes", lambda m, lanes, *a, **o: (counted.append(lanes), count(m, lanes, *a, **o))
    )
    code = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_mov_b32 s6, 1024
    s_mov_b32 s7, 0x27000
    s_and_b32 s8, s2, 3
    s_lshl_b32 s8, s8, 3
    s_and_b32 s9, s2, 7
    v_add_u32_e32 v1, s9, v0
    v_lshlrev_b32_e32 v1, 2, v1
    v_cmp_gt_u32_e64 s[10:11], s8, v0
    v_bfrev_b32_e32 v2, 1
    v_cndmask_b32_e64 v3, v2, v1, s[10:11]
    buffer_store_dword v0, v3, s[4:7], 0 offen
    """  # the store of the other lanes is out of range
    machine, counts, unfinished = run(code, threads=128, ctas=512)
    assert not unfinished
    assert [lanes.cta_offsets is None for lanes in counted] == [False] * 3  # of 8, 16 and 24 lanes
    first = np.arange(512) % 8
    lanes = np.arange(512) % 4 * 8
    assert counts.bytes_requested[11] == 4 * lanes.sum()
    assert counts.accessing_ctas[11] == (lanes > 0).sum()
    assert counts.active_threads[11] == lanes.sum()
    assert counts.sectors[11] == sum(
        len({4 * at // 128 for at in range(a, a + n)}) for a, n in zip(first, lanes, strict=True)
    )
    assert machine.memory.count_unique_bytes() == (0, 4 * 30)  # words 1 to 30


def test_both_halves_of_a_dual_instruction_read_before_either_writes() -> None:
    code = """
    v_dual_mov_b32 v1, 3 :: v_dual_mov_b32 v2, 5
    v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1
    """
    machine, counts, _ = run(code, target="gfx1100", threads=32)
    assert (value(machine, "v1"), value(machine, "v2")) == (5, 3)
    assert sum(counts.warps_executed) == 3


def test_what_a_float_decides_is_unknown_by_name_and_an_opcode_without_meaning_is_listed() -> None:
    machine, _, ended = run("v_exp_f32_e32 v1, v0\nv_cmp_gt_f32_e32 vcc, 0, v1\ns_cbranch_vccz .LBB0_1\n.LBB0_1:")
    assert ended[0].reasons == ("the result of v_cmp_gt_f32_e32",)
    machine, _, _ = run("s_frobnicate_b32 s4, s0")
    assert machine.program.unsupported_opcodes == ("s_frobnicate_b32",)
    assert isinstance(machine.read_register("s4"), UnknownValue)


def test_the_lower_half_of_a_sum_needs_no_upper_half() -> None:
    """LLVM leaves the upper half of what `v_mad_u64_u32` adds as it happens to be."""
    machine, _, _ = run("v_mov_b32_e32 v2, 5\nv_mad_u64_u32 v[4:5], s[2:3], v0, 3, v[2:3]\nv_readlane_b32 s4, v4, 7")
    assert value(machine, "s4") == 26
    assert isinstance(machine.read_register("v5"), UnknownValue)


def test_a_wave_of_gfx12_finds_its_number_and_its_workgroup_in_trap_registers() -> None:
    code = "s_bfe_u32 s4, ttmp8, 0x50019\ns_mov_b32 s5, ttmp9\ns_and_b32 s6, ttmp7, 0xffff"
    machine, _, _ = run(code, target="gfx1201", threads=64, ctas=2)
    assert machine.read_register("s4").tolist() == [[0] * 32 + [1] * 32]
    assert machine.read_register("s5").tolist() == [[0], [1]]
    assert value(machine, "s6") == 0


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("s_branch .LBB0_1\ns_nop 0\n.LBB0_1:\n.Lfunc_end0:", "code past the end of the kernel"),
        ("s_mov_b32 s20, 1\n.Lfunc_end0:", "code past the end of the kernel"),
        ("v_mov_b32_dpp v1, v2 quad_perm:[1,0,3]\ns_endpgm", "invalid operands"),
    ],
)
def test_damaged_code_ends_in_words(code: str, reason: str) -> None:
    _, _, ended = run(code)
    assert [one.reasons for one in ended] == [(reason,)]


@pytest.mark.parametrize("code", ["v_cmp_eq_u32_e32 vcc\ns_endpgm", "s_cselect_b32 s1\ns_endpgm"])
def test_an_instruction_whose_operands_were_lost_means_nothing(code: str) -> None:
    machine, _, ended = run(code)
    assert not machine.program.steps[0].is_supported or ended


@pytest.mark.parametrize("address", [1 << 31, -8])
def test_shared_memory_that_no_gpu_has_is_not_kept(address: int) -> None:
    scratch = CtaMemory()
    some = np.full((1, 64), 8, np.int64)
    scratch.store(some, 4, some, some > 0)
    scratch.store(some * 0 + address, 4, some, some > 0)
    assert scratch.content is not None
    assert scratch.content.nbytes < 1000
    assert scratch.load(some * 0 + address, 4, some > 0) is None


@pytest.mark.parametrize("ctas", [range(2 * 3 * 5), [17]])
def test_a_workgroup_knows_its_place_in_a_grid_of_three_axes(ctas: Sequence[int]) -> None:
    """The first axis counts fastest, as hardware dispatches workgroups."""
    text = TEXT.format(target="gfx942", code="", wave=64)
    beginning = replace(read_initial_state(text, "k"), workgroup_registers={0: "s6", 1: "s7", 2: "s8"})
    module = format_of(Stage.AMDGCN).parse(SourceText("k.amdgcn", text), Stage.AMDGCN)
    program = amdgcn.read_program(module, "k", beginning, 128)
    launch = place_tensors(KernelLaunch((2, 3, 5), {"x": Tensor((256,), "int32"), "n": 7}))
    names, counts, memory = InputNames(), StepCounters(len(program.steps), 10_000), GlobalMemory(launch)
    environment = AmdgcnEnvironment(program, beginning, launch, [("x", launch.arguments["x"]), ("n", 7)], 256, names)
    machine = Machine(program, np.array(ctas), 256, memory, counts, names, environment)
    environment.initialize(machine)
    every = [(x, y, z) for z in range(5) for y in range(3) for x in range(2)]
    x, y, z = (np.ravel(machine.registers[name]).tolist() for name in ("s6", "s7", "s8"))
    assert list(zip(x, y, z, strict=True)) == [every[cta] for cta in ctas]
    assert np.ravel(machine.registers["ttmp9"]).tolist() == x
    assert np.ravel(machine.registers["ttmp7"]).tolist() == [b + (c << 16) for b, c in zip(y, z, strict=True)]
    assert np.ravel(machine.registers["v0"]).tolist() == list(range(256))
    assert np.ravel(machine.registers["ttmp8"]).tolist() == [thread // 64 << 25 for thread in range(256)]


SWAP_LOOP = """
s_load_dwordx2 s[2:3], s[0:1], 0x0
v_lshrrev_b32_e32 v1, {shift}, v0
v_lshlrev_b32_e32 v1, 2, v1
s_mov_b64 s[4:5], 0
global_load_dword v5, v1, s[2:3]
.LBB0_1:
v_add_f32_e32 v4, v5, v5
global_atomic_cmpswap v6, v1, v[4:5], s[2:3] {returns}
v_cmp_eq_u32_e32 vcc, {compared}, v5
s_or_b64 s[4:5], vcc, s[4:5]
v_mov_b32_e32 v5, v6
s_andn2_b64 exec, exec, s[4:5]
s_cbranch_execnz .LBB0_1
s_or_b64 exec, exec, s[4:5]
"""


@pytest.mark.parametrize(("shift", "attempts"), [(0, 1), (1, 2), (2, 4), (6, 64)])
def test_lanes_of_a_wave_that_share_a_word_swap_one_after_the_other(shift: int, attempts: int) -> None:
    _, counts, unfinished = run(SWAP_LOOP.format(shift=shift, returns="glc", compared="v6"), ctas=3, threads=128)
    assert unfinished == []
    assert counts.warps_executed[6] == 3 * 2 * attempts
    lanes_by_attempt = [64 - 64 // (1 << shift) * attempt for attempt in range(attempts)]
    assert counts.threads_executed[6] == 3 * 2 * sum(lanes_by_attempt)


@pytest.mark.parametrize(("returns", "compared"), [("glc", "v7"), ("glc", "v4")])
def test_a_comparison_with_another_register_than_the_returned_is_not_assumed(returns: str, compared: str) -> None:
    assert run(SWAP_LOOP.format(shift=0, returns=returns, compared=compared))[2]


def test_a_value_that_a_swap_returned_stays_unknown() -> None:
    machine, _, unfinished = run(SWAP_LOOP.format(shift=0, returns="glc", compared="v6"), values=(7,) * 256)
    assert not unfinished
    assert isinstance(machine.read_register("v6"), UnknownValue)


@pytest.mark.parametrize(
    ("shift", "access", "passes", "ideal"),
    [
        # 64 lanes: 32 words of 4 bytes in a pass, 16 of 8 bytes, 8 of 16 bytes
        (2, "ds_read_b32 v2, v1", 2, 2),
        (3, "ds_read_b64 v[2:3], v1", 4, 4),
        (4, "ds_write_b128 v1, v[2:5]", 8, 8),
        # a stride of 128 bytes: every lane of a pass on the same banks
        (7, "ds_read_b32 v2, v1", 64, 2),
        (7, "ds_write_b64 v1, v[2:3]", 64, 4),
    ],
)
def test_lanes_of_a_pass_over_lds_share_32_banks(shift: int, access: str, passes: int, ideal: int) -> None:
    _, counters, unfinished = run(f"v_lshlrev_b32_e32 v1, {shift}, v0\n{access}")
    assert not unfinished
    assert (counters.wavefronts[1], counters.wavefronts_ideal[1]) == (passes, ideal)


def test_the_widest_loads_serve_lanes_0_to_3_with_20_to_23() -> None:
    # slots of 16 bytes, of which 8 cover the banks; lanes 16 to 31 swap theirs in fours: 20 to 23 have those of 0 to 3
    code = """
    v_lshlrev_b32_e32 v1, 4, v0
    v_lshlrev_b32_e32 v2, 2, v0
    v_and_b32_e32 v2, 64, v2
    v_xor_b32_e32 v1, v1, v2
    {}
    """
    accesses = ("ds_read_b128 v[4:7], v1", "ds_write_b128 v1, v[4:7]")
    assert [run(code.format(access))[1].wavefronts[4] for access in accesses] == [16, 8]
