"""Kinds of PTX's opcodes (PTX ISA 9.0, chapter 9).

The order of modifiers is not fixed (`ld.relaxed.gpu.global.b32`). The state space of a memory operation and the type of
an arithmetic one are therefore moved to the front before the table lookup.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import OpcodeTable
from artifact_inspector.model import EventKind

_BY_SPACE = frozenset(("ld", "ldu", "st", "wmma", "multimem"))
_BY_TYPE = frozenset(
    ("add", "sub", "mul", "mad", "fma", "min", "max", "abs", "neg", "div", "rem", "set", "setp", "redux")
)
_FLOAT_ROWS = " ".join(f"{name}.float" for name in sorted(_BY_TYPE))
_INTEGER_ROWS = " ".join(sorted(_BY_TYPE - {"fma", "redux"}))

OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: """
            ld$ ld. ld.global ldu ldu.global tex tld4 suld wmma.load wmma.global.load multimem.ld_reduce
            multimem.global.ld_reduce
        """,
        EventKind.ASYNC_COPY: "cp.async. cp.async.bulk.shared.global",
        EventKind.COMMIT: """
            cp.async.commit_group cp.async.bulk.commit_group cp.async.mbarrier.arrive wgmma.commit_group
            mbarrier.arrive.expect_tx mbarrier.expect_tx tcgen05.commit
        """,
        EventKind.WAIT: """
            cp.async.wait_group cp.async.wait_all cp.async.bulk.wait_group wgmma.wait_group mbarrier.try_wait
            mbarrier.test_wait tcgen05.wait
        """,
        EventKind.SHARED_LOAD: "ld.shared ldmatrix wmma.shared.load",
        EventKind.SHARED_STORE: "st.shared st.bulk stmatrix wmma.shared.store",
        EventKind.MATRIX: "mma wmma.mma wgmma.mma_async tcgen05.mma",
        EventKind.FLOAT: f"""
            {_FLOAT_ROWS} fma rcp sqrt rsqrt ex2 lg2 sin cos tanh copysign testp dp2a dp4a
        """,
        EventKind.BARRIER: "bar. barrier",
        EventKind.GLOBAL_STORE: """
            st$ st. st.global sust wmma.store wmma.global.store multimem.st multimem.global.st
            cp.async.bulk.global.shared multimem.global.cp.async.bulk
        """,
        EventKind.ATOMIC: """
            atom red. sured cp.reduce.async.bulk st.async st.shared.async st.global.async multimem.red
            multimem.global.red multimem.global.cp.reduce
        """,
        EventKind.LOCAL_LOAD: "ld.local",
        EventKind.LOCAL_STORE: "st.local",
        EventKind.SHUFFLE: "shfl vote match activemask redux movmatrix",
        EventKind.BRANCH: "bra brx call ret exit trap",
        EventKind.INTEGER: f"""
            {_INTEGER_ROWS} addc subc madc mul24 mad24 sad and or xor not cnot lop3 shl shr shf bfe bfi bfind bmsk brev
            clz popc fns szext isspacep mapa getctarank vadd vsub vmad vmin vmax vset vshl vshr vabsdiff vavrg
        """,
        EventKind.MOVE: "mov cvt cvta selp slct prmt",
        EventKind.OTHER: """
            ld.param ld.const st.param cp.async.bulk.shared.shared cp.async.bulk.prefetch mbarrier. bar.arrive
            barrier.arrive barrier.cta.arrive barrier.cluster.arrive wgmma.fence tcgen05. fence membar griddepcontrol
            setmaxnreg elect createpolicy prefetch prefetchu discard applypriority tensormap clusterlaunchcontrol alloca
            stacksave stackrestore nanosleep pmevent brkpt txq suq istypep
        """,
    }.items()
)

_SPACES = frozenset(("global", "shared", "local", "param", "const"))
_FLOAT_TYPE = re.compile(r"\.(?:f16|f32|f64|bf16|tf32|[eu]\d+m\d+)(?:x\d)?(?=\.|$)")


@lru_cache(maxsize=4096)
def kind_of(opcode: str) -> EventKind:
    """The kind of an opcode with its modifiers."""
    base, _, modifiers = opcode.partition(".")
    if base in _BY_TYPE:
        typed = ".float" if _FLOAT_TYPE.search(opcode) else ""
        return OPCODES.kind(f"{base}{typed}.{modifiers}")
    spaces = [space for space in (modifier.partition("::")[0] for modifier in modifiers.split(".")) if space in _SPACES]
    if base in _BY_SPACE and spaces:
        return OPCODES.kind(f"{base}.{spaces[0]}.{modifiers}")
    if opcode.startswith("cp.async.bulk.") and ".prefetch." not in opcode and len(spaces) > 1:
        return OPCODES.kind(f"cp.async.bulk.{spaces[0]}.{spaces[1]}")
    return OPCODES.kind(opcode)
