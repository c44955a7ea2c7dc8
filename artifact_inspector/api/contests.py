"""Candidates of a ranking: recorded launches, and launches of configurations compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.api.predicting import pair_launches
from artifact_inspector.api.workloads import is_reference, run_workload
from artifact_inspector.compiling.ask.request import parse_configs
from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.compiling.untrusted import describe_dropped
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.requests import Request
from artifact_inspector.execution.timing.contestants import Contestant, label_launches
from artifact_inspector.execution.timing.trying import (
    Refused,
    check_tries,
    compile_tries,
    recorded_compile,
    request_for_tries,
)
from artifact_inspector.files.cache import Artifact, open_cache


class Contest(NamedTuple):
    """Launches to rank, with the candidates that did not compile."""

    contestants: tuple[Contestant, ...]
    refused: tuple[Refused, ...] = ()
    """Configurations that do not compile."""
    problems: tuple[str, ...] = ()
    """The ranking problem of each candidate (kernel, target, arguments); empty if all have the same."""
    notes: tuple[str, ...] = ()
    """What was ignored in the launch record."""


def enter_pairs(pairs: Sequence[tuple[Artifact, Request]], refused: Sequence[Refused] = ()) -> Contest:
    """A ranking problem of compiled kernels, each with a launch."""
    return Contest(tuple(Contestant(one, request, one.constants) for one, request in pairs), tuple(refused))


def enter_record(pairs: Sequence[tuple[Artifact, Request]]) -> Contest:
    """A ranking of recorded launches; kernels or arguments that differ are ranked separately."""
    contest = enter_pairs(pairs)
    kernels: dict[tuple[str, str], dict[tuple[tuple[str, Any], ...], list[int]]] = {}
    for at, one in enumerate(contest.contestants):
        kernel = kernels.setdefault((one.artifact.display_name, str(one.artifact.target)), {})
        kernel.setdefault(tuple(one.request.passed(one.constants).items()), []).append(at)
    if sum(map(len, kernels.values())) == 1:
        return contest
    contestants, problems = list(contest.contestants), [""] * len(contest.contestants)
    for (name, target), asked in kernels.items():
        rows = [dict(items) for items in asked]
        apart = _differing(rows)
        for held, places in zip(rows, asked.values(), strict=True):
            told = [name, target, *(f"{key}={_spelled(held[key])}" for key in apart if key in held)]
            labels = label_launches([contestants[at] for at in places])
            for at, label in zip(places, labels, strict=True):
                problems[at] = " ".join(told)
                contestants[at] = replace(contestants[at], label=label or contestants[at].artifact.hash[:12])
    return Contest(tuple(contestants), problems=tuple(problems))


def _differing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the numbers that differ between sets of arguments; of the tensors if no number differs."""
    names = [name for name in rows[0] if len({row.get(name) for row in rows}) > 1]
    numbers = [name for name in names if not isinstance(rows[0][name], Tensor)]
    return numbers or names


def _spelled(value: object) -> str:
    if not isinstance(value, Tensor):
        return str(value)
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def enter_tries(
    pairs: Sequence[tuple[Artifact, Request]],
    tries: Mapping[str, tuple[str, ...]],
    configs: str | None,
    out: Path,
    *,
    own: bool,
    kernel: str | None = None,
    planned: Callable[[int], None] = lambda count: None,
    progress: Callable[[CompileResult], None] = lambda result: None,
) -> Contest:
    """A ranking problem of variants of one kernel that are compiled for it.

    Args:
        pairs: the kernel with its launch; exactly one.
        tries: constant or option → values.
        configs: `all`, or how many of the kernel's autotuning configurations; None for its current one.
        out: the cache directory to compile into.
        kernel: `FILE.py:KERNEL`, the file to import for a kernel that is not part of this package.
        own: no launch was given; the workload of a reference kernel supplies one per configuration.
        planned: called with the number of compiles once it is known.
        progress: called with each compile result.

    Raises:
        UsageError: there are several kernels, the kernel has no such constant, or nothing compiles.
    """
    if configs is not None:
        parse_configs(configs)
    if len({entry.hash for entry, _ in pairs}) != 1:
        raise UsageError(
            "--vary and --configs compile one kernel; several match.", "Give a NAME or hash that fits one."
        )
    base, request = pairs[0]
    check_tries(base, tries)
    notes: tuple[str, ...] = ()
    if own and is_reference(base):
        remedy = None
        requests, refused = run_workload(base, out, tries, configs)
        made = pair_launches(open_cache(out), None, (), requests) if requests else ()
    else:
        request = request_for_tries(request, tries, configs, base.constants)
        results = compile_tries(
            base, tries, out, configs=configs, kernel=kernel, planned=planned, progress=progress
        )
        if configs is None and (dropped := recorded_compile(base).dropped):
            notes = (describe_dropped(dropped),)
        entries = {entry.directory: entry for entry in open_cache(out).entries}
        remedy = next((one.remedy for one in results if one.remedy), None)
        names = dict.fromkeys(one.directory.name for one in results if one.directory is not None)
        made = [(entries[name], request) for name in names if name in entries]
        refused = tuple(_refused(one, tries) for one in results if one.directory is None)
    if not made:
        raise UsageError(
            f"None of the configurations compiles{f': {refused[0].message}' if refused else '.'}", remedy
        )
    return enter_pairs(made, refused)._replace(notes=notes)


def _refused(result: CompileResult, tries: Mapping[str, tuple[str, ...]]) -> Refused:
    held = {**result.constants, **result.options}
    tried = " ".join(f"{name}={held[name]}" for name in tries if name in held)
    return Refused(" ".join(filter(None, (result.config, tried))), result.message or "")
