"""Measured times and compiler facts: a row for each kernel and configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement as Width
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.measuring.measurement import Bench, MeasuredDevice, Measurement
from artifact_inspector.report.layout import phrase_text, plain_table
from artifact_inspector.report.phrases import mma_count
from artifact_inspector.report.region_work import load_depths
from artifact_inspector.report.resources import registers_text


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The device, the table, and the failures."""

    bench: Bench

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        device, rows = self.bench.device, self.bench.rows
        yield Text(_describe_device(device), "bold")
        yield Text(_describe_peaks(device), "dim")
        if any(row.config for row in rows):
            for (kernel, size), group in groupby(rows, key=lambda row: (row.kernel, row.size)):
                measurements = list(group)
                yield Text.assemble("\n", (kernel, "bold"), f"  {size}", _source_order(measurements))
                yield _configurations(measurements, device, console, options)
        else:
            yield Text()
            yield _kernels(rows, device, console, options)
        yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")
        yield from _failures(rows)


_KEY = (
    "ms: median launch time, L2 flushed before each launch. TFLOP/s, GB/s: from the least work and traffic "
    "of the problem. of peak: time at the vendor's peak, divided by the measured time. blk: blocks per SM or CU."
)
_FACTS = (("verdict", False), ("wait", True), ("MMA", True), ("regs", True), ("blk", True))
_TIMES = (("ms", True), ("TFLOP/s", True), ("GB/s", True), ("of peak", True), ("result", False))
_SHORT = {"num_warps": "warps", "num_stages": "stages"}
_Column = tuple[tuple[str, bool], Callable[[Measurement], str]]
"""Heading, right-aligned or not, and cell."""


def _describe_device(device: MeasuredDevice) -> str:
    driver = "" if device.driver is None else f" · driver {device.driver}"
    versions = f"Triton {device.triton} · torch {device.torch} · {device.date}"
    return f"{device.name} ({device.target}){driver} · {versions}"


def _describe_peaks(device: MeasuredDevice) -> str:
    peaks = device.peaks
    if peaks is None:
        return "peak rates unknown: no shares of the peak"
    rates = ", ".join(f"{unit} {rate / 1e12:g}" for unit, rate in peaks.flops.items())
    return f"peak: {peaks.bandwidth / 1e9:g} GB/s; TFLOP/s: {rates} ({peaks.source})"


def _source_order(rows: Sequence[Measurement]) -> str:
    orders = {next(iter(row.verdicts.values()), "") for row in rows}
    return f", {' or '.join(sorted(orders))} in the source" if orders - {""} else ""


def _configurations(
    rows: Sequence[Measurement], device: MeasuredDevice, console: Console, options: ConsoleOptions
) -> RenderableType:
    keys = list(dict.fromkeys(key for row in rows for key in row.config))
    return _fit_table(rows, device, ([_parameter_column(key) for key in keys],), console, options)


def _parameter_column(key: str) -> _Column:
    return (_SHORT.get(key, key), True), lambda row: str(row.config.get(key, ""))


def _kernels(
    rows: Sequence[Measurement], device: MeasuredDevice, console: Console, options: ConsoleOptions
) -> RenderableType:
    """Kernels in their default configuration; without sizes on a narrow terminal."""
    kernel: _Column = (("kernel", False), lambda row: row.kernel)
    size: _Column = (("size", False), lambda row: row.size)
    return _fit_table(rows, device, ([kernel, size], [kernel]), console, options)


def _fit_table(
    rows: Sequence[Measurement],
    device: MeasuredDevice,
    column_choices: Sequence[Sequence[_Column]],
    console: Console,
    options: ConsoleOptions,
) -> RenderableType:
    """The first table that fits the terminal, else the last.

    Args:
        column_choices: alternative first columns, before the compiler's facts and the times.
    """
    for columns in column_choices:
        for padding in (2, 1):
            table = plain_table(gap=padding)
            for heading, right in (*(heading for heading, _ in columns), *_FACTS, *_TIMES):
                table.add_column(heading, justify="right" if right else "left", no_wrap=True)
            for row in rows:
                parameter_cells = (cell(row) for _, cell in columns)
                table.add_row(*parameter_cells, *_facts_cells(row.facts), *_time_cells(row, device))
            if Width.get(console, options.update(width=10**4), table).maximum <= options.max_width:
                return table
    return table


def _facts_cells(facts: KernelFacts | None) -> list[str | Text]:
    if facts is None:
        return ["–"] * 5
    region, occupancy = facts.principal_region, facts.occupancy
    return [
        Text("–", "dim") if region is None else phrase_text(region),
        load_depths(facts),
        mma_count(facts),
        registers_text(facts),
        "" if occupancy is None or occupancy.blocks is None else str(occupancy.blocks),
    ]


def _time_cells(row: Measurement, device: MeasuredDevice) -> list[str | Text]:
    if row.milliseconds is None:
        return ["–", "", "", "", Text("failed", "bold red")]
    share = row.share(device.peaks)
    checked = Text("not checked", "dim") if row.deviation is None else Text("right")
    if row.is_wrong:
        checked = Text(f"wrong by {row.deviation:.2g}", "bold red")
    return [
        f"{row.milliseconds:.4f}" if row.milliseconds < 1 else f"{row.milliseconds:.3f}",
        "" if row.flops is None else f"{row.flops / 1e12:.1f}",
        "" if row.bandwidth is None else f"{row.bandwidth / 1e9:.0f}",
        "" if share is None else f"{100 * share[1]:.0f}% {share[0]}",
        checked,
    ]


def _failures(rows: Sequence[Measurement]) -> Iterable[RenderableType]:
    for row in rows:
        if row.message is not None:
            title = Text(
                f"\n{row.kernel}{''.join(f' {name}={value}' for name, value in row.config.items())} failed:", "bold red"
            )
            yield Group(title, Padding(Text(row.message), (0, 0, 0, 2)))
