"""Whether accesses of a launch could be wider, from the addresses that it uses in every iteration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artifact_inspector.analysis.access.load_widths import MAX_BYTES, NarrowCause, NarrowReason
from artifact_inspector.diagnosis.launch_model import LaunchModel
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.facts.inspection import inspect_artifact

_SLIDES = 2
"""Times that sectors of a CTA are requested on average, from which iterations shift a window over the same bytes."""
_MARK = "mark contiguous, aligned offsets (tl.multiple_of)"
_PAD = "rows begin at multiples of {} B only; pad them to a stride of a multiple of 16 elements"
_INTERLEAVED = "neighbouring elements are {} apart; load the elements between too, and take them apart (tl.split)"
_APART = "neighbouring elements are {} B apart; store each component contiguously"
_WRONG, _UNKNOWN = "{} is {}: make it a multiple of 16", "{} must be known to be a multiple of 16 (tl.multiple_of)"
_INSTEAD = {
    NarrowReason.STRIDE: "make the stride {} a tl.constexpr of 1",
    NarrowReason.MODULO: "take no remainder by {} in the address",
    NarrowReason.DIVISION: "take no quotient in the address",
    NarrowReason.OFFSET: _MARK,
}
"""What to do about a cause that no promise about an argument removes."""


def how_to_widen(model: LaunchModel, line: str, steps: Sequence[ProgramStep], width: int, most: int) -> str | None:
    """What makes the accesses of a line wider; None if nothing does.

    Args:
        width: bytes of a thread at a time.
        most: bytes that a thread has in all, 16 at most.
    """
    traffic, alignment = model.traffic, find_alignment(model, steps, width)
    causes = _causes_at(model, line, stores=any(step.kind == "global_store" for step in steps))
    padding = _PAD.format(alignment) if alignment <= width < most else ""
    if padding:
        requested = sum(traffic.requested_sectors.get(step.index, 0) for step in steps)
        distinct = sum(traffic.new_sectors.get(step.index, 0) for step in steps)
        if 0 < _SLIDES * distinct <= requested:
            return None
        gaps = {gap for step in steps for gap in traffic.run_starts.get(step.index, ()) if width < gap < MAX_BYTES}
        if not any(cause.reason is NarrowReason.STRIDE for cause in causes):
            gaps = {gap for gap in gaps if not _fill_gap(model, steps, width, gap)}
        if gaps:
            return _APART.format(min(gaps))
        causes = [cause for cause in causes if cause.reason is NarrowReason.MASK]
    promised, arguments = [cause.name for cause in causes if cause.is_promise], model.sample.launch.arguments
    values = ((name, arguments.get(name)) for name in promised)
    wrong = (_WRONG.format(*value) for value in values if type(value[1]) is int and value[1] % MAX_BYTES)
    if promised:
        promise = next(wrong, _UNKNOWN.format(", ".join(dict.fromkeys(promised))))
        return f"{padding}, and {promise}; both are needed" if padding else promise
    if padding:
        return padding + (", and bound masks by a multiple of 16; both are needed" if causes else "")
    curable = [cause for cause in causes if cause.reason in _INSTEAD]
    if any(cause.name.isdigit() and cause.reason is NarrowReason.STRIDE for cause in curable[:1]):
        return _INTERLEAVED.format(curable[0].name)
    texts = [_INSTEAD[cause.reason].format(cause.name) for cause in curable[:1]]
    is_of_layout = any(cause.reason is NarrowReason.LAYOUT for cause in causes)
    return texts[0] if texts else None if is_of_layout else _MARK


def find_alignment(model: LaunchModel, steps: Iterable[ProgramStep], width: int) -> int:
    """Bytes, 16 at most, of which every contiguous run of the accesses of a line begins at a multiple."""
    traffic, bits = model.traffic, MAX_BYTES
    first: list[int] = []
    for step in steps:
        starts = [address for _, address in traffic.first_addresses.get(step.index, {})]
        for start in starts:
            bits |= start - starts[0]
        for start in traffic.run_starts.get(step.index, ()):
            bits |= start if start != width else 0
        first += starts[:1]
    alignment = bits & -bits
    while first and alignment > 1 and all(start % alignment for start in first):
        alignment //= 2
    return alignment


def _fill_gap(model: LaunchModel, steps: Sequence[ProgramStep], width: int, gap: int) -> bool:
    """Whether the accesses of a line, each of `width` bytes per lane, together access all between two lanes."""
    starts: dict[str | None, set[int]] = {}
    for step in steps:
        for _, start in sorted(model.traffic.first_addresses.get(step.index, ()))[:1]:
            starts.setdefault(model.traffic.tensor_of_step.get(step.index), set()).add(start % gap)
    return all(len(addresses) * width >= gap for addresses in starts.values())


def _causes_at(model: LaunchModel, line: str, *, stores: bool) -> list[NarrowCause]:
    """What keeps the accesses of a source line narrow, by its IR."""
    artifact = model.sample.loaded.artifact
    facts = inspect_artifact(artifact, None, lambda kernel: kernel.store_widths if stores else kernel.widths)
    widths = facts.store_widths if stores else facts.widths
    at_line = [one for one in widths if one.source is not None and str(one.source).rpartition("/")[2] == line]
    return sorted((cause for one in at_line for cause in one.causes), key=lambda cause: cause.limit)
