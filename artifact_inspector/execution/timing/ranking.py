"""Ranks launches by speed, from the units that each keeps busy and what it waits for.

Some CTAs are simulated (`sampling`). The cycles for which they occupy each unit bound the launch from below.
So does the latency of one CTA (`walking`) times the number of waves. A closed queueing network combines both:
every resident CTA of a multiprocessor is a customer, every unit a station, and time that a CTA waits without
occupying a unit is think time.

The result is an order, not a forecast of times: clock rates, other work and the order of CTAs are not known.

**Source** M. Reiser, S. S. Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks" (1980).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from artifact_inspector.analysis.resources.occupancy import find_occupancy
from artifact_inspector.analysis.resources.usage import Resources, find_resources
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.interpreter.budget import current_budget
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.timing.amd_costs import AmdCostModel, amd_gpu_model, read_waits
from artifact_inspector.execution.timing.candidates import RankingCandidate, find_identical_binaries, label_candidates
from artifact_inspector.execution.timing.control_codes import ControlCode, read_control_codes
from artifact_inspector.execution.timing.costs import CtaCostModel, CtaCosts, GpuModel, SharedTraffic
from artifact_inspector.execution.timing.dram_traffic import exceeds_l2, fetched_bytes, window_ctas
from artifact_inspector.execution.timing.latency_walk import CtaWalk, count_memory_waits, walk_cta
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.execution.timing.sampling import LaunchSample, SampleResults, sample_evenly, with_kernel
from artifact_inspector.execution.timing.shared_windows import DeferredWindow, SharedWindows, load_candidate
from artifact_inspector.execution.timing.turnover import Turnover
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.reading import without_collection
from artifact_inspector.files.binaries import read_cubin, read_function_code
from artifact_inspector.files.binary import Cubin
from artifact_inspector.files.records import artifact_size
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.products import clock_of, find_product, product_of
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.hardware.timing import FABRIC_BYTES, TIMING, TimingParameters
from artifact_inspector.model.arch import Backend

LATENCY_TERM, LAUNCH_TERM = "path", "launch"
AMD_NOTE = "AMD: rates and latencies are documented ones; no ranking was compared with a GPU"
STEPS = 50_000_000
"""Steps after which a launch counts as endless by default."""
EXACT_PLACES = 10
BOUND_NOTE = f"≥: a lower bound, without waves of CTAs: the first {EXACT_PLACES} are faster"
"""Of launches that cannot be among the first of their problem."""
_RESIDENT_CTAS = "the number of resident CTAs per multiprocessor"


@dataclass(frozen=True, slots=True)
class RankedLaunch:
    """One launch and its estimate."""

    launch: int
    """Its index in the given launches, from 0."""
    hash: str
    label: str
    """What distinguishes it: blocks, warps, stages."""
    score: float | None
    """Estimated cycles of a multiprocessor; less is better. None if a CTA does not fit, or its path depends
    on a missing input."""
    bottleneck: str | None
    """The largest term."""
    terms: Mapping[str, float]
    """Term → cycles that it would take by itself: units of a multiprocessor (`issue`, `alu`, `fma`, `xu`, `lsu`,
    `tensor`), `l2`, `fabric` between its halves, `dram`, `launch` of CTAs, `path`: waves × latency of one CTA."""
    fits: bool
    """False if a multiprocessor cannot hold one CTA: the launch would fail."""
    blocks: int | None
    """Resident CTAs per multiprocessor."""
    waves: int | None
    """Waves of CTAs."""
    missing_inputs: tuple[str, ...] = field(default=())
    """Missing inputs; the score is incomplete or None without them."""
    notes: tuple[str, ...] = field(default=())
    identical_to: int | None = None
    """The index of the first launch with the same binary, grid and arguments; None if it is the first."""


def gpu_model_of(target: Target, gpu: str | None) -> GpuModel:
    """The GPU that launches are ranked for.

    Args:
        gpu: product name; None selects the default product of the target.

    Raises:
        UsageError: its rates are not known.
    """
    ranking_target = target if gpu is None else parse_target(gpu)
    if ranking_target.backend is not target.backend or ranking_target.arch.number // 10 != target.arch.number // 10:
        raise UsageError(f"{gpu} does not run machine code for {target}.", "Choose a GPU of that generation.")
    if target.backend is Backend.HIP:
        return amd_gpu_model(ranking_target, gpu)
    product, rates, limits = (
        product_of(ranking_target, gpu),
        ranking_target.gpu.rates,
        ranking_target.limits.multiprocessor,
    )
    peaks = None if product is None else find_peaks(gpu or product.name) or find_peaks(product.name)
    if product is None or rates is None or limits is None or peaks is None:
        raise UsageError(
            f"Cannot rank launches for {gpu or ranking_target}: its rates or its bandwidth are unknown.",
            "Choose a known product with --gpu: H100, H200, A100, 4090 …",
        )
    return GpuModel(
        product.name if gpu is None or find_product(gpu) else gpu,
        rates,
        product.multiprocessors,
        product.l2_mib << 20,
        limits.shared,
        peaks.bandwidth / (clock_of(product.name, 0.0) * 1e6),
        replace(TIMING, fabric_bytes=FABRIC_BYTES.get(ranking_target.arch.number, 0.0)),
    )


def estimate_launch(
    loaded: LoadedKernel,
    launch: KernelLaunch,
    gpu_model: GpuModel,
    target: Target,
    *,
    limit: int,
    deferred: list[DeferredWindow] | None = None,
    stream: AccessStream | None = None,
    sampled: SampleResults | None = None,
) -> RankedLaunch:
    """The estimate for one launch.

    Args:
        target: whose occupancy limits apply.
        deferred: receives the window if waves of CTAs decide what is fetched; they are not simulated then, each byte is
            fetched once, and the score is a lower bound.
        stream: the accesses of the window, if they are recorded.
        sampled: the sample of the launch, if it is known.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    artifact = loaded.artifact
    cubin, resources = read_resources(loaded)
    resident_ctas = resident_ctas_of(target, resources)
    empty_estimate = RankedLaunch(
        launch=0,
        hash=artifact.hash,
        label="",
        score=None,
        bottleneck=None,
        terms={},
        fits=resident_ctas != 0,
        blocks=resident_ctas,
        waves=None,
        notes=launch.notes,
    )
    if resident_ctas == 0:
        return empty_estimate
    sample = sample_evenly(loaded, launch, limit) if sampled is None else with_kernel(sampled, loaded)
    unknown_inputs, notes = find_missing_inputs(sample), launch.notes
    if loaded.initial_state is not None:
        notes += (AMD_NOTE,)
    if sample.counters.out_of_bounds:
        first = sample.counters.out_of_bounds[0]
        notes += (
            f"a {first.kind} outside of every tensor: CTA {first.cta}, thread {first.thread}, {first.nearest_tensor}; "
            "`predict` lists all",
        )
    controls = read_schedule(loaded)
    if sample.unfinished or resident_ctas is None or controls is None:
        reason = _RESIDENT_CTAS if controls is not None else "control codes, which need a cubin"
        return replace(empty_estimate, missing_inputs=unknown_inputs or (reason,), notes=notes)
    frame_bytes = 0 if cubin is None or cubin.frame_bytes is None else cubin.frame_bytes
    fetched: Mapping[str, float] = {}
    if deferred is not None and exceeds_l2(sample, gpu_model.l2_bytes):
        window = window_ctas(sample, resident_ctas * gpu_model.multiprocessors)
        sectors = [sorted(of.items()) for of in (sample.traffic.sectors_read, sample.traffic.sectors_written)]
        names = sorted({parameter.argument for parameter in loaded.parameters})  # constants may be among the arguments
        problem = hash(
            (artifact.display_name, artifact.target, *((name, launch.arguments.get(name)) for name in names))
        )
        deferred.append(DeferredWindow(repr(sectors), window, gpu_model.l2_bytes, problem, sample.results()))
    else:
        sizes = (resident_ctas, gpu_model.multiprocessors, gpu_model.l2_bytes, limit)
        fetched = fetched_bytes(sample, *sizes, stream=stream)
    costs = cost_model_of(loaded)(
        sample, gpu_model, resident_ctas, frame_bytes, int(resources.shared.value or 0), SharedTraffic(fetched)
    ).find()
    if costs.unknown_rates:
        return replace(empty_estimate, missing_inputs=unknown_inputs + costs.unknown_rates, notes=notes)
    score, terms, waves = score_launch(sample, costs, controls, gpu_model, resident_ctas)
    score = max(score, turnover_cycles(sample, costs, controls, gpu_model, resident_ctas))
    bottleneck = max(terms, key=lambda name: terms[name])
    return replace(
        empty_estimate,
        score=score,
        bottleneck=bottleneck,
        terms=terms,
        waves=waves,
        missing_inputs=unknown_inputs,
        notes=notes,
    )


def read_resources(loaded: LoadedKernel) -> tuple[Cubin | None, Resources]:
    """What the binary states, if it is a cubin, and the resources of the kernel."""
    artifact = loaded.artifact
    if loaded.cubin is None:
        return None, inspect_artifact(artifact, None).resources
    cubin = read_cubin(loaded.cubin, loaded.program.name)
    return cubin, find_resources(artifact.target, artifact.metadata, binary=cubin)


def read_schedule(loaded: LoadedKernel) -> Sequence[ControlCode] | None:
    """What each instruction waits for: NVIDIA's control codes, AMD's `s_waitcnt`; None without a cubin."""
    if loaded.initial_state is not None:
        return read_waits(loaded.program.steps, loaded.program.target)
    return None if loaded.cubin is None else read_control_codes(read_function_code(loaded.cubin, loaded.program.name))


def cost_model_of(loaded: LoadedKernel) -> type[CtaCostModel]:
    """The rules of the vendor whose machine code it is."""
    return CtaCostModel if loaded.initial_state is None else AmdCostModel


def resident_ctas_of(target: Target, resources: Resources) -> int | None:
    """Resident CTAs per multiprocessor."""
    return find_occupancy(
        target, registers=resources.registers.value, shared_bytes=resources.shared.value,
        warps_per_block=resources.warps_per_block.value, barriers=resources.barriers.value,
        tensor_columns=resources.tensor_columns.value,
    ).blocks  # fmt: skip


def find_missing_inputs(sample: LaunchSample) -> tuple[str, ...]:
    """The distinct missing inputs."""
    reasons = [reason for unfinished in sample.unfinished for reason in unfinished.reasons]
    reasons += [
        name
        for missing_bits in sample.counters.missing_inputs.values()
        for name in sample.input_names.names_in(missing_bits)
    ]
    return tuple(dict.fromkeys(reasons))


def score_launch(
    sample: LaunchSample, costs: CtaCosts, controls: Sequence[ControlCode], gpu_model: GpuModel, resident_limit: int
) -> tuple[float, dict[str, float], int]:
    """Score in cycles, its terms, and the number of waves."""
    timing, walk_lockstep = gpu_model.timing, partial(_walk_lockstep, sample, costs, controls, gpu_model)
    single_walk = walk_lockstep(1)
    ctas_per_multiprocessor = -(-sample.launch.ctas // gpu_model.multiprocessors)
    resident = min(resident_limit, ctas_per_multiprocessor)
    waves = -(-ctas_per_multiprocessor // resident)
    terms = _unit_terms(sample, costs, single_walk, gpu_model, resident)
    demands = [cycles / ctas_per_multiprocessor for cycles in stations(terms)]
    full_waves, last_wave_ctas = divmod(ctas_per_multiprocessor, resident)
    queueing_cycles = full_waves * resident / _throughput(resident, demands, single_walk.cycles)
    if last_wave_ctas:
        queueing_cycles += last_wave_ctas / _throughput(last_wave_ctas, demands, single_walk.cycles)
    terms[LATENCY_TERM] = waves * single_walk.cycles
    queueing_cycles = max(
        queueing_cycles,
        sum(cycles**timing.contention_exponent for cycles in stations(terms)) ** (1 / timing.contention_exponent),
    )
    lockstep_cycles = single_walk.cycles if resident == 1 else walk_lockstep(resident).cycles
    lockstep_cycles = full_waves * lockstep_cycles + (walk_lockstep(last_wave_ctas).cycles if last_wave_ctas else 0.0)
    lockstep_share = timing.lockstep_share / waves * _share_in_step(sample, costs, controls, gpu_model, resident)
    score = queueing_cycles * (1 - lockstep_share) + max(queueing_cycles, lockstep_cycles) * lockstep_share
    return score, {name: round(cycles, 1) for name, cycles in sorted(terms.items()) if cycles}, waves


def _share_in_step(
    sample: LaunchSample, costs: CtaCosts, controls: Sequence[ControlCode], gpu_model: GpuModel, resident: int
) -> float:
    """How much the phases of CTAs that start one after another coincide: 1 if they all start within one phase.

    A phase ends where a CTA waits for memory. CTAs whose starts are spread over n phases are as n independent groups,
    and the excess of their joint demand over its mean falls with the root of n.
    """
    stagger = (resident - 1) * launch_cycles(
        gpu_model.timing, -(-sample.loaded.threads // gpu_model.warp_size), resident
    )
    if not stagger or not gpu_model.timing.stagger_exponent:
        return 1.0
    waits = count_memory_waits(sample.trace, controls, costs.step_costs)
    phase = _walk_lockstep(sample, costs, controls, gpu_model, 1).cycles / max(1, waits)
    return float(min(1.0, phase / stagger) ** gpu_model.timing.stagger_exponent)


def _walk_lockstep(
    sample: LaunchSample, costs: CtaCosts, controls: Sequence[ControlCode], gpu_model: GpuModel, cta_count: int
) -> CtaWalk:
    """The walk of several CTAs in lockstep: as one CTA with the costs of all."""
    if cta_count not in costs.walks:
        warps, steps = -(-sample.loaded.threads // gpu_model.warp_size), costs.step_costs
        issue, barrier = cta_count * warps / gpu_model.rates.issue, barrier_cycles(gpu_model.timing, warps)
        if cta_count > 1:
            steps = {at: cost.scaled_by(cta_count) for at, cost in steps.items()}
        costs.walks[cta_count] = walk_cta(sample.trace, controls, steps, max(issue, 1), barrier)
    return costs.walks[cta_count]


def turnover_cycles(
    sample: LaunchSample, costs: CtaCosts, controls: Sequence[ControlCode], gpu_model: GpuModel, resident_limit: int
) -> float:
    """Cycles of the fullest multiprocessor if its warps are simulated one by one; 0 if that takes too long."""
    warps, ctas = -(-sample.loaded.threads // gpu_model.warp_size), -(-sample.launch.ctas // gpu_model.multiprocessors)
    resident = min(resident_limit, ctas)
    turnover = Turnover(
        sample.trace,
        controls,
        costs.step_costs,
        warps,
        interval=launch_cycles(gpu_model.timing, warps, resident),
        barrier=barrier_cycles(gpu_model.timing, warps),
        schedulers=gpu_model.rates.issue,
    )
    return turnover.estimate(ctas, resident) or 0.0


def _unit_terms(
    sample: LaunchSample, costs: CtaCosts, walk: CtaWalk, gpu_model: GpuModel, resident: int
) -> dict[str, float]:
    """Cycles that the CTAs of the fullest multiprocessor occupy each unit."""
    unit_cycles = dict(walk.busy_cycles)
    for unit, cycles in costs.off_trace_cycles.items():
        unit_cycles[unit] = unit_cycles.get(unit, 0.0) + cycles
    unit_cycles["fabric"] = costs.fabric_cycles
    unit_cycles["issue"] = sum(sample.counters.warps_executed) / len(sample.ctas) / gpu_model.rates.issue
    ctas, multiprocessors = sample.launch.ctas, gpu_model.multiprocessors
    fullest, average = -(-ctas // multiprocessors), ctas / min(ctas, multiprocessors)
    # caches and memory are shared, so they see the average
    terms = {
        name: cycles * (average if name in ("l2", "fabric", "dram") else fullest)
        for name, cycles in unit_cycles.items()
    }
    terms[LAUNCH_TERM] = fullest * launch_cycles(
        gpu_model.timing, -(-sample.loaded.threads // gpu_model.warp_size), resident
    )
    return terms


def stations(terms: Mapping[str, float]) -> list[float]:
    """Cycles of the stations of the queueing network: the same bytes pass device memory and the L2's link at once."""
    others = [cycles for name, cycles in terms.items() if name not in ("dram", "fabric")]
    return [*others, max(terms.get("dram", 0.0), terms.get("fabric", 0.0))]


def cta_rates(
    sample: LaunchSample, costs: CtaCosts, controls: Sequence[ControlCode], gpu_model: GpuModel, resident: int
) -> tuple[float, list[float]]:
    """Cycles of a CTA by itself, and CTAs that complete per cycle if 1, 2 … share a multiprocessor."""
    walk = _walk_lockstep(sample, costs, controls, gpu_model, 1)
    fullest = -(-sample.launch.ctas // gpu_model.multiprocessors)
    demands = [cycles / fullest for cycles in stations(_unit_terms(sample, costs, walk, gpu_model, resident))]
    return walk.cycles, [_throughput(count, demands, walk.cycles) for count in range(1, resident + 1)]


def barrier_cycles(timing: TimingParameters, warps: int) -> int:
    """Cycles of a CTA barrier that all warps have reached."""
    return timing.barrier + timing.barrier_per_warp * warps


def launch_cycles(timing: TimingParameters, warps: int, resident_ctas: int) -> float:
    """Fewest cycles between the starts of two CTAs on one multiprocessor."""
    return max(timing.cta_launch, timing.cta_launch_per_warp * warps, timing.cta_turnaround / resident_ctas)


def _throughput(customers: int, demands: Sequence[float], single_cycles: float) -> float:
    """CTAs that complete per cycle if `customers` CTAs share the units.

    Args:
        demands: cycles that one CTA occupies each unit.
        single_cycles: cycles of a single CTA.
    """
    total = sum(demands)
    think_time = max(single_cycles - total, 0.0)
    overlap_factor = min(1.0, single_cycles / total) if total else 1.0  # units busy at the same time do not add up
    queues = [0.0] * len(demands)
    rate = 1 / single_cycles
    for number in range(1, customers + 1):
        residence_times = [demand * overlap_factor * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        rate = min(number / (sum(residence_times) + think_time), 1 / max(demands))
        queues = [rate * residence_time for residence_time in residence_times]
    return rate


def sort_by_score(estimates: Sequence[RankedLaunch]) -> list[RankedLaunch]:
    """The best first; at the end those without a score, then those that do not fit."""
    return sorted(
        estimates,
        key=lambda row: (not row.fits, row.score is None, row.score if row.score is not None else 0.0, row.launch),
    )


# ── Many launches ────────────────────────────────────────────────────────────────────────────────


def estimate_candidate(
    candidate: RankingCandidate,
    disassemble: Disassemble | None,
    *,
    gpu: str | None,
    limit: int,
    deferred: list[DeferredWindow] | None = None,
    stream: AccessStream | None = None,
    sampled: SampleResults | None = None,
) -> RankedLaunch:
    """The estimate for one candidate; the arguments are those of `rank_launches` and `estimate_launch`."""
    budget = current_budget()
    if budget is not None and budget.is_spent():
        return RankedLaunch(
            launch=0, hash=candidate.artifact.hash, label="", score=None, bottleneck=None, terms={}, fits=True,
            blocks=None, waves=None, missing_inputs=(budget.reason,),
        )  # fmt: skip
    with without_collection():
        loaded, launch = load_candidate(candidate, disassemble)
        target = candidate.artifact.target or parse_target(f"sm_{loaded.program.arch_number}")
        limits, model = target if gpu is None else parse_target(gpu), gpu_model_of(target, gpu)
        return estimate_launch(
            loaded, launch, model, limits, limit=limit, deferred=deferred, stream=stream, sampled=sampled
        )


def bound_candidate(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None, limit: int = STEPS
) -> tuple[RankedLaunch, tuple[DeferredWindow, ...]]:
    """An estimate whose score may be a lower bound, and the window that decides it; arguments of `rank_launches`."""
    deferred: list[DeferredWindow] = []
    return estimate_candidate(candidate, disassemble, gpu=gpu, limit=limit, deferred=deferred), tuple(deferred)


def _undecided(
    rows: Mapping[int, RankedLaunch],
    bounds: Mapping[int, RankedLaunch],
    windows: Mapping[int, DeferredWindow],
    least: int,
) -> list[int]:
    """Launches of which only a bound is known, and which may be among the first of their problem."""
    undecided: list[int] = []
    for problem in dict.fromkeys(windows[at].problem for at in bounds):
        same = [at for at, window in windows.items() if window.problem == problem]
        scores = sorted(score for at in same if at not in bounds and (score := rows[at].score) is not None)
        limit = scores[EXACT_PLACES - 1] if len(scores) >= EXACT_PLACES else math.inf
        hidden = [row.launch for row in sort_by_score([bounds[at] for at in same if at in bounds])]
        hidden = [at for at in hidden if (bounds[at].score or 0.0) < limit]
        undecided += hidden[: max(EXACT_PLACES - len(scores), least)]
    return undecided


def rank_launches(
    candidates: Sequence[RankingCandidate],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    limit: int = STEPS,
    processors: int = 1,
    progress: Callable[[RankedLaunch], None] = lambda row: None,
) -> list[RankedLaunch]:
    """The launches, the best first. The smallest kernels are estimated first.

    Args:
        gpu: product name; None selects the default product of the kernels' target.
        limit: steps after which a launch counts as endless.
        progress: called with each estimate when it is done.

    Raises:
        UsageError: the rates of the GPU are unknown, arguments are missing or wrong, or a grid is empty.
        CacheError: a kernel has no readable machine code.
    """
    labels, first_identical = label_candidates(candidates), find_identical_binaries(candidates)

    windows = SharedWindows(candidates, disassemble, limit, processors)
    multiplicity = Counter(first_identical)
    distinct_binaries = sorted(set(first_identical), key=lambda at: (artifact_size(candidates[at].artifact) or 0, at))
    alike = Counter(map(windows.launch_key, distinct_binaries))

    def estimate(at: int) -> RankedLaunch:
        window = windows.of_launch.get(at)
        results: dict[str, Any] = {} if window is None else {"stream": windows.stream_of(at), "sampled": window.sample}
        return estimate_candidate(candidates[at], disassemble, gpu=gpu, limit=limit, **results)

    def estimate_bound(at: int) -> tuple[int, RankedLaunch, Sequence[DeferredWindow]]:
        if len(distinct_binaries) <= EXACT_PLACES and alike[windows.launch_key(at)] == 1:
            return at, estimate(at), ()  # the window is needed, and no other launch makes the same accesses
        return at, *bound_candidate(candidates[at], disassemble, gpu=gpu, limit=limit)

    estimates: dict[int, RankedLaunch] = {}
    for at, row, deferred in map_in_processes(estimate_bound, distinct_binaries, processors):
        estimates[at] = replace(row, launch=at, label=labels[at])
        for _ in range(multiplicity[at]):
            progress(estimates[at])
        windows.of_launch.update((at, window) for window in deferred)
    bounds = {at: row for at in windows.of_launch if (row := estimates[at]).score is not None}
    while undecided := _undecided(estimates, bounds, windows.of_launch, processors):
        windows.record(undecided)
        exact = map_in_processes(lambda at: (at, estimate(at)), undecided, processors)
        estimates.update({at: replace(row, launch=at, label=labels[at]) for at, row in exact})
        bounds = {at: row for at, row in bounds.items() if at not in undecided}
    estimates.update({at: replace(row, notes=(*row.notes, BOUND_NOTE)) for at, row in bounds.items()})
    duplicates = [
        replace(estimates[first], launch=at, label=labels[at], hash=candidates[at].artifact.hash, identical_to=first)
        for at, first in enumerate(first_identical)
        if at != first
    ]
    return sort_by_score([*estimates.values(), *duplicates])
