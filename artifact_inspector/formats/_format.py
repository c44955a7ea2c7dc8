"""Shared parts of the formats: opcode tables, and the description of a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from artifact_inspector.formats._addresses import ADDRESSES
from artifact_inspector.formats._cache_modifiers import has_cache_modifier, requested_cache_modifiers
from artifact_inspector.formats._scheduling import loop_header, warp_request
from artifact_inspector.model import EventKind, Instruction, Module, RegisterBank, Stage, Trait
from artifact_inspector.model.address import SharedAddresses
from artifact_inspector.model.language import LanguageSemantics, LoopHeader, WarpRequest
from artifact_inspector.model.resource import ResourceFigure, ResourceKey
from artifact_inspector.model.text import SourceText

Result = TypeVar("Result")
TRANSFER_KINDS = frozenset((EventKind.GLOBAL_LOAD, EventKind.GLOBAL_STORE, EventKind.ATOMIC, EventKind.ASYNC_COPY))
"""Kinds that move data between global memory and the block."""

DECODE_CACHE_SIZE = 1 << 14
"""Size of the caches of decoded operands: several analyses decode the statements of one file."""


class OpcodeTable:
    """Kinds by opcode prefix. The longest prefix wins, so the order of rows does not matter.

    Args:
        rows: (kind, prefixes separated by white space); a prefix that ends in `$` matches only the whole opcode.

    Raises:
        ValueError: a prefix is in two rows.

    Example:
        >>> table = OpcodeTable([(EventKind.GLOBAL_LOAD, "ld.global"), (EventKind.OTHER, "ld$")])
        >>> table.kind("ld.global.v4.b32").name, table.kind("ld.shared").name
        ('GLOBAL_LOAD', 'UNKNOWN')
    """

    def __init__(self, rows: Iterable[tuple[EventKind, str]]) -> None:
        self._exact: dict[str, EventKind] = {}
        self._prefixes: dict[str, EventKind] = {}
        for kind, row_prefixes in rows:
            for spelling in row_prefixes.split():
                table, key = (self._exact, spelling[:-1]) if spelling.endswith("$") else (self._prefixes, spelling)
                if key in table:
                    raise ValueError(f"opcode prefix {spelling!r} is in two rows")
                table[key] = kind
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._kinds: dict[str, EventKind] = dict(self._exact)

    def kind(self, opcode: str) -> EventKind:
        """The kind of an opcode; UNKNOWN if no row matches."""
        kind = self._kinds.get(opcode)
        if kind is None:
            prefixes = (opcode[:length] for length in self._lengths if length <= len(opcode))
            kinds = (self._prefixes[prefix] for prefix in prefixes if prefix in self._prefixes)
            kind = self._kinds[opcode] = next(kinds, EventKind.UNKNOWN)
        return kind

    @property
    def rows(self) -> Mapping[str, EventKind]:
        """Every prefix with its kind, for documentation and tests."""
        return {**self._prefixes, **{f"{opcode}$": kind for opcode, kind in self._exact.items()}}


class TraitTable:
    """Traits of opcodes, computed once per opcode.

    Args:
        rows: trait → a pattern for the start of its opcodes; end it in `$` to match whole opcodes.
        others: tables of languages whose opcodes may occur in this one (inline assembly).

    Example:
        >>> table = TraitTable({Trait.FUSED: "fma[.]"})
        >>> table.lookup("fma.rn.f32"), table.lookup("add.f32")
        (<Trait.FUSED: 1>, <Trait.NONE: 0>)
    """

    def __init__(self, rows: Mapping[Trait, str], *tables: TraitTable) -> None:
        self._rows = [(trait, re.compile(pattern)) for trait, pattern in rows.items()]
        self._tables = tables
        self._traits: dict[str, Trait] = {}

    def lookup(self, opcode: str) -> Trait:
        """All traits of an opcode."""
        traits = self._traits.get(opcode)
        if traits is None:
            traits = Trait.NONE
            for trait, pattern in self._rows:
                if pattern.match(opcode) is not None:
                    traits |= trait
            for table in self._tables:
                traits |= table.lookup(opcode)
            self._traits[opcode] = traits
        return traits


def once_per_module(read: Callable[[Module], Result]) -> Callable[[Module], Result]:
    """The function, with its result for the last module kept."""
    cached: list[tuple[Module, Result]] = []

    def read_once(module: Module) -> Result:
        if not cached or cached[0][0] is not module:
            cached[:] = [(module, read(module))]
        return cached[0][1]

    return read_once


_VALUE = re.compile(r'%(?:[\w.$#-]+|"[^"]*")', re.ASCII)


def named_values(instruction: Instruction) -> list[str]:
    """The values named by a statement of tensor-level IR, LLVM IR or PTX, without labels."""
    return _VALUE.findall(instruction.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(LanguageSemantics):
    """One language: how to recognise it, parse it, and decode single instructions.

    Analysis uses it as `model.Language`.
    """

    name: str
    stages: tuple[Stage, ...]
    parse: Callable[[SourceText, Stage], Module]
    sniff: Callable[[str], bool]
    """True if a text looks like this language; used for files with unknown names."""
    cannot_read: tuple[str, ...]
    """Known limits of the parser, one sentence each; printed in the docs."""
    bank_of: Callable[[str], RegisterBank | None] = lambda _: None
    """Machine code: the register file of a register; None for anything else."""
    figures: Callable[[Module], Mapping[ResourceKey, ResourceFigure]] = lambda _: {}
    """Resource figures in assembly."""
    listing: Callable[[str], str] = str
    """Converts other file formats of the language to lines of code; line numbers refer to these lines."""

    requested_cache_modifiers: Callable[[Sequence[str]], tuple[str, ...]] = requested_cache_modifiers
    has_cache_modifier: Callable[[str, Sequence[str]], bool] = has_cache_modifier
    addresses: SharedAddresses = ADDRESSES
    loop_header: Callable[[Instruction], LoopHeader] = loop_header
    warp_request: Callable[[Instruction], WarpRequest] = warp_request
    named_values: Callable[[Instruction], list[str]] = named_values
