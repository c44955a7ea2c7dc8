"""Values of recorded tensors: each array once, in a NumPy file beside the record, named for its content.

A record refers to a file by its SHA-256. A record from elsewhere can therefore choose no path, and a file that
was changed is not used. The files have NumPy's format 1.0; they are written without NumPy, because a captured
program may not have it.

Source: numpy.lib.format, "Format Version 1.0".
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
from array import array
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from artifact_inspector.errors import CacheError
from artifact_inspector.files.reader import read_content
from artifact_inspector.files.writer import write_bytes

VALUES_DIRECTORY = "inspect-kernel-values"
"""Directory beside the record."""
MAX_INLINE_ELEMENTS = 256
"""Tensors with at most so many elements are stored in the record itself."""
_REFERENCE = "sha256"
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TYPES = (("b", "|i1"), ("h", "<i2"), ("i", "<i4"), ("q", "<i8"), ("Q", "<u8"))
"""Integer types of Python's arrays and of NumPy, narrowest first."""


def encode_values(elements: Sequence[int]) -> bytes:
    """A NumPy file of the integers, in the narrowest type that holds all of them.

    Raises:
        OverflowError: an integer has more than 64 bits.
        TypeError: an element is not an integer.
    """
    low, high = (min(elements), max(elements)) if elements else (0, 0)
    code, numpy_type = next((kind for kind in _TYPES if _holds(kind[0], low, high)), _TYPES[-1])
    values = array(code, elements)
    if sys.byteorder == "big":
        values.byteswap()
    return _numpy_file(numpy_type, len(values), values.tobytes())


def _numpy_file(numpy_type: str, count: int, content: bytes) -> bytes:
    header = f"{{'descr': '{numpy_type}', 'fortran_order': False, 'shape': ({count},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def store_bytes(directory: Path, content: bytes) -> str:
    """Store bytes in a file beside the record; returns its digest."""
    return _store(directory, _numpy_file("|u1", len(content), content))


def _holds(code: str, low: int, high: int) -> bool:
    """Whether a type of Python's arrays holds integers from `low` to `high`."""
    bits = 8 * array(code).itemsize
    first = -(1 << (bits - 1)) if code.islower() else 0
    return first <= low and high < first + (1 << bits)


def store_arguments(
    directory: Path, arguments: Mapping[str, Any], references: MutableMapping[int, dict[str, str]]
) -> dict[str, Any]:
    """The arguments of a launch with the values of large tensors stored in files, and references to them.

    Values that cannot be written stay in the arguments, so that nothing is lost.

    Args:
        references: `id` of a list → its reference; the caller keeps the lists alive.
    """
    return {name: _store_argument(directory, value, references) for name, value in arguments.items()}


def _store_argument(directory: Path, value: Any, references: MutableMapping[int, dict[str, str]]) -> Any:
    if isinstance(value, list | tuple):
        return [_store_argument(directory, member, references) for member in value]
    elements = value.get("values") if isinstance(value, dict) else None
    if not isinstance(elements, list) or len(elements) <= MAX_INLINE_ELEMENTS:
        return value
    reference = references.get(id(elements))
    if reference is None:
        try:
            reference = {_REFERENCE: _store(directory, encode_values(elements))}
        except (CacheError, OverflowError, TypeError):
            return value
        references[id(elements)] = reference
    return {**value, "values": reference}


def _store(directory: Path, content: bytes) -> str:
    """Write a file unless it exists; returns its digest."""
    digest = hashlib.sha256(content).hexdigest()
    values_directory = directory / VALUES_DIRECTORY
    try:
        values_directory.mkdir(exist_ok=True)
        if values_directory.is_symlink():
            raise CacheError(f"{values_directory} is a link, and is not written to.")
        read_values(directory, digest)
    except ValueError:
        pass  # missing or damaged
    except OSError as error:
        raise CacheError(f"{values_directory} cannot be created: {error.strerror or error}.") from None
    else:
        return digest
    write_bytes(values_directory / f"{digest}.npy", content)
    return digest


def referenced_digest(values: object) -> str | None:
    """The digest that the `values` of a recorded tensor refer to; None if they are the values themselves.

    A reference that is not the digest of a file is returned as an empty string.
    """
    if not isinstance(values, dict):
        return None
    digest = values.get(_REFERENCE)
    return digest if isinstance(digest, str) and _DIGEST.fullmatch(digest) else ""


def read_values(directory: Path, digest: str) -> bytes:
    """The NumPy file of a digest.

    Raises:
        ValueError: it is missing, too large, or does not have the content that its name states; the message is
            the end of a sentence.
    """
    if not _DIGEST.fullmatch(digest):
        raise ValueError("the record has no valid reference to them")
    name = f"{VALUES_DIRECTORY}/{digest[:12]}….npy"
    try:
        content = read_content(directory / VALUES_DIRECTORY / f"{digest}.npy", follow_links=False)
    except FileNotFoundError:
        raise ValueError(f"{name} is missing") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{name} was changed")
    return content
