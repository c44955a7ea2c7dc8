"""Loops below tensor-level IR that other warps load for, or compute for, by the machine code only.

Barriers order such loops, so neither has a position relative to the other.
"""

from __future__ import annotations

from itertools import product

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.mutual_exclusion import find_exclusive
from artifact_inspector.model import COMPUTES, LOADS, EventKind, OrderVerdict
from artifact_inspector.model.memory import Queue

_COPIES, _MATRIX = frozenset({EventKind.ASYNC_COPY}), frozenset({EventKind.MATRIX})
_WAITS = frozenset({EventKind.WAIT})


def find_handoffs(code: FunctionCode) -> dict[int, OrderVerdict]:
    """Verdicts on the loops that only copy, and on those that only compute.

    `WARP_SPECIALISED`: no path executes both, both wait for barriers, and the second has matrix operations. `UNKNOWN`:
    not all of this holds.
    """
    loops = code.flow.loops
    direct = {
        k: {x for i in code.find(k) if (x := code.flow.loop_at(i)) is not None} for k in (_COPIES, COMPUTES, _MATRIX)
    }
    producers = {loop for loop in direct[_COPIES] if not code.find(COMPUTES, loops[loop].blocks)}
    consumers = {loop for loop in direct[COMPUTES] if not code.find(LOADS, loops[loop].blocks)}
    waits = ((i, code.language.wait(code.instructions[i], code.module)) for i in code.find(_WAITS))
    at_barriers = {code.flow.block_of[i] for i, wait in waits if wait is not None and wait.queue is Queue.PHASE}
    waiting = {loop for loop in producers | consumers if not at_barriers.isdisjoint(loops[loop].blocks)}
    verdicts: dict[int, OrderVerdict] = {}
    for pair in product(sorted(producers), sorted(consumers)):
        signs = pair[1] in direct[_MATRIX], waiting.issuperset(pair), _is_exclusive(code, *pair)
        if all(signs):
            verdicts.update(dict.fromkeys(pair, OrderVerdict.WARP_SPECIALISED))
        elif any(signs):
            verdicts = dict.fromkeys(pair, OrderVerdict.UNKNOWN) | verdicts
    return verdicts


def _is_exclusive(code: FunctionCode, first: int, second: int) -> bool:
    """True if no path executes both loops in one iteration of the loops around them."""
    around = next((loop for loop in code.flow.enclosing(first) if code.flow.encloses(loop, second)), None)
    return bool(find_exclusive(code, around, [code.flow.loops[loop].blocks for loop in (first, second)]))
