"""A kernel's facts as they were stored, and its files for those that were not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from artifact_inspector.facts.asked import ROW_OF
from artifact_inspector.facts.kernel import KernelFacts, Outline, RegionWork, StageFacts
from artifact_inspector.facts.stored import join, read_section, split, write_section
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.facts.commons import Commons
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.facts.table import Table


_NO_FACT = (TypeError, ValueError, LookupError, RecursionError)
"""What a text that stands for no fact of a type ends in."""


class Recalled:
    """A source of facts: those that were found before, and for the others the files."""

    def __init__(
        self,
        artifact: Artifact,
        stored: bytes,
        disassemble: Disassemble | None = None,
        commons: Commons | None = None,
    ) -> None:
        """`stored` is what `text` gave; empty where nothing was found before."""
        self._artifact = artifact
        self._disassemble = disassemble
        self._commons = commons
        self._sections = split(stored)
        self._known: dict[str, Any] = {}
        self._fresh: set[str] = set()
        self._table: Table | None = None

    @property
    def is_changed(self) -> bool:
        """True where facts were found that are not stored."""
        return bool(self._fresh)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that can be read."""
        found: tuple[Stage, ...] = self._told("stages", tuple[Stage, ...], lambda table: table.stages)
        return found

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong so far."""
        told: list[Problem] = []
        if "problems" in self._sections:
            try:
                told += read_section(tuple[Problem, ...], self._sections["problems"])
            except _NO_FACT:
                del self._sections["problems"]
        if self._table is not None:
            told += self._table.problems
        return tuple(dict.fromkeys(told))

    def ask(self, name: str, stage: Stage | None = None) -> Any:
        """A fact, or what stands in its place; one that is no field of a record is not kept."""
        section = name if stage is None else f"{name}@{stage.value}"
        kind = _types().get((name, stage is not None))
        if kind is None:
            return self._files().ask(name, stage)
        return self._told(section, kind, lambda table: table.ask(name, stage))

    def text(self) -> bytes:
        """What was stored and what was found since, as plain text."""
        fresh = {section: write_section(self._known[section]) for section in sorted(self._fresh)}
        problems = {"problems": write_section(self.problems)} if self.problems else {}
        return join({**self._sections, **fresh, **problems})

    def let_go(self) -> None:
        """Forget the files; what is asked for later is read from them again."""
        self._commons = None
        if self._table is not None:
            self._table.let_go()

    def _told(self, section: str, kind: Any, find: Callable[[Table], Any]) -> Any:
        if section in self._known:
            return self._known[section]
        if section in self._sections:
            try:
                self._known[section] = read_section(kind, self._sections[section])
                return self._known[section]
            except _NO_FACT:
                del self._sections[section]
        self._known[section] = find(self._files())
        self._fresh.add(section)
        return self._known[section]

    def _files(self) -> Table:
        if self._table is None:
            from artifact_inspector.facts.inspection import table_of  # which imports every parser

            self._table = table_of(self._artifact, self._disassemble, self._commons)
        return self._table


@cache
def _types() -> dict[tuple[str, bool], Any]:
    """The type of every fact that is asked for, by its name and whether it is one of a stage."""
    own = {"artifact", "stages", "problems"}
    types: dict[tuple[str, bool], Any] = {
        (name, False): kind for name, kind in get_type_hints(KernelFacts).items() if name not in own
    }
    of_stage = get_type_hints(StageFacts)
    types |= {(name, True): kind for name, kind in of_stage.items() if name not in ("stage", "work")}
    types["outline", True] = Outline
    for name, kind in get_type_hints(RegionWork).items():
        types[ROW_OF.get(name, name), True] = Mapping[str, kind]  # type: ignore[valid-type]
    return types
