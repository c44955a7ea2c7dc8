"""A campaign of mutants that can be stopped and resumed: every number of it makes one mutant.

The state is a small JSON file: how many were tried of each kind, and what was found, with the number that
makes it again.
"""

from __future__ import annotations

import gc
import json
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from artifact_inspector.comparison.baseline import record
from artifact_inspector.facts import reading
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.report.json.baseline import baseline_text, recorded_text
from tests.fuzz.checks import SECONDS, EscapeError, check_kernel, check_text, check_verdicts, describe, within
from tests.fuzz.corpus import kernels, texts
from tests.fuzz.mutants import damage, truncate
from tests.fuzz.views import VIEWS, check_view

__all__ = ["Campaign", "again", "file_mutant", "kernel_mutant"]

_VIEWED_EVERY = 9
"""Of so many damaged kernels one is given to a command, to each in turn."""
_COLLECTED_EVERY = 1000
_SAVED_EVERY = 15.0
"""Seconds between two states on the disk."""


@dataclass
class Campaign:
    """What was tried and what was found."""

    files: int = 0
    """Damaged files that were read, each with all that analyses ask."""
    refused: int = 0
    """Of these, the ones that no function was found in."""
    kernels: int = 0
    """Kernels with damaged files that were inspected and told of."""
    cut_off: int = 0
    """Of these, the ones with one file cut off and nothing else."""
    changed: int = 0
    """Of these, the ones whose verdicts changed; each told why."""
    seconds: float = 0.0
    """Of processor time."""
    found: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Campaign:
        """The campaign that a file keeps; a new one where there is none."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def write(self, path: Path) -> None:
        """Keep the campaign in a file."""
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        beside.replace(path)

    def run(
        self, files: int, whole: int, seconds: float, path: Path | None = None, tell: Callable[[str], None] = print
    ) -> None:
        """Go on until so many files and kernels were tried in all, or the time is over."""
        end = time.monotonic() + seconds
        saved = time.monotonic()
        gc.disable()  # there are no cycles to speak of, and looking for them takes a twentieth of the time
        for count, step in enumerate(self._steps(files, whole)):
            if count % _COLLECTED_EVERY == 0:
                gc.collect()
            started = time.process_time()
            try:
                with within(SECONDS):
                    step()
            except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}:{place.lineno}"
                self.found.append(f"{self._number}: {type(error).__name__} at {where}: {error}"[:400])
                tell(self.found[-1])
            self.seconds += time.process_time() - started
            now = time.monotonic()
            if path is not None and now - saved > _SAVED_EVERY:
                self.write(path)
                saved = now
            if now > end:
                break
        gc.enable()
        if path is not None:
            self.write(path)

    def _steps(self, files: int, whole: int) -> Iterator[Callable[[], None]]:
        while self.files < files or self.kernels < whole:
            share = 1.0 if files == 0 else self.files / files
            if self.files < files and (whole == 0 or share <= self.kernels / whole):
                self._number = f"file {self.files}"
                yield self._file
            else:
                self._number = f"kernel {self.kernels}"
                yield self._kernel

    def _file(self) -> None:
        text, stage = file_mutant(self.files)
        self.files += 1
        self.refused += not check_text(text, stage)

    def _kernel(self) -> None:
        number, self.kernels = self.kernels, self.kernels + 1
        with tempfile.TemporaryDirectory(prefix="mutant-", dir=_memory()) as place:
            broken = Path(place, "broken")
            path, cut = kernel_mutant(number, broken)
            if cut:
                self.cut_off += 1
                self._compare(check_verdicts(broken), path, cut)
            else:
                check_kernel(broken)
            views = tuple(VIEWS)
            turn, is_next = divmod(number, _VIEWED_EVERY)
            if is_next == 0:
                whole = _whole(path)
                check_view(views[turn % len(views)], broken, whole.cache, whole.away)

    def _compare(self, found: list[KernelFacts], path: Path, cut: str) -> None:
        """Of a kernel with a file that was cut off: another verdict goes with a word about that file."""
        if [describe(kernel) for kernel in found] == [_whole(path).verdicts]:
            return
        self.changed += 1
        told = (problem for kernel in found for problem in kernel.problems)
        if not any(problem.path.endswith(cut) for problem in told):
            raise EscapeError(f"a verdict changed in silence: {cut} of {path.name}")


def again(name: str) -> None:
    """Make one mutant again, and let through what it brings about; no fault is kept hidden."""
    kind, _, number = name.partition(" ")
    campaign = Campaign(files=int(number), kernels=int(number))
    with patch.object(reading, "FAULTS", ()), within(SECONDS):
        campaign._file() if kind == "file" else campaign._kernel()


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def file_mutant(number: int) -> tuple[str, Stage]:
    """The damaged file of a number, and what it is."""
    chance = random.Random(f"file {number}")
    stages = tuple(texts())
    stage = stages[number % len(stages)]
    some = texts()[stage]
    return damage(chance.choice(some), some, chance), stage


def kernel_mutant(number: int, place: Path) -> tuple[Path, str | None]:
    """Make the damaged kernel of a number; the kernel it is made of, and the file that was but cut off."""
    chance = random.Random(f"kernel {number}")
    (whole,) = chance.choices(tuple(kernels()), tuple(kernels().values()))
    target = place / whole.name
    shutil.copytree(whole, target)
    named = [file for file in sorted(target.iterdir()) if file.suffix[1:] in {stage.value for stage in Stage}]
    if number % 2 == 0:
        file = chance.choice(named)
        file.write_text(truncate(file.read_text(encoding="utf-8"), chance), encoding="utf-8")
        return whole, file.name
    for file in chance.sample(named, chance.choice((1, 1, 2, len(named)))):
        some = texts().get(Stage(file.suffix[1:])) or ("",)
        broken = damage(file.read_text(encoding="utf-8"), some, chance)
        file.write_bytes(broken.encode("utf-8", "surrogatepass"))
    if chance.random() < 0.2:
        for file in target.glob("*.json"):
            file.write_text(damage(file.read_text(encoding="utf-8"), ("{}",), chance), "utf-8", "replace")
    return whole, None


class _Whole(NamedTuple):
    """A kernel as it is, for what is made of it to be held against."""

    cache: Path
    away: Path
    """Where views write; a baseline of the kernel lies there."""
    verdicts: object


@cache
def _wholes() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="wholes-", dir=_memory())


@cache
def _whole(path: Path) -> _Whole:
    place = Path(_wholes().name, str(len(list(Path(_wholes().name).iterdir()))))
    shutil.copytree(path, place / "cache" / path.name)
    (place / "away").mkdir()
    (kernel,) = check_kernel(place / "cache")
    records = [record(kernel, lambda _: None)]
    text = "".join(baseline_text(map(recorded_text, records)))
    (place / "away" / "baseline.json").write_text(text, encoding="utf-8")
    return _Whole(place / "cache", place / "away", describe(kernel))
