"""Ranks launches by speed, from the units that each keeps busy and what it waits for.

Some CTAs are simulated (`sampling`). The cycles for which they occupy each unit bound the launch from below.
So does the latency of one CTA (`walking`) times the number of waves. A closed queueing network combines both:
every resident CTA of a multiprocessor is a customer, every unit a station, and time that a CTA waits without
occupying a unit is think time.

The result is an order, not a forecast of times: clock rates, other work and the order of CTAs are not known.

**Source** M. Reiser, S. S. Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks" (1980).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from artifact_inspector.analysis.resources.occupancy import find_occupancy
from artifact_inspector.analysis.resources.taken import Resources, find_resources
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Launch
from artifact_inspector.execution.loading import Loaded, load_kernel
from artifact_inspector.execution.naming import fit_launch
from artifact_inspector.execution.timing.contestants import Contestant, find_twins, label_launches
from artifact_inspector.execution.timing.controls import Control, read_controls
from artifact_inspector.execution.timing.costs import Chip, Costs, find_costs
from artifact_inspector.execution.timing.forking import map_forked
from artifact_inspector.execution.timing.sampling import Sample, sample_launch
from artifact_inspector.execution.timing.walking import Walk, walk
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.reading import without_collection
from artifact_inspector.files.beside import size_of
from artifact_inspector.files.binaries import read_code, read_cubin
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.hardware.timing import TIMING, Timing

PATH, LAUNCH = "path", "launch"
_OF_NVIDIA = "control codes, which only NVIDIA machine code has: AMD kernels are not ranked"
_CTAS = "the number of resident CTAs per multiprocessor"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One launch and its estimate."""

    launch: int
    """Its index in the given launches, from 0."""
    hash: str
    label: str
    """What distinguishes it: blocks, warps, stages."""
    score: float | None
    """Estimated cycles of a multiprocessor; less is better. None if a CTA does not fit, or its path depends
    on a missing input."""
    binding: str | None
    """The largest term."""
    terms: Mapping[str, float]
    """Term → cycles that it alone would take: units of a multiprocessor (`issue`, `alu`, `fma`, `xu`, `lsu`,
    `tensor`), `l2`, `dram`, `launch` of CTAs, `path`: waves × latency of one CTA."""
    fits: bool
    """False if a multiprocessor cannot hold one CTA: the launch would fail."""
    blocks: int | None
    """Resident CTAs per multiprocessor."""
    waves: int | None
    """Waves of CTAs."""
    unknown: tuple[str, ...] = field(default=())
    """Missing inputs; the score is incomplete or None without them."""
    notes: tuple[str, ...] = field(default=())
    same_as: int | None = None
    """The index of the first launch with the same binary, grid and arguments; None if it is the first."""


def chip_of(target: Target, gpu: str | None) -> Chip:
    """The GPU that launches are ranked for.

    Args:
        target: of the machine code.
        gpu: product name; None selects the default product of the target.

    Raises:
        UsageError: its rates are not known.
    """
    named = target if gpu is None else parse_target(gpu)
    if named.backend is not target.backend or named.arch.number // 10 != target.arch.number // 10:
        raise UsageError(f"{gpu} does not run machine code for {target}.", "Choose a GPU of that generation.")
    product, rates, limits = named.gpu.product, named.gpu.rates, named.limits.multiprocessor
    peaks = None if product is None else find_peaks(gpu or product.name) or find_peaks(product.name)
    if product is None or rates is None or limits is None or peaks is None:
        raise UsageError(
            f"Cannot rank launches for {gpu or named}: its rates or its bandwidth are unknown.",
            "Choose a known product with --gpu: H100, H200, A100, 4090 …",
        )
    megahertz = product.megahertz or 1800
    return Chip(
        gpu or product.name,
        rates,
        product.multiprocessors,
        product.l2_mib << 20,
        limits.shared,
        peaks.bandwidth / (megahertz * 1e6),
        TIMING,
    )


def judge_launch(
    loaded: Loaded, launch: Launch, chip: Chip, target: Target, *, index: int = 0, label: str = "", limit: int
) -> Ranked:
    """The estimate for one launch.

    Args:
        loaded: the kernel.
        launch: its grid and arguments.
        chip: the GPU.
        target: whose occupancy limits apply.
        index: index in the given launches.
        label: what distinguishes it.
        limit: steps after which it counts as endless.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    artifact = loaded.artifact
    cubin = None if loaded.cubin is None else read_cubin(loaded.cubin, loaded.program.name)
    taken = find_resources(artifact.target, artifact.metadata, binary=cubin)
    blocks = blocks_of(target, taken)
    nothing = Ranked(
        launch=index,
        hash=artifact.hash,
        label=label,
        score=None,
        binding=None,
        terms={},
        fits=blocks != 0,
        blocks=blocks,
        waves=None,
        unknown=(),
        notes=launch.notes,
    )
    if blocks == 0:
        return nothing
    sample = sample_launch(loaded, launch, limit=limit)
    unknown, notes = _unknown(sample), launch.notes
    if sample.counts.outside:
        first = sample.counts.outside[0]
        notes += (
            f"a {first.kind} outside of every tensor: CTA {first.cta}, thread {first.lane}, {first.near}; "
            "`predict` lists all",
        )
    if sample.ended or blocks is None or loaded.cubin is None:
        lacks = _CTAS
        if loaded.cubin is None:
            lacks = _OF_NVIDIA if loaded.beginning is not None else "control codes, which need a cubin"
        why = unknown or (lacks,)
        return replace(nothing, unknown=why, notes=notes)
    controls = read_controls(read_code(loaded.cubin, loaded.program.name))
    frame = 0 if cubin is None or cubin.frame_bytes is None else cubin.frame_bytes
    costs = find_costs(sample, chip, blocks, frame, int(taken.shared.value or 0))
    score, terms, waves = _score(sample, costs, controls, chip, blocks)
    binding = max(terms, key=lambda name: terms[name])
    return replace(
        nothing, score=score, binding=binding, terms=terms, waves=waves, unknown=unknown, notes=notes
    )


def blocks_of(target: Target, taken: Resources) -> int | None:
    """Resident CTAs per multiprocessor."""
    return find_occupancy(
        target,
        registers=taken.registers.value,
        shared_bytes=taken.shared.value,
        warps_per_block=taken.warps_per_block.value,
        barriers=taken.barriers.value,
        tensor_columns=taken.tensor_columns.value,
    ).blocks


def _unknown(sample: Sample) -> tuple[str, ...]:
    """The distinct missing inputs."""
    told = [reason for end in sample.ended for reason in end.reasons]
    told += [name for why in sample.counts.why.values() for name in sample.names.of(why)]
    return tuple(dict.fromkeys(told))


def _score(
    sample: Sample, costs: Costs, controls: Sequence[Control], chip: Chip, blocks: int
) -> tuple[float, dict[str, float], int]:
    """Score in cycles, its terms, and the number of waves."""
    warps = -(-sample.loaded.threads // 32)
    timing, issue = chip.timing, chip.rates.issue

    def together(held: int) -> Walk:
        """The walk of several CTAs in lockstep: as one CTA with the costs of all."""
        steps = costs.steps if held == 1 else {at: cost.times(held) for at, cost in costs.steps.items()}
        return walk(sample.way, controls, steps, max(held * warps / issue, 1), barrier_of(timing, warps))

    alone = together(1)
    each = dict(alone.busy)
    for unit, cycles in costs.others.items():
        each[unit] = each.get(unit, 0.0) + cycles
    each["issue"] = sum(sample.counts.executed) / len(sample.ctas) / issue
    ctas, multiprocessors = sample.launch.ctas, chip.multiprocessors
    most = -(-ctas // multiprocessors)
    held = min(blocks, most)
    waves = -(-most // held)
    # caches and memory are shared, so they see the average; other units are limited by the fullest
    # multiprocessor
    average = ctas / min(ctas, multiprocessors)
    terms = {name: cycles * (average if name in ("l2", "dram") else most) for name, cycles in each.items()}
    terms[LAUNCH] = most * launch_of(timing, warps, held)
    demands = [cycles / most for cycles in terms.values()]
    full, rest = divmod(most, held)
    apart = full * held / _throughput(held, demands, alone.cycles)
    if rest:
        apart += rest / _throughput(rest, demands, alone.cycles)
    terms[PATH] = waves * alone.cycles
    apart = max(apart, sum(cycles**timing.crowding for cycles in terms.values()) ** (1 / timing.crowding))
    in_step = alone.cycles if held == 1 else together(held).cycles
    in_step = full * in_step + (together(rest).cycles if rest else 0.0)
    share = timing.in_step / waves
    score = apart * (1 - share) + max(apart, in_step) * share
    return score, {name: round(cycles, 1) for name, cycles in sorted(terms.items()) if cycles}, waves


def barrier_of(timing: Timing, warps: int) -> int:
    """Cycles of a CTA barrier that all warps have reached."""
    return timing.barrier + timing.barrier_warp * warps


def launch_of(timing: Timing, warps: int, held: int) -> float:
    """Fewest cycles between the starts of two CTAs on one multiprocessor."""
    return max(timing.launch, timing.launch_warp * warps, timing.turn / held)


def _throughput(customers: int, demands: Sequence[float], alone: float) -> float:
    """CTAs that complete per cycle if `customers` CTAs share the units.

    Args:
        customers: resident CTAs per multiprocessor.
        demands: cycles that one CTA occupies each unit.
        alone: cycles of one CTA that runs alone.
    """
    total = sum(demands)
    thinks = max(alone - total, 0.0)
    apart = min(1.0, alone / total) if total else 1.0  # units busy at the same time do not add up
    queues = [0.0] * len(demands)
    rate = 1 / alone
    for number in range(1, customers + 1):
        stays = [demand * apart * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        rate = min(number / (sum(stays) + thinks), 1 / max(demands))
        queues = [rate * stay for stay in stays]
    return rate


def put_in_order(found: Sequence[Ranked]) -> list[Ranked]:
    """The best first; at the end those without a score, then those that do not fit."""
    return sorted(
        found,
        key=lambda row: (
            not row.fits,
            row.score is None,
            row.score if row.score is not None else 0.0,
            row.launch,
        ),
    )


# ── Many launches ────────────────────────────────────────────────────────────────────────────────


def rank_launches(
    contestants: Sequence[Contestant],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    limit: int = 50_000_000,
    processors: int = 1,
    progress: Callable[[Ranked], None] = lambda row: None,
) -> list[Ranked]:
    """The launches, the best first. The smallest kernels are estimated first.

    Args:
        contestants: the launches.
        disassemble: converts cubins to SASS.
        gpu: product name; None selects the default product of the kernels' target.
        limit: steps after which a launch counts as endless.
        processors: number of parallel processes.
        progress: called with each estimate when it is done.

    Raises:
        UsageError: the rates of the GPU are unknown, arguments are missing or wrong, or a grid is empty.
        CacheError: a kernel has no readable machine code.
    """
    labels, firsts = label_launches(contestants), find_twins(contestants)

    def judge(at: int) -> Ranked:
        one = contestants[at]
        with without_collection():
            loaded = load_kernel(one.artifact, disassemble)
            target = one.artifact.target or parse_target(f"sm_{loaded.program.arch}")
            loaded, launch = fit_launch(loaded, one.request, one.constants)
            limits = target if gpu is None else parse_target(gpu)
            return judge_launch(
                loaded, launch, chip_of(target, gpu), limits, index=at, label=labels[at], limit=limit
            )

    judged: dict[int, Ranked] = {}
    counted = Counter(firsts)
    by_code = sorted(set(firsts), key=lambda at: (size_of(contestants[at].artifact) or 0, at))
    for row in map_forked(judge, by_code, processors):
        for _ in range(counted[row.launch]):
            progress(row)
        judged[row.launch] = row
    twins = [
        replace(judged[first], launch=at, label=labels[at], hash=contestants[at].artifact.hash, same_as=first)
        for at, first in enumerate(firsts)
        if at != first
    ]
    return put_in_order([*judged.values(), *twins])
