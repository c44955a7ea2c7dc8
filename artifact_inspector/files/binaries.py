"""Facts about a kernel from its compiled binary, without vendor tools: cubin (NVIDIA) and hsaco (AMD).

Cannot read: local memory of cubins for architectures before sm_70, whose instructions have another length.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.binary import Cubin, Hsaco, KernelInterface, StackAccess
from artifact_inspector.files.elf import (
    REMEDY,
    SHF_ALLOC,
    SHT_NOBITS,
    SHT_NOTE,
    Section,
    read_notes,
    read_sections,
    section_content,
    symbol_name,
)
from artifact_inspector.hardware.targets import EM_AMDGPU, EM_CUDA, Target, parse_stage_target

# Exceptions that damaged files cause.
_PARSE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, struct.error, TypeError, ValueError)
_MAX_ATTRIBUTE_BYTES = 1 << 20
"""Maximum bytes of an `.nv.info` section or of notes; the largest kernels measured have some thousand."""
_MAX_STACK_OFFSETS = 1 << 16
"""Maximum number of distinct local-memory offsets; a thread has at most 512 KiB."""
_BANK = re.compile(r"\.nv\.constant(?!4\b)([1-9]\d*)(\..+)?$")


@contextmanager
def _report_damage(kind: str) -> Iterator[None]:
    try:
        yield
    except _PARSE_ERRORS as fault:
        raise CacheError(f"The {kind} is damaged.", REMEDY) from fault


@_report_damage("cubin")
def list_kernels(data: bytes) -> list[str]:
    """The kernels in a cubin. Only kernels have a parameter bank; device functions take parameters in registers."""
    named = {
        x.name.removeprefix(".nv.info."): x for x in read_sections(data, "cubin", EM_CUDA) if ".nv.info." in x.name
    }
    return [name for name, section in named.items() if _PARAM_CBANK in dict(_attributes(section, data))]


@_report_damage("cubin")
def read_interface(data: bytes, kernel: str | None = None) -> KernelInterface:
    """The parameters of a kernel in a cubin, and its constants; arguments and errors as for `read_cubin`."""
    sections = _cubin_sections(data)
    name = _select_kernel(list_kernels(data), kernel, "cubin")
    attributes = list(_attributes(sections[f".nv.info.{name}"], data))
    first = dict(attributes)[_PARAM_CBANK]
    assert isinstance(first, bytes)
    (base,) = struct.unpack_from("<H", first, 4)
    parameters = []
    for attribute, value in attributes:
        if attribute == _KPARAM_INFO and isinstance(value, bytes):
            _, ordinal, offset, flags = struct.unpack("<IHHI", value)
            parameters.append((ordinal, (base + offset, flags >> 18)))
    banks = {
        int(match[1]): section_content(section, data)
        for title, section in sections.items()
        if (match := _BANK.match(title)) is not None and match[2] in (None, f".{name}")
    }
    return KernelInterface(tuple(parameter for _, parameter in sorted(parameters)), banks)


@_report_damage("cubin")
def read_function_code(data: bytes, kernel: str) -> bytes:
    """The machine code of a function in a cubin; errors as for `read_cubin`."""
    section = _cubin_sections(data).get(f".text.{kernel}")
    if section is None:
        raise CacheError(f"The cubin has no code for {kernel}.", REMEDY)
    return section_content(section, data)


def _cubin_sections(data: bytes) -> dict[str, Section]:
    return {section.name: section for section in read_sections(data, "cubin", EM_CUDA)}


def read_loaded_sections(data: bytes, suffix: str) -> dict[str, bytes]:
    """The loaded sections of a cubin or hsaco, and their resource requests: name → content.

    Two binaries with equal sections run the same code; lines, symbols and build information may differ.

    Raises:
        CacheError: the content is no such file, or damaged.
    """
    with _report_damage(suffix):
        return {
            section.name: section.size.to_bytes(8, "little")
            + (b"" if section.kind == SHT_NOBITS else section_content(section, data))
            for section in read_sections(data, suffix, EM_CUDA if suffix == "cubin" else EM_AMDGPU)
            if section.flags & SHF_ALLOC or section.name.startswith(".nv.info")
        }


def _target(suffix: str, data: bytes) -> Target | None:
    try:
        return parse_stage_target(suffix, data[:64])
    except UsageError:
        return None


def _select_kernel(kernels: list[str], requested: str | None, kind: str) -> str:
    if requested in kernels:
        return str(requested)
    if len(kernels) == 1:
        return kernels[0]
    if not kernels:
        raise CacheError(f"The {kind} contains no kernel.", REMEDY)
    named = "no kernel name was specified" if requested is None else f"none is {requested}"
    raise CacheError(f"The {kind} contains {len(kernels)} kernels, and {named}.", f"They are {', '.join(kernels)}.")


# ── NVIDIA ───────────────────────────────────────────────────────────────────────────────────────

# Attributes of `.nv.info`, as cuobjdump -elf names them (EIATTR_…).
_MAX_THREADS, _PARAM_CBANK, _EXTERNS, _REQNTID = 0x05, 0x0A, 0x0F, 0x10
_FRAME_SIZE, _KPARAM_INFO, _REGCOUNT, _NUM_BARRIERS = 0x11, 0x17, 0x2F, 0x4C
_SVAL = 4
_SYSTEM_SHARED = 1024
"""Bytes that the system reserves at the start of `.nv.shared` for sm_90 and later; cuobjdump counts them."""


@_report_damage("cubin")
def read_cubin(data: bytes, kernel: str | None = None) -> Cubin:
    """The facts of a kernel in a cubin.

    Args:
        kernel: its name; where the file has none of that name, or it is None, the file's only kernel.

    Raises:
        CacheError: the content is no cubin, is damaged, or the kernel is not in it.
    """
    listed = read_sections(data, "cubin", EM_CUDA)
    sections = {section.name: section for section in listed}
    kernel = _select_kernel(list_kernels(data), kernel, "cubin")
    table = sections.get(".symtab")

    def symbol(at: int) -> str:
        if table is None:
            raise ValueError("there are no symbols")
        return symbol_name(at, table, listed, data)

    shared: dict[int, int] = {}
    for attribute, value in _attributes(sections.get(".nv.info"), data):
        if isinstance(value, bytes) and len(value) == 8:
            function, figure = struct.unpack("<II", value)
            if symbol(function) == kernel:
                shared[attribute] = figure
    text, static = sections[f".text.{kernel}"], sections.get(f".nv.shared.{kernel}")
    attributes = dict(_attributes(sections[f".nv.info.{kernel}"], data))
    threads = attributes.get(_REQNTID, attributes.get(_MAX_THREADS))
    externs, barriers = attributes.get(_EXTERNS), attributes.get(_NUM_BARRIERS)
    target = _target("cubin", data)
    capability = 0 if target is None else target.arch.number
    system = _SYSTEM_SHARED if capability >= 90 else 0
    return Cubin(
        kernel=kernel,
        target=target,
        registers=shared.get(_REGCOUNT),
        frame_bytes=shared.get(_FRAME_SIZE),
        static_shared=0 if static is None else max(0, static.size - system),
        threads=math.prod(struct.unpack("<III", threads)) if isinstance(threads, bytes) else None,
        # The attribute exists since ELF ABI 8; before, the section's flags hold the number.
        barriers=barriers & 0xFF if isinstance(barriers, int) else text.flags >> 20 & 0x7F,
        calls=tuple(symbol(at) for (at,) in struct.iter_unpack("<I", externs)) if isinstance(externs, bytes) else (),
        stack=_stack_accesses(section_content(text, data)) if capability >= 70 else None,
    )


def _attributes(section: Section | None, file: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The (attribute, value) pairs of an `.nv.info` section: a number, or bytes for longer values."""
    data = b"" if section is None else section_content(section, file)
    if len(data) > _MAX_ATTRIBUTE_BYTES:
        raise ValueError("the kernel's attributes are too large")
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SVAL:
            yield attribute, data[at : at + value]
            at += value
        else:
            yield attribute, value


# Instructions of sm_70 and later: 16 bytes, the opcode in the lowest 12 bits, the width of a memory access in
# bits 73 to 75. Checked with nvdisasm on every architecture up to sm_121.
_STL, _LDL = 0x387, 0x983
_WIDTHS = (1, 1, 2, 2, 4, 8, 16, 16)
_STACK_POINTER = 1


def _stack_accesses(code: bytes) -> tuple[StackAccess, ...]:
    """The accesses to local memory, grouped by kind and offset."""
    sizes: Counter[tuple[bool, int | None]] = Counter()
    for low, high in struct.iter_unpack("<QQ", code[: len(code) & ~15]):
        if low & 0xFFF not in (_STL, _LDL):
            continue
        if len(sizes) > _MAX_STACK_OFFSETS:
            raise ValueError("more local-memory offsets than a thread has")
        offset = (low >> 40 ^ 0x800000) - 0x800000  # signed, 24 bits
        by_pointer = low >> 24 & 0xFF == _STACK_POINTER
        sizes[low & 0xFFF == _STL, offset if by_pointer else None] += _WIDTHS[high >> 9 & 7]
    return tuple(StackAccess(store, offset, size) for (store, offset), size in sizes.items())


# ── AMD ──────────────────────────────────────────────────────────────────────────────────────────

_NT_AMDGPU_METADATA = 32
_MAX_NESTING = 16


@_report_damage("hsaco")
def read_hsaco(data: bytes, kernel: str | None = None) -> Hsaco:
    """The facts of a kernel in an hsaco; arguments and errors as for `read_cubin`."""
    for section in read_sections(data, "hsaco", EM_AMDGPU):
        if section.kind != SHT_NOTE or section.size > _MAX_ATTRIBUTE_BYTES:
            continue
        for owner, kind, note in read_notes(section, data):
            if owner == "AMDGPU" and kind == _NT_AMDGPU_METADATA:
                rows = _MessagePackReader(note).value()["amdhsa.kernels"]
                kernels: dict[str, dict[object, object]] = {row[".name"]: row for row in rows}
                name = _select_kernel(list(kernels), kernel, "hsaco")
                fields = [(key, x) for key, x in kernels[name].items() if isinstance(x, int) and isinstance(key, str)]
                return Hsaco(name, _target("hsaco", data), {key.removeprefix("."): int(x) for key, x in fields})
    raise CacheError("The hsaco holds no metadata note.", REMEDY)


class _MessagePackReader:
    """A MessagePack reader for the subset that LLVM writes (llvm/BinaryFormat/MsgPackWriter.cpp)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def value(self, depth: int = 0) -> Any:
        """The next value: number, bool, None, string, list or dict."""
        if depth > _MAX_NESTING:
            raise ValueError("its metadata is nested too deeply")
        head = self._number("B")
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head < 0xC0:
            kind, size = (
                ("map", head & 0xF) if head < 0x90 else ("list", head & 0xF) if head < 0xA0 else ("text", head & 0x1F)
            )
        elif head in _CONSTANTS:
            return _CONSTANTS[head]
        elif head in _NUMBERS:
            return self._number(_NUMBERS[head])
        else:
            kind, form = _SIZED[head]
            size = self._number(form)
        if kind == "map":
            return {self.value(depth + 1): self.value(depth + 1) for _ in range(size)}
        if kind == "list":
            return [self.value(depth + 1) for _ in range(size)]
        content = self.data[self.at : self.at + size]
        if len(content) < size:
            raise ValueError("its metadata is truncated")
        self.at += size
        return content.decode() if kind == "text" else content

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(f">{form}")
        return number


# First bytes according to the MessagePack specification.
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q",
}  # fmt: skip
_SIZED = {
    0xC4: ("bytes", "B"), 0xC5: ("bytes", "H"), 0xC6: ("bytes", "I"),
    0xD9: ("text", "B"), 0xDA: ("text", "H"), 0xDB: ("text", "I"),
    0xDC: ("list", "H"), 0xDD: ("list", "I"), 0xDE: ("map", "H"), 0xDF: ("map", "I"),
}  # fmt: skip
