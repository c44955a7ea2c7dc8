"""The kernels in the text of a Python file, their compiled variants, and whether these are up to date."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from artifact_inspector.errors import CompileError, InspectorError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.records import artifact_time
from artifact_inspector.serving.compiled_lines import CompiledVariant, source_location

if TYPE_CHECKING:
    from artifact_inspector.execution.launch_requests import LaunchRequest

OPTIONS_COMMENT = "# inspect-kernel:"
"""Starts a comment above a kernel with options of `compile` for it."""


@dataclass(frozen=True, slots=True)
class SourceKernel:
    """A function under `@triton.jit`."""

    name: str
    def_line: int
    """1-based line of its `def`."""
    first_line: int
    """1-based line of its first decorator."""
    last_line: int
    digest: str
    """Digest of its text from the `def` on, which is what Triton compiles."""
    compile_options: str = ""
    """Options in the comment above it; empty without one."""


def find_kernels(text: str) -> tuple[SourceKernel, ...] | None:
    r"""The kernels of a file's text, in its order; None if the text is not valid Python.

    Example:
        >>> (kernel,) = find_kernels("# inspect-kernel: -t sm_90\n@triton.jit\ndef k(x): pass\n")
        >>> kernel.name, kernel.def_line, kernel.compile_options
        ('k', 3, '-t sm_90')
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = text.splitlines()
    return tuple(
        _make_kernel(node, lines)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(_is_jit(decorator) for decorator in node.decorator_list)
    )


def _make_kernel(node: ast.FunctionDef, lines: list[str]) -> SourceKernel:
    top = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    body = "\n".join(line.rstrip() for line in lines[node.lineno - 1 : last])
    comment_line = lines[top - 2].strip() if top >= 2 else ""
    compile_options = (
        comment_line.removeprefix(OPTIONS_COMMENT).strip() if comment_line.startswith(OPTIONS_COMMENT) else ""
    )
    digest = blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return SourceKernel(node.name, node.lineno, top, last, digest, compile_options)


def _is_jit(decorator: ast.expr) -> bool:
    """`@triton.jit`, `@jit`, `@triton.jit(…)`, `@gluon.jit`."""
    decorator_name = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = decorator_name.attr if isinstance(decorator_name, ast.Attribute) else getattr(decorator_name, "id", "")
    return name == "jit"


MAX_TARGETS = 4
"""Variants of one kernel that an editor shows; the newest."""
MAX_STEPS = 2_000_000
"""Maximal steps of a launch that is simulated while an editor waits."""


@dataclass(frozen=True, slots=True)
class CommentOptions:
    """The options to compile a kernel with."""

    targets: tuple[str, ...]
    signature: str | None = None
    constants: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """Options on record that are not passed to the compiler."""


@dataclass(frozen=True, slots=True)
class KernelVariants:
    """Finds and compiles variants of kernels, and remembers the source text of each."""

    caches: Sequence[Path]
    """Caches to search; missing ones are ignored."""
    targets: Sequence[str] = ()
    """GPUs for kernels whose comment names none."""
    out_directory: Path | None = None
    """The cache to compile into; None for a cache of this package."""
    _entries_by_cache: dict[Path, tuple[Artifact, ...]] = field(default_factory=dict)
    _digest_by_hash: dict[str, str] = field(default_factory=dict)
    """Hash of an entry → digest of the source it was compiled from."""

    def newest_variants(self, file: Path, kernel: SourceKernel, *, is_saved: bool) -> list[CompiledVariant]:
        """The newest launched variant of a kernel for each target, newest first; without launches the newest one.

        An entry newer than the file is assumed to be compiled from its text, and stays up to date until the
        function itself is edited. Any other entry is stale.

        Args:
            is_saved: whether the text of the kernel equals the file on disk.
        """
        newest: dict[str, tuple[bool, float, Artifact, int]] = {}
        for artifact, line in self._find_entries(file, kernel.name):
            is_launched = any(not row.get("tuning") for row in _launch_rows(artifact))
            time, target = artifact_time(artifact) or 0.0, str(artifact.target)
            if (is_launched, time) > newest.get(target, (False, -1.0))[:2]:
                newest[target] = (is_launched, time, artifact, line)
        file_time = _modification_time(file)
        variants = []
        entries = sorted(newest.values(), key=lambda entry: (-entry[1], entry[2].hash))
        for _, time, artifact, line in entries[:MAX_TARGETS]:
            if is_saved and file_time is not None and time >= file_time:
                self._digest_by_hash.setdefault(artifact.hash, kernel.digest)
            is_stale = self._digest_by_hash.get(artifact.hash) != kernel.digest
            variants.append(CompiledVariant(inspect_artifact(artifact), file.name, line, kernel.def_line, is_stale))
        return variants

    def compile(self, file: Path, kernel: SourceKernel) -> str | None:
        """Compile a kernel with the options of its comment or of its newest record; imports the file.

        Returns:
            The error message; None on success.
        """
        from artifact_inspector.compiling import ConstantText, KernelRequest
        from artifact_inspector.compiling.ask.compile import compile_kernels, default_directory
        from artifact_inspector.compiling.untrusted import describe_dropped

        try:
            comment = kernel.compile_options
            compile_options = parse_comment(comment) if comment else self._recorded_options(file, kernel.name)
            targets = compile_options.targets or tuple(self.targets)
            if not targets:
                remedy = "Add -t to its comment, or start the server with --target."
                return f"not compiled: {kernel.name} names no target. {remedy}"
            constants = {name: ConstantText(text) for name, text in compile_options.constants.items()}
            signature, options = compile_options.signature, compile_options.options
            name = f"{file}:{kernel.name}"
            request = KernelRequest(name, signature, constants, options, is_untrusted=not comment)
            rows = compile_kernels([request], targets, self.out_directory or default_directory())
        except (UsageError, CompileError) as error:
            return f"not compiled: {error}"
        for row in rows:
            if row.directory is not None:
                for artifact in open_cache(row.directory).entries:
                    self._digest_by_hash[artifact.hash] = kernel.digest
        failed = [row for row in rows if row.message is not None]
        if failed:
            return f"not compiled: {failed[0].target}: {failed[0].message}"
        return describe_dropped(compile_options.dropped) if compile_options.dropped else None

    def _find_entries(self, file: Path, name: str) -> Iterator[tuple[Artifact, int]]:
        """Entries of a kernel by name and file, each with the line of its `def`."""
        matching = []
        for directory in dict.fromkeys((*self.caches, *self._output_caches())):
            if directory not in self._entries_by_cache:
                self._entries_by_cache[directory] = ()
                with suppress(InspectorError):
                    self._entries_by_cache[directory] = open_cache(directory).entries
            for artifact in self._entries_by_cache[directory]:
                location = source_location(artifact) if artifact.display_name == name else None
                if location is not None and Path(location[0].replace("\\", "/")).name == file.name:
                    matching.append((artifact, *location))
        # prefer entries of this very path; a cache from another machine has other paths
        same_path = [match for match in matching if match[1] == str(file)] or matching
        yield from ((artifact, line) for artifact, _, line in same_path)

    def clear_cache(self) -> None:
        """Forget the contents of the caches, which may have changed."""
        self._entries_by_cache.clear()

    def _output_caches(self) -> tuple[Path, ...]:
        from artifact_inspector.compiling.ask.compile import default_directory

        out = self.out_directory or default_directory()
        return (out,) if out.is_dir() else ()

    def _recorded_options(self, file: Path, name: str) -> CommentOptions:
        """The options that the newest entry of a kernel was compiled with, from the record in its cache."""
        from artifact_inspector.compiling.ask.manifest import read_manifest
        from artifact_inspector.compiling.untrusted import UntrustedRecord

        for directory in (*self.caches, *self._output_caches()):
            for row in reversed(read_manifest(directory)):
                source_file = row.get("place", "").rpartition(":")[0]
                if row.get("kernel") == name and Path(source_file).name == file.name and row.get("directory"):
                    record = UntrustedRecord.of_row(row)
                    constants = {key: value.text for key, value in record.constants.items()}
                    types = ", ".join(f"{key}={text}" for key, text in record.types.items())
                    targets = (record.target,) if "target" in row else ()
                    return CommentOptions(targets, types, constants, dict(record.options), record.dropped_options)
        raise UsageError(
            f"No options are known to compile {name}.",
            "Write them above the kernel: # inspect-kernel: -t sm_90 -S '*fp16:16, i32' -c BLOCK=1024",
        )


def parse_comment(text: str) -> CommentOptions:
    """Parse the options of a comment: `-t`, `-S`, `-c`, `--num-warps`, `--num-stages`, `--option`.

    Raises:
        UsageError: it has another option.

    Example:
        >>> parse_comment("-t sm_90,gfx942 -c BLOCK=64 --num-warps 8").options
        {'num_warps': 8}
    """
    from artifact_inspector.compiling.signature import MISSING, parse_signature, read_literal

    parser = _CommentParser(text, add_help=False, allow_abbrev=False)
    for flags in (("-t", "--target"), ("-c", "--const"), ("--option",)):
        parser.add_argument(*flags, action="append", default=[])
    parser.add_argument("-S", "--signature")
    for flag in ("--num-warps", "--num-stages"):
        parser.add_argument(flag, type=int)
    try:
        given = vars(parser.parse_args(shlex.split(text)))
    except ValueError as error:
        raise UsageError(f"The comment {text!r} cannot be parsed: {error}.") from None
    targets = tuple(target for one in given["target"] for target in one.split(",") if target)
    constants = {str(key): value for one in given["const"] for key, value in parse_signature(one)}
    options: dict[str, Any] = {name: given[name] for name in ("num_warps", "num_stages") if given[name] is not None}
    for key, value in (pair for one in given["option"] for pair in parse_signature(one)):
        literal = read_literal(value)
        options[str(key)] = value if literal is MISSING else literal
    return CommentOptions(targets, given["signature"], constants, options)


class _CommentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"The comment {self.prog!r} cannot be parsed: {message}.")


def _modification_time(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def newest_launch(artifact: Artifact) -> LaunchRequest | None:
    """The newest recorded launch of an entry; None if there is none.

    Raises:
        UsageError: the record is damaged.
    """
    rows = _launch_rows(artifact)
    path = next(iter(artifact.files.values()))
    if not rows or not isinstance(path, Path):
        return None
    from artifact_inspector.execution.launch_requests import parse_recorded

    (request,) = parse_recorded(rows[-1:], path.parent.parent)
    return request


def _launch_rows(artifact: Artifact) -> list[Mapping[str, Any]]:
    """The recorded launches of an entry, in their order."""
    from artifact_inspector.compiling.ask.manifest import read_launches

    path = next(iter(artifact.files.values()))
    rows = read_launches(path.parent.parent) if isinstance(path, Path) else ()
    return [row for row in rows if row.get("hash") == artifact.hash]


def with_launch(variant: CompiledVariant) -> CompiledVariant:
    """A variant with its newest recorded launch, simulated; the same if it is stale, or cannot be simulated."""
    artifact = variant.kernel.artifact
    if variant.is_stale or not {"cubin", "sass"} & set(artifact.files):
        return variant
    try:
        request = newest_launch(artifact)
        if request is None:
            return variant
        from artifact_inspector.api.launches import predict_launches
        from artifact_inspector.execution.interpreter.budget import limit_simulation
        from artifact_inspector.files.objdump import binary_disassembler

        with limit_simulation():
            (prediction,) = predict_launches([(artifact, request)], binary_disassembler(), steps=MAX_STEPS)
    except InspectorError:
        return variant
    return replace(variant, launch=prediction)
