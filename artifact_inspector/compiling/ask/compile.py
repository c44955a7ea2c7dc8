"""Compile kernels without a GPU or torch, into a regular Triton cache."""

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
    """Compile kernels into a Triton cache: one result per version, kernel, configuration and target.

    Every compile runs in its own process, one per processor at a time, so that a compiler that aborts or
    hangs costs one row. Entries that the cache has under Triton's own key are not compiled again.
    `inspect-kernel.json` beside the entries records the requests.

    Args:
        requests: the kernels.
        targets: as `parse_target` reads them: `sm_75`, `gfx90a`, `cuda:80`, `hip:gfx942` …
        out_dir: the cache directory, created if it is missing.
        tritons: versions of Triton to compile with, each in its own environment, created if it is missing:
            `3.2.0`, or `3.2.0=PYTHON` for an existing one. Empty means the installed Triton.
        workers: number of concurrent compiles; by default the number of processors.
        scheduler: address of a Dask scheduler whose workers compile instead.
        progress: called with each result as it completes.
        planned: called with the number of results when it is known.
        notice: called with a sentence before an environment is created, which takes a minute.
        time_limit: seconds that one compile may take.
        instead: a directory, and another with an older state of it to import from.

    Raises:
        UsageError: an unknown reference kernel, target or version, or an invalid signature.
        CompileError: Triton cannot be used here. With several versions, those that are unavailable are rows.
    """
    wanted = list(dict.fromkeys(parse_target(target) for target in targets))  # without duplicates
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
    finally:  # an interrupted run keeps its finished compiles
        if found:
            record(out_dir, (result for _, result in found))
    return [result for _, result in sorted(found, key=lambda entry: entry[0])]


def _refused(
    asks: Sequence[Mapping[str, Any]], version: str, error: CompileError
) -> Iterator[dict[str, Any]]:
    """The rows of an unavailable version of Triton."""
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
    """Compile all or some of `REFERENCE_KERNELS`, as `compile_kernels` does.

    Args:
        names: reference kernels; empty means all.
        targets: as `parse_target` reads them.
        out_dir: the cache directory, created if it is missing.
        progress: called with each result as it completes.
        time_limit: seconds that one compile may take.

    Raises:
        UsageError: an unknown kernel or target.
        CompileError: Triton cannot be used here.
    """
    kernels = list(dict.fromkeys(names)) or list(REFERENCE_KERNELS)
    for name in kernels:
        if name not in REFERENCE_KERNELS:
            raise UsageError(
                f"Unknown reference kernel {name!r}.", f"Expected one of {', '.join(REFERENCE_KERNELS)}."
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
    """Compile one kernel for one GPU, which need not be present; `open_cache(result.directory)` reads it.

    Args:
        kernel: a Triton function at the top level of a file, decorated or not, or `"FILE.py:KERNEL"`,
            `"module:KERNEL"`, or the name of a reference kernel. An autotuned kernel is compiled in its first
            configuration, unless `constexprs` sets all tuned constants.
        target: as `parse_target` reads it.
        signature: types of the arguments (`KernelRequest.signature`).
        constexprs: values of the `tl.constexpr` arguments.
        out_dir: the Triton cache to fill; by default one in the user's cache directory.
        time_limit: seconds that the compile may take.
        options: num_warps, num_stages and other options of Triton.

    Raises:
        UsageError: no such kernel or target, or missing arguments.
        CompileError: the compiler refused the kernel; the error has its message.
    """
    place = kernel if isinstance(kernel, str) else place_of(kernel)
    request = KernelRequest(place, signature, constexprs or {}, options)
    (result,) = compile_kernels([request], [target], out_dir or default_out(), time_limit=time_limit)
    if result.message is not None:
        error = UsageError if result.usage else CompileError
        raise error(result.message, result.remedy)
    return result


def default_out() -> Path:
    """The default cache directory for compiled kernels."""
    return cache_directory() / "kernels"


def processors() -> int:
    """Number of processors that this process may use, and of concurrent compiles."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def _known(request: KernelRequest) -> KernelRequest:
    """The request, if its place is a reference kernel, a file or a module.

    Raises:
        UsageError: it is none of them.
    """
    place = request.place
    if place in REFERENCE_KERNELS or ":" in place or place.endswith(".py"):
        return request
    near = get_close_matches(place, REFERENCE_KERNELS, 1)
    raise UsageError(
        f"Unknown reference kernel {place!r}.",
        (f"Did you mean {near[0]}? " if near else "")
        + f"Expected FILE.py:KERNEL for your own kernel, or one of {', '.join(REFERENCE_KERNELS)}.",
    )


def _result(row: Mapping[str, Any], place: str) -> CompileResult:
    directory = row.get("directory")
    target = parse_target(row["target"])
    remedy = row.get("remedy")
    if directory is None and remedy is None and target not in KNOWN_TARGETS:
        near = get_close_matches(target.arch, [known.arch for known in KNOWN_TARGETS])
        remedy = f"{target.arch} is not a known GPU" + (
            f"; similar names are {', '.join(near)}." if near else "."
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
