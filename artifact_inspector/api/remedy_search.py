"""Compiles and simulates changes of a launch, and keeps those that help and pass their checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.api.mask_remedy import with_mask_remedy
from artifact_inspector.api.option_compiles import can_recompile, find_better_options, recompile_options, request_for
from artifact_inspector.api.remedy_trial import (
    Trial,
    count_unique_bytes,
    describe_costs,
    predict_time,
    price_launches,
    rank_trial,
    saves,
    time_launches,
)
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.process import keep_workers, kept_processor_seconds
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.diagnosis.assumed_launch import ASSUMED, assume_indices
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.changes import (
    OPTIONS,
    TILE_NAMES,
    Change,
    can_cluster,
    changed_grid,
    constants_of,
    fit_registers,
    options_of,
    propose_changes,
)
from artifact_inspector.diagnosis.diagnose import diagnose, predict_microseconds
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.diagnosis.source_edits import SourceEdit, propose_edits
from artifact_inspector.diagnosis.tile_axes import find_tile_axes
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.execution.interpreter.budget import current_budget, limit_simulation
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact, open_cache

MOST_REMEDIES = 3
_REORDERED = 2.0**-16
"""Share of a result of positive terms by which it may differ with other tiles: they sum in another order."""
NOTHING_HELPS = "No change tried helps"
_GLUON = "Layouts and buffers of a Gluon kernel are in its source, and are not changed; it does not read num_stages."
_SPENT = "the budget is spent (its time, or half of it on processors); --budget raises it."
_BATCH = 4
_MOST_EXCESS = 1.5
"""Processor time over that of the budget after which nothing further is checked, even if no remedy is known yet."""
_LEAST_SECONDS = 4.0
"""Processor seconds for the simulations of a search, even if the diagnosis has spent the budget."""
_MASK_SHARE = 0.03
"""Share of the budget in which the launch is checked for accesses outside of its tensors."""
_FIRST_BATCH = 2
"""Changes that are tried before the cost of one is known."""
_LEAST_STEP = 1.02
"""Gain from which a change is combined with others."""
_LEAST_REDUCTION = 0.02
"""Share of the time that a cause must lose to count as reduced."""
_FAR = 0.5
"""Roofline over the predicted time of a launch that is far from it."""
_COMPARISON_SECONDS = 4.0
"""Processor time of a comparison in the interpreter: importing torch takes half of it."""
_LEAST_COMPARISON = 20.0
"""The same at least, even if the budget is spent: one that is cut off proves nothing."""
_LIBRARY_SECONDS = 8.0
"""Processor time of importing a library, as each compile of its source and each comparison does."""
_SEARCH_SHARE = 1 / 2
"""Share of the budget for the search; what is left is for the checks of the best."""
PROCESSOR_SHARE = 1 / 2
"""Processor time of the diagnosis, the search and the checks, over the budget, whose time bounds the command too."""


_Attempt = tuple[Change, SourceEdit | None]


def search_remedies(
    pair: tuple[Artifact, LaunchRequest],
    diagnosis: Diagnosis,
    make_disassembler: Callable[[Sequence[Artifact]], Disassemble | None],
    directory: Path,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    kernel: str | None = None,
    budget: float = 60.0,
    spent: float = 0.0,
    launch_seconds: float = 0.0,
    progress: Callable[[str], None] = lambda label: None,
) -> RemedySearch:
    """The changes that lower the predicted time of a launch: edits, options and constants, and combinations.

    Masks that the kernel of a known launch lacks come first.

    Args:
        steps: instructions after which a kernel counts as endless.
        kernel: `FILE.py:KERNEL`, the file to import and edit for a kernel that is not part of this package.
        budget: seconds after which nothing further is compiled.
        spent: processor seconds that the diagnosis took; each check takes about as many.
        launch_seconds: those of the launch's time by all CTAs; each gain by all CTAs takes about as many.
        progress: called with the best change so far, and with the one that is compiled.
    """
    (entry, request), faster = pair, RemedySearch((), 0, "")
    if diagnosis.causes and (diagnosis.microseconds is None or entry.target is None):
        faster = RemedySearch((), 0, _without_times(entry, diagnosis, directory, budget))
    elif diagnosis.causes:
        try:
            record, kernel_path, problem = _find_source(entry, kernel)
            settings = record, kernel_path, make_disassembler, directory, gpu, steps, spent, problem, launch_seconds
            search = _Search(entry, assume_indices(entry, request), diagnosis, *settings)
            with keep_workers(), limit_simulation(max(_LEAST_SECONDS, _MOST_EXCESS * budget * PROCESSOR_SHARE - spent)):
                search.run(budget, is_editable=kernel is not None, progress=progress)
                faster = search.verified(budget)
        except (UsageError, CompileError) as error:
            faster = RemedySearch((), 0, f"No change was tried: {error.message} {error.remedy or ''}".strip())
    if kernel is None or any(note.startswith(ASSUMED) for note in request.notes):
        return faster
    with limit_simulation(max(1.0, budget * _MASK_SHARE)):
        return with_mask_remedy(pair, faster, kernel, make_disassembler([entry]), gpu)


def _find_source(entry: Artifact, kernel: str | None) -> tuple[UntrustedRecord | None, str, str]:
    """How the kernel was compiled, what to import, and why its source cannot be compiled again.

    Raises:
        UsageError: neither source nor TTIR can be compiled.
    """
    try:
        record = recorded_compile(entry)
        return record, record.resolve_kernel_path(entry.display_name, kernel), ""
    except UsageError as error:
        if not can_recompile(entry):
            raise
        return None, "", f"Only options can be tried. {error.message} {error.remedy or ''}".rstrip()


def _without_times(entry: Artifact, diagnosis: Diagnosis, directory: Path, budget: float) -> str:
    """What helps by the facts of the machine code."""
    sentences: list[str] = []
    if budget > _LEAST_SECONDS and can_recompile(entry):
        sentences += find_better_options(entry, [cause.kind for cause in diagnosis.causes], directory / "options")
    return " ".join([*sentences, "Times are not predicted for this kernel, so changes are not ranked by time."])


@dataclass
class _Search:
    """A search by steps: all single changes, then the best one with each further change that helped."""

    entry: Artifact
    request: LaunchRequest
    diagnosis: Diagnosis
    record: UntrustedRecord | None
    kernel_path: str
    make_disassembler: Callable[[Sequence[Artifact]], Disassemble | None]
    directory: Path
    gpu: str | None
    steps: int
    spent: float
    source_problem: str = ""
    launch_seconds: float = 0.0

    def __post_init__(self) -> None:
        sampled, microseconds = self.diagnosis.sampled_microseconds, self.diagnosis.microseconds or 0.0
        self._launch_microseconds = 0.0 if sampled is None else microseconds  # of all CTAs; the search compares samples
        self.launch_seconds *= sampled is not None
        self.diagnosis = replace(self.diagnosis, microseconds=sampled or self.diagnosis.microseconds)
        self.trials: list[Trial] = []
        self.attempts: list[tuple[Change, str]] = []
        """Changes that were compiled, with the label of their edit."""
        self._files: dict[str, Path] = {}
        self._equalities: dict[str, bool | None] = {}
        self._start, self._processor_start = time.monotonic(), processor_seconds() - self.spent
        self._reserve = self._per_trial = self.spent / 2  # a trial starts no process
        self._diagnoses: dict[str, Diagnosis] = {}
        self.source = ""
        self.tile_axes: dict[str, tuple[int, ...]] = {}
        self._is_stopped = self._is_library = False
        self._unchecked, self._unpriced = 0, list[str]()
        self._original_bytes: tuple[int, int] | None = None
        self._options: dict[str, Any] = {"gpu": self.gpu, "limit": self.steps}
        if _is_far(self.diagnosis) and all(cause.kind is not CauseKind.REFETCHED for cause in self.diagnosis.causes):
            self._options["fetched"] = lambda *_: {}  # what device memory delivers again decides nothing there

    def run(self, budget: float, *, is_editable: bool, progress: Callable[[str], None]) -> None:
        """Try changes until the budget is spent, or none is left."""
        edits: list[SourceEdit] = []
        file, _, name = self.kernel_path.partition(":")
        if is_editable and file.endswith(".py"):
            self.source = Path(file).read_text(encoding="utf-8")
            self.tile_axes = find_tile_axes(self.source, name)
            numbers = {name: value for name, value in self.request.arguments.items() if type(value) is int}
            target = self.entry.target
            is_blackwell = target is not None and target.limits.matrix_unit == "tcgen05"
            edits = list(propose_edits(self.source, name, self.diagnosis.causes, numbers, is_blackwell=is_blackwell))
        pending: list[_Attempt] = [({}, edit) for edit in edits]
        pending += [(change, None) for change in self._proposals({}, self.diagnosis, self.entry)]
        self._is_library = is_editable and _imports_its_package(Path(file), self.source)
        pending.sort(key=self._is_costly)
        expanded = self.diagnosis.microseconds or 0.0
        checks = 1 + self._is_library  # the best is diagnosed, and compared in the interpreter
        most = (budget * PROCESSOR_SHARE - self.spent) / (4 - checks)
        self._reserve = min(checks * self.spent + _COMPARISON_SECONDS, most)
        while not self._is_spent(budget):
            most = _BATCH if self.attempts else _FIRST_BATCH
            count = max(1, min(most, int(self._processor_left(budget) / max(self._per_trial, 0.1))))
            count = min(count, self._count_affordable(pending, budget))
            batch, pending = pending[:count], pending[count:]
            best = min(self.trials, key=lambda trial: trial.microseconds, default=None)
            if (
                best is not None
                and best.microseconds * _LEAST_STEP < expanded
                and self._processor_left(budget) > self.spent
            ):
                if not self._is_library and not self._is_equal(best, budget):  # before others are combined with it
                    pending = self._drop(best, [*batch, *pending])
                    continue
                expanded = best.microseconds
                pending = sorted([*self._combinations(best, edits), *batch, *pending], key=self._is_costly)
                continue
            if not batch:
                self._is_stopped = bool(pending)
                return
            gain = (self.diagnosis.microseconds or 0.0) / best.microseconds if best is not None else 1.0
            progress(f"best so far {gain:.2f}×{'' if best is None else f': {best.label}'}")
            begin = processor_seconds()
            self.trials += self._try(batch)
            self._per_trial = (processor_seconds() - begin) / count
        self._is_stopped = True

    def _drop(self, wrong: Trial, pending: Sequence[_Attempt]) -> list[_Attempt]:
        """What is left to try without constants or an edit that compute something else; their trials go too."""
        constants = constants_of(wrong.change)

        def is_right(change: Change, edit: SourceEdit | None) -> bool:
            return not (constants.items() <= change.items() and wrong.edit in (None, edit))

        self.trials = [trial for trial in self.trials if is_right(trial.change, trial.edit)]
        return sorted(
            (job for job in pending if is_right(*job)), key=lambda job: not constants.keys().isdisjoint(job[0])
        )

    def _is_costly(self, attempt: _Attempt) -> bool:
        """Whether compiling the change imports a library."""
        change, edit = attempt
        return self._is_library and (edit is not None or bool(constants_of(change)) or not can_recompile(self.entry))

    def _count_affordable(self, pending: Sequence[_Attempt], budget: float) -> int:
        """Changes that can be tried together: no import of a library begins that the budget does not end."""
        cheap = sum(not self._is_costly(attempt) for attempt in pending)
        return cheap or int(self._processor_left(budget) / (_LIBRARY_SECONDS if self._is_library else 0.1))

    def _proposals(self, change: Change, diagnosis: Diagnosis, compiled: Artifact) -> list[Change]:
        unread = {"num_stages"} if self.entry.is_gluon else set()
        options = {name: self.entry.metadata.get(name) for name in OPTIONS - unread} | options_of(change)
        constants, target = {**self.entry.constants, **constants_of(change)}, self.entry.target
        limits = None if target is None else target.limits.multiprocessor
        resources = None if limits is None else inspect_artifact(compiled, None).resources
        # a spill may cost less time than other causes, and be removed by what is tried in vain against them
        kinds = [CauseKind.SPILLS] if resources is not None and resources.spill_bytes.value else []
        kinds += [cause.kind for cause in diagnosis.causes]
        warp_size = 32 if target is None else target.warp_size
        changes = propose_changes(kinds, options, constants if self.record else {}, warp_size, self.tile_axes)
        changes += [{"num_ctas": 2}] if options.get("num_ctas") == 1 and can_cluster(self.entry) else []
        registers = None if resources is None else resources.registers.value
        if registers is None or limits is None:
            return changes
        tiles = self.tile_axes or [name for name in constants if TILE_NAMES.fullmatch(name)]
        settings, most = {**constants, **options}, limits.registers_per_lane
        fitting = (fit_registers(change, settings, tiles, registers, most, warp_size) for change in changes)
        return [change for change in fitting if change is not None]

    def _combinations(self, best: Trial, edits: Sequence[SourceEdit]) -> Iterator[_Attempt]:
        """The best trial with changes that helped by themselves, and with what its remaining causes suggest."""
        if best.edit is None:
            yield from ((best.change, edit) for edit in edits)
        helpful = sorted(self.trials, key=lambda trial: trial.microseconds)
        limit = (self.diagnosis.microseconds or 0.0) / _LEAST_STEP
        single = [trial for trial in helpful if trial is not best and len(trial.change) == 1]
        changes = [trial.change for trial in single if trial.microseconds < limit]
        diagnosis = diagnose(best.candidate, self.make_disassembler([best.candidate.artifact]), **self._options)
        changes += self._proposals(best.change, diagnosis, best.candidate.artifact)
        # what is not set yet first: other values of the same names were tried by themselves
        changes.sort(key=lambda change: not change.keys().isdisjoint(best.change))
        yield from (({**best.change, **change}, best.edit) for change in changes)
        for dropped in best.change if len(best.change) > 1 else ():
            yield {name: value for name, value in best.change.items() if name != dropped}, best.edit

    def _diagnose(self, trial: Trial) -> Diagnosis:
        if trial.label not in self._diagnoses:
            disassemble = self.make_disassembler([trial.candidate.artifact])
            found = diagnose(trial.candidate, disassemble, **self._options)
            if not _is_far(found) and "fetched" in self._options:
                found = diagnose(trial.candidate, disassemble, gpu=self.gpu, limit=self.steps)
            self._diagnoses[trial.label] = found
        return self._diagnoses[trial.label]

    def _is_spent(self, budget: float) -> bool:
        next_trial = self._per_trial if self.attempts else 0.0
        return self._elapsed(budget) > _SEARCH_SHARE or self._processor_left(budget) < next_trial

    def _elapsed(self, budget: float) -> float:
        """Share of the time that has passed; a command may leave less than the budget."""
        limit = current_budget()
        seconds = budget if limit is None else min(budget, limit.deadline - self._start)
        return (time.monotonic() - self._start) / max(seconds, 0.001)

    def _processor_left(self, budget: float) -> float:
        """Processor seconds that are left for trials, before the check of the best, and its time by all CTAs."""
        is_found = any(saves(self.diagnosis.microseconds or 0.0, trial.microseconds) for trial in self.trials)
        reserve = self._reserve + is_found * self.launch_seconds
        return budget * PROCESSOR_SHARE - (processor_seconds() - self._processor_start) - reserve

    def _path(self, edit: SourceEdit | None) -> str:
        if edit is None:
            return self.kernel_path
        file, _, name = self.kernel_path.partition(":")
        if edit.text not in self._files:
            folder = self.directory.parent / f"{self.directory.name}-edit{len(self._files)}"
            folder.mkdir(exist_ok=True)
            self._files[edit.text] = folder / Path(file).name
            self._files[edit.text].write_text(edit.text, encoding="utf-8")
        return f"{self._files[edit.text]}:{name}"

    def _try(self, batch: Sequence[_Attempt]) -> list[Trial]:
        """The trials of a batch that compile, and whose times are predicted."""
        jobs = []
        for change, edit in batch:
            key = (dict(sorted(change.items(), key=str)), "" if edit is None else edit.label)
            grid = changed_grid(self.request, self.entry.constants, change, self.tile_axes)
            if key not in self.attempts and grid is not None:
                self.attempts.append(key)
                jobs.append((change, edit, grid))
        artifacts = self._compile([(change, edit) for change, edit, _ in jobs])
        compiled = []
        for (change, edit, grid), artifact in zip(jobs, artifacts, strict=True):
            if artifact is not None and artifact.hash != self.entry.hash:
                request = replace(self.request, grid=grid, kernel_hash=None)
                constants = {**self.entry.constants, **artifact.constants}
                compiled.append((change, edit, RankingCandidate(artifact, request, constants)))
        if not compiled:
            return []
        disassemble = self.make_disassembler([candidate.artifact for _, _, candidate in compiled])
        predict = partial(predict_microseconds, disassemble=disassemble, **self._options)
        times = time_launches([candidate for _, _, candidate in compiled], predict)
        return [
            Trial(*entry, microseconds) for entry, microseconds in zip(compiled, times, strict=True) if microseconds
        ]

    def _compile(self, jobs: Sequence[_Attempt]) -> list[Artifact | None]:
        """The kernel with each change; changes of options only are compiled from its TTIR."""
        of_options = [
            change for change, edit in jobs if edit is None and not constants_of(change) and can_recompile(self.entry)
        ]
        folder = self.directory.parent / f"{self.directory.name}-options{len(self.attempts)}"
        recompiled = iter(recompile_options(self.entry, of_options, folder) if of_options else [])
        record = self.record
        if record is None:
            return list(recompiled)
        requests = [
            request_for(self._path(edit), record, change)
            for change, edit in jobs
            if edit is not None or change not in of_options
        ]
        results = iter(compile_kernels(requests, [record.target], self.directory) if requests else [])
        entries = {entry.directory: entry for entry in open_cache(self.directory).entries} if requests else {}
        artifacts = []
        for change, edit in jobs:
            if edit is None and change in of_options:
                artifacts.append(next(recompiled))
            else:
                directory = next(results).directory
                artifacts.append(None if directory is None else entries.get(directory.name))
        return artifacts

    def verified(self, budget: float) -> RemedySearch:
        """The best trials that pass every check."""
        remedies: list[Remedy] = []
        chosen: list[Trial] = []
        edited: dict[str, str] = {}
        before, undone = self.diagnosis.microseconds or 0.0, "tried" if self._is_stopped else ""
        for trial in sorted(self.trials, key=lambda tried: rank_trial(tried, before)):
            used = (processor_seconds() - self._processor_start) / (budget * PROCESSOR_SHARE)
            is_late = self._elapsed(budget) > 1 or used > 1
            if len(remedies) == MOST_REMEDIES or not saves(before, trial.microseconds):
                break
            if (is_late and (remedies or self._is_library)) or used > _MOST_EXCESS:
                self._unchecked += not remedies
                undone = undone or "checked"
                break
            if any(trial.does_no_more_than(better) for better in chosen):
                continue
            after = self._diagnose(trial)
            self._unchecked += after.microseconds is None
            cause = find_reduced_cause(self.diagnosis, after)
            if cause is None or not saves(before, after.microseconds) or not self._is_equal(trial, budget):
                continue
            patch = None
            if trial.edit is not None:
                patch = trial.edit.as_patch(self.source, Path(self.kernel_path.partition(":")[0]).name)
                edited[patch] = trial.edit.text
            costs = describe_costs(self.entry, self.request, trial)
            gain = round(before / (after.microseconds or before), 2)
            remedies.append(Remedy(trial.label, patch, gain, costs, cause.kind.value, True))
            chosen.append(trial)
        with limit_simulation(budget * PROCESSOR_SHARE):
            disassemble = self.make_disassembler([trial.candidate.artifact for trial in chosen])
            remedies, self._unpriced = price_launches(
                self._launch_microseconds, [*zip(remedies, chosen, strict=True)],
                lambda candidate: getattr(predict_time(candidate, disassemble, self.gpu, self.steps), "us", None),
                self.launch_seconds,
            )  # fmt: skip
        edited = {remedy.patch: edited[remedy.patch] for remedy in remedies if remedy.patch is not None}
        reason = self._describe_rest(remedies, undone)
        return RemedySearch(tuple(remedies), len(self.trials), reason, edited)

    def _describe_rest(self, remedies: Sequence[Remedy], undone: str) -> str:
        """Why there is no remedy, and what was left out; empty if there is nothing to say."""
        limit, attempt = current_budget(), f"{NOTHING_HELPS} ({len(self.trials)} tried)"
        if self._unchecked or self._unpriced:
            attempt = f"A change may help, but none was checked ({len(self.trials)} tried)"
        attempt = attempt if self.trials else "No change was tried"
        spent = f": {_SPENT}" if undone or (limit is not None and limit.is_spent()) else ""
        sentences = [] if remedies or (spent and not self.trials) else [f"{attempt}."]
        sentences += [_GLUON] if self.entry.is_gluon and not remedies else []
        if failed := sum(equality is None for equality in self._equalities.values()):
            sentences.append(f"{failed} change{'s' * (failed > 1)} could not be compared in Triton's interpreter.")
        if self._unpriced:
            sentences.append(f"Faster by a sample of CTAs only: {'; '.join(self._unpriced)}.")
        if spent:
            sentences.append((f"Not all changes were {undone or 'tried'}" if self.trials else attempt) + spent)
        return " ".join([*sentences, self.source_problem]).strip()

    def _is_equal(self, trial: Trial, budget: float) -> bool:
        """Whether the change computes the same: equal results in the interpreter, and for a tile the same bytes.

        A tile by its name only, whose results cannot be compared, needs the same bytes.
        """
        constants = constants_of(trial.change)
        tiles = {name: (value, self.tile_axes[name]) for name, value in constants.items() if name in self.tile_axes}
        if trial.edit is not None or tiles:
            file, _, name = self.kernel_path.partition(":")
            source, rounding = Path(file), _REORDERED if tiles else 0.0
            edited = source if trial.edit is None else self._files[trial.edit.text]
            key = f"{edited} {tiles}"
            if key not in self._equalities:
                rounding = max(rounding, 0.0 if trial.edit is None else trial.edit.rounding)
                remaining = _MOST_EXCESS * budget * PROCESSOR_SHARE - (processor_seconds() - self._processor_start)
                if self._is_library and self._processor_left(budget) + self._reserve < _LIBRARY_SECONDS:
                    self._unchecked += 1
                    return False
                self._equalities[key] = compare_results(
                    (source, edited), name, self.request, self.entry.constants, source.parent, rounding, tiles,
                    seconds=max(remaining, _LEAST_COMPARISON),
                )  # fmt: skip
            is_necessary = trial.edit is not None or not all(TILE_NAMES.fullmatch(name) for name in tiles)
            if self._equalities[key] is False or (is_necessary and not self._equalities[key]):
                return False
            if self._equalities[key] and len(tiles) == len(constants):
                return True  # the whole launch need not be simulated as well
        if not any(type(value) is int for value in constants.values()):
            return True
        disassemble = self.make_disassembler([self.entry, trial.candidate.artifact])
        if self._original_bytes is None:
            original = RankingCandidate(self.entry, self.request, self.entry.constants)
            self._original_bytes = count_unique_bytes(original, disassemble, self.steps)
        count = self._original_bytes and count_unique_bytes(trial.candidate, disassemble, self.steps)
        limit = current_budget()
        self._unchecked += count is None and limit is not None and limit.is_spent()
        return count is not None and count == self._original_bytes


def _imports_its_package(file: Path, source: str) -> bool:
    """Whether a file imports others of its package, as those of libraries do: that takes seconds."""
    top = file.parent
    while (top.parent / "__init__.py").exists():
        top = top.parent
    is_own = top.name == __name__.partition(".")[0]
    return (
        not is_own
        and (file.parent / "__init__.py").exists()
        and any(f"\n{word} {name}" in source for word in ("from", "import") for name in (".", f"{top.name}."))
    )


def _is_far(diagnosis: Diagnosis) -> bool:
    """Whether a launch is far from its roofline."""
    return (diagnosis.roofline_microseconds or 0.0) < _FAR * (diagnosis.microseconds or 0.0)


def processor_seconds() -> float:
    """Processor time of this process and of those that it waited for."""
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + kept_processor_seconds()


def find_reduced_cause(before: Diagnosis, after: Diagnosis) -> Cause | None:
    """The cause that a change acts on; None if none explains its gain.

    It is the one that lost most time, if the first one lost some, or it lost at least half of the gain. Without a cause
    of its own, a bound is what every gain acts on.
    """
    microseconds, shorter = before.microseconds or 0.0, after.microseconds or 0.0

    def lost(cause: Cause) -> float:
        left = sum(other.share or 0.0 for other in after.causes if other.kind is cause.kind) * shorter
        return (cause.share or 0.0) * microseconds - left

    first, most, least = before.causes[0], max(before.causes, key=lost), _LEAST_REDUCTION * microseconds
    if first.kind in (CauseKind.BOUND, CauseKind.FEW_BYTES):
        return first
    return most if lost(first) >= least or lost(most) >= max(least, (microseconds - shorter) / 2) else None
