"""What no file may bring about, whatever it holds: each check raises `EscapeError` with the reason."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artifact_inspector.errors import ParseError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts, View
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.cache import cache_document

__all__ = ["SECONDS", "EscapeError", "check_kernel", "check_text", "check_verdicts", "describe", "within"]

SECONDS = 8
"""Of processor time that one mutant may take."""


class EscapeError(Exception):
    """Something that no file may bring about."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """End what takes longer, where the system has signals."""

    def late(_signal: int, _frame: object) -> None:
        raise EscapeError(f"it took more than {seconds} s")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_text(text: str, stage: Stage) -> bool:
    """Read a text and ask all that analyses ask of its instructions; False where it is refused."""
    language = format_of(stage)
    language.sniff(text)
    try:
        module = language.parse(SourceText("k", language.listing(text)), stage)
    except ParseError as error:
        str(error).index("^")
        return False
    _check_module(module)
    language.figures(module)
    language.launch_parameters(module)
    for function in module.functions:
        for instruction in function.instructions:
            _ = instruction.operands
            for read in (language.transfer, language.wait, language.matrix, language.tensor_types):
                read(instruction, module)
            for ask in (language.commit, language.shared_use, language.source_name, language.axis_operation):
                ask(instruction)
            for ask_more in (
                language.accesses_shared,
                language.pointer_use,
                language.input_precision,
                language.access_operands,
            ):
                if ask_more is not None:
                    ask_more(instruction)
            language.traits(instruction.opcode)
            if language.conditions.is_relevant(instruction.opcode):
                language.conditions.role(instruction)
                language.conditions.operands(instruction)
            language.conditions.masking(instruction)
    return True


def _check_module(module: Module) -> None:
    for function in module.functions:
        blocks, instructions = function.blocks, function.instructions
        if [block.index for block in blocks] != list(range(len(blocks))):
            raise EscapeError("blocks have other numbers than their places")
        if any(not 0 <= to < len(blocks) for block in blocks for to in block.successors):
            raise EscapeError("a block is followed by one that is not there")
        bounds = [block.start for block in blocks] + [len(instructions)]
        if bounds[0] != 0 or bounds[1:] != [block.stop for block in blocks]:
            raise EscapeError("blocks do not share out the instructions")
        if function.control_codes and len(function.control_codes) != len(instructions):
            raise EscapeError("control codes are not one for each instruction")


def check_kernel(directory: Path) -> list[KernelFacts]:
    """Inspect a cache for all that there is to know, and make its document."""
    cache, kernels = _inspected(directory, None)
    json.dumps(encode(cache_document(cache, kernels)), allow_nan=False)
    return kernels


def check_verdicts(directory: Path) -> list[KernelFacts]:
    """Inspect a cache for the verdicts alone."""
    return _inspected(directory, describe)[1]


def _inspected(directory: Path, view: View | None) -> tuple[Cache, list[KernelFacts]]:
    cache = open_cache(directory)
    kernels = [inspect_artifact(artifact, None, view) for artifact in cache.entries]
    for kernel in kernels:
        for problem in kernel.problems:
            if "inspector itself failed" in problem.problem:
                raise EscapeError(f"a hidden fault in {problem.path}: {problem.problem}")
    return cache, kernels


def describe(kernel: KernelFacts) -> Mapping[str, Any]:
    """The verdicts of a kernel: of each stage by region, with what its waits leave in flight."""
    return {
        "kernel": kernel.verdict,
        "stages": {
            stage.value: {region.id: (region.verdict, region.distance, region.signature) for region in facts.regions}
            for stage, facts in kernel.stages.items()
        },
        "drains": {region.id: kernel.drains(region.id) for f in kernel.stages.values() for region in f.regions},
    }
