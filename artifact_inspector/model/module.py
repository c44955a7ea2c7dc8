"""What a file parses into: a module of functions, with their blocks and the values handed between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from artifact_inspector.model.control import Control
from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.location import Location
from artifact_inspector.model.stage import Stage


class Flow(NamedTuple):
    """A value handed over by no instruction: MLIR's region and block arguments, yields and results."""

    source: str
    target: str
    at: int
    """Index of the instruction that hands over (the `scf.for`, `scf.yield`, `cf.br` …)."""
    owner: int
    """What the target belongs to: the index of the operation whose result or region argument it
    is, or -1 - b for an argument of block b. Names are reused between sibling regions; (owner,
    target) is unique."""
    back: bool
    """True along a loop's back edge: the value arrives one iteration later."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A run of a function's instructions, `start:stop`; its identity is its index.

    Labels are for people: PTX may use one twice.
    """

    index: int
    label: str
    start: int
    stop: int
    successors: tuple[int, ...]
    """Indices of blocks; empty for an exit."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a warp-specialised operation: the blocks `first:stop`."""

    name: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its instructions in text order and the blocks that cut them."""

    name: str
    line: int
    location: Location | None
    arguments: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    flows: tuple[Flow, ...] = ()
    partitions: tuple[Partition, ...] = ()
    divisibility: Mapping[str, int] = field(default_factory=dict)
    """Argument → a number that divides it, as the compile was told; tensor-level IR only."""
    signature: tuple[str, ...] = ()
    """Types of the arguments in Triton's notation, `*fp16:16` for a pointer that 16 divides; tensor-level
    IR only."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Argument → what the source calls it, where the text has the name of a variable that was made the same;
    tensor-level IR only."""
    followers: frozenset[int] = frozenset()
    """Loads that stand behind another in one clause (`s_clause`), whose line they may wrongly bear."""
    asm_lines: Mapping[int, int] = field(default_factory=dict)
    """Loads of inline asm → their line in the file's own table, where that is counted on from the
    line of the asm's call."""
    controls: tuple[Control, ...] = ()
    """One for each instruction; SASS with its encoding only."""


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file."""

    stage: Stage
    name: str
    functions: tuple[Function, ...]
    attributes: dict[str, str]
    """What the file says of itself: target, num_warps, version … (keys are the format's own)."""
    problems: tuple[str, ...] = ()
    """What could not be read and was passed over, each with its line."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """Aliases of layout attributes (`#blocked`), resolved; tensor-level IR only."""
    is_whole: bool = True
    """False for a file that is cut off: what is not there may have been."""
