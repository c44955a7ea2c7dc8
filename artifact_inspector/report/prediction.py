"""The predicted counters, findings and CTA order of a launch, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.execution.order import CtaOrder
from artifact_inspector.execution.prediction import Line, Prediction
from artifact_inspector.execution.roofline import find_roofline
from artifact_inspector.execution.totals import NOT_OF_AMD, Counters, Range
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.hardware.peaks import Peaks

MOST_LINES = 12
"""Most source lines of a table: the costliest ones."""
MOST_UNKNOWN = 6
MOST_OUTSIDE = 6
"""Most out-of-bounds accesses that are listed one by one."""


@dataclass(frozen=True, slots=True)
class PredictionReport:
    """The predictions of some launches."""

    found: Sequence[Prediction]
    peaks: Peaks | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, prediction in enumerate(self.found):
            if at:
                yield Text()
            yield from _prediction(prediction, self.peaks)
        key = _KEY_AMD if all(prediction.is_amd for prediction in self.found) else _KEY
        yield Padding(Text(key), (1, 0, 0, 0), style="dim")


_KEY = (
    "Simulated without a GPU: addresses and control flow of the machine code, for every lane.\n"
    "sectors: 32 B pieces that warps request; ideal: if the bytes of all lanes were contiguous\n"
    "wavefronts: passes over shared memory; ideal: without bank conflicts"
)
_KEY_AMD = (
    "Simulated without a GPU: addresses and control flow of the machine code, for every lane.\n"
    "cache lines: lines that waves request, counted per instruction"
)


_UNMEASURED = {
    True: "Model not validated on AMD GPUs.",
    False: "Model validated on sm_90 only (H100, H200), not on {target}.",
}
"""For AMD, for NVIDIA."""


def _prediction(found: Prediction, peaks: Peaks | None) -> Iterator[Text | Table | Padding]:
    grid = "×".join(str(extent) for extent in found.grid)
    yield Text.assemble((found.kernel, "bold"), f"  {found.target}  grid {grid}, {found.threads} threads")
    if not found.held_against_hardware:
        yield Text(f"  {_UNMEASURED[found.is_amd].format(target=found.target)}")
    if found.outside:  # a bug: printed first, and in full below
        yield Text(f"  {next(describe_limits(found))}", style="bold")
    if found.sampled:
        yield Text("  Sampled: some CTAs were simulated, each for a group of similar ones.")
    grown = Table.grid(padding=(0, 2, 0, 0))
    grown.add_column()
    grown.add_column(overflow="fold")
    for label, text in describe_counters(found, peaks):
        grown.add_row(label, text)
    yield Padding(grown, (0, 0, 0, 2))
    yield from _lines(found.by_source or found.by_line, _AMD if found.is_amd else _COLUMNS)
    if found.cta_order is not None:
        yield from _order(found.cta_order, found.counters.unique_bytes_read is not None)
    yield from (Text(f"  {sentence}") for sentence in _sentences(found))


MOST_DRAWN = 40
"""Most rows and columns of a drawn grid."""


def _order(order: CtaOrder, is_read_known: bool) -> Iterator[Text | Padding]:
    first, *more = describe_order(order, is_read_known)
    yield Padding(Text(first), (1, 0, 0, 2))
    yield from (Text(f"    {sentence}") for sentence in more)
    yield from _drawn(order)


def describe_order(order: CtaOrder, is_read_known: bool) -> Iterator[str]:
    """The waves of a launch, the bytes they read, and the bytes other CTA orders would read."""
    first = order.waves[0]
    if first.ctas < order.ctas_per_wave:  # a single wave, which does not fill the GPU
        yield f"1 wave of {first.ctas} CTAs; {order.ctas_per_wave} are resident at once ({order.basis})"
    else:
        count = order.waves_in_all
        waves = "1 wave" if count == 1 else f"{count} waves"
        yield f"{waves} of {order.ctas_per_wave} resident CTAs ({order.basis})"
    if not is_read_known:
        yield "bytes read per wave: unknown"
        return
    blocks = (
        ""
        if first.distinct_tiles is None or first.tiles_asked is None
        else f"; {first.distinct_tiles:,} distinct of {first.tiles_asked:,} tiles"
    )
    share = first.distinct_bytes_read / first.bytes_asked if first.bytes_asked else 1
    yield (
        f"first wave: {first.distinct_bytes_read:,} distinct B of {first.bytes_asked:,} B requested "
        f"({share:.0%}){blocks}"
    )
    yield f"all waves: {order.distinct_bytes_read:,} B; footprint {order.footprint_bytes:,} B"
    own = (order.distinct_bytes_read, first.distinct_tiles)
    if order.others and all((x.distinct_bytes_read, x.first_wave_tiles) == own for x in order.others):
        yield "row-major, column-major and grouped CTA orders would read as much"
    else:
        for other in order.others:
            blocks = (
                "" if other.first_wave_tiles is None else f"; first wave {other.first_wave_tiles:,} tiles"
            )
            yield f"{other.name}: {other.distinct_bytes_read:,} B{blocks}"
    if order.fits_l2:
        yield "everything fits in L2, so another order saves no DRAM traffic"


def _drawn(order: CtaOrder) -> Iterator[Padding]:
    """The grid of tiles; each cell is the number of its wave."""
    if not order.tiles or order.waves_in_all == 1:
        return
    rows, columns = (1 + max(tile[axis] for tile in order.tiles) for axis in (0, 1))
    if max(rows, columns) > MOST_DRAWN:
        return
    waves = {tile: at // order.ctas_per_wave for at, tile in enumerate(order.tiles)}
    width = len(str(max(waves.values()) + 1))
    lines = [
        " ".join(f"{waves[row, column] + 1:>{width}}" for column in range(columns)) for row in range(rows)
    ]
    yield Padding(Text("\n".join(lines)), (1, 0, 0, 4))


def number(value: int | None) -> str:
    """A count with thousands separators; `?` if unknown."""
    return "?" if value is None else f"{value:,}"


def describe_counters(found: Prediction, peaks: Peaks | None) -> Iterator[tuple[str, str]]:
    """The counters of a launch as (label, text)."""
    c, amd = found.counters, found.is_amd
    yield "instructions", number(c.instructions) + _part("tensor", c.tensor_instructions)
    if c.flop is None or c.flop:
        by_type = "?" if c.flop is None else ", ".join(f"{k} {n:,}" for k, n in c.flop.items())
        yield "FLOP", by_type
    yield (
        "global memory",
        _join(
            _some("loads", c.global_load_instructions),
            _some("async copies", c.async_copy_instructions),
            _some("TMA copies", c.tensor_copy_instructions),
            _some("stores", c.global_store_instructions),
            _some("atomics", c.global_atomic_instructions),
        ),
    )
    if amd:
        yield "cache lines", number(c.cache_lines)
    else:
        yield "sectors loaded", _against(c.global_load_sectors, c.global_load_sectors_ideal)
        yield "sectors stored", _against(c.global_store_sectors, c.global_store_sectors_ideal)
    yield (
        "shared memory",
        _join(
            _some("loads", c.shared_load_instructions),
            _some("matrix loads", c.matrix_load_instructions),
            _some("stores", c.shared_store_instructions),
            _some("matrix stores", c.matrix_store_instructions),
            _some("atomics", c.shared_atomic_instructions),
        ),
    )
    if c.shared_wavefronts != 0 and not amd:
        yield "wavefronts", _against(c.shared_wavefronts, c.shared_wavefronts_ideal)
    if c.local_load_instructions or c.local_store_instructions:
        spilled = f"{number(c.local_load_instructions)} loads, {number(c.local_store_instructions)} stores"
        yield "local memory", spilled
    yield "distinct bytes", f"{number(c.unique_bytes_read)} read, {number(c.unique_bytes_written)} written"
    if not amd:
        yield "DRAM", _range(c.dram_bytes_read)
    if c.masked_lanes and c.memory_lanes:
        share = c.masked_lanes / c.memory_lanes
        yield "masked lanes", f"{c.masked_lanes:,} of {c.memory_lanes:,} in global memory ({share:.1%})"
    barriers, branches = "barrier" + "s" * (c.barriers != 1), "branch" + "es" * (c.divergent_branches != 1)
    yield "control", f"{number(c.barriers)} {barriers}, {number(c.divergent_branches)} divergent {branches}"
    yield from _roofline(c, peaks)


def _roofline(counters: Counters, peaks: Peaks | None) -> Iterator[tuple[str, str]]:
    if not counters.intensity:
        return
    text = f"{counters.intensity:.1f} FLOP per distinct byte"
    found = find_roofline(counters, peaks)
    if found is not None:
        side = "memory" if found.is_bound_by_memory else "compute"
        text += f": {side}-bound (ridge of {found.product} at {found.ridge:.0f}, {found.unit})"
    yield "roofline", text


def _part(words: str, value: int | None) -> str:
    return f" ({number(value)} {words})" if value != 0 else ""


def _some(words: str, value: int | None) -> str:
    return "" if value == 0 else f"{number(value)} {words}"


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part) or "not used"


def _against(value: int | None, ideal: int | None) -> str:
    if value is None or ideal is None or not value:
        return number(value)
    return f"{value:,} (ideal {ideal:,}, {ideal / value:.0%})"


def _range(value: Range | None) -> str:
    if value is None:
        return "?"
    if value.low == value.high:
        return f"{value.low:,} B read"
    return f"{value.low:,} to {value.high:,} B read (does not fit in L2)"


_COLUMNS: Mapping[str, str] = {
    "executed": "executed", "sectors": "sectors", "sectors_ideal": "ideal", "wavefronts": "wavefronts",
    "wavefronts_ideal": "ideal",
}  # fmt: skip
"""Counter of a line → heading of its column."""
_AMD: Mapping[str, str] = {"executed": "executed", "cache_lines": "cache lines"}


def _lines(lines: Sequence[Line], columns: Mapping[str, str]) -> Iterator[Padding]:
    """The lines that access memory: the most wasteful ones, in source order."""
    touching = [line for line in lines if line.sectors or line.wavefronts or line.cache_lines or _lacks(line)]
    if not touching:
        return
    shown = sorted(touching, key=_waste, reverse=True)[:MOST_LINES]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("line")
    for title in columns.values():
        table.add_column(title, justify="right")
    for line in sorted(shown, key=lambda line: (line.stage, line.line)):
        place = line.source if line.stage == "source" else f"{line.opcode} at {line.line}"
        table.add_row(
            place or "",
            *(
                number(line.executed) if name == "executed" else _blank(getattr(line, name))
                for name in columns
            ),
        )
    yield Padding(table, (1, 0, 0, 2))


def _lacks(line: Line) -> bool:
    """Whether its memory accesses are unknown."""
    return line.sectors is None and line.cache_lines is None


def _waste(line: Line) -> tuple[int, int]:
    touched = (line.sectors or 0) + (line.wavefronts or 0) + (line.cache_lines or 0)
    return (line.extra_sectors or 0) + (line.conflicts or 0), touched


def _blank(value: int | None) -> str:
    return "" if value == 0 else number(value)


def _sentences(found: Prediction) -> Iterator[str]:
    for finding in find_launch_findings(found):
        yield f"{finding.code} {finding.name}: {finding.remark.message}"
    yield from describe_limits(found)


def describe_limits(found: Prediction) -> Iterator[str]:
    """Out-of-bounds accesses of a launch, and counters that are unknown."""
    for outside in found.outside[:MOST_OUTSIDE]:
        source = f" ({outside.source})" if outside.source else ""
        yield (
            f"Out of bounds: {outside.opcode} at line {outside.line}{source}, CTA {outside.cta}, thread "
            f"{outside.lane}: {outside.kind} at {outside.address:#x}, {outside.near}"
        )
    if found.outside_count > len(found.outside[:MOST_OUTSIDE]):
        yield f"Out of bounds: {found.outside_count:,} lanes in total"
    inherent = NOT_OF_AMD if found.is_amd else {}
    grouped = _grouped(item for item in found.unknown.items() if item[1] != inherent.get(item[0]))
    for names, reason in grouped[:MOST_UNKNOWN]:
        yield f"Unknown: {', '.join(names)}: {reason}"
    wanted = dict.fromkeys(name for _, reason in grouped for name in _tensors_in(reason))
    if wanted:
        yield f'Give the integers of {", ".join(wanted)} in --launch FILE as "values": […].'
    if found.not_understood:
        yield f"Opcodes that are not simulated: {', '.join(found.not_understood)}"
    yield from found.notes


def _tensors_in(reason: str) -> Iterator[str]:
    """Tensors whose values are needed, without those that only hold pointers.

    Example:
        >>> [*_tensors_in("LDG at line 9: values of idx; memory that values of table point to")]
        ['idx']
    """
    for said in reason.split("values of ")[1:]:
        name, _, rest = said.partition(" ")
        if not rest.startswith("point to"):
            yield name.rstrip(";,.")


def _grouped(unknown: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """Unknown counters, grouped by reason."""
    found: dict[str, list[str]] = {}
    for name, reason in unknown:
        found.setdefault(reason, []).append(name)
    return [(names, reason) for reason, names in found.items()]
