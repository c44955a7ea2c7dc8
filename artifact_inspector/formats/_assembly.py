"""Shared parts of the assembly parsers: basic blocks from labels and branches, and LLVM's line tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.formats._problems import ProblemLog
from artifact_inspector.model import BasicBlock, Frame, Location
from artifact_inspector.model.limits import EDGES, FRAMES
from artifact_inspector.model.text import parse_integer


class BlockExit(NamedTuple):
    """How an instruction ends its block."""

    targets: tuple[str, ...]
    """Possible branch targets."""
    falls_through: bool
    """Whether the next instruction may follow."""


_FALL_THROUGH = BlockExit((), falls_through=True)


def split_blocks(
    instruction_count: int,
    labels: Sequence[tuple[int, str]],
    exits: Mapping[int, BlockExit],
    titles: Mapping[int, str],
    log: ProblemLog,
    line: int,
) -> tuple[tuple[BasicBlock, ...], list[tuple[int, str]]]:
    """The basic blocks of a function, and branches to missing labels as (instruction, label).

    Args:
        labels: where each block starts, and its label; for duplicate labels the last one counts.
        exits: instructions that end a block.
        titles: display names of the blocks, by their first instruction.
        line: of the function.

    Raises:
        ParseError: there are more edges between the blocks than `limits.EDGES`.

    Example:
        >>> from artifact_inspector.model.text import SourceText
        >>> problems = ProblemLog(SourceText("k", ""))
        >>> blocks, missing = split_blocks(
        ...     3, [(1, "loop")], {1: BlockExit(("loop", "end"), falls_through=True)}, {1: "loop"}, problems, 1
        ... )
        >>> [(block.start, block.stop, block.successors) for block in blocks], missing
        ([(0, 1, (1,)), (1, 2, (1, 2)), (2, 3, ())], [(1, 'end')])
    """
    label_starts = {name: at for at, name in labels}
    starts = sorted({0, *(at + 1 for at in exits if at + 1 < instruction_count), *(at for at, _ in labels)})
    block_at = {at: block for block, at in enumerate(starts)}
    missing: list[tuple[int, str]] = []
    blocks = []
    remaining_edges = EDGES.value
    for block, (start, end) in enumerate(pairwise([*starts, instruction_count])):
        # A block without instructions has no exit of its own.
        block_exit = exits.get(end - 1, _FALL_THROUGH) if end > start else _FALL_THROUGH
        remaining_edges -= len(block_exit.targets) + 1
        if remaining_edges < 0:
            log.reject(line, EDGES)
        successors = []
        for name in block_exit.targets:
            if name in label_starts:
                successors.append(block_at[label_starts[name]])
            else:
                missing.append((end - 1, name))
        if block_exit.falls_through and block + 1 < len(starts):
            successors.append(block + 1)
        blocks.append(BasicBlock(block, titles.get(start, ""), start, end, tuple(dict.fromkeys(successors))))
    return tuple(blocks), missing


class LineTableFiles:
    """The files of a line table, by number and by the name used in comments.

    Args:
        files: number and path of each `.file` directive.
    """

    def __init__(self, files: Iterable[tuple[str, str]], log: ProblemLog) -> None:
        self._files = {int(number): path for number, path in files}
        self._log = log
        self._max_callers = FRAMES.value
        self._by_name: dict[str, set[str]] = {}
        for path in self._files.values():
            self._by_name.setdefault(path.rpartition("/")[2], set()).add(path)

    def frame(self, at: int, file: str, line: str, column: str | None) -> Frame:
        """The source location of a `.loc` directive."""
        path = self._files.get(int(file))
        if path is None:
            path = f"file {file}"
            self._log.report_missing(at, f".{path}")
        return Frame(path, int(line), int(column or 0))

    def chain(self, at: int, inner: Frame, callers: tuple[Frame, ...]) -> Location | None:
        """The complete location; None if it has too many callers."""
        if len(callers) < self._max_callers:
            return (inner, *callers)
        self._log.report(at, f"source location with more than {self._max_callers} callers; treated as unknown")
        return None

    def callers(self, comment: str) -> tuple[Frame, ...]:
        """Frames of LLVM's line comment `a.py:1:2 @[ b.py:3:4 @[ c.py:5:6 ] ]` after the first.

        The comment has file names without directories; a name is resolved if only one path has it.
        """
        if "@[" not in comment:
            return ()
        frames = comment.split("@[", self._max_callers + 1)[1:]
        positions = (_parse_position(frame_text.strip(" ]\t")) for frame_text in frames)
        return tuple(Frame(self._resolve_path(name), line, column) for name, line, column in positions if line)

    def _resolve_path(self, name: str) -> str:
        same_file = self._by_name.get(name.rpartition("/")[2], ())
        paths = {path for path in same_file if path == name or path.endswith(f"/{name}")}
        return paths.pop() if len(paths) == 1 else name


def _parse_position(text: str) -> tuple[str, int, int]:
    """Name, line and column of `a.py:1:2` or `a.py:1`; line 0 if missing."""
    prefix, _, last_field = text.rpartition(":")
    number = parse_integer(last_field)
    if number is None:
        return text, 0, 0
    name, _, line = prefix.rpartition(":")
    line_number = parse_integer(line)
    return (prefix, number, 0) if line_number is None else (name, line_number, number)
