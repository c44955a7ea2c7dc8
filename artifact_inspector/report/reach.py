"""Whether a change of a kernel reached the compiled code, and what it changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.likeness import BINARY, Likeness
from artifact_inspector.comparison.matching import Axis
from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.comparison.reach import Compared, Reach
from artifact_inspector.report.diff import value_text
from artifact_inspector.vocabulary.fact import BYTES_PER_BLOCK, Value
from artifact_inspector.vocabulary.names import step_of
from artifact_inspector.vocabulary.rows import brief_of

MOST_CHANGES = 8
"""Most facts in the sentence; further ones are counted."""
KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """The effect of one change for one target."""

    before: str
    """The name of the old state."""
    label: str
    """Kernel, target and configuration."""
    reach: Reach
    left: str
    """The directory of the old entry."""
    right: str

    @property
    def sentence(self) -> str:
        """The effect in one or two sentences."""
        return describe_reach(self.reach)

    @property
    def at(self) -> str | None:
        """The first stage that differs."""
        return None if self.reach.parts_at is None else self.reach.parts_at.suffix

    @property
    def same_from(self) -> str | None:
        """The first stage from which all files are identical."""
        return None if self.reach.same_from is None else self.reach.same_from.suffix

    def brief(self) -> RenderableType:
        """The sentence only."""
        return Text(f"{self.label}: {self.sentence}", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = {True: "bold yellow", False: "bold", None: "bold red"}[self.reach.reached]
        yield Text(f"{self.label}, compared with {self.before}", "dim", overflow="fold")
        yield Text(self.sentence, style, overflow="fold")
        if self.reach.reached is not False:
            yield Padding(Text(_files(self.reach.files), "dim", overflow="fold"), (0, 0, 0, 2))
        told = [*self.reach.notes, *_where_to_look(self)]
        yield from (Padding(Text(sentence, "dim", overflow="fold"), (0, 0, 0, 2)) for sentence in told)


def describe_reach(reach: Reach) -> str:
    """The effect in one or two sentences.

    `No change: TTGIR and all later stages are identical.`
    `The code changed (from TTGIR on): num_stages 3→4, in flight 20→30 KB, registers 96→128, blocks 5→4.`
    """
    if reach.reached is None:
        return "Unknown: the two have no readable file in common."
    if not reach.reached:
        first = reach.same_from
        assert first is not None
        if first.kind == BINARY:
            return f"No change: the {first.suffix} is identical; only earlier stages differ."
        last = reach.files[-1] is first
        after = " is identical." if last else " and all later stages are identical."
        return f"No change: {first.suffix.upper()}{after}"
    parts = reach.parts_at
    where = "The launch changed" if parts is None else f"The code changed (from {parts.suffix.upper()} on)"
    told = told_changes(reach)
    more = len(told) - MOST_CHANGES
    said = [*told[:MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]
    return f"{where}: {', '.join(said) or 'no reported fact differs'}."


def told_changes(reach: Reach) -> list[str]:
    """The effects of a change: first the changed options, then the facts that differ, the worst first."""
    change = reach.change
    if change is None:
        return []
    asked = [
        f"{found.what} {_arrow(*_otherwise(found.left, found.right))}"
        for found in change.differences
        if found.axis in (Axis.CONFIG, Axis.SOURCE, Axis.VERSION)
    ]
    read = [] if change.pair is None else [step_of(stage) for stage in change.pair.left.stages]
    found = [(fact, brief_of(fact.key, fact.region, read)) for fact in change.facts]
    principal = (
        "" if change.pair is None else next((r.name for r in change.pair.regions if r.is_principal), "")
    )
    # facts of the whole kernel or its main region first, then other regions
    told = sorted((one for one in found if one[1]), key=lambda one: one[0].region not in ("", principal))
    facts = [_told(fact, name, principal) for fact, name in told]
    return list(dict.fromkeys([*asked, *facts]))


def _where_to_look(answer: Answer) -> Iterator[str]:
    if answer.reach.change is not None:
        yield f"All differences: inspect-kernel diff {shlex.join((answer.left, answer.right))}"


def _told(fact: FactPair, name: str, principal: str) -> str:
    where = f"{fact.region}: " if fact.region not in ("", principal) else ""
    return f"{where}{name} {_arrow(fact.left, fact.right, is_bytes=fact.unit in BYTES_PER_BLOCK)}"


def _otherwise(before: Value, after: Value) -> tuple[Value, Value]:
    """The elements of two lists of equal length that differ."""
    if not isinstance(before, tuple) or not isinstance(after, tuple) or len(before) != len(after):
        return before, after
    apart = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    return tuple(one for one, _ in apart), tuple(other for _, other in apart)


def _arrow(before: Value, after: Value, *, is_bytes: bool = False) -> str:
    both = [value for value in (before, after) if isinstance(value, int) and not isinstance(value, bool)]
    if is_bytes and len(both) == 2:
        if all(value % KILOBYTE == 0 for value in both):
            return f"{both[0] // KILOBYTE}→{both[1] // KILOBYTE} KB"
        return f"{both[0]}→{both[1]} B"
    words = value_text(before), value_text(after)
    gap = " " if any(" " in word for word in words) else ""
    return f"{words[0]}{gap}→{gap}{words[1]}"


def _files(files: Sequence[Compared]) -> str:
    words = {
        Likeness.IDENTICAL: "identical",
        Likeness.ALIKE: "identical except names and locations",
        Likeness.DIFFERENT: "differs",
        Likeness.UNREADABLE: "not readable",
    }
    return ", ".join(f"{found.suffix} {words[found.likeness]}" for found in files)
