"""Parse the durations of passes that MLIR and LLVM print.

Source: mlir/lib/Support/Timing.cpp prints a tree of passes in the order in which they ran
(`MLIR_ENABLE_TIMING`); llvm/lib/Support/Timer.cpp prints the passes of the code generator, summed by name
(`LLVM_ENABLE_TIMING`). LLVM's middle end prints no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

_MLIR_TIME = re.compile(r"\s+(?P<seconds>\d{1,9}\.\d{1,9}) \([ \d.]+%\)  (?P<indent> *)(?P<name>[^\s('][^\s]*)$")
_LLVM_TIME = re.compile(r"(?:\s+\d+\.\d+ \([ \d.]+%\))*\s+(?P<seconds>\d{1,9}\.\d{1,9}) \([ \d.]+%\)  (?P<name>\S.*)$")
_TITLE = re.compile(r"Pass execution timing report|Execution time report")
_NOT_PASSES = frozenset({"Total", "Rest"})


class PassTimes:
    """Durations of passes in seconds: MLIR passes one by one in order, code generator passes by name."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._mlir_times: list[tuple[str, float]] = []
        self._llvm_times: dict[str, float] = {}
        is_llvm = False
        for line in lines:
            title = _TITLE.search(line)
            if title is not None:
                is_llvm = title[0].startswith("Pass")
                continue
            match = (_LLVM_TIME if is_llvm else _MLIR_TIME).match(line)
            if match is None or match["name"] in _NOT_PASSES:
                continue
            name, seconds = match["name"].strip(), float(match["seconds"])
            if is_llvm:
                self._llvm_times[name] = self._llvm_times.get(name, 0.0) + seconds
            else:
                self._mlir_times.append((name, seconds))

    def mlir_seconds(self, names: Sequence[str]) -> list[float | None]:
        """Durations in seconds of the passes with the given names, in order; None for those without a time.

        A pass that runs on several functions has a dump for each but one time, which the first dump gets.
        """
        timed = [name for name, _ in self._mlir_times]
        seconds_of_pass: list[float | None] = [None] * len(names)
        for block in SequenceMatcher(None, names, timed, autojunk=False).get_matching_blocks():
            for offset in range(block.size):
                seconds_of_pass[block.a + offset] = self._mlir_times[block.b + offset][1]
        return seconds_of_pass

    def total_seconds(self, name: str) -> float | None:
        """Total seconds of all runs of a code generator pass."""
        return self._llvm_times.get(name)
