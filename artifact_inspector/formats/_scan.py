"""What the format modules share: opcode tables and the value that describes a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.formats._addresses import ADDRESSES
from artifact_inspector.formats._caches import asked_of_caches, is_kept
from artifact_inspector.formats._scheduling import loop_header, warp_request
from artifact_inspector.model import (
    Access,
    EventKind,
    Instruction,
    MatrixOp,
    Module,
    Pointing,
    Queue,
    RegisterBank,
    Stage,
    TensorType,
    Trait,
    Transfer,
    Wait,
)
from artifact_inspector.model.address import Addresses
from artifact_inspector.model.axes import AxisOperation, AxisRole
from artifact_inspector.model.condition import Conditions
from artifact_inspector.model.figure import Figure, FigureKey
from artifact_inspector.model.scheduling import LoopHeader, WarpRequest
from artifact_inspector.model.shared import Launch, SharedRole, SharedUse
from artifact_inspector.model.text import SourceText

TRANSFERS = frozenset((EventKind.GLOBAL_LOAD, EventKind.GLOBAL_STORE, EventKind.ATOMIC, EventKind.ASYNC_COPY))
"""Kinds that move something between global memory and the block."""

DECODED = 1 << 14
"""Statements whose operands are remembered: several analyses ask for those of one file."""


class OpcodeTable:
    """Kinds by opcode prefix, the longest prefix wins, so the order of rows means nothing.

    Args:
        rows: (kind, prefixes separated by white space); a prefix may end in `$` to stand for
            the whole opcode only.

    Raises:
        ValueError: a prefix stands in two rows.

    Example:
        >>> table = OpcodeTable([(EventKind.GLOBAL_LOAD, "ld.global"), (EventKind.OTHER, "ld$")])
        >>> table.kind("ld.global.v4.b32").name, table.kind("ld.shared").name
        ('GLOBAL_LOAD', 'UNKNOWN')
    """

    def __init__(self, rows: Iterable[tuple[EventKind, str]]) -> None:
        self._exact: dict[str, EventKind] = {}
        self._prefixes: dict[str, EventKind] = {}
        for kind, words in rows:
            for word in words.split():
                table, key = (self._exact, word[:-1]) if word.endswith("$") else (self._prefixes, word)
                if key in table:
                    raise ValueError(f"opcode prefix {word!r} stands in two rows")
                table[key] = kind
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._seen: dict[str, EventKind] = dict(self._exact)

    def kind(self, opcode: str) -> EventKind:
        """The kind of an opcode, UNKNOWN when no row fits."""
        seen = self._seen.get(opcode)
        if seen is None:
            seen = self._seen[opcode] = self._longest(opcode)
        return seen

    def _longest(self, opcode: str) -> EventKind:
        for length in self._lengths:
            found = self._prefixes.get(opcode[:length]) if length <= len(opcode) else None
            if found is not None:
                return found
        return EventKind.UNKNOWN

    @property
    def rows(self) -> Mapping[str, EventKind]:
        """Every prefix with its kind, for documentation and tests."""
        return {**self._prefixes, **{f"{word}$": kind for word, kind in self._exact.items()}}


class Traits:
    """What opcodes are beyond their kinds, each found once.

    Args:
        rows: trait → a pattern that matches the start of the opcodes that have it; end it in `$` for whole
            opcodes.
        others: tables of languages whose opcodes may stand here too (inline assembly).

    Example:
        >>> table = Traits({Trait.FUSED: "fma[.]"})
        >>> table.of("fma.rn.f32"), table.of("add.f32")
        (<Trait.FUSED: 1>, <Trait.NONE: 0>)
    """

    def __init__(self, rows: Mapping[Trait, str], *others: Traits) -> None:
        self._rows = [(trait, re.compile(pattern)) for trait, pattern in rows.items()]
        self._others = others
        self._seen: dict[str, Trait] = {}

    def of(self, opcode: str) -> Trait:
        """All traits of an opcode."""
        seen = self._seen.get(opcode)
        if seen is None:
            seen = Trait.NONE
            for trait, pattern in self._rows:
                if pattern.match(opcode) is not None:
                    seen |= trait
            for other in self._others:
                seen |= other.of(opcode)
            self._seen[opcode] = seen
        return seen


_NO_USE = SharedUse(SharedRole.NONE)
_NO_OPERATION = AxisOperation(AxisRole.NONE)
_NO_LAUNCH = Launch("", None, None, None, None, None)


_VALUE = re.compile(r'%(?:[\w.$#-]+|"[^"]*")', re.ASCII)


def mentions(instruction: Instruction) -> list[str]:
    """The values that a statement of tensor-level IR, LLVM IR or PTX names; a label among them names none."""
    return _VALUE.findall(instruction.text)


@dataclass(frozen=True, slots=True)
class Format:
    """One language: how to recognise it, parse it and read what single instructions do.

    The readers give None for an instruction of another kind; `model.Language` is what analysis
    sees of them.
    """

    name: str
    stages: tuple[Stage, ...]
    parse: Callable[[SourceText, Stage], Module]
    sniff: Callable[[str], bool]
    """True when a text looks like this language; used for files of unknown name."""
    wait: Callable[[Instruction, Module], Wait | None]
    """What a WAIT instruction waits for."""
    cannot_read: tuple[str, ...]
    """What the parser is known not to understand, one sentence each; printed in the docs."""
    transfer: Callable[[Instruction, Module], Transfer | None]
    """What a global load, store, atomic or asynchronous copy moves."""
    commit: Callable[[Instruction], Queue | None]
    """The queue in which a COMMIT instruction closes a group."""
    matrix: Callable[[Instruction, Module], MatrixOp | None]
    """What one issue of a MATRIX instruction computes."""
    types: Callable[[Instruction, Module], tuple[TensorType, ...]]
    """Tensor types in the text of an operation, in order; empty below tensor-level IR."""
    traits: Callable[[str], Trait]
    """What an opcode is beyond its kind."""
    conditions: Conditions
    """Which instructions decide whether an access takes place."""
    access: Callable[[Instruction], Access] | None = None
    """The reads of a memory operation by role, where the language tells (tensor-level IR)."""
    shared: Callable[[Instruction], SharedUse] = lambda _: _NO_USE
    """What an operation of tensor-level IR asks of shared memory."""
    axes: Callable[[Instruction], AxisOperation] = lambda _: _NO_OPERATION
    """What an operation of tensor-level IR does to integers and pointers."""
    launch: Callable[[Module], Launch] = lambda _: _NO_LAUNCH
    """What a module of tensor-level IR says of its launch."""
    source_name: Callable[[Instruction], str] = lambda _: ""
    """What the program calls the result of an operation of tensor-level IR; empty where nothing tells."""
    bank_of: Callable[[str], RegisterBank | None] = lambda _: None
    """Machine code: the file that a register is of; None for what is no register of a thread or a warp."""
    in_shared: Callable[[Instruction], bool] = lambda _: False
    """True for an operation on an address in shared memory (below tensor-level IR)."""
    pointing: Callable[[Instruction], Pointing] = lambda _: Pointing.NONE
    """What an operation of tensor-level IR takes or makes of pointers."""
    asked_of_caches: Callable[[Sequence[str]], tuple[str, ...]] = asked_of_caches
    """The words of an access about caches without those that ask for what happens anyway."""
    keeps_cache_word: Callable[[str, Sequence[str]], bool] = is_kept
    """Whether some words about caches say, or stand for, one that the program has."""
    figures: Callable[[Module], Mapping[FigureKey, Figure]] = lambda _: {}
    """What assembly says of the hardware that its kernel takes."""
    precision: Callable[[Instruction], str | None] = lambda _: None
    """How precisely a dot of tensor-level IR multiplies, where it says."""
    addresses: Addresses = ADDRESSES
    """How addresses of shared memory are made of one another."""
    loop_header: Callable[[Instruction], LoopHeader] = loop_header
    """What the operation that opens a loop of tensor-level IR says of it."""
    warp_request: Callable[[Instruction], WarpRequest] = warp_request
    """What an operation asks for the warps that run it, or that it starts."""
    mentions: Callable[[Instruction], list[str]] = mentions
    """The values that an instruction names, results first where they stand first."""
    listing: Callable[[str], str] = str
    """The text as lines of code, where it may be saved in another form; lines are counted in these."""


def no_types(_instruction: Instruction, _module: Module) -> tuple[TensorType, ...]:
    """The tensor types of a language that has none."""
    return ()
