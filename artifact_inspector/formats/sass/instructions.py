"""Semantics of SASS instructions: control codes, matrix shapes, transfers and waits.

Every function takes the opcode with its modifiers and the text with its operands.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import TraitTable, once_per_module
from artifact_inspector.model import EventKind, Instruction, MatrixOp, Module, Queue, Trait, Transfer, WaitOp
from artifact_inspector.model.instruction import ControlInfo
from artifact_inspector.model.text import parse_integer

TRAITS = TraitTable(
    {
        Trait.FUSED: r"U?[DF]FMA|HFMA2",
        Trait.ACCESSES_ELEMENT: r"(LDS|STS)\.[US](8|16)",
        Trait.READS_ROWS: r"LDSM",
        Trait.SWAPS: r"ATOM[GS]?\..*CAST?\b",
    }
)

_NO_BARRIER = 7


def read_control(encoding: int) -> ControlInfo:
    """The control code in the second 64-bit word of an instruction (Volta and later).

    **Source** Jia, Maggioni, Staiger, Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking"
    (2018), section 2.1, lists the fields: from bit 105 of the 128, 4 bits of stall cycles, the yield flag, 3 bits each
    of write and read barrier, 6 of wait mask, 4 of reuse. According to triton/tools/disasm.py, a cleared flag yields,
    and 7 is no barrier.
    """
    write_barrier, read_barrier = encoding >> 46 & 7, encoding >> 49 & 7
    return ControlInfo(
        encoding >> 41 & 15,
        not encoding >> 45 & 1,
        None if write_barrier == _NO_BARRIER else write_barrier,
        None if read_barrier == _NO_BARRIER else read_barrier,
        encoding >> 52 & 63,
        encoding >> 58 & 15,
    )


def parse_dumped_control(wait_mask: str, read_barrier: str, write_barrier: str, yields: str, stall: str) -> ControlInfo:
    """The control code as Triton prints it: `02:-:1:Y:2`, mask in decimal, stall in hexadecimal."""
    return ControlInfo(
        int(stall, 16),
        yields == "Y",
        None if write_barrier == "-" else int(write_barrier),
        None if read_barrier == "-" else int(read_barrier),
        0 if wait_mask == "--" else int(wait_mask),
        None,
    )


_WIDTH = re.compile(r"\.(?:[US](8|16|64)|F?(64|128|256)|B?F(16|32)x([248])|B?F(16)_V(2))(?=\.|$)")
_POLICY = re.compile(
    r"\.(STRONG\.\w+|CONSTANT|STRONG|WEAK|MMIO|EF|EL|LU|EU|NA|BYPASS|ACCESS|LTC(?:64|128|256)B)(?=\.|$)"
)
"""Ordering strength includes its scope: `STRONG.GPU`."""

_TEXTURES = frozenset(("TEX", "TLD", "TLD4", "TXD", "SULD", "SUST", "SUATOM", "SURED"))


def transfer_of(opcode: str) -> Transfer | None:
    """What a memory operation or asynchronous copy moves; None for an atomic on shared memory."""
    width, cache = _modifiers(opcode)
    base = opcode.partition(".")[0]
    if base in ("UTMALDG", "UBLKCP") and not opcode.startswith("UBLKCP.G.S"):
        return Transfer(None, Queue.PHASE, cache, is_per_block=True)
    if base in ("UTMASTG", "UTMAREDG", "UBLKRED", "UBLKCP"):
        return Transfer(None, Queue.STORES, cache, is_per_block=True)
    if base == "LDGSTS":
        return Transfer(width, Queue.GROUP, cache)
    if base in ("ATOMS", "REDS"):
        return None
    if base in ("STAS", "REDAS"):  # st.async, red.async
        return Transfer(width, Queue.PHASE, cache)
    size = None if base in _TEXTURES else width
    return Transfer(size, None if base.startswith(("ST", "SUST", "RED", "SURED", "U")) else Queue.USE, cache)


def bytes_moved(opcode: str) -> int:
    """Bytes per thread that a memory operation moves; four if it has no width modifier."""
    match = _WIDTH.search(opcode)
    if match is None:
        return 4
    # `F32x4` are four, `BF16_V2` is a pair
    bits = match[1] or match[2] or match[3] or match[5]
    return int(bits) * int(match[4] or match[6] or 1) // 8


@lru_cache(maxsize=1024)
def _modifiers(opcode: str) -> tuple[int, tuple[str, ...]]:
    return bytes_moved(opcode), tuple(_POLICY.findall(opcode))


_DEPTH = re.compile(r"\b(?:SB(\d)|gsb\d)\s*,\s*(0x[\da-f]+|\d{1,3})\b")
_ADDRESS = re.compile(r"\[([^][]+)\]")


def wait_of(instruction: Instruction, module: Module) -> WaitOp | None:
    """What a wait waits for; None for a wait on a scoreboard that counts no groups."""
    opcode, text = instruction.opcode, instruction.text
    if opcode.startswith("SYNCS.PHASECHK"):
        barrier = _ADDRESS.search(text)
        return WaitOp("SYNCS.PHASECHK", None, Queue.PHASE, None if barrier is None else barrier[1])
    match = _DEPTH.search(text)
    if match is None:
        return None
    if opcode.startswith("WARPGROUP.DEPBAR"):
        return WaitOp("WARPGROUP.DEPBAR.LE", parse_integer(match[2]), Queue.MATRIX)
    queue = None if match[1] is None else _queues_by_scoreboard(module).get(int(match[1]))
    return None if queue is None else WaitOp("DEPBAR.LE", parse_integer(match[2]), queue)


@once_per_module
def _queues_by_scoreboard(module: Module) -> dict[int, Queue]:
    """The queue whose groups each scoreboard counts, without those of loads without groups."""
    queues: dict[int, Queue] = {}
    for function in module.functions:
        for at, instruction in enumerate(function.instructions):
            if instruction.opcode == "LDGDEPBAR":
                # ptxas has always used the first one; the text does not show it.
                scoreboard = function.control_codes[at].write_barrier if function.control_codes else 0
                queue = Queue.GROUP
            elif instruction.opcode == "UTMACMDFLUSH":
                scoreboard = function.control_codes[at].read_barrier if function.control_codes else None
                queue = Queue.STORES
            else:
                continue
            if scoreboard is not None and queues.get(scoreboard) is not Queue.GROUP:
                queues[scoreboard] = queue
    return queues


def commit_queue(instruction: Instruction) -> Queue | None:
    """The queue in which a commit closes a group. The last warpgroup product of a group is also its commit."""
    if instruction.kind is EventKind.MATRIX:
        return Queue.MATRIX if instruction.text.endswith("gsb0") else None
    return _COMMITS.get(instruction.opcode.partition(".")[0]) if instruction.kind is EventKind.COMMIT else None


_COMMITS = {
    "LDGDEPBAR": Queue.GROUP,
    "ARRIVES": Queue.PHASE,
    "SYNCS": Queue.PHASE,
    "UTMACMDFLUSH": Queue.STORES,
    "UTCBAR": Queue.MATRIX,
}

_SHAPE = re.compile(r"\.(?:(\d{1,3})x(\d{1,3})x(\d{1,3})|(8|16)(8)(\d{1,3}))(?=\.|$)")
_TYPE = re.compile(r"\.(B?F16|F32|F64|TF32|[US][48]|B1|E\dM\d)(?=\.|$)")


@lru_cache(maxsize=1024)
def matrix_of(opcode: str) -> MatrixOp | None:
    """What one issue computes; None for tcgen05, whose shape is in a descriptor.

    Volta splits the four products of one `mma.m8n8k4` into four `STEP`s of HMMA.884, or two for an f16 result; each
    counts as its share. A sparse product counts as the dense product of its shape.
    """
    base, letter = opcode.partition(".")[0], opcode[0]
    shape = _SHAPE.search(opcode)
    if shape is None or letter == "U" or "MMA" not in base:
        return None
    m, n, k = (int(extent) for extent in shape.groups() if extent is not None)
    types = [type_name.lower() for type_name in _TYPE.findall(opcode)]
    if letter == "H":
        result = types[0] if types else "f16"
        a = b = types[-1] if types[-1:] in (["bf16"], ["tf32"]) else "f16"
    elif letter in "IB":
        a, b = (types + types)[:2] if types else ("b1", "b1")
        result = "s32"
    elif letter == "D":
        a = b = result = "f64"
    elif len(types) >= 3:
        result, a, b = types[:3]
    else:
        return None
    blocks = 2 if ".STEP" in opcode and result == "f16" else 1
    op = f"{base}.SP" if ".SP" in opcode else base
    family, issuer = ("wgmma", "warpgroup") if base[1] == "G" else ("mma", "warp")
    return MatrixOp(op, family, m, n, k, blocks, f"{a}×{b}→{result}", issuer)
