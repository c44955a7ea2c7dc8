"""One cubin with the functions of several, so that a disassembler starts once: a start takes a quarter of a second.

The files follow each other, and a new table of sections points into them. The whole file is its table of strings.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from collections.abc import Sequence

from artifact_inspector.files.elf import read_sections, section_content, symbol_name

HEADER_BYTES = 64
"""Of an ELF file."""
_MACHINE, _RELA, _SYMBOL_BITS = 190, 4, 24
_TABLES = 5
"""Sections before those of code: none, strings, symbols, lines, relocations of lines."""
_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_SectionHeader = namedtuple("_SectionHeader", "name kind flags address offset size link info alignment entry_size")
_CODE_HEADING = re.compile(r"^//-+ \.text\..*__merged_(\d+)__ ", re.M)
_SYMBOL_HEADING = re.compile(r"\n+//-+ SYMBOLS -.*", re.S)
_PADDING = re.compile(r"(?<! ) +(?=/\* 0x[0-9a-f]{16} \*/|-{20})")
_LABEL = re.compile(r"(?<=\.L_)(?:x_)?\d+\b")
_SUFFIX = re.compile(r"__merged_\d+__")
"""Of names of functions, which would not keep their lines if several had one name."""


def merge_key(cubin: bytes) -> bytes:
    """Equal for cubins that can be merged: format, type, machine, version and flags."""
    return cubin[:0x18] + cubin[0x30:0x34]


def merge_cubins(cubins: Sequence[bytes]) -> bytes:
    """A cubin with the code and the lines of others, which have one function each.

    Raises:
        CacheError, ValueError, LookupError, struct.error: they cannot be merged.
    """
    body, symbols, lines, relocations = bytearray(cubins[0][:HEADER_BYTES]), bytearray(_SYMBOL.size), bytearray(), b""
    tables, code = [_SectionHeader(*[0] * 10)] * _TABLES, list[_SectionHeader]()
    for number, cubin in enumerate(cubins):
        base, sections, suffix = len(body), read_sections(cubin, "cubin", _MACHINE), f"__merged_{number}__\0".encode()
        body += cubin
        table, names = struct.unpack_from("<Q14xH", cubin, 0x28)
        positions = {section.name: position for position, section in enumerate(sections)}
        rows = [*map(_SectionHeader._make, _SECTION.iter_unpack(cubin[table : table + _SECTION.size * len(sections)]))]
        rows = [row._replace(name=base + rows[names].offset + row.name) for row in rows]
        (text,) = [position for position, section in enumerate(sections) if section.name.startswith(".text.")]
        old_symbols, line = positions[".symtab"], positions[".debug_line"]
        relocated = positions.get(".rela.debug_line") or positions[".rel.debug_line"]
        refers = any(of.size for of in sections if of.name.startswith((".rel.text", ".rela.text")))
        if refers or tables[-1].kind not in (0, sections[relocated].kind) or _SUFFIX.search(sections[text].name):
            raise ValueError("code refers to symbols, or relocations differ")
        new = {}
        strings = base + rows[rows[old_symbols].link].offset
        entries = _SYMBOL.iter_unpack(section_content(sections[old_symbols], cubin))
        for at, (_, kind, visibility, section, *extent) in enumerate(entries):
            if section == text:
                new[at] = len(symbols) // _SYMBOL.size
                symbols += _SYMBOL.pack(len(body), kind, visibility, _TABLES + len(code), *extent)
                name = symbol_name(at, sections[old_symbols], sections, cubin).encode()
                body += name + suffix if name else b"\0"
        relocation = struct.Struct("<QQq" if sections[relocated].kind == _RELA else "<QQ")
        for at, target, *addend in relocation.iter_unpack(section_content(sections[relocated], cubin)):
            target_index = new[target >> 32] << 32 | target & 0xFFFFFFFF
            relocations += relocation.pack(at + len(lines), target_index, *addend)
        lines += section_content(sections[line], cubin)
        offset, (registers, symbol) = base + rows[text].offset, divmod(rows[text].info, 1 << _SYMBOL_BITS)
        info = registers << _SYMBOL_BITS | new[symbol]
        code.append(rows[text]._replace(name=len(body), address=0, offset=offset, link=2, info=info))
        body += sections[text].name.encode() + suffix
        tables = [tables[0]._replace(name=strings), *(rows[of] for of in (names, old_symbols, line, relocated))]
    for at, (content, link, info) in enumerate(
        ((body, 0, 0), (symbols, 1, len(symbols) // _SYMBOL.size), (lines, 0, 0), (relocations, 2, 3)), 1
    ):
        offset = 0 if content is body else len(body)
        body += b"" if content is body else bytes(content)
        tables[at] = tables[at]._replace(address=0, offset=offset, size=len(content), link=link, info=info)
    struct.pack_into("<QQ", body, 0x20, 0, len(body))
    struct.pack_into("<4xHHHH", body, 0x34, 0, _SECTION.size, _TABLES + len(code), 1)
    return bytes(body) + b"".join(_SECTION.pack(*row) for row in tables + code)


def split_functions(text: str) -> list[str]:
    """The disassembly of each function, as if its cubin had no other.

    Raises:
        ValueError: one lacks its heading, or has it twice, as if a name of a file in another cubin printed it.
    """
    headings = [*_CODE_HEADING.finditer(text)]
    if [int(heading[1]) for heading in headings] != [*range(len(headings))] or not headings:
        raise ValueError("functions are not printed once, in order")
    starts = [heading.start() for heading in headings]
    ends = [*starts[1:], len(text)]
    texts = [text[: starts[0]] + text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [normalize(_SUFFIX.sub("", function_text)) for function_text in texts]


def normalize(text: str) -> str:
    """A disassembly without what depends on other functions: numbers of labels, columns, symbols."""
    text = _PADDING.sub(" ", _SYMBOL_HEADING.sub("", text)).rstrip() + "\n"
    labels = sorted({*_LABEL.findall(text)}, key=lambda label: int(label.removeprefix("x_")))
    numbers = {label: str(number) for number, label in enumerate(labels)}
    return _LABEL.sub(lambda label: numbers[label[0]], text)
