"""Reads the values of recorded tensors from their files; launches with equal values share one array."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.files.tensor_values import read_values, referenced_digest
from artifact_inspector.model.limits import VALUES_MIB


@dataclass(frozen=True, slots=True, eq=False)
class StoredValues:
    """All elements of a tensor in memory order; equal if their files have the same digest."""

    elements: NDArray[Any]
    digest: str

    def __len__(self) -> int:
        return len(self.elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredValues) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class TensorContents:
    """The bytes of a tensor before and after a launch."""

    before: StoredValues
    after: StoredValues


def random_values(count: int, bound: int, dtype: str) -> StoredValues:
    """Random integers from 0 up to a bound, the same in each call; `dtype` is `i32` or `u8`."""
    kind = np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}")
    least = max(1, min(bound, int(np.iinfo(kind).max)))
    elements = np.random.default_rng(0).integers(0, least, count, dtype=kind)
    return StoredValues(elements, f"random {count} {bound} {dtype}")


def integer_values(elements: list[int], digest: str) -> StoredValues:
    """Integers as values; `digest` is the same only for equal ones."""
    return StoredValues(np.array(elements), digest)


def largest_value(values: tuple[int | float, ...] | StoredValues) -> int:
    """The largest value, rounded down; 0 if there is none."""
    elements = values.elements if isinstance(values, StoredValues) else values
    return int(max(elements, default=0)) if isinstance(elements, tuple) else int(np.max(elements, initial=0))


class ValuesReader:
    """Reads the values that the launches of one record refer to, each file once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._values: dict[str, StoredValues | str] = {}
        self._total_bytes = 0

    def resolve_row(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A recorded launch with its values, and a note for each tensor whose values cannot be read."""
        arguments, notes = row.get("args"), []
        if not isinstance(arguments, dict):
            return dict(row), ()
        resolved: dict[str, Any] = {}
        for name, argument in arguments.items():
            if isinstance(argument, dict) and isinstance(argument.get("contents"), dict):
                argument = {**argument, "contents": self._read_contents(argument["contents"])}
            digest = referenced_digest(argument.get("values")) if isinstance(argument, dict) else None
            if digest is None:
                resolved[name] = argument
                continue
            values = self._values.get(digest)
            if values is None:
                values = self._values[digest] = self._read(digest)
            if isinstance(values, str):
                notes.append(f"the values of {name} are unknown: {values}")
                resolved[name] = {key: value for key, value in argument.items() if key != "values"}
            else:
                resolved[name] = {**argument, "values": values}
        return {**row, "args": resolved}, tuple(notes)

    def _read_contents(self, digests: Mapping[str, Any]) -> TensorContents | None:
        """The bytes of a tensor before and after its launch; None if a file cannot be read."""
        before, after = (self._read(str(digests.get(name, ""))) for name in ("before", "after"))
        if isinstance(before, str) or isinstance(after, str):
            return None
        return TensorContents(before, after)

    def _read(self, digest: str) -> StoredValues | str:
        """The values of a file, or why they cannot be read."""
        try:
            content = read_values(self._directory, digest)
            self._total_bytes += len(content)
            if self._total_bytes > VALUES_MIB.value << 20:
                return f"the record has more than {VALUES_MIB.value:,} MiB of values; set {VALUES_MIB.variable}"
            return StoredValues(_parse_array(content), digest)
        except ValueError as error:
            return str(error)


def _parse_array(content: bytes) -> NDArray[Any]:
    """The array of a NumPy file.

    Raises:
        ValueError: it is not a plain array of numbers.
    """
    problem = "the file is not a NumPy array of numbers"
    try:
        stream = io.BytesIO(content)
        is_known_version = np.lib.format.read_magic(stream) == (1, 0)
        shape, _, kind = np.lib.format.read_array_header_1_0(stream)
        # the header is checked first: NumPy allocates what it states
        stated_bytes = shape[0] * kind.itemsize if len(shape) == 1 else -1
        if is_known_version and kind.kind in "iufb" and stated_bytes == len(content) - stream.tell():
            array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
            return array
    except (ValueError, TypeError, SyntaxError, EOFError, RecursionError, MemoryError):
        raise ValueError(problem) from None
    raise ValueError(problem)
