"""Diagnoses launches on the workers of a Dask scheduler, and keeps each result in the result cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.api.advice import diagnose_launches, with_launch_times
from artifact_inspector.api.remedy_search import search_remedies
from artifact_inspector.diagnosis.assumed_launch import assume_launch
from artifact_inspector.diagnosis.cause import Diagnosis
from artifact_inspector.diagnosis.remedy import RemedySearch, order_by_gain
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.interpreter.budget import limit_simulation
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.facts.encoding import read_section, write_section
from artifact_inspector.facts.workers import is_readable, with_absolute_paths
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.cluster import map_jobs
from artifact_inspector.files.digests import content_digest, index_key
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.index import Index
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.files.scratch import scratch_directory


class Advice(NamedTuple):
    """What is known about one launch."""

    diagnosis: Diagnosis | None
    """None if it failed."""
    search: RemedySearch | None
    """None if no change was tried."""
    problem: str = ""
    """Why it failed."""


@dataclass(frozen=True)
class AdviceSettings:
    """How launches are diagnosed: the options of `advise`."""

    gpu: str | None
    steps: int
    nvdisasm: Path | None
    simulation_seconds: float
    """Processor time of each diagnosis."""
    search_seconds: float
    """Time to try changes of each launch; 0 for none."""
    kernel: str | None


_UNREADABLE = "its files cannot be read"
AdviceJob = tuple[Artifact, LaunchRequest | None, AdviceSettings]


def advise_on_cluster(
    pairs: Sequence[tuple[Artifact, LaunchRequest | None]],
    settings: AdviceSettings,
    scheduler: str,
    open_index: Callable[[], Index] | None,
    progress: Callable[[Artifact], None] = lambda entry: None,
) -> list[Advice]:
    """What is known about each launch; a failure concerns its own launch only.

    Args:
        pairs: kernels with their launches; None assumes one.
        open_index: opens the result cache, in which every result is kept, so that a run that was stopped continues.

    Raises:
        CacheError: there is no scheduler, or it ended.
    """
    places: dict[bytes | int, list[int]] = {}
    for at, (entry, request) in enumerate(pairs):
        places.setdefault(_key(entry, request, settings) or at, []).append(at)
    texts: dict[bytes | int, str] = {}
    if open_index is not None:
        with open_index() as index:
            stored = index.get(key for key in places if isinstance(key, bytes))
        texts.update({key: text.decode() for key, text in stored.items()})
    pending = [(key, *pairs[numbers[0]]) for key, numbers in places.items() if key not in texts]
    jobs = ((with_absolute_paths(entry), request, settings) for _, entry, request in pending)
    for number, result in map_jobs(scheduler, _advise, jobs) if pending else ():
        key, entry, request = pending[number]
        if isinstance(result, BaseException):
            texts[key] = write_section(Advice(None, None, f"{type(result).__name__}: {str(result)[:200]}"))
            continue
        texts[key] = result or _advise((entry, request, settings)) or write_section(Advice(None, None, _UNREADABLE))
        progress(entry)
        if open_index is not None and isinstance(key, bytes):
            with open_index() as index:
                index.put({key: texts[key].encode()})
    advice = {at: read_section(Advice, texts[key]) for key, numbers in places.items() for at in numbers}
    return [advice[at] for at in range(len(pairs))]


def _key(entry: Artifact, request: LaunchRequest | None, settings: AdviceSettings) -> bytes | None:
    content = content_digest(entry)
    launch: Any = None
    if request is not None:
        names = sorted(request.inherited_names)
        launch = (request.grid, sorted(request.arguments.items()), request.kernel_hash, request.notes, names)
    return None if content is None else index_key(content + repr((entry.hash, launch, settings)).encode(), b"advice")


def _advise(job: AdviceJob) -> str | None:
    """The advice as text; None if this machine lacks the files of the kernel."""
    return write_section(advise_launch(*job)) if is_readable(job[0]) else None


def advise_launch(entry: Artifact, request: LaunchRequest | None, settings: AdviceSettings) -> Advice:
    """What is known about one launch; None assumes one."""
    try:
        pair = entry, request or assume_launch(entry)
        disassemble = binary_disassembler(find_disassembler(settings.nvdisasm))
        with limit_simulation(settings.simulation_seconds), scratch_directory() as scratch:
            (diagnosis,) = diagnose_launches([pair], disassemble, gpu=settings.gpu, steps=settings.steps)
            (diagnosis,) = with_launch_times([pair], [diagnosis], disassemble, gpu=settings.gpu, steps=settings.steps)
            search = None
            if settings.search_seconds:
                search = search_remedies(
                    pair,
                    diagnosis,
                    lambda _: disassemble,
                    Path(scratch),
                    gpu=settings.gpu,
                    steps=settings.steps,
                    kernel=settings.kernel,
                    budget=settings.search_seconds,
                )
    except InspectorError as error:
        return Advice(None, None, error.message)
    return Advice(order_by_gain(diagnosis, search.remedies if search else ()), search)
