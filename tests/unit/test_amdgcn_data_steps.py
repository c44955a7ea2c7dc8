"""Which AMDGCN instructions decide nothing, by the lanes of EXEC; that counters are the same without their results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from artifact_inspector.execution.amdgcn.semantics import read_program
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.formats.amdgcn.kernel import InitialState
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

FIXTURES = Path(__file__).parents[2] / "fixtures" / "3.6.0"
STORE = "global_store_dword v[4:5], v2, off"
OPEN, CLOSE = "s_and_saveexec_b64 s[6:7], s[8:9]", "s_or_b64 exec, exec, s[6:7]"


def shared_data_decides(*body: str) -> bool:
    lines = [line if line.endswith(":") else f"\t{line}" for line in (*body, "s_endpgm")]
    text = "\n".join(
        ['\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', "\t.type\tk,@function", "k:", *lines, ".Lend:", ""]
    )
    module = format_of(Stage.AMDGCN).parse(SourceText("k.amdgcn", text), Stage.AMDGCN)
    program = read_program(module, "k", InitialState((), 64, 0), 128)
    assert program.counting is not None
    return program.counting.keeps_shared_data


HARMLESS = {
    "stored": ("ds_read_b32 v2, v3", STORE),
    "products": ("ds_read_b64 v[2:3], v9", "v_mfma_f32_32x32x8_f16 v[16:31], v[2:3], v[10:11], v[16:31]", STORE),
    "register used again": ("ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", STORE),
    "used again in fewer lanes": ("ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", OPEN, STORE, CLOSE),
    "used again behind fewer lanes": ("ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", OPEN, "v_mov_b32_e32 v2, 0", CLOSE, STORE),
    "used again in those lanes": ("ds_read_b32 v4, v3", OPEN, "v_mov_b32_e32 v4, v9", STORE, CLOSE),
    "selected": ("ds_read_b32 v2, v3", "v_cmp_gt_i32_e32 vcc, s11, v2", "v_cndmask_b32_e32 v2, 0, v2, vcc", STORE),
    "selected by two": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e32 vcc, s11, v2", "s_and_b64 vcc, s[2:3], vcc",
        "v_cndmask_b32_e32 v2, 0, v2, vcc", "s_cmp_lt_i32 s4, 1", "s_cbranch_scc1 .Lend", STORE,
    ),
    "mask written again": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e64 s[2:3], s11, v2", "v_cmp_gt_i32_e64 s[2:3], s11, v9",
        "s_and_b64 vcc, vcc, s[2:3]", "v_cndmask_b32_e32 v4, v4, v9, vcc", STORE,
    ),
    "selected by another mask than vcc": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e32 vcc, s11, v2", "v_cndmask_b32_e64 v4, v4, v9, s[2:3]", STORE,
    ),
    "register written as a whole": (
        "ds_read_b32 v4, v3", "v_and_b32_sdwa v4, v9, v8 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3", STORE,
    ),
    "second of a pair written again": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e64 s[4:5], s11, v2", "s_mov_b32 s5, s9", "v_mov_b32_e32 v4, s5", STORE,
    ),
    "first lane written again": (
        "ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", "v_readfirstlane_b32 s8, v4", "s_add_u32 s4, s8, 4", STORE,
    ),
    "spilled register written again": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e64 s[4:5], s11, v2", "v_writelane_b32 v40, s4, 7", "v_writelane_b32 v40, s9, 7",
        "v_readlane_b32 s6, v40, 7", "v_mov_b32_e32 v4, s6", STORE,
    ),
}  # fmt: skip
DECIDING = {
    "address": ("ds_read_b32 v4, v3", "v_lshlrev_b32_e32 v4, 2, v4", STORE),
    "kept in other lanes": ("ds_read_b32 v4, v3", OPEN, "v_mov_b32_e32 v4, v9", CLOSE, STORE),
    "other lanes by exclusive or": ("ds_read_b32 v4, v3", OPEN, "v_mov_b32_e32 v4, v9", "s_xor_b64 exec, exec, s[6:7]", STORE),
    "lanes of another register": (
        "ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", OPEN, "s_mov_b32 s7, 0", CLOSE, STORE,
    ),
    "mask": ("ds_read_b32 v2, v3", "v_cmp_gt_i32_e64 s[8:9], s11, v2", OPEN, STORE, CLOSE),
    "branch by vcc": ("ds_read_b32 v2, v3", "v_cmp_gt_i32_e32 vcc, s11, v2", "s_cbranch_vccz .Lend", STORE),
    "branch by scc": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e32 vcc, s11, v2", "s_and_b64 s[2:3], s[2:3], vcc", "s_cbranch_scc0 .Lend", STORE,
    ),
    "first lane": ("ds_read_b32 v2, v3", "v_readfirstlane_b32 s8, v2", "s_add_u32 s4, s8, 4", STORE),
    "spilled to a lane": (
        "ds_read_b32 v2, v3", "v_cmp_gt_i32_e64 s[4:5], s11, v2", "v_writelane_b32 v40, s4, 7", "v_readlane_b32 s6, v40, 7",
        "v_mov_b32_e32 v4, s6", STORE,
    ),
    "other lane": ("ds_read_b32 v2, v3", "v_mov_b32_dpp v4, v2 quad_perm:[1,0,3,2]", STORE),
    "half of a register": ("ds_read_b32 v4, v3", "v_mov_b32_sdwa v4, v9 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", STORE),
    "carry": ("ds_read_b32 v2, v3", "v_add_co_u32_e32 v4, vcc, v2, v9", "v_addc_co_u32_e32 v5, vcc, 0, v5, vcc", STORE),
    "in scratch memory": ("ds_read_b32 v2, v3", "scratch_store_dword off, v2, s4", "scratch_load_dword v4, off, s4", STORE),
    "half of the lanes read from a lane": ("ds_read_b32 v4, v3", "v_mov_b32_e32 v4, v9", OPEN, "v_readlane_b32 s7, v8, 1", CLOSE, STORE),
    "atomic of shared memory": ("ds_add_rtn_u32 v2, v3, v6", STORE),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_only_stored_decides_nothing(name: str) -> None:
    assert not shared_data_decides(*HARMLESS[name])


@pytest.mark.parametrize("name", DECIDING)
def test_what_reaches_an_address_a_mask_or_a_branch_decides(name: str) -> None:
    assert shared_data_decides(*DECIDING[name])


def test_a_product_counts_the_same_with_and_without_data() -> None:
    (entry,) = open_cache(FIXTURES / "gfx942" / "matmul_grouped").entries
    loaded, rows, depth = load_kernel(entry, None), 500, 200
    assert loaded.program.counting is not None
    assert not loaded.program.counting.keeps_shared_data
    sizes = {"M": rows, "N": rows, "K": depth, "stride_am": depth, "stride_bk": rows, "stride_cm": rows}
    tensors = {"a_ptr": Tensor((rows, depth), "fp16"), "b_ptr": Tensor((depth, rows), "fp16")}
    launch = KernelLaunch((16, 1, 1), {**tensors, "c_ptr": Tensor((rows, rows), "fp16"), **sizes})
    keeping = replace(loaded, program=replace(loaded.program, counting=None))
    found, expected = (predict_counters(simulate_launch(kernel, launch), 50 << 20) for kernel in (loaded, keeping))
    assert found == expected
