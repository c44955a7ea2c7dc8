"""The compiled variants of the kernels of a file, and whether they are up to date."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifact_inspector.errors import CompileError, InspectorError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.beside import time_of
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.model.text import integer
from artifact_inspector.serving.lines import Form, compiled_at
from artifact_inspector.serving.source import WrittenKernel

MOST_TARGETS = 4
"""Variants of one kernel that an editor shows; the newest."""
MOST_STEPS = 2_000_000
"""Maximal steps of a launch that is simulated while an editor waits."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options to compile a kernel with."""

    targets: tuple[str, ...]
    signature: str | None = None
    constants: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """Options on record that are not passed to the compiler."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Finds and compiles variants of kernels, and remembers the source text of each."""

    caches: Sequence[Path]
    """Caches to search; missing ones are ignored."""
    targets: Sequence[str] = ()
    """GPUs for kernels whose comment names none."""
    out: Path | None = None
    """The cache to compile into; None for a cache of this package."""
    _opened: dict[Path, tuple[Artifact, ...]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    """Hash of an entry → digest of the source it was compiled from."""

    def forms(self, file: Path, kernel: WrittenKernel, *, is_saved: bool) -> list[Form]:
        """The newest variant of a kernel for each target, newest first.

        An entry newer than the file is assumed to be compiled from its text, and stays up to date until the
        function itself is edited. Any other entry is stale.

        Args:
            is_saved: whether the text of the kernel equals the file on disk.
        """
        newest: dict[str, tuple[float, Artifact, int]] = {}
        for artifact, line in self._entries(file, kernel.name):
            time, target = time_of(artifact) or 0.0, str(artifact.target)
            if time > newest.get(target, (-1.0,))[0]:
                newest[target] = (time, artifact, line)
        written = _time_of(file)
        found = []
        for time, artifact, line in sorted(newest.values(), key=lambda one: (-one[0], one[1].hash))[
            :MOST_TARGETS
        ]:
            if is_saved and written is not None and time >= written:
                self._texts.setdefault(artifact.hash, kernel.digest)
            is_stale = self._texts.get(artifact.hash) != kernel.digest
            facts = inspect_artifact(artifact)
            launch = None if is_stale else _launch_of(artifact)
            found.append(Form(facts, file.name, line, kernel.first, is_stale, launch))
        return found

    def compile(self, file: Path, kernel: WrittenKernel) -> str | None:
        """Compile a kernel with the options of its comment or of its newest record; imports the file.

        Returns:
            The error message; None on success.
        """
        from artifact_inspector.compiling import KernelRequest, Written
        from artifact_inspector.compiling.ask.compile import compile_kernels, default_out
        from artifact_inspector.compiling.untrusted import describe_dropped

        try:
            asked = parse_asked(kernel.asked) if kernel.asked else self._recorded(file, kernel.name)
            targets = asked.targets or tuple(self.targets)
            if not targets:
                return (
                    f"not compiled: {kernel.name} names no target. Add -t to its comment, or start the "
                    "server with --target."
                )
            constants = {name: Written(text) for name, text in asked.constants.items()}
            request = KernelRequest(
                f"{file}:{kernel.name}",
                asked.signature,
                constants,
                asked.options,
                is_untrusted=not kernel.asked,
            )
            rows = compile_kernels([request], targets, self.out or default_out())
        except (UsageError, CompileError) as error:
            return f"not compiled: {error}"
        for row in rows:
            if row.directory is not None:
                for artifact in open_cache(row.directory).entries:
                    self._texts[artifact.hash] = kernel.digest
        refused = [row for row in rows if row.message is not None]
        if refused:
            return f"not compiled: {refused[0].target}: {refused[0].message}"
        return describe_dropped(asked.dropped) if asked.dropped else None

    def _entries(self, file: Path, name: str) -> Iterator[tuple[Artifact, int]]:
        """Entries of a kernel by name and file, each with the line of its `def`."""
        found = []
        for directory in dict.fromkeys((*self.caches, *self._own())):
            if directory not in self._opened:
                self._opened[directory] = ()
                with suppress(InspectorError):
                    self._opened[directory] = open_cache(directory).entries
            for artifact in self._opened[directory]:
                place = compiled_at(artifact) if artifact.display_name == name else None
                if place is not None and Path(place[0].replace("\\", "/")).name == file.name:
                    found.append((artifact, *place))
        # prefer entries of this very path; a cache from another machine has other paths
        own = [one for one in found if one[1] == str(file)] or found
        yield from ((artifact, line) for artifact, _, line in own)

    def look_again(self) -> None:
        """Forget the contents of the caches, which may have changed."""
        self._opened.clear()

    def _own(self) -> tuple[Path, ...]:
        from artifact_inspector.compiling.ask.compile import default_out

        out = self.out or default_out()
        return (out,) if out.is_dir() else ()

    def _recorded(self, file: Path, name: str) -> Asked:
        """The options that the newest entry of a kernel was compiled with, from the record in its cache."""
        from artifact_inspector.compiling.ask.manifest import read_manifest
        from artifact_inspector.compiling.untrusted import UntrustedRecord

        for directory in (*self.caches, *self._own()):
            for row in reversed(read_manifest(directory)):
                place = row.get("place", "").rpartition(":")[0]
                if row.get("kernel") == name and Path(place).name == file.name and row.get("directory"):
                    record = UntrustedRecord.of_row(row)
                    constants = {key: value.text for key, value in record.constants.items()}
                    types = ", ".join(f"{key}={text}" for key, text in record.types.items())
                    targets = (record.target,) if "target" in row else ()
                    return Asked(targets, types, constants, dict(record.options), record.dropped)
        raise UsageError(
            f"No options are known to compile {name}.",
            "Write them above the kernel: # inspect-kernel: -t sm_90 -S '*fp16:16, i32' -c BLOCK=1024",
        )


def parse_asked(text: str) -> Asked:
    """Parse the options of a comment: `-t`, `-S`, `-c`, `--num-warps`, `--num-stages`, `--option`.

    Raises:
        UsageError: it has another option.

    Example:
        >>> parse_asked("-t sm_90,gfx942 -c BLOCK=64 --num-warps 8").options
        {'num_warps': 8}
    """
    from artifact_inspector.compiling.signature import MISSING, parse_signature, read_literal

    try:
        words = iter(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"The comment {text!r} cannot be parsed: {error}.") from None
    targets: list[str] = []
    signature, constants, options = None, {}, {}
    for word in words:
        name, equals, rest = word.partition("=") if word.startswith("--") else (word, "", "")
        value = rest if equals else next(words, "")
        if not value:
            raise UsageError(f"{name} in the comment {text!r} has no value.", "Add one.")
        if name in ("-t", "--target"):
            targets += [one for one in value.split(",") if one]
        elif name in ("-S", "--signature"):
            signature = value
        elif name in ("-c", "--const", "--option"):
            for key, said in parse_signature(value):
                literal = read_literal(said)
                if name == "--option":
                    options[str(key)] = said if literal is MISSING else literal
                else:
                    constants[str(key)] = said
        elif name in ("--num-warps", "--num-stages") and (number := integer(value)) is not None:
            options[name[2:].replace("-", "_")] = number
        else:
            raise UsageError(
                f"Unknown option {word!r} in a kernel's comment.",
                "Expected -t, -S, -c, --num-warps, --num-stages or --option.",
            )
    return Asked(tuple(targets), signature, constants, options)


def _time_of(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def _launch_of(artifact: Artifact) -> Any:
    """The newest recorded launch of an entry, simulated; None if there is none or it cannot be simulated."""
    from artifact_inspector.compiling.ask.manifest import read_launches

    path = next(iter(artifact.files.values()))
    if not isinstance(path, Path) or not {"cubin", "sass"} & set(artifact.files):
        return None
    rows = [row for row in read_launches(path.parent.parent) if row.get("hash") == artifact.hash]
    if not rows:
        return None
    import json

    from artifact_inspector.api.predicting import predict_launches
    from artifact_inspector.execution.requests import parse_document
    from artifact_inspector.files.objdump import disassembling

    try:
        (request,) = parse_document(json.dumps(rows[-1]), "the record")
        pairs = [(artifact, request)]
        (found,) = predict_launches(pairs, disassembling(), steps=MOST_STEPS)
    except InspectorError:
        return None
    return found
