"""Compile kernels without a GPU or torch, into a regular Triton cache.

Saved TTIR texts are compiled again; two states of a kernel are compiled concurrently: as it is, and older or changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.compiling.ask.environments import cache_directory, find_interpreter, parse_triton
from artifact_inspector.compiling.ask.manifest import add_to_manifest, create_directory
from artifact_inspector.compiling.ask.process import Interpreter, current_interpreter, failure_rows, run_requests
from artifact_inspector.compiling.ask.remote import run_remote_requests
from artifact_inspector.compiling.ask.request import CompileResult, KernelRequest, kernel_path_of
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.revision import read_revision
from artifact_inspector.files.writer import write_text
from artifact_inspector.hardware.targets import KNOWN_TARGETS, Target, parse_target

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
    older_state: tuple[Path, Path] | None = None,
) -> list[CompileResult]:
    """Compile kernels into a Triton cache: one result per version, kernel, configuration and target.

    Every compile runs in its own process, one per processor at a time, so that a compiler that aborts or
    hangs costs one row. Entries that the cache has under Triton's own key are not compiled again.
    `inspect-kernel.json` beside the entries records the requests.

    Args:
        targets: as `parse_target` reads them: `sm_75`, `gfx90a`, `cuda:80`, `hip:gfx942` …
        out_dir: the cache directory, created if it is missing.
        tritons: versions of Triton to compile with, each in its own environment, created if it is missing:
            `3.2.0`, or `3.2.0=PYTHON` for an existing one. Empty means the installed Triton.
        workers: number of concurrent compiles; by default the number of processors.
        scheduler: address of a Dask scheduler whose workers compile instead.
        planned: called with the number of results when it is known.
        notice: called with a sentence before an environment is created, which takes a minute.
        older_state: a directory, and another with an older state of it to import from.

    Raises:
        UsageError: an unknown reference kernel, target or version, or an invalid signature.
        CompileError: Triton cannot be used here. With several versions, those that are unavailable are rows.
    """
    unique_targets = list(dict.fromkeys(parse_target(target) for target in targets))
    request_documents = [_check_kernel_path(request).as_json() for request in requests]
    versions = [parse_triton(triton) for triton in dict.fromkeys(tritons)]
    own_interpreter = None if versions else current_interpreter()
    out_dir = create_directory(out_dir)
    common_fields = {"targets": [str(target) for target in unique_targets], "out": str(out_dir), "environment": {}}
    worker_requests = [{**request, **common_fields} for request in request_documents]
    counts = [len(worker_requests) * len(unique_targets)] * (len(versions) or 1)
    ordered_results: list[tuple[tuple[int, int, int], CompileResult]] = []

    def set_row_count(number: int) -> None:
        counts[run] = number
        if planned is not None:
            planned(sum(counts))

    try:
        for run in range(len(counts)):
            version = versions[run] if versions else None
            try:
                interpreter = own_interpreter or find_interpreter(*versions[run], notice=notice)
            except CompileError as error:
                if len(versions) == 1:
                    raise
                rows = iter(
                    [
                        row
                        for number, worker_request in enumerate(worker_requests)
                        for row in failure_rows(number, worker_request, versions[run][0], error.message, error.remedy)
                    ]
                )
            else:
                if older_state is not None:
                    interpreter = interpreter.with_older_state(*older_state)
                limits: dict[str, Any] = {"time_limit": time_limit, "planned": set_row_count}
                if scheduler is not None:
                    rows = run_remote_requests(scheduler, version, worker_requests, **limits)
                else:
                    rows = run_requests(interpreter, worker_requests, workers=workers or count_processors(), **limits)
            for row in rows:
                result = _make_result(row, requests[row["ask"]].kernel_path)
                ordered_results.append(((run, row["ask"], row["index"]), result))
                if progress is not None:
                    progress(result)
    finally:  # an interrupted run keeps its finished compiles
        if ordered_results:
            add_to_manifest(out_dir, (result for _, result in ordered_results))
    return [result for _, result in sorted(ordered_results, key=lambda entry: entry[0])]


def compile_reference(
    names: Iterable[str],
    targets: Iterable[str],
    out_dir: Path,
    *,
    progress: Callable[[CompileResult], None] | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> list[CompileResult]:
    """Compile all or some of `REFERENCE_KERNELS`, as `compile_kernels` does.

    Args as there; without `names`, all reference kernels.

    Raises:
        UsageError: an unknown kernel or target.
        CompileError: Triton cannot be used here.
    """
    kernels = list(dict.fromkeys(names)) or list(REFERENCE_KERNELS)
    for name in kernels:
        if name not in REFERENCE_KERNELS:
            raise UsageError(f"Unknown reference kernel {name!r}.", f"Expected one of {', '.join(REFERENCE_KERNELS)}.")
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
        signature: types of the arguments (`KernelRequest.signature`).
        out_dir: the Triton cache to fill; by default one in the user's cache directory.

    Raises:
        UsageError: no such kernel or target, or missing arguments.
        CompileError: the compiler refused the kernel; the error has its message.
    """
    kernel_path = kernel if isinstance(kernel, str) else kernel_path_of(kernel)
    request = KernelRequest(kernel_path, signature, constexprs or {}, options)
    (result,) = compile_kernels([request], [target], out_dir or default_directory(), time_limit=time_limit)
    if result.message is not None:
        error = UsageError if result.is_usage_error else CompileError
        raise error(result.message, result.remedy)
    return result


def default_directory() -> Path:
    """The default cache directory for compiled kernels."""
    return cache_directory() / "kernels"


def count_processors() -> int:
    """Number of processors that this process may use, and of concurrent compiles."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def _check_kernel_path(request: KernelRequest) -> KernelRequest:
    """The request, if its place is a reference kernel, a file or a module.

    Raises:
        UsageError: it is none of them.
    """
    kernel_path = request.kernel_path
    if kernel_path in REFERENCE_KERNELS or ":" in kernel_path or kernel_path.endswith(".py"):
        return request
    similar_names = get_close_matches(kernel_path, REFERENCE_KERNELS, 1)
    raise UsageError(
        f"Unknown reference kernel {kernel_path!r}.",
        (f"Did you mean {similar_names[0]}? " if similar_names else "")
        + f"Expected FILE.py:KERNEL for your own kernel, or one of {', '.join(REFERENCE_KERNELS)}.",
    )


def _make_result(row: Mapping[str, Any], kernel_path: str) -> CompileResult:
    directory = row.get("directory")
    target = parse_target(row["target"])
    remedy = row.get("remedy")
    if directory is None and remedy is None and target not in KNOWN_TARGETS:
        similar_names = get_close_matches(target.arch, [known_target.arch for known_target in KNOWN_TARGETS])
        names = f"; similar names are {', '.join(similar_names)}." if similar_names else "."
        remedy = f"{target.arch} is not a known GPU{names}"
    return CompileResult(
        kernel=kernel_path if kernel_path in REFERENCE_KERNELS else row["kernel"],
        target=target,
        seconds=row["seconds"],
        directory=None if directory is None else Path(directory),
        message=row.get("message"),
        remedy=remedy,
        kernel_path=kernel_path,
        triton=row.get("triton"),
        config=row.get("config"),
        is_cached=bool(row.get("cached")),
        is_usage_error=row.get("kind") == "usage",
        types=tuple(row.get("types", ())),
        constants=row.get("constants", {}),
        options=row.get("options", {}),
        details=row.get("details"),
    )


class Recompilation(NamedTuple):
    """The result of compiling one text."""

    artifact: Artifact | None
    """None if the compiler refused the text."""
    message: str | None


def recompile_texts(
    texts: Sequence[tuple[str, Mapping[str, Any]]],
    stem: str,
    target: Target,
    directory: Path,
    *,
    is_retargeted: bool = False,
    interpreter: Interpreter | None = None,
) -> list[Recompilation]:
    """Compile saved texts with the installed Triton, or that of an interpreter; no user code runs.

    Args:
        texts: TTIR texts, each with its compile options.
        stem: file name of the kernel without a suffix.
        directory: an empty directory for the texts and the entries.
        is_retargeted: the texts were made for another target; the passes over TTIR run again.

    Returns:
        One result for each text, in order.

    Raises:
        CompileError: Triton cannot be used here.
    """
    requests = []
    for number, (text, options) in enumerate(texts):
        ttir_path = directory / f"saved{number}" / f"{stem}.ttir"
        ttir_path.parent.mkdir(parents=True)
        write_text(ttir_path, text)
        request: dict[str, Any] = {
            "place": str(ttir_path), "signature": None, "constexprs": {}, "options": dict(options)
        }  # fmt: skip
        request |= {"configs": None, "targets": [str(target)], "out": str(directory / f"made{number}")}
        requests.append({**request, "environment": {}, "untrusted": True, "is_retargeted": is_retargeted})
    recompilations: dict[int, Recompilation] = {}
    compiler = interpreter or current_interpreter()
    for row in run_requests(compiler, requests, workers=count_processors(), time_limit=TIME_LIMIT_SECONDS):
        entry_directory = row.get("directory")
        artifact = None if entry_directory is None else open_cache(Path(entry_directory)).entries[0]
        recompilations[row["ask"]] = Recompilation(artifact, row.get("message"))
    return [recompilations[number] for number in range(len(texts))]


_KERNEL_PATH = re.compile(r"(.+\.py)(?::([\w.]+))?")


@dataclass(frozen=True, slots=True)
class KernelState:
    """One state of a kernel to compile."""

    request: KernelRequest
    label: str
    """Name for display: `HEAD~1`, a file, `as it is`."""
    older_state: tuple[Path, Path] | None = None
    """The checkout and the directory with its older state; None for the current files."""


def older_kernel_state(request: KernelRequest, revision: str) -> KernelState:
    """The kernel of the same name in another file, or in the same file at a revision.

    Args:
        request: the current kernel, by `FILE.py:KERNEL`.
        revision: `OTHER.py`, `OTHER.py:KERNEL`, or a git revision.

    Raises:
        UsageError: the file or revision does not exist, or the revision does not have the file.
    """
    own_path_match, other_path_match = (_KERNEL_PATH.fullmatch(request.kernel_path), _KERNEL_PATH.fullmatch(revision))
    own_file, name = (Path(own_path_match[1]), own_path_match[2] or "") if own_path_match is not None else (None, "")
    if other_path_match is not None:
        path = Path(other_path_match[1])
        if not path.is_file():
            raise UsageError(f"There is no file {path}.", "Name a file, a revision or a cache directory.")
        return KernelState(replace(request, kernel_path=_join_kernel_path(path, other_path_match[2] or name)), revision)
    if own_file is None or not own_file.is_file():
        raise UsageError(
            f"{request.kernel_path} is not a file with an older state at {revision}.",
            "Name a kernel as FILE.py:KERNEL, or change an option: --with num_stages=4.",
        )
    checkout = read_revision(own_file, revision, cache_directory() / "revisions")
    request = replace(request, kernel_path=_join_kernel_path(checkout.resolve(own_file), name))
    return KernelState(request, revision, (checkout.top, checkout.tree))


def compile_states(
    states: tuple[KernelState, KernelState] | tuple[KernelState],
    targets: Iterable[str],
    out: Path | None = None,
    **settings: Any,
) -> list[list[CompileResult]]:
    """Compile each state; returns their results in the order of `compile_kernels`.

    One process compiles the states of one file. Two files have a process each, since modules of the same name
    may lie beside both.

    Args:
        out: the cache to fill; by default one in the user's cache directory.
        settings: other arguments of `compile_kernels`.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    targets = list(targets)
    out = default_directory() if out is None else out
    sources = {(state.request.kernel_path.partition(":")[0], state.older_state) for state in states}
    if len(sources) == 1:
        requests = [state.request for state in states]
        rows = compile_kernels(requests, targets, out, older_state=states[0].older_state, **settings)
        rows_per_state = len(rows) // len(states)
        return [rows[at * rows_per_state : (at + 1) * rows_per_state] for at in range(len(states))]
    workers = max(1, (settings.pop("workers", None) or count_processors()) // len(states))
    with ThreadPoolExecutor(len(states)) as threads:
        jobs = []
        for state in states:
            compile_state = partial(compile_kernels, workers=workers, older_state=state.older_state, **settings)
            jobs.append(threads.submit(compile_state, [state.request], targets, out))
        return [job.result() for job in jobs]


def _join_kernel_path(file: Path, name: str) -> str:
    return f"{file}:{name}" if name else str(file)
