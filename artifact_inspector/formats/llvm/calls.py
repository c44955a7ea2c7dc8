"""Events of LLVM's calls: functions, intrinsics, and the contents of inline assembly.

A call of inline assembly gives one event per relevant instruction, so four `mov` and one `ld.global` are one global
load. Its opcodes are those of PTX and AMD's assembler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from artifact_inspector.formats.llvm.metadata import unescape, unquote
from artifact_inspector.formats.llvm.opcodes import ASM_OPCODES, OPCODES
from artifact_inspector.model import EventKind

Events = tuple[tuple[str, EventKind, str | None], ...]
"""The events of a statement as (opcode, kind, guard); inline assembly may have several."""

LOADS: dict[str | None, EventKind] = {
    **dict.fromkeys((None, "0", "1", "7", "8", "9"), EventKind.GLOBAL_LOAD),
    "3": EventKind.SHARED_LOAD,
    "5": EventKind.LOCAL_LOAD,
}
"""Kinds by address space, without constant memory (4) and spaces that no kernel loads data from."""
STORES = {
    EventKind.GLOBAL_LOAD: EventKind.GLOBAL_STORE,
    EventKind.SHARED_LOAD: EventKind.SHARED_STORE,
    EventKind.LOCAL_LOAD: EventKind.LOCAL_STORE,
}
_ASM_LOADS = {
    "global": EventKind.GLOBAL_LOAD,
    "shared": EventKind.SHARED_LOAD,
    "local": EventKind.LOCAL_LOAD,
    "param": EventKind.OTHER,
    "const": EventKind.OTHER,
}
_ASM_EVENTLESS_KINDS = (EventKind.SHUFFLE, EventKind.LOCAL_STORE, EventKind.LOCAL_LOAD, EventKind.INTEGER)
"""Kinds of a call without events, in order of precedence; MOVE only if every statement moves."""

_ASM_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ASM_PREFIX = re.compile(r"(?:[\s{}]|(?:[\w$%.]|\$\{:uid\})+:(?!:))*")
_ASM_STATEMENT = re.compile(r"(?:@\s*((?:!\s*)?[^\s!]+)\s+)?(\S+)(.*)", re.DOTALL)
_ASM_AMD = re.compile(r"^[ \t]*(?:[vs]|ds|buffer|global|flat|scratch|tensor|cluster)_\w", re.MULTILINE)
_ASM_FLOAT = re.compile(
    r"(?:add|sub|mul|fma|mac|mad|div|neg|abs|min|max|med3|copysign|setp?)\w{0,40}[._](?:.{0,80}[._])?b?f\d"
)
_ASM_SPACE = re.compile(r"\.(global|shared|local|param|const)\b")
_MANGLED_SPACE = re.compile(r"\.(?:v\d+)?p(\d+)")


@lru_cache(maxsize=4096)
def events_of_callee(name: str) -> Events:
    """The event of a call of a function."""
    if not name.startswith("llvm."):
        opcode = "@" + unquote(name)
        return ((opcode, OPCODES.kind(opcode), None),)
    if name.startswith(("llvm.masked.", "llvm.mem")):
        space = _MANGLED_SPACE.search(name)
        load = LOADS.get(space and space[1], EventKind.OTHER)
        reads = name.startswith(("llvm.masked.load", "llvm.masked.gather", "llvm.masked.expandload"))
        return ((name, load if reads else STORES.get(load, EventKind.OTHER), None),)
    return ((name, OPCODES.kind(name), None),)


@lru_cache(maxsize=4096)
def events_of_assembly(template: str) -> Events:
    """The events of an inline-assembly template as (opcode, kind, guard), or a single `asm`."""
    events: list[tuple[str, EventKind, str | None]] = []
    eventless_kinds: set[EventKind] = set()
    for guard, opcode, operands in _assembly_statements(unescape(template)):
        kind = _assembly_kind(opcode, operands)
        if kind.letter:
            events.append((opcode, kind, guard))
        else:
            eventless_kinds.add(kind)
    if events:
        return tuple(events)
    kinds = (kind for kind in _ASM_EVENTLESS_KINDS if kind in eventless_kinds)
    moves = EventKind.MOVE if eventless_kinds == {EventKind.MOVE} else EventKind.OTHER
    return (("asm", next(kinds, moves), None),)


def _assembly_statements(assembly: str) -> Iterator[tuple[str | None, str, str]]:
    text = _ASM_COMMENT.sub("", assembly)
    # AMD's assembler ends a statement with the line and starts a comment with `;`; PTX ends one with `;`.
    amd = _ASM_AMD.search(text) is not None
    statements = [line.partition(";")[0] for line in text.split("\n")] if amd else text.split(";")
    for statement in statements:
        prefix = _ASM_PREFIX.match(statement)
        match = _ASM_STATEMENT.match(statement, prefix.end() if prefix is not None else 0)
        if match is not None and not match[2].startswith("."):
            yield match[1], match[2], match[3]


def _assembly_kind(opcode: str, operands: str) -> EventKind:
    base = opcode.partition(".")[0]
    spaces = _ASM_SPACE.findall(opcode)
    if base in ("ld", "ldu", "st"):
        load = _ASM_LOADS[spaces[0]] if spaces else EventKind.GLOBAL_LOAD
        return STORES.get(load, EventKind.OTHER) if base == "st" else load
    kind = ASM_OPCODES.kind(opcode)
    if kind is EventKind.ASYNC_COPY and spaces[1:] and spaces[1] == "shared":
        # The destination's space comes first.
        return EventKind.GLOBAL_STORE if spaces[0] == "global" else EventKind.OTHER
    if base == "s_waitcnt":
        return EventKind.WAIT if "vmcnt" in operands else EventKind.OTHER
    if base.startswith(("buffer_load", "global_load")) and re.search(r"\blds\b", operands):
        return EventKind.ASYNC_COPY
    if _ASM_FLOAT.match(opcode.removeprefix("v_").removeprefix("pk_")):
        return EventKind.FLOAT
    return kind
