"""What a row of the vocabulary is: a fact with its key, its unit, and where it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts
from artifact_inspector.model import Consequence
from artifact_inspector.model.word import Word

Value = bool | int | float | str | tuple[str, ...] | None
"""What a row says; a tuple is a set of words, in a fixed order. None is not known."""


class Absent(Enum):
    """What a fact says where it does not apply."""

    ABSENT = auto()


class Category(Word):
    """What rows are about, most telling first."""

    VERDICT = "verdict"
    SPILLS = "spills"
    WAITS = "waits"
    MMA = "mma"
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
        """What it means for who launches two kernels that they differ in it."""
        return _CONSEQUENCES.get(self, Consequence.REST)


_CONSEQUENCES = {
    Category.SPILLS: Consequence.SPILLS,
    Category.OCCUPANCY: Consequence.OCCUPANCY,
    Category.WAITS: Consequence.IN_FLIGHT,
    Category.IN_FLIGHT: Consequence.IN_FLIGHT,
    Category.VERDICT: Consequence.ORDER,
}


class Of(Enum):
    """What a fact is said of."""

    KERNEL = auto()
    FILE = auto()
    """The last text as a whole."""
    STAGE = auto()
    """Each text as a whole; `{step}` stands for it in key and label."""
    REGION = auto()
    """A region in the last text; its key follows the region's name."""
    REGION_AT_STAGE = auto()
    """A region in each text."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fact is asked of."""

    kernel: KernelFacts
    stage: StageFacts | None = None
    """None for the kernel as a whole."""
    region: RegionFacts | None = None
    """As the last stage that has it tells it, up to this one."""

    @property
    def work(self) -> RegionWork | None:
        """What the region does at the stage; None where the stage lacks it."""
        if self.stage is None or self.region is None or self.stage.region(self.region.id) is None:
            return None
        return self.stage.work.get(self.region.id)


class Column(NamedTuple):
    """A fact as a column of the tables that list kernels; of a region, that of the principal one."""

    name: str
    """What `--sort` calls it."""
    heading: str
    unit: str
    """As the key below the table says it."""
    place: int
    """Columns stand in this order."""
    step: str = ""
    """Of a fact that is said of each stage: that one."""


Found = Value | Absent | Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the vocabulary."""

    key: str
    """`{}` stands for what a family of facts is by."""
    category: Category
    label: str
    unit: str
    """`B per thread`, `per warp` …; empty for words and plain counts."""
    of: Of
    find: Callable[[Subject], Found]
    """The value, ABSENT where it does not apply; of a family, each member's."""
    reading: str = ""
    """How to read it, where label and unit do not say all."""
    column: Column | None = None
    record: str = ""
    """What records call it; empty for one that stands in none."""
    step: str = ""
    """The stage that a fact of the kernel is read from; empty where no single text says it."""
    is_row: bool = True
    """False for one that other rows tell in more words."""
    brief: str = ""
    """What one sentence about a change calls it; empty for one that only tables tell."""
    costs: Callable[[Value, Value], Consequence] | None = None
    """What it means that two kernels have these values; None where its category tells."""


class Row(NamedTuple):
    """One fact of a kernel."""

    key: str
    """What it is called wherever kernels are compared, as `loop1.verdict.ttgir`."""
    category: str
    """What it is about."""
    label: str
    """What it is, for people."""
    unit: str
    """`B per thread`, `per warp` …; empty for words and plain counts."""
    value: Value
    step: str
    """The stage that it was read from; empty for what no single text says."""
    region: str = ""
    """`loop1`, `straight`: by its order in the program; empty for the whole kernel."""
