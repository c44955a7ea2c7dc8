"""Shared parts of the assembly parsers: basic blocks from labels and branches, and LLVM's line tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.formats._faults import Faults
from artifact_inspector.model import BasicBlock, Frame, Location
from artifact_inspector.model.limits import EDGES, FRAMES
from artifact_inspector.model.text import integer


class Exit(NamedTuple):
    """How an instruction ends its block."""

    targets: tuple[str, ...]
    """Possible branch targets."""
    falls: bool
    """Whether the next instruction may follow."""


_THROUGH = Exit((), falls=True)


def cut_blocks(
    stop: int,
    marks: Sequence[tuple[int, str]],
    exits: Mapping[int, Exit],
    titles: Mapping[int, str],
    faults: Faults,
    line: int,
) -> tuple[tuple[BasicBlock, ...], list[tuple[int, str]]]:
    """The basic blocks of a function, and branches to missing labels as (instruction, label).

    Args:
        stop: number of instructions.
        marks: where each block starts, and its label; for duplicate labels the last one counts.
        exits: instructions that end a block.
        titles: display names of the blocks, by their first instruction.
        faults: the problems of the file.
        line: of the function.

    Raises:
        ParseError: there are more edges between the blocks than `limits.EDGES`.

    Example:
        >>> from artifact_inspector.model.text import SourceText
        >>> faults = Faults(SourceText("k", ""))
        >>> blocks, missing = cut_blocks(
        ...     3, [(1, "loop")], {1: Exit(("loop", "end"), falls=True)}, {1: "loop"}, faults, 1
        ... )
        >>> [(block.start, block.stop, block.successors) for block in blocks], missing
        ([(0, 1, (1,)), (1, 2, (1, 2)), (2, 3, ())], [(1, 'end')])
    """
    places = {name: at for at, name in marks}
    order = sorted({0, *(at + 1 for at in exits if at + 1 < stop), *(at for at, _ in marks)})
    index = {at: place for place, at in enumerate(order)}
    missing: list[tuple[int, str]] = []
    blocks = []
    left = EDGES.most
    for place, (start, end) in enumerate(pairwise([*order, stop])):
        # A block without instructions has no exit of its own.
        leaves = exits.get(end - 1, _THROUGH) if end > start else _THROUGH
        left -= len(leaves.targets) + 1
        if left < 0:
            faults.refuse(line, EDGES)
        goes = []
        for name in leaves.targets:
            if name in places:
                goes.append(index[places[name]])
            else:
                missing.append((end - 1, name))
        if leaves.falls and place + 1 < len(order):
            goes.append(place + 1)
        blocks.append(BasicBlock(place, titles.get(start, ""), start, end, tuple(dict.fromkeys(goes))))
    return tuple(blocks), missing


class Paths:
    """The files of a line table, by number and by the name used in comments.

    Args:
        files: number and path of each `.file` directive.
    """

    def __init__(self, files: Iterable[tuple[str, str]], faults: Faults) -> None:
        self._files = {int(number): path for number, path in files}
        self._faults = faults
        self._most = FRAMES.most
        self._by_name: dict[str, set[str]] = {}
        for path in self._files.values():
            self._by_name.setdefault(path.rpartition("/")[2], set()).add(path)

    def frame(self, at: int, file: str, line: str, column: str | None) -> Frame:
        """The source location of a `.loc` directive."""
        path = self._files.get(int(file))
        if path is None:
            path = f"file {file}"
            self._faults.missing(at, f".{path}")
        return Frame(path, int(line), int(column or 0))

    def chain(self, at: int, inner: Frame, callers: tuple[Frame, ...]) -> Location | None:
        """The complete location; None if it has too many callers."""
        if len(callers) < self._most:
            return (inner, *callers)
        self._faults.tell(at, f"source location with more than {self._most} callers; treated as unknown")
        return None

    def callers(self, comment: str) -> tuple[Frame, ...]:
        """Frames of LLVM's line comment `a.py:1:2 @[ b.py:3:4 @[ c.py:5:6 ] ]` after the first.

        The comment has file names without directories; a name is resolved if only one path has it.
        """
        if "@[" not in comment:
            return ()
        places = (_place(part.strip(" ]\t")) for part in comment.split("@[", self._most + 1)[1:])
        return tuple(Frame(self._path(name), line, column) for name, line, column in places if line)

    def _path(self, name: str) -> str:
        ending = f"/{name}"
        paths = {
            path
            for path in self._by_name.get(name.rpartition("/")[2], ())
            if path == name or path.endswith(ending)
        }
        return paths.pop() if len(paths) == 1 else name


def _place(text: str) -> tuple[str, int, int]:
    """Name, line and column of `a.py:1:2` or `a.py:1`; line 0 if missing."""
    head, _, last = text.rpartition(":")
    number = integer(last)
    if number is None:
        return text, 0, 0
    name, _, line = head.rpartition(":")
    before = integer(line)
    return (head, number, 0) if before is None else (name, before, number)
