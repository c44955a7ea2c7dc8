"""A Triton cache directory, of any version, as the kernels in it.

Layouts of Triton 2.0 to 3.9 on both vendors, Inductor's copy, dump directories, one entry alone and
directories of caches are all walked the same way: a kernel is the files of one directory that share
a stem, whatever the directory is called. Nothing found is imported, loaded or executed, no path
written in a file is followed, and links to directories stay closed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.hardware.targets import (
    STAGES_WITH_TARGET,
    Target,
    parse_metadata_target,
    parse_stage_target,
)
from artifact_inspector.model import TritonVersion
from artifact_inspector.model.text import SourceText

__all__ = [
    "REMARKS",
    "Artifact",
    "Cache",
    "HeldFile",
    "Other",
    "Problem",
    "StageText",
    "default_directory",
    "hold_files",
    "open_cache",
    "open_file",
    "read_binary",
    "read_remarks",
    "read_stage",
]

MAX_DEPTH = 6
HEAD = 64 * 1024

CUDA_FILES = frozenset({"ptx", "cubin", "sass"})
HIP_FILES = frozenset({"amdgcn", "hsaco"})
BINARIES = frozenset({"cubin", "hsaco"})
TEXT_STAGES = frozenset({"source", "glir", "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass"})
REMARKS = "remarks"
"""What the compilers said, kept beside a kernel by `inspect-kernel compile`."""
SUFFIXES = TEXT_STAGES | BINARIES | {"json", REMARKS}


class Problem(NamedTuple):
    """Something that could not be read, or only in part."""

    path: str
    """From the cache directory."""
    problem: str


class Other(NamedTuple):
    """Something in the cache that is no kernel: named, never looked into."""

    path: str
    kind: str


class HeldFile(NamedTuple):
    """A file whose content is in memory; it is read as a path is."""

    name: str
    content: bytes

    def read_bytes(self) -> bytes:
        """The content."""
        return self.content

    def open(self, mode: str) -> io.BytesIO:
        """The content as a binary stream."""
        return io.BytesIO(self.content)


File = Path | HeldFile


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one compilation left behind."""

    directory: str
    """Of its entry, from the cache directory, with `/`; `.` for the directory itself."""
    stem: str
    """What its files are called: the Python function's name."""
    name: str
    """The kernel symbol by the metadata, else the stem."""
    display_name: str
    """The name without the specialisation that Triton 2.x appended (`matmul_0d1d2d34`)."""
    hash: str
    """The metadata's hash; where it has none, the directory's own name, in memory the files' SHA-256."""
    target: Target | None
    triton_version: TritonVersion | None
    """As written (3.3 and later), else told from the metadata's keys: `2.0` … `2.3`, `3.0/3.1`, `3.2`."""
    num_warps: int | None
    num_stages: int | None
    shared_bytes: int | None
    """Bytes of shared memory per block, static and dynamic."""
    state: str
    """`partial`: no readable metadata, as a failed compile, one still running and a dump directory leave
    it."""
    files: Mapping[str, File] = field(hash=False)
    """By suffix: `ttir`, `ptx`, `cubin`, `json` …"""
    metadata: Mapping[str, object] = field(hash=False)
    """The JSON as written; keys come and go between versions."""

    def relative(self, suffix: str) -> str:
        """The path of a file from the cache directory, as it is shown."""
        return _join(self.directory, _printable(self.files[suffix].name))


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache directory as found."""

    root: Path
    entries: tuple[Artifact, ...]
    """By name, target and hash."""
    others: tuple[Other, ...]
    problems: tuple[Problem, ...]


class StageText(NamedTuple):
    """The text of one stage and what is wrong with it, if anything."""

    source: SourceText
    problem: Problem | None


def default_directory() -> Path:
    """The directory that Triton itself would use: TRITON_CACHE_DIR, TRITON_HOME, the home directory.

    Raises:
        CacheError: none is set and there is no home directory.
    """
    if directory := os.environ.get("TRITON_CACHE_DIR", "").strip():
        return Path(directory)
    try:
        home = os.environ.get("TRITON_HOME", "").strip() or Path.home()
    except RuntimeError:
        raise CacheError("There is no home directory to look for .triton/cache in.", _NAME_ONE) from None
    return Path(home, ".triton", "cache")


def open_cache(path: str | os.PathLike[str] | None = None) -> Cache:
    """Everything under a cache directory, at most six levels down.

    Args:
        path: a cache, one entry of it, or a directory of caches; None for the default one.

    Raises:
        CacheError: it is missing, no directory, or may not be read. Whatever is wrong further down
            is a problem of the result instead.
    """
    root = default_directory() if path is None else Path(path)
    try:
        root = root.expanduser()
        os.scandir(root).close()
    except (FileNotFoundError, RuntimeError, ValueError):
        raise CacheError(f"There is no directory {_printable(str(root))}.", _NAME_ONE) from None
    except NotADirectoryError:
        raise CacheError(
            f"{_printable(str(root))} is a file, not a cache directory.",
            f"Name the directory that holds it: {_printable(str(root.parent))}",
        ) from None
    except OSError as error:
        raise CacheError(
            f"The directory {_printable(str(root))} cannot be read: {error.strerror or error}.",
            "Check its permissions, or copy it to a place of your own.",
        ) from None
    found = _Found()
    _walk(root, found)
    entries = sorted(found.artifacts, key=_order)
    return Cache(root, tuple(entries), tuple(sorted(found.others)), tuple(sorted(found.problems)))


def open_file(path: str | os.PathLike[str]) -> Cache:
    """One file of a kernel with the metadata beside it, if any, as a cache of one entry.

    Args:
        path: a stage or a binary, which is then all that is known of the kernel; or its metadata, which
            stands for all of its files.

    Raises:
        CacheError: it is none of these, or not there.
    """
    place = Path(path)
    suffix = place.suffix.removeprefix(".")
    shown = _printable(str(place))
    if not place.is_file():
        raise CacheError(f"There is no file {shown}.", _NAME_ONE)
    if suffix not in SUFFIXES or place.name.startswith("__grp__"):
        kinds = ", ".join(f".{kind}" for kind in sorted(SUFFIXES))
        raise CacheError(f"{shown} is no file of a compiled kernel.", f"Those end in {kinds}.")
    wanted = sorted(SUFFIXES) if suffix == "json" else [suffix, "json"]
    beside = {kind: place.with_name(f"{place.stem}.{kind}") for kind in wanted}
    files: dict[str, File] = {kind: file for kind, file in beside.items() if file.is_file()}
    found = _Found()
    found.artifacts.extend(_artifacts(place.parent, ".", place.stem, files, found))
    return Cache(place.parent, tuple(found.artifacts), tuple(found.others), tuple(found.problems))


def hold_files(stem: str, contents: Mapping[str, bytes]) -> Cache:
    """A kernel whose files are in memory, by suffix, as a cache of one entry; what is no file of one is left.

    Args:
        contents: as they would stand in the cache, the metadata under `json`.
    """
    files: dict[str, File] = {
        suffix: HeldFile(f"{stem}.{suffix}", content)
        for suffix, content in contents.items()
        if suffix in SUFFIXES
    }
    digest = hashlib.sha256(b"".join(files[suffix].read_bytes() for suffix in sorted(files)))
    found = _Found()
    if files:
        found.artifacts.extend(_artifacts(Path(digest.hexdigest()), ".", stem, files, found))
    return Cache(Path(), tuple(found.artifacts), tuple(found.others), tuple(found.problems))


def read_stage(artifact: Artifact, suffix: str) -> StageText:
    """The text of one stage; bytes that are not UTF-8 are replaced and told of.

    Raises:
        UsageError: the artifact has no such text.
        CacheError: the file vanished or may not be read.
    """
    if suffix not in artifact.files or suffix not in TEXT_STAGES:
        raise UsageError(f"{artifact.display_name} has no .{suffix} text.")
    shown = artifact.relative(suffix)
    try:
        content = artifact.files[suffix].read_bytes()
    except OSError as error:
        raise CacheError(f"{shown}: {_fault(error)}.") from None
    problem = None if content else Problem(shown, "the file is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        text = content.decode(errors="replace")
        problem = Problem(shown, f"byte {error.start} is not UTF-8; such bytes read as {chr(0xFFFD)}")
    # A checkout on Windows may have rewritten line ends; line numbers stay the same.
    return StageText(SourceText(shown, text.replace("\r\n", "\n")), problem)


def read_binary(artifact: Artifact) -> tuple[str, bytes] | None:
    """The suffix and content of the compiled binary; None where there is none.

    Raises:
        CacheError: the file vanished or may not be read.
    """
    suffix = next((suffix for suffix in sorted(BINARIES) if suffix in artifact.files), None)
    if suffix is None:
        return None
    try:
        return suffix, artifact.files[suffix].read_bytes()
    except OSError as error:
        raise CacheError(f"{artifact.relative(suffix)}: {_fault(error)}.") from None


def read_remarks(artifact: Artifact) -> str | None:
    """What the compilers said, as they said it; None where nobody kept it.

    Raises:
        CacheError: the file vanished or may not be read.
    """
    if REMARKS not in artifact.files:
        return None
    try:
        return artifact.files[REMARKS].read_bytes().decode(errors="replace")
    except OSError as error:
        raise CacheError(f"{artifact.relative(REMARKS)}: {_fault(error)}.") from None


_NAME_ONE = "Name a cache directory, or set TRITON_CACHE_DIR."


@dataclass(slots=True)
class _Found:
    artifacts: list[Artifact] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def _order(artifact: Artifact) -> tuple[str, ...]:
    arch = "" if artifact.target is None else artifact.target.arch
    return (artifact.display_name, arch, artifact.hash, artifact.directory, artifact.stem)


def _printable(text: str) -> str:
    """Text that any terminal and any encoding takes: file names may hold bytes, names escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else chr(0xFFFD) for c in text)


def _join(directory: str, name: str) -> str:
    return name if directory == "." else f"{directory}/{name}"


def _fault(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it vanished while the cache was read"
    return f"it cannot be read ({error.strerror or error})"


def _walk(root: Path, found: _Found) -> None:
    pending = [(root, ".", 0)]
    too_deep = 0
    while pending:
        directory, shown, depth = pending.pop()
        try:
            with os.scandir(directory) as listing:
                entries = list(listing)
        except OSError as error:
            found.problems.append(Problem(shown, _fault(error)))
            continue
        if not entries and depth > 0:
            found.others.append(Other(shown, "empty directory"))
        names = []
        for entry in entries:
            place = _join(shown, _printable(entry.name))
            try:
                if not entry.is_dir():
                    if entry.is_file():
                        names.append(entry.name)
                    elif entry.is_symlink():
                        found.problems.append(Problem(place, "a link that leads nowhere"))
                    else:
                        found.others.append(Other(place, "no regular file"))
                elif entry.is_symlink():
                    found.others.append(Other(place, "link to a directory, not followed"))
                elif entry.name.startswith(("tmp.pid_", ".compiling-")):
                    found.others.append(Other(place, _TEMPORARY))
                elif depth == MAX_DEPTH:
                    too_deep += 1
                else:
                    pending.append((Path(entry.path), place, depth + 1))
            except OSError as error:
                found.problems.append(Problem(place, _fault(error)))
        _sort_out(directory, shown, names, found)
    if too_deep:
        found.problems.append(Problem(".", f"{too_deep} directories lie more than {MAX_DEPTH} levels down"))


_OUR_OWN = ("inspect-kernel.json",)
_TEMPORARY = "temporary file of a compile that runs or was killed"
_OTHERS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r".*\.tmp(?:\.pid_.*)?|\.inspect-kernel\.json\..*", _TEMPORARY),
        (r"inspect-kernel\.json", "manifest of what was compiled"),
        (r"lock|.*\.lock", "lock"),
        (r".*\.autotune\.json|.*\.best_config", "autotune results"),
        (r"(?:cuda|hip)_utils.*\.(?:so|pyd)", "driver utilities"),
        (r".*\.(?:so|pyd|dll|dylib)", "launcher"),
        (r".*\.hsaco_path", "path of a binary kept elsewhere, not followed"),
    )
)


def _sort_out(directory: Path, shown: str, names: list[str], found: _Found) -> None:
    """Share the files of one directory out among kernels, other things and strangers."""
    kernels: dict[str, dict[str, File]] = {}
    strangers = []
    for name in names:
        stem, _, suffix = name.rpartition(".")
        if name.startswith("__grp__") and suffix == "json":
            continue  # a list of sibling names, or of paths that were true elsewhere
        if stem and suffix in SUFFIXES and not stem.endswith(".autotune") and name not in _OUR_OWN:
            kernels.setdefault(stem, {})[suffix] = directory / name
            continue
        kind = next((kind for pattern, kind in _OTHERS if pattern.fullmatch(name)), None)
        if kind is None:
            strangers.append(name)
        else:
            found.others.append(Other(_join(shown, _printable(name)), kind))
    for stem, files in kernels.items():
        found.artifacts.extend(_artifacts(directory, shown, stem, files, found))
    if strangers and not kernels:
        found.others.append(Other(shown, "directory with files that are none of Triton's"))
        return
    unknown = set()
    for name in strangers:
        stem, _, suffix = name.rpartition(".")
        found.others.append(Other(_join(shown, _printable(name)), f"unknown: .{_printable(suffix)}"))
        if stem in kernels:
            unknown.add(suffix)
    for suffix in sorted(unknown):
        found.problems.append(Problem(shown, f"unknown stage .{_printable(suffix)} is passed over"))


def _artifacts(
    directory: Path, shown: str, stem: str, files: dict[str, File], found: _Found
) -> Iterator[Artifact]:
    """The artifact of one stem; two where two targets were dumped on top of each other."""

    def complain(sentence: str, suffix: str | None = None) -> None:
        path = shown if suffix is None else _join(shown, _printable(files[suffix].name))
        found.problems.append(Problem(path, sentence))

    metadata = _metadata(files["json"], complain) if "json" in files else None
    if files.keys() == {"json"}:
        if metadata is None or not {"num_warps", "shared"} <= metadata.keys():
            found.others.append(Other(_join(shown, _printable(files["json"].name)), "JSON of another kind"))
            return
        complain("metadata with no stage beside it", "json")
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
    complain(f"{_printable(stem)} was written for two vendors here; the later one overwrote the earlier's IR")
    foreign = CUDA_FILES if target is not None and target.backend == "hip" else HIP_FILES
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
    # An IR file handed to the compiler gives the stem `@kernel`.
    name = symbol if isinstance(symbol, str) and symbol else stem.removeprefix("@")
    short = name
    if version is not None and version.since((3, 0)) is False and name.startswith(stem):
        short = stem if re.fullmatch(r"_[0-9cde]*", name[len(stem) :]) else name
    digest = known.get("hash")
    if not isinstance(digest, str) or not digest:
        digest = directory.resolve().name if shown == "." else directory.name
    if metadata is None or files.keys() == {"json"}:
        state = "partial"
    elif files.keys() & (TEXT_STAGES - {"source"}):
        state = "complete"
    else:
        state = "binary-only"
    return Artifact(
        directory=shown,
        stem=_printable(stem),
        name=_printable(name),
        display_name=_printable(short),
        hash=_printable(digest),
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
        content = json.loads(path.read_bytes(), parse_constant=odd.append)
    except OSError as error:
        complain(f"{_fault(error)}; what the stages tell is used instead", "json")
        return None
    # ValueError: no JSON, no UTF-8, or an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        complain(f"no readable JSON ({why}); what the stages tell is used instead", "json")
        return None
    if not isinstance(content, dict):
        complain("the metadata is no JSON object; what the stages tell is used instead", "json")
        return None
    if odd:
        complain(f"{', '.join(odd)} is no JSON; read as absent", "json")
    return content


def _whole(metadata: Mapping[str, object], key: str, least: int, complain: Complain) -> int | None:
    value = metadata.get(key)
    if value is None:
        return None
    if type(value) is int and value >= least:
        return value
    complain(f"{key} is {reprlib.repr(value)}; read as absent", "json")
    return None


def _triton_version(metadata: Mapping[str, object]) -> TritonVersion | None:
    """The version as written, else by the keys that each release added or dropped."""
    version = metadata.get("triton_version")
    if isinstance(version, str) and version:
        return TritonVersion(_printable(version))
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
    """The target by the first stage that tells."""
    for suffix in STAGES_WITH_TARGET:
        if suffix not in files:
            continue
        try:
            with files[suffix].open("rb") as file:
                target = parse_stage_target(suffix, file.read(HEAD))
        except OSError as error:
            complain(_fault(error), suffix)
        except UsageError as error:
            complain(error.message, suffix)
        else:
            if target is not None:
                return target
    return None
