"""`inspect-kernel baseline`: record the facts of kernels for `check`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.files.artifact import Artifact


@command()
def baseline(
    selection: Selection,
    code: MachineCode,
    output: options.Output = None,
    no_times: bool = options.option(
        "--no-times",
        "Predict no times of launches on record (of up to 4 per kernel; each takes seconds, a second run none).",
        False,
    ),
    budget: options.Budget = None,
) -> None:
    """Record facts and predicted times of kernels, for `check` to compare later caches with."""
    from artifact_inspector.api.baseline_records import record_kernels
    from artifact_inspector.cli._budget import limit_times
    from artifact_inspector.cli._loading import cached_lookup, has_facts, inspect_kernels, open_selected
    from artifact_inspector.comparison.baseline import RecordedTime
    from artifact_inspector.compiling.ask.manifest import group_launches
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.files.writer import write_pieces
    from artifact_inspector.hardware.products import modelled_product
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json.baseline import baseline_text, record_order
    from artifact_inspector.report.phrases import plural

    opened = open_selected(selection, code)
    if not opened.artifacts:
        raise UsageError(f"No kernels in {opened.cache.title}.", "Give a Triton cache with kernels.")
    kernels_have_facts: list[bool] = []
    gpu, directories = modelled_product(None, selection.target), [artifact.directory for artifact in opened.artifacts]
    launches = {} if no_times else group_launches(opened.cache.root, directories)
    outcomes: list[RecordedTime | str] = []

    def find_times(artifact: Artifact) -> tuple[RecordedTime, ...]:
        if artifact.hash not in launches:
            return ()  # imports no simulation
        from artifact_inspector.api.pair_prices import record_times
        from artifact_inspector.cli._launches import make_time_predictor

        times = list(record_times(artifact, launches[artifact.hash], make_time_predictor(code.nvdisasm), gpu))
        outcomes.extend(times)
        return tuple(time for time in times if not isinstance(time, str))

    def texts() -> Iterator[str]:
        for is_known, text in record_kernels(
            sorted(opened.artifacts, key=record_order),
            lambda artifacts: inspect_kernels(artifacts, opened.disassemble),
            lambda file: find_source(file, Path.cwd()),
            None if opened.disassemble else cached_lookup(None).index,
            has_facts,
            find_times,
        ):
            kernels_have_facts.append(is_known)
            yield text
        opened.exit_if_failed(kernels_have_facts)  # which leaves the former file

    parts = baseline_text(texts())
    with limit_times(budget, is_needed=bool(launches)):
        if output is None:
            write("".join(parts), sys.stdout)
        else:
            write_pieces(output, (part.encode() for part in parts))
    problems = Counter(outcome for outcome in outcomes if isinstance(outcome, str))
    for problem, count in problems.items():
        write_line(f"No time of {count} {plural('launch', count)}: {problem}", sys.stderr)
    if output is not None:
        count, times = len(kernels_have_facts), len(outcomes) - problems.total()
        predicted = f", with {times} predicted {plural('time', times)}" if times else ""
        write_line(f"{count} {plural('kernel', count)} recorded in {output}{predicted}", sys.stdout)
