"""Kinds of the operations of Triton's dialects and of the other dialects in its files."""

from __future__ import annotations

from artifact_inspector.formats._format import OpcodeTable
from artifact_inspector.model import EventKind

# Rows have the names of the newest dialects; `modern_opcode` maps older names to them.
OPCODES = OpcodeTable(
    (kind, prefixes)
    for kind, prefixes in {
        EventKind.GLOBAL_LOAD: """
            tt.load tt.descriptor_load tt.descriptor_gather tt.experimental_descriptor_load
            tt.experimental_descriptor_gather amdg.buffer_load amdg.masked_load ttg.masked_load
        """,
        EventKind.ASYNC_COPY: """
            ttg.async_copy_global_to_local ttg.insert_slice_async ttng.insert_slice_async ttng.insert_slice_tma
            ttng.async_tma_copy_global_to_local ttng.async_tma_gather amdg.buffer_load_to_local
            amdg.async_tdm_copy_global_to_local amdg.async_tdm_gather amdg.async_copy_global_to_local
        """,
        EventKind.COMMIT: """
            ttg.async_commit_group ttng.barrier_expect ttng.tc_gen5_commit ttng.mbarrier_arrive
        """,
        EventKind.WAIT: """
            ttg.async_wait ttg.async_bulk_wait ttng.wait_barrier ttng.mbarrier_wait ttng.dot_wait
            ttng.warp_group_dot_wait ttng.async_tma_store_wait ttng.async_tma_store_token_wait amdg.async_wait
            amdg.async_tdm_wait amdg.async_tdm_intrinsic_wait amdg.wait_barrier amdg.s_waitcnt amdg.memory_counter_wait
            rocdl.s.waitcnt
        """,
        EventKind.SHARED_LOAD: """
            ttg.local_load ttg.local_gather amdg.local_load_packed_tranposed amdg.local_load
        """,
        EventKind.SHARED_STORE: "ttg.local_store ttg.local_scatter amdg.local_store",
        EventKind.MATRIX: """
            tt.dot ttng.warp_group_dot ttng.dot_async ttng.tc_gen5_mma ttng.mmav5 amdg.dot ttg.dot amdg.scaled_dot
        """,
        EventKind.FLOAT: """
            arith.addf arith.subf arith.mulf arith.divf arith.remf arith.negf arith.cmpf arith.maxnumf arith.minnumf
            arith.maximumf arith.minimumf arith.maxf arith.minf math. tt.reduce tt.scan tt.histogram
            tt.extern_elementwise tt.precise_sqrt tt.precise_divf tt.approx_divf tt.clampf tt.map_elementwise tt.fdiv
            tt.sqrt
        """,
        EventKind.BARRIER: """
            gpu.barrier ttg.barrier ttg.local_barrier nvvm.barrier rocdl.barrier rocdl.s.barrier ttng.cluster_wait
            ttng.cluster_barrier ttng.named_barrier_wait amdg.cluster_barrier_wait
        """,
        EventKind.LAYOUT_CONVERSION: "ttg.convert_layout",
        EventKind.SCHEDULE_HINT: """
            rocdl.sched rocdl.iglp rocdl.s.setprio amdg.cond_barrier amdg.instruction_sched_hint amdg.sched
            amdg.warp_pipeline
        """,
        EventKind.GLOBAL_STORE: """
            tt.store tt.descriptor_store tt.descriptor_scatter tt.experimental_descriptor_store
            tt.experimental_descriptor_scatter amdg.buffer_store amdg.masked_store ttng.async_tma_copy_local_to_global
            ttng.async_tma_scatter ttng.store_async amdg.async_tdm_copy_local_to_global amdg.async_tdm_scatter
            amdg.async_copy_local_to_global
        """,
        EventKind.ATOMIC: """
            tt.atomic tt.descriptor_reduce amdg.buffer_atomic ttng.async_tma_reduce tt.experimental_descriptor_reduce
        """,
        EventKind.BRANCH: """
            scf. cf. func. return$ call$ br$ cond_br$ tt.return tt.call ttg.warp_specialize ttg.warp_yield
            ttg.warp_return
        """,
        EventKind.INTEGER: """
            arith. tt.addptr tt.advance tt.make_range tt.mulhiui tt.umulhi ttg.cmpi index. math.absi math.ctpop
            math.ctlz math.cttz math.ipowi tt.dot_op$ amdg.arrive_barrier
        """,
        EventKind.MOVE: """
            arith.constant arith.select select$ arith.extf arith.truncf arith.extsi arith.extui arith.trunci
            arith.sitofp arith.uitofp arith.fptosi arith.fptoui arith.bitcast arith.index_cast arith.scaling_extf
            arith.scaling_truncf ttg.select tt.splat tt.unsplat tt.broadcast tt.expand_dims tt.reshape tt.view tt.trans
            tt.cat tt.join tt.split tt.gather tt.bitcast tt.fp_to_fp tt.int_to_ptr tt.ptr_to_int tt.pack tt.unpack
            ttg.memdesc ttg.extract_slice ttg.insert_slice$ ttg.subview ttg.fp4_to_fp tt.reduce.return tt.scan.return
            tt.map_elementwise.return tensor. vector. ub.poison amdg.upcast amdg.scaled_upcast amdg.extract_slice
            amdg.concat amdg.in_thread_transpose ttg.upcast_mxfp ttng.tmem_load ttng.tmem_store ttng.tmem_subslice
            ttng.tmem_alloc ttng.tmem_copy nvgpu. builtin.unrealized_conversion_cast amdg.to_linear
        """,
        EventKind.OTHER: """
            tt.get_ tt.make_tensor_ptr tt.make_tensor_descriptor tt.make_tensor_desc tt.assert tt.print tt.func
            tt.experimental_tensormap tt.reinterpret_tensor_descriptor tt.assume ttg.local_alloc ttg.local_dealloc
            ttg.alloc_tensor ttg.dealloc_tensor ttg.global_scratch ttg.warp_id ttg.thread_id ttg.predicate_stage
            ttg.mask ttg.async_copy_mbarrier_arrive ttg.global_load_token ttg.alloc_mbarrier ttng.init_barrier
            ttng.inval_barrier ttng.arrive_barrier ttng.async_copy_mbarrier_arrive ttng.fence ttng.tensormap
            ttng.reinterpret_tensor_descriptor ttng.cluster_arrive ttng.get_ ttng.alloc_mbarrier
            ttng.named_barrier_arrive ttng.prefetch ttng.async_tma_prefetch ttng.clc ttng.map_to_remote_buffer ttng.vote
            ttng.elect amdg.update_tensor_descriptor amdg.init_barrier amdg.read_barrier amdg.make_tensor_desc
            amdg.tdm_prefetch amdg.async_copy_mbarrier_arrive amdg.cluster_barrier_arrive amdg.buffer_prefetch
            amdg.prefetch gpu. nvvm. rocdl. llvm. nvws. proton. proton_gpu. tti.
            cuda_tile.assume cuda_tile.make_ cuda_tile.join_tokens cuda_tile.get_ cuda_tile.break cuda_tile.assert
            cuda_tile.print
        """,
    }.items()
)
