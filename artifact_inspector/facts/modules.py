"""From the files of a kernel to modules: a stage as text, and parsed."""

from __future__ import annotations

from collections.abc import Callable

from artifact_inspector.errors import CacheError, ParseError
from artifact_inspector.files.cache import Artifact, Problem, read_binary, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.text import SourceText

MOST_PROBLEMS = 20
"""Problems of one file that are named one by one; the rest is counted."""

Disassemble = Callable[[str, bytes], str]
"""Suffix (`cubin`, `hsaco`) and content of a binary → its code as text, or CacheError."""
BINARY_OF = {Stage.SASS: "cubin", Stage.AMDGCN: "hsaco"}


def read_source(
    artifact: Artifact, stage: Stage, problems: list[Problem], disassemble: Disassemble | None = None
) -> SourceText | None:
    """The text of a stage, machine code from the binary if need be; None with the reason in `problems`."""
    binary = BINARY_OF.get(stage, "")
    if stage.value not in artifact.files and disassemble is not None and binary in artifact.files:
        path = artifact.display_path(binary)
        try:
            binary_content = read_binary(artifact)
            return None if binary_content is None else SourceText(path, disassemble(*binary_content))
        except CacheError as error:
            message = f"{error.message} {error.remedy or ''}".strip()
            problems.append(Problem(path, message.removeprefix(f"{path}: ")))
            return None
    if stage.value not in artifact.files:
        return None
    try:
        text = read_stage(artifact, stage.value)
    except CacheError as error:
        path = artifact.display_path(stage.value)
        problems.append(Problem(path, error.message.removeprefix(f"{path}: ")))
        return None
    if text.problem is not None:
        problems.append(text.problem)
    source = SourceText(text.source.name, format_of(stage).listing(text.source.text))
    return None if not source.text or source.text.isspace() else source


def read_module(
    artifact: Artifact, stage: Stage, problems: list[Problem], disassemble: Disassemble | None = None
) -> Module | None:
    """The parsed text of a stage, or None with the reason added to `problems`."""
    source = read_source(artifact, stage, problems, disassemble)
    return None if source is None else parse_source(source, stage, problems)


def parse_source(source: SourceText, stage: Stage, problems: list[Problem]) -> Module | None:
    """The module of a stage's text, or None with the reason added to `problems`."""
    try:
        module = format_of(stage).parse(source, stage)
    except ParseError as error:
        problems.append(Problem(source.name, error.message))
        return None
    messages = list(module.problems)
    if len(messages) > MOST_PROBLEMS:
        messages[MOST_PROBLEMS:] = [f"… and {len(messages) - MOST_PROBLEMS} more"]
    problems += [Problem(source.name, problem) for problem in messages]
    return module
