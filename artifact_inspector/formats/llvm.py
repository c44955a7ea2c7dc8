"""Instructions of LLVM IR as `AsmWriter` prints it (LLVM Language Reference Manual), LLVM 14 and later.

Inline assembly is opened: a call gives one instruction for each event inside, so four `mov` and one
`ld.global` are one global load. Opcodes are LLVM's own words (`fadd`, `load`), the names of
intrinsics (`llvm.fma.f32`), `@name` for other calls, and the inner opcode for inline assembly.

Not read: what `FORMAT.cannot_read` names, and what the printer itself does not print (unindented
statements, statements over several lines other than `switch`, `invoke` and `callbr`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.errors import ParseError
from artifact_inspector.formats._conditions import LLVM
from artifact_inspector.formats._llvm import (
    TRAITS,
    commit,
    matrix,
    transfer,
    vector_loads_in_flight,
    wait,
)
from artifact_inspector.formats._scan import DECODED, Format, OpcodeTable, no_types
from artifact_inspector.model import (
    UNCLOSED,
    BasicBlock,
    EventKind,
    Frame,
    Function,
    Instruction,
    Location,
    Module,
    Operands,
    Stage,
)
from artifact_inspector.model.text import SourceText, split_list

OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: """
            llvm.nvvm.ld. llvm.nvvm.ldg. llvm.nvvm.ldu. llvm.amdgcn.global.load llvm.amdgcn.flat.load
            llvm.amdgcn.raw.buffer.load llvm.amdgcn.raw.ptr.buffer.load llvm.amdgcn.raw.tbuffer.load
            llvm.amdgcn.raw.ptr.tbuffer.load llvm.amdgcn.raw.atomic.buffer.load
            llvm.amdgcn.raw.ptr.atomic.buffer.load llvm.amdgcn.struct.buffer.load
            llvm.amdgcn.struct.ptr.buffer.load llvm.amdgcn.cluster.load
        """,
        EventKind.ASYNC_COPY: """
            llvm.nvvm.cp.async. llvm.amdgcn.global.load.lds llvm.amdgcn.global.load.async
            llvm.amdgcn.cluster.load.async llvm.amdgcn.load.to.lds llvm.amdgcn.load.async
            llvm.amdgcn.tensor.load llvm.amdgcn.raw.buffer.load.lds llvm.amdgcn.raw.buffer.load.async
            llvm.amdgcn.raw.ptr.buffer.load.lds llvm.amdgcn.raw.ptr.buffer.load.async
            llvm.amdgcn.struct.buffer.load.lds llvm.amdgcn.struct.buffer.load.async
            llvm.amdgcn.struct.ptr.buffer.load.lds llvm.amdgcn.struct.ptr.buffer.load.async
        """,
        EventKind.COMMIT: """
            llvm.nvvm.cp.async.commit llvm.nvvm.cp.async.bulk.commit llvm.nvvm.cp.async.mbarrier
            llvm.nvvm.mbarrier.arrive.expect llvm.nvvm.mbarrier.expect llvm.nvvm.wgmma.commit
            llvm.nvvm.tcgen05.commit llvm.amdgcn.asyncmark
        """,
        EventKind.WAIT: """
            llvm.nvvm.cp.async.wait llvm.nvvm.cp.async.bulk.wait llvm.nvvm.mbarrier.try.wait
            llvm.nvvm.mbarrier.test.wait llvm.nvvm.wgmma.wait llvm.nvvm.tcgen05.wait
            llvm.amdgcn.wait.asyncmark llvm.amdgcn.s.waitcnt$ llvm.amdgcn.s.wait.loadcnt
            llvm.amdgcn.s.wait.asynccnt llvm.amdgcn.s.wait.tensorcnt
        """,
        EventKind.SHARED_LOAD: "llvm.nvvm.ldmatrix llvm.amdgcn.ds.read llvm.amdgcn.ds.load",
        EventKind.SHARED_STORE: "llvm.nvvm.stmatrix ",
        EventKind.MATRIX: """
            llvm.nvvm.mma. llvm.nvvm.wgmma.mma llvm.nvvm.tcgen05.mma llvm.amdgcn.mfma llvm.amdgcn.smfmac
            llvm.amdgcn.wmma llvm.amdgcn.swmmac
        """,
        EventKind.FLOAT: """
            fadd$ fsub$ fmul$ fdiv$ frem$ fneg$ fcmp$ llvm.fma llvm.exp llvm.log llvm.pow llvm.sqrt llvm.sin
            llvm.cos llvm.tan llvm.asin llvm.acos llvm.atan llvm.maxnum llvm.minnum llvm.maximum
            llvm.minimum llvm.fabs llvm.copysign llvm.floor llvm.ceil llvm.trunc llvm.rint llvm.nearbyint
            llvm.round llvm.canonicalize llvm.frexp llvm.ldexp llvm.modf llvm.is.fpclass
            llvm.experimental.constrained llvm.vector.reduce.f llvm.matrix.multiply llvm.nvvm.ex2
            llvm.nvvm.lg2 llvm.nvvm.rcp llvm.nvvm.rsqrt llvm.nvvm.sqrt llvm.nvvm.sin llvm.nvvm.cos
            llvm.nvvm.tanh llvm.nvvm.div llvm.nvvm.fma llvm.nvvm.add. llvm.nvvm.sub. llvm.nvvm.mul.
            llvm.nvvm.fmin llvm.nvvm.fmax llvm.nvvm.fabs llvm.nvvm.neg. llvm.nvvm.saturate llvm.nvvm.floor
            llvm.nvvm.ceil llvm.nvvm.round llvm.nvvm.trunc llvm.nvvm.idp llvm.amdgcn.exp2 llvm.amdgcn.log
            llvm.amdgcn.rcp llvm.amdgcn.rsq llvm.amdgcn.sqrt llvm.amdgcn.sin llvm.amdgcn.cos
            llvm.amdgcn.tanh llvm.amdgcn.fract llvm.amdgcn.frexp llvm.amdgcn.fmed3 llvm.amdgcn.fma
            llvm.amdgcn.fmul llvm.amdgcn.div. llvm.amdgcn.trig llvm.amdgcn.fdot llvm.amdgcn.sdot
            llvm.amdgcn.udot llvm.amdgcn.sudot llvm.amdgcn.dot llvm.amdgcn.pk. llvm.amdgcn.add.
            llvm.amdgcn.sub. llvm.amdgcn.max. llvm.amdgcn.min. llvm.amdgcn.wave.reduce.f @__nv_ @__ocml_
            llvm.fmul llvm.nvvm.redux.sync.f
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
            llvm.amdgcn.global.store llvm.amdgcn.flat.store llvm.amdgcn.tensor.store
            llvm.amdgcn.raw.buffer.store llvm.amdgcn.raw.ptr.buffer.store llvm.amdgcn.raw.tbuffer.store
            llvm.amdgcn.raw.ptr.tbuffer.store llvm.amdgcn.struct.buffer.store
            llvm.amdgcn.struct.ptr.buffer.store
        """,
        EventKind.ATOMIC: """
            atomicrmw$ cmpxchg$ llvm.nvvm.atomic llvm.nvvm.red. llvm.nvvm.cp.async.bulk.tensor.reduce
            llvm.nvvm.cp.async.bulk.reduce llvm.amdgcn.global.atomic llvm.amdgcn.flat.atomic
            llvm.amdgcn.ds.atomic llvm.amdgcn.ds.fadd llvm.amdgcn.ds.fmin llvm.amdgcn.ds.fmax
            llvm.amdgcn.ds.add llvm.amdgcn.atomic llvm.amdgcn.raw.buffer.atomic
            llvm.amdgcn.raw.ptr.buffer.atomic llvm.amdgcn.struct.buffer.atomic
            llvm.amdgcn.struct.ptr.buffer.atomic
        """,
        EventKind.SHUFFLE: """
            llvm.nvvm.shfl llvm.nvvm.redux llvm.nvvm.vote llvm.nvvm.match llvm.nvvm.activemask
            llvm.amdgcn.ds.bpermute llvm.amdgcn.ds.permute llvm.amdgcn.ds.swizzle llvm.amdgcn.update.dpp
            llvm.amdgcn.mov.dpp llvm.amdgcn.permlane llvm.amdgcn.readlane llvm.amdgcn.writelane
            llvm.amdgcn.wave.reduce llvm.amdgcn.wave.shuffle
        """,
        EventKind.BRANCH: """
            call$ @ llvm.nvvm.exit llvm.amdgcn.endpgm llvm.amdgcn.unreachable llvm.amdgcn.kill
        """,
        EventKind.INTEGER: """
            add$ sub$ mul$ sdiv$ udiv$ srem$ urem$ shl$ lshr$ ashr$ and$ or$ xor$ icmp$ getelementptr$
            llvm.smin llvm.smax llvm.umin llvm.umax llvm.abs llvm.scmp llvm.ucmp llvm.ctpop llvm.ctlz
            llvm.cttz llvm.bswap llvm.bitreverse llvm.fsh llvm.sadd llvm.uadd llvm.ssub llvm.usub llvm.smul
            llvm.umul llvm.sshl llvm.ushl llvm.sdiv llvm.udiv llvm.ptrmask llvm.vector.reduce.
            llvm.nvvm.mulhi llvm.nvvm.mul24 llvm.nvvm.sad llvm.nvvm.bfe llvm.nvvm.bfi llvm.nvvm.isspacep
            llvm.nvvm.mapa llvm.nvvm.fns llvm.nvvm.brev llvm.nvvm.popc llvm.nvvm.clz llvm.amdgcn.mbcnt
            llvm.amdgcn.ballot llvm.amdgcn.inverse.ballot llvm.amdgcn.icmp llvm.amdgcn.fcmp llvm.amdgcn.sbfe
            llvm.amdgcn.ubfe llvm.amdgcn.alignb llvm.amdgcn.mul. llvm.amdgcn.mulhi llvm.amdgcn.sad
            llvm.amdgcn.msad llvm.amdgcn.qsad llvm.amdgcn.mqsad llvm.amdgcn.lerp llvm.amdgcn.sffbh
            llvm.amdgcn.bitop3 llvm.amdgcn.s.bitreplicate llvm.amdgcn.make.buffer.rsrc llvm.amdgcn.is.shared
            llvm.amdgcn.is.private @__nv_mulhi @__nv_umulhi @__nv_popc @__nv_clz @__nv_ffs @__nv_brev
            @__nv_sad @__nv_usad @__nv_abs$ @__nv_min$ @__nv_max$ @__nv_umin$ @__nv_umax$
        """,
        EventKind.MOVE: """
            phi$ select$ freeze$ bitcast$ addrspacecast$ ptrtoint$ ptrtoaddr$ inttoptr$ trunc$ zext$ sext$
            fptrunc$ fpext$ fptosi$ fptoui$ sitofp$ uitofp$ extractelement$ insertelement$ shufflevector$
            extractvalue$ insertvalue$ llvm.fptosi llvm.fptoui llvm.convert llvm.vector. llvm.ssa.copy
            llvm.experimental.vector llvm.nvvm.prmt llvm.nvvm.bitcast llvm.nvvm.lohi llvm.nvvm.d2
            llvm.nvvm.f2 llvm.nvvm.ff2 llvm.nvvm.ff.to llvm.nvvm.h2 llvm.nvvm.i2 llvm.nvvm.ll2 llvm.nvvm.ui2
            llvm.nvvm.ull2 llvm.nvvm.bf2 llvm.nvvm.bf16x2 llvm.nvvm.e2m llvm.nvvm.e3m llvm.nvvm.e4m
            llvm.nvvm.e5m llvm.nvvm.ue8m0 llvm.nvvm.ptr. llvm.nvvm.move llvm.amdgcn.cvt llvm.amdgcn.sat.pk
            llvm.amdgcn.perm$ llvm.amdgcn.readfirstlane llvm.amdgcn.wqm llvm.amdgcn.wwm llvm.amdgcn.strict
            llvm.amdgcn.set.inactive llvm.amdgcn.softwqm
        """,
        EventKind.OTHER: """
            fence$ alloca$ va_arg$ landingpad$ uselistorder$ llvm.assume llvm.lifetime llvm.invariant
            llvm.launder llvm.strip llvm.dbg llvm.expect llvm.donothing llvm.sideeffect llvm.is.constant
            llvm.objectsize llvm.annotation llvm.ptr.annotation llvm.var.annotation llvm.trap llvm.debugtrap
            llvm.ubsantrap llvm.stack llvm.prefetch llvm.pseudoprobe llvm.threadlocal llvm.readcyclecounter
            llvm.readsteadycounter llvm.get.rounding llvm.set.rounding llvm.load.relative llvm.nvvm.read.ptx
            llvm.nvvm.fence llvm.nvvm.membar llvm.nvvm.reflect llvm.nvvm.elect llvm.nvvm.setmaxnreg
            llvm.nvvm.mbarrier llvm.nvvm.wgmma.fence llvm.nvvm.tcgen05. llvm.nvvm.barrier.cta.arrive
            llvm.nvvm.barrier.cta.red.arrive llvm.nvvm.barrier.cluster.arrive llvm.nvvm.griddepcontrol
            llvm.nvvm.cp.async.bulk.prefetch llvm.nvvm.cp.async.bulk.shared.cta.to.cluster
            llvm.nvvm.cp.async.bulk.tensor.prefetch llvm.nvvm.prefetch llvm.nvvm.applypriority
            llvm.nvvm.discard llvm.nvvm.createpolicy llvm.nvvm.tensormap llvm.nvvm.clusterlaunchcontrol
            llvm.nvvm.nanosleep llvm.nvvm.pm.event llvm.nvvm.is_explicit_cluster llvm.nvvm.texsurf
            llvm.amdgcn.workgroup llvm.amdgcn.workitem llvm.amdgcn.cluster.id llvm.amdgcn.cluster.workgroup
            llvm.amdgcn.wave.id llvm.amdgcn.wave.barrier llvm.amdgcn.wavefrontsize llvm.amdgcn.dispatch
            llvm.amdgcn.implicitarg llvm.amdgcn.implicit.buffer llvm.amdgcn.kernarg llvm.amdgcn.queue
            llvm.amdgcn.lds.kernel.id llvm.amdgcn.groupstaticsize llvm.amdgcn.fence llvm.amdgcn.s.barrier.
            llvm.amdgcn.s.get llvm.amdgcn.s.set llvm.amdgcn.s.sleep llvm.amdgcn.s.nop llvm.amdgcn.s.sendmsg
            llvm.amdgcn.s.dcache llvm.amdgcn.s.icache llvm.amdgcn.s.mem llvm.amdgcn.s.monitor
            llvm.amdgcn.s.ttrace llvm.amdgcn.s.wait. llvm.amdgcn.s.prefetch llvm.amdgcn.s.buffer
            llvm.amdgcn.s.incperf llvm.amdgcn.s.decperf llvm.amdgcn.s.alloc llvm.amdgcn.s.wakeup
            llvm.amdgcn.buffer llvm.amdgcn.global.prefetch llvm.amdgcn.flat.prefetch llvm.amdgcn.live.mask
            llvm.amdgcn.ps.live llvm.amdgcn.init.exec llvm.amdgcn.reloc llvm.amdgcn.pops llvm.experimental
        """,
    }.items()
)
"""Kinds of LLVM's opcodes and intrinsics; `load` and `store` go by the pointer's address space instead."""

ASM_OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: "global_load flat_load buffer_load multimem.ld",
        EventKind.ASYNC_COPY: """
            cp.async.ca cp.async.cg cp.async.bulk global_load_lds global_load_async tensor_load
            cluster_load_async
        """,
        EventKind.COMMIT: """
            cp.async.commit cp.async.bulk.commit cp.async.mbarrier mbarrier.arrive.expect_tx
            mbarrier.expect_tx wgmma.commit tcgen05.commit
        """,
        EventKind.WAIT: """
            cp.async.wait cp.async.bulk.wait mbarrier.try_wait mbarrier.test_wait wgmma.wait tcgen05.wait
            s_wait_loadcnt s_wait_asynccnt s_wait_tensorcnt
        """,
        EventKind.SHARED_LOAD: "ldmatrix. ds_read ds_load",
        EventKind.SHARED_STORE: "stmatrix. ds_write ds_store",
        EventKind.MATRIX: "mma. wmma.mma wgmma.mma tcgen05.mma v_mfma v_smfmac v_wmma v_swmmac",
        EventKind.FLOAT: """
            fma. ex2. lg2. sin. cos. tanh. rcp. rsqrt. sqrt. dp2a dp4a div.full div.approx v_fma v_mac v_dot
            v_exp v_log v_rcp v_rsq v_sqrt v_sin v_cos v_pk_fma
        """,
        EventKind.BARRIER: "bar. barrier. s_barrier s_barrier_wait",
        EventKind.SCHEDULE_HINT: "s_setprio s_sched",
        EventKind.GLOBAL_STORE: "global_store flat_store buffer_store tensor_store multimem.st",
        EventKind.ATOMIC: """
            atom. red. cp.reduce.async multimem.red global_atomic flat_atomic buffer_atomic ds_add ds_cmpst
        """,
        EventKind.SHUFFLE: """
            shfl. redux. vote. match. activemask ds_bpermute ds_permute ds_swizzle v_permlane v_readlane
            v_writelane
        """,
        EventKind.BRANCH: """
            bra$ bra. brx. call$ call. ret$ ret. exit$ trap$ s_branch s_cbranch s_endpgm
        """,
        EventKind.INTEGER: """
            add. addc. sub. subc. mul. mul24. mad. mad24. madc. div. rem. abs. neg. min. max. and. or. xor.
            not. cnot. lop3. shl. shr. shf. bfe. bfi. bfind. brev. popc. clz. fns. sad. setp. set. testp.
            isspacep. mapa. szext. bmsk. vadd vsub vabs vmin vmax vset v_add v_sub v_mul v_mad v_and v_or
            v_xor v_not v_lsh v_ash v_bf v_min v_max v_med v_cmp v_align v_sad v_mbcnt v_pk_ s_add s_sub
            s_mul s_and s_or s_xor s_not s_lsh s_ash s_bf s_cmp s_min s_max s_ff s_bcnt s_bitset
        """,
        EventKind.MOVE: """
            mov. mov$ cvt. cvta. prmt. selp. slct. v_mov v_cvt v_cndmask v_perm_ v_readfirstlane v_accvgpr
            v_swap s_mov s_cselect
        """,
        EventKind.OTHER: """
            createpolicy. elect. fence. membar. mbarrier. tensormap. griddepcontrol. prefetch prefetchu
            setmaxnreg. nanosleep. discard. applypriority. getctarank. clusterlaunchcontrol. tcgen05.
            wgmma.fence cp.async.bulk.prefetch bar.arrive barrier.arrive barrier.cta.arrive
            barrier.cluster.arrive pmevent nop$ s_nop s_sleep s_waitcnt s_wait s_load s_buffer_load
            s_barrier_signal s_inst_prefetch s_delay_alu s_getreg s_setreg s_mem s_clause s_sendmsg
            buffer_wbl2 buffer_inv buffer_gl global_wb global_inv
        """,
    }.items()
)
"""Kinds of opcodes inside inline assembly (PTX ISA, AMD's ISA manuals), where no type or operand decides."""

_LOADS: dict[str | None, EventKind] = {
    **dict.fromkeys((None, "0", "1", "7", "8", "9"), EventKind.GLOBAL_LOAD),
    "3": EventKind.SHARED_LOAD,
    "5": EventKind.LOCAL_LOAD,
}
"""Kinds by address space; constants (4) and what no kernel loads its data from are left out."""
_STORES = {
    EventKind.GLOBAL_LOAD: EventKind.GLOBAL_STORE,
    EventKind.SHARED_LOAD: EventKind.SHARED_STORE,
    EventKind.LOCAL_LOAD: EventKind.LOCAL_STORE,
}
_ASM_LOADS = {
    "global": EventKind.GLOBAL_LOAD,
    "shared": EventKind.SHARED_LOAD,
    "local": EventKind.LOCAL_LOAD,
    "param": EventKind.OTHER,
    "const": EventKind.OTHER,
}
_ASM_QUIET = (EventKind.SHUFFLE, EventKind.LOCAL_STORE, EventKind.LOCAL_LOAD, EventKind.INTEGER)
"""What a call with no event inside is, first come; MOVE only when every statement moves."""

_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_STATEMENT = re.compile(rf"[ \t]+(?:{_NAME} = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)(?![\w:.])", re.ASCII)
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_FUNCTION_END = re.compile(r"\}|!|@|attributes |declare ")
_HEADER = re.compile(r'define [^@"]*@("[^"]*"|[-\w.$]+)\(')
_HEADER_SUBPROGRAM = re.compile(r"!dbg !(\d+)")
_CALLEE = re.compile(r'[^@"]*(?:@("[^"]*"|[-\w.$]+)\(|"([^"]*)", ")')
_POINTER = re.compile(
    r"[^,{<(]*(?:<\d+ x [^,>(]*>|addrspace\(\d+\))?[^,{<(]*, ptr(?: addrspace\((\d+)\))? [%@]"
)
_CONSTANT_EXPRESSION = re.compile(r"[%@]|\b[a-z]\w* (?:\w+ )*\(")
_ADDRESS_SPACE = re.compile(r"addrspace\((\d+)\)")
_MANGLED_SPACE = re.compile(r"\.(?:v\d+)?p(\d+)")
_TARGET_LABEL = re.compile(rf"\blabel ({_NAME})")
_OPERAND = re.compile(rf'\blabel {_NAME}|({_NAME})|"[^"]*"', re.ASCII)
_PLAIN_NAME = re.compile(r"%[-\w.$]+", re.ASCII)
_INCOMING = re.compile(rf"\[ ({_NAME}), %", re.ASCII)
# A line break in front finds the starts of lines many times faster than `^`, which is tried at every place.
_METADATA = re.compile(
    r"\n!(\d+) = (?:distinct )?!(?:DILocation|DILexicalBlock(?:File)?|DISubprogram|DIFile)\((.*)\)"
)
_FIELD = re.compile(r'(\w+): (?:!(\d+)|"([^"]*)"|(\w+))')
_ESCAPE = re.compile(r"\\(\\|[0-9A-Fa-f]{2})")
_SNIFF = re.compile(
    r'^(?:; ModuleID = |source_filename = "|target (?:datalayout|triple) = "|define [^\n]*@[^\n]*\{\s*$)',
    re.MULTILINE,
)
_TRIPLE = re.compile(r'\ntarget triple = "([^"]*)"')
_TARGET_CPU = re.compile(r'"target-cpu"="([^"]*)"')
_TRIPLE_GENERATION = re.compile(r"gfx[0-9a-f]+|(?<=amdgpu)\d+\.[0-9a-f]+")
_ASM_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ASM_PREFIX = re.compile(r"(?:[\s{}]|(?:[\w$%.]|\$\{:uid\})+:(?!:))*")
_ASM_STATEMENT = re.compile(r"(?:@\s*(!?\s*[^\s!]+)\s+)?(\S+)(.*)", re.DOTALL)
_ASM_AMD = re.compile(r"^\s*(?:[vs]|ds|buffer|global|flat|scratch|tensor|cluster)_\w", re.MULTILINE)
_ASM_FLOAT = re.compile(
    r"(?:add|sub|mul|fma|mac|mad|div|neg|abs|min|max|med3|copysign|setp?)\w*[._](?:.*[._])?b?f\d"
)
_ASM_SPACE = re.compile(r"\.(global|shared|local|param|const)\b")

_CONTINUED_UNTIL = {"switch": "]", "invoke": " to label %", "callbr": " to label %"}
_CONTINUATIONS = frozenset(("to", "cleanup", "catch", "filter"))
_TERMINATORS = frozenset(("br", "ret", "unreachable", "indirectbr", "resume", *_CONTINUED_UNTIL))
_SPECIAL = _TERMINATORS | _CONTINUATIONS | {"load", "store", "call"}
_DEBUG = ", !dbg !"
_NONTEMPORAL = ", !nontemporal"

_new = tuple.__new__


def sniff(text: str) -> bool:
    """True when the text looks like an LLVM module."""
    return _SNIFF.search(text) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module of an `.llir` file: every `define`, in the order of the text.

    Raises:
        ParseError: the text defines no function.
    """
    text = source.text
    attributes = _attributes(text)
    context = _Context(_Locations(text), attributes.get("target", ""), [])
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line.startswith("define ")]
    functions: list[Function] = []
    for start, stop in pairwise([*starts, len(lines)]):
        header = _HEADER.match(lines[start])
        if header is None:
            context.problems.append(f"line {start + 1}: the function has no readable header")
        else:
            functions.append(_Body(header, start + 1, context).read(lines[start + 1 : stop]))
    if not functions:
        raise ParseError(
            "the text defines no LLVM function", source.span(0), "Check that the file is complete LLVM IR."
        )
    return Module(stage, source.name, tuple(functions), attributes, tuple(context.problems))


_Events = tuple[tuple[str, EventKind, str | None], ...]
"""What a statement does, as (opcode, kind, guard): inline assembly may do several things."""


class _Locations(dict[str, tuple[Location | None, str]]):
    """`46` or `46, !tbaa !3` → the inline chain of `!46`, each resolved once and only when asked for.

    With it goes what of the rest belongs to the statement: that it is not temporal.

    Source: LLVM Language Reference Manual, "Specialized Metadata Nodes".
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._nodes = {found[1]: found[2] for found in _METADATA.finditer(text, max(0, text.find("\n!")))}
        self._files: dict[str, str] = {}
        """By the node of a scope or a file."""

    def __missing__(self, key: str) -> tuple[Location | None, str]:
        node = key.partition(",")[0].strip()
        frames: dict[str, Frame] = {}
        while node and node not in frames:
            fields = self._fields(node)
            frames[node] = Frame(self._file(fields), _number(fields, "line"), _number(fields, "column"))
            node = fields.get("inlinedAt", "")
        location = tuple(frames.values())
        # Line 0 is LLVM's word for "made by the compiler".
        found = location if location and location[0].line > 0 else None
        resolved = self[key] = (found, _NONTEMPORAL if _NONTEMPORAL in f", {key}" else "")
        return resolved

    def subprogram(self, node: str) -> Location | None:
        """Where the subprogram `!node` stands."""
        fields = self._fields(node)
        line = _number(fields, "line")
        return (Frame(self._file(fields), line, 0),) if line > 0 else None

    def _fields(self, node: str) -> dict[str, str]:
        fields = _FIELD.findall(self._nodes.get(node, ""))
        return {name: number or string or word for name, number, string, word in fields}

    def _file(self, fields: dict[str, str]) -> str:
        """The path of the innermost scope around a node that names a file."""
        passed: dict[str, None] = {}
        while (key := fields.get("file") or fields.get("scope", "")) not in self._files:
            if key in passed or "file" in fields:
                self._files[key] = "" if key in passed else self._path(self._fields(key))
                break
            passed[key] = None
            fields = self._fields(key)
        path = self._files[key]
        self._files.update(dict.fromkeys(passed, path))
        return path

    @staticmethod
    def _path(file: dict[str, str]) -> str:
        name, directory = _unescape(file.get("filename", "")), _unescape(file.get("directory", ""))
        return name if not directory or name.startswith("/") else f"{directory}/{name}"


class _Context(NamedTuple):
    """What all functions of a module share while it is read."""

    locations: _Locations
    target: str
    problems: list[str]


def _number(fields: dict[str, str], name: str) -> int:
    written = fields.get(name, "")
    return int(written) if written.isdecimal() else 0


def _attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    triple = _TRIPLE.search(f"\n{text}")
    cpu = _TARGET_CPU.search(text)
    if triple is not None:
        attributes["triple"] = triple[1]
    if cpu is not None:
        attributes["target"] = cpu[1]
    elif triple is not None:
        generation = _TRIPLE_GENERATION.search(triple[1])
        if generation is not None:
            attributes["target"] = "gfx" + generation[0].removeprefix("gfx").replace(".", "")
    return attributes


class _Body:
    """A function while it is read."""

    def __init__(self, header: re.Match[str], number: int, context: _Context) -> None:
        self._header, self._number, self._context = header, number, context
        self._arguments = tuple(_arguments(header.string, header.end()))
        self._instructions: list[Instruction] = []
        self._append = self._instructions.append
        # Unnamed values share one count: arguments, then blocks and instructions in order of the text.
        self._labels = [str(sum(argument[1:].isdigit() for argument in self._arguments))]
        self._starts = [0]
        self._exits: list[tuple[int, list[str]] | None] = [None]
        """Of each block: the line of its terminator, and the labels that this names."""
        self._plain: dict[str, _Events] = {}
        """Opcodes that have one kind whatever their operands are."""
        self._calls: dict[str, _Events] = {}
        """The same for calls, by their text up to the first bracket: the callee, or the whole assembly."""

    def read(self, lines: list[str]) -> Function:
        """The function, from the lines behind its header."""
        locations, plain, calls = self._context.locations, self._plain, self._calls
        append, new, statement = self._append, _new, _STATEMENT.match
        closed = False
        rest = iter(enumerate(lines, self._number + 1))
        for at, line in rest:
            # Two words of the indent, then the result, `=`, the opcode, the rest.
            words = line.split(" ", 5) if line.startswith("  %") else ()
            if len(words) == 6 and words[3] == "=":
                events = plain.get(words[4]) or calls.get(words[5].partition("(")[0])
                if events is not None:
                    debug = line.rfind(_DEBUG)
                    location, mark = locations[line[debug + 8 :]] if debug >= 0 else (None, "")
                    text = line[2:debug] + mark if debug >= 0 else line.strip()
                    for opcode, kind, guard in events:
                        append(new(Instruction, (at, opcode, kind, location, guard, text, decode)))
                    continue
            found = statement(line)
            if found is not None:
                self._statement(at, line, found, rest)
            elif _FUNCTION_END.match(line):
                closed = line[0] == "}"
                break
            else:
                self._mark(at, line)
        return self._close(closed=closed)

    def _mark(self, at: int, line: str) -> None:
        """Take in a line that is no statement: a label, a comment, or what cannot be read."""
        label = _LABEL.match(line)
        if label is None:
            if line and not line.lstrip().startswith((";", "#dbg_")) and not line.isspace():
                self._context.problems.append(f"line {at}: not an instruction: {line.strip()[:60]}")
        elif self._instructions or len(self._labels) > 1:
            self._labels.append(_unquoted(label[1]))
            self._starts.append(len(self._instructions))
            self._exits.append(None)
        else:
            self._labels[0] = _unquoted(label[1])

    def _statement(self, at: int, line: str, found: re.Match[str], rest: Iterator[tuple[int, str]]) -> None:
        opcode = found[1]
        if opcode in _CONTINUED_UNTIL:
            line = _joined(line, rest, _CONTINUED_UNTIL[opcode])
        debug = line.rfind(_DEBUG)
        if debug >= 0:
            location, mark = self._context.locations[line[debug + 8 :]]
            text = line[:debug].strip() + mark
        else:
            location, text = None, line.strip()
        if opcode == "call":
            for inner, kind, guard in self._call(line, _CALLEE.match(line, found.end())):
                self._append(_new(Instruction, (at, inner, kind, location, guard, text, decode)))
            return
        if opcode not in _SPECIAL:
            kind = OPCODES.kind(opcode)
            self._plain[opcode] = ((opcode, kind, None),)
        elif opcode in ("load", "store"):
            load = _LOADS.get(_pointer_space(text, line, found.end()), EventKind.OTHER)
            kind = load if opcode == "load" else _STORES.get(load, EventKind.OTHER)
        elif opcode in _TERMINATORS:
            kind = EventKind.BRANCH
            self._exits[-1] = (at, _TARGET_LABEL.findall(text))
        else:
            return  # continues another
        self._append(Instruction(at, opcode, kind, location, None, text, decode))

    def _call(self, line: str, callee: re.Match[str] | None) -> _Events:
        if callee is None:
            return (("call", EventKind.BRANCH, None),)
        name = callee[1]
        if name == "llvm.amdgcn.s.waitcnt":
            waits = vector_loads_in_flight(line, self._context.target) is not None
            return ((name, EventKind.WAIT if waits else EventKind.OTHER, None),)
        events = _assembly(callee[2]) if name is None else _callee(name)
        bracket = line.find("(")
        words = line[:bracket].split(" ", 5)
        if len(words) == 6 and callee.end() <= bracket + 1:
            self._calls[words[5]] = events
        return events

    def _close(self, *, closed: bool) -> Function:
        name, problems = _unquoted(self._header[1]), self._context.problems
        if not closed:
            problems.append(f"line {self._number}: the function {name} {UNCLOSED}")
        subprogram = _HEADER_SUBPROGRAM.search(self._header.string)
        where = None if subprogram is None else self._context.locations.subprogram(subprogram[1])
        instructions = tuple(self._instructions)
        bounds = [*self._starts, len(instructions)]
        blocks = tuple(_blocks(self._number, self._labels, bounds, self._exits, instructions, problems))
        return Function(name, self._number, where, self._arguments, instructions, blocks)


def _arguments(header: str, at: int) -> Iterator[str]:
    for parameter in split_list(header, at):
        named = re.search(rf"({_NAME})\s*$", parameter)
        if named is not None:
            yield named[1]


def _joined(line: str, rest: Iterable[tuple[int, str]], until: str) -> str:
    if until in line:
        return line
    parts = [line]
    for _, more in rest:
        parts.append(more.strip())
        if until in f" {more}":
            break
    return " ".join(parts)


def _pointer_space(text: str, line: str, at: int) -> str | None:
    """The address space of the pointer that a load or store goes through, None for generic."""
    opaque = _POINTER.match(line, at)
    if opaque is not None:
        return opaque[1]
    operands = split_list(text)
    if len(operands) < 2:
        return None
    # A typed pointer's own space stands last in its type: `half addrspace(1)* addrspace(3)* %p`.
    spaces = _ADDRESS_SPACE.findall(_CONSTANT_EXPRESSION.split(operands[1])[0])
    return spaces[-1] if spaces else None


@lru_cache(maxsize=4096)
def _callee(name: str) -> _Events:
    """The event of a call of a function."""
    if not name.startswith("llvm."):
        opcode = "@" + _unquoted(name)
        return ((opcode, OPCODES.kind(opcode), None),)
    if name.startswith(("llvm.masked.", "llvm.mem")):
        space = _MANGLED_SPACE.search(name)
        load = _LOADS.get(space and space[1], EventKind.OTHER)
        reads = name.startswith(("llvm.masked.load", "llvm.masked.gather", "llvm.masked.expandload"))
        return ((name, load if reads else _STORES.get(load, EventKind.OTHER), None),)
    return ((name, OPCODES.kind(name), None),)


@lru_cache(maxsize=4096)
def _assembly(template: str) -> _Events:
    """The events of an inline-assembly template as (opcode, kind, guard), or one quiet `asm`."""
    events: list[tuple[str, EventKind, str | None]] = []
    quiet: set[EventKind] = set()
    for guard, opcode, operands in _assembly_statements(_unescape(template)):
        kind = _assembly_kind(opcode, operands)
        if kind.letter:
            events.append((opcode, kind, guard))
        else:
            quiet.add(kind)
    if events:
        return tuple(events)
    for kind in _ASM_QUIET:
        if kind in quiet:
            return (("asm", kind, None),)
    return (("asm", EventKind.MOVE if quiet == {EventKind.MOVE} else EventKind.OTHER, None),)


def _assembly_statements(assembly: str) -> Iterator[tuple[str | None, str, str]]:
    text = _ASM_COMMENT.sub("", assembly)
    # AMD's assembler ends a statement with the line and starts a comment with `;`, PTX ends one with `;`.
    amd = _ASM_AMD.search(text) is not None
    pieces = [line.partition(";")[0] for line in text.split("\n")] if amd else text.split(";")
    for piece in pieces:
        prefix = _ASM_PREFIX.match(piece)
        found = _ASM_STATEMENT.match(piece, prefix.end() if prefix is not None else 0)
        if found is not None and not found[2].startswith("."):
            yield found[1], found[2], found[3]


def _assembly_kind(opcode: str, operands: str) -> EventKind:
    base = opcode.partition(".")[0]
    spaces = _ASM_SPACE.findall(opcode)
    if base in ("ld", "ldu", "st"):
        load = _ASM_LOADS[spaces[0]] if spaces else EventKind.GLOBAL_LOAD
        return _STORES.get(load, EventKind.OTHER) if base == "st" else load
    kind = ASM_OPCODES.kind(opcode)
    if kind is EventKind.ASYNC_COPY and spaces[1:] and spaces[1] == "shared":
        # The destination's space stands first.
        return EventKind.GLOBAL_STORE if spaces[0] == "global" else EventKind.OTHER
    if base == "s_waitcnt":
        return EventKind.WAIT if "vmcnt" in operands else EventKind.OTHER
    if base.startswith(("buffer_load", "global_load")) and re.search(r"\blds\b", operands):
        return EventKind.ASYNC_COPY
    if _ASM_FLOAT.match(opcode.removeprefix("v_").removeprefix("pk_")):
        return EventKind.FLOAT
    return kind


def _blocks(
    line: int,
    labels: list[str],
    bounds: list[int],
    exits: list[tuple[int, list[str]] | None],
    instructions: Sequence[Instruction],
    problems: list[str],
) -> Iterator[BasicBlock]:
    indices: dict[str, int] = {}
    for index, label in enumerate(labels):
        indices.setdefault(label, index)
    for index, (label, exit_) in enumerate(zip(labels, exits, strict=True)):
        successors: dict[int, None] = {}
        if exit_ is None:
            last = instructions[bounds[index + 1] - 1].line if bounds[index + 1] else line
            problems.append(f"line {last}: block {label} has no terminator")
        else:
            for name in exit_[1]:
                target = indices.get(_unquoted(name[1:]))
                if target is None:
                    problems.append(f"line {exit_[0]}: branch to {name}, which is no block")
                else:
                    successors[target] = None
        yield BasicBlock(index, label, bounds[index], bounds[index + 1], tuple(successors))


def _unquoted(name: str) -> str:
    return _unescape(name[1:-1]) if name.startswith('"') else name


def _unescape(text: str) -> str:
    r"""LLVM's strings hold `\0A` for a newline and `\C3\A9` for the UTF-8 bytes of é."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda code: "\\" if code[1] == "\\" else chr(int(code[1], 16)), text)
    try:
        return plain.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return plain


@lru_cache(maxsize=DECODED)
def decode(text: str) -> Operands:
    """The values that a statement defines and reads; block labels and globals are neither."""
    result, _, statement = text.partition(" = ") if text.startswith("%") else ("", "", text)
    if statement.startswith("phi "):
        found = _INCOMING.findall(statement)
    elif "label" in statement or '"' in statement:
        found = [name for name in _OPERAND.findall(statement) if name]
    else:
        found = _PLAIN_NAME.findall(statement)
    return Operands((result,) if result else (), tuple(found))


_IN_SHARED = re.compile(r"addrspace\(3\)|\.shared\b|\bds_")

FORMAT = Format(
    name="llvm",
    stages=(Stage.LLIR,),
    parse=parse,
    sniff=sniff,
    wait=wait,
    transfer=transfer,
    commit=commit,
    matrix=matrix,
    types=no_types,
    in_shared=lambda instruction: _IN_SHARED.search(instruction.text) is not None,
    traits=TRAITS.of,
    conditions=LLVM,
    cannot_read=(
        "Loads and stores through a generic pointer count as global.",
        "Without a target in the file (Triton names one from 3.9 on), `s.waitcnt` is read as gfx9 codes it.",
        "Address space 7 is AMD's buffer pointer here, never NVIDIA's shared::cluster.",
        "A wait whose depth is an operand of inline assembly (`$0`) has no depth.",
        "Named types (`%struct.s`) are taken for values among the operands.",
        "A call through a function pointer is a branch with the opcode `call`.",
    ),
)
