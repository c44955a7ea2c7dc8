"""Members that are computed from a kernel's files when they are first read.

`KernelReading` and `StageReading` are made of such members. Each reads the members that it needs, and nothing else is
computed. A fault makes its member unavailable, and every member that reads it; it is reported once, with its file.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, TypeVar, overload

from artifact_inspector.files.cache import Problem
from artifact_inspector.model import Stage

FAULTS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""Errors of the inspector itself that cost one fact, not the kernel."""
MOST_CHARACTERS = 400_000
"""Total length of the texts whose facts are shared; parsed, a text takes fifty times as much memory."""

Value = TypeVar("Value")
_UNREAD, _FAILED = object(), object()


class Unavailable(Exception):  # noqa: N818 - it is caught inside this package, and is no error of a user
    """A member cannot be computed; the reason is reported already."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Hold off Python's collector of cycles, and let it run again if it ran before.

    Instructions and facts form no cycles, and the collector visits all of them again and again. A command
    that reads many kernels holds it off until all are read.
    """
    was_on = gc.isenabled()
    if was_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class MemberProblems:
    """The problems that were met while members were computed, by member and stage."""

    def __init__(self) -> None:
        """Without any problem."""
        self._by_member: dict[tuple[str, Stage | None], list[Problem]] = {}
        self.open: list[list[Problem]] = []
        """Those of each member that is being computed; `end` keeps the last."""

    @property
    def current(self) -> list[Problem]:
        """Problems of the member that is being computed, to be added to."""
        return self.open[-1]

    @property
    def in_order(self) -> tuple[Problem, ...]:
        """All problems in the order of stages, each once: those of remarks first, of the kernel last."""
        stages = list(Stage)

        def stage_rank(key: tuple[str, Stage | None]) -> int:
            name, stage = key
            return (len(stages) if name != "written_remarks" else -1) if stage is None else stages.index(stage)

        keys = sorted(self._by_member, key=stage_rank)
        return tuple(dict.fromkeys(problem for key in keys for problem in self._by_member[key]))

    def end(self, name: str, stage: Stage | None) -> None:
        """Keep the problems of the member, in place of those of an earlier computation."""
        self._by_member.pop((name, stage), None)
        if problems := self.open.pop():
            self._by_member[name, stage] = problems


class Reading(Protocol):
    """What has computed members."""

    @property
    def stage(self) -> Stage | None:
        """The stage that the members are of; None for the kernel as a whole."""

    @property
    def values(self) -> dict[str, Any]:
        """Members that were computed, by name."""

    @property
    def log(self) -> MemberProblems:
        """Where problems are reported."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Lets one thread compute at a time."""

    @property
    def location(self) -> str:
        """The file or directory that a fault is reported for."""

    @property
    def shared(self) -> dict[str, Any] | None:
        """Members of kernels with the same text; None where no text is shared."""


class computed(Generic[Value]):  # noqa: N801 - used as a decorator, as `property` is
    """A member that is computed once, when it is first read.

    Raises:
        Unavailable: a fault happened in it, or in a member that it reads.
    """

    def __init__(self, find: Callable[[Any], Value]) -> None:
        """`find` is the method that computes the member."""
        self.find = find
        self.name = find.__name__
        self.__doc__ = find.__doc__

    @overload
    def __get__(self, reading: None, kind: type) -> computed[Value]: ...
    @overload
    def __get__(self, reading: Reading, kind: type) -> Value: ...
    def __get__(self, reading: Reading | None, kind: type) -> computed[Value] | Value:
        """The value, computed if need be."""
        if reading is None:
            return self
        values, name = reading.values, self.name
        value = values.get(name, _UNREAD)
        if value is _UNREAD:
            with reading.lock:
                if name not in values:
                    values[name] = self._run(reading)
                value = values[name]
        if value is _FAILED:
            raise Unavailable
        return value  # type: ignore[no-any-return]

    def _run(self, reading: Reading) -> object:
        problems: list[Problem] = []
        reading.log.open.append(problems)
        try:
            return self._compute(reading, problems)
        except Unavailable:
            return _FAILED
        except FAULTS as fault:
            message = f"the inspector itself failed here ({type(fault).__name__}: {fault}); please report it"
            problems.append(Problem(reading.location, message))
            return _FAILED
        finally:
            reading.log.end(self.name, reading.stage)

    def _compute(self, reading: Reading, problems: list[Problem]) -> Value:
        del problems
        return self.find(reading)


class computed_from_text(computed[Value]):  # noqa: N801 - used as a decorator
    """A member of a stage that depends on the text of a first stage only, not on the kernel.

    Kernels of one run that begin with the same text share it. A problem belongs to a file, so a member with
    problems is computed for each kernel.
    """

    def _compute(self, reading: Reading, problems: list[Problem]) -> Value:
        shared = reading.shared
        if shared is not None and self.name in shared:
            return shared[self.name]  # type: ignore[no-any-return]
        value = self.find(reading)
        if shared is not None and not problems:
            shared[self.name] = value
        return value


class TextCache:
    """Members of the texts that were read last, shared by the kernels of one run.

    The first stage of a kernel is the program as written. It is the same for every target and for most
    configurations of a sweep, so it is parsed once.
    """

    def __init__(self) -> None:
        """Without any text."""
        self._by_text: OrderedDict[tuple[Stage, str], dict[str, Any]] = OrderedDict()
        self._characters = 0

    def members_of(self, stage: Stage, text: str) -> dict[str, Any]:
        """The computed members of a text by name, to be added to."""
        key = (stage, text)
        if key in self._by_text:
            self._by_text.move_to_end(key)
            return self._by_text[key]
        members: dict[str, Any] = {}
        if len(text) <= MOST_CHARACTERS:
            self._by_text[key] = members
            self._characters += len(text)
        while self._characters > MOST_CHARACTERS:
            (_, oldest), _ = self._by_text.popitem(last=False)
            self._characters -= len(oldest)
        return members
