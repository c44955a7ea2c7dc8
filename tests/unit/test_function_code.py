"""What stands where in a function."""

from __future__ import annotations

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.reference_regions import chain_of
from artifact_inspector.analysis.order.rounds import COMPUTES, LOADS
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind

_SAVED = [*saved_kernels(version="3.6.0", kernel="persistent_matmul"), *saved_kernels(version="2.1.0")]


def _codes(saved: Saved) -> list[FunctionCode]:
    found = []
    for stage in saved.stages:
        language = format_of(stage)
        module = saved.module(stage)
        found += [FunctionCode(function, module, language) for function in module.functions]
    return found


@pytest.mark.parametrize("saved", _SAVED, ids=str)
def test_instructions_of_some_kinds_are_those_that_a_walk_through_the_blocks_meets(saved: Saved) -> None:
    for code in _codes(saved):
        instructions, flow = code.function.instructions, code.flow
        everywhere = frozenset(range(len(code.function.blocks)))
        for blocks in (everywhere, *(loop.blocks for loop in flow.loops), frozenset[int]()):
            walk = [
                index
                for block in flow.order
                if block in blocks
                for index in range(code.function.blocks[block].start, code.function.blocks[block].stop)
            ]
            assert code.indices(blocks) == walk
            for kinds in (LOADS, COMPUTES, frozenset({EventKind.WAIT, EventKind.BRANCH})):
                wanted = [index for index in walk if instructions[index].kind in kinds]
                assert code.find(kinds, blocks) == wanted
                assert blocks != everywhere or code.find(kinds) == wanted


@pytest.mark.parametrize("saved", _SAVED, ids=str)
def test_loads_and_computes_are_found_by_the_place_that_they_bear(saved: Saved) -> None:
    for code in _codes(saved):
        instructions = code.function.instructions
        for kinds, table in ((LOADS, code.loads_at), (COMPUTES, code.computes_at)):
            for place, indices in table.items():
                assert all(chain_of(instructions[index].location) == place for index in indices)
            placed = [index for index in code.find(kinds) if instructions[index].location is not None]
            assert sorted(index for indices in table.values() for index in indices) == sorted(placed)
