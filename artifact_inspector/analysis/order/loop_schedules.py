"""The schedule that a program itself gives a loop, with copies into buffers that it waits for.

`num_stages` and copies before the loop say nothing here; the executed schedule does. See docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.schedule_trace import trace_schedule
from artifact_inspector.analysis.flow.traversal import range_of
from artifact_inspector.model import EventKind, OrderVerdict
from artifact_inspector.model.schedule import ScheduleTrace

_DELIMITERS = frozenset({EventKind.SCHEDULE_HINT, EventKind.BRANCH})


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """The copies of a loop, or those whose data it computes on."""

    verdict: OrderVerdict | None
    """None if every copy serves its own iteration: the order of loads and computes decides."""
    distance: int | tuple[int, int] | None = None
    """Iterations that its copies run ahead; of other partitions' copies, the most."""
    matrix_in_flight: int = 0
    """Most matrix operations in flight while it waits for copies."""
    notes: tuple[str, ...] = ()
    distances: Mapping[int, int] = field(default_factory=dict, hash=False)
    """By copy: the fewest iterations that it runs ahead, within its own loop."""


def find_loop_schedules(code: FunctionCode) -> dict[int, LoopSchedule]:
    """The schedules of the loops of a function, by loop; empty if it has no copies into buffers."""
    trace = code.compute_once(trace_schedule)
    return {} if trace is None else _Schedules(code, trace).find()


class _Schedules:
    def __init__(self, code: FunctionCode, trace: ScheduleTrace) -> None:
        self.code, self.trace, self.flow = code, trace, code.flow
        copies = code.of_kind.get(EventKind.ASYNC_COPY, ())
        self.copies = sorted({*copies, *(copy for copy in trace.slots if copy in trace.consumers)})

    def find(self) -> dict[int, LoopSchedule]:
        schedules = {}
        for loop in range(len(self.flow.loops)):
            schedule = self._find_schedule(loop, [index for index in self.copies if self.flow.loop_at(index) == loop])
            if schedule is not None:
                schedules[loop] = replace(schedule, notes=(*schedule.notes, *self._further_notes(loop, schedule)))
        return schedules

    def _find_schedule(self, loop: int, own: list[int]) -> LoopSchedule | None:
        trace = self.trace
        received = {copy for copy in trace.partition_distances if loop in trace.consumers[copy]}
        depths = {copy: sum(1 for _ in self.flow.enclosing(self.flow.loop_at(copy))) for copy in received}
        received = {copy for copy in received if depths[copy] == max(depths.values())}  # not those of outer loops
        shared = received.union(copy for copy in own if copy in trace.partition_distances)
        if loop in trace.unfollowed:
            note = f"the order of its copies is not known: {trace.unfollowed[loop]}"
            computes = own or self.code.find(frozenset({EventKind.MATRIX}), self.flow.loops[loop].blocks)
            return LoopSchedule(OrderVerdict.UNKNOWN, notes=(note,)) if computes else None
        in_flight = trace.matrix_in_flight.get(loop, 0)
        if shared:
            ahead = [trace.partition_distances[copy] for copy in shared] if trace.is_concurrency_known else []
            note = self._partition_note(loop, own, received)
            return LoopSchedule(OrderVerdict.WARP_SPECIALISED, range_of(ahead), in_flight, (note,))
        consumed = [copy for copy in own if copy in trace.consumers]
        if not consumed:
            return None
        distances = {copy: trace.distances[copy] for copy in consumed if copy in trace.distances}
        here = [c for c in distances if max(distances[c]) or not self._is_prologue(loop, c)]
        if not here:
            return LoopSchedule(OrderVerdict.NO_LOADS, notes=("its copies are the first of the loop inside it",))
        ahead = [distance for copy in here for distance in distances[copy] if distance]
        late = [copy for copy in here if 0 in distances[copy]]
        least = {copy: min(distances[copy]) for copy in here}
        if not ahead:
            return LoopSchedule(None, matrix_in_flight=in_flight, distances=least)
        verdict = OrderVerdict.PARTLY_PIPELINED if late else OrderVerdict.PIPELINED
        buffers = max(len(trace.slots[copy]) for copy in here)
        note = f"its copies go round {buffers} {'buffer' if buffers == 1 else 'buffers'}"
        return LoopSchedule(verdict, range_of(ahead), in_flight, (note,), least)

    def _is_prologue(self, loop: int, copy: int) -> bool:
        """True for a copy whose data a loop inside consumes, which goes on to copy into the same buffers."""
        inner = {consumer for consumer in self.trace.consumers[copy] if consumer != loop}
        buffers = {slot.root for slot in self.trace.slots.get(copy, ())}
        return loop not in self.trace.consumers[copy] and any(
            self.flow.loop_at(other) in inner and any(slot.root in buffers for slot in self.trace.slots.get(other, ()))
            for other in self.copies
        )

    def _further_notes(self, loop: int, schedule: LoopSchedule) -> Iterator[str]:
        count = schedule.matrix_in_flight
        if count:
            operations = "matrix operation is" if count == 1 else "matrix operations are"
            yield f"up to {count} {operations} in flight while it waits for its copies"
        blocks = self.flow.loops[loop].blocks
        hints = (self.code.instructions[i] for i in self.code.find(_DELIMITERS, blocks))
        requests = [request for hint in hints if (request := self.code.language.warp_request(hint)).pipeline_stage]
        if requests:
            stages = (r.pipeline_stage + ("" if r.priority is None else f" (priority {r.priority})") for r in requests)
            yield f"stages of its warp pipeline: {', '.join(stages)}"

    def _partition_note(self, loop: int, own: list[int], received: set[int]) -> str:
        copies = received or [copy for copy in own if copy in self.trace.partition_distances]
        buffers = max(len(self.trace.slots[copy]) for copy in copies)
        others = (
            {self._partition(self.code.blocks[self.flow.block_of[copy]].start) for copy in received}
            if received
            else {self._partition(compute) for copy in copies for compute in self.trace.computes[copy]}
        )
        names = sorted(filter(None, others)) or ["other warps"]
        ending = "s" if len(names) == 1 and names != ["other warps"] else ""
        verb = f"issue{ending} the copies that it computes on" if received else f"compute{ending} on its copies"
        return f"{', '.join(names)} {verb}, through {buffers} {'buffer' if buffers == 1 else 'buffers'}"

    def _partition(self, index: int) -> str:
        block = self.flow.block_of[index]
        return next((p.name for p in self.code.function.partitions if p.first <= block < p.stop), "")
