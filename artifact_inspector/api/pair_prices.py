"""Predicts the time of one launch of two kernels with the cost model of `rank`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any

from artifact_inspector.api.fact_prices import price_facts
from artifact_inspector.api.launches import modelled_time, predict_launches
from artifact_inspector.comparison.baseline import BaselineKernel, RecordedTime
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.matching import Candidate, have_equal_work
from artifact_inspector.comparison.pair_price import SECTORS, LaunchWork, LineConflicts, PairPrice, WorkKind
from artifact_inspector.compiling.ask.manifest import read_launches_below
from artifact_inspector.diagnosis.diagnose import bound_of, microseconds_of, roofline_share
from artifact_inspector.diagnosis.launch_model import LaunchModel, bytes_read, model_launch
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.execution.interpreter.budget import current_budget, limit_simulation
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_recorded
from artifact_inspector.execution.stored_values import StoredValues
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.dram_traffic import fetched_bytes
from artifact_inspector.execution.timing.launch_time import LaunchTime
from artifact_inspector.execution.timing.ranking import find_missing_inputs
from artifact_inspector.execution.timing.sampling import LaunchSample
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.digests import content_digest, index_key
from artifact_inspector.files.index import Index
from artifact_inspector.hardware.timing import BOUNDS
from artifact_inspector.vocabulary.fact import Sign

PairLaunch = tuple[LaunchRequest, LaunchRequest]
"""A launch of the old kernel, and one of the new kernel."""
MAX_STEPS = 5_000_000
"""Steps after which a simulated launch counts as endless: a comparison must stay fast."""
WHOLE_SECONDS = 20.0
"""Processor time for the simulation of a whole launch, as `predict` makes it; beyond it, samples are compared."""
SAMPLE_ERROR = 0.15
"""Of a ratio from samples, if the grids or the loads differ: reads that CTAs share are in neither of the times."""
_LEAST_CHANGE = 1.1
"""Factor from which an amount of work counts as changed."""
_MINOR = 0.05
"""Share of all sectors up to which a change of those of one tensor does not count."""
MAX_LAUNCHES = 4
"""Launches of a kernel that a baseline has times of: those of the largest grids."""
RecordedLaunch = tuple[Mapping[str, Any], Path]
"""A row of a record, and the directory of the record."""
PredictTime = Callable[[Artifact, LaunchRequest, str | None], PairPrice]
"""The predicted time of a launch on a product, as the price of a kernel beside itself."""


def find_pair_launch(left: Artifact, right: Artifact, roots: Sequence[Path]) -> PairLaunch | None:
    """The recorded launches to compare; None if neither kernel has one.

    Each kernel has its own launch if both got the same arguments, or tensors that differ in their types only. Else one
    launch is of both kernels, if their tiles, or the tiles that they store and their constants as far as recorded,
    agree: the grid then covers the same work.

    Args:
        roots: the cache directories whose records are read, the new kernel's last.

    Raises:
        UsageError: no recorded launch of one kernel fits the other one.
    """
    old, new = (_recorded_rows(artifact, roots) for artifact in (left, right))
    constants = {*left.constants, *right.constants}
    for keys, (row, root), (old_row, old_root) in product((_TENSOR, _LAYOUT), new, old):
        if _arguments(row, constants, keys) == _arguments(old_row, constants, keys):
            return _request_of(old_row, old_root), _request_of(row, root)
    first = [_arguments(side[0][0], constants) for side in (old, new) if side]
    types = [{name: value[1] for name, value in side.items() if isinstance(value, tuple)} for side in first]
    for row, root in (new or old)[:1]:
        if types[0] != types[-1] or not have_equal_work(Candidate(left), Candidate(right)):
            problem = "are of only one kernel, and the tiles differ"
            if new and old:
                problem = f"of the old and the new kernel differ in arguments: {_describe_difference(*first)}"
            raise UsageError(f"the recorded launches {problem}; --launch FILE gives one")
        request = _request_of(row, root)
        return request, request
    return None


def _recorded_rows(artifact: Artifact, roots: Sequence[Path]) -> list[tuple[Mapping[str, Any], Path]]:
    recorded = [pair for root in reversed(roots) for pair in read_launches_below(root, [artifact.directory])]
    rows: list[tuple[Mapping[str, Any], Path]] = [pair for pair in recorded if pair[0].get("hash") == artifact.hash]
    return [pair for pair in rows if not pair[0].get("tuning")] or rows


def _request_of(row: Mapping[str, Any], root: Path) -> LaunchRequest:
    return replace(parse_recorded([row], root)[0], kernel_hash=None)


_TENSOR, _LAYOUT = ("shape", "dtype"), ("shape", "stride")
"""Properties of a tensor by which two launches are the same, and those by which only their types differ."""


def _arguments(row: Mapping[str, Any], constants: Container[str], keys: Sequence[str] = _TENSOR) -> dict[str, Any]:
    """Argument → its number, or some properties of its tensor."""
    return {
        name: tuple(map(value.get, keys)) if isinstance(value, dict) else value
        for name, value in row.get("args", {}).items()
        if name not in constants
    }


def predict_pair(
    left: Artifact,
    right: Artifact,
    request: LaunchRequest | PairLaunch,
    disassemble: Disassemble | None,
    gpus: tuple[str | None, str | None] = (None, None),
    steps: int = MAX_STEPS,
    facts: Sequence[FactPair] = (),
    open_index: Callable[[], Index] | None = None,
    *,
    has_overlap: bool = True,
    whole_seconds: float = WHOLE_SECONDS,
) -> PairPrice:
    """The predicted cost of one launch of both kernels.

    Args:
        gpus: the product to model for each; by default that of its target.
        steps: instructions after which a launch counts as endless.
        facts: differing facts to price one by one.
        open_index: opens the result cache, in which the simulated traffic of each kernel is kept.
        has_overlap: predict the overlap of both too, which takes a quarter of the processor time.
        whole_seconds: processor time for all CTAs of one launch; 0 compares samples.
    """
    requests = request if isinstance(request, tuple) else (request, request)
    launch = _describe_launch(requests[1], left)
    try:
        candidates = [
            RankingCandidate(artifact, own_request, artifact.constants)
            for artifact, own_request in zip((left, right), requests, strict=True)
        ]
        is_one_kernel = left is right and requests[0] is requests[1] and gpus[0] == gpus[1]
        models = [
            model_launch(x, disassemble, gpu=gpu, limit=steps, fetched=_stored_traffic(open_index, x))
            for x, gpu in [*zip(candidates, gpus, strict=True)][is_one_kernel:]
        ] * (1 + is_one_kernel)
        sides = ("it", "it") if is_one_kernel else ("the old kernel", "the new kernel")
        problem = next(filter(None, map(_describe_problem, sides, models)), "")
        predicted = [] if problem else _predict_whole(candidates, models, gpus, disassemble, steps, whole_seconds)
    except InspectorError as error:
        return unknown_price(error.message.splitlines()[0].rstrip("."), launch, gpus[1] or "")
    is_one_gpu = left.target == right.target and gpus[0] == gpus[1]
    old, new = models
    bounds = [bound_of(model) if model.time is not None else None for model in models]
    times, work = [microseconds_of(model) for model in models], () if problem else _compare_work(old, new)
    if predicted:
        bounds, times = [time.bound for time in predicted], [time.us for time in predicted]
    bottlenecks = [bound and _UNITS.get(bound, bound) for bound in bounds]
    are_alike = old.sample.launch.grid == new.sample.launch.grid and all(one.kind is not WorkKind.LOADS for one in work)
    costs = times if None not in times or not is_one_gpu else [old.cycles, new.cycles]
    timed = [None if problem or not has_overlap else model.launch_time for model in models]
    overlaps = [x if x is None else x.overlap(model.sample) for x, model in zip(timed, models, strict=True)]
    rooflines = [None if is_one_gpu else roofline_share(*side) for side in zip(models, times, strict=True)]
    price = PairPrice(
        ratio=None if problem or not costs[0] or not costs[1] else costs[1] / costs[0],
        left_cycles=old.cycles,
        right_cycles=new.cycles,
        left_bottleneck=bottlenecks[0],
        right_bottleneck=bottlenecks[1],
        launch=launch,
        gpu=" → ".join(dict.fromkeys(model.time.gpu.name for model in models if model.time is not None)),
        problem=problem,
        facts=price_facts(facts, old, new) if is_one_gpu and not problem else {},
        bank_conflicts=() if problem else _find_conflicts(old, new),
        work=work,
        left_overlap=overlaps[0],
        right_overlap=overlaps[1],
        left_microseconds=times[0],
        right_microseconds=times[1],
        left_roofline=rooflines[0],
        right_roofline=rooflines[1],
        is_sampled=not predicted or any(model.is_amd for model in models),
        is_validated=not any(model.is_amd for model in models),
    )
    return price if predicted or are_alike or not is_one_gpu else replace(price, same_within=SAMPLE_ERROR)


_UNITS = {names: unit for unit, names in reversed(BOUNDS.items())}
"""What `predict` calls a limit → the unit."""


def _predict_whole(
    candidates: Sequence[RankingCandidate],
    models: Sequence[LaunchModel],
    gpus: Sequence[str | None],
    disassemble: Disassemble | None,
    steps: int,
    seconds: float,
) -> list[LaunchTime]:
    """The times that `predict` prints; none if one is not predicted, or not in time. AMD's are those of a sample."""
    times: list[LaunchTime] = []
    if not seconds or any(model.time is None for model in models):
        return times
    outer = current_budget()
    for candidate, model, gpu in [*zip(candidates, models, gpus, strict=True)][models[0] is models[1] :]:
        left = seconds if outer is None else outer.remaining / 2  # samples of the next kernels must stay possible
        with limit_simulation(min(seconds, left)) as budget:
            pair = (candidate.artifact, candidate.request)
            predicted = [] if model.is_amd else predict_launches([pair], disassemble, gpu=gpu, steps=steps)
            time = predicted[0].time if predicted else modelled_time(model)
            if time is None or budget.is_spent():
                return []
        times.append(time)
    return [times[0], times[-1]]


def _compare_work(old: LaunchModel, new: LaunchModel) -> tuple[LaunchWork, ...]:
    counts = [_count_work(model) for model in (old, new)]
    if old.is_amd is not new.is_amd:  # warps and units of memory of other sizes
        counts = [Counter({key: n for key, n in count.items() if key[0] is WorkKind.DEVICE_READS}) for count in counts]
    rows = [
        LaunchWork(kind, f"{kind} {tensor}".rstrip(), *(side[kind, tensor] for side in counts))
        for kind, tensor in dict.fromkeys(chain(*counts))
    ]
    sectors = max(sum(count for (kind, _), count in side.items() if kind in SECTORS) for side in counts)
    rows = [one for one in rows if one.kind not in SECTORS or abs(one.right - one.left) > _MINOR * sectors]
    factors = {row: max(row.ratio, 1 / row.ratio) for row in rows}
    return tuple(sorted((row for row in rows if factors[row] >= _LEAST_CHANGE), key=lambda row: -factors[row]))


def _count_work(model: LaunchModel) -> Counter[tuple[WorkKind, str]]:
    """What a launch does: sectors of each tensor, bytes from device memory, wavefronts, instructions."""
    sample, counters, traffic = model.sample, model.counters, model.traffic
    scale, work = sample.launch.ctas / len(sample.ctas), Counter[tuple[WorkKind, str]]()
    for step in model.steps:
        tensor, sectors = traffic.tensor_of_step.get(step.index), traffic.requested_sectors.get(step.index, 0)
        if tensor is not None and sectors:
            kind = WorkKind.STORES if "store" in step.kind else WorkKind.LOADS
            work[kind, tensor] += round(scale * sectors)
    work[WorkKind.DEVICE_READS, ""] = round(bytes_read(model))
    work[WorkKind.WAVEFRONTS, ""] = round(scale * sum(counters.wavefronts))
    work[WorkKind.INSTRUCTIONS, ""] = round(scale * sum(counters.warps_executed))
    return work


def _find_conflicts(old: LaunchModel, new: LaunchModel) -> tuple[LineConflicts, ...]:
    counts = [_count_conflicts(model) for model in (old, new)]
    rows = [LineConflicts(line, *(round(side[line], 1) for side in counts)) for line in dict.fromkeys(chain(*counts))]
    return tuple(sorted((row for row in rows if row.left != row.right), key=lambda row: row.left - row.right))


def _count_conflicts(model: LaunchModel) -> Counter[str]:
    """Source line → wavefronts beyond the fewest possible ones, of one execution by a warp: of one trip in a loop."""
    conflicts: Counter[str] = Counter()
    executed, counters = model.counters.warps_executed, model.counters
    steps = [step for step in model.steps if counters.wavefronts[step.index] and executed[step.index]]
    trips = {step.source_place: executed[step.index] for step in sorted(steps, key=lambda one: executed[one.index])}
    for step in steps:
        excess = counters.wavefronts[step.index] - counters.wavefronts_ideal[step.index]
        # copies of the line before and after a loop are executed less often
        if excess > 0 and 2 * executed[step.index] > trips[step.source_place]:
            conflicts[step.source_place or "?"] += excess / executed[step.index]  # type: ignore[assignment]
    return conflicts


def _stored_traffic(
    open_index: Callable[[], Index] | None, candidate: RankingCandidate
) -> Callable[..., Mapping[str, float]]:
    """Reads the traffic of a launch from the result cache, or computes and stores it."""
    state, request_text = content_digest(candidate.artifact), repr(candidate.request)
    if open_index is None or state is None or StoredValues.__name__ in request_text:
        return fetched_bytes

    def find_fetched(sample: LaunchSample, *sizes: int) -> Mapping[str, float]:
        key = index_key(state, f"traffic {request_text} {sizes}".encode())
        with open_index() as index:
            stored = index.get([key]).get(key)
            fetched = fetched_bytes(sample, *sizes) if stored is None else json.loads(stored)
            budget = current_budget()
            if stored is None and not (budget is not None and budget.is_spent()):
                index.put({key: json.dumps(fetched).encode()})
        return fetched

    return find_fetched


def recall_price(
    open_index: Callable[[], Index] | None,
    pair: tuple[Artifact, Artifact],
    request: LaunchRequest | PairLaunch,
    predict: Callable[[], PairPrice],
    gpu: str | None = None,
) -> PairPrice:
    """The price of a pair from the result cache, else computed and stored: a stopped `regress --prices` goes on there.

    Prices that a time limit cut short, or that depend on values in other files, are not stored.
    """
    state, request_text = [content_digest(artifact) for artifact in pair], f"{request!r} {gpu or ''}".rstrip()
    if open_index is None or None in state or StoredValues.__name__ in request_text:
        return predict()
    key = index_key(b"".join(filter(None, state)), f"price {request_text}".encode())
    with open_index() as index:
        for stored in index.get([key]).values():
            fields = json.loads(stored)
            rows = tuple(LineConflicts(*row) for row in fields.pop("bank_conflicts"))
            work = tuple(LaunchWork(WorkKind(kind), *row) for kind, *row in fields.pop("work"))
            return PairPrice(**fields, bank_conflicts=rows, work=work)
    price, budget = predict(), current_budget()
    is_short = price.is_sampled and price.is_validated and budget is not None and budget.remaining < 2 * WHOLE_SECONDS
    if not is_short and (budget is None or budget.reason != price.problem):
        with open_index() as index:
            index.put({key: json.dumps(asdict(price)).encode()})
    return price


def record_times(
    artifact: Artifact, launches: Sequence[RecordedLaunch], predict: PredictTime, gpu: str | None
) -> Iterator[RecordedTime | str]:
    """The predicted time of each recorded launch of a kernel, or why it is unknown.

    Args:
        gpu: the product to model; None for that of the target.
    """
    rows = [(row, root) for row, root in launches if not row.get("tuning")]
    distinct: dict[str, RecordedLaunch] = {}
    for row, root in sorted(rows, key=lambda pair: -prod(x for x in _grid_of(pair[0]) if isinstance(x, int))):
        distinct.setdefault(f"{_grid_of(row)} {_arguments(row, ())}", (row, root))
    for row, root in list(distinct.values())[:MAX_LAUNCHES]:
        try:
            price = predict(artifact, _request_of(row, root), gpu)
        except UsageError as error:
            yield error.message
            continue
        launch = {name: value for name, value in row.items() if name not in _OF_CACHE}
        times = (price.right_microseconds, price.right_cycles)
        time = RecordedTime(launch, gpu, *times, price.right_bottleneck, price.is_sampled)
        yield price.problem if price.ratio is None else time


_OF_CACHE = ("hash", "kernel", "target", "tuning")
"""Keys of a recorded launch that say which entry of the cache it is of."""


def _grid_of(row: Mapping[str, Any]) -> Sequence[Any]:
    grid = row.get("grid")
    return grid if isinstance(grid, list) else [grid]


def price_record(
    recorded: BaselineKernel, candidate: Candidate, launches: Sequence[RecordedLaunch], root: Path, predict: PredictTime
) -> PairPrice:
    """The recorded time of a launch, and that of the kernel as it is now: of several launches, the one that got worst.

    Args:
        launches: those of the kernel as it is now on record; with other tiles, only they fit.
    """
    prices = [_price_launch(recorded, time, candidate, launches, root, predict) for time in recorded.times]
    # an unknown time may be worse than all that did not get worse
    return max(prices, key=lambda price: (price.direction is Sign.WORSE, price.ratio is None, price.ratio or 0))


def _price_launch(
    recorded: BaselineKernel,
    time: RecordedTime,
    candidate: Candidate,
    launches: Sequence[RecordedLaunch],
    root: Path,
    predict: PredictTime,
) -> PairPrice:
    artifact = candidate.artifact
    constants, arguments = artifact.constants, _arguments(time.launch, artifact.constants)
    like = [(_arguments(time.launch, constants, keys), keys) for keys in (_TENSOR, _LAYOUT)]
    same_work = [pair for old, keys in like for pair in launches if _arguments(pair[0], constants, keys) == old]
    old_arguments = time.launch.get("args", {})
    is_same_work = have_equal_work(recorded, candidate) and all(
        old_arguments[name] == value for name, value in constants.items() if name in old_arguments
    )
    if not same_work and not is_same_work:
        return unknown_price("its tiles changed, and no launch with the recorded arguments is on record")
    try:
        now = predict(artifact, _request_of(*(same_work or [(time.launch, root)])[0]), time.gpu)
    except UsageError as error:
        return unknown_price(error.message)
    if now.ratio is None and launches and not same_work:
        changes = _describe_difference(arguments, _arguments(launches[0][0], constants))
        return unknown_price(f"its launch differs from the recorded one: {changes}")
    old_us, new_us = time.microseconds, now.right_microseconds
    if time.is_sampled is not now.is_sampled:  # cycles are those of samples, also where the whole launch was simulated
        old_us = new_us = None
    pairs = ((old_us, new_us), (time.cycles, now.right_cycles))
    old, new = next(((x, y) for x, y in pairs if x and y), (None, None))
    return replace(
        now,
        ratio=None if now.ratio is None or old is None or new is None else new / old,
        is_sampled=time.is_sampled or now.is_sampled,
        left_microseconds=old_us,
        right_microseconds=new_us,
        left_cycles=time.cycles,
        left_bottleneck=time.bottleneck,
    )


def _describe_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """In which arguments two launches differ: `vocab 50272 → 50257`."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    names.sort(key=lambda name: isinstance(new.get(name, old.get(name)), tuple))  # numbers say more than shapes
    changes = [f"{name} {_show(old.get(name))} → {_show(new.get(name))}" for name in names]
    omitted = f" and {len(changes) - 3} omitted" if len(changes) > 3 else ""
    return f"{', '.join(changes[:3])}{omitted}"


def _show(argument: Any) -> str:
    if isinstance(argument, tuple):
        return f"{argument[1]}[{','.join(map(str, argument[0] or ()))}]"
    return "absent" if argument is None else str(argument)


def unknown_price(problem: str, launch: str = "", gpu: str = "") -> PairPrice:
    """A price without figures, and why."""
    return PairPrice(None, None, None, None, None, launch, gpu, problem)


def _describe_problem(side: str, model: LaunchModel) -> str:
    if model.occupancy.blocks == 0:
        return f"{side} does not fit on a multiprocessor"
    missing_inputs = find_missing_inputs(model.sample)
    budget = current_budget()
    if budget is not None and budget.reason in missing_inputs:
        return budget.reason
    if model.cycles is None or missing_inputs:
        default = "rates that are unknown for its GPU"
        if not model.is_amd and model.sample.loaded.cubin is None:
            default = "control codes, which need a cubin"
        elif model.occupancy.blocks is None:
            default = "its registers, which no file states"
        return f"{side} depends on {', '.join(missing_inputs[:2]) or default}"
    return ""


def _describe_launch(request: LaunchRequest, artifact: Artifact) -> str:
    numbers = [
        f"{name}={value}"
        for name, value in request.kernel_arguments(artifact.constants).items()
        if isinstance(value, int) and not isinstance(value, bool) and "stride" not in name.lower()
    ]
    return " ".join(["grid", ",".join(map(str, request.grid)), *numbers[:4]])
