"""The pass history in a log that a program wrote with `MLIR_ENABLE_DUMP` and perhaps `LLVM_IR_ENABLE_DUMP`.

A log has the compiles one after the other. A compile ends where Triton IR follows a lower level, or another function.
Dumps of compiles that ran at the same time cannot be separated: give such a program `MLIR_DUMP_PATH`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.cache import cache_in_memory
from artifact_inspector.files.reader import open_regular_file, read_head
from artifact_inspector.model.limits import FILE_MIB
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.dumps import Dump, PassTimes, read_dumps
from artifact_inspector.passes.trace import ChangeCallback, PassTrace, trace_dumps

_FUNCTION = re.compile(r"tt\.func (?:public )?@\"?([\w.$-]+)")
_GPU = re.compile(r"(?:#|\b)(?:ttg|triton_gpu)\.")
_HEAD_BYTES = 1 << 20


class LoggedCompile(NamedTuple):
    """One compile of a log: its kernel, and the last text of each stage."""

    name: str
    texts: dict[str, bytes]
    first: int
    """Line of its first dump."""


def is_dump_log(path: Path) -> bool:
    """Whether a file has dumps of passes near its beginning."""
    try:
        return b"IR Dump " in read_head(path, _HEAD_BYTES)
    except OSError:
        return False


def trace_log(
    path: Path, name: str | None, topics: Collection[Topic], on_change: ChangeCallback | None = None
) -> PassTrace:
    """What each pass changed in a kernel of a log.

    Args:
        name: part of the kernel's name; may be None if the log has one compile.

    Raises:
        CacheError: the log cannot be read, or has no Triton IR.
        UsageError: none or several of its compiles have the name.
    """
    try:
        compiles = [compile for compile, _ in _compiles(path) if compile is not None]
        unique = list({compile.first: compile for compile in compiles}.values())
        matches = [compile for compile in unique if name is None or name in compile.name]
        if not unique:
            raise CacheError(
                f"{path} has no dumps of Triton IR.", "Set MLIR_ENABLE_DUMP=1 and TRITON_ALWAYS_COMPILE=1."
            )
        if len(matches) != 1:
            names = ", ".join(f"{compile.name} (line {compile.first})" for compile in unique[:6])
            raise UsageError(f"{len(matches)} of {len(unique)} compiles match.", f"Give one name of: {names}.")
        (compile,) = matches
        (artifact,) = cache_in_memory(compile.name, compile.texts).entries
        dumps = (dump for owner, dump in _compiles(path) if owner is not None and owner.first == compile.first)
        return trace_dumps(artifact, dumps, PassTimes(_lines(path)), topics, on_change)
    except OSError as error:
        raise CacheError(f"{path} cannot be read: {error.strerror or error}.") from None


def _compiles(path: Path) -> Iterator[tuple[LoggedCompile | None, Dump]]:
    """Each dump with its compile, whose texts grow on the way."""
    current: LoggedCompile | None = None
    is_lowered = False
    for dump in read_dumps(_lines(path)):
        match = _FUNCTION.search(dump.text)
        suffix = "ttgir" if _GPU.search(dump.text) else "ttir"
        if match is None:
            is_lowered = True
        else:
            names = _FUNCTION.findall(dump.text)
            is_lower_again = is_lowered or (suffix == "ttir" and current is not None and "ttgir" in current.texts)
            if current is None or current.name not in names or is_lower_again:
                current, is_lowered = LoggedCompile(names[0], {}, dump.line), False
            current.texts[suffix] = dump.text.encode()
        yield current, dump


def _lines(path: Path) -> Iterator[str]:
    with os.fdopen(open_regular_file(path)[0], "r", encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(FILE_MIB.value << 20):
            yield line
