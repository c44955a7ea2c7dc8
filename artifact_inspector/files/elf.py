"""An ELF file as compilers for GPUs write it: its sections, the names of its symbols, its notes.

Only what 64-bit little-endian files hold of these; no more is read than the file says once.

Source: System V ABI, "Object Files"; LLVM, AMDGPUUsage, "Note Records".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from artifact_inspector.errors import CacheError

REMEDY = "Compile the kernel again: the file is cut off, damaged, or something else."
NOBITS, NOTES, ALLOCATED = 8, 7, 2
"""Types of sections: without content, and of notes; the flag of one that is loaded."""
_MOST_NAME = 4096
"""Characters of the name of a section or a symbol."""
_ROW = struct.Struct("<IIQ8xQQI20x")
_SYMBOL_BYTES = 24


class Section(NamedTuple):
    """One row of the table of sections."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    """Bytes; those of a section without content are in no file."""
    link: int
    """The section that holds the names of these symbols."""


def read_sections(data: bytes, kind: str, machine: int) -> tuple[Section, ...]:
    """The sections of a file, which are known to lie inside it.

    Args:
        kind: what the file is called.
        machine: for which its code has to be.

    Raises:
        CacheError: it is no such file, or takes more than it has.
        ValueError, struct.error: it is damaged.
    """
    if data[:5] != b"\x7fELF\x02" or data[5:6] != b"\x01" or len(data) < 64:
        raise CacheError(f"The {kind} is not a 64-bit little-endian ELF file.", REMEDY)
    if int.from_bytes(data[18:20], "little") != machine:
        raise CacheError(f"The {kind} holds code for another machine.", REMEDY)
    start, size, count, names = struct.unpack_from("<Q10xHHH", data, 0x28)
    if size != _ROW.size or not count or start + size * count > len(data):
        raise CacheError(f"The {kind} ends inside its table of sections.", REMEDY)
    rows = list(_ROW.iter_unpack(data[start : start + size * count]))
    table = rows[names][3] if names < count else 0
    starts = [table + name for name, *_ in rows]
    ends = [data.find(b"\0", at, at + _MOST_NAME) for at in starts]
    # Otherwise a file of a few MiB could have one passage read for each of 65,535 sections.
    taken = sum(size for _, kind, _, _, size, _ in rows if kind != NOBITS)
    if taken > 2 * len(data) or min(ends) < 0 or sum(ends) - sum(starts) > len(data):
        raise CacheError(f"The {kind} has sections that lie upon each other.", REMEDY)
    return tuple(
        Section(data[first:end].decode(errors="replace"), *row[1:])
        for first, end, row in zip(starts, ends, rows, strict=True)
    )


def content_of(section: Section, data: bytes) -> bytes:
    """The bytes as they stand: a damaged flag must not have them taken for compressed ones.

    Raises:
        ValueError: the file has not as many.
    """
    content = data[section.offset : section.offset + section.size]
    if len(content) < section.size:
        raise ValueError("a section ends beyond the file")
    return content


def name_of_symbol(at: int, table: Section, sections: Sequence[Section], data: bytes) -> str:
    """The name of a symbol by its number.

    Raises:
        ValueError, LookupError, struct.error: there is no such symbol, or it has no name that ends.
    """
    if (at + 1) * _SYMBOL_BYTES > table.size:
        raise ValueError("there is no such symbol")
    (name,) = struct.unpack_from("<I", data, table.offset + at * _SYMBOL_BYTES)
    start = sections[table.link].offset + name
    return data[start : data.index(b"\0", start, start + _MOST_NAME)].decode(errors="replace")


def notes_of(section: Section, data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """The notes of a section: whose, of which type, what they say.

    Raises:
        ValueError, struct.error: the section ends inside one.
    """
    content, at = content_of(section, data), 0
    while at < len(content):
        own, said, kind = struct.unpack_from("<III", content, at)
        name = at + 12
        start = name + (own + 3 & ~3)
        if start + said > len(content):
            raise ValueError("a note ends beyond its section")
        owner = content[name : name + own].partition(b"\0")[0]
        yield owner.decode(errors="replace"), kind, content[start : start + said]
        at = start + (said + 3 & ~3)
