"""Loads a kernel's files as a program that can run: its code, its parameters by name, its threads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from artifact_inspector.analysis.flow.asm_lines import find_calls, on_lines_of_calls
from artifact_inspector.errors import CacheError
from artifact_inspector.execution.interpreter.program import Program
from artifact_inspector.execution.launch import BITS, SCRATCH
from artifact_inspector.execution.sass.semantics import arch_of, default_parameters, read_program
from artifact_inspector.facts.modules import Disassemble, read_module
from artifact_inspector.files.assembly import with_cubin
from artifact_inspector.files.binaries import read_interface
from artifact_inspector.files.binary import Interface
from artifact_inspector.files.cache import Artifact, Problem, read_binary, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.formats.amdgcn.kernel import Beginning, read_beginning
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import EventKind, Function, Module, Stage
from artifact_inspector.model.text import integer

_DESCRIPTOR = re.compile(r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)")
FLAG = -1
"""The part of a descriptor that selects the fill value outside of its tensor."""
_LAUNCHES = ("reqntid", "maxntid")
_DAMAGED = "Compile the kernel again: its files are truncated or damaged."
MOST_CLUSTER = 16
"""Most CTAs of a cluster (CUDA C Programming Guide, Thread Block Clusters: 8, or 16 if a kernel opts in)."""
MOST_THREADS = 1024
"""Most threads of a CTA (CUDA C Programming Guide, compute capabilities; AMD: `max_flat_workgroup_size`)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the kernel."""

    name: str
    """Name of the argument; `a_desc.shape.0` for a part of a descriptor."""
    type: str
    """Triton's spelling: `*fp16`, `i32`, `!tt.tensordesc<128x64xf16>`; empty for parameters that Triton adds.
    """
    argument: str = ""
    """The argument of the launch that it is, or is a part of."""
    part: int | None = None
    """Index among the extents and then the strides of its descriptor; None if it is not part of one."""
    divisor: int = 1
    """The divisor that Triton was told of (`tt.divisibility`)."""

    @property
    def element_bits(self) -> int | None:
        """Bits of the elements that a pointer refers to; None for other types, or if unknown."""
        kind = self.type
        return BITS.get(kind.removeprefix("*").removeprefix("k")) if kind.startswith("*") else None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel that can run."""

    artifact: Artifact
    program: Program
    parameters: tuple[Parameter, ...]
    threads: int
    problems: tuple[Problem, ...]
    tile_bytes: Mapping[str, int]
    """Argument → bytes of the block that one load of it reads."""
    cubin: bytes | None = None
    """The cubin, from the cache or assembled from the PTX."""
    beginning: Beginning | None = None
    """Initial state of a kernel for AMD; None for NVIDIA."""

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return _whole_number(self.artifact, "num_ctas") or 1

    @property
    def scratch(self) -> int:
        """Bytes of global scratch memory per CTA."""
        return _whole_number(self.artifact, "global_scratch_size")


def load_kernel(artifact: Artifact, disassemble: Disassemble | None) -> Loaded:
    """A kernel's machine code, ready to run.

    Raises:
        CacheError: there is none, or it cannot be read.
    """
    problems: list[Problem] = []
    if "amdgcn" in artifact.files or "hsaco" in artifact.files:
        return _load_amd(artifact, disassemble, problems)
    if disassemble is not None and Stage.SASS.value not in artifact.files:
        try:
            artifact = with_cubin(artifact)
        except CacheError as error:
            problems.append(Problem(artifact.relative("ptx"), error.message))
    module = read_module(artifact, Stage.SASS, problems, disassemble)
    if module is None:
        told = "; ".join(f"{problem.path}: {problem.problem}" for problem in problems)
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: it has no readable machine code"
            f"{f' ({told})' if told else ''}.",
            "It needs a cubin and nvdisasm (--nvdisasm PATH, or the one of an installed Triton), the text of "
            "SASS, or PTX and Triton's ptxas.",
        )
    tensor_level, written = _written(artifact, problems)
    parameters = _parameters(written)
    tiles = {} if tensor_level is None or written is None else _tile_bytes(tensor_level, written)
    cubin = _cubin(artifact, problems)
    interface = _interface(artifact, cubin, problems)
    names = [function.name for function in module.functions]
    name = artifact.name if artifact.name in names else names[0]
    places = interface.parameters or default_parameters(arch_of(module), [p.type for p in parameters])
    extra = len(places) - len(parameters)
    added = _added(artifact, len(parameters), extra)
    ptx = read_module(artifact, Stage.PTX, problems)
    program = read_program(
        module if ptx is None else _on_lines_of_calls(module, ptx),
        name,
        constants=interface.constants,
        parameters=places,
    )
    threads = _threads(artifact, ptx)
    return _whole(Loaded(artifact, program, parameters + added, threads, tuple(problems), tiles, cubin))


def _on_lines_of_calls(module: Module, ptx: Module) -> Module:
    """The module with loads from inline asm attributed to their source lines."""
    calls = find_calls(ptx, format_of(Stage.PTX))
    language = format_of(module.stage)
    return replace(
        module,
        functions=tuple(on_lines_of_calls(one, module, language, calls) for one in module.functions),
    )


def _load_amd(artifact: Artifact, disassemble: Disassemble | None, problems: list[Problem]) -> Loaded:
    """Load a kernel from AMDGCN text, whose metadata describes arguments and registers."""
    module = read_module(artifact, Stage.AMDGCN, problems, disassemble)
    if module is None or "amdgcn" not in artifact.files:
        told = "; ".join(f"{problem.path}: {problem.problem}" for problem in problems)
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: its machine code cannot be read"
            f"{f' ({told})' if told else ''}.",
            "It needs the text of AMDGCN, which describes the kernel's arguments and registers.",
        )
    text = read_stage(artifact, "amdgcn").source.text
    names = [function.name for function in module.functions]
    name = artifact.name if artifact.name in names else names[0]
    beginning = read_beginning(text, name)
    target = parse_target(module.attributes.get("target", "gfx942"))
    caches = target.gpu.caches
    from artifact_inspector.execution.amdgcn import semantics as amdgcn  # not needed for NVIDIA kernels

    program = amdgcn.read_program(module, name, beginning, 128 if caches is None else caches.line)
    tensor_level, written = _written(artifact, problems)
    parameters = _parameters(written)
    tiles = {} if tensor_level is None or written is None else _tile_bytes(tensor_level, written)
    extra = len(program.parameters) - len(parameters)
    added = _added(artifact, len(parameters), extra)
    threads = beginning.wave * (artifact.num_warps or 1) if artifact.num_warps else beginning.threads
    return _whole(
        Loaded(artifact, program, parameters + added, threads, tuple(problems), tiles, beginning=beginning)
    )


def _whole(loaded: Loaded) -> Loaded:
    """Check that the kernel has code and that a GPU accepts its number of threads."""
    name, warp = loaded.artifact.display_name, loaded.program.warp
    if not loaded.program.steps:
        raise CacheError(f"{name} cannot be simulated: it has no instructions.", _DAMAGED)
    if not 0 < loaded.threads <= MOST_THREADS or loaded.threads % warp:
        raise CacheError(
            f"{name} cannot be simulated: a CTA has {loaded.threads:.4g} threads. Expected a multiple of "
            f"{warp}, at most {MOST_THREADS}.",
            _DAMAGED,
        )
    if loaded.cluster > MOST_CLUSTER:
        raise CacheError(
            f"{name} cannot be simulated: a cluster has {loaded.cluster:.4g} CTAs. Expected at most "
            f"{MOST_CLUSTER}.",
            _DAMAGED,
        )
    return loaded


def _whole_number(artifact: Artifact, key: str) -> int:
    found = artifact.metadata.get(key)
    return found if type(found) is int and found > 0 else 0


def _added(artifact: Artifact, own: int, extra: int) -> tuple[Parameter, ...]:
    """Parameters that Triton's launcher adds to the kernel's own; the first is its scratch memory, if any."""
    names = [f"hidden parameter {own + n} of Triton" for n in range(extra)]
    if names and _whole_number(artifact, "global_scratch_size"):
        names[0] = SCRATCH
    return tuple(Parameter(name, "") for name in names)


def _cubin(artifact: Artifact, problems: list[Problem]) -> bytes | None:
    try:
        read = read_binary(artifact)
    except CacheError as error:
        problems.append(Problem(artifact.relative("cubin"), error.message))
        return None
    return read[1] if read is not None and read[0] == "cubin" else None


def _interface(artifact: Artifact, cubin: bytes | None, problems: list[Problem]) -> Interface:
    try:
        if cubin is not None:
            return read_interface(cubin, artifact.name)
    except CacheError as error:
        problems.append(Problem(artifact.relative("cubin"), error.message))
    return Interface((), {})


def _written(artifact: Artifact, problems: list[Problem]) -> tuple[Module | None, Function | None]:
    """The earliest stage that names the kernel's arguments, and the kernel in it."""
    for stage in (Stage.TTIR, Stage.TTGIR):
        module = read_module(artifact, stage, problems)
        if module is not None:
            named = [function for function in module.functions if function.name == artifact.name]
            return module, named[0] if named else module.functions[0]
    return None, None


def example_arguments(artifact: Artifact) -> tuple[str, ...]:
    """An example `NAME=VALUE` for each argument of a kernel; empty if a type is not a pointer or number."""
    _, written = _written(artifact, [])
    found = []
    for parameter in _parameters(written):
        kind = parameter.type
        if kind.startswith("*") and kind[1:] in BITS:
            found.append(f"{parameter.name}={kind[1:]}[1048576]")
        elif kind.startswith(("i", "u", "fp", "bf")) and "<" not in kind:
            found.append(f"{parameter.name}=64")
        else:
            return ()
    return tuple(found)


def _tile_bytes(module: Module, function: Function) -> dict[str, int]:
    """Argument → bytes of the block that the first load of it reads."""
    language = format_of(module.stage)
    made: dict[str, list[str]] = {}
    for instruction in function.instructions:
        operands = instruction.operands
        for name in operands.results:
            made.setdefault(name, []).extend(operands.reads)
    for flow in function.flows:
        made.setdefault(flow.target, []).append(flow.source)
    arguments = {
        name
        for name, kind in zip(function.arguments, function.signature, strict=False)
        if kind.startswith(("*", "!"))
    }
    found: dict[str, int] = {}
    for instruction in function.instructions:
        if instruction.kind not in (EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY):
            continue
        types = [kind for kind in language.types(instruction, module) if not kind.is_memory]
        start = instruction.operands.reads[:1]
        root = _root(list(start), made, arguments)
        if root is not None and types and types[-1].elements > 1:
            name = function.renamed.get(root, root).lstrip("%")
            found.setdefault(name, types[-1].elements * types[-1].bits // 8)
    return found


def _root(front: list[str], made: Mapping[str, list[str]], arguments: set[str]) -> str | None:
    """The pointer or descriptor argument that an address is derived from."""
    seen: set[str] = set()
    while front:
        name = front.pop(0)
        if name in arguments:
            return name
        if name not in seen:
            seen.add(name)
            front += made.get(name, ())
    return None


def _parameters(function: Function | None) -> tuple[Parameter, ...]:
    if function is None:
        return ()
    types: Sequence[str] = function.signature
    if len(types) != len(function.arguments):
        types = ("",) * len(function.arguments)
    kinds = [kind if kind.startswith("!") else kind.partition(":")[0] for kind in types]
    divisors = [1 if kind.startswith("!") else integer(kind.partition(":")[2]) or 1 for kind in types]
    names = [name.lstrip("%") for name in function.arguments]
    found: list[Parameter] = []
    while len(found) < len(names):
        at = len(found)
        owner = function.renamed.get(function.arguments[at], names[at]).lstrip("%")
        found.append(Parameter(owner, kinds[at], owner, divisor=divisors[at]))
        parts = _parts(names[at:], kinds[at:])  # parts have their descriptor's name in the source
        rest = zip(names[at + 1 :], kinds[at + 1 :], parts, strict=False)
        found += [Parameter(name, kind, owner, part) for name, kind, part in rest]
    return tuple(found)


def _parts(names: Sequence[str], kinds: Sequence[str]) -> tuple[int, ...]:
    """The parameters after a descriptor: indices among its extents and then its strides; `FLAG` for a flag.

    On a target with tensor maps, extents and strides follow once. Otherwise the descriptor is a pointer, and
    they follow twice: as 64-bit numbers, then the fill flag, then with Triton's own types. They are named
    `a_desc_0` or, if the text keeps names, `a_desc.shape.0`. Triton 3.4 has no fill flag.

    Source:
        Triton 3.4 to 3.9, `make_tensordesc_arg` of both backends.
    """
    shape = _DESCRIPTOR.match(kinds[0])
    if shape is not None:
        return tuple(range(2 * shape[1].count("x")))
    if not kinds[0].startswith("*"):
        return ()
    own = re.compile(re.escape(names[0]) + r"(_\d{1,9}|\.[a-zA-Z]\w*(\.\w+)*)")
    stop = next((at for at in range(1, len(names)) if own.fullmatch(names[at]) is None), len(names))
    found = parts_behind(kinds[1:stop])
    return found if len(found) == stop - 1 else ()


def parts_behind(kinds: Sequence[str]) -> tuple[int, ...]:
    """The descriptor parts after a pointer, recognized by their types; empty if the types do not match.

    Example:
        >>> parts_behind(["i64", "i64", "i32", "i64", "i32"])
        (0, 1, 0, 1)
    """
    wide = next((at for at, kind in enumerate(kinds) if kind != "i64"), 0)
    rank, flags = wide // 2, len([*takewhile("i1".__eq__, kinds[wide:])])
    every = tuple(range(2 * rank))
    expected = ["i64"] * wide + ["i1"] * flags + ["i32"] * rank + ["i64"] * rank
    if not rank or wide % 2 or [*kinds[: len(expected)]] != expected:
        return ()
    return (*every, *(FLAG,) * flags, *every)


def _threads(artifact: Artifact, ptx: Module | None) -> int:
    """Threads of a CTA, from the PTX, otherwise from `num_warps`."""
    if ptx is not None:
        for name in _LAUNCHES:
            said = ptx.attributes.get(name)
            if said is not None:
                return math.prod(integer(extent.strip()) or 0 for extent in said.split(","))
    if artifact.num_warps is None:
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: the number of threads per CTA is unknown.",
            "It is in the PTX and in the metadata: keep either next to the machine code.",
        )
    return 32 * artifact.num_warps
