"""Loads a kernel's files as a program that can run: its code, its parameters by name, its threads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from artifact_inspector.analysis.flow.asm_lines import find_asm_calls, move_to_call_lines
from artifact_inspector.analysis.flow.call_lines import lacks_callers, with_callers
from artifact_inspector.errors import CacheError
from artifact_inspector.execution.amdgcn import semantics as amdgcn
from artifact_inspector.execution.interpreter.program import DecodedProgram
from artifact_inspector.execution.launch import ELEMENT_BITS, SCRATCH_TENSOR
from artifact_inspector.execution.sass.environment import default_parameter_layout
from artifact_inspector.execution.sass.semantics import arch_number, read_program
from artifact_inspector.facts.modules import Disassemble, read_module
from artifact_inspector.files.assembly import with_cubin
from artifact_inspector.files.binaries import read_interface
from artifact_inspector.files.binary import KernelInterface
from artifact_inspector.files.cache import Artifact, Problem, read_binary, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.formats.amdgcn.kernel import InitialState, read_initial_state
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import EventKind, Function, Module, Stage
from artifact_inspector.model.text import parse_integer

_DESCRIPTOR = re.compile(r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)")
PLACEHOLDER = re.compile(r"arg\d{1,4}")
"""Names of arguments in TTIR before Triton 3.5, which keeps none."""
FILL_FLAG = -1
"""The part of a descriptor that selects the fill value outside of its tensor."""
_THREAD_ATTRIBUTES = ("reqntid", "maxntid")
_DAMAGED_REMEDY = "Compile the kernel again: its files are truncated or damaged."
MOST_CLUSTER_CTAS = 16
"""Most CTAs of a cluster (CUDA C Programming Guide, Thread Block Clusters: 8, or 16 if a kernel opts in)."""
MOST_THREADS = 1024
"""Most threads of a CTA (CUDA C Programming Guide, compute capabilities; AMD: `max_flat_workgroup_size`)."""


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """One parameter of the kernel."""

    name: str
    """Name of the argument; `a_desc.shape.0` for a part of a descriptor."""
    type: str
    """Triton's spelling: `*fp16`, `i32`, `!tt.tensordesc<128x64xf16>`; empty for parameters that Triton adds."""
    argument: str = ""
    """The argument of the launch that it is, or is a part of."""
    descriptor_part: int | None = None
    """Index among the extents and then the strides of its descriptor; None if it is not part of one."""
    divisibility: int = 1
    """The divisor that Triton specialised on (`tt.divisibility`)."""

    @property
    def element_bits(self) -> int | None:
        """Bits of the elements that a pointer refers to; None for other types, or if unknown."""
        kind = self.type
        return ELEMENT_BITS.get(kind.removeprefix("*").removeprefix("k")) if kind.startswith("*") else None


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel that can run."""

    artifact: Artifact
    program: DecodedProgram
    parameters: tuple[KernelParameter, ...]
    threads: int
    problems: tuple[Problem, ...]
    tile_bytes: Mapping[str, int]
    """Argument → bytes of the block that one load of it reads."""
    cubin: bytes | None = None
    """The cubin, from the cache or assembled from the PTX."""
    initial_state: InitialState | None = None
    """Initial state of a kernel for AMD; None for NVIDIA."""

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return _metadata_count(self.artifact, "num_ctas") or 1

    @property
    def scratch_bytes(self) -> int:
        """Bytes of global scratch memory per CTA."""
        return _metadata_count(self.artifact, "global_scratch_size")


def load_kernel(artifact: Artifact, disassemble: Disassemble | None) -> LoadedKernel:
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
            problems.append(Problem(artifact.display_path("ptx"), error.message))
    module = read_module(artifact, Stage.SASS, problems, disassemble)
    if module is None:
        reasons = "; ".join(f"{problem.path}: {problem.problem}" for problem in problems)
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: it has no readable machine code"
            f"{f' ({reasons})' if reasons else ''}.",
            "It needs a cubin and nvdisasm (--nvdisasm PATH, or the one of an installed Triton), the text of "
            "SASS, or PTX and Triton's ptxas.",
        )
    tensor_module, source_function = _find_source_function(artifact, problems)
    parameters = _parameters(source_function)
    tile_bytes = {} if tensor_module is None or source_function is None else _tile_bytes(tensor_module, source_function)
    cubin = _cubin(artifact, problems)
    interface = _interface(artifact, cubin, problems)
    names = [function.name for function in module.functions]
    name = artifact.name if artifact.name in names else names[0]
    parameter_layout = interface.parameters or default_parameter_layout(
        arch_number(module), [p.type for p in parameters]
    )
    added_count = len(parameter_layout) - len(parameters)
    added_parameters = _launcher_parameters(artifact, len(parameters), added_count)
    ptx = read_module(artifact, Stage.PTX, problems)
    program = read_program(
        module if ptx is None else _with_user_lines(artifact, module, ptx), name, constants=interface.constants,
        parameters=parameter_layout,
    )  # fmt: skip
    threads = _threads_per_cta(artifact, ptx)
    return _validate_launchable(
        LoadedKernel(artifact, program, parameters + added_parameters, threads, tuple(problems), tile_bytes, cubin)
    )


def _with_user_lines(artifact: Artifact, module: Module, ptx: Module) -> Module:
    """The module with inlined functions and loads from inline asm attributed to the lines of the kernel."""
    module = with_callers(module, ptx)
    if lacks_callers(module) and (llvm_ir := read_module(artifact, Stage.LLIR, [])) is not None:
        module = with_callers(module, llvm_ir)
    calls = find_asm_calls(ptx, format_of(Stage.PTX))
    language = format_of(module.stage)
    return replace(
        module, functions=tuple(move_to_call_lines(function, module, language, calls) for function in module.functions)
    )


def _load_amd(artifact: Artifact, disassemble: Disassemble | None, problems: list[Problem]) -> LoadedKernel:
    """Load a kernel from AMDGCN text, whose metadata describes arguments and registers."""
    module = read_module(artifact, Stage.AMDGCN, problems, disassemble)
    if module is None or "amdgcn" not in artifact.files:
        reasons = "; ".join(f"{problem.path}: {problem.problem}" for problem in problems)
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: its machine code cannot be read"
            f"{f' ({reasons})' if reasons else ''}.",
            "It needs the text of AMDGCN, which describes the kernel's arguments and registers.",
        )
    text = read_stage(artifact, "amdgcn").source.text
    names = [function.name for function in module.functions]
    name = artifact.name if artifact.name in names else names[0]
    initial_state = read_initial_state(text, name)
    target = parse_target(module.attributes.get("target", "gfx942"))
    caches = target.gpu.caches
    program = amdgcn.read_program(module, name, initial_state, 128 if caches is None else caches.line)
    tensor_module, source_function = _find_source_function(artifact, problems)
    parameters = _parameters(source_function)
    tiles = {} if tensor_module is None or source_function is None else _tile_bytes(tensor_module, source_function)
    added_count = len(program.parameters) - len(parameters)
    added_parameters = _launcher_parameters(artifact, len(parameters), added_count)
    threads = (
        initial_state.wavefront_size * (artifact.num_warps or 1) if artifact.num_warps else initial_state.max_threads
    )
    return _validate_launchable(
        LoadedKernel(
            artifact,
            program,
            parameters + added_parameters,
            threads,
            tuple(problems),
            tiles,
            initial_state=initial_state,
        )
    )


def _validate_launchable(loaded: LoadedKernel) -> LoadedKernel:
    """Check that the kernel has code and that a GPU accepts its number of threads."""
    name, warp = loaded.artifact.display_name, loaded.program.warp_size
    if not loaded.program.steps:
        raise CacheError(f"{name} cannot be simulated: it has no instructions.", _DAMAGED_REMEDY)
    if not 0 < loaded.threads <= MOST_THREADS or loaded.threads % warp:
        raise CacheError(
            f"{name} cannot be simulated: a CTA has {loaded.threads:.4g} threads. Expected a multiple of "
            f"{warp}, at most {MOST_THREADS}.",
            _DAMAGED_REMEDY,
        )
    if loaded.cluster_size > MOST_CLUSTER_CTAS:
        raise CacheError(
            f"{name} cannot be simulated: a cluster has {loaded.cluster_size:.4g} CTAs. Expected at most "
            f"{MOST_CLUSTER_CTAS}.",
            _DAMAGED_REMEDY,
        )
    return loaded


def _metadata_count(artifact: Artifact, key: str) -> int:
    metadata_value = artifact.metadata.get(key)
    return metadata_value if type(metadata_value) is int and metadata_value > 0 else 0


def _launcher_parameters(artifact: Artifact, own_count: int, added_count: int) -> tuple[KernelParameter, ...]:
    """Parameters that Triton's launcher adds to the kernel's own; the first is its scratch memory, if any."""
    names = [f"hidden parameter {own_count + n} of Triton" for n in range(added_count)]
    if names and _metadata_count(artifact, "global_scratch_size"):
        names[0] = SCRATCH_TENSOR
    return tuple(KernelParameter(name, "") for name in names)


def _cubin(artifact: Artifact, problems: list[Problem]) -> bytes | None:
    try:
        binary = read_binary(artifact)
    except CacheError as error:
        problems.append(Problem(artifact.display_path("cubin"), error.message))
        return None
    return binary[1] if binary is not None and binary[0] == "cubin" else None


def _interface(artifact: Artifact, cubin: bytes | None, problems: list[Problem]) -> KernelInterface:
    try:
        if cubin is not None:
            return read_interface(cubin, artifact.name)
    except CacheError as error:
        problems.append(Problem(artifact.display_path("cubin"), error.message))
    return KernelInterface((), {})


def _find_source_function(artifact: Artifact, problems: list[Problem]) -> tuple[Module | None, Function | None]:
    """The earliest stage that names the kernel's arguments, and the kernel in it."""
    for stage in (Stage.TTIR, Stage.TTGIR):
        module = read_module(artifact, stage, problems)
        if module is not None:
            named_functions = [function for function in module.functions if function.name == artifact.name]
            return module, named_functions[0] if named_functions else module.functions[0]
    return None, None


def parameter_names(artifact: Artifact) -> frozenset[str]:
    """The names of the arguments that a compiled kernel takes; empty if its files do not name them."""
    _, function = _find_source_function(artifact, [])
    names = frozenset(parameter.argument for parameter in _parameters(function) if parameter.type)
    return frozenset() if names and all(map(PLACEHOLDER.fullmatch, names)) else names


def example_arguments(artifact: Artifact) -> tuple[str, ...]:
    """An example `NAME=VALUE` for each argument of a kernel; empty if a type is not a pointer or number."""
    _, function = _find_source_function(artifact, [])
    examples = []
    for parameter in _parameters(function):
        kind = parameter.type
        if kind.startswith("*") and kind[1:] in ELEMENT_BITS:
            examples.append(f"{parameter.name}={kind[1:]}[1048576]")
        elif kind.startswith(("i", "u", "fp", "bf")) and "<" not in kind:
            examples.append(f"{parameter.name}=64")
        else:
            return ()
    return tuple(examples)


def _tile_bytes(module: Module, function: Function) -> dict[str, int]:
    """Argument → bytes of the block that the first load of it reads."""
    language = format_of(module.stage)
    producers: dict[str, list[str]] = {}
    for instruction in function.instructions:
        operands = instruction.operands
        for name in operands.results:
            producers.setdefault(name, []).extend(operands.reads)
    for flow in function.flows:
        producers.setdefault(flow.target, []).append(flow.source)
    arguments = {
        name for name, kind in zip(function.arguments, function.signature, strict=False) if kind.startswith(("*", "!"))
    }
    tile_bytes: dict[str, int] = {}
    for instruction in function.instructions:
        if instruction.kind not in (EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY):
            continue
        types = [kind for kind in language.tensor_types(instruction, module) if not kind.is_memory]
        start = instruction.operands.reads[:1]
        root = _find_root_argument(list(start), producers, arguments)
        if root is not None and types and types[-1].elements > 1:
            name = function.source_names.get(root, root).lstrip("%")
            tile_bytes.setdefault(name, types[-1].elements * types[-1].bits // 8)
    return tile_bytes


def _find_root_argument(worklist: list[str], producers: Mapping[str, list[str]], arguments: set[str]) -> str | None:
    """The pointer or descriptor argument that an address is derived from."""
    visited: set[str] = set()
    while worklist:
        name = worklist.pop(0)
        if name in arguments:
            return name
        if name not in visited:
            visited.add(name)
            worklist += producers.get(name, ())
    return None


def _parameters(function: Function | None) -> tuple[KernelParameter, ...]:
    if function is None:
        return ()
    types: Sequence[str] = function.signature
    if len(types) != len(function.arguments):
        types = ("",) * len(function.arguments)
    kinds = [kind if kind.startswith("!") else kind.partition(":")[0] for kind in types]
    divisors = [1 if kind.startswith("!") else parse_integer(kind.partition(":")[2]) or 1 for kind in types]
    names = [name.lstrip("%") for name in function.arguments]
    parameters: list[KernelParameter] = []
    while len(parameters) < len(names):
        position = len(parameters)
        owner = function.source_names.get(function.arguments[position], names[position]).lstrip("%")
        parameters.append(KernelParameter(owner, kinds[position], owner, divisibility=divisors[position]))
        part_numbers = _descriptor_parts(
            names[position:], kinds[position:]
        )  # parts have their descriptor's name in the source
        part_rows = zip(names[position + 1 :], kinds[position + 1 :], part_numbers, strict=False)
        parameters += [KernelParameter(name, kind, owner, part_number) for name, kind, part_number in part_rows]
    return tuple(parameters)


def _descriptor_parts(names: Sequence[str], kinds: Sequence[str]) -> tuple[int, ...]:
    """The parameters after a descriptor: indices among its extents and then its strides; `FILL_FLAG` for a flag.

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
    part_pattern = re.compile(re.escape(names[0]) + r"(_\d{1,9}|\.[a-zA-Z]\w*(\.\w+)*)")
    stop = next((at for at in range(1, len(names)) if part_pattern.fullmatch(names[at]) is None), len(names))
    part_numbers = descriptor_parts_of_types(kinds[1:stop])
    return part_numbers if len(part_numbers) == stop - 1 else ()


def descriptor_parts_of_types(kinds: Sequence[str]) -> tuple[int, ...]:
    """The descriptor parts after a pointer, recognized by their types; empty if the types do not match.

    Example:
        >>> descriptor_parts_of_types(["i64", "i64", "i32", "i64", "i32"])
        (0, 1, 0, 1)
    """
    wide_count = next((at for at, kind in enumerate(kinds) if kind != "i64"), 0)
    rank, flags = wide_count // 2, len([*takewhile("i1".__eq__, kinds[wide_count:])])
    all_parts = tuple(range(2 * rank))
    expected = ["i64"] * wide_count + ["i1"] * flags + ["i32"] * rank + ["i64"] * rank
    if not rank or wide_count % 2 or [*kinds[: len(expected)]] != expected:
        return ()
    return (*all_parts, *(FILL_FLAG,) * flags, *all_parts)


def _threads_per_cta(artifact: Artifact, ptx: Module | None) -> int:
    """Threads of a CTA, from the PTX, otherwise from `num_warps`."""
    if ptx is not None:
        for name in _THREAD_ATTRIBUTES:
            attribute = ptx.attributes.get(name)
            if attribute is not None:
                return math.prod(parse_integer(extent.strip()) or 0 for extent in attribute.split(","))
    if artifact.num_warps is None:
        raise CacheError(
            f"{artifact.display_name} cannot be simulated: the number of threads per CTA is unknown.",
            "It is in the PTX and in the metadata: keep either next to the machine code.",
        )
    return 32 * artifact.num_warps
