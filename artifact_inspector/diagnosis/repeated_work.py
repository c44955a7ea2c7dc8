"""Partitions of a warp-specialised kernel that compute and store the same tile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from artifact_inspector.diagnosis.attribution import Attribution, attribute
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel
from artifact_inspector.execution.interpreter.program import ProgramStep

_STORES = ("global_store", "tensor_store")


def find_repeated_work(model: LaunchModel) -> Iterator[Attribution]:
    """The products that several partitions repeat.

    The tensor-level IR has the same store in several partitions. The machine code has as many copies of it, and in each
    simulated CTA every copy writes the same addresses: what the partitions compute for them is the same.
    """
    for line, partitions in model.operations.partitions_storing.items():
        executed = model.counters.warps_executed
        stores = [s for s in model.steps if s.kind in _STORES and s.source_place == line and executed[s.index]]
        copies = _equal_copies(model, stores)
        if copies < 2 or len(partitions) % copies:
            continue
        names = " and ".join(partitions)
        reason = (
            f"{names} store the same bytes at {line}: each computes the whole tile, {copies} times the work that the "
            "result needs; let each compute its own rows, or use one"
        )
        of_line: defaultdict[str | None, list[ProgramStep]] = defaultdict(list)
        for step in model.steps:
            if step.kind == "tensor" and executed[step.index]:
                of_line[step.source_place].append(step)
        place = max(of_line, key=lambda one: len(of_line[one]), default=None)
        products = [step for steps in of_line.values() for step in steps]
        yield attribute(model, CauseKind.REPEATED_WORK, place or line, products or stores, reason, left=1 / copies)


def _equal_copies(model: LaunchModel, stores: list[ProgramStep]) -> int:
    """How many copies of a store there are, if all write the same addresses in each simulated CTA; else 1."""
    written: defaultdict[str, list[int]] = defaultdict(list)
    traffic = model.traffic
    for step in stores:
        at = sorted(traffic.first_addresses.get(step.index, {}).items())
        written[f"{at} {model.counters.bytes_requested[step.index]}" if at else ""].append(step.index)
    counts = {len(steps) for steps in written.values()}
    return counts.pop() if len(counts) == 1 and "" not in written else 1
