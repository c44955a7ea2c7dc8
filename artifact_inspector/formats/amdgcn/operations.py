"""Semantics of AMDGCN opcodes on integers, masks, addresses and control flow, for all generations.

Opcodes that are not listed have no semantics. Floating-point data is not followed, except the operations that integer
division consists of.

**Source** AMD Instinct MI200, MI300 and CDNA4 and RDNA 3 and RDNA 4 Instruction Set Architecture documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.formats import _amd

Action = Enum(
    "Action",
    """
    MOVE NOT REVERSE_BITS ADD SUBTRACT SUBTRACT_FROM ADD_WITH_CARRY SUBTRACT_WITH_BORROW SUBTRACT_FROM_WITH_BORROW
    MULTIPLY MULTIPLY_HIGH MULTIPLY_24 MULTIPLY_ADD_24 MULTIPLY_ADD_WIDE MULTIPLY_ADD_16 SHIFT_LEFT SHIFT_RIGHT
    AND OR XOR XNOR AND_NOT OR_NOT NAND NOR XOR_XOR AND_OR OR_OR ADD_ADD SHIFT_OR SHIFT_ADD ADD_SHIFT XOR_ADD BITOP3
    BITFIELD_EXTRACT BITFIELD_INSERT BITFIELD_MASK PERMUTE_BYTES FUNNEL_SHIFT MIN MAX MIN3 MAX3 MEDIAN3 ABSOLUTE
    MASKED_BIT_COUNT COUNT_BITS TRAILING_ZEROS LEADING_ZEROS SIGN_BITS MOVE_PAIR SWAP SET_BIT CLEAR_BIT SIGN_EXTEND PACK
    SELECT CONDITIONAL_MOVE COMPARE COMPARE_INTO_EXEC COMPARE_FLOATS TEST_BIT SAVE_EXEC
    READ_LANE READ_FIRST_LANE WRITE_LANE PERMUTE_LANES
    FROM_INTEGER TO_INTEGER RECIPROCAL ADD_FLOATS SUBTRACT_FLOATS MULTIPLY_FLOATS MULTIPLY_ADD_FLOATS
    MULTIPLY_ACCUMULATE_FLOATS TRUNCATE
    LOAD_SCALAR LOAD_SCALAR_BUFFER LOAD_BUFFER STORE_BUFFER ATOMIC_BUFFER LOAD_GLOBAL STORE_GLOBAL ATOMIC_GLOBAL
    LOAD_SCRATCH STORE_SCRATCH LOAD_SHARED STORE_SHARED ATOMIC_SHARED
    BRANCH BRANCH_IF END BARRIER GET_PC CALL SET_PC NOP UNTRACKED
    """,
)
"""Operation of an instruction.

`SUBTRACT_FROM` is the second operand minus the first. `BITOP3` is any function of three bits, with its truth table in a
modifier. `SIGN_BITS` counts the leading bits equal to the sign bit; -1 if all are equal. `MOVE_PAIR` (`v_pk_mov_b32`)
selects either word of each of two pairs. `SELECT` is by a mask (vector) or by SCC (scalar). `PERMUTE_LANES` is
`ds_bpermute`. `MULTIPLY_ACCUMULATE_FLOATS` adds the product to the destination. `UNTRACKED` computes data that is
intentionally not followed.
"""


class OpcodeSemantics(NamedTuple):
    """Semantics of an opcode."""

    action: Action
    bits: int = 32
    """Bits of its operands."""
    is_signed: bool = False
    condition: str = ""
    """`lt`, `eq` … for a comparison; `scc0`, `execz` … for a branch; the operation of a saved EXEC; the shift of
    `s_lshl2_add_u32`."""
    size: int = 0
    """Bytes per lane of a memory access."""
    addresses: int = 1
    """Addresses per lane: 2 for `ds_read2`."""
    stride: int = 1
    """Factor of the addresses' offsets, in addition to the size."""
    preserves_half: bool = False
    """Writes half of a register and keeps the other half."""
    writes_shared: bool = False


_ACTION_OPCODES: Mapping[Action, str] = {
    Action.MOVE: "v_mov_b32 v_mov_b64 v_accvgpr_write_b32 v_accvgpr_read_b32 v_accvgpr_mov_b32 s_mov_b32 s_mov_b64",
    Action.NOT: "v_not_b32 s_not_b32 s_not_b64",
    Action.REVERSE_BITS: "v_bfrev_b32 s_brev_b32",
    Action.ADD: "v_add_u32 v_add_nc_u32 v_add_nc_i32 v_add_i32 v_add_co_u32 v_add_u16 v_add_nc_u16"
    " v_add_nc_u64 s_add_u32 s_add_i32 s_add_co_i32 s_add_co_u32 s_add_nc_u64 s_addk_i32 s_addk_co_i32",
    Action.SUBTRACT: "v_sub_u32 v_sub_nc_u32 v_sub_nc_i32 v_sub_i32 v_sub_co_u32 v_sub_u16 v_sub_nc_u16"
    " v_sub_nc_u64 s_sub_u32 s_sub_i32 s_sub_co_i32 s_sub_co_u32 s_sub_nc_u64",
    Action.SUBTRACT_FROM: "v_subrev_u32 v_subrev_nc_u32 v_subrev_co_u32",
    Action.ADD_WITH_CARRY: "v_addc_co_u32 v_add_co_ci_u32 s_addc_u32 s_add_co_ci_u32",
    Action.SUBTRACT_WITH_BORROW: "v_subb_co_u32 v_sub_co_ci_u32 s_subb_u32 s_sub_co_ci_u32",
    Action.SUBTRACT_FROM_WITH_BORROW: "v_subbrev_co_u32 v_subrev_co_ci_u32",
    Action.MULTIPLY: "v_mul_lo_u32 v_mul_lo_i32 v_mul_lo_u16 v_mul_u64 s_mul_i32 s_mulk_i32 s_mul_u64",
    Action.MULTIPLY_HIGH: "v_mul_hi_u32 v_mul_hi_i32 s_mul_hi_u32 s_mul_hi_i32",
    Action.MULTIPLY_24: "v_mul_u32_u24 v_mul_i32_i24",
    Action.MULTIPLY_ADD_24: "v_mad_u32_u24 v_mad_i32_i24",
    Action.MULTIPLY_ADD_WIDE: "v_mad_u64_u32 v_mad_i64_i32 v_mad_co_u64_u32 v_mad_co_i64_i32 v_mad_nc_u64_u32"
    " v_mad_nc_i64_i32",
    Action.MULTIPLY_ADD_16: "v_mad_u32_u16 v_mad_i32_i16",
    Action.SHIFT_LEFT: "v_lshlrev_b32 v_lshlrev_b64 v_lshlrev_b16 s_lshl_b32 s_lshl_b64",
    Action.SHIFT_RIGHT: "v_lshrrev_b32 v_lshrrev_b64 v_lshrrev_b16 v_ashrrev_i32 v_ashrrev_i64 v_ashrrev_i16"
    " s_lshr_b32 s_lshr_b64 s_ashr_i32 s_ashr_i64",
    Action.AND: "v_and_b32 v_and_b16 s_and_b32 s_and_b64",
    Action.OR: "v_or_b32 v_or_b16 s_or_b32 s_or_b64",
    Action.XOR: "v_xor_b32 v_xor_b16 s_xor_b32 s_xor_b64",
    Action.XNOR: "v_xnor_b32 s_xnor_b32 s_xnor_b64",
    Action.AND_NOT: "s_andn2_b32 s_andn2_b64 s_and_not1_b32 s_and_not1_b64",
    Action.OR_NOT: "s_orn2_b32 s_orn2_b64 s_or_not1_b32 s_or_not1_b64",
    Action.NAND: "s_nand_b32 s_nand_b64",
    Action.NOR: "s_nor_b32 s_nor_b64",
    Action.XOR_XOR: "v_xor3_b32",
    Action.AND_OR: "v_and_or_b32",
    Action.OR_OR: "v_or3_b32",
    Action.ADD_ADD: "v_add3_u32",
    Action.SHIFT_OR: "v_lshl_or_b32",
    Action.SHIFT_ADD: "v_lshl_add_u32 v_lshl_add_u64 s_lshl1_add_u32 s_lshl2_add_u32 s_lshl3_add_u32 s_lshl4_add_u32",
    Action.ADD_SHIFT: "v_add_lshl_u32",
    Action.XOR_ADD: "v_xad_u32",
    Action.BITOP3: "v_bitop3_b32",
    Action.BITFIELD_EXTRACT: "v_bfe_u32 v_bfe_i32 s_bfe_u32 s_bfe_i32 s_bfe_u64 s_bfe_i64",
    Action.BITFIELD_INSERT: "v_bfi_b32",
    Action.BITFIELD_MASK: "v_bfm_b32 s_bfm_b32 s_bfm_b64",
    Action.PERMUTE_BYTES: "v_perm_b32",
    Action.FUNNEL_SHIFT: "v_alignbit_b32 v_alignbyte_b32",
    Action.MIN: "v_min_u32 v_min_i32 s_min_u32 s_min_i32",
    Action.MAX: "v_max_u32 v_max_i32 s_max_u32 s_max_i32",
    Action.MIN3: "v_min3_u32 v_min3_i32",
    Action.MAX3: "v_max3_u32 v_max3_i32",
    Action.MEDIAN3: "v_med3_u32 v_med3_i32",
    Action.ABSOLUTE: "s_abs_i32",
    Action.MASKED_BIT_COUNT: "v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32",
    Action.COUNT_BITS: "v_bcnt_u32_b32 s_bcnt1_i32_b32 s_bcnt1_i32_b64",
    Action.TRAILING_ZEROS: "v_ffbl_b32 v_ctz_i32_b32 s_ff1_i32_b32 s_ff1_i32_b64 s_ctz_i32_b32 s_ctz_i32_b64",
    Action.LEADING_ZEROS: "v_ffbh_u32 v_clz_i32_u32 s_flbit_i32_b32 s_clz_i32_u32 s_flbit_i32_b64 s_clz_i32_u64",
    Action.SIGN_BITS: "v_ffbh_i32 v_cls_i32 s_flbit_i32 s_cls_i32 s_flbit_i32_i64 s_cls_i32_i64",
    Action.MOVE_PAIR: "v_pk_mov_b32",
    Action.SWAP: "v_swap_b32",
    Action.SET_BIT: "s_bitset1_b32",
    Action.CLEAR_BIT: "s_bitset0_b32",
    Action.SIGN_EXTEND: "s_sext_i32_i8 s_sext_i32_i16",
    Action.PACK: "s_pack_ll_b32_b16 s_pack_lh_b32_b16 s_pack_hh_b32_b16",
    Action.SELECT: "v_cndmask_b32 s_cselect_b32 s_cselect_b64",
    Action.CONDITIONAL_MOVE: "s_cmov_b32 s_cmov_b64",
    Action.READ_LANE: "v_readlane_b32",
    Action.READ_FIRST_LANE: "v_readfirstlane_b32",
    Action.WRITE_LANE: "v_writelane_b32",
    Action.PERMUTE_LANES: "ds_bpermute_b32 ds_permute_b32",
    Action.FROM_INTEGER: "v_cvt_f32_u32 v_cvt_f32_i32 v_cvt_f32_ubyte0 s_cvt_f32_u32 s_cvt_f32_i32",
    Action.TO_INTEGER: "v_cvt_u32_f32 v_cvt_i32_f32 s_cvt_u32_f32 s_cvt_i32_f32",
    Action.RECIPROCAL: "v_rcp_iflag_f32 v_rcp_f32 v_s_rcp_f32",
    Action.ADD_FLOATS: "v_add_f32 s_add_f32",
    Action.SUBTRACT_FLOATS: "v_sub_f32 s_sub_f32",
    Action.MULTIPLY_FLOATS: "v_mul_f32 s_mul_f32",
    Action.MULTIPLY_ADD_FLOATS: "v_fma_f32 v_mad_f32 v_fmamk_f32 v_fmaak_f32",
    Action.MULTIPLY_ACCUMULATE_FLOATS: "v_fmac_f32 v_mac_f32 s_fmac_f32",
    Action.TRUNCATE: "v_trunc_f32 s_trunc_f32",
    Action.END: "s_endpgm s_endpgm_saved",
    Action.BARRIER: "s_barrier s_barrier_wait",
    Action.GET_PC: "s_getpc_b64 s_get_pc_i64",
    Action.CALL: "s_swappc_b64 s_swap_pc_i64",
    Action.SET_PC: "s_setpc_b64 s_set_pc_i64",
    Action.BRANCH: "s_branch",
}
_ACTIONS: Mapping[str, Action] = {
    opcode: action for action, opcodes in _ACTION_OPCODES.items() for opcode in opcodes.split()
}
_BITS = re.compile(r"_[iub](8|16|32|64)(?=_|$)")
_COMPARE = re.compile(r"(v_cmpx?|s_cmpk?)_(lt|eq|le|gt|lg|ne|ge|t|f|tru)_([iu])(16|32|64)$")
_FLOATS = re.compile(r"(?:v_cmpx?|s_cmp)_\w+_(?:f|bf)\d+$|v_cmpx?_class")
_BRANCH = re.compile(r"s_cbranch_(scc0|scc1|vccz|vccnz|execz|execnz)$")
_SAVE = re.compile(r"s_(and|or|xor|andn2|and_not1|andn1|and_not0|orn2|or_not1|nand|nor|xnor)_saveexec_b(32|64)$")
_TEST = re.compile(r"s_bitcmp([01])_b(32|64)$")
_MEMORY = re.compile(
    r"(buffer|global|flat|scratch)_(load|store)_(?:lds_)?(dword(?:x[234])?|b(?:32|64|96|128)|u?s?byte|short|[us]short"
    r"|[ui]8|[ui]16|b8|b16)(_d16)?(_hi)?$"
)
_D16 = re.compile(r"(buffer|global|flat|scratch)_load_(?:short|b16|u?s?byte|[ui]8)_?(d16)(?:_hi)?(?:_[a-z]\w*)?$")
_D16_FIRST = re.compile(r"(buffer|global|flat|scratch)_(load|store)_d16(_hi)?_([ui]8|b16|b8)$")
_ATOMIC = re.compile(r"(buffer|global|flat)_atomic_(\w+)$")
_SCALAR = re.compile(r"s_(buffer_)?load_(dword(?:x(?:2|4|8|16))?|b(?:32|64|96|128|256|512)|[ui](?:8|16))$")
_SHARED = re.compile(
    r"ds_(read|write|load|store)(2|2st64)?_(?:(2addr|2addr_stride64)_)?(?:addtid_)?([ubi](?:8|16|32|64|96|128))(_d16)?(_hi)?(_tr_\w+)?$"
)
_SHARED_ATOMIC = re.compile(r"ds_(?:pk_)?(?:add|sub|rsub|inc|dec|min|max|and|or|xor|cmpst|cmpstore|wrxchg|storexchg)_")
_NOPS = re.compile(
    r"s_(?:waitcnt\w*|wait_\w+|nop|sleep|delay_alu|clause|setprio|sched\w*|sethalt|inst_prefetch|set_inst_prefetch\w*"
    r"|sendmsg|dcache\w*|icache\w*|gl1_inv|ttrace\w*|code_end|version|set_gpr_idx\w*|setreg\w*|barrier_signal|trap"
    r"|wakeup|round_mode|denorm_mode|incperflevel|decperflevel|prefetch\w*|set_vgpr_msb|monitor_sleep)$"
    r"|buffer_(?:gl[01]_inv|wbl2|wbinvl1\w*|inv\w*)$|global_(?:inv|wb|wbinv|prefetch_b8)$|v_nop$|ds_nop$"
)
_UNTRACKED = re.compile(
    r"v_(?:mov_b16|cndmask_b16|s_(?:exp|log|rcp|rsq|sqrt)_f|mfma|smfmac|wmma|swmmac|dot|pk_|cvt_|exp|log|rsq|rcp|sqrt|sin|cos|ldexp|frexp|fract|floor|ceil|rndne|trunc|div_"
    r"|min(?:3|imum\w*|max)?_|max(?:3|imum\w*|min)?_|med3_|fma|mac_|mad_|add_f|add_bf|sub_f|subrev_f|mul_f|mul_legacy"
    r"|mul_dx9|permlane|swap|pack|cmp_class|sat_pk|lshlrev_b16|add_f16|interp|ashr_pk|prng|bitop3_b16|cube|sad|msad)"
    r"|ds_(?:swizzle|permute|read_\w*tr_|load_tr)|s_(?:exp|log|rcp|rsq|sqrt|cvt|fma|min_f|max_f|floor|ceil|rndne|min_num|max_num)"
)
_WIDTHS: Mapping[str, int] = {
    "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64,
    "ubyte": 1, "sbyte": 1, "byte": 1, "short": 2, "ushort": 2, "sshort": 2,
}  # fmt: skip
_MEMORY_ACTIONS: Mapping[tuple[str, str], Action] = {
    ("buffer", "load"): Action.LOAD_BUFFER, ("buffer", "store"): Action.STORE_BUFFER,
    ("global", "load"): Action.LOAD_GLOBAL, ("global", "store"): Action.STORE_GLOBAL,
    ("flat", "load"): Action.LOAD_GLOBAL, ("flat", "store"): Action.STORE_GLOBAL,
    ("scratch", "load"): Action.LOAD_SCRATCH, ("scratch", "store"): Action.STORE_SCRATCH,
}  # fmt: skip


def _width(name: str) -> int:
    return _WIDTHS[name] if name in _WIDTHS else int(name.lstrip("biu")) // 8


@lru_cache(maxsize=4096)
def semantics_of(opcode: str) -> OpcodeSemantics | None:
    """The semantics of an opcode without its encoding; None if unknown."""
    name = opcode.replace("v_dual_", "v_")
    if name in _ACTIONS:
        return _arithmetic_semantics(name, _ACTIONS[name])
    semantics = _memory_semantics(name) or _control_semantics(name)
    if semantics is None and (_NOPS.match(name) or _UNTRACKED.match(name)):
        return OpcodeSemantics(Action.NOP if _NOPS.match(name) else Action.UNTRACKED)
    return semantics


def _arithmetic_semantics(name: str, action: Action) -> OpcodeSemantics:
    sizes = [int(size) for size in _BITS.findall(name)]
    is_signed = re.search(r"_i\d+", name) is not None
    if action is Action.MULTIPLY_ADD_WIDE:
        return OpcodeSemantics(action, 64, is_signed)
    if action in (Action.COUNT_BITS, Action.TRAILING_ZEROS, Action.LEADING_ZEROS, Action.SIGN_BITS):
        return OpcodeSemantics(action, sizes[-1])
    if action is Action.SIGN_EXTEND:
        return OpcodeSemantics(action, sizes[-1], True)
    if action is Action.PACK:
        return OpcodeSemantics(action, condition=name.split("_")[2])
    if action in (Action.ADD, Action.MULTIPLY) and name.startswith(("s_addk", "s_mulk")):
        return OpcodeSemantics(action, 32, True, "constant")
    if action is Action.SHIFT_ADD and name.startswith("s_"):
        return OpcodeSemantics(action, condition=name[len("s_lshl")])
    if action is Action.FUNNEL_SHIFT:
        return OpcodeSemantics(action, 8 if "byte" in name else 1)
    return OpcodeSemantics(action, sizes[0] if sizes else 32, is_signed, "carry" if "_co_" in name else "")


def _control_semantics(name: str) -> OpcodeSemantics | None:
    if match := _COMPARE.match(name):
        action = Action.COMPARE_INTO_EXEC if match[1] == "v_cmpx" else Action.COMPARE
        condition = {"ne": "lg", "tru": "t"}.get(match[2], match[2])
        return OpcodeSemantics(action, int(match[4]), match[3] == "i", condition)
    if _FLOATS.match(name):
        return OpcodeSemantics(Action.COMPARE_FLOATS)
    if match := _BRANCH.match(name):
        return OpcodeSemantics(Action.BRANCH_IF, condition=match[1])
    if match := _SAVE.match(name):
        canonical_names = {"and_not1": "andn2", "or_not1": "orn2", "and_not0": "andn1"}
        return OpcodeSemantics(Action.SAVE_EXEC, int(match[2]), condition=canonical_names.get(match[1], match[1]))
    if match := _TEST.match(name):
        return OpcodeSemantics(Action.TEST_BIT, int(match[2]), condition=match[1])
    if name in ("s_movk_i32", "s_cmovk_i32"):
        return OpcodeSemantics(Action.MOVE if name == "s_movk_i32" else Action.CONDITIONAL_MOVE, 32, True)
    return None


def _memory_semantics(name: str) -> OpcodeSemantics | None:
    if match := _MEMORY.match(name):
        return OpcodeSemantics(
            _MEMORY_ACTIONS[match[1], match[2]],
            is_signed=match[3] in ("sbyte", "sshort", "i8", "i16"),
            size=_width(match[3]),
            preserves_half=match[4] is not None,
            writes_shared=match[0].split("_")[2:3] == ["lds"],
        )
    if match := _D16_FIRST.match(name):
        return OpcodeSemantics(
            _MEMORY_ACTIONS[match[1], match[2]],
            size=_width(match[4]),
            preserves_half=match[2] == "load",
            condition="hi" if match[3] else "",
        )
    if match := _D16.match(name):
        size = 1 if "byte" in name or "8" in name else 2
        return OpcodeSemantics(_MEMORY_ACTIONS[match[1], "load"], size=size, preserves_half=True)
    if match := _ATOMIC.match(name):
        is_wide = re.search(r"(?:_x2|64)$", match[2]) is not None
        action = Action.ATOMIC_BUFFER if match[1] == "buffer" else Action.ATOMIC_GLOBAL
        return OpcodeSemantics(action, size=8 if is_wide else 4)
    if match := _SCALAR.match(name):
        action = Action.LOAD_SCALAR_BUFFER if match[1] else Action.LOAD_SCALAR
        return OpcodeSemantics(action, size=_width(match[2]))
    if match := _SHARED.match(name):
        if match[7]:
            return OpcodeSemantics(Action.UNTRACKED)
        two_addresses = match[2] or match[3] or ""
        return OpcodeSemantics(
            Action.LOAD_SHARED if match[1] in ("read", "load") else Action.STORE_SHARED,
            is_signed=match[4][0] == "i",
            size=int(match[4][1:]) // 8,
            addresses=2 if two_addresses else 1,
            stride=64 if "64" in two_addresses else 1,
            preserves_half=match[5] is not None,
        )
    if _SHARED_ATOMIC.match(name):
        return OpcodeSemantics(Action.ATOMIC_SHARED, size=8 if "64" in name else 4)
    return None


_ARITHMETIC = re.compile(r"v_(pk_)?(add|sub|subrev|mul|fma|fmac|mac|mad)_(f|bf)(16|32|64)$")
_MIXED_MULTIPLY_ADD = re.compile(r"v_(fma|mad)_mix(lo|hi)?_(f16|f32)$")
"""Computes in 32 bits from 16-bit and 32-bit operands."""


def float_operations(base: str) -> tuple[tuple[str, int], ...]:
    """Floating-point operations of one lane by type; a multiply-add counts as two."""
    if _MIXED_MULTIPLY_ADD.match(base):
        return (("fp32", 2),)
    match = _ARITHMETIC.match(base.replace("v_dual_", "v_"))
    if match is None:
        return ()
    operations = (2 if match[2] in ("fma", "fmac", "mac", "mad") else 1) * (2 if match[1] else 1)
    return ((f"{'bf' if match[3] == 'bf' else 'fp'}{match[4]}", operations),)


def loads_left(opcode: str, text: str, target: str) -> int | None:
    """Vector-memory operations that a wait leaves in flight; None if it waits for none."""
    wait = _amd.wait_of(opcode, text, target)
    return None if wait is None else wait.depth
