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
from artifact_inspector.files.cache import Artifact, MemoryFile
from artifact_inspector.formats import format_of
from artifact_inspector.model import LOADS, RegionKind, Stage
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.model.text import SourceText
from artifact_inspector.vocabulary.fact import Category, Value
from artifact_inspector.vocabulary.names import FactKey, name_regions, step_of
from artifact_inspector.vocabulary.rows import FACTS, summarise

MAX_ACCESS_BYTES = 16
"""Most bytes that a thread moves with one instruction (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""


class Topic(StringEnum):
    """Topic of a fact; the values of `--what`."""

    ORDER = "order"
    PIPELINE = "pipeline"
    LOOPS = "loops"
    WIDTHS = "widths"
    LAYOUTS = "layouts"
    SHARED = "shared"
    MATRIX = "matrix"
    ATOMICS = "atomics"
    REGISTERS = "registers"


_CATEGORIES = {
    Topic.ORDER: (Category.VERDICT,), Topic.PIPELINE: (Category.WAITS, Category.IN_FLIGHT),
    Topic.WIDTHS: (Category.LOADS, Category.STORES), Topic.LAYOUTS: (Category.CONVERSIONS, Category.BARRIERS),
    Topic.SHARED: (Category.SHARED,), Topic.MATRIX: (Category.MMA,), Topic.ATOMICS: (Category.ATOMICS,),
    Topic.REGISTERS: (Category.REGISTERS, Category.SPILLS),
}  # fmt: skip
_TOPIC_OF_CATEGORY = {category: topic for topic, categories in _CATEGORIES.items() for category in categories}
_TRACED_FACTS = tuple(fact for fact in FACTS if fact.category in _TOPIC_OF_CATEGORY)


def topic_of(category: str) -> Topic | None:
    """The topic of a fact category; None if passes do not change such facts."""
    return next((topic for fact_category, topic in _TOPIC_OF_CATEGORY.items() if fact_category.value == category), None)


class DumpFact(NamedTuple):
    """One fact of a dump."""

    topic: Topic
    key: str
    """Key without the stage: `loop1.verdict`, `loads.widths`."""
    label: str
    unit: str
    value: Value
    by_names: bool = False
    """Whether the value contains names of SSA values, which differ between releases."""


def read_dump_facts(
    artifact: Artifact,
    stage: Stage,
    text: str | None,
    topics: Collection[Topic],
    disassemble: Disassemble | None = None,
) -> dict[str, DumpFact]:
    """The facts of a dump by their keys.

    Args:
        artifact: the compiled kernel; its earlier stages define the program's rounds.
        text: the dump; None for the artifact's own text of that stage.
    """
    earlier = {earlier_stage.value for earlier_stage in Stage if earlier_stage.order < stage.order}
    files = {at: file for at, file in artifact.files.items() if at in earlier}
    suffix = "cubin" if stage is Stage.SASS else stage.value
    name = f"{artifact.stem}.{stage.value}"
    source_file = artifact.files.get(suffix) if text is None else MemoryFile(name, text.encode())
    if source_file is None:
        return {}
    kernel = inspect_artifact(replace(artifact, files={**files, suffix: source_file}), disassemble, lambda kernel: None)
    if stage not in kernel.stages:
        return {}
    dump_facts = [*_row_facts(kernel, stage)]
    if stage is Stage.TTGIR and text is not None and Topic.WIDTHS in topics:
        dump_facts += _layout_widths(text)
    return {fact.key: fact for fact in dump_facts if fact.topic in topics}


def _row_facts(kernel: KernelFacts, stage: Stage) -> Iterator[DumpFact]:
    names = _kernel_region_names(name_regions(kernel), kernel.artifact)
    stage_facts = kernel.stages[stage]
    step = step_of(stage)
    for row in summarise(kernel, names, _TRACED_FACTS).rows:
        topic = _TOPIC_OF_CATEGORY.get(Category(row.category))
        if topic is not None and row.step in ("", step):
            label = row.label.strip().removesuffix(f" at {step}")
            yield DumpFact(topic, FactKey(row.key).without_step, f"{row.region} {label}".strip(), row.unit, row.value)
    yield from _region_facts(stage_facts, names)


def _region_facts(stage_facts: StageFacts, names: dict[str, str]) -> Iterator[DumpFact]:
    loops = []
    for region in stage_facts.regions:
        if (name := names.get(region.id)) is None:
            continue
        if region.named_signature:
            key, label = f"{name}.order", f"{name} order"
            yield DumpFact(Topic.ORDER, key, label, "", region.named_signature, by_names=True)
        if region.kind == RegionKind.LOOP:
            loops.append(f"{name} ×{region.unroll_factor}" if region.unroll_factor > 1 else name)
    yield DumpFact(Topic.LOOPS, "loops", "loops of the program", "", tuple(dict.fromkeys(loops)))


def _layout_widths(text: str) -> Iterator[DumpFact]:
    """Contiguous bytes per thread in the layout of each load, by source line."""
    language = format_of(Stage.TTGIR)
    module = language.parse(SourceText("", text), Stage.TTGIR)
    widths: dict[str, set[int]] = {}
    for function in module.functions:
        for instruction in function.instructions:
            if instruction.kind not in LOADS or not instruction.location:
                continue
            for type_ in language.tensor_types(instruction, module):
                layout = type_.encoding
                if type_.is_memory or layout is None or not layout.size_per_thread or not layout.order:
                    continue
                contiguous_bytes = layout.size_per_thread[layout.order[0]] * type_.bits // 8
                line = f"{PurePath(instruction.location[-1].file).name}:{instruction.location[-1].line}"
                widths.setdefault(line, set()).add(min(contiguous_bytes, MAX_ACCESS_BYTES))
                break
    for line, line_widths in widths.items():
        key, unit = f"load {line}.bytes", "contiguous B per thread in its layout"
        yield DumpFact(Topic.WIDTHS, key, f"load at {line}", unit, tuple(map(str, sorted(line_widths))))


def _kernel_region_names(names: dict[str, str], artifact: Artifact) -> dict[str, str]:
    """Names of the kernel's own regions, without those of helper functions that are not yet inlined."""
    region_names = {}
    for region, name in names.items():
        function, slash, region_name = name.rpartition("/")
        if not slash:
            region_names[region] = name
        elif function in (artifact.name, artifact.display_name, artifact.stem):
            region_names[region] = region_name
    return region_names
