"""Kinds of the opcodes of AMD's assembler (AMD ISA documents), gfx9 to gfx12."""

from __future__ import annotations

from artifact_inspector.formats._format import OpcodeTable
from artifact_inspector.model import EventKind

_CONDITIONS = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt tru t class ne"
_FLOAT_COMPARES = " ".join(
    f"{base}_{condition}_{kind}"
    for base in ("v_cmp", "v_cmpx", "s_cmp")
    for condition in _CONDITIONS.split()
    for kind in ("f", "bf")
)

OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: """
            global_load flat_load buffer_load tbuffer_load cluster_load image_load image_sample image_gather
            image_msaa_load
        """,
        EventKind.ASYNC_COPY: """
            global_load_lds global_load_async_to_lds cluster_load_async_to_lds buffer_load_lds buffer_load_async_to_lds
            tensor_load_to_lds
        """,
        EventKind.WAIT: """
            s_waitcnt_vmcnt s_wait_loadcnt s_wait_asynccnt s_wait_tensorcnt
        """,
        EventKind.SHARED_LOAD: "ds_read ds_load lds_direct_load lds_param_load",
        EventKind.SHARED_STORE: "ds_write ds_store",
        EventKind.MATRIX: "v_mfma v_smfmac v_wmma v_swmmac",
        EventKind.FLOAT: f"""
            {_FLOAT_COMPARES} v_add_f v_add_bf v_sub_f v_sub_bf v_subrev_f v_subrev_bf v_mul_f v_mul_bf v_mul_legacy
            v_mul_dx9 v_mac v_mad_f v_mad_legacy v_mad_mix v_madak v_madmk v_fma v_min_f v_min_bf v_max_f v_max_bf
            v_min_num v_max_num v_min_legacy v_max_legacy v_minimum v_maximum v_min3_f v_max3_f v_med3_f v_min3_num
            v_max3_num v_med3_num v_minmax_f v_maxmin_f v_minmax_num v_maxmin_num v_rcp v_rsq v_sqrt v_exp v_log v_sin
            v_cos v_tanh v_ldexp v_frexp v_fract v_trunc v_ceil v_floor v_rndne v_div v_trig v_cube v_interp v_pk_add_f
            v_pk_add_bf v_pk_mul_f v_pk_mul_bf v_pk_fma v_pk_min_f v_pk_max_f v_pk_min_num v_pk_max_num v_pk_minimum
            v_pk_maximum v_pk_min3_num v_pk_max3_num v_dot v_s_exp v_s_log v_s_rcp v_s_rsq v_s_sqrt s_add_f s_sub_f
            s_mul_f s_fma s_min_f s_max_f s_min_num s_max_num s_minimum s_maximum s_ceil_f s_floor_f s_trunc_f s_rndne_f
        """,
        EventKind.BARRIER: "s_barrier$ s_barrier_wait",
        EventKind.SCHEDULE_HINT: "s_setprio",
        EventKind.GLOBAL_STORE: """
            global_store flat_store buffer_store tbuffer_store image_store tensor_store_from_lds
        """,
        EventKind.ATOMIC: """
            global_atomic flat_atomic buffer_atomic image_atomic s_atomic s_buffer_atomic ds_add ds_sub ds_rsub ds_inc
            ds_dec ds_min ds_max ds_and ds_or ds_xor ds_mskor ds_cmpst ds_cmpstore ds_wrxchg ds_storexchg ds_wrap
            ds_append ds_consume ds_pk_add ds_condxchg ds_cond_sub
        """,
        EventKind.SCALAR_LOAD: "s_load s_buffer_load",
        EventKind.LOCAL_LOAD: "scratch_load",
        EventKind.LOCAL_STORE: "scratch_store",
        EventKind.SHUFFLE: "ds_bpermute ds_permute ds_swizzle v_permlane",
        EventKind.BRANCH: """
            s_branch s_cbranch s_setpc s_set_pc s_add_pc s_swappc s_swap_pc s_call s_endpgm s_rfe
        """,
        EventKind.INTEGER: """
            v_add_u v_add_i v_add_co v_add_nc v_add3 v_add_lshl v_addc v_sub_u v_sub_i v_sub_co v_sub_nc v_subb
            v_subbrev v_subrev_u v_subrev_i v_subrev_co v_subrev_nc v_subrevb v_mul_i v_mul_u v_mul_lo v_mul_hi v_mad_i
            v_mad_u v_mad_co v_mad_nc v_and v_or v_xor v_xnor v_not v_xad v_lshl v_lshr v_ashr v_alignbit v_alignbyte
            v_bfe v_bfi v_bfm v_bfrev v_bitop v_bcnt v_mbcnt v_ffb v_cl v_ctz v_min_i v_min_u v_max_i v_max_u v_min3_i
            v_min3_u v_max3_i v_max3_u v_med3_i v_med3_u v_minmax_i v_minmax_u v_maxmin_i v_maxmin_u v_add_min v_add_max
            v_sad v_msad v_mqsad v_qsad v_lerp v_cmp v_pk_add v_pk_sub v_pk_mul v_pk_mad v_pk_lshl v_pk_lshr v_pk_ashr
            v_pk_min v_pk_max v_ashr_pk v_prng v_and_or v_or3 s_add s_sub s_mul s_and s_or s_xor s_nand s_nor s_xnor
            s_not s_andn1 s_andn2 s_orn1 s_orn2 s_lshl s_lshr s_ashr s_bfe s_bfm s_bfi s_bcnt s_brev s_bitset s_bitcmp
            s_bitreplicate s_cmp s_cmpk s_ff s_flbit s_cl s_ctz s_abs s_absdiff s_min_i s_min_u s_max_i s_max_u s_sext
            s_wqm s_quadmask s_getpc s_get_pc
        """,
        EventKind.MOVE: """
            v_mov v_swap v_cndmask v_perm_b32 v_cvt v_accvgpr v_readlane v_readfirstlane v_writelane v_pack v_sat_pk
            v_pk_mov s_mov s_cmov s_cselect s_pack s_cvt s_swap
        """,
        EventKind.OTHER: """
            s_scratch_load s_store s_buffer_store s_scratch_store s_waitcnt s_wait_ s_nop s_sleep s_delay_alu s_clause
            s_sched s_barrier_ s_get_barrier_state s_sendmsg s_sethalt s_setkill s_trap s_getreg s_setreg s_set_vgpr_msb
            s_set_gpr_idx s_setvskip s_inst_prefetch s_set_inst_prefetch s_prefetch s_icache s_dcache s_gl1_inv
            s_memtime s_memrealtime s_round_mode s_denorm_mode s_code_end s_ttrace s_incperf s_decperf s_wakeup
            s_version s_alloc_vgpr s_singleuse s_monitor s_atc_probe s_sleep_var s_get_shader_cycles s_get_waveid
            s_subvector v_nop v_clrexcp v_pipeflush v_wmma_ld_scale global_prefetch flat_prefetch buffer_gl global_inv
            global_wb buffer_inv buffer_wb exp$ image_get image_bvh ds_nop ds_gws ds_bvh ds_ordered ds_atomic_async
            ds_atomic_barrier lds_atomic
        """,
    }.items()
)


def kind_of(opcode: str) -> EventKind:
    """The kind of an opcode; where operands or comments decide, the most common kind."""
    if opcode.startswith("v_dual_"):
        return OPCODES.kind(f"v_{opcode[7:]}")
    if opcode.startswith("v_mov_") and "_dpp" in opcode:
        return EventKind.SHUFFLE
    return OPCODES.kind(opcode)
