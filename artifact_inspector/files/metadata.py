"""Identifies the kernel of files with one stem, from its metadata and its stages."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from artifact_inspector.errors import UsageError
from artifact_inspector.files.artifact import (
    CUDA_FILES,
    HIP_FILES,
    TEXT_STAGES,
    Artifact,
    Completeness,
    File,
    Found,
    Other,
    Problem,
    join,
    printable,
)
from artifact_inspector.files.reading import fault, read_content, read_head
from artifact_inspector.hardware.targets import (
    STAGES_WITH_TARGET,
    Target,
    parse_metadata_target,
    parse_stage_target,
)
from artifact_inspector.model import Backend, TritonVersion
from artifact_inspector.model.limits import METADATA

HEAD = 64 * 1024
"""Bytes of a stage that are searched for its target."""


def find_artifacts(
    directory: Path, shown: str, stem: str, files: dict[str, File], found: Found
) -> Iterator[Artifact]:
    """The artifact of one stem; two artifacts if two targets were dumped into the same directory."""

    def complain(sentence: str, suffix: str | None = None) -> None:
        path = shown if suffix is None else join(shown, printable(files[suffix].name))
        found.problems.append(Problem(path, sentence))

    metadata = _metadata(files["json"], complain) if "json" in files else None
    if files.keys() == {"json"}:
        if metadata is None or not {"num_warps", "shared"} <= metadata.keys():
            found.others.append(Other(join(shown, printable(files["json"].name)), "other JSON file"))
            return
        complain("metadata without any stage", "json")
    target = None
    try:
        target = None if metadata is None else parse_metadata_target(metadata)
    except UsageError as error:
        complain(error.message, "json")
    if target is None:
        target = _stage_target(files, complain)
    both = files.keys() & CUDA_FILES and files.keys() & HIP_FILES
    if not both:
        yield _artifact(directory, shown, stem, files, metadata, target, complain)
        return
    complain(
        f"{printable(stem)} was compiled for two vendors here; the later compile overwrote the earlier IR"
    )
    foreign = CUDA_FILES if target is not None and target.backend is Backend.HIP else HIP_FILES
    own = {suffix: path for suffix, path in files.items() if suffix not in foreign}
    rest = {suffix: path for suffix, path in files.items() if suffix in foreign}
    yield _artifact(directory, shown, stem, own, metadata, target, complain)
    yield _artifact(directory, shown, stem, rest, None, _stage_target(rest, complain), complain)


Complain = Callable[..., None]


def _artifact(
    directory: Path,
    shown: str,
    stem: str,
    files: Mapping[str, File],
    metadata: Mapping[str, object] | None,
    target: Target | None,
    complain: Complain,
) -> Artifact:
    known = {} if metadata is None else metadata
    version = _triton_version(known)
    symbol = known.get("name")
    # An IR file passed to the compiler gives the stem `@kernel`.
    name = symbol if isinstance(symbol, str) and symbol else stem.removeprefix("@")
    short = name
    if version is not None and version.since((3, 0)) is False and name.startswith(stem):
        short = stem if re.fullmatch(r"_[0-9cde]*", name[len(stem) :]) else name
    digest = known.get("hash")
    if not isinstance(digest, str) or not digest:
        digest = directory.resolve().name if shown == "." else directory.name
    if metadata is None or files.keys() == {"json"}:
        state = Completeness.PARTIAL
    elif files.keys() & (TEXT_STAGES - {"source"}):
        state = Completeness.COMPLETE
    else:
        state = Completeness.BINARY_ONLY
    return Artifact(
        directory=shown,
        stem=printable(stem),
        name=printable(name),
        display_name=printable(short),
        hash=printable(digest),
        target=target,
        triton_version=version,
        num_warps=_whole(known, "num_warps", 1, complain),
        num_stages=_whole(known, "num_stages", 0, complain),
        shared_bytes=_whole(known, "shared", 0, complain),
        state=state,
        files=files,
        metadata=known,
    )


def _metadata(path: File, complain: Complain) -> dict[str, object] | None:
    odd: list[str] = []
    try:
        content = json.loads(read_content(path, METADATA), parse_constant=odd.append)
    except OSError as error:
        complain(f"{fault(error)}; using the stages instead", "json")
        return None
    # ValueError: not JSON, not UTF-8, or an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        complain(f"unreadable JSON ({why}); using the stages instead", "json")
        return None
    if not isinstance(content, dict):
        complain("the metadata is not a JSON object; using the stages instead", "json")
        return None
    if odd:
        complain(f"{', '.join(odd)} is not valid JSON; treated as absent", "json")
    return content


def _whole(metadata: Mapping[str, object], key: str, least: int, complain: Complain) -> int | None:
    value = metadata.get(key)
    if value is None:
        return None
    if type(value) is int and value >= least:
        return value
    complain(f"{key} is {reprlib.repr(value)}; treated as absent", "json")
    return None


def _triton_version(metadata: Mapping[str, object]) -> TritonVersion | None:
    """The version as written, else derived from the keys that each release added or removed."""
    version = metadata.get("triton_version")
    if isinstance(version, str) and version:
        return TritonVersion(printable(version))
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


def _stage_target(files: Mapping[str, File], complain: Complain) -> Target | None:
    """The target in the first stage that names one."""
    for suffix in STAGES_WITH_TARGET:
        if suffix not in files:
            continue
        try:
            target = parse_stage_target(suffix, read_head(files[suffix], HEAD))
        except OSError as error:
            complain(fault(error), suffix)
        except UsageError as error:
            complain(error.message, suffix)
        else:
            if target is not None:
                return target
    return None
