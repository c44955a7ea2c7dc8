"""The predicted counters, findings and CTA order of a launch, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.execution.cta_order import CtaOrder
from artifact_inspector.execution.launch_counters import NOT_ON_AMD, CounterRange, Counters
from artifact_inspector.execution.prediction import L2Prediction, LinePrediction, Prediction
from artifact_inspector.execution.roofline import find_roofline
from artifact_inspector.execution.timing.launch_time import LaunchTime, LineStall
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.report.kernel_rows import shorten
from artifact_inspector.report.phrases import format_us

MAX_LINES = 12
"""Most source lines of a table: the costliest ones."""
MAX_STALL_LINES = 5
MAX_OVERVIEW = 12
"""Most launches in the table above their predictions."""
MAX_UNKNOWN = 6
MAX_OUT_OF_BOUNDS = 6
"""Most out-of-bounds accesses that are listed one by one."""


@dataclass(frozen=True, slots=True)
class PredictionReport:
    """The predictions of some launches."""

    predictions: Sequence[Prediction]
    peaks: Peaks | None = None
    notes: Sequence[str] = ()
    """What was not simulated, and why."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        predictions = sort_by_time(self.predictions)
        if len(predictions) > 1:
            yield from _overview(predictions)
        for index, prediction in enumerate(predictions):
            if index or len(predictions) > 1:
                yield Text()
            yield from _prediction(prediction, self.peaks)
        for note in self.notes:
            yield Padding(Text(note), (1, 0, 0, 0))
        key = _KEY_AMD if all(prediction.is_amd for prediction in self.predictions) else _KEY
        yield Padding(Text(key), (1, 0, 0, 0), style="dim")


def sort_by_time(predictions: Sequence[Prediction]) -> list[Prediction]:
    """The launches that take longest first; those of unknown time last, in their order."""
    return sorted(predictions, key=lambda one: -1.0 if one.time is None else one.time.us, reverse=True)


def _overview(predictions: Sequence[Prediction]) -> Iterator[Text | Table]:
    """The time of each launch, the line where its warps wait most, and the sum."""
    total = sum(one.time.us for one in predictions if one.time is not None)
    if not total:
        return
    unknown = sum(one.time is None for one in predictions)
    without = f" without {unknown} of unknown time" if unknown else ""
    yield Text(f"{len(predictions)} launches take about {format_us(total)} µs{without}; the longest first\n", "bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for title in ("µs", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("kernel", "limited by", "most waiting"):
        table.add_column(title, overflow="fold")
    for one in predictions[:MAX_OVERVIEW]:
        line = next((stalls[0].line for stalls in worst_stalls(one)), "")
        known = (
            ("?", "", "")
            if one.time is None
            else (format_us(one.time.us), f"{one.time.us / total:.0%}", one.time.bound)
        )
        table.add_row(known[0], known[1], f"{shorten(one.kernel, 34)} {one.hash[:6]}", known[2], line)
    yield table
    if len(predictions) > MAX_OVERVIEW:
        yield Text(f"and {len(predictions) - MAX_OVERVIEW} more, all below")


_KEY = (
    "Simulated without a GPU: addresses and control flow of the machine code, for every lane.\n"
    "sectors: 32 B pieces that warps request; ideal: if the bytes of all lanes were contiguous\n"
    "wavefronts: passes over shared memory; ideal: without bank conflicts"
)
_KEY_AMD = (
    "Simulated without a GPU: addresses and control flow of the machine code, for every lane.\n"
    "cache lines: lines that waves request, counted per instruction"
)

_VALIDATION_NOTES = {
    True: "Model not validated on AMD GPUs.",
    False: "Model validated on sm_90 only (H100, H200), not on {target}.",
}
"""For AMD, for NVIDIA."""


def _prediction(prediction: Prediction, peaks: Peaks | None) -> Iterator[Text | Table | Padding]:
    grid = "×".join(str(extent) for extent in prediction.grid)
    yield Text.assemble(
        (prediction.kernel, "bold"), f"  {prediction.target}  grid {grid}, {prediction.threads} threads"
    )
    if not prediction.is_validated_on_hardware:
        yield Text(f"  {_VALIDATION_NOTES[prediction.is_amd].format(target=prediction.target)}")
    yield from (Text(f"  {sentence}", style="bold") for sentence in describe_out_of_bounds(prediction))
    yield from (Text(f"  {sentence}", style="bold") for sentence in describe_time(prediction.time))
    findings = find_launch_findings(prediction)
    yield from (Text(f"  {finding.code} {finding.name}: {finding.remark.message}") for finding in findings)
    if findings or prediction.stalls:
        yield Text(
            "  next  `inspect-kernel advise` with the same arguments names the causes, and what to change", "dim"
        )
    if prediction.sampled:
        yield Text("  Sampled: some CTAs were simulated, each for a group of similar ones.")
    grid_table = Table.grid(padding=(0, 2, 0, 0))
    grid_table.add_column()
    grid_table.add_column(overflow="fold")
    for label, text in describe_counters(prediction, peaks):
        grid_table.add_row(label, text)
    yield from _stalls(prediction)
    yield from _lines(prediction.by_source or prediction.by_line, _AMD if prediction.is_amd else _COLUMNS)
    yield Padding(grid_table, (1, 0, 0, 2))
    if prediction.cta_order is not None:
        yield from _order(prediction.cta_order, prediction.counters.unique_bytes_read is not None)
    yield from (Text(f"  {sentence}") for sentence in describe_limits(prediction))


MAX_GRID_SIZE = 40
"""Most rows and columns of a drawn grid."""


def _order(order: CtaOrder, is_read_known: bool) -> Iterator[Text | Padding]:
    first, *further_sentences = describe_order(order, is_read_known)
    yield Padding(Text(first), (1, 0, 0, 2))
    yield from (Text(f"    {sentence}") for sentence in further_sentences)
    yield from _draw_waves(order)


def describe_order(order: CtaOrder, is_read_known: bool) -> Iterator[str]:
    """The waves of a launch, the bytes they read, and the bytes other CTA orders would read."""
    first = order.waves[0]
    if first.ctas < order.ctas_per_wave:  # a single wave, which does not fill the GPU
        yield f"1 wave of {first.ctas} CTAs; {order.ctas_per_wave} are resident at once ({order.basis})"
    else:
        count = order.wave_count
        waves = "1 wave" if count == 1 else f"{count} waves"
        yield f"{waves} of {order.ctas_per_wave} resident CTAs ({order.basis})"
    if order.l2_caches > 1:
        yield f"{order.l2_caches} XCDs get CTAs in turn, each with an L2: what several read counts for each of them"
    if order.name is not None:
        yield f"order of the CTAs: {order.name}"
    if not is_read_known:
        yield "bytes read per wave: unknown"
        return
    blocks = (
        ""
        if first.distinct_tiles is None or first.tiles_requested is None
        else f"; {first.distinct_tiles:,} distinct of {first.tiles_requested:,} tiles"
    )
    share = first.distinct_bytes_read / first.bytes_requested if first.bytes_requested else 1
    yield (
        f"first wave: {first.distinct_bytes_read:,} distinct B of {first.bytes_requested:,} B requested "
        f"({share:.0%}){blocks}"
    )
    yield f"all waves: {order.distinct_bytes_read:,} B; footprint {order.footprint_bytes:,} B"
    this_order = (order.distinct_bytes_read, first.distinct_tiles)
    if order.alternatives and all(
        (x.distinct_bytes_read, x.first_wave_tiles) == this_order for x in order.alternatives
    ):
        yield "row-major, column-major and grouped CTA orders would read as much"
    else:
        names: dict[tuple[int, int | None], list[str]] = {}
        for x in sorted(order.alternatives, key=lambda x: x.distinct_bytes_read):
            names.setdefault((x.distinct_bytes_read, x.first_wave_tiles), []).append(x.name)
        for (size, tiles), equal in names.items():
            yield f"{' · '.join(equal)}: {size:,} B" + ("" if tiles is None else f"; first wave {tiles:,} tiles")
    if order.fits_l2 and order.l2_caches == 1:
        yield "everything fits in L2, so another order saves no DRAM traffic"


def _draw_waves(order: CtaOrder) -> Iterator[Padding]:
    """The grid of tiles; each cell is the number of its wave."""
    if not order.tiles or order.wave_count == 1:
        return
    rows, columns = (1 + max(tile[axis] for tile in order.tiles) for axis in (0, 1))
    if max(rows, columns) > MAX_GRID_SIZE:
        return
    waves = {tile: at // order.ctas_per_wave for at, tile in enumerate(order.tiles)}
    width = len(str(max(waves.values()) + 1))
    lines = [" ".join(f"{waves[row, column] + 1:>{width}}" for column in range(columns)) for row in range(rows)]
    yield Padding(Text("\n".join(lines)), (1, 0, 0, 4))


def describe_time(time: LaunchTime | None) -> Iterator[str]:
    """The predicted time, what limits it, and what prolongs it."""
    if time is None:
        return
    validated = "" if time.is_validated else " (not validated on this GPU)"
    bound = f"{time.bound} and {', '.join(time.bound_alike)} alike" if time.bound_alike else time.bound
    yield (
        f"about {format_us(time.us)} µs ({format_us(time.low)} to {format_us(time.high)}) on {time.gpu}, limited by "
        f"{bound}{validated}"
    )
    waves = "1 wave" if time.waves == 1 else f"{time.waves} waves"
    if time.imbalance > 1.05:
        yield f"{waves} of CTAs; unequal work of CTAs takes {time.imbalance - 1:.0%} more time"
    if time.overlap is not None:
        yield f"overlap: while a warp waits for global memory, others work in {time.overlap:.0%} of the cycles"


_STALLS: Mapping[str, str] = {
    "long scoreboard": "data from global memory (long scoreboard)",
    "short scoreboard": "data from shared memory or a special function (short scoreboard)",
    "barrier": "a barrier or matrix products (barrier)",
    "math pipe throttle": "a busy arithmetic unit (math pipe throttle)",
    "lg throttle": "the queue of global accesses (lg throttle)",
    "mio throttle": "the queue of shared accesses (mio throttle)",
    "wait": "the instruction before (wait)",
    "not selected": "another warp issues (not selected)",
}
"""Nsight Compute's term → what warps wait for, with the term, which is printed once."""


def worst_stalls(prediction: Prediction) -> list[list[LineStall]]:
    """The stalls of each line, the line with the most cycles first."""
    by_line: dict[str, list[LineStall]] = {}
    for stall in prediction.stalls:
        by_line.setdefault(stall.line, []).append(stall)
    return sorted(by_line.values(), key=lambda stalls: -sum(stall.cycles for stall in stalls))


def _stalls(prediction: Prediction) -> Iterator[Padding]:
    """The lines where warps wait most, with their main reasons."""
    total = sum(stall.cycles for stall in prediction.stalls)
    if not total:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("line")
    table.add_column("stalled", justify="right")
    table.add_column("what warps wait for", overflow="fold")
    names = dict(_STALLS)
    for stalls in worst_stalls(prediction)[:MAX_STALL_LINES]:
        shown = [stall for stall in stalls[:3] if stall.cycles > total / 50]
        why = ", ".join(f"{names.get(stall.reason, stall.reason)} {stall.cycles / total:.0%}" for stall in shown)
        names.update((stall.reason, names[stall.reason].partition(" (")[0]) for stall in shown if stall.reason in names)
        table.add_row(stalls[0].line, f"{sum(stall.cycles for stall in stalls) / total:.0%}", why)
    yield Padding(table, (1, 0, 0, 2))


def format_count(value: int | None) -> str:
    """A count with thousands separators; `?` if unknown."""
    return "?" if value is None else f"{value:,}"


def describe_counters(prediction: Prediction, peaks: Peaks | None) -> Iterator[tuple[str, str]]:
    """The counters of a launch as (label, text)."""
    c, amd = prediction.counters, prediction.is_amd
    unit = "tensor" if prediction.has_matrix_products else "HFMA2.MMA in the tensor pipe, no matrix product"
    yield (
        "instructions",
        format_count(c.instructions)
        + (f" ({format_count(c.tensor_instructions)} {unit})" if c.tensor_instructions != 0 else ""),
    )
    if c.flop is None or c.flop:
        by_type = "?" if c.flop is None else ", ".join(f"{k} {n:,}" for k, n in c.flop.items())
        yield (
            "FLOP",
            f"{by_type} executed" + ("; more than the result needs, see below" if prediction.repeats_work else ""),
        )
    accesses = _join(
        _counted("loads", c.global_load_instructions),
        _counted("async copies", c.async_copy_instructions),
        _counted("TMA copies", c.tensor_copy_instructions),
        _counted("stores", c.global_store_instructions),
        _counted("atomics", c.global_atomic_instructions),
    )
    if accesses:
        yield "global memory", accesses
    if amd:
        yield "cache lines", format_count(c.cache_lines)
    else:
        if c.global_load_sectors != 0:
            yield "sectors loaded", _with_ideal(c.global_load_sectors, c.global_load_sectors_ideal)
        if c.global_store_sectors != 0:
            yield "sectors stored", _with_ideal(c.global_store_sectors, c.global_store_sectors_ideal)
    shared = _join(
        _counted("loads", c.shared_load_instructions),
        _counted("matrix loads", c.matrix_load_instructions),
        _counted("stores", c.shared_store_instructions),
        _counted("matrix stores", c.matrix_store_instructions),
        _counted("atomics", c.shared_atomic_instructions),
    )
    if shared:
        passes = "; passes over LDS are not counted, `advise` estimates bank conflicts" if amd else ""
        yield "shared memory", f"{shared}{passes}"
    if c.shared_wavefronts != 0 and not amd:
        yield "wavefronts", _with_ideal(c.shared_wavefronts, c.shared_wavefronts_ideal)
    if c.local_load_instructions or c.local_store_instructions:
        spilled = f"{format_count(c.local_load_instructions)} loads, {format_count(c.local_store_instructions)} stores"
        if c.local_load_sectors is not None:
            spilled += f"; sectors: {c.local_load_sectors:,} loaded, {format_count(c.local_store_sectors)} stored"
        yield "local memory", spilled
    yield (
        "distinct bytes",
        f"{format_count(c.unique_bytes_read)} read, {format_count(c.unique_bytes_written)} written",
    )
    if not amd:
        l2, order = prediction.l2, prediction.cta_order
        is_too_large = l2 is not None or (order is not None and order.fits_l2 is False)
        suffix = " (does not fit in L2)" * is_too_large
        yield "DRAM", _range(c.dram_bytes_read, "read", None if l2 is None else l2.dram_bytes_read, suffix)
        yield "", _range(c.dram_bytes_written, "written", None, "")
        if prediction.l2 is not None:
            yield "cache hits", _hit_rates(prediction.l2)
    yield from _lanes(c)
    yield from _roofline(c, peaks)


def _lanes(c: Counters) -> Iterator[tuple[str, str]]:
    """Masked lanes and control flow."""
    if c.masked_lanes and c.memory_lanes:
        share = c.masked_lanes / c.memory_lanes
        yield "masked lanes", f"{c.masked_lanes:,} of {c.memory_lanes:,} in global memory ({share:.1%})"
    barriers, branches = "barrier" + "s" * (c.barriers != 1), "branch" + "es" * (c.divergent_branches != 1)
    control = _join(_counted(barriers, c.barriers), _counted(f"divergent {branches}", c.divergent_branches))
    if c.barriers != 0 or c.divergent_branches != 0:
        yield "control", control


def _roofline(counters: Counters, peaks: Peaks | None) -> Iterator[tuple[str, str]]:
    if not counters.intensity:
        return
    text = f"{counters.intensity:.1f} FLOP per distinct byte"
    position = find_roofline(counters, peaks)
    if position is not None:
        side = "memory" if position.is_memory_bound else "compute"
        text += f": {side}-bound (ridge of {position.gpu} at {position.ridge:.0f}, {position.peak_type})"
    yield "roofline", text


def _counted(unit: str, value: int | None) -> str:
    return "" if value == 0 else f"{format_count(value)} {unit}"


def _join(*texts: str) -> str:
    return ", ".join(text for text in texts if text)


def _with_ideal(value: int | None, ideal: int | None) -> str:
    if value is None or ideal is None or not value:
        return format_count(value)
    return f"{value:,} (ideal {ideal:,}, {ideal / value:.0%})"


def _hit_rates(l2: L2Prediction) -> str:
    by_tensor = ", ".join(f"{name} {rate:.0%}" for name, rate in l2.hit_rate_by_tensor.items())
    return f"{l2.hit_rate:.0%} of requests for pairs of sectors ({by_tensor})"


def _range(value: CounterRange | None, verb: str, expected: int | None, suffix: str) -> str:
    if value is None:
        return f"? B {verb}"
    if value.low == value.high:
        return f"{value.low:,} B {verb}"
    if expected is not None:
        return f"{expected:,} B {verb}, {value.low:,} to {value.high:,}{suffix}"
    return f"{value.low:,} to {value.high:,} B {verb}{suffix}"


_COLUMNS: Mapping[str, str] = {
    "executed": "executed", "sectors": "sectors", "sectors_ideal": "ideal", "wavefronts": "wavefronts",
    "wavefronts_ideal": "ideal",
}  # fmt: skip
"""Counter of a line → heading of its column."""
_AMD: Mapping[str, str] = {"executed": "executed", "cache_lines": "cache lines", "cache_lines_ideal": "ideal"}


def _lines(lines: Sequence[LinePrediction], columns: Mapping[str, str]) -> Iterator[Padding]:
    """The lines that access memory: the most wasteful first."""
    # a line whose traffic is unknown is shown
    memory_lines = [
        x for x in lines if x.sectors or x.wavefronts or x.cache_lines or x.sectors is x.cache_lines is None
    ]
    if not memory_lines:
        return
    shown_lines = sorted(memory_lines, key=memory_cost, reverse=True)[:MAX_LINES]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("line")
    for title in columns.values():
        table.add_column(title, justify="right")
    for line in shown_lines:
        location = line.source if line.stage == "source" else f"{line.opcode} at {line.line}"
        table.add_row(
            location or "",
            *(
                "" if name != "executed" and getattr(line, name) == 0 else format_count(getattr(line, name))
                for name in columns
            ),
        )
    yield Padding(table, (1, 0, 0, 2))


def memory_cost(line: LinePrediction) -> tuple[int, int]:
    """Sort key of lines: excess sectors and bank conflicts, then all traffic."""
    touched = (line.sectors or 0) + (line.wavefronts or 0) + (line.cache_lines or 0)
    return (line.excess_sectors or 0) + (line.bank_conflicts or 0), touched


def describe_out_of_bounds(prediction: Prediction) -> Iterator[str]:
    """Accesses of a launch outside of every tensor."""
    for outside in prediction.out_of_bounds[:MAX_OUT_OF_BOUNDS]:
        source = f" ({outside.source})" if outside.source else ""
        yield (
            f"Out of bounds: {outside.opcode} at line {outside.line}{source}, CTA {outside.cta}, thread "
            f"{outside.thread}: {outside.kind} at {outside.address:#x}, {outside.nearest_tensor}"
        )
    if prediction.out_of_bounds_lanes > len(prediction.out_of_bounds[:MAX_OUT_OF_BOUNDS]):
        yield f"Out of bounds: {prediction.out_of_bounds_lanes:,} lanes in total"


def describe_limits(prediction: Prediction) -> Iterator[str]:
    """Counters of a launch that are unknown, and why."""
    inherent = NOT_ON_AMD if prediction.is_amd else {}
    grouped = _group_by_reason(item for item in prediction.unknown.items() if item[1] != inherent.get(item[0]))
    for names, reason in grouped[:MAX_UNKNOWN]:
        yield f"Unknown: {', '.join(names)}: {reason}"
    tensor_names = dict.fromkeys(name for _, reason in grouped for name in _tensors_in(reason))
    if tensor_names:
        yield f'Give the integers of {", ".join(tensor_names)} in --launch FILE as "values": […].'
    if prediction.unsupported_opcodes:
        yield f"Opcodes that are not simulated: {', '.join(prediction.unsupported_opcodes)}"
    yield from prediction.notes


def _tensors_in(reason: str) -> Iterator[str]:
    """Tensors whose values are needed, without those that only hold pointers.

    Example:
        >>> [*_tensors_in("LDG at line 9: values of idx; memory that values of table point to")]
        ['idx']
    """
    for clause in reason.split("values of ")[1:]:
        name, _, tail = clause.partition(" ")
        if not tail.startswith("point to"):
            yield name.rstrip(";,.")


def _group_by_reason(unknown: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in unknown:
        names_by_reason.setdefault(reason, []).append(name)
    return [(names, reason) for reason, names in names_by_reason.items()]
