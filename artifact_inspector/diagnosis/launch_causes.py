"""Causes in the shape of a launch: idle multiprocessors, tail waves, threads without work, occupancy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from artifact_inspector.diagnosis.arithmetic_causes import MEMORY
from artifact_inspector.diagnosis.attribution import Attribution, attribute_repair
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, TimeModel, roofline_cycles, without_work
from artifact_inspector.execution.timing.ranking import LAUNCH_TERM
from artifact_inspector.model import Resource

SMALL_MICROSECONDS = 2.0
"""Predicted time below which starting the kernel takes longer than running it: an empty kernel takes about that."""
_LEAST_TAIL = 0.05
_LOW_OCCUPANCY = 0.5
_LEAST_PART = 0.5
"""Part of a tile that masks leave, above which the next power of two needs the tile."""


def find_launch_causes(model: LaunchModel) -> Iterator[Attribution]:
    """The causes in the shape of a launch."""
    if model.occupancy.blocks == 0:
        names = " and ".join(resource.value for resource in model.occupancy.limited_by)
        reason = (
            f"the launch fails: no CTA fits on a {model.occupancy.unit} ({names}); use smaller tiles or fewer stages"
        )
        yield Attribution(CauseKind.OCCUPANCY, None, None, 1.0, reason)
    yield from _idle_multiprocessors(model)
    yield from _excess_threads(model)
    yield from _masked_tiles(model)
    if model.time is not None and model.cycles:
        yield from _small_launch(model, model.time, model.cycles)
        yield from _tail_wave(model, model.time, model.cycles)
        yield from _cta_launches(model, model.time, model.cycles)
        yield from _occupancy(model, model.time)
        yield from _unfilled(model, model.time, model.cycles)


def _small_launch(model: LaunchModel, time: TimeModel, cycles: float) -> Iterator[Attribution]:
    microseconds = time.microseconds(model.sample, cycles) - time.gpu.timing.launch_us
    if microseconds < SMALL_MICROSECONDS:
        start = time.gpu.timing.launch_us
        reason = f"starting the kernel takes {start:.1f} µs of that; fuse it or enlarge it"
        yield Attribution(CauseKind.SMALL_LAUNCH, None, start / (start + microseconds), 1.0, reason)


def _idle_multiprocessors(model: LaunchModel) -> Iterator[Attribution]:
    ctas, count = model.sample.launch.ctas, model.multiprocessors
    if count is None or ctas >= count:
        return
    share = None
    if model.time is not None and model.cycles:
        spread = max(model.cycles * ctas / count, roofline_cycles(model, model.time))
        share = max(0.0, 1 - spread / model.cycles)
    reason = f"{ctas} CTAs leave {count - ctas} of {count} {model.occupancy.unit}s idle; split the work into more CTAs"
    yield Attribution(CauseKind.IDLE_MULTIPROCESSORS, None, share, 1 - ctas / count, reason)


def _tail_wave(model: LaunchModel, time: TimeModel, cycles: float) -> Iterator[Attribution]:
    ctas, count = model.sample.launch.ctas, model.multiprocessors or 1
    per_multiprocessor = -(-ctas // count)
    average = ctas / count
    if ctas < count or average > (1 - _LEAST_TAIL) * per_multiprocessor:
        return
    launch = replace(model.sample.launch, grid=(per_multiprocessor * count, 1, 1), cluster_size=1)
    spread = time.score(replace(model.sample, launch=launch)) * average / per_multiprocessor
    share = max(0.0, 1 - max(spread, roofline_cycles(model, time)) / cycles)
    remedy, unit = "choose tiles that fill whole waves", model.occupancy.unit
    if model.operations.is_persistent:
        remedy = f"launch {time.resident_ctas * count}, as many as are resident at once"
    load = f"the fullest {unit} runs {per_multiprocessor}, the average {average:.1f}"
    reason = f"{ctas} CTAs on {count} {unit}s: {load}; {remedy}"
    yield Attribution(CauseKind.TAIL_WAVE, None, share, share, reason)


def _unfilled(model: LaunchModel, time: TimeModel, cycles: float) -> Iterator[Attribution]:
    """A persistent kernel with fewer CTAs than are resident at once: more of them would hide each other's latency."""
    sample, ctas, count = model.sample, model.sample.launch.ctas, model.multiprocessors or 1
    most = time.resident_ctas * count
    if not model.operations.is_persistent or not count <= ctas <= most / 2:
        return
    filled = replace(sample, launch=replace(sample.launch, grid=(most, 1, 1), cluster_size=1))
    share = max(0.0, 1 - max(time.score(filled) * ctas / most, roofline_cycles(model, time)) / cycles)
    reason = f"{ctas} CTAs loop over all tiles, and {most} are resident at once; launch as many"
    yield Attribution(CauseKind.IDLE_MULTIPROCESSORS, None, share, share, reason)


def _excess_threads(model: LaunchModel) -> Iterator[Attribution]:
    elements, threads = model.operations.most_elements, model.sample.loaded.threads
    if elements is None or threads < 2 * elements:
        return
    share = None
    if model.time is not None and model.cycles:
        launch = model.sample.launch
        ctas = max(1, launch.ctas * elements // threads)
        fuller = replace(model.sample, launch=replace(launch, grid=(ctas, 1, 1), cluster_size=1))
        share = max(0.0, 1 - max(model.time.score(fuller), roofline_cycles(model, model.time)) / model.cycles)
    reason = f"{threads} threads share tiles of {elements} elements; use larger tiles or fewer warps"
    yield Attribution(CauseKind.EXCESS_THREADS, None, share, 1.0 if share is None else share, reason)


def _masked_tiles(model: LaunchModel) -> Iterator[Attribution]:
    """Tiles most of whose elements are masked in all accesses: each thread computes them all the same."""
    part, elements = _part_in_bounds(model), max(model.operations.accessed_elements.values(), default=0)
    if part is None or part > _LEAST_PART:
        return
    work = {step.index: part for step in model.steps if step.kind not in MEMORY}
    reason = f"masks leave {part:.0%} of each tile of {elements} elements; use smaller tiles"
    yield attribute_repair(
        model, CauseKind.EXCESS_THREADS, None, lambda sample: without_work(sample, work), work, reason
    )


def _part_in_bounds(model: LaunchModel) -> float | None:
    """The largest part of a line's accesses to tiles that masks leave; None without such accesses."""
    threads, sizes = model.sample.loaded.threads, model.operations.accessed_elements
    active, offered = Counter[str](), Counter[str]()
    for step in model.steps:
        # of smaller tiles some threads have no element
        if step.kind in ("global_load", "global_store", "copy") and sizes.get(step.source_place or "", 0) >= threads:
            active[str(step.source_place)] += model.traffic.active_lanes.get(step.index, 0)
            offered[str(step.source_place)] += model.visits.get(step.index, 0)
    lanes = threads * len(model.sample.ctas)
    return max((active[line] / (count * lanes) for line, count in offered.items() if count), default=None)


def _cta_launches(model: LaunchModel, time: TimeModel, cycles: float) -> Iterator[Attribution]:
    terms = time.terms(model.sample)
    if max(terms, key=lambda name: terms[name]) != LAUNCH_TERM:
        return
    others = max((value for name, value in terms.items() if name != LAUNCH_TERM), default=0.0)
    share = max(0.0, 1 - others / cycles)
    reason = f"starting {model.sample.launch.ctas:,} small CTAs takes longer than their work; use larger tiles"
    yield Attribution(CauseKind.CTA_LAUNCHES, None, share, share, reason)


def _occupancy(model: LaunchModel, time: TimeModel) -> Iterator[Attribution]:
    occupancy, per_multiprocessor = model.occupancy, -(-model.sample.launch.ctas // (model.multiprocessors or 1))
    if occupancy.ratio is None or occupancy.ratio >= _LOW_OCCUPANCY or per_multiprocessor <= time.resident_ctas:
        return
    share = model.share_of(model.sample, resident=2 * time.resident_ctas) or 0.0
    names = [resource.value for resource in occupancy.limited_by]
    verb = "allow" if len(names) > 1 or names[:1] == ["registers"] else "allows"
    warps = f"{occupancy.warps} of {occupancy.max_warps} warps per {occupancy.unit}"
    is_staged = model.sample.loaded.artifact.metadata.get("num_stages") not in (None, 0, 1)
    fewer = " or fewer stages" if is_staged and Resource.SHARED in occupancy.limited_by else ""
    reason = f"{' and '.join(names)} {verb} {warps}; use smaller tiles{fewer}"
    yield Attribution(CauseKind.OCCUPANCY, None, share, share, reason)
