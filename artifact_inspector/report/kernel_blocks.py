"""Blocks of the report on a kernel: accesses, compiler remarks, partitions, shared memory, autotuner times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.shared.shared_memory_usage import Allocation, SharedMemoryUsage
from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import LAUNCH_RECORD, OtherFile
from artifact_inspector.files.autotuning import AutotuneResult, EntryTiming
from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.model import RemarkKind, Stage
from artifact_inspector.report.layout import (
    MemoryStrip,
    folded_column,
    next_command,
    number_column,
    plain_table,
    text_column,
)
from artifact_inspector.report.phrases import plural, span
from artifact_inspector.vocabulary.finding_facts import describe_limit

if TYPE_CHECKING:
    from artifact_inspector.comparison.matrix import Variant


def worst_block(cache: str, kernels: Sequence[KernelFacts], *, others: Sequence[OtherFile] = ()) -> Iterator[Text]:
    """The first kernel with what limits it, and the command that explains it.

    Args:
        others: further files. If no finding says what limits a kernel, launches on record, or assumed ones, do.
    """
    sentence = describe_limit(kernels)
    if sentence is not None:
        yield Text.assemble(("\nworst", "bold"), f"  {sentence}", overflow="fold")
        words = [] if diagnosis_of(kernels[0]) is None else ["advise"]
        yield next_command(*words, Path(cache), kernels[0].artifact.hash[:8])
    elif any(other_file.kind == LAUNCH_RECORD for other_file in others):
        yield Text("\nNo finding says what limits a kernel. A simulated launch does:")
        yield next_command("advise", Path(cache))


def access_block(kernel: KernelFacts) -> RenderableType | None:
    """Access widths at the last stage, and each narrow load statement with its causes."""
    last = kernel.last
    if last is None or last.stage.order <= Stage.TTGIR.order or not last.accesses.total:
        return None
    head = Text("memory access", "bold")
    head.append(f"  bytes per thread in {last.stage.value}", "dim")
    grid = Table.grid(Column(no_wrap=True, style="dim"), folded_column(), padding=(0, 2, 0, 0))
    for label, text in _histograms(last.accesses):
        grid.add_row(label, text)
    body: list[RenderableType] = [grid]
    if any(load.causes for load in kernel.widths):
        body += ["", _causes(kernel)]
    for policy in kernel.policies:
        if policy.lost:
            location = policy.source or f"line {policy.line}"
            warning = f"{', '.join(policy.lost)} requested at {location}, but missing in {last.stage.value}"
            body.append(Text(warning, "yellow"))
    return Group(head, Padding(Group(*body), (0, 0, 0, 2)))


def _histograms(accesses: AccessCounts) -> Iterator[tuple[str, str]]:
    for label, widths in (("loads", accesses.loads), ("copies", accesses.copies), ("stores", accesses.stores)):
        if widths:
            yield label, _histogram(widths)
    for label, sizes in (("tile loads", accesses.tiles), ("tile stores", accesses.tile_stores)):
        if sizes:
            yield label, f"{_histogram(sizes)} per block"
    if accesses.predicated:
        folded = f", {accesses.folded_masks} with the mask folded into the access" if accesses.folded_masks else ""
        yield "masked", f"{accesses.predicated} of {accesses.total}{folded}"
    if accesses.cache:
        yield "cache", ", ".join(f"{modifier} ×{count}" for modifier, count in sorted(accesses.cache.items()))


def _histogram(widths: Mapping[int | None, int]) -> str:
    sorted_widths = sorted(((w, n) for w, n in widths.items() if w is not None), reverse=True)
    texts = [f"{width} B ×{count}" for width, count in sorted_widths]
    if None in widths:
        texts.append(f"unknown ×{widths[None]}")
    return ", ".join(texts)


def _causes(kernel: KernelFacts) -> Table:
    table = plain_table()
    for heading, right in (("load", False), ("B", True), ("count", True)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    table.add_column("why it is not wider", overflow="fold")
    for load in kernel.widths:
        if load.causes:
            table.add_row(
                " ".join(fragment for fragment in (load.name, load.source) if fragment),
                "–" if load.width is None else str(load.width),
                str(sum(load.widths.values())),
                "; ".join(dict.fromkeys(c.reason.value + (f" ({c.name})" if c.name else "") for c in load.causes)),
            )
    return table


def remarks_block(remarks: Sequence[CompilerRemark] | None) -> RenderableType | None:
    """A row for each remark; None if there is none, or if the compiler output was not recorded."""
    if not remarks:
        return None
    grid = Table.grid(text_column(), folded_column(), padding=(0, 2, 0, 0))
    for remark in remarks:
        text = Text(remark.message + "".join(f"; {note}" for note in remark.notes))
        text.append(f"  {_describe_location(remark)}".rstrip(), "dim")
        style = "" if remark.kind is RemarkKind.REMARK else "yellow"
        grid.add_row(Text(remark.code or f"{remark.tool} {remark.kind}", style), text)
    return Group(Text("compiler remarks", "bold"), Padding(grid, (0, 0, 0, 2)))


def _describe_location(remark: CompilerRemark) -> str:
    fragments = [] if remark.source is None else [remark.source]
    fragments += [f"called at {caller}" for caller in remark.called_from]
    fragments += [] if remark.ptx_line is None else [f"ptx line {remark.ptx_line}"]
    return " · ".join([*fragments, *([f"×{remark.count}"] if remark.count > 1 else [])])


def partitions_block(kernel: KernelFacts) -> RenderableType | None:
    """A row for each partition and for each barrier between them; None if the kernel is not warp-specialised."""
    if not kernel.partitions:
        return None
    headings = ("warps", "registers", "requested", "loads", "MMA", "barriers")
    table = plain_table(text_column("partition"), *map(number_column, headings), folded_column("loops"))
    for x in kernel.partitions:
        numbers = (x.warps, x.registers, x.registers_requested, x.loads, x.matrix, x.barriers)
        table.add_row(x.name, *("–" if number is None else str(number) for number in numbers), ", ".join(x.loops))
    tables = [Padding(table, (0, 0, 0, 2))]
    if kernel.partition_schedule is not None:
        columns = (
            text_column("barrier"),
            number_column("slots"),
            *map(folded_column, ("completed by", "waited for by")),
        )
        barriers = plain_table(*columns)
        for barrier in kernel.partition_schedule.barriers:
            completions = ", ".join(barrier.completed_by) or "–"
            barriers.add_row(barrier.name, str(barrier.slots), completions, ", ".join(barrier.waits))
        tables.append(Padding(barriers, (1, 0, 0, 2)))
    return Group(Text("warp partitions", "bold"), *tables)


MAP_WIDTH = 32


def bill_block(kernel: KernelFacts) -> RenderableType | None:
    """Every allocation with its offset; None for a kernel without TTGIR or without shared memory."""
    bill = kernel.bill
    if bill is None or (not bill.entries and not bill.declared):
        return None
    head = Text("shared memory", "bold")
    if bill.declared is not None:
        head.append(f"  {bill.declared} B per block", "dim")
    if bill.is_accounted:
        head.append(", all allocated in TTGIR", "dim")
    body: list[RenderableType] = [Text("; ".join(_describe_shared_limits(kernel)), "dim")]
    if bill.entries:
        body.append(_Entries(bill))
    if bill.note:
        body.append(Text(bill.note, "yellow"))
    return Group(head, Padding(Group(*body), (0, 0, 0, 2)))


def _describe_shared_limits(kernel: KernelFacts) -> Iterator[str]:
    static, target = kernel.resources.static_shared, kernel.artifact.target
    if static.value is not None:
        yield f"{static.value} B static ({static.source}), the rest dynamic"
    if target is None or target.limits.shared_per_block is None:
        return
    opt_in_limit, default_limit = target.limits.shared_per_block, target.limits.shared_per_block_static
    without = (
        f" ({default_limit} B without opt-in)" if default_limit is not None and default_limit != opt_in_limit else ""
    )
    yield f"limit per block on {target}: {opt_in_limit} B{without}"


@dataclass(frozen=True, slots=True)
class _Entries:
    """A row for each allocation, with the map if it fits."""

    bill: SharedMemoryUsage

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bill = self.bill
        placed = bill.peak if all(entry.offset is not None for entry in bill.entries) else None
        width = min(MAP_WIDTH, options.max_width - 80) if placed else 0
        table = plain_table(
            number_column("bytes"),
            number_column("buffers"),
            folded_column("for"),
            text_column("allocated at"),
            number_column("ttgir lines"),
        )
        if width >= 8:
            table.add_column(f"0 … {placed}", no_wrap=True)
        for entry in bill.entries:
            cells: list[RenderableType] = [
                "?" if entry.bytes is None else str(entry.bytes),
                str(entry.buffers),
                _purpose(entry),
                entry.source or f"line {entry.line}",
                Text(span(entry.first, entry.last), "dim"),
            ]
            if width >= 8 and placed:
                assert entry.offset is not None
                assert entry.bytes is not None
                cells.append(MemoryStrip(entry.offset, entry.bytes, entry.buffers, placed, width))
            table.add_row(*cells)
        yield table


def _purpose(entry: Allocation) -> str:
    """The purpose of an allocation, without the file name if the allocation is in the same file."""
    file = "" if entry.source is None else entry.source.file
    purpose = entry.purpose.replace(f"{file}:", ":") if file else entry.purpose
    return f"{entry.name}: {purpose}" if entry.name else purpose


MAX_ROWS = 12
MAX_KEYS = 6


def tunings_block(tunings: Sequence[AutotuneResult], variants: Sequence[Variant]) -> RenderableType:
    """A table for each autotuning key: the time of each configuration and the matching variants."""
    renderables: list[RenderableType] = []
    for tuning in tunings:
        key = ", ".join(tuning.key)
        renderables.append(Text(f"Triton's autotuner timings for {key}", "bold", overflow="fold"))
        table = plain_table(
            number_column("ms"), number_column("× best"), folded_column("configuration"), folded_column("variants")
        )
        best = tuning.timings[0].milliseconds if tuning.timings else None
        for timing in tuning.timings[:MAX_ROWS]:
            descriptions = [f"{name}={value}" for name, value in timing.constants.items()]
            descriptions += [f"w{timing.num_warps} s{timing.num_stages}"]
            matching_variants = [
                form for form in variants if timing.is_of(form.kernel.artifact, form.summary.tiles or ())
            ]
            milliseconds = timing.milliseconds
            table.add_row(
                "failed" if milliseconds is None else f"{milliseconds:.4g}",
                "–" if milliseconds is None or not best else f"{milliseconds / best:.2f}",
                " ".join(descriptions),
                ", ".join(f"{form.label} {form.kernel.artifact.hash[:8]}" for form in matching_variants) or "not found",
            )
        renderables.append(table)
        omitted = len(tuning.timings) - MAX_ROWS
        renderables.append(Text(f"{omitted} more {plural('configuration', omitted)}" if omitted > 0 else "", "dim"))
    return Group(*renderables)


def timing_cell(timings: Sequence[EntryTiming]) -> str:
    """Milliseconds of an entry, over all keys."""
    times = [milliseconds for timing in timings for milliseconds in timing.milliseconds if milliseconds is not None]
    if not times:
        return "failed" if timings else ""
    return f"{min(times):.4g}" if min(times) == max(times) else f"{min(times):.4g}–{max(times):.4g}"


def describe_timings(timings: Sequence[EntryTiming]) -> Iterator[tuple[str, str]]:
    """The autotuner's times of one entry, one line per key."""
    for timing in timings[:MAX_KEYS]:
        times = [f"{milliseconds:.4g}" for milliseconds in timing.milliseconds if milliseconds is not None]
        text = f"{' or '.join(times)} ms" if times else "launch failed"
        if timing.is_fastest:
            text += ", the fastest"
        elif timing.fastest is not None:
            text += f" (fastest: {timing.fastest:.4g} ms)"
        configuration_count = f"{timing.configurations} {plural('configuration', timing.configurations)}"
        yield "timed", f"{text}, {configuration_count} for {', '.join(timing.key)} (Triton's autotuner)"
    if len(timings) > MAX_KEYS:
        yield "", f"and {len(timings) - MAX_KEYS} more keys"
