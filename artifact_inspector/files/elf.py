"""Reads ELF files as written by GPU compilers: sections, symbol names, notes.

Only 64-bit little-endian files are supported. No more bytes are read than the file has.

Source: System V ABI, "Object Files"; LLVM, AMDGPUUsage, "Note Records".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from artifact_inspector.errors import CacheError

REMEDY = "Compile the kernel again: the file is truncated, damaged, or of another type."
SHT_NOBITS, SHT_NOTE, SHF_ALLOC = 8, 7, 2
"""Section types SHT_NOBITS and SHT_NOTE; the section flag SHF_ALLOC."""
_MAX_NAME = 4096
"""Maximum characters of a section or symbol name."""
_SECTION_HEADER = struct.Struct("<IIQ8xQQI20x")
_SYMBOL_BYTES = 24


class Section(NamedTuple):
    """One entry of the section header table."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    """Bytes; a NOBITS section has none in the file."""
    link: int
    """Index of the string table of a symbol table."""


def read_sections(data: bytes, kind: str, machine: int) -> tuple[Section, ...]:
    """The sections of a file, checked to lie inside it.

    Raises:
        CacheError: it is not such a file, or its sections exceed it.
        ValueError, struct.error: it is damaged.
    """
    if data[:5] != b"\x7fELF\x02" or data[5:6] != b"\x01" or len(data) < 64:
        raise CacheError(f"The {kind} is not a 64-bit little-endian ELF file.", REMEDY)
    if int.from_bytes(data[18:20], "little") != machine:
        raise CacheError(f"The {kind} holds code for another machine.", REMEDY)
    start, size, count, names = struct.unpack_from("<Q10xHHH", data, 0x28)
    if size != _SECTION_HEADER.size or not count or start + size * count > len(data):
        raise CacheError(f"The {kind} ends inside its table of sections.", REMEDY)
    rows = list(_SECTION_HEADER.iter_unpack(data[start : start + size * count]))
    table = rows[names][3] if names < count else 0
    starts = [table + name for name, *_ in rows]
    ends = [data.find(b"\0", at, at + _MAX_NAME) for at in starts]
    # Otherwise a file of a few MiB could list the same range as the content of each of 65,535 sections.
    content_bytes = sum(size for _, kind, _, _, size, _ in rows if kind != SHT_NOBITS)
    if content_bytes > 2 * len(data) or min(ends) < 0 or sum(ends) - sum(starts) > len(data):
        raise CacheError(f"The {kind} has overlapping sections.", REMEDY)
    titles = [data[first:end].decode(errors="replace") for first, end in zip(starts, ends, strict=True)]
    return tuple(Section(title, *row[1:]) for title, row in zip(titles, rows, strict=True))


def refuse_repeated_contents(data: bytes, kind: str) -> None:
    """Raise for a file whose sections list the same bytes again and again, which a tool would read as often.

    A damaged table of sections is left to the tool.

    Raises:
        CacheError: the sections have together more than twice the file's bytes.
    """
    if len(data) < 64:
        return
    start, size, count = struct.unpack_from("<Q10xHH", data, 0x28)
    if not count and start + _SECTION_HEADER.size <= len(data):
        count = int(_SECTION_HEADER.unpack_from(data, start)[4])  # numbers above 65,279 are in the first section
    table = data[start : start + _SECTION_HEADER.size * count] if size == _SECTION_HEADER.size else b""
    rows = _SECTION_HEADER.iter_unpack(table[: len(table) // size * size] if size else b"")
    if sum(bytes_ for _, kind_, _, _, bytes_, _ in rows if kind_ != SHT_NOBITS) > 2 * len(data):
        raise CacheError(f"not disassembled: the {kind} has overlapping sections.", REMEDY)


def section_content(section: Section, data: bytes) -> bytes:
    """The bytes of a section as stored; a damaged compression flag is ignored.

    Raises:
        ValueError: the file has not as many.
    """
    content = data[section.offset : section.offset + section.size]
    if len(content) < section.size:
        raise ValueError("a section ends beyond the file")
    return content


def symbol_name(at: int, table: Section, sections: Sequence[Section], data: bytes) -> str:
    """The name of a symbol by its index.

    Raises:
        ValueError, LookupError, struct.error: there is no such symbol, or its name has no end.
    """
    if (at + 1) * _SYMBOL_BYTES > table.size:
        raise ValueError("there is no such symbol")
    (name,) = struct.unpack_from("<I", data, table.offset + at * _SYMBOL_BYTES)
    start = sections[table.link].offset + name
    return data[start : data.index(b"\0", start, start + _MAX_NAME)].decode(errors="replace")


def read_notes(section: Section, data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """The notes of a section: owner, type and content.

    Raises:
        ValueError, struct.error: the section ends inside a note.
    """
    content, at = section_content(section, data), 0
    while at < len(content):
        name_bytes, content_bytes, kind = struct.unpack_from("<III", content, at)
        name = at + 12
        start = name + (name_bytes + 3 & ~3)
        if start + content_bytes > len(content):
            raise ValueError("a note ends beyond its section")
        owner = content[name : name + name_bytes].partition(b"\0")[0]
        yield owner.decode(errors="replace"), kind, content[start : start + content_bytes]
        at = start + (content_bytes + 3 & ~3)
