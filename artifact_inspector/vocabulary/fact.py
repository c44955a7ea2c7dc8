"""A fact: one typed function, with its key, unit and the views that show it beside it.

    @region_fact("copies", "copies to shared memory", Unit.PER_ITERATION, category=Category.LOADS)
    def copies(of: RegionSubject) -> float | Absent:
        ...

Diff, matrix, JSON, its schema, records, the index of words, pages and servers derive from that definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts
from artifact_inspector.model import Consequence
from artifact_inspector.model.string_enum import StringEnum

Value = bool | int | float | str | tuple[str, ...] | None
"""Value of a fact. A tuple is a set of words in a fixed order; None is unknown."""


class Absent(Enum):
    """What a fact returns where it does not apply."""

    ABSENT = auto()


FactValue = Value | Absent | Mapping[str, Value]


class Category(StringEnum):
    """What facts are about, most telling first."""

    VERDICT = "verdict"
    SPILLS = "spills"
    WAITS = "waits"
    MMA = "mma"
    ATOMICS = "atomics"
    SHARED = "shared"
    REGISTERS = "registers"
    OCCUPANCY = "occupancy"
    LOADS = "loads"
    STORES = "stores"
    IN_FLIGHT = "in-flight"
    BOUNDS = "bounds"
    CONVERSIONS = "conversions"
    BARRIERS = "barriers"
    FLOAT = "float"
    FINDINGS = "findings"
    INSTRUCTIONS = "instructions"

    @property
    def consequence(self) -> Consequence:
        """What a difference in this category means for the user of the two kernels."""
        return _CONSEQUENCES.get(self, Consequence.OTHER)


_CONSEQUENCES = {
    Category.SPILLS: Consequence.SPILLS, Category.ATOMICS: Consequence.ATOMICS,
    Category.OCCUPANCY: Consequence.OCCUPANCY, Category.WAITS: Consequence.IN_FLIGHT,
    Category.IN_FLIGHT: Consequence.IN_FLIGHT, Category.VERDICT: Consequence.ORDER,
}  # fmt: skip


class Unit(StringEnum):
    """Units of facts, as they are printed."""

    NONE = ""
    """Words and plain counts."""
    BYTES_PER_BLOCK = "B per CTA"
    BYTES_PER_BLOCK_AND_ITERATION = "B per CTA and iteration"
    BYTES_PER_BLOCK_BY_COUNT = "B per CTA × count"
    BYTES_PER_THREAD = "B per thread"
    BYTES_PER_THREAD_BY_COUNT = "B per thread × count"
    PER_THREAD = "per thread"
    PER_MULTIPROCESSOR = "per SM or CU"
    PER_ITERATION = "per iteration"
    PER_ITERATION_AND_ISSUERS = "per iteration × issuers"
    PER_BLOCK_AND_ITERATION = "per CTA and iteration"
    IN_CODE = "in the code"
    IN_FLIGHT = "in flight"
    LEFT_IN_FLIGHT = "left in flight"
    BEHIND_THE_WAIT = "behind the wait"
    AT_MOST = "at most"
    SHARE = "share"
    PERCENT = "%"
    FLOP_PER_BYTE = "FLOP per byte loaded"
    PASSES = "of the loop, by constants of the program"
    LETTERS = "letters in text order"


BYTES_PER_BLOCK = frozenset({Unit.BYTES_PER_BLOCK, Unit.BYTES_PER_BLOCK_AND_ITERATION, Unit.BYTES_PER_BLOCK_BY_COUNT})
"""Units of bytes that a block moves or takes."""
BYTES = BYTES_PER_BLOCK | {Unit.BYTES_PER_THREAD, Unit.BYTES_PER_THREAD_BY_COUNT}
"""Units of bytes."""


class Direction(Enum):
    """Whether a larger value of a fact is better for speed."""

    MORE_IS_BETTER = "more"
    LESS_IS_BETTER = "less"
    NEUTRAL = "neutral"


class Sign(StringEnum):
    """Whether the right side is better or worse than the left in one fact."""

    WORSE = "worse"
    BETTER = "better"
    NEUTRAL = "neutral"
    """Equal, not compared, or neither value is better by itself."""


class Of(Enum):
    """What a fact describes."""

    KERNEL = auto()
    FILE = auto()
    """The last text as a whole."""
    STAGE = auto()
    """Each text as a whole; `{step}` stands for the stage in key and label."""
    REGION = auto()
    """A region in the last text; its key follows the name of the region."""
    REGION_AT_STAGE = auto()
    """A region in each text."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel."""

    kernel: KernelFacts


@dataclass(frozen=True, slots=True)
class StageSubject(Subject):
    """One stage of a kernel."""

    stage: StageFacts


@dataclass(frozen=True, slots=True)
class RegionSubject(StageSubject):
    """A region at one stage of a kernel."""

    region: RegionFacts
    """As at the last stage that has it, up to this one."""

    @property
    def work(self) -> RegionWork | None:
        """Work of the region at the stage; None where the stage lacks the region."""
        if self.stage.region(self.region.id) is None:
            return None
        return self.stage.work.get(self.region.id)


class FactColumn(NamedTuple):
    """A fact as a column of the tables that list kernels; of a region, that of the main loop."""

    name: str
    """The name that `--sort` accepts."""
    heading: str
    unit: str
    """As the key below the table prints it."""
    position: int
    """Columns are sorted by this number."""
    step: str = ""
    """For a fact of each stage: the stage that the column shows."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A typed function and its metadata."""

    key: str
    """`{}` stands for a member of a family of facts, `{step}` for the stage."""
    label: str
    unit: Unit
    of: Of
    find: Callable[[Any], FactValue]
    """Returns the value, ABSENT where the fact does not apply; for a family, member → value."""
    category: Category
    direction: Direction = Direction.NEUTRAL
    reading: str = ""
    """How to read the value, where label and unit do not explain it."""
    column: FactColumn | None = None
    record: str = ""
    """Its column in records; empty for a fact that is in none."""
    step: str = ""
    """The stage that a fact of the kernel is read from; empty where it is read from no single text."""
    is_row: bool = True
    """False for a fact that another fact includes."""
    brief: str = ""
    """Its name in one-line summaries of a change; empty for a fact that only tables show."""
    story_label: str = ""
    """Its label on the page of one kernel; empty for a fact that the page does not list by itself."""
    costs: Callable[[Value, Value], Consequence] | None = None
    """What a difference between two values means; None where the category decides."""

    def __call__(self, subject: Subject) -> FactValue:
        """The value for one kernel, stage or region."""
        return self.find(subject)

    @property
    def value_type(self) -> Any:
        """The type that the function is annotated to return."""
        return get_type_hints(self.find)["return"]

    @property
    def is_of_region(self) -> bool:
        """True for facts of regions."""
        return self.of in (Of.REGION, Of.REGION_AT_STAGE)


SubjectKind = TypeVar("SubjectKind", bound=Subject)


class Definition(Generic[SubjectKind]):
    """A decorator that makes a fact of a function; its arguments are the fields of `Fact`."""

    def __init__(self, of: Of) -> None:
        """`of` is what the facts describe."""
        self.of = of

    def __call__(
        self,
        key: str,
        label: str,
        unit: Unit = Unit.NONE,
        *,
        category: Category,
        direction: Direction = Direction.NEUTRAL,
        reading: str = "",
        column: FactColumn | None = None,
        record: str = "",
        step: str = "",
        is_row: bool = True,
        brief: str = "",
        story_label: str = "",
        costs: Callable[[Value, Value], Consequence] | None = None,
    ) -> Callable[[Callable[[SubjectKind], FactValue]], Fact]:
        """The decorator for one fact."""
        return lambda find: Fact(
            key=key,
            label=label,
            unit=unit,
            of=self.of,
            find=find,
            category=category,
            direction=direction,
            reading=reading,
            column=column,
            record=record,
            step=step,
            is_row=is_row,
            brief=brief,
            story_label=story_label,
            costs=costs,
        )


kernel_fact = Definition[Subject](Of.KERNEL)
file_fact = Definition[StageSubject](Of.FILE)
stage_fact = Definition[StageSubject](Of.STAGE)
region_fact = Definition[RegionSubject](Of.REGION)
region_at_stage_fact = Definition[RegionSubject](Of.REGION_AT_STAGE)


def facts_in(module: ModuleType) -> tuple[Fact, ...]:
    """The facts that a module defines, in the order of its text."""
    return tuple(value for value in vars(module).values() if isinstance(value, Fact))


class SignedDifference(NamedTuple):
    """A fact that differs between two kernels."""

    key: str
    category: str
    older_value: Value
    newer_value: Value
    direction: Sign


class Row(NamedTuple):
    """One fact of a kernel."""

    key: str
    """Its name wherever kernels are compared, as `loop1.verdict.ttgir`."""
    category: str
    """What it is about."""
    label: str
    """For people."""
    unit: str
    """`B per thread`, `per warp` …; empty for words and plain counts."""
    value: Value
    step: str
    """The stage that it was read from; empty for a fact of no single text."""
    region: str = ""
    """`loop1`, `straight`: by its order in the program; empty for the whole kernel."""
