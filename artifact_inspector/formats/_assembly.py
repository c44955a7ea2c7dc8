"""What the readers of assembly share: blocks cut at labels and branches, and LLVM's line tables."""

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
    """Labels that it may go to."""
    falls: bool
    """Whether the next instruction may follow it."""


_THROUGH = Exit((), falls=True)


def cut_blocks(
    stop: int,
    marks: Sequence[tuple[int, str]],
    exits: Mapping[int, Exit],
    titles: Mapping[int, str],
    faults: Faults,
    line: int,
) -> tuple[tuple[BasicBlock, ...], list[tuple[int, str]]]:
    """The blocks of a function, and the branches whose label is nowhere, as (instruction, label).

    Args:
        stop: number of instructions.
        marks: where a block starts and by which label it is reached; of two places the later one counts.
        exits: instructions that end a block.
        titles: what people call the blocks, by the instruction that they start at.
        faults: those of the file.
        line: of the function.

    Raises:
        ParseError: there are more ways between the blocks than `limits.EDGES`.

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
    """The files of a line table, by number and by the name that comments use.

    Args:
        files: number and path, as `.file` directives have them.
    """

    def __init__(self, files: Iterable[tuple[str, str]], faults: Faults) -> None:
        self._files = {int(number): path for number, path in files}
        self._faults = faults
        self._most = FRAMES.most
        self._by_name: dict[str, set[str]] = {}
        for path in self._files.values():
            self._by_name.setdefault(path.rpartition("/")[2], set()).add(path)

    def frame(self, at: int, file: str, line: str, column: str | None) -> Frame:
        """The place that the numbers of the `.loc` in a line name."""
        path = self._files.get(int(file))
        if path is None:
            path = f"file {file}"
            self._faults.missing(at, f".{path}")
        return Frame(path, int(line), int(column or 0))

    def chain(self, at: int, inner: Frame, callers: tuple[Frame, ...]) -> Location | None:
        """The whole place; None for one with too many callers."""
        if len(callers) < self._most:
            return (inner, *callers)
        self._faults.tell(at, f"its place has more than {self._most} callers and is not known")
        return None

    def callers(self, comment: str) -> tuple[Frame, ...]:
        """Frames of LLVM's line comment `a.py:1:2 @[ b.py:3:4 @[ c.py:5:6 ] ]` after the first.

        The comment has names without directories; a name stands for the path that only one file can be.
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
    """Name, line and column of `a.py:1:2` or `a.py:1`; line 0 where there is none."""
    head, _, last = text.rpartition(":")
    number = integer(last)
    if number is None:
        return text, 0, 0
    name, _, line = head.rpartition(":")
    before = integer(line)
    return (head, number, 0) if before is None else (name, before, number)
