"""Registers alive in a kernel's machine code, by line, and what one block more would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from artifact_inspector.analysis.resources.pressure import RegisterPressure, find_pressure, registers_to_free
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts, occupancy_of
from artifact_inspector.facts.modules import Disassemble, read_module
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Function, Instruction, Module, RegisterBank, Resource, Stage
from artifact_inspector.model.location import base_name


@dataclass(frozen=True, slots=True)
class LiveRegisters:
    """Registers alive at the peak that came of one place."""

    kind: str
    """Of the instruction that wrote them last: `global_load`, `matrix` …; `argument` where none did."""
    source: str | None
    """`file:line` of it."""
    line: int | None
    """Of the stage's text, the first of them."""
    registers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinePressure:
    """Most registers alive at the instructions of one source line."""

    source: str
    registers: int
    """Vector registers of a thread; AMD's accumulators, where they share the file, among them."""
    line: int
    """Of the stage's text, where it is so."""


@dataclass(frozen=True, slots=True)
class KernelPressure:
    """Registers alive in a kernel."""

    kernel: str
    hash: str
    target: str | None
    stage: Stage
    peak: int
    """Vector registers alive at once, at most."""
    peak_line: int
    """Of the stage's text."""
    peak_source: str | None
    allocated: int | None
    """Registers that a thread is given."""
    by_bank: Mapping[str, int]
    """File of registers → most of it alive at once."""
    live_at_peak: tuple[LiveRegisters, ...]
    """What is alive at the peak, by where it came of, the most first."""
    by_source: tuple[LinePressure, ...]
    by_instruction: tuple[tuple[int, int], ...]
    """Line of the stage's text and registers alive there."""
    blocks: int | None
    """On one multiprocessor."""
    limited_by: tuple[Resource, ...]
    registers_to_free: int | None
    """Registers fewer with which one block more fits; None where registers do not decide it."""


def count_live_by_line(module: Module, kernel: str) -> dict[int, int]:
    """Line of machine code → vector registers alive there, of the function of that name."""
    function, _, alive = _find_live(module, kernel)
    return {instruction.line: count for instruction, count in zip(function.instructions, alive, strict=True)}


def _find_live(module: Module, kernel: str) -> tuple[Function, RegisterPressure, list[int]]:
    """The kernel among a module's functions, and what is alive at each of its instructions."""
    function = _function_of(module, kernel)
    pressure = find_pressure(function, format_of(module.stage).bank_of)
    return function, pressure, _vector_counts(pressure, len(function.instructions))


def _function_of(module: Module, kernel: str) -> Function:
    named = [function for function in module.functions if function.name == kernel]
    return (named or list(module.functions))[0]


def pressure_of(artifact: Artifact, disassemble: Disassemble | None = None) -> KernelPressure:
    """Registers alive in a kernel's machine code.

    Raises:
        CacheError: it has none that can be read.
    """
    stage = Stage.AMDGCN if {"amdgcn", "hsaco"} & set(artifact.files) else Stage.SASS
    problems: list[Problem] = []
    module = read_module(artifact, stage, problems, disassemble)
    if module is None or not _function_of(module, artifact.name).instructions:
        reasons = "; ".join(f"{problem.path}: {problem.problem}" for problem in problems)
        raise CacheError(
            f"{artifact.display_name} has no machine code that can be read{f' ({reasons})' if reasons else ''}.",
            "It takes AMDGCN, the text of SASS, or a cubin and an nvdisasm (--nvdisasm PATH).",
        )
    function, pressure, alive = _find_live(module, artifact.name)
    at = max(range(len(alive)), key=alive.__getitem__)
    facts = inspect_artifact(artifact, disassemble)
    allocated = facts.resources.registers.value
    occupancy = facts.occupancy
    return KernelPressure(
        kernel=artifact.display_name, hash=artifact.hash,
        target=None if artifact.target is None else str(artifact.target), stage=stage, peak=alive[at],
        peak_line=function.instructions[at].line, peak_source=_source(function.instructions[at]),
        allocated=allocated, by_bank={bank.value: max(counts) for bank, counts in pressure.live_counts.items()},
        live_at_peak=_live_at_peak(function, pressure), by_source=_by_source(function, alive),
        by_instruction=tuple(
            (instruction.line, count) for instruction, count in zip(function.instructions, alive, strict=True)
        ),
        blocks=None if occupancy is None else occupancy.blocks,
        limited_by=() if occupancy is None else occupancy.limited_by,
        registers_to_free=None if allocated is None else _registers_to_free(facts, allocated),
    )  # fmt: skip


def _vector_counts(pressure: RegisterPressure, size: int) -> list[int]:
    """Vector registers and accumulators, which share a file."""
    nothing = (0,) * size
    vectors, accumulators = (
        pressure.live_counts.get(bank, nothing) for bank in (RegisterBank.VECTOR, RegisterBank.ACCUMULATOR)
    )
    return [a + b for a, b in zip(vectors, accumulators, strict=True)]


def _registers_to_free(facts: KernelFacts, allocated: int) -> int | None:
    target, resources = facts.artifact.target, facts.resources
    if target is None:
        return None

    return registers_to_free(lambda registers: occupancy_of(resources, target, registers).blocks, allocated)


def _source(instruction: Instruction) -> str | None:
    frames = instruction.location
    return None if not frames else f"{base_name(frames[-1].file)}:{frames[-1].line}"


def _live_at_peak(function: Function, pressure: RegisterPressure) -> tuple[LiveRegisters, ...]:
    groups: dict[tuple[str, str | None], LiveRegisters] = {}
    for register, index in pressure.live_at_peak.items():
        instruction = None if index is None else function.instructions[index]
        kind = "argument" if instruction is None else _KINDS.get(instruction.kind, instruction.kind.count_name)
        source = None if instruction is None else _source(instruction)
        line = None if instruction is None else instruction.line
        group = groups.get((kind, source), LiveRegisters(kind, source, line, ()))
        groups[kind, source] = replace(group, registers=(*group.registers, register))
    return tuple(sorted(groups.values(), key=lambda group: -len(group.registers)))


_KINDS = {EventKind.ASYNC_COPY: "global_load"}


def _by_source(function: Function, alive: list[int]) -> tuple[LinePressure, ...]:
    lines: dict[tuple[str, int], LinePressure] = {}
    for instruction, count in zip(function.instructions, alive, strict=True):
        frame = instruction.location[-1] if instruction.location else None
        if frame is not None:
            place = base_name(frame.file), frame.line
            if place not in lines or lines[place].registers < count:
                lines[place] = LinePressure(f"{place[0]}:{place[1]}", count, instruction.line)
    return tuple(lines[place] for place in sorted(lines))
