"""Kinds of LLVM's instructions and intrinsics, and of the opcodes in its inline assembly."""

from __future__ import annotations

from artifact_inspector.formats._format import OpcodeTable
from artifact_inspector.model import EventKind

OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: """
            llvm.nvvm.ld. llvm.nvvm.ldg. llvm.nvvm.ldu. llvm.amdgcn.global.load llvm.amdgcn.flat.load
            llvm.amdgcn.raw.buffer.load llvm.amdgcn.raw.ptr.buffer.load llvm.amdgcn.raw.tbuffer.load
            llvm.amdgcn.raw.ptr.tbuffer.load llvm.amdgcn.raw.atomic.buffer.load llvm.amdgcn.raw.ptr.atomic.buffer.load
            llvm.amdgcn.struct.buffer.load llvm.amdgcn.struct.ptr.buffer.load llvm.amdgcn.cluster.load
        """,
        EventKind.ASYNC_COPY: """
            llvm.nvvm.cp.async. llvm.amdgcn.global.load.lds llvm.amdgcn.global.load.async llvm.amdgcn.cluster.load.async
            llvm.amdgcn.load.to.lds llvm.amdgcn.load.async llvm.amdgcn.tensor.load llvm.amdgcn.raw.buffer.load.lds
            llvm.amdgcn.raw.buffer.load.async llvm.amdgcn.raw.ptr.buffer.load.lds llvm.amdgcn.raw.ptr.buffer.load.async
            llvm.amdgcn.struct.buffer.load.lds llvm.amdgcn.struct.buffer.load.async
            llvm.amdgcn.struct.ptr.buffer.load.lds llvm.amdgcn.struct.ptr.buffer.load.async
        """,
        EventKind.COMMIT: """
            llvm.nvvm.cp.async.commit llvm.nvvm.cp.async.bulk.commit llvm.nvvm.cp.async.mbarrier
            llvm.nvvm.mbarrier.arrive.expect llvm.nvvm.mbarrier.expect llvm.nvvm.wgmma.commit llvm.nvvm.tcgen05.commit
            llvm.amdgcn.asyncmark
        """,
        EventKind.WAIT: """
            llvm.nvvm.cp.async.wait llvm.nvvm.cp.async.bulk.wait llvm.nvvm.mbarrier.try.wait
            llvm.nvvm.mbarrier.test.wait llvm.nvvm.wgmma.wait llvm.nvvm.tcgen05.wait llvm.amdgcn.wait.asyncmark
            llvm.amdgcn.s.waitcnt$ llvm.amdgcn.s.wait.loadcnt llvm.amdgcn.s.wait.asynccnt llvm.amdgcn.s.wait.tensorcnt
        """,
        EventKind.SHARED_LOAD: "llvm.nvvm.ldmatrix llvm.amdgcn.ds.read llvm.amdgcn.ds.load",
        EventKind.SHARED_STORE: "llvm.nvvm.stmatrix ",
        EventKind.MATRIX: """
            llvm.nvvm.mma. llvm.nvvm.wgmma.mma llvm.nvvm.tcgen05.mma llvm.amdgcn.mfma llvm.amdgcn.smfmac
            llvm.amdgcn.wmma llvm.amdgcn.swmmac
        """,
        EventKind.FLOAT: """
            fadd$ fsub$ fmul$ fdiv$ frem$ fneg$ fcmp$ llvm.fma llvm.exp llvm.log llvm.pow llvm.sqrt llvm.sin llvm.cos
            llvm.tan llvm.asin llvm.acos llvm.atan llvm.maxnum llvm.minnum llvm.maximum llvm.minimum llvm.fabs
            llvm.copysign llvm.floor llvm.ceil llvm.trunc llvm.rint llvm.nearbyint llvm.round llvm.canonicalize
            llvm.frexp llvm.ldexp llvm.modf llvm.is.fpclass llvm.experimental.constrained llvm.vector.reduce.f
            llvm.matrix.multiply llvm.nvvm.ex2 llvm.nvvm.lg2 llvm.nvvm.rcp llvm.nvvm.rsqrt llvm.nvvm.sqrt llvm.nvvm.sin
            llvm.nvvm.cos llvm.nvvm.tanh llvm.nvvm.div llvm.nvvm.fma llvm.nvvm.add. llvm.nvvm.sub. llvm.nvvm.mul.
            llvm.nvvm.fmin llvm.nvvm.fmax llvm.nvvm.fabs llvm.nvvm.neg. llvm.nvvm.saturate llvm.nvvm.floor
            llvm.nvvm.ceil llvm.nvvm.round llvm.nvvm.trunc llvm.nvvm.idp llvm.amdgcn.exp2 llvm.amdgcn.log
            llvm.amdgcn.rcp llvm.amdgcn.rsq llvm.amdgcn.sqrt llvm.amdgcn.sin llvm.amdgcn.cos llvm.amdgcn.tanh
            llvm.amdgcn.fract llvm.amdgcn.frexp llvm.amdgcn.fmed3 llvm.amdgcn.fma llvm.amdgcn.fmul llvm.amdgcn.div.
            llvm.amdgcn.trig llvm.amdgcn.fdot llvm.amdgcn.sdot llvm.amdgcn.udot llvm.amdgcn.sudot llvm.amdgcn.dot
            llvm.amdgcn.pk. llvm.amdgcn.add. llvm.amdgcn.sub. llvm.amdgcn.max. llvm.amdgcn.min.
            llvm.amdgcn.wave.reduce.f @__nv_ @__ocml_ llvm.fmul llvm.nvvm.redux.sync.f
        """,
        EventKind.BARRIER: """
            llvm.nvvm.barrier llvm.nvvm.bar. llvm.amdgcn.s.barrier$ llvm.amdgcn.s.barrier.wait
            llvm.amdgcn.s.cluster.barrier
        """,
        EventKind.SCHEDULE_HINT: """
            llvm.amdgcn.sched llvm.amdgcn.iglp llvm.amdgcn.s.setprio llvm.amdgcn.s.sched
        """,
        EventKind.GLOBAL_STORE: """
            llvm.nvvm.cp.async.bulk.tensor.s2g llvm.nvvm.cp.async.bulk.shared.cta.to.global llvm.nvvm.st.
            llvm.amdgcn.global.store llvm.amdgcn.flat.store llvm.amdgcn.tensor.store llvm.amdgcn.raw.buffer.store
            llvm.amdgcn.raw.ptr.buffer.store llvm.amdgcn.raw.tbuffer.store llvm.amdgcn.raw.ptr.tbuffer.store
            llvm.amdgcn.struct.buffer.store llvm.amdgcn.struct.ptr.buffer.store
        """,
        EventKind.ATOMIC: """
            atomicrmw$ cmpxchg$ llvm.nvvm.atomic llvm.nvvm.red. llvm.nvvm.cp.async.bulk.tensor.reduce
            llvm.nvvm.cp.async.bulk.reduce llvm.amdgcn.global.atomic llvm.amdgcn.flat.atomic llvm.amdgcn.ds.atomic
            llvm.amdgcn.ds.fadd llvm.amdgcn.ds.fmin llvm.amdgcn.ds.fmax llvm.amdgcn.ds.add llvm.amdgcn.atomic
            llvm.amdgcn.raw.buffer.atomic llvm.amdgcn.raw.ptr.buffer.atomic llvm.amdgcn.struct.buffer.atomic
            llvm.amdgcn.struct.ptr.buffer.atomic
        """,
        EventKind.SHUFFLE: """
            llvm.nvvm.shfl llvm.nvvm.redux llvm.nvvm.vote llvm.nvvm.match llvm.nvvm.activemask llvm.amdgcn.ds.bpermute
            llvm.amdgcn.ds.permute llvm.amdgcn.ds.swizzle llvm.amdgcn.update.dpp llvm.amdgcn.mov.dpp
            llvm.amdgcn.permlane llvm.amdgcn.readlane llvm.amdgcn.writelane llvm.amdgcn.wave.reduce
            llvm.amdgcn.wave.shuffle
        """,
        EventKind.BRANCH: """
            call$ @ llvm.nvvm.exit llvm.amdgcn.endpgm llvm.amdgcn.unreachable llvm.amdgcn.kill
        """,
        EventKind.INTEGER: """
            add$ sub$ mul$ sdiv$ udiv$ srem$ urem$ shl$ lshr$ ashr$ and$ or$ xor$ icmp$ getelementptr$ llvm.smin
            llvm.smax llvm.umin llvm.umax llvm.abs llvm.scmp llvm.ucmp llvm.ctpop llvm.ctlz llvm.cttz llvm.bswap
            llvm.bitreverse llvm.fsh llvm.sadd llvm.uadd llvm.ssub llvm.usub llvm.smul llvm.umul llvm.sshl llvm.ushl
            llvm.sdiv llvm.udiv llvm.ptrmask llvm.vector.reduce. llvm.nvvm.mulhi llvm.nvvm.mul24 llvm.nvvm.sad
            llvm.nvvm.bfe llvm.nvvm.bfi llvm.nvvm.isspacep llvm.nvvm.mapa llvm.nvvm.fns llvm.nvvm.brev llvm.nvvm.popc
            llvm.nvvm.clz llvm.amdgcn.mbcnt llvm.amdgcn.ballot llvm.amdgcn.inverse.ballot llvm.amdgcn.icmp
            llvm.amdgcn.fcmp llvm.amdgcn.sbfe llvm.amdgcn.ubfe llvm.amdgcn.alignb llvm.amdgcn.mul. llvm.amdgcn.mulhi
            llvm.amdgcn.sad llvm.amdgcn.msad llvm.amdgcn.qsad llvm.amdgcn.mqsad llvm.amdgcn.lerp llvm.amdgcn.sffbh
            llvm.amdgcn.bitop3 llvm.amdgcn.s.bitreplicate llvm.amdgcn.make.buffer.rsrc llvm.amdgcn.is.shared
            llvm.amdgcn.is.private @__nv_mulhi @__nv_umulhi @__nv_popc @__nv_clz @__nv_ffs @__nv_brev @__nv_sad
            @__nv_usad @__nv_abs$ @__nv_min$ @__nv_max$ @__nv_umin$ @__nv_umax$
        """,
        EventKind.MOVE: """
            phi$ select$ freeze$ bitcast$ addrspacecast$ ptrtoint$ ptrtoaddr$ inttoptr$ trunc$ zext$ sext$ fptrunc$
            fpext$ fptosi$ fptoui$ sitofp$ uitofp$ extractelement$ insertelement$ shufflevector$ extractvalue$
            insertvalue$ llvm.fptosi llvm.fptoui llvm.convert llvm.vector. llvm.ssa.copy llvm.experimental.vector
            llvm.nvvm.prmt llvm.nvvm.bitcast llvm.nvvm.lohi llvm.nvvm.d2 llvm.nvvm.f2 llvm.nvvm.ff2 llvm.nvvm.ff.to
            llvm.nvvm.h2 llvm.nvvm.i2 llvm.nvvm.ll2 llvm.nvvm.ui2 llvm.nvvm.ull2 llvm.nvvm.bf2 llvm.nvvm.bf16x2
            llvm.nvvm.e2m llvm.nvvm.e3m llvm.nvvm.e4m llvm.nvvm.e5m llvm.nvvm.ue8m0 llvm.nvvm.ptr. llvm.nvvm.move
            llvm.amdgcn.cvt llvm.amdgcn.sat.pk llvm.amdgcn.perm$ llvm.amdgcn.readfirstlane llvm.amdgcn.wqm
            llvm.amdgcn.wwm llvm.amdgcn.strict llvm.amdgcn.set.inactive llvm.amdgcn.softwqm
        """,
        EventKind.OTHER: """
            fence$ alloca$ va_arg$ landingpad$ uselistorder$ llvm.assume llvm.lifetime llvm.invariant llvm.launder
            llvm.strip llvm.dbg llvm.expect llvm.donothing llvm.sideeffect llvm.is.constant llvm.objectsize
            llvm.annotation llvm.ptr.annotation llvm.var.annotation llvm.trap llvm.debugtrap llvm.ubsantrap llvm.stack
            llvm.prefetch llvm.pseudoprobe llvm.threadlocal llvm.readcyclecounter llvm.readsteadycounter
            llvm.get.rounding llvm.set.rounding llvm.load.relative llvm.nvvm.read.ptx llvm.nvvm.fence llvm.nvvm.membar
            llvm.nvvm.reflect llvm.nvvm.elect llvm.nvvm.setmaxnreg llvm.nvvm.mbarrier llvm.nvvm.wgmma.fence
            llvm.nvvm.tcgen05. llvm.nvvm.barrier.cta.arrive llvm.nvvm.barrier.cta.red.arrive
            llvm.nvvm.barrier.cluster.arrive llvm.nvvm.griddepcontrol llvm.nvvm.cp.async.bulk.prefetch
            llvm.nvvm.cp.async.bulk.shared.cta.to.cluster llvm.nvvm.cp.async.bulk.tensor.prefetch llvm.nvvm.prefetch
            llvm.nvvm.applypriority llvm.nvvm.discard llvm.nvvm.createpolicy llvm.nvvm.tensormap
            llvm.nvvm.clusterlaunchcontrol llvm.nvvm.nanosleep llvm.nvvm.pm.event llvm.nvvm.is_explicit_cluster
            llvm.nvvm.texsurf llvm.amdgcn.workgroup llvm.amdgcn.workitem llvm.amdgcn.cluster.id
            llvm.amdgcn.cluster.workgroup llvm.amdgcn.wave.id llvm.amdgcn.wave.barrier llvm.amdgcn.wavefrontsize
            llvm.amdgcn.dispatch llvm.amdgcn.implicitarg llvm.amdgcn.implicit.buffer llvm.amdgcn.kernarg
            llvm.amdgcn.queue llvm.amdgcn.lds.kernel.id llvm.amdgcn.groupstaticsize llvm.amdgcn.fence
            llvm.amdgcn.s.barrier. llvm.amdgcn.s.get llvm.amdgcn.s.set llvm.amdgcn.s.sleep llvm.amdgcn.s.nop
            llvm.amdgcn.s.sendmsg llvm.amdgcn.s.dcache llvm.amdgcn.s.icache llvm.amdgcn.s.mem llvm.amdgcn.s.monitor
            llvm.amdgcn.s.ttrace llvm.amdgcn.s.wait. llvm.amdgcn.s.prefetch llvm.amdgcn.s.buffer llvm.amdgcn.s.incperf
            llvm.amdgcn.s.decperf llvm.amdgcn.s.alloc llvm.amdgcn.s.wakeup llvm.amdgcn.buffer
            llvm.amdgcn.global.prefetch llvm.amdgcn.flat.prefetch llvm.amdgcn.live.mask llvm.amdgcn.ps.live
            llvm.amdgcn.init.exec llvm.amdgcn.reloc llvm.amdgcn.pops llvm.experimental
        """,
    }.items()
)
"""Kinds of LLVM's opcodes and intrinsics; `load` and `store` depend on the pointer's address space instead."""

ASM_OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: "global_load flat_load buffer_load multimem.ld",
        EventKind.ASYNC_COPY: """
            cp.async.ca cp.async.cg cp.async.bulk global_load_lds global_load_async tensor_load cluster_load_async
        """,
        EventKind.COMMIT: """
            cp.async.commit cp.async.bulk.commit cp.async.mbarrier mbarrier.arrive.expect_tx mbarrier.expect_tx
            wgmma.commit tcgen05.commit
        """,
        EventKind.WAIT: """
            cp.async.wait cp.async.bulk.wait mbarrier.try_wait mbarrier.test_wait wgmma.wait tcgen05.wait s_wait_loadcnt
            s_wait_asynccnt s_wait_tensorcnt
        """,
        EventKind.SHARED_LOAD: "ldmatrix. ds_read ds_load",
        EventKind.SHARED_STORE: "stmatrix. ds_write ds_store",
        EventKind.MATRIX: "mma. wmma.mma wgmma.mma tcgen05.mma v_mfma v_smfmac v_wmma v_swmmac",
        EventKind.FLOAT: """
            fma. ex2. lg2. sin. cos. tanh. rcp. rsqrt. sqrt. dp2a dp4a div.full div.approx v_fma v_mac v_dot v_exp v_log
            v_rcp v_rsq v_sqrt v_sin v_cos v_pk_fma
        """,
        EventKind.BARRIER: "bar. barrier. s_barrier s_barrier_wait",
        EventKind.SCHEDULE_HINT: "s_setprio s_sched",
        EventKind.GLOBAL_STORE: "global_store flat_store buffer_store tensor_store multimem.st",
        EventKind.ATOMIC: """
            atom. red. cp.reduce.async multimem.red global_atomic flat_atomic buffer_atomic ds_add ds_cmpst
        """,
        EventKind.SHUFFLE: """
            shfl. redux. vote. match. activemask ds_bpermute ds_permute ds_swizzle v_permlane v_readlane v_writelane
        """,
        EventKind.BRANCH: """
            bra$ bra. brx. call$ call. ret$ ret. exit$ trap$ s_branch s_cbranch s_endpgm
        """,
        EventKind.INTEGER: """
            add. addc. sub. subc. mul. mul24. mad. mad24. madc. div. rem. abs. neg. min. max. and. or. xor. not. cnot.
            lop3. shl. shr. shf. bfe. bfi. bfind. brev. popc. clz. fns. sad. setp. set. testp. isspacep. mapa. szext.
            bmsk. vadd vsub vabs vmin vmax vset v_add v_sub v_mul v_mad v_and v_or v_xor v_not v_lsh v_ash v_bf v_min
            v_max v_med v_cmp v_align v_sad v_mbcnt v_pk_ s_add s_sub s_mul s_and s_or s_xor s_not s_lsh s_ash s_bf
            s_cmp s_min s_max s_ff s_bcnt s_bitset
        """,
        EventKind.MOVE: """
            mov. mov$ cvt. cvta. prmt. selp. slct. v_mov v_cvt v_cndmask v_perm_ v_readfirstlane v_accvgpr v_swap s_mov
            s_cselect
        """,
        EventKind.OTHER: """
            createpolicy. elect. fence. membar. mbarrier. tensormap. griddepcontrol. prefetch prefetchu setmaxnreg.
            nanosleep. discard. applypriority. getctarank. clusterlaunchcontrol. tcgen05. wgmma.fence
            cp.async.bulk.prefetch bar.arrive barrier.arrive barrier.cta.arrive barrier.cluster.arrive pmevent nop$
            s_nop s_sleep s_waitcnt s_wait s_load s_buffer_load s_barrier_signal s_inst_prefetch s_delay_alu s_getreg
            s_setreg s_mem s_clause s_sendmsg buffer_wbl2 buffer_inv buffer_gl global_wb global_inv
        """,
    }.items()
)
"""Kinds of opcodes in inline assembly (PTX ISA, AMD's ISA manuals) that no type or operand decides."""
