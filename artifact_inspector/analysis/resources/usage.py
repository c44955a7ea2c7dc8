"""The hardware resources of a kernel: registers, spills, scratch, shared memory, warps.

Every figure comes from one file and names that file and field. If two files that should agree do not, both are
reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.errors import UsageError
from artifact_inspector.files.binary import Binary, Cubin, Hsaco
from artifact_inspector.hardware.gpu import MAX_THREADS_PER_BLOCK
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import Backend
from artifact_inspector.model.resource import ResourceFigure, ResourceKey

__all__ = ["Contradiction", "ResourceFigure", "Resources", "find_resources"]

Figures = Mapping[ResourceKey, ResourceFigure]
NVIDIA_LANES = 32
"""Of a warp."""


class Contradiction(NamedTuple):
    """Two files that disagree on one fact."""

    message: str
    locations: tuple[str, str]
    """Location of each of the two: file and field."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel. Thread-private memory is in bytes per thread."""

    registers: ResourceFigure
    """Per thread. AMD: vector registers allocated; gfx90a and later with AccVGPRs, which share the file."""
    vector_registers: ResourceFigure
    """AMD: VGPRs per thread, without AccVGPRs."""
    accumulation_registers: ResourceFigure
    """AMD: AccVGPRs per thread, in which matrix instructions accumulate."""
    scalar_registers: ResourceFigure
    """AMD: per wave."""
    spill_bytes: ResourceFigure
    """Bytes per thread that the code's spill stores write if each runs once."""
    reload_bytes: ResourceFigure
    """Bytes per thread that the code's spill loads read if each runs once."""
    scalar_spills: ResourceFigure
    """AMD: spilled scalar registers. They go to lanes of vector registers, not to memory."""
    scratch_bytes: ResourceFigure
    """Local memory per thread: stack frame (NVIDIA), private segment (AMD); spill slots and local arrays."""
    static_shared: ResourceFigure
    """Bytes per block that the file requests. Triton requests its shared memory at launch."""
    shared: ResourceFigure
    """Bytes per block, as launched."""
    warps_per_block: ResourceFigure
    barriers: ResourceFigure
    """NVIDIA: hardware barriers per block."""
    tensor_columns: ResourceFigure
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
    named_target: str | None = None,
    binary: Binary | None = None,
    unreadable: bool = False,
) -> Resources:
    """The resources of a kernel, from its available files.

    Args:
        target: that the kernel was compiled for; None if unknown.
        metadata: of the cache entry; empty if it has none.
        ptx: figures from the PTX; None if there is none.
        amdgcn: figures from the AMDGCN text; None if there is none.
        named_target: the target named in the AMDGCN text, if any.
        unreadable: there is a binary, but it could not be read.
    """
    is_amd = target is not None and target.backend is Backend.HIP
    if amdgcn is not None or isinstance(binary, Hsaco) or is_amd:
        hsaco = binary if isinstance(binary, Hsaco) else None
        missing = _NO_AMDGCN_AND_BAD_HSACO if unreadable else _NO_AMDGCN
        return _amd(target, metadata, amdgcn, named_target, hsaco, missing)
    missing = _BAD_BINARY if unreadable else _NO_TARGET if target is None and ptx is None else _NO_CUBIN
    return _nvidia(target, metadata, ptx, binary, missing)


_NO_CUBIN = "no cubin in the cache, and ptxas decides it"
_BAD_BINARY = "the binary in the cache could not be read"
_NO_TARGET = "no binary in the cache, and the GPU is unknown"
_AMD_ONLY = ResourceFigure(None, "AMD only")
_NVIDIA_ONLY = ResourceFigure(None, "NVIDIA only")


def _nvidia(
    target: Target | None, metadata: Mapping[str, object], ptx: Figures | None, cubin: Cubin | None, missing: str
) -> Resources:
    """The resources of an NVIDIA kernel. `missing` says why there is no cubin."""
    contradictions: list[Contradiction] = []
    warps = [_metadata(metadata, "num_warps")]
    if cubin is not None and cubin.threads is not None:
        warps.insert(0, _warps(cubin.threads, NVIDIA_LANES, "cubin, .nv.info"))
    for key in (ResourceKey.REQUIRED_THREADS, ResourceKey.MOST_THREADS):
        figure = (ptx or {}).get(key)
        if figure is not None and figure.value is not None:
            warps.insert(0, _warps(figure.value, NVIDIA_LANES, figure.source))
    shared = _metadata(metadata, "shared")
    if cubin is None:
        registers = spills = reloads = frame = static = barriers = ResourceFigure(None, missing)
    else:
        registers = ResourceFigure(cubin.registers, _source_or_missing(cubin.registers, "cubin, EIATTR_REGCOUNT"))
        frame = ResourceFigure(cubin.frame_bytes, _source_or_missing(cubin.frame_bytes, "cubin, EIATTR_FRAME_SIZE"))
        static = ResourceFigure(cubin.static_shared, "cubin, .nv.shared")
        barriers = ResourceFigure(cubin.barriers, _source_or_missing(cubin.barriers, "cubin, barriers of the kernel"))
        spills, reloads = (_spilled(cubin, ptx, is_store=is_store) for is_store in (True, False))
        contradictions += _against_target(target, cubin.target, "cubin, ELF flags")
    contradictions += _disagreements("warps per block", warps)
    contradictions += _too_little_shared(static, shared)
    return Resources(
        registers=registers, vector_registers=_AMD_ONLY, accumulation_registers=_AMD_ONLY, scalar_registers=_AMD_ONLY,
        spill_bytes=spills, reload_bytes=reloads, scalar_spills=_AMD_ONLY, scratch_bytes=frame, static_shared=static,
        shared=shared, warps_per_block=_first(warps), barriers=barriers,
        tensor_columns=_metadata(metadata, "tmem_size"), workgroup_processor=None,
        contradictions=tuple(contradictions),
    )  # fmt: skip


def _spilled(cubin: Cubin, ptx: Figures | None, *, is_store: bool) -> ResourceFigure:
    """Bytes moved by spills, as ptxas -v counts them, without other local memory.

    Arrays declared in the PTX (`.local`) are at the start of the frame, with spill slots after them. ptxas keeps a
    declared array in memory only if an address is computed or passed to a called function. Otherwise every access is a
    spill.
    """
    if cubin.stack is None:
        return ResourceFigure(None, "the cubin's instructions are not those of sm_70 and later")
    source_label = f"cubin, {'STL' if is_store else 'LDL'} instructions"
    accesses = [access for access in cubin.stack if access.is_store == is_store]
    if not cubin.stack or (not cubin.calls and all(access.offset is not None for access in cubin.stack)):
        return ResourceFigure(sum(access.bytes for access in accesses), source_label)
    if ptx is None:
        kind = "calls a function" if cubin.calls else "computes addresses of local memory"
        return ResourceFigure(None, f"the code {kind}, so spills and local arrays cannot be distinguished without PTX")
    declared = ptx.get(ResourceKey.LOCAL)
    if declared is None or declared.value is None:
        return ResourceFigure(None, "functions of the PTX also have local arrays, which may be in the kernel's frame")
    floor = declared.value
    if cubin.calls and not floor:
        # Nothing is declared, so the start of the frame holds arguments.
        return ResourceFigure(None, f"the code calls {cubin.calls[0]}, whose arguments are in local memory like spills")
    spill_total = sum(access.bytes for access in accesses if access.offset is not None and access.offset >= floor)
    return ResourceFigure(spill_total, f"{source_label} after the {floor} bytes that the PTX declares")


_NO_AMDGCN = "neither AMDGCN text nor hsaco in the cache, and LLVM's back end decides it"
_NO_AMDGCN_AND_BAD_HSACO = "no AMDGCN text in the cache, and the hsaco could not be read"
_COMPARED = (
    ResourceKey.VECTOR_REGISTERS, ResourceKey.ACCUMULATION_REGISTERS, ResourceKey.SCALAR_REGISTERS,
    ResourceKey.VECTOR_SPILLS, ResourceKey.SCALAR_SPILLS, ResourceKey.LANES, ResourceKey.SCRATCH,
    ResourceKey.STATIC_SHARED, ResourceKey.THREADS,
)  # fmt: skip


def _amd(
    target: Target | None,
    metadata: Mapping[str, object],
    amdgcn: Figures | None,
    named_target: str | None,
    hsaco: Hsaco | None,
    missing: str,
) -> Resources:
    """The resources of an AMD kernel.

    `named_target` is the target in the text, `missing` says why there is neither text nor hsaco.
    """
    text_figures = amdgcn or {}
    hsaco_figures = {} if hsaco is None else hsaco.figures

    def figure(key: ResourceKey) -> ResourceFigure:
        if key in text_figures:
            return text_figures[key]
        if key in hsaco_figures:
            return ResourceFigure(hsaco_figures[key], f"hsaco, .{key}")
        return ResourceFigure(None, missing if amdgcn is None and hsaco is None else f"no .{key} in the file")

    contradictions: list[Contradiction] = []
    for key in (key for key in _COMPARED if key in text_figures and key in hsaco_figures):
        figures = [text_figures[key], ResourceFigure(hsaco_figures[key], f"hsaco, .{key}")]
        contradictions += _disagreements(key.replace("_", " "), figures)
    parsed_target = None if named_target is None else _parse_target_or_none(named_target)
    contradictions += _against_target(target, parsed_target, "amdgcn, .amdgcn_target")
    if hsaco is not None:
        contradictions += _against_target(target, hsaco.target, "hsaco, ELF flags")
    effective_target = parsed_target if target is None else target
    registers, accumulation = figure(ResourceKey.VECTOR_REGISTERS), figure(ResourceKey.ACCUMULATION_REGISTERS)
    static, shared = figure(ResourceKey.STATIC_SHARED), _metadata(metadata, "shared")
    spilled = figure(ResourceKey.VECTOR_SPILLS)
    wave, threads = figure(ResourceKey.LANES), figure(ResourceKey.THREADS)
    launched = _metadata(metadata, "num_warps")
    warps = [launched]
    # LLVM writes the allowed maximum for a launch of more threads than a block may have.
    is_refused = (launched.value or 0) * (wave.value or 0) > MAX_THREADS_PER_BLOCK
    if threads.value is not None and wave.value and not is_refused:
        warps.insert(0, _warps(threads.value, wave.value, threads.source))
    contradictions += _disagreements("warps per block", warps)
    if target is not None:
        contradictions += _disagreements("lanes of a wave", [wave, ResourceFigure(target.warp_size, "target")])
    contradictions += _too_little_shared(static, shared)
    mode = figure(ResourceKey.WORKGROUP_PROCESSOR).value
    has_mode = mode is not None and effective_target is not None and effective_target.has_workgroup_processors
    return Resources(
        registers=registers, vector_registers=_vector(registers, accumulation, effective_target),
        accumulation_registers=accumulation, scalar_registers=figure(ResourceKey.SCALAR_REGISTERS),
        spill_bytes=spilled if spilled.value is None else ResourceFigure(4 * spilled.value, f"4 × {spilled.source}"),
        reload_bytes=ResourceFigure(None, "LLVM does not count reloads"),
        scalar_spills=figure(ResourceKey.SCALAR_SPILLS), scratch_bytes=figure(ResourceKey.SCRATCH),
        static_shared=static, shared=shared, warps_per_block=_first(warps), barriers=_NVIDIA_ONLY,
        tensor_columns=_NVIDIA_ONLY, workgroup_processor=bool(mode) if has_mode else None,
        contradictions=tuple(contradictions),
    )  # fmt: skip


def _vector(registers: ResourceFigure, accumulation: ResourceFigure, target: Target | None) -> ResourceFigure:
    """VGPRs only. LLVM's count is the sum of both if they share a file, else the larger one."""
    if registers.value is None or not accumulation.value:
        return registers
    if target is not None and target.has_unified_registers:
        return ResourceFigure(registers.value - accumulation.value, f"{registers.source} − {accumulation.source}")
    if registers.value > accumulation.value:
        return registers
    return ResourceFigure(None, "at most the number of AccVGPRs, which is the only one in the file")


def _metadata(metadata: Mapping[str, object], key: str) -> ResourceFigure:
    value = metadata.get(key)
    if type(value) is int and value >= 0:
        return ResourceFigure(value, f"metadata, {key}")
    return ResourceFigure(None, f"no {key} in the metadata")


def _source_or_missing(value: int | None, source: str) -> str:
    return source if value is not None else f"no {source}"


def _warps(threads: int, lanes: int, source: str) -> ResourceFigure:
    return ResourceFigure(-(-threads // lanes), f"{source}: {threads} threads")


def _first(figures: list[ResourceFigure]) -> ResourceFigure:
    return next((figure for figure in figures if figure.value is not None), figures[-1])


def _parse_target_or_none(text: str) -> Target | None:
    try:
        return parse_target(text)
    except UsageError:
        return None


def _disagreements(fact: str, figures: list[ResourceFigure]) -> list[Contradiction]:
    known = [figure for figure in figures if figure.value is not None]
    return [
        Contradiction(f"{fact}: {known[0].value} against {other.value}", (known[0].source, other.source))
        for other in known[1:]
        if other.value != known[0].value
    ]


def _too_little_shared(static: ResourceFigure, shared: ResourceFigure) -> list[Contradiction]:
    if static.value is None or shared.value is None or static.value <= shared.value:
        return []
    message = f"shared memory: {static.value} static bytes in the file, but {shared.value} bytes in total"
    return [Contradiction(message, (static.source, shared.source))]


def _against_target(target: Target | None, other_target: Target | None, location: str) -> list[Contradiction]:
    if target is None or other_target is None or target.arch == other_target.arch:
        return []
    return [Contradiction(f"target: {target} against {other_target}", ("target", location))]
