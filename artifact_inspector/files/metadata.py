"""Identifies the kernel of files with one stem, from its metadata and its stages."""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.artifact import (
    CUDA_FILES,
    HIP_FILES,
    TEXT_STAGES,
    Artifact,
    CacheContents,
    Completeness,
    File,
    OtherFile,
    Problem,
    join_display_path,
    sanitize,
)
from artifact_inspector.files.reader import describe_error, read_content, read_head
from artifact_inspector.hardware.targets import STAGES_WITH_TARGET, Target, parse_metadata_target, parse_stage_target
from artifact_inspector.model import Backend, TritonVersion
from artifact_inspector.model.limits import METADATA

TARGET_HEAD_BYTES = 64 * 1024
"""Bytes of a stage that are searched for its target."""
ReportProblem = Callable[..., None]


def find_artifacts(
    directory: Path, display_directory: str, stem: str, files: dict[str, File], contents: CacheContents
) -> Iterator[Artifact]:
    """The artifact of one stem; two artifacts if two targets were dumped into the same directory."""

    def report_problem(sentence: str, suffix: str | None = None) -> None:
        name = None if suffix is None else sanitize(files[suffix].name)
        path = display_directory if name is None else join_display_path(display_directory, name)
        contents.problems.append(Problem(path, sentence))

    metadata = _read_metadata(files["json"], report_problem) if "json" in files else None
    if files.keys() == {"json"}:
        if metadata is None or not {"num_warps", "shared"} <= metadata.keys():
            path = join_display_path(display_directory, sanitize(files["json"].name))
            contents.others.append(OtherFile(path, "other JSON file"))
            return
        report_problem("metadata without any stage", "json")
    target, is_intel = None, False
    try:
        target = None if metadata is None else parse_metadata_target(metadata)
    except UsageError as error:
        is_intel = is_for_intel(metadata or {})
        limits = " It is an Intel GPU: only TTIR, TTGIR and LLIR are read." if is_intel else ""
        report_problem(f"{error.message}{limits}", "json")
    if target is None and not is_intel:
        target = _stage_target(files, report_problem)
    if not (files.keys() & CUDA_FILES and files.keys() & HIP_FILES):
        artifact = _build_artifact(directory, display_directory, stem, files, metadata, target, report_problem)
        kernels: list[str] = []
        if "cubin" in files and files.keys() <= {"cubin", "ptx", "sass"}:
            from artifact_inspector.files.binaries import list_kernels  # which few caches need

            with suppress(CacheError, OSError):
                kernels = list_kernels(read_content(files["cubin"]))
        for kernel in kernels if len(kernels) > 1 else ():
            others = tuple(other for other in kernels if other != kernel)
            yield replace(artifact, name=sanitize(kernel), display_name=sanitize(kernel), other_kernels=others)
        if len(kernels) < 2:
            yield artifact
        return
    report_problem(f"{sanitize(stem)} was compiled for two vendors here; the later compile overwrote the earlier IR")
    foreign = CUDA_FILES if target is not None and target.backend is Backend.HIP else HIP_FILES
    main_files = {suffix: path for suffix, path in files.items() if suffix not in foreign}
    foreign_files = {suffix: path for suffix, path in files.items() if suffix in foreign}
    yield _build_artifact(directory, display_directory, stem, main_files, metadata, target, report_problem)
    target = _stage_target(foreign_files, report_problem)
    yield _build_artifact(directory, display_directory, stem, foreign_files, None, target, report_problem)


def is_for_intel(metadata: Mapping[str, object]) -> bool:
    """Whether Intel's backend (intel-xpu-backend-for-triton) wrote the metadata."""
    target = metadata.get("target")
    return isinstance(target, dict) and target.get("backend") == "xpu"


def _build_artifact(
    directory: Path,
    display_directory: str,
    stem: str,
    files: Mapping[str, File],
    metadata: Mapping[str, object] | None,
    target: Target | None,
    report_problem: ReportProblem,
) -> Artifact:
    keys = {} if metadata is None else metadata
    version = _triton_version(keys)
    symbol = keys.get("name")
    # An IR file passed to the compiler gives the stem `@kernel`.
    name = symbol if isinstance(symbol, str) and symbol else stem.removeprefix("@")
    display_name = name
    if version is not None and version.since((3, 0)) is False and name.startswith(stem):
        display_name = stem if re.fullmatch(r"_[0-9cde]*", name[len(stem) :]) else name
    digest = keys.get("hash")
    if not isinstance(digest, str) or not digest:
        digest = directory.resolve().name if display_directory == "." else directory.name
    if metadata is None or files.keys() == {"json"}:
        state = Completeness.PARTIAL
    elif files.keys() & (TEXT_STAGES - {"source"}):
        state = Completeness.COMPLETE
    else:
        state = Completeness.BINARY_ONLY
    return Artifact(
        directory=display_directory,
        stem=sanitize(stem),
        name=sanitize(name),
        display_name=sanitize(display_name),
        hash=sanitize(digest),
        target=target,
        triton_version=version,
        num_warps=_parse_count(keys, "num_warps", 1, report_problem),
        num_stages=_parse_count(keys, "num_stages", 0, report_problem),
        shared_bytes=_parse_count(keys, "shared", 0, report_problem),
        state=state,
        files=files,
        metadata=keys,
    )


def _read_metadata(path: File, report_problem: ReportProblem) -> dict[str, object] | None:
    constants: list[str] = []
    try:
        content = json.loads(
            read_content(path, METADATA), parse_constant=constants.append, object_pairs_hook=_share_texts
        )
    except OSError as error:
        report_problem(f"{describe_error(error)}; using the stages instead", "json")
        return None
    # ValueError: not JSON, not UTF-8, or an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        report_problem(f"unreadable JSON ({reason}); using the stages instead", "json")
        return None
    if not isinstance(content, dict):
        report_problem("the metadata is not a JSON object; using the stages instead", "json")
        return None
    if constants:
        report_problem(f"{', '.join(constants)} is not valid JSON; treated as absent", "json")
    return content


def _share_texts(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; its texts are kept once for all kernels, whose metadata differ little: 40 % of their memory."""
    return {sys.intern(key): sys.intern(value) if type(value) is str else value for key, value in pairs}


def _parse_count(metadata: Mapping[str, object], key: str, minimum: int, report_problem: ReportProblem) -> int | None:
    value = metadata.get(key)
    if value is None:
        return None
    if type(value) is int and value >= minimum:
        return value
    report_problem(f"{key} is {reprlib.repr(value)}; treated as absent", "json")
    return None


def _triton_version(metadata: Mapping[str, object]) -> TritonVersion | None:
    """The version as written, else derived from the keys that each release added or removed."""
    version = metadata.get("triton_version")
    if isinstance(version, str) and version:
        return TritonVersion(sanitize(version))
    keys = metadata.keys()
    if "hash" in keys:
        return TritonVersion("3.2" if "sanitize_overflow" in keys else "3.0/3.1")
    if isinstance(metadata.get("target"), list):
        return TritonVersion("2.3")
    if "clusterDims" in keys:
        return TritonVersion("2.2")
    if {"arch", "device_type"} <= keys:
        return TritonVersion("2.1")
    return TritonVersion("2.0") if "ctime" in keys else None


def _stage_target(files: Mapping[str, File], report_problem: ReportProblem) -> Target | None:
    """The target in the first stage that names one."""
    for suffix in STAGES_WITH_TARGET:
        if suffix not in files:
            continue
        try:
            target = parse_stage_target(suffix, read_head(files[suffix], TARGET_HEAD_BYTES))
        except OSError as error:
            report_problem(describe_error(error), suffix)
        except UsageError as error:
            report_problem(error.message, suffix)
        else:
            if target is not None:
                return target
    return None
