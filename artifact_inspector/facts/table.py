"""A table of passes: what each finds, what it needs for that, and what stands where it cannot be found.

A pass is asked for by name. It gets what it needs as arguments, in the order of its row, so a row cannot
say less than its function uses; and what nobody asks for is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from threading import RLock
from typing import Any

from artifact_inspector.facts.collection import without_collection
from artifact_inspector.facts.commons import Commons
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.model import Stage

FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Whence(Enum):
    """Of which stages a pass wants what it needs, other than its own."""

    EARLIER = auto()
    """Of all stages before, as a tuple in their order, without those that could not be found."""
    EVERY = auto()
    """Of all stages, by stage, without those that could not be found."""
    AT = auto()
    """Of one stage; None where the kernel lacks it."""
    FIRST = auto()
    """Of the first stage that could be read, where it is tensor-level IR; None where it is not."""
    LOWERED = auto()
    """Of the last stage that could be read, where it is below tensor-level IR; None where it is not."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a pass needs of other stages than its own."""

    name: str
    whence: Whence
    stage: Stage | None = None


def earlier(name: str) -> Need:
    """A fact of all stages before."""
    return Need(name, Whence.EARLIER)


def every(name: str) -> Need:
    """A fact of all stages."""
    return Need(name, Whence.EVERY)


def at(stage: Stage, name: str) -> Need:
    """A fact of one stage."""
    return Need(name, Whence.AT, stage)


def first(name: str) -> Need:
    """A fact of the first stage, where that is tensor-level IR."""
    return Need(name, Whence.FIRST)


def lowered(name: str) -> Need:
    """A fact of the last stage, where that is below tensor-level IR."""
    return Need(name, Whence.LOWERED)


Applies = Callable[[Stage, Artifact], bool]


@dataclass(frozen=True, slots=True)
class Pass:
    """One row of the table."""

    name: str
    needs: tuple[str | Need, ...]
    """A name alone is a fact of its own stage; for a pass over the whole kernel, one of the whole kernel."""
    find: Callable[..., Any]
    missing: Callable[[], Any]
    """What stands in place of a fact that cannot be found, and of one that a stage is not asked for."""
    of_stage: bool = True
    """False for what is said of the kernel as a whole."""
    applies: Applies | None = None
    """Stages that are asked for it at all; None for all."""
    of_text: bool = False
    """True where a first stage tells it by its text alone, whatever kernel that is of."""


class _LackingError(Exception):
    """A fact cannot be found, and why is told already."""


_FAILED, _UNASKED = object(), object()
_BEFORE = {stage: tuple(Stage)[:place] for place, stage in enumerate(Stage)}


class Table:
    """The facts of one kernel, each found when it is asked for, and kept until they are let go.

    A fault costs the facts that need what it happened in, and no others; it is told once, with its file.
    Facts may be asked for from several threads: one finds at a time.
    """

    def __init__(
        self,
        artifact: Artifact,
        rows: Mapping[str, Pass],
        read: Sequence[str],
        given: Mapping[str, Any],
        commons: Commons | None = None,
    ) -> None:
        """`read` names the passes without which a stage is not there; `given` is known beforehand.

        What other kernels of a run have told of the same text is taken from `commons`.
        """
        self.artifact = artifact
        self._rows = rows
        self._read = read
        self._given = {"artifact": artifact, **given}
        self._commons = commons
        self._found: dict[tuple[str, Stage | None], Any] = {}
        self._problems: dict[tuple[str, Stage | None], list[Problem]] = {}
        self._common: dict[Stage | None, dict[str, Any] | None] = {}
        """Stage → what is known of its text, where others may have told of it."""
        self._stages: tuple[Stage, ...] | None = None
        self._lock = RLock()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was told while facts were found, in the order of stages."""
        stages = list(Stage)

        def place(key: tuple[str, Stage | None]) -> int:
            name, stage = key
            return (len(stages) if name != "said" else -1) if stage is None else stages.index(stage)

        told = (problem for key in sorted(self._problems, key=place) for problem in self._problems[key])
        return tuple(dict.fromkeys(told))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that can be read."""
        if self._stages is None:
            with without_collection():
                told = (stage for stage in Stage if all(self._tells(name, stage) for name in self._read))
                self._stages = tuple(told)
        return self._stages

    def let_go(self) -> None:
        """Forget what was found: what is asked for later is found anew, by this kernel alone."""
        with self._lock:
            self._found.clear()
            self._common.clear()
            self._stages = self._commons = None

    def ask(self, name: str, stage: Stage | None = None) -> Any:
        """A fact, or what stands in its place."""
        try:
            with without_collection():
                return self._find(name, stage)
        except _LackingError:
            return self._rows[name].missing()

    def _tells(self, name: str, stage: Stage) -> bool:
        """Whether the kernel has the stage, and the fact can be found of it."""
        try:
            return self._find("module", stage) is not None and self._find(name, stage) is not None
        except _LackingError:
            return False

    def _find(self, name: str, stage: Stage | None) -> Any:
        key = (name, stage)
        found = self._found.get(key, _UNASKED)
        if found is _UNASKED:
            with self._lock:
                if key not in self._found:
                    self._found[key] = self._run(self._rows[name], key)
                found = self._found[key]
        if found is _FAILED:
            raise _LackingError
        return found

    def _run(self, row: Pass, key: tuple[str, Stage | None]) -> Any:
        stage = key[1]
        if stage is not None and row.applies is not None and not row.applies(stage, self.artifact):
            return row.missing()
        told: list[Problem] = []
        try:
            return self._shared(row, stage, told) if row.of_text else self._fresh(row, stage, told)
        except _LackingError:
            return _FAILED
        except FAULTS as fault:
            said = f"the inspector itself failed here ({type(fault).__name__}: {fault}); please report it"
            told.append(Problem(self._place(stage), said))
            return _FAILED
        finally:
            self._problems.pop(key, None)
            if told:
                self._problems[key] = told

    def _fresh(self, row: Pass, stage: Stage | None, told: list[Problem]) -> Any:
        return row.find(*[self._need(need, stage, told) for need in row.needs])

    def _shared(self, row: Pass, stage: Stage | None, told: list[Problem]) -> Any:
        """A fact of a text; what was told beside it is told of each file that has the text."""
        if stage not in self._common:
            self._common[stage] = self._known(stage)
        common = self._common[stage]
        if common is not None and row.name in common:
            return common[row.name]
        found = self._fresh(row, stage, told)
        if common is not None and not told:
            common[row.name] = found
        return found

    def _known(self, stage: Stage | None) -> dict[str, Any] | None:
        """What is known of the text of a stage; None where it is not the first, or nobody is asked."""
        if self._commons is None or stage is None:
            return None
        if any(self._find("source", one) is not None for one in _BEFORE[stage]):
            return None
        source = self._find("source", stage)
        return None if source is None else self._commons.of(stage, source.text)

    def _need(self, need: str | Need, stage: Stage | None, told: list[Problem]) -> Any:
        if isinstance(need, str):
            return self._here(need, stage, told)
        if need.whence is Whence.EARLIER:
            assert stage is not None
            before = _BEFORE[stage]
            return tuple(self._find(need.name, one) for one in before if self._tells(need.name, one))
        if need.whence is Whence.EVERY:
            return {one: self._find(need.name, one) for one in self.stages if self._tells(need.name, one)}
        if need.whence is Whence.AT:
            wanted = need.stage
        else:
            wanted = self._first() if need.whence is Whence.FIRST else self._lowered()
        if wanted is None or self._find("module", wanted) is None:
            return None
        return self._find(need.name, wanted)

    def _first(self) -> Stage | None:
        found = next(iter(self.stages), None)
        return found if found is not None and found.order <= Stage.TTGIR.order else None

    def _lowered(self) -> Stage | None:
        found = next(reversed(self.stages), None)
        return None if found is None or found.order <= Stage.TTGIR.order else found

    def _here(self, name: str, stage: Stage | None, told: list[Problem]) -> Any:
        found = self._found.get((name, stage), _FAILED)
        if found is not _FAILED:
            return found
        if name == "problems":
            return told
        if name == "stage":
            return stage
        if name in self._given:
            return self._given[name]
        of_stage = self._rows[name].of_stage
        is_of_module = of_stage and name not in ("module", "source")
        if is_of_module and stage is not None and self._find("module", stage) is None:
            raise _LackingError
        return self._find(name, stage if of_stage else None)

    def _place(self, stage: Stage | None) -> str:
        """The file that a fault is told of."""
        artifact = self.artifact
        if stage is not None and stage.value in artifact.files:
            return artifact.relative(stage.value)
        return artifact.directory
