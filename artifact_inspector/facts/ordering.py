"""The regions of one stage, in the order of their loads and computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from artifact_inspector.analysis.access.accesses import MemoryAccess
from artifact_inspector.analysis.access.bounds_checks import BoundsCheck
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.formats import format_of
from artifact_inspector.model import Function, Module, Stage

_NOT_PLAIN = re.compile(r"[^\w$]")

Located = TypeVar("Located", MemoryAccess, BoundsCheck)
Value = TypeVar("Value")


class ReferenceRegions(NamedTuple):
    """The regions of the program, from the first stage that has them."""

    by_function: Mapping[str, tuple[ReferenceRegion, ...]]
    is_source: bool
    """True for the stage that they were read from."""


class OrderedFunction(NamedTuple):
    """One function of a stage, with its regions where the stage has them."""

    code: FunctionCode
    name: str
    """As the first stage has it, else its own."""
    prefix: str
    """Of the ids of its regions; empty where the stage has one function."""
    regions: tuple[Region, ...]


class OrderedStage(NamedTuple):
    """A stage whose regions are located, with their verdicts."""

    functions: tuple[OrderedFunction, ...]
    facts: tuple[RegionFacts, ...]
    memories: Mapping[str, PreviousStage]
    """Region id → what this stage and those before it hand on to the next."""
    left_over: frozenset[str]
    """Loops of the program for which the stage has no loop."""

    def rounds_of(self, function: OrderedFunction) -> dict[int, int]:
        """Instruction of a function → number of its round."""
        return {
            index: number
            for region in function.regions
            for index, number in self.memories[function.prefix + region.id].rounds.items()
        }

    def by_region(self, find: Callable[[FunctionCode, Region], Value]) -> dict[str, Value]:
        """What a function returns for each region, by region id."""
        return {
            function.prefix + region.id: find(function.code, region)
            for function in self.functions
            for region in function.regions
        }


def find_reference_regions(
    module: Module, codes: Sequence[FunctionCode], earlier: Sequence[ReferenceRegions]
) -> ReferenceRegions:
    """The regions of the program: those of an earlier stage, else those of this one."""
    by_function = next((regions.by_function for regions in earlier if regions.by_function), {})
    # A file that is cut off may lack the very loop that the kernel is about.
    if by_function or format_of(module.stage).access_operands is None or not module.is_complete:
        return ReferenceRegions(by_function, is_source=False)
    own_regions = {code.function.name: find_reference(code, pipelined=module.stage is not Stage.TTIR) for code in codes}
    return ReferenceRegions(own_regions, is_source=True)


def order_stage(
    module: Module, codes: Sequence[FunctionCode], references: ReferenceRegions, earlier: Sequence[OrderedStage]
) -> OrderedStage:
    """Locate the regions of a stage, and find the verdict of each."""
    of_program = references.by_function
    is_only = len(of_program or module.functions) == 1
    memories_before: Mapping[str, PreviousStage] = earlier[-1].memories if earlier else {}
    memories = dict(memories_before)
    functions: list[OrderedFunction] = []
    facts_of_all: list[RegionFacts] = []
    left_over: set[str] = set()
    for code in codes:
        original = _original_name(code.function, module, of_program)
        # Machine code may hold functions that the program does not have (traps, divisions).
        is_known = original or not of_program
        prefix = "" if is_only and is_known else f"{original or code.function.name}/"
        nested = (
            frozenset[str]() if module.stage is Stage.TTGIR or not earlier else _nested_loops(earlier[-1], original)
        )
        regions = find_regions(code, of_program.get(original, ()), exact=references.is_source, nested=nested)
        for region in regions:
            name = prefix + region.id
            memory = memories_before.get(name)
            if memory is None and region.reference is not None:
                # Of a loop that was split: its parts have ids of their own.
                memory = memories_before.get(prefix + region.reference.id)
            facts, memories[name] = judge_region(code, region, memory)
            if prefix:
                parent = None if facts.parent is None else prefix + facts.parent
                facts = replace(facts, id=prefix + facts.id, parent=parent)
            facts_of_all.append(facts)
            if region.residue is not None:
                left_over.add(name)
        functions.append(OrderedFunction(code, original or code.function.name, prefix, regions))
    return OrderedStage(tuple(functions), tuple(facts_of_all), memories, frozenset(left_over))


def _nested_loops(stage: OrderedStage, function_name: str) -> frozenset[str]:
    """The loops of the program that a stage has inside another, or unrolled into another."""
    regions = [region for function in stage.functions if function.name == function_name for region in function.regions]
    loops = {region.id for region in regions if region.loop is not None}
    return frozenset(region.id for region in regions if region.parent in loops)


def _original_name(function: Function, module: Module, references: Mapping[str, tuple[ReferenceRegion, ...]]) -> str:
    """The name of a function in the first stage, empty where it is not in that stage.

    LLVM's NVPTX back end writes `_$_` for characters that PTX does not allow in a name.
    """
    if function.name in references:
        return function.name
    mangled = {_NOT_PLAIN.sub("_$_", name): name for name in references}
    if function.name in mangled:
        return mangled[function.name]
    if len(references) == 1 and len(module.functions) == 1:
        return next(iter(references))
    return ""


def group_by_block(located: Iterable[Located]) -> dict[int, list[Located]]:
    """Block → what it holds, in text order."""
    by_block: dict[int, list[Located]] = {}
    for item in located:
        by_block.setdefault(item.block, []).append(item)
    return by_block


def located_in(region: Region, by_block: Mapping[int, list[Located]]) -> Iterator[Located]:
    """What is directly in a region, in text order."""
    return (item for block in sorted(region.blocks & by_block.keys()) for item in by_block[block])
