"""Damage, duplicates, sizes and ages in a cache directory, and the removal of entries.

Checked are the group file (`__grp__NAME.json`), whose members must exist; JSON; the end of texts, which
every release closes with a newline; the sections of binaries; and that all files are of one GPU. Damage that
leaves a file well-formed is not seen. An entry is removed by taking its group file first, so that Triton
compiles it again, then by one rename. What was written within the last hour, or read or written within
the last day unless it is damaged, stays: a program may be using it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.errors import CacheError, InspectorError
from artifact_inspector.files.artifact import Artifact, File, join_display_path, sanitize
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.elf import read_sections
from artifact_inspector.files.reader import describe_error, read_content
from artifact_inspector.files.scratch import is_alive, owned_prefix, remove_stale
from artifact_inspector.hardware.targets import (
    EM_AMDGPU,
    EM_CUDA,
    STAGES_WITH_TARGET,
    parse_metadata_target,
    parse_stage_target,
)
from artifact_inspector.model.limits import METADATA
from artifact_inspector.model.string_enum import StringEnum

_HOUR, _DAY = 3600, 24 * 3600
_GROUP = "__grp__"
_TEMPORARY = re.compile(r"tmp\.pid_(\d{1,10})_.*|.*\.tmp\.pid_(\d{1,10})_.*|\.compiling-.*")
_PRUNED = ".pruned-"
_CLOSED_TEXTS = {"ttir": b")}", "ttgir": b")}", "source": b")}", "ptx": b"}"}
"""Last characters of a whole text, before its newline. LLIR and AMDGCN end in lines of any kind."""
_TEXTS = {*_CLOSED_TEXTS, "llir", "amdgcn"}
_MACHINES = {"cubin": EM_CUDA, "hsaco": EM_AMDGPU}


class DamageKind(StringEnum):
    """What is wrong with a file of a cache."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    MIXED_TARGETS = "mixed-targets"


class Damage(NamedTuple):
    """A damaged file."""

    directory: str
    file: str
    kind: DamageKind
    problem: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One directory of a cache with files of kernels."""

    directory: str
    """Relative to the cache."""
    kernels: tuple[str, ...]
    target: str | None
    triton_version: str | None
    files: int
    bytes: int
    modified: float
    """Time of its newest file, in seconds since 1970."""
    used: float
    """Time of the last read or write, as far as the file system records it."""
    damage: tuple[Damage, ...]
    duplicate_of: str | None
    """The first entry with the same files."""
    is_complete: bool
    """False if a compile failed or runs: there is no metadata."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A temporary file or directory of a compile that ended."""

    directory: str
    path: Path
    bytes: int
    modified: float


@dataclass(frozen=True, slots=True)
class CacheHealth:
    """What a cache directory holds."""

    root: Path
    entries: tuple[CacheEntry, ...]
    leftovers: tuple[Leftover, ...]
    other_files: int
    """Launchers, autotuning results and files that are not of Triton."""
    other_bytes: int
    unsearched: tuple[str, ...]
    """What was not searched, with the reason."""

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Of all entries."""
        return tuple(damage for entry in self.entries for damage in entry.damage)


def examine(root: Path) -> CacheHealth:
    """Read every file of a cache directory once.

    Raises:
        CacheError: it is no directory, or cannot be read.
    """
    if not root.is_dir():
        raise CacheError(f"There is no cache directory {sanitize(str(root))}.", "Give the directory of a cache.")
    files, leftovers = _scan(root)  # before a file is read, which may change the time of its last use
    cache = open_cache(root)
    kernels: dict[str, list[Artifact]] = defaultdict(list)
    for artifact in cache.entries:
        kernels[artifact.directory].append(artifact)
    entries: list[CacheEntry] = []
    first_by_digest: dict[str, str] = {}
    other = Counter[str]()
    for directory, stats in sorted(files.items()):
        is_entry = directory in kernels or any(name.startswith(_GROUP) for name in stats)
        if not is_entry:
            other.update(files=len(stats), bytes=sum(x.st_size for x in stats.values()))
            continue
        path = root if directory == "." else root / directory
        damage = tuple(_damage(path, directory, stats, kernels[directory]))
        digest = _digest(path, stats)
        duplicate_of = first_by_digest.setdefault(digest, directory)
        entries.append(_entry(directory, stats, kernels[directory], damage, duplicate_of))
    missing = tuple(f"{path}: {problem}" for path, problem in cache.missing)
    return CacheHealth(root, tuple(entries), tuple(leftovers), other["files"], other["bytes"], missing)


def _entry(
    directory: str,
    stats: Mapping[str, os.stat_result],
    artifacts: Sequence[Artifact],
    damage: tuple[Damage, ...],
    duplicate_of: str,
) -> CacheEntry:
    first = artifacts[0] if artifacts else None
    return CacheEntry(
        directory=directory,
        kernels=tuple(dict.fromkeys(artifact.display_name for artifact in artifacts)),
        target=None if first is None or first.target is None else first.target.arch,
        triton_version=None if first is None or first.triton_version is None else str(first.triton_version),
        files=len(stats),
        bytes=sum(x.st_size for x in stats.values()),
        modified=max(x.st_mtime for x in stats.values()),
        used=max(max(x.st_mtime, x.st_atime) for x in stats.values()),
        damage=damage,
        duplicate_of=None if duplicate_of == directory else duplicate_of,
        is_complete=any("json" in artifact.files for artifact in artifacts),
    )


def _scan(root: Path) -> tuple[dict[str, dict[str, os.stat_result]], list[Leftover]]:
    """Directory → its regular files, without links; and what killed compiles left."""
    files: dict[str, dict[str, os.stat_result]] = {}
    leftovers: list[Leftover] = []
    pending = [(root, ".")]
    while pending:
        path, directory = pending.pop()
        with suppress(OSError), os.scandir(path) as listing:
            for entry in listing:
                name = join_display_path(directory, entry.name)
                stat = entry.stat(follow_symlinks=False)
                if match := _TEMPORARY.fullmatch(entry.name):
                    pid = match[1] or match[2]
                    if time.time() - stat.st_mtime > _HOUR and not (pid and is_alive(int(pid))):
                        leftovers.append(Leftover(name, Path(entry.path), _size(Path(entry.path)), stat.st_mtime))
                elif entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry.path), name))
                elif entry.is_file(follow_symlinks=False):
                    files.setdefault(directory, {})[entry.name] = stat
    return files, leftovers


def _size(path: Path) -> int:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            return sum(file.lstat().st_size for file in path.rglob("*"))
        return path.lstat().st_size
    return 0


# -- damage ----------------------------------------------------------------------------


def _damage(path: Path, directory: str, names: Collection[str], artifacts: Sequence[Artifact]) -> Iterator[Damage]:
    for name in sorted(names):
        if name.startswith(_GROUP) and name.endswith(".json"):
            yield from _group_damage(path / name, directory, names)
        elif name.rpartition(".")[2] in _TEXTS | _MACHINES.keys() | {"json"}:
            yield from _file_damage(path / name, directory)
    for artifact in artifacts:
        yield from _target_damage(artifact)


def _group_damage(group: Path, directory: str, names: Collection[str]) -> Iterator[Damage]:
    try:
        members = json.loads(read_content(group, METADATA))["child_paths"]
        listed = [os.path.basename(str(member)) for member in members]  # noqa: PTH119 - of any system
    except OSError as error:
        yield Damage(directory, group.name, DamageKind.UNREADABLE, describe_error(error))
    except (ValueError, LookupError, TypeError, RecursionError):
        yield Damage(directory, group.name, DamageKind.UNREADABLE, "is not JSON with `child_paths`")
    else:
        for name in sorted(set(listed) - {*names}):
            yield Damage(directory, sanitize(name), DamageKind.MISSING, f"is listed by {group.name} and does not exist")


def _file_damage(file: Path, directory: str) -> Iterator[Damage]:
    suffix = file.suffix.removeprefix(".")
    kind, problem = DamageKind.TRUNCATED, ""
    try:
        content = read_content(file)
    except OSError as error:
        kind, problem = DamageKind.UNREADABLE, describe_error(error)
    else:
        if not content:
            problem = "is empty"
        elif suffix == "json":
            try:
                json.loads(content)
            except (ValueError, RecursionError):
                problem = "is not JSON"
        elif suffix in _MACHINES:
            try:
                read_sections(content, suffix, _MACHINES[suffix])
                first, size, count = *struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54)
                problem = "" if first + size * count <= len(content) else "lacks its program headers: it is truncated"
            except InspectorError as error:
                problem = error.message.rstrip(".")
        elif not content.endswith(b"\n") or content.rstrip()[-1:] not in _CLOSED_TEXTS.get(
            suffix, content.rstrip()[-1:]
        ):
            problem = f"ends in the middle of its text, after {len(content):,} bytes"
    if problem:
        yield Damage(directory, sanitize(file.name), kind, problem)


def _target_damage(artifact: Artifact) -> Iterator[Damage]:
    """Files of another GPU than the metadata names: the entry was mixed or renamed."""
    with suppress(InspectorError):
        target = parse_metadata_target(artifact.metadata)
        if target is None or artifact.triton_version is None or artifact.triton_version.since((3, 0)) is False:
            return  # Triton 2.0 wrote sm_86 into newer PTX
        for suffix in STAGES_WITH_TARGET:
            stage_target = _target_of(suffix, artifact.files.get(suffix))
            if stage_target is not None and stage_target != target.arch:
                problem = f"is for {stage_target}, but the metadata says {target.arch}"
                file = sanitize(artifact.files[suffix].name)
                yield Damage(artifact.directory, file, DamageKind.MIXED_TARGETS, problem)


def _target_of(suffix: str, file: File | None) -> str | None:
    if file is None:
        return None
    try:
        target = parse_stage_target(suffix, read_content(file)[: 64 * 1024])
    except (OSError, InspectorError):
        return None  # reported as damage of the file, or of a GPU that is unknown here
    return None if target is None else target.arch


def _digest(path: Path, stats: Mapping[str, os.stat_result]) -> str:
    """Equal for directories with the same files; group files have absolute paths."""
    digest = hashlib.sha256()
    for name in sorted(stats):
        if not name.startswith(_GROUP):
            digest.update(f"{name}\0{stats[name].st_size}\0".encode(errors="surrogateescape"))
            with suppress(OSError):
                digest.update(hashlib.sha256(read_content(path / name)).digest())
    return digest.hexdigest()


# -- removal ---------------------------------------------------------------------------


class PruneReason(StringEnum):
    """Why an entry is removed."""

    DAMAGED = "damaged"
    LEFTOVER = "leftover"
    DUPLICATE = "duplicate"
    OLD = "old"
    TARGET = "target"
    TRITON = "triton"


@dataclass(frozen=True, slots=True)
class PruneRules:
    """Which entries to remove, beside damaged ones and leftovers."""

    older_than_days: float | None = None
    targets: frozenset[str] = frozenset()
    """GPUs to keep; empty for all."""
    tritons: tuple[str, ...] = ()
    """Versions to keep; empty for all."""
    duplicates: bool = False

    def reason(self, entry: CacheEntry, now: float) -> PruneReason | None:
        """Why an entry is removed; None if it stays."""
        if entry.damage:
            return PruneReason.DAMAGED
        if self.targets and entry.target is not None and entry.target not in self.targets:
            return PruneReason.TARGET
        version = entry.triton_version
        if self.tritons and version is not None and not any(f"{version}.".startswith(f"{x}.") for x in self.tritons):
            return PruneReason.TRITON
        if self.older_than_days is not None and now - entry.used > self.older_than_days * _DAY:
            return PruneReason.OLD
        return PruneReason.DUPLICATE if self.duplicates and entry.duplicate_of is not None else None


class Pruned(NamedTuple):
    """One removal, or a planned one."""

    directory: str
    reason: PruneReason
    bytes: int
    is_removed: bool
    kept_because: str
    """Why it stays; empty if it goes."""


def prune(health: CacheHealth, rules: PruneRules, *, is_dry_run: bool = True) -> tuple[Pruned, ...]:
    """Remove entries and leftovers; a dry run says what would go."""
    now, results = time.time(), []
    if not is_dry_run:
        remove_stale(health.root, _PRUNED)  # of a run that was killed
    for entry in health.entries:
        reason = rules.reason(entry, now)
        if reason is not None:
            path = health.root / entry.directory
            kept = _obstacle(entry, path, now, reason)
            if not kept and not is_dry_run:
                kept = _remove(path, health.root, entry.modified)
            results.append(Pruned(entry.directory, reason, entry.bytes, not (is_dry_run or kept), kept))
    for leftover in health.leftovers:
        kept = "" if is_dry_run else _remove(leftover.path, health.root, None)
        results.append(Pruned(leftover.directory, PruneReason.LEFTOVER, leftover.bytes, not (is_dry_run or kept), kept))
    return tuple(results)


def _obstacle(entry: CacheEntry, path: Path, now: float, reason: PruneReason) -> str:
    if entry.directory == ".":
        return "it is the directory itself"
    if now - entry.modified < _HOUR:
        return "it was written within the last hour"
    if now - entry.used < _DAY and reason is not PruneReason.DAMAGED:
        return "it was read or written within the last day"
    with suppress(OSError):
        if any(child.is_dir() for child in path.iterdir()):
            return "it has subdirectories"
    return ""


def _remove(path: Path, root: Path, modified: float | None) -> str:
    """Remove a directory or a file; what keeps it, or nothing."""
    try:
        if modified is not None:
            if max(file.lstat().st_mtime for file in path.iterdir()) != modified:
                return "it changed just now"
            for group in path.glob(f"{_GROUP}*.json"):
                group.unlink()  # from here on Triton compiles it again
        doomed = root / f"{owned_prefix(_PRUNED)}{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
        path.rename(doomed)
        if doomed.is_dir() and not doomed.is_symlink():
            shutil.rmtree(doomed)
        else:
            doomed.unlink()
    except (OSError, ValueError) as error:
        return f"it cannot be removed ({getattr(error, 'strerror', None) or error})"
    return ""
