"""What the readers of assembly share: blocks cut at labels and branches, and LLVM's line comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.model import BasicBlock, Frame

__all__ = ["Exit", "Paths", "cut_blocks"]


class Exit(NamedTuple):
    """How an instruction ends its block."""

    targets: tuple[str, ...]
    """Labels that it may go to."""
    falls: bool
    """Whether the next instruction may follow it."""


_THROUGH = Exit((), falls=True)


def cut_blocks(
    stop: int, marks: Sequence[tuple[int, str]], exits: Mapping[int, Exit], titles: Mapping[int, str]
) -> tuple[tuple[BasicBlock, ...], list[tuple[int, str]]]:
    """The blocks of a function, and the branches whose label is nowhere, as (instruction, label).

    Args:
        stop: number of instructions.
        marks: where a block starts and by which label it is reached; of two places the later one counts.
        exits: instructions that end a block.
        titles: what people call the blocks, by the instruction that they start at.

    Example:
        >>> blocks, missing = cut_blocks(3, [(1, "loop")], {1: Exit(("loop", "end"), falls=True)}, {})
        >>> [(block.start, block.stop, block.successors) for block in blocks], missing
        ([(0, 1, (1,)), (1, 2, (1, 2)), (2, 3, ())], [(1, 'end')])
    """
    places = {name: at for at, name in marks}
    order = sorted({0, *(at + 1 for at in exits if at + 1 < stop), *(at for at, _ in marks)})
    index = {at: place for place, at in enumerate(order)}
    missing: list[tuple[int, str]] = []
    blocks = []
    for place, (start, end) in enumerate(pairwise([*order, stop])):
        # A block without instructions has no exit of its own.
        leaves = exits.get(end - 1, _THROUGH) if end > start else _THROUGH
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
        files: number → path, as `.file` directives have them.
    """

    def __init__(self, files: Mapping[int, str]) -> None:
        self._files = files
        self._by_name: dict[str, set[str]] = {}
        for path in files.values():
            self._by_name.setdefault(path.rpartition("/")[2], set()).add(path)

    def frame(self, file: str, line: str, column: str) -> Frame:
        """The place that the numbers of a `.loc` name."""
        return Frame(self._files.get(int(file), f"file {file}"), int(line), int(column))

    def callers(self, comment: str) -> Iterator[Frame]:
        """Frames of LLVM's line comment `a.py:1:2 @[ b.py:3:4 @[ c.py:5:6 ] ]` after the first.

        The comment has names without directories; a name stands for the path that only one file can be.
        """
        for part in comment.split("@[")[1:]:
            name, line, column = _place(part.strip(" ]\t"))
            if line:
                yield Frame(self._path(name), line, column)

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
    if not last.isdecimal():
        return text, 0, 0
    name, _, line = head.rpartition(":")
    return (name, int(line), int(last)) if line.isdecimal() else (head, int(last), 0)
