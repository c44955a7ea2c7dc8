"""What came of compiling, capturing and measuring kernels, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.compiling import CompileResult, ProgramRun
from artifact_inspector.compiling.ask.capturing import CapturedKernel, Note, merge_notes
from artifact_inspector.measuring.measurement import Bench, MeasuredDevice, Measurement
from artifact_inspector.passes.bisection import Bisection
from artifact_inspector.passes.dump_facts import DumpFact
from artifact_inspector.passes.trace import PassTrace
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape, hidden, named, narrowed, present, rounded

Plain = bool | int | float | str | None

define_shape(
    CompileResult, lambda x: (
        x.kernel, x.kernel_path, named("target", x.target.arch), x.triton, x.config, x.types,
        narrowed(x.constants, Mapping[str, bool | int | float | str | list[Any] | None]),
        narrowed(x.options, Mapping[str, Plain]), rounded(x.seconds, 3), named("cached", x.is_cached), x.directory,
        x.message, x.remedy, *hidden(x.is_usage_error, x.details),
    ), title="CompiledKernel",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CompiledDocument(Document):
    """What came of compiling kernels: `inspect-kernel compile --json`."""

    compiled: tuple[CompileResult, ...]


define_shape(
    CapturedKernel, lambda x: (
        named("kernel", x.name), named("target", x.target.arch), x.hash, x.signature, x.constexprs,
        narrowed(x.options, Mapping[str, str | int | float | bool | None]), x.launches, x.benchmark_launches,
        named("compiled_for", x.compiled_for.line), rounded(x.seconds, 3),
    ),
)  # fmt: skip


define_shape(Note, lambda x: (x.text, x.location, named("targets", x.archs), *hidden(x.targets)))
define_shape(
    ProgramRun, lambda x: (
        named("target", x.target.arch), x.status, named("problem", x.message),
        *hidden(x.output, x.kernels, x.notes, x.problem),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CapturedDocument(Document):
    """What a program would launch: `inspect-kernel capture --json`."""

    captured: tuple[CapturedKernel, ...]
    runs: tuple[ProgramRun, ...]
    notes: tuple[Note, ...]


def captured_document(runs: Sequence[ProgramRun]) -> CapturedDocument:
    """The kernels of all runs, how each run went, and what could not be done as on the GPU."""
    return CapturedDocument(
        captured=tuple(kernel for run in runs for kernel in run.kernels),
        runs=tuple(runs),
        notes=tuple(merge_notes(note for run in runs for note in run.notes)),
    )


define_shape(DumpFact, lambda x: (x.topic, *hidden(x.by_names)))


@dataclass(frozen=True, kw_only=True)
class PassesDocument(Document):
    """What each pass of a compile changed: `inspect-kernel passes --json`."""

    passes: PassTrace


@dataclass(frozen=True, kw_only=True)
class BisectionDocument(Document):
    """The release where a kernel's facts changed: `inspect-kernel bisect --json`."""

    bisection: Bisection


define_shape(
    MeasuredDevice, lambda x: (
        x.date, x.name, named("target", x.target.arch), x.multiprocessors, x.cache_bytes, x.driver, x.torch, x.triton,
        named("peak_bandwidth", present(x.peaks).bandwidth), named("peak_flops", present(x.peaks).flops),
        named("peak_source", present(x.peaks).source),
    ), title="BenchDevice",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One kernel in one configuration."""

    measured: Measurement
    bound: str | None
    """What bounds it on this GPU: `memory`, or the type whose peak does."""
    share: float | None
    """Of that bound."""

    @property
    def deviation(self) -> float | None:
        """‖result − expected‖ / ‖expected‖."""
        deviation = self.measured.deviation
        return None if deviation is None else float(f"{deviation:.3g}")

    @property
    def is_correct(self) -> bool | None:
        """None where nothing says what to expect."""
        return None if self.measured.deviation is None else not self.measured.is_wrong

    @property
    def verdicts(self) -> Mapping[str, str] | None:
        """Stage → order of loads and computes in the region that the kernel is known by."""
        return None if self.measured.facts is None else self.measured.verdicts


def _bench_keys(x: BenchRow) -> tuple[object, ...]:
    run, facts = x.measured, present(x.measured.facts)
    return (
        run.kernel, run.size, narrowed(run.config, Mapping[str, str | int | float | bool | None]),
        rounded(run.milliseconds, 5), rounded(run.spread, 5), run.flops, run.bandwidth, x.bound, rounded(x.share, 4),
        x.deviation, run.tolerance, x.is_correct, facts.artifact.hash, x.verdicts, named("waits", facts.wait_depths),
        named("registers", facts.resources.registers.value),
        named("spill_bytes", facts.resources.spill_bytes.value),
        named("shared_bytes", facts.resources.shared.value), present(facts.occupancy).blocks,
        present(facts.occupancy).warps, run.message, *hidden(x.measured),
    )  # fmt: skip


define_shape(BenchRow, _bench_keys)


@dataclass(frozen=True, kw_only=True)
class BenchDocument(Document):
    """Measured kernels beside what the compiler made of them: `inspect-kernel bench --json`."""

    device: MeasuredDevice
    rows: tuple[BenchRow, ...]


def bench_document(bench: Bench) -> BenchDocument:
    """What was measured, as JSON."""
    return BenchDocument(device=bench.device, rows=tuple(_row(row, bench.device) for row in bench.rows))


def _row(row: Measurement, device: MeasuredDevice) -> BenchRow:
    bound, share = row.share(device.peaks) or (None, None)
    return BenchRow(row, bound, share)
