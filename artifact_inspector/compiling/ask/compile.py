"""Compile kernels with no GPU and no torch, into an ordinary Triton cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.environments import cache_directory, find_interpreter, parse_triton
from artifact_inspector.compiling.ask.manifest import made_directory, record
from artifact_inspector.compiling.ask.process import answers, this_interpreter
from artifact_inspector.compiling.ask.remote import remote_answers
from artifact_inspector.compiling.ask.request import KernelRequest, place_of
from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.hardware.targets import KNOWN_TARGETS, parse_target

TIME_LIMIT_SECONDS = 300.0


def compile_kernels(
    requests: Sequence[KernelRequest],
    targets: Iterable[str],
    out_dir: Path,
    *,
    tritons: Iterable[str] = (),
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[CompileResult], None] | None = None,
    planned: Callable[[int], None] | None = None,
    notice: Callable[[str], None] = lambda sentence: None,
    time_limit: float = TIME_LIMIT_SECONDS,
    instead: tuple[Path, Path] | None = None,
) -> list[CompileResult]:
    """One result for each version, kernel, configuration and target, in that order, in a Triton cache.

    Every compile runs in a process of its own, as many at a time as there are processors, so that a
    compiler that aborts or hangs costs one row. What is in the cache already is not compiled again, by
    the key that Triton itself gives it. `inspect-kernel.json` beside the entries says what was asked for.

    Args:
        requests: the kernels.
        targets: as `parse_target` reads them: `sm_75`, `gfx90a`, `cuda:80`, `hip:gfx942` …
        out_dir: made if it is missing.
        tritons: versions of Triton to compile with, each in an environment of its own that is made where
            there is none: `3.2.0`, or `3.2.0=PYTHON` for one that has it. None means the one installed here.
        workers: compiles at a time; as many as there are processors.
        scheduler: the address of a Dask scheduler, whose workers compile instead.
        progress: called with each result when it is there.
        planned: called with the number of results when it is known.
        notice: called with a sentence before an environment is made, which takes a minute.
        time_limit: seconds that one compile may take.
        instead: a directory, and another that holds an older state of it, from which all is imported.

    Raises:
        UsageError: an unknown reference kernel, target or version, a signature that cannot be read.
        CompileError: Triton cannot be used here at all. Of several versions, those that cannot be had are
            rows.
    """
    wanted = list(dict.fromkeys(parse_target(target) for target in targets))  # each compiled for once
    written = [_known(request).as_json() for request in requests]
    versions = [parse_triton(one) for one in dict.fromkeys(tritons)]
    here = None if versions else this_interpreter()
    out_dir = made_directory(out_dir)
    asked = {"targets": [str(one) for one in wanted], "out": str(out_dir), "environment": {}}
    asks = [{**ask, **asked} for ask in written]
    counts = [len(asks) * len(wanted)] * (len(versions) or 1)
    found: list[tuple[tuple[int, int, int], CompileResult]] = []

    def counted(number: int) -> None:
        counts[run] = number
        if planned is not None:
            planned(sum(counts))

    try:
        for run in range(len(counts)):
            version = versions[run] if versions else None
            try:
                interpreter = here or find_interpreter(*versions[run], notice=notice)
            except CompileError as error:
                if len(versions) == 1:
                    raise
                rows = _refused(asks, versions[run][0], error)
            else:
                if instead is not None:
                    interpreter = interpreter.with_instead(*instead)
                limits: dict[str, Any] = {"time_limit": time_limit, "planned": counted}
                if scheduler is not None:
                    rows = remote_answers(scheduler, version, asks, **limits)
                else:
                    rows = answers(interpreter, asks, workers=workers or processors(), **limits)
            for row in rows:
                result = _result(row, requests[row["ask"]].place)
                found.append(((run, row["ask"], row["index"]), result))
                if progress is not None:
                    progress(result)
    finally:  # an interrupted sweep has made what it has made
        if found:
            record(out_dir, (result for _, result in found))
    return [result for _, result in sorted(found, key=lambda entry: entry[0])]


def _refused(
    asks: Sequence[Mapping[str, Any]], version: str, error: CompileError
) -> Iterator[dict[str, Any]]:
    """The rows of a Triton that is not there."""
    for number, ask in enumerate(asks):
        for index, target in enumerate(ask["targets"]):
            yield {
                "ask": number,
                "index": index,
                "kernel": ask["place"].rpartition(":")[2],
                "target": target,
                "triton": version,
                "seconds": 0.0,
                "message": error.message,
                "remedy": error.remedy,
            }


def compile_reference(
    names: Iterable[str],
    targets: Iterable[str],
    out_dir: Path,
    *,
    progress: Callable[[CompileResult], None] | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> list[CompileResult]:
    """The reference kernels for some targets: `compile_kernels` on all or some of `REFERENCE_KERNELS`.

    Args:
        names: reference kernels; none means all.
        targets: as `parse_target` reads them.
        out_dir: made if it is missing.
        progress: called with each result when it is there.
        time_limit: seconds that one compile may take.

    Raises:
        UsageError: an unknown kernel or target.
        CompileError: Triton cannot be used here at all.
    """
    kernels = list(dict.fromkeys(names)) or list(REFERENCE_KERNELS)
    for name in kernels:
        if name not in REFERENCE_KERNELS:
            raise UsageError(
                f"There is no reference kernel {name!r}.", f"There are {', '.join(REFERENCE_KERNELS)}."
            )
    requests = [KernelRequest(name) for name in kernels]
    return compile_kernels(requests, targets, out_dir, progress=progress, time_limit=time_limit)


def compile_kernel(
    kernel: Any,
    target: str,
    *,
    signature: str | Mapping[str, str] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    out_dir: Path | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
    **options: Any,
) -> CompileResult:
    """One kernel for one GPU that need not be there; `open_cache(result.directory)` reads what it became.

    Args:
        kernel: a Triton function at the top level of a file, decorated or not, or `"FILE.py:KERNEL"`,
            `"module:KERNEL"`, or the name of a reference kernel. Of an autotuned one, the first
            configuration, unless `constexprs` gives all that it tunes.
        target: as `parse_target` reads it.
        signature: types of the arguments (`KernelRequest.signature`).
        constexprs: values of the `tl.constexpr` arguments.
        out_dir: the Triton cache to fill; by default one of our own in the user's cache directory.
        time_limit: seconds that the compile may take.
        options: num_warps, num_stages and whatever else Triton takes.

    Raises:
        UsageError: no such kernel or target, missing arguments.
        CompileError: the compiler refused; its own message.
    """
    place = kernel if isinstance(kernel, str) else place_of(kernel)
    request = KernelRequest(place, signature, constexprs or {}, options)
    (result,) = compile_kernels([request], [target], out_dir or default_out(), time_limit=time_limit)
    if result.message is not None:
        error = UsageError if result.usage else CompileError
        raise error(result.message, result.remedy)
    return result


def default_out() -> Path:
    """Where kernels go that nobody named a directory for."""
    return cache_directory() / "kernels"


def processors() -> int:
    """How many compiles run at a time: the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def _known(request: KernelRequest) -> KernelRequest:
    """The request, if its place can be one."""
    place = request.place
    if place in REFERENCE_KERNELS or ":" in place or place.endswith(".py"):
        return request
    near = get_close_matches(place, REFERENCE_KERNELS, 1)
    raise UsageError(
        f"There is no reference kernel {place!r}.",
        (f"Did you mean {near[0]}? " if near else "")
        + f"There are {', '.join(REFERENCE_KERNELS)}; a kernel of yours is FILE.py:KERNEL.",
    )


def _result(row: Mapping[str, Any], place: str) -> CompileResult:
    directory = row.get("directory")
    target = parse_target(row["target"])
    remedy = row.get("remedy")
    if directory is None and remedy is None and target not in KNOWN_TARGETS:
        near = get_close_matches(target.arch, [known.arch for known in KNOWN_TARGETS])
        remedy = f"{target.arch} is no GPU known here" + (
            f"; near it are {', '.join(near)}." if near else "."
        )
    return CompileResult(
        kernel=place if place in REFERENCE_KERNELS else row["kernel"],
        target=target,
        seconds=row["seconds"],
        directory=None if directory is None else Path(directory),
        message=row.get("message"),
        remedy=remedy,
        place=place,
        triton=row.get("triton"),
        config=row.get("config"),
        cached=bool(row.get("cached")),
        usage=row.get("kind") == "usage",
        types=tuple(row.get("types", ())),
        constants=row.get("constants", {}),
        options=row.get("options", {}),
        details=row.get("details"),
    )
