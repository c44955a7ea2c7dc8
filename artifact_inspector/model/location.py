"""Source locations of instructions."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_LIBRARY = ("/triton/language/", "/triton/runtime/", "/triton/tools/", "/triton/experimental/")
"""Directories of Triton's own Python code."""


class Frame(NamedTuple):
    """One source position. `file` is the path as the compiler wrote it; `line` is 1-based."""

    file: str
    line: int
    column: int

    @property
    def is_of_library(self) -> bool:
        """Whether it is in Triton's own Python code, whose lines do not describe the kernel."""
        path = self.file.replace("\\", "/")
        return any(name in path for name in _LIBRARY)


Location = tuple[Frame, ...]
"""An inline chain, innermost frame first; the last frame is the line in the kernel itself.

PTX keeps only part of it: the innermost frame (until Triton 3.3), or that frame and its caller."""


class SourceLine(str):
    """A line of the user's code as printed: `fa.py:79 via :442` is line 79, called from line 442.

    Example:
        >>> line = SourceLine(("fa.py:79", "fa.py:442"))
        >>> line, line.innermost, line.file, line.number, line.called_from
        ('fa.py:79 via :442', 'fa.py:79', 'fa.py', 79, ('fa.py:442',))
    """

    __slots__ = ("chain",)

    chain: tuple[str, ...]
    """`file.py:line` of each frame, innermost first."""

    def __new__(cls, chain: tuple[str, ...]) -> SourceLine:
        """Format a chain; a file is named only where it differs from the previous one."""
        frames, previous_file = [], ""
        for frame in chain:
            file, _, line = frame.rpartition(":")
            frames.append(f":{line}" if file == previous_file else frame)
            previous_file = file
        source_line = super().__new__(cls, " via ".join(frames))
        source_line.chain = chain
        return source_line

    def __reduce__(self) -> tuple[type[SourceLine], tuple[tuple[str, ...]]]:
        return SourceLine, (self.chain,)

    @classmethod
    def from_location(cls, location: Location) -> SourceLine:
        """The innermost line outside Triton's own library, with the lines that it was called from."""
        user_frames = [frame for frame in location if not frame.is_of_library]
        user_frames = user_frames or list(location[-1:])
        return cls(tuple(f"{base_name(frame.file)}:{frame.line}" for frame in user_frames))

    @property
    def innermost(self) -> str:
        """`file.py:line` of the line itself."""
        return self.chain[0]

    @property
    def called_from(self) -> tuple[str, ...]:
        """`file.py:line` of the calls that it was inlined through, innermost first."""
        return self.chain[1:]

    @property
    def file(self) -> str:
        """File name without directories."""
        return self.chain[0].rpartition(":")[0]

    @property
    def number(self) -> int:
        """1-based line number."""
        return int(self.chain[0].rpartition(":")[2])


@lru_cache(maxsize=256)
def base_name(path: str) -> str:
    """The file name without directories; accepts POSIX and Windows paths."""
    return path.replace("\\", "/").rpartition("/")[2]
