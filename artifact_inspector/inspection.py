"""From an artifact to its facts: read each stage, find the program's regions in it, judge them.

Nothing escapes but facts: a stage that cannot be read costs a named problem and leaves the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from artifact_inspector.analysis.cfg import find_control_flow
from artifact_inspector.analysis.order import ORDER_VERDICTS, RegionFacts, judge
from artifact_inspector.analysis.placement import Memory
from artifact_inspector.analysis.reference import ReferenceRegion, find_reference
from artifact_inspector.analysis.regions import Code, find_regions
from artifact_inspector.cache import Artifact, Cache, Problem, read_stage
from artifact_inspector.errors import CacheError, ParseError
from artifact_inspector.formats import Format, format_of
from artifact_inspector.model import EventKind, Function, Instruction, Module, Stage

__all__ = [
    "COUNTED",
    "KernelFacts",
    "StageFacts",
    "WaitFacts",
    "inspect_artifact",
    "inspect_cache",
    "read_module",
]

COUNTED = tuple(
    kind for kind in EventKind if kind.letter and kind not in (EventKind.UNKNOWN, EventKind.SCHEDULE_HINT)
)
"""Kinds whose instructions are counted per file."""


_PLAIN = re.compile(r"[^\w$]")
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
MOST_PROBLEMS = 20
"""Problems of one file that are named one by one; the rest is counted."""
MATRIX_WAITS = ("wgmma.", "tcgen05.", "ttng.warp_group_dot", "triton_nvidia_gpu.")


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """One wait instruction of a stage."""

    line: int
    op: str
    depth: int | None
    region: str


@dataclass(frozen=True, slots=True)
class StageFacts:
    """What one file says."""

    stage: Stage
    file: str
    """Path relative to the cache directory."""
    instructions: int
    unknown: dict[str, int]
    """Opcodes of no known kind, with how often each stands there."""
    counts: dict[str, int]
    """Instructions of each counted kind, over all functions."""
    waits: tuple[WaitFacts, ...]
    regions: tuple[RegionFacts, ...]
    attributes: dict[str, str]

    def region(self, name: str) -> RegionFacts | None:
        """The region of that id, if the stage has it."""
        return next((found for found in self.regions if found.id == name), None)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a kernel's files say, stage by stage."""

    artifact: Artifact
    stages: dict[Stage, StageFacts]
    """Text stages that could be read, in compilation order."""
    principal: str | None
    """The region that the kernel is known by: its deepest loop of matrix operations, else its
    deepest loop that computes on loads, else its straight-line code."""
    changed: dict[str, Stage]
    """Region → first stage whose order verdict differs from the stage before."""
    problems: tuple[Problem, ...]

    @property
    def last(self) -> StageFacts | None:
        """The last text stage."""
        return next(reversed(self.stages.values()), None)

    @property
    def verdict(self) -> str | None:
        """The principal region's verdict in the last text stage."""
        found = self.principal_region
        return None if found is None else found.verdict

    @property
    def principal_region(self) -> RegionFacts | None:
        """The principal region in the last text stage that has it."""
        if self.principal is None:
            return None
        for stage in reversed(self.stages.values()):
            found = stage.region(self.principal)
            if found is not None:
                return found
        return None

    @property
    def changed_at(self) -> Stage | None:
        """The stage where the principal region's order verdict first changed."""
        return None if self.principal is None else self.changed.get(self.principal)

    @property
    def wait_depths(self) -> tuple[int, ...]:
        """Depths of the waits for loads in the principal region of the last stage, in program order.

        Waits for matrix operations (`wgmma.wait_group`) say nothing of loads and are left out.
        """
        last = self.last
        if last is None or self.principal is None:
            return ()
        return tuple(
            w.depth
            for w in last.waits
            if w.region == self.principal and w.depth is not None and not w.op.startswith(MATRIX_WAITS)
        )


def inspect_cache(
    cache: Cache,
    artifacts: Iterable[Artifact] | None = None,
    *,
    progress: Callable[[Artifact], None] | None = None,
) -> Iterator[KernelFacts]:
    """The facts of a cache's kernels, one after the other; `progress` is told of each beforehand."""
    for artifact in cache.entries if artifacts is None else artifacts:
        if progress is not None:
            progress(artifact)
        yield inspect_artifact(artifact)


def inspect_artifact(artifact: Artifact) -> KernelFacts:
    """The facts of one kernel from whichever of its stages can be read."""
    problems: list[Problem] = []
    stages: dict[Stage, StageFacts] = {}
    references: dict[str, tuple[ReferenceRegion, ...]] = {}
    memories: dict[str, Memory] = {}
    measure: StageFacts | None = None
    for stage in Stage:
        if stage.value not in artifact.files:
            continue
        try:
            module = read_module(artifact, stage, problems)
            if module is None:
                continue
            language = format_of(stage)
            # A file that is cut off may lack the very loop that the kernel is about.
            exact = not references and language.access is not None and module.is_whole
            if exact:
                references = _references(module, language)
            file = artifact.relative(stage.value)
            facts = _stage_facts(file, module, language, references, memories, exact=exact)
            stages[stage] = facts
            measure = facts if exact or measure is None else measure
        except _FAULTS as fault:
            # A fault of ours on one file must not cost the reader the rest of the report.
            problem = f"the inspector itself failed here ({type(fault).__name__}: {fault}); please report it"
            problems.append(Problem(artifact.relative(stage.value), problem))
    principal = None if measure is None else _principal(measure)
    return KernelFacts(artifact, stages, principal, _changes(stages), tuple(problems))


def read_module(artifact: Artifact, stage: Stage, problems: list[Problem]) -> Module | None:
    """The parsed file of a stage, or None with the reason added to `problems`."""
    try:
        text = read_stage(artifact, stage.value)
    except CacheError as error:
        path = artifact.relative(stage.value)
        problems.append(Problem(path, error.message.removeprefix(f"{path}: ")))
        return None
    if text.problem is not None:
        problems.append(text.problem)
    if not text.source.text.strip():
        return None
    try:
        module = format_of(stage).parse(text.source, stage)
    except ParseError as error:
        problems.append(Problem(artifact.relative(stage.value), error.message))
        return None
    said = list(module.problems)
    if len(said) > MOST_PROBLEMS:
        said[MOST_PROBLEMS:] = [f"… and {len(said) - MOST_PROBLEMS} more"]
    problems += [Problem(artifact.relative(stage.value), problem) for problem in said]
    return module


def _references(module: Module, language: Format) -> dict[str, tuple[ReferenceRegion, ...]]:
    assert language.access is not None
    return {
        function.name: find_reference(
            function, find_control_flow(function), language.access, pipelined=module.stage is not Stage.TTIR
        )
        for function in module.functions
    }


def _stage_facts(
    file: str,
    module: Module,
    language: Format,
    references: dict[str, tuple[ReferenceRegion, ...]],
    memories: dict[str, Memory],
    *,
    exact: bool,
) -> StageFacts:
    """The facts of one stage; `memories` are those of the stage before and become this one's."""
    counts: Counter[EventKind] = Counter()
    unknown: Counter[str] = Counter()
    regions: list[RegionFacts] = []
    waits: list[WaitFacts] = []
    total = 0
    earlier = dict(memories)
    for function in module.functions:
        original = _original(function, module, references)
        several = len(module.functions) > 1 or len(references) > 1
        prefix = f"{original or function.name}/" if several else ""
        total += len(function.instructions)
        counts.update([x.kind for x in function.instructions])
        code = Code(function, find_control_flow(function), language.access, is_whole=module.is_whole)
        found = find_regions(code, references.get(original, ()), exact=exact)
        region_of_block = {block: prefix + region.id for region in found for block in region.blocks}
        for region in found:
            name = prefix + region.id
            before = earlier.get(name)
            if before is None and region.reference is not None:
                before = earlier.get(prefix + region.reference.id)  # of a loop whose parts are apart now
            facts, memories[name] = judge(code, region, before, exact=exact)
            regions.append(_prefixed(facts, prefix))
        for index, instruction in enumerate(function.instructions):
            if instruction.kind is EventKind.WAIT:
                waits += _waits(instruction, language, module, region_of_block[code.flow.block_of[index]])
            elif instruction.kind is EventKind.UNKNOWN:
                unknown[instruction.opcode] += 1
    return StageFacts(
        module.stage,
        file,
        total,
        dict(unknown.most_common()),
        {kind.count_name: counts[kind] for kind in COUNTED},
        tuple(waits),
        tuple(regions),
        module.attributes,
    )


def _original(function: Function, module: Module, references: dict[str, tuple[ReferenceRegion, ...]]) -> str:
    """The name of a function in the first stage, empty when it was not there.

    LLVM's NVPTX back end writes `_$_` for characters that PTX does not allow in a name.
    """
    if function.name in references:
        return function.name
    spelled = {_PLAIN.sub("_$_", name): name for name in references}
    if function.name in spelled:
        return spelled[function.name]
    if len(references) == 1 and len(module.functions) == 1:
        return next(iter(references))
    return ""


def _waits(instruction: Instruction, language: Format, module: Module, region: str) -> list[WaitFacts]:
    found = language.wait(instruction, module)
    return [] if found is None else [WaitFacts(instruction.line, found.op, found.depth, region)]


def _prefixed(facts: RegionFacts, prefix: str) -> RegionFacts:
    if not prefix:
        return facts
    parent = None if facts.parent is None else prefix + facts.parent
    return replace(facts, id=prefix + facts.id, parent=parent)


def _principal(measure: StageFacts) -> str | None:
    """The region that the kernel is known by, from the stage that the program was read from."""

    def weight(region: RegionFacts) -> tuple[bool, bool, int, int]:
        computes = bool(region.rounds)
        return (region.matrix > 0 and computes, computes, region.depth, len(region.rounds))

    return max(measure.regions, key=weight).id if measure.regions else None


def _changes(stages: dict[Stage, StageFacts]) -> dict[str, Stage]:
    changed: dict[str, Stage] = {}
    known: dict[str, str] = {}
    for stage, facts in stages.items():
        for region in facts.regions:
            if region.verdict not in ORDER_VERDICTS:
                continue
            before = known.get(region.id)
            if before is not None and before != region.verdict:
                changed.setdefault(region.id, stage)
            known[region.id] = region.verdict
    return changed
