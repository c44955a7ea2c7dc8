"""What one text says of a kernel, as far as passes change it: facts with names that do not shift.

The facts are the rows that kernels are compared by, and three that only a compile in progress asks for: the
order as it is read, the loops that are there, and the bytes that a layout gives each thread of a load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact, HeldFile
from artifact_inspector.formats import format_of
from artifact_inspector.model import LOADS, RegionKind, Stage
from artifact_inspector.model.text import SourceText
from artifact_inspector.model.word import Word
from artifact_inspector.vocabulary.fact import Category, Value
from artifact_inspector.vocabulary.names import FactKey, name_regions, step_of
from artifact_inspector.vocabulary.rows import FACTS, summarise

WIDEST = 16
"""Bytes that a thread moves with one instruction (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""


class What(Word):
    """What a fact is about; `--what` takes these words."""

    ORDER = "order"
    PIPELINE = "pipeline"
    LOOPS = "loops"
    WIDTHS = "widths"
    LAYOUTS = "layouts"
    SHARED = "shared"
    MATRIX = "matrix"
    REGISTERS = "registers"


_OF_CATEGORY = {
    Category.VERDICT: What.ORDER,
    Category.WAITS: What.PIPELINE,
    Category.IN_FLIGHT: What.PIPELINE,
    Category.LOADS: What.WIDTHS,
    Category.STORES: What.WIDTHS,
    Category.CONVERSIONS: What.LAYOUTS,
    Category.BARRIERS: What.LAYOUTS,
    Category.SHARED: What.SHARED,
    Category.MMA: What.MATRIX,
    Category.REGISTERS: What.REGISTERS,
    Category.SPILLS: What.REGISTERS,
}
_FOLLOWED = tuple(fact for fact in FACTS if fact.category in _OF_CATEGORY)


def what_of(category: str) -> What | None:
    """What passes are asked for to follow the facts of a category; None where they change none of them."""
    return next((what for own, what in _OF_CATEGORY.items() if own.value == category), None)


class Observation(NamedTuple):
    """One thing that a text says."""

    what: What
    key: str
    """What it is called at every stage alike: `loop1.verdict`, `loads.widths`."""
    label: str
    unit: str
    value: Value
    by_names: bool = False
    """True for what tells values by their names, which come and go."""


def observe(
    artifact: Artifact,
    stage: Stage,
    text: str | None,
    wanted: Collection[What],
    disassemble: Disassemble | None = None,
) -> dict[str, Observation]:
    """The facts of a text by their keys.

    Args:
        artifact: the kernel as it was compiled; its earlier stages tell what the program's rounds are.
        stage: what the text is.
        text: in place of the one that the artifact has.
        wanted: what is asked for.
        disassemble: makes the text of machine code.
    """
    files = {
        at: file
        for at, file in artifact.files.items()
        if any(at == one.value and one.order < stage.order for one in Stage)
    }
    suffix = "cubin" if stage is Stage.SASS else stage.value
    name = f"{artifact.stem}.{stage.value}"
    own = artifact.files.get(suffix) if text is None else HeldFile(name, text.encode())
    if own is None:
        return {}
    kernel = inspect_artifact(
        replace(artifact, files={**files, suffix: own}), disassemble, lambda kernel: None
    )
    if stage not in kernel.stages:
        return {}
    found = [*_facts(kernel, stage)]
    if stage is Stage.TTGIR and text is not None and What.WIDTHS in wanted:
        found += _layout_widths(text)
    return {fact.key: fact for fact in found if fact.what in wanted}


def _facts(kernel: KernelFacts, stage: Stage) -> Iterator[Observation]:
    names = _of_the_kernel(name_regions(kernel), kernel.artifact)
    own = kernel.stages[stage]
    step = step_of(stage)
    for row in summarise(kernel, names, _FOLLOWED).rows:
        what = _OF_CATEGORY.get(Category(row.category))
        if what is not None and row.step in ("", step):
            label = row.label.strip().removesuffix(f" at {step}")
            yield Observation(
                what, FactKey(row.key).without_step, f"{row.region} {label}".strip(), row.unit, row.value
            )
    yield from _of_regions(own, names)


def _of_regions(own: StageFacts, names: dict[str, str]) -> Iterator[Observation]:
    loops = []
    for region in own.regions:
        name = names.get(region.id)
        if name is None:
            continue
        if region.readable:
            key, label = f"{name}.order", f"{name} order"
            yield Observation(What.ORDER, key, label, "", region.readable, by_names=True)
        if region.kind == RegionKind.LOOP:
            loops.append(f"{name} ×{region.unrolled_by}" if region.unrolled_by > 1 else name)
    yield Observation(What.LOOPS, "loops", "loops of the program", "", tuple(dict.fromkeys(loops)))


def _layout_widths(text: str) -> Iterator[Observation]:
    """Bytes that the layout of each load gives a thread side by side, by the line that loads."""
    language = format_of(Stage.TTGIR)
    module = language.parse(SourceText("", text), Stage.TTGIR)
    widths: dict[str, set[int]] = {}
    for function in module.functions:
        for instruction in function.instructions:
            if instruction.kind not in LOADS or not instruction.location:
                continue
            for type_ in language.types(instruction, module):
                layout = type_.encoding
                if type_.is_memory or layout is None or not layout.size_per_thread or not layout.order:
                    continue
                side_by_side = layout.size_per_thread[layout.order[0]] * type_.bits // 8
                line = f"{PurePath(instruction.location[-1].file).name}:{instruction.location[-1].line}"
                widths.setdefault(line, set()).add(min(side_by_side, WIDEST))
                break
    for line, found in widths.items():
        words = tuple(f"{width}" for width in sorted(found))
        yield Observation(
            What.WIDTHS, f"load {line}.bytes", f"load at {line}", "B per thread by its layout", words
        )


def _of_the_kernel(names: dict[str, str], artifact: Artifact) -> dict[str, str]:
    """Names of regions without those of helpers, which are functions of their own until they are inlined."""
    found = {}
    for region, name in names.items():
        function, slash, rest = name.rpartition("/")
        if not slash:
            found[region] = name
        elif function in (artifact.name, artifact.display_name, artifact.stem):
            found[region] = rest
    return found
