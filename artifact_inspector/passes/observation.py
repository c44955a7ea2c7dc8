"""Read the facts of one IR dump that passes change, under names that are equal at all stages.

The facts are the rows of comparisons, and three others: the order of loads and computes, the list of loops,
and the contiguous bytes per thread that a load's layout allows.
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
"""Most bytes that a thread moves with one instruction (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""


class What(Word):
    """Topic of a fact; the values of `--what`."""

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
    """The topic of a fact category; None if passes do not change such facts."""
    return next((what for own, what in _OF_CATEGORY.items() if own.value == category), None)


class Observation(NamedTuple):
    """One fact of a dump."""

    what: What
    key: str
    """Key without the stage: `loop1.verdict`, `loads.widths`."""
    label: str
    unit: str
    value: Value
    by_names: bool = False
    """Whether the value contains names of SSA values, which differ between releases."""


def observe(
    artifact: Artifact,
    stage: Stage,
    text: str | None,
    wanted: Collection[What],
    disassemble: Disassemble | None = None,
) -> dict[str, Observation]:
    """The facts of a dump by their keys.

    Args:
        artifact: the compiled kernel; its earlier stages define the program's rounds.
        stage: the stage of the dump.
        text: the dump; None for the artifact's own text of that stage.
        wanted: the topics of facts to return.
        disassemble: disassembles machine code.
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
    """Contiguous bytes per thread in the layout of each load, by source line."""
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
            What.WIDTHS,
            f"load {line}.bytes",
            f"load at {line}",
            "contiguous B per thread in its layout",
            words,
        )


def _of_the_kernel(names: dict[str, str], artifact: Artifact) -> dict[str, str]:
    """Names of the kernel's own regions, without those of helper functions that are not yet inlined."""
    found = {}
    for region, name in names.items():
        function, slash, rest = name.rpartition("/")
        if not slash:
            found[region] = name
        elif function in (artifact.name, artifact.display_name, artifact.stem):
            found[region] = rest
    return found
