"""What a kernel takes of the hardware: registers, spills, scratch, shared memory, warps.

Every figure is what one file says, with the file and how it says so; where two files that should agree
do not, both are reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.errors import UsageError
from artifact_inspector.files.binary import Binary, Cubin, Hsaco
from artifact_inspector.hardware.gpu import MOST_THREADS
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import Backend
from artifact_inspector.model.figure import Figure, FigureKey

__all__ = ["Contradiction", "Figure", "Resources", "find_resources"]

Figures = Mapping[FigureKey, Figure]
NVIDIA_LANES = 32
"""Of a warp."""


class Contradiction(NamedTuple):
    """Two files that say different things of one fact."""

    sentence: str
    places: tuple[str, str]
    """Where each of the two stands: file and field."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes; bytes of memory that a thread has to itself are per thread."""

    registers: Figure
    """Per thread. AMD: vector registers allocated; gfx90a and later with AccVGPRs, which share the file."""
    vector_registers: Figure
    """AMD: VGPRs proper, per thread, without AccVGPRs."""
    accumulation_registers: Figure
    """AMD: AccVGPRs, per thread, which matrix instructions accumulate in."""
    scalar_registers: Figure
    """AMD: per wave."""
    spill_bytes: Figure
    """Bytes per thread that the code's spill stores write when each is run once."""
    reload_bytes: Figure
    """Bytes per thread that the code's spill loads read when each is run once."""
    scalar_spills: Figure
    """AMD: scalar registers that are spilled; they go to lanes of vector registers, not to memory."""
    scratch_bytes: Figure
    """Local memory per thread: stack frame (NVIDIA), private segment (AMD); spill slots and local arrays."""
    static_shared: Figure
    """Bytes per block that the file asks for; Triton asks for its shared memory at launch."""
    shared: Figure
    """Bytes per block, as launched."""
    warps_per_block: Figure
    barriers: Figure
    """NVIDIA: hardware barriers per block."""
    tensor_columns: Figure
    """NVIDIA sm_100: columns of tensor memory per block."""
    workgroup_processor: bool | None
    """AMD gfx10 to gfx12.0: whether a block may run on both compute units of a workgroup processor."""
    contradictions: tuple[Contradiction, ...]


def find_resources(
    target: Target | None,
    metadata: Mapping[str, object],
    *,
    ptx: Figures | None = None,
    amdgcn: Figures | None = None,
    written: str | None = None,
    binary: Binary | None = None,
    unreadable: bool = False,
) -> Resources:
    """The resources of a kernel, by whichever of its files are there.

    Args:
        target: what the kernel was compiled for, None where nothing says.
        metadata: of the cache entry; empty where it has none.
        ptx: what the PTX says of its kernel, None where there is none.
        amdgcn: likewise of the AMDGCN text.
        written: the target that the AMDGCN text names, where it does.
        binary: the cubin or hsaco.
        unreadable: there is a binary, but it could not be read.
    """
    is_amd = target is not None and target.backend is Backend.HIP
    if amdgcn is not None or isinstance(binary, Hsaco) or is_amd:
        hsaco = binary if isinstance(binary, Hsaco) else None
        return _amd(
            target, metadata, amdgcn, written, hsaco, _NO_AMDGCN_AND_BAD_HSACO if unreadable else _NO_AMDGCN
        )
    if isinstance(binary, Cubin):
        return _nvidia(target, metadata, ptx, binary, "")
    if unreadable:
        missing = _BAD_BINARY
    else:
        missing = _NO_CUBIN if target is not None or ptx is not None else _NO_TARGET
    return _nvidia(target, metadata, ptx, None, missing)


# ── NVIDIA ───────────────────────────────────────────────────────────────────────────────────────

_NO_CUBIN = "no cubin in the cache; ptxas decides it"
_BAD_BINARY = "the binary in the cache could not be read"
_NO_TARGET = "no binary in the cache, and nothing says which GPU this is for"
_AMD_ONLY = Figure(None, "AMD only")
_NVIDIA_ONLY = Figure(None, "NVIDIA only")


def _nvidia(
    target: Target | None,
    metadata: Mapping[str, object],
    ptx: Figures | None,
    cubin: Cubin | None,
    missing: str,
) -> Resources:
    """missing: why there is no cubin to read."""
    found: list[Contradiction] = []
    warps = [_metadata(metadata, "num_warps")]
    if cubin is not None and cubin.threads is not None:
        warps.insert(0, _warps(cubin.threads, NVIDIA_LANES, "cubin, .nv.info"))
    for key in (FigureKey.REQUIRED_THREADS, FigureKey.MOST_THREADS):
        said = (ptx or {}).get(key)
        if said is not None and said.value is not None:
            warps.insert(0, _warps(said.value, NVIDIA_LANES, said.source))
    shared = _metadata(metadata, "shared")
    if cubin is None:
        registers = spills = reloads = frame = static = barriers = Figure(None, missing)
    else:
        registers = Figure(cubin.registers, _said(cubin.registers, "cubin, EIATTR_REGCOUNT"))
        frame = Figure(cubin.frame_bytes, _said(cubin.frame_bytes, "cubin, EIATTR_FRAME_SIZE"))
        static = Figure(cubin.static_shared, "cubin, .nv.shared")
        barriers = Figure(cubin.barriers, _said(cubin.barriers, "cubin, barriers of the kernel"))
        spills, reloads = (_spilled(cubin, ptx, is_store=is_store) for is_store in (True, False))
        found += _against_target(target, cubin.target, "cubin, ELF flags")
    found += _disagreements("warps per block", warps)
    found += _too_little_shared(static, shared)
    return Resources(
        registers=registers,
        vector_registers=_AMD_ONLY,
        accumulation_registers=_AMD_ONLY,
        scalar_registers=_AMD_ONLY,
        spill_bytes=spills,
        reload_bytes=reloads,
        scalar_spills=_AMD_ONLY,
        scratch_bytes=frame,
        static_shared=static,
        shared=shared,
        warps_per_block=_first(warps),
        barriers=barriers,
        tensor_columns=_metadata(metadata, "tmem_size"),
        workgroup_processor=None,
        contradictions=tuple(found),
    )


def _spilled(cubin: Cubin, ptx: Figures | None, *, is_store: bool) -> Figure:
    """Bytes that spills move, as ptxas -v counts them, told apart from other local memory.

    What the PTX declares (`.local`) lies at the foot of the frame, spill slots above it. ptxas keeps a
    declared array in memory only where some address is computed or handed to a function that the file
    calls; without either every access is a spill.
    """
    if cubin.stack is None:
        return Figure(None, "the cubin's instructions are not those of sm_70 and later")
    what = cubin.said_by(is_store=is_store)
    accesses = [access for access in cubin.stack if access.is_store == is_store]
    if not cubin.stack or (not cubin.calls and all(access.offset is not None for access in cubin.stack)):
        return Figure(sum(access.bytes for access in accesses), what)
    if ptx is None:
        kind = "calls a function" if cubin.calls else "computes addresses of local memory"
        return Figure(None, f"the code {kind}, so spills and local arrays cannot be told apart without PTX")
    declared = ptx.get(FigureKey.LOCAL)
    if declared is None or declared.value is None:
        return Figure(None, "functions of the PTX have local arrays too, which may lie in the kernel's frame")
    floor = declared.value
    if cubin.calls and not floor:
        # Nothing is declared, so what lies at the foot of the frame are arguments.
        return Figure(
            None, f"the code calls {cubin.calls[0]}, whose arguments pass through local memory as spills do"
        )
    own = sum(access.bytes for access in accesses if access.offset is not None and access.offset >= floor)
    return Figure(own, f"{what} above the {floor} bytes that the PTX declares")


# ── AMD ──────────────────────────────────────────────────────────────────────────────────────────

_NO_AMDGCN = "neither AMDGCN text nor hsaco in the cache; LLVM's back end decides it"
_NO_AMDGCN_AND_BAD_HSACO = "no AMDGCN text in the cache, and the hsaco could not be read"
_COMPARED = (
    FigureKey.VECTOR_REGISTERS, FigureKey.ACCUMULATION_REGISTERS, FigureKey.SCALAR_REGISTERS,
    FigureKey.VECTOR_SPILLS, FigureKey.SCALAR_SPILLS, FigureKey.LANES, FigureKey.SCRATCH,
    FigureKey.STATIC_SHARED, FigureKey.THREADS,
)  # fmt: skip


def _amd(
    target: Target | None,
    metadata: Mapping[str, object],
    amdgcn: Figures | None,
    written: str | None,
    hsaco: Hsaco | None,
    missing: str,
) -> Resources:
    """written: the target by the text; missing: why there is neither text nor hsaco to read."""
    texts = amdgcn or {}
    noted = {} if hsaco is None else hsaco.figures

    def figure(key: FigureKey) -> Figure:
        if key in texts:
            return texts[key]
        if key in noted:
            return Figure(noted[key], f"hsaco, .{key}")
        return Figure(None, missing if amdgcn is None and hsaco is None else f"no .{key} in the file")

    found: list[Contradiction] = []
    for key in _COMPARED:
        if key in texts and key in noted:
            places = [texts[key], Figure(noted[key], f"hsaco, .{key}")]
            found += _disagreements(key.replace("_", " "), places)
    said = None if written is None else _parsed(written)
    found += _against_target(target, said, "amdgcn, .amdgcn_target")
    if hsaco is not None:
        found += _against_target(target, hsaco.target, "hsaco, ELF flags")
    own = said if target is None else target
    registers, accumulation = figure(FigureKey.VECTOR_REGISTERS), figure(FigureKey.ACCUMULATION_REGISTERS)
    static, shared = figure(FigureKey.STATIC_SHARED), _metadata(metadata, "shared")
    spilled = figure(FigureKey.VECTOR_SPILLS)
    wave, threads = figure(FigureKey.LANES), figure(FigureKey.THREADS)
    launched = _metadata(metadata, "num_warps")
    warps = [launched]
    if threads.value is not None and wave.value and not _is_refused(launched, wave.value):
        warps.insert(0, _warps(threads.value, wave.value, threads.source))
    found += _disagreements("warps per block", warps)
    if target is not None:
        found += _disagreements("lanes of a wave", [wave, Figure(target.warp_size, "target")])
    found += _too_little_shared(static, shared)
    mode = figure(FigureKey.WORKGROUP_PROCESSOR).value
    return Resources(
        registers=registers,
        vector_registers=_vector(registers, accumulation, own),
        accumulation_registers=accumulation,
        scalar_registers=figure(FigureKey.SCALAR_REGISTERS),
        spill_bytes=spilled if spilled.value is None else Figure(4 * spilled.value, f"4 × {spilled.source}"),
        reload_bytes=Figure(None, "LLVM counts no reloads"),
        scalar_spills=figure(FigureKey.SCALAR_SPILLS),
        scratch_bytes=figure(FigureKey.SCRATCH),
        static_shared=static,
        shared=shared,
        warps_per_block=_first(warps),
        barriers=_NVIDIA_ONLY,
        tensor_columns=_NVIDIA_ONLY,
        workgroup_processor=None if mode is None or own is None or not own.has_halves else bool(mode),
        contradictions=tuple(found),
    )


def _is_refused(warps: Figure, lanes: int) -> bool:
    """True for a launch of more threads than a block may have: LLVM writes the most that is allowed."""
    return warps.value is not None and warps.value * lanes > MOST_THREADS


def _vector(registers: Figure, accumulation: Figure, target: Target | None) -> Figure:
    """VGPRs proper: LLVM's count is the sum of both where they share a file, else the larger one."""
    if registers.value is None or not accumulation.value:
        return registers
    if target is not None and target.has_one_file:
        return Figure(registers.value - accumulation.value, f"{registers.source} − {accumulation.source}")
    if registers.value > accumulation.value:
        return registers
    return Figure(None, "not above AccVGPRs, of which the file gives the number")


# ── both ─────────────────────────────────────────────────────────────────────────────────────────


def _metadata(metadata: Mapping[str, object], key: str) -> Figure:
    value = metadata.get(key)
    if type(value) is int and value >= 0:
        return Figure(value, f"metadata, {key}")
    return Figure(None, f"no {key} in the metadata")


def _said(value: int | None, source: str) -> str:
    return source if value is not None else f"{source} is not there"


def _warps(threads: int, lanes: int, source: str) -> Figure:
    return Figure(-(-threads // lanes), f"{source}: {threads} threads")


def _first(figures: list[Figure]) -> Figure:
    return next((figure for figure in figures if figure.value is not None), figures[-1])


def _parsed(text: str) -> Target | None:
    try:
        return parse_target(text)
    except UsageError:
        return None


def _disagreements(fact: str, figures: list[Figure]) -> list[Contradiction]:
    known = [figure for figure in figures if figure.value is not None]
    return [
        Contradiction(f"{fact}: {known[0].value} against {other.value}", (known[0].source, other.source))
        for other in known[1:]
        if other.value != known[0].value
    ]


def _too_little_shared(static: Figure, shared: Figure) -> list[Contradiction]:
    if static.value is None or shared.value is None or static.value <= shared.value:
        return []
    sentence = f"shared memory: {static.value} bytes in the file, {shared.value} in all"
    return [Contradiction(sentence, (static.source, shared.source))]


def _against_target(target: Target | None, other: Target | None, place: str) -> list[Contradiction]:
    if target is None or other is None or target.arch == other.arch:
        return []
    return [Contradiction(f"target: {target} against {other}", ("target", place))]
