"""The hardware resources of a kernel: registers, spills, scratch, shared memory, warps.

Every figure comes from one file and names that file and field. If two files that should agree do not,
both are reported.
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
    """Two files that disagree on one fact."""

    sentence: str
    places: tuple[str, str]
    """Location of each of the two: file and field."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel. Thread-private memory is in bytes per thread."""

    registers: Figure
    """Per thread. AMD: vector registers allocated; gfx90a and later with AccVGPRs, which share the file."""
    vector_registers: Figure
    """AMD: VGPRs per thread, without AccVGPRs."""
    accumulation_registers: Figure
    """AMD: AccVGPRs per thread, in which matrix instructions accumulate."""
    scalar_registers: Figure
    """AMD: per wave."""
    spill_bytes: Figure
    """Bytes per thread that the code's spill stores write if each runs once."""
    reload_bytes: Figure
    """Bytes per thread that the code's spill loads read if each runs once."""
    scalar_spills: Figure
    """AMD: spilled scalar registers. They go to lanes of vector registers, not to memory."""
    scratch_bytes: Figure
    """Local memory per thread: stack frame (NVIDIA), private segment (AMD); spill slots and local arrays."""
    static_shared: Figure
    """Bytes per block that the file requests. Triton requests its shared memory at launch."""
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
    """The resources of a kernel, from its available files.

    Args:
        target: that the kernel was compiled for; None if unknown.
        metadata: of the cache entry; empty if it has none.
        ptx: figures from the PTX; None if there is none.
        amdgcn: figures from the AMDGCN text; None if there is none.
        written: the target named in the AMDGCN text, if any.
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

_NO_CUBIN = "no cubin in the cache, and ptxas decides it"
_BAD_BINARY = "the binary in the cache could not be read"
_NO_TARGET = "no binary in the cache, and the GPU is unknown"
_AMD_ONLY = Figure(None, "AMD only")
_NVIDIA_ONLY = Figure(None, "NVIDIA only")


def _nvidia(
    target: Target | None,
    metadata: Mapping[str, object],
    ptx: Figures | None,
    cubin: Cubin | None,
    missing: str,
) -> Resources:
    """The resources of an NVIDIA kernel. `missing` says why there is no cubin."""
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
    """Bytes moved by spills, as ptxas -v counts them, without other local memory.

    Arrays declared in the PTX (`.local`) are at the start of the frame, with spill slots after them.
    ptxas keeps a declared array in memory only if an address is computed or passed to a called function.
    Otherwise every access is a spill.
    """
    if cubin.stack is None:
        return Figure(None, "the cubin's instructions are not those of sm_70 and later")
    what = cubin.said_by(is_store=is_store)
    accesses = [access for access in cubin.stack if access.is_store == is_store]
    if not cubin.stack or (not cubin.calls and all(access.offset is not None for access in cubin.stack)):
        return Figure(sum(access.bytes for access in accesses), what)
    if ptx is None:
        kind = "calls a function" if cubin.calls else "computes addresses of local memory"
        return Figure(
            None, f"the code {kind}, so spills and local arrays cannot be distinguished without PTX"
        )
    declared = ptx.get(FigureKey.LOCAL)
    if declared is None or declared.value is None:
        return Figure(None, "functions of the PTX also have local arrays, which may be in the kernel's frame")
    floor = declared.value
    if cubin.calls and not floor:
        # Nothing is declared, so the start of the frame holds arguments.
        return Figure(
            None, f"the code calls {cubin.calls[0]}, whose arguments are in local memory like spills"
        )
    own = sum(access.bytes for access in accesses if access.offset is not None and access.offset >= floor)
    return Figure(own, f"{what} after the {floor} bytes that the PTX declares")


# ── AMD ──────────────────────────────────────────────────────────────────────────────────────────

_NO_AMDGCN = "neither AMDGCN text nor hsaco in the cache, and LLVM's back end decides it"
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
    """The resources of an AMD kernel.

    `written` is the target in the text, `missing` says why there is neither text nor hsaco.
    """
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
        reload_bytes=Figure(None, "LLVM does not count reloads"),
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
    """True for a launch of more threads than a block may have: LLVM writes the allowed maximum."""
    return warps.value is not None and warps.value * lanes > MOST_THREADS


def _vector(registers: Figure, accumulation: Figure, target: Target | None) -> Figure:
    """VGPRs only. LLVM's count is the sum of both if they share a file, else the larger one."""
    if registers.value is None or not accumulation.value:
        return registers
    if target is not None and target.has_one_file:
        return Figure(registers.value - accumulation.value, f"{registers.source} − {accumulation.source}")
    if registers.value > accumulation.value:
        return registers
    return Figure(None, "at most the number of AccVGPRs, which is the only one in the file")


# ── both ─────────────────────────────────────────────────────────────────────────────────────────


def _metadata(metadata: Mapping[str, object], key: str) -> Figure:
    value = metadata.get(key)
    if type(value) is int and value >= 0:
        return Figure(value, f"metadata, {key}")
    return Figure(None, f"no {key} in the metadata")


def _said(value: int | None, source: str) -> str:
    return source if value is not None else f"no {source}"


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
    sentence = f"shared memory: {static.value} static bytes in the file, but {shared.value} bytes in total"
    return [Contradiction(sentence, (static.source, shared.source))]


def _against_target(target: Target | None, other: Target | None, place: str) -> list[Contradiction]:
    if target is None or other is None or target.arch == other.arch:
        return []
    return [Contradiction(f"target: {target} against {other}", ("target", place))]
