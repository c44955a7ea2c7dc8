"""The result of parsing a file: a module of functions, with their blocks and value flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from artifact_inspector.model.instruction import ControlInfo, Instruction
from artifact_inspector.model.location import Location
from artifact_inspector.model.stage import Stage


class Flow(NamedTuple):
    """A value passed without an instruction: MLIR's region and block arguments, yields and results."""

    source: str
    target: str
    instruction_index: int
    """Index of the instruction that passes the value (the `scf.for`, `scf.yield`, `cf.br` …)."""
    owner: int
    """Owner of the target: the index of the operation whose result or region argument it is, or -1 - b for an argument
    of block b. Sibling regions reuse names; (owner, target) is unique."""
    is_back_edge: bool
    """True along a loop's back edge: the value arrives one iteration later."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A sequence of a function's instructions, `start:stop`, identified by its index.

    Labels are for display: PTX may use one twice.
    """

    index: int
    label: str
    start: int
    stop: int
    successors: tuple[int, ...]
    """Indices of blocks; empty for an exit block."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a warp-specialised operation: the blocks `first:stop`."""

    name: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its instructions in text order and its basic blocks."""

    name: str
    line: int
    location: Location | None
    arguments: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    flows: tuple[Flow, ...] = ()
    partitions: tuple[Partition, ...] = ()
    divisibility: Mapping[str, int] = field(default_factory=dict)
    """Argument → a number that divides it, as specified to the compiler; tensor-level IR only."""
    signature: tuple[str, ...] = ()
    """Types of the arguments in Triton's notation, `*fp16:16` for a pointer divisible by 16; tensor-level IR only."""
    source_names: Mapping[str, str] = field(default_factory=dict)
    """Argument → its source name, where the text has the name of an identical variable; tensor-level IR only."""
    clause_followers: frozenset[int] = frozenset()
    """Loads that follow another in one clause (`s_clause`); their line may be wrongly that of the first load."""
    inline_asm_lines: Mapping[int, int] = field(default_factory=dict)
    """Loads of inline asm → their line in the file's line table, where the compiler counts lines from that of
    the asm call."""
    control_codes: tuple[ControlInfo, ...] = ()
    """One per instruction; only for SASS with encodings."""


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file."""

    stage: Stage
    name: str
    functions: tuple[Function, ...]
    attributes: dict[str, str]
    """Attributes that the file states: target, num_warps, version … (the keys are format-specific)."""
    problems: tuple[str, ...] = ()
    """What could not be read and was skipped, each with its line."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """Aliases of layout attributes (`#blocked`), resolved; tensor-level IR only."""
    is_complete: bool = True
    """False for a truncated file: missing parts may have existed."""
