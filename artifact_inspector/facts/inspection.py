"""From an artifact to its facts: read each stage, find the program's regions in it, judge them.

Nothing escapes but facts: a stage that cannot be read costs a named problem and leaves the others.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from artifact_inspector.analysis.access.accesses import StageAccesses, count_accesses, find_accesses
from artifact_inspector.analysis.access.bounds_checks import find_bounds_checks
from artifact_inspector.analysis.access.cache_policies import Policy, find_policies
from artifact_inspector.analysis.access.load_widths import LoadWidth, explain_widths
from artifact_inspector.analysis.flow.cfg import find_control_flow
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.program import Program, find_program
from artifact_inspector.analysis.matrix.generation import Generation, count_packed_dots, describe_generation
from artifact_inspector.analysis.matrix.identity import Identity, check_identity
from artifact_inspector.analysis.matrix.work import MatrixWork, find_matrix_work, warps_of
from artifact_inspector.analysis.order.placement import Memory
from artifact_inspector.analysis.order.reference import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.analysis.order.verdict import ORDER_VERDICTS, RegionFacts, judge
from artifact_inspector.analysis.overlap.buffers import LoopBuffers, find_loop_buffers
from artifact_inspector.analysis.overlap.inflight import find_in_flight
from artifact_inspector.analysis.overlap.issue import find_issue
from artifact_inspector.analysis.overlap.partitions import PartitionFacts, find_partitions, find_slots
from artifact_inspector.analysis.overlap.pipeline import Pipeline, explain_pipeline
from artifact_inspector.analysis.resources.contradictions import find_contradictions
from artifact_inspector.analysis.resources.taken import Contradiction, Resources, find_resources
from artifact_inspector.analysis.shared.bill import Bill, find_bill
from artifact_inspector.analysis.shared.conversions import find_conversions
from artifact_inspector.errors import CacheError, ParseError
from artifact_inspector.facts.kernel import COUNTED, KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.files.binaries import Binary, read_cubin, read_hsaco
from artifact_inspector.files.cache import (
    REMARKS,
    Artifact,
    Cache,
    Problem,
    read_binary,
    read_remarks,
    read_stage,
)
from artifact_inspector.files.compiler_remarks import CompilerRemark, parse_remarks
from artifact_inspector.formats import Format, format_of
from artifact_inspector.model import EventKind, Function, Module, Stage
from artifact_inspector.model.text import SourceText

__all__ = ["Disassemble", "inspect_artifact", "inspect_cache", "read_module", "read_source"]

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


Disassemble = Callable[[str, bytes], str]
"""Suffix (`cubin`, `hsaco`) and content of a binary → its code as text, or CacheError."""
_BINARY_OF = {Stage.SASS: "cubin", Stage.AMDGCN: "hsaco"}


def inspect_cache(
    cache: Cache,
    artifacts: Iterable[Artifact] | None = None,
    *,
    progress: Callable[[Artifact], None] | None = None,
    disassemble: Disassemble | None = None,
) -> Iterator[KernelFacts]:
    """The facts of a cache's kernels, one after the other.

    Args:
        progress: is told of each kernel beforehand.
        disassemble: makes SASS a stage of kernels that have a cubin, and AMDGCN of those that have an hsaco
            alone; without it only saved text is a stage.
    """
    for artifact in cache.entries if artifacts is None else artifacts:
        if progress is not None:
            progress(artifact)
        yield inspect_artifact(artifact, disassemble)


def inspect_artifact(artifact: Artifact, disassemble: Disassemble | None = None) -> KernelFacts:
    """The facts of one kernel from whichever of its stages can be read."""
    reading = _Reading(artifact, disassemble)
    with _without_collection():
        for stage in Stage:
            reading.read(stage)
        return reading.facts()


def read_source(
    artifact: Artifact, stage: Stage, problems: list[Problem], disassemble: Disassemble | None = None
) -> SourceText | None:
    """The text of a stage, machine code from the binary if need be; None with the reason in `problems`."""
    binary = _BINARY_OF.get(stage, "")
    if stage.value not in artifact.files and disassemble is not None and binary in artifact.files:
        path = artifact.relative(binary)
        try:
            read = read_binary(artifact)
            return None if read is None else SourceText(path, disassemble(*read))
        except CacheError as error:
            said = f"{error.message} {error.remedy or ''}".strip()
            problems.append(Problem(path, said.removeprefix(f"{path}: ")))
            return None
    if stage.value not in artifact.files:
        return None
    try:
        text = read_stage(artifact, stage.value)
    except CacheError as error:
        path = artifact.relative(stage.value)
        problems.append(Problem(path, error.message.removeprefix(f"{path}: ")))
        return None
    if text.problem is not None:
        problems.append(text.problem)
    source = SourceText(text.source.name, format_of(stage).listing(text.source.text))
    return None if not source.text or source.text.isspace() else source


@contextmanager
def _without_collection() -> Iterator[None]:
    """Python's collector of cycles off: a file's instructions form none, and it goes through them all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_module(
    artifact: Artifact, stage: Stage, problems: list[Problem], disassemble: Disassemble | None = None
) -> Module | None:
    """The parsed text of a stage, or None with the reason added to `problems`."""
    source = read_source(artifact, stage, problems, disassemble)
    if source is None:
        return None
    try:
        module = format_of(stage).parse(source, stage)
    except ParseError as error:
        problems.append(Problem(source.name, error.message))
        return None
    said = list(module.problems)
    if len(said) > MOST_PROBLEMS:
        said[MOST_PROBLEMS:] = [f"… and {len(said) - MOST_PROBLEMS} more"]
    problems += [Problem(source.name, problem) for problem in said]
    return module


class _Reading:
    """A kernel while its stages are read: what one leaves for those after it."""

    def __init__(self, artifact: Artifact, disassemble: Disassemble | None) -> None:
        self.artifact = artifact
        self._disassemble = disassemble
        self.problems: list[Problem] = []
        self.stages: dict[Stage, StageFacts] = {}
        self._references: dict[str, tuple[ReferenceRegion, ...]] = {}
        """The program's regions, by function, from the first stage that tells them."""
        self._memories: dict[str, Memory] = {}
        """What the stage before said of each region."""
        self._buffers: dict[str, dict[Stage, LoopBuffers]] = {}
        self._warps: dict[str, int | None] = {}
        """Warps that run each region, and by prefix each function's dots, as tensor-level IR says."""
        self._left_over: dict[Stage, set[str]] = {}
        """Loops of the program that a stage has no loop for."""
        self._functions: dict[Stage, dict[str, StageAccesses]] = {}
        """By stage and by the name that the first stage has for a function."""
        self._measure: StageFacts | None = None
        self._program: Program | None = None
        self._remarks = self._read_remarks()

    def read(self, stage: Stage) -> None:
        """Take in one stage, if it is there."""
        with self._own_faults(f"{self.artifact.directory} ({stage.value})"):
            module = read_module(self.artifact, stage, self.problems, self._disassemble)
            if module is None:
                return
            language = format_of(stage)
            if stage is Stage.PTX and self._remarks is not None:
                self._remarks = tuple(_in_the_program(remark, module) for remark in self._remarks)
            # A file that is cut off may lack the very loop that the kernel is about.
            exact = not self._references and language.access is not None and module.is_whole
            codes = [
                Code(function, find_control_flow(function), language, is_whole=module.is_whole)
                for function in module.functions
            ]
            if exact:
                self._references = _references(codes, language, pipelined=stage is not Stage.TTIR)
                self._program = find_program(module, language, self.artifact.name)
            facts = self._stage(codes, module, language, exact=exact)
            self.stages[stage] = facts
            self._measure = facts if exact or self._measure is None else self._measure

    def facts(self) -> KernelFacts:
        """All that the stages say together."""
        pipelines: dict[str, Pipeline] = {}
        identities: dict[str, Identity] = {}
        generations: dict[str, Generation] = {}
        widths: tuple[LoadWidth, ...] = ()
        policies: tuple[Policy, ...] = ()
        bill: Bill | None = None
        partitions: tuple[PartitionFacts, ...] = ()
        last = next(reversed(self.stages.values()), None)
        with self._own_faults(self.artifact.directory):
            pipelines = self._pipelines()
            bill = self._bill()
            partitions = self._partitions()
            if last is not None and last.stage.order > Stage.TTGIR.order:
                identities = self._identities(last)
                generations = self._generations(last)
                widths = self._widths(last.stage)
                policies = self._policies(last.stage)
        binary = self._binary()
        resources = self._resources(binary)
        return KernelFacts(
            self.artifact,
            self.stages,
            self._program,
            None if self._measure is None else _principal(self._measure),
            _changes(self.stages),
            pipelines,
            identities,
            generations,
            widths,
            policies,
            bill,
            partitions,
            resources,
            (*resources.contradictions, *self._contradictions(binary, bill)),
            tuple(self.problems),
            self._remarks,
        )

    @contextmanager
    def _own_faults(self, path: str) -> Iterator[None]:
        """A fault of ours on one file must not cost the reader the rest of the report."""
        try:
            yield
        except _FAULTS as fault:
            problem = f"the inspector itself failed here ({type(fault).__name__}: {fault}); please report it"
            self.problems.append(Problem(path, problem))

    # -- one stage ---------------------------------------------------------------------

    def _stage(self, codes: Sequence[Code], module: Module, language: Format, *, exact: bool) -> StageFacts:
        counts: Counter[EventKind] = Counter()
        unknown: Counter[str] = Counter()
        regions: list[RegionFacts] = []
        work: dict[str, RegionWork] = {}
        waits: list[WaitFacts] = []
        earlier = dict(self._memories)
        functions = self._functions[module.stage] = {}
        alone = len(self._references or module.functions) == 1
        for code in codes:
            function = code.function
            original = _original(function, module, self._references)
            # Machine code may hold functions that the program does not have (traps, divisions).
            known = original or not self._references
            prefix = "" if alone and known else f"{original or function.name}/"
            counts.update({kind: len(found) for kind, found in code.of_kind.items()})
            found = find_regions(code, self._references.get(original, ()), exact=exact)
            for region in found:
                name = prefix + region.id
                before = earlier.get(name)
                if before is None and region.reference is not None:
                    before = earlier.get(prefix + region.reference.id)  # of a loop whose parts are apart now
                facts, self._memories[name] = judge(code, region, before, exact=exact)
                regions.append(_prefixed(facts, prefix))
            region_of_block = {block: prefix + region.id for region in found for block in region.blocks}
            for index in code.of_kind.get(EventKind.WAIT, ()):
                wait = language.wait(function.instructions[index], module)
                if wait is not None:
                    home = region_of_block[code.flow.block_of[index]]
                    line = function.instructions[index].line
                    waits.append(WaitFacts(line, wait.op, wait.depth, wait.queue, home))
            unknown.update(
                function.instructions[index].opcode for index in code.of_kind.get(EventKind.UNKNOWN, ())
            )
            with self._own_faults(module.name):
                read = StageAccesses(code, module, language, find_accesses(code, module, language))
                functions[original or function.name] = read
                work |= self._work(read, found, prefix, language, exact=exact)
        return StageFacts(
            module.stage,
            module.name,
            counts.total(),
            dict(unknown.most_common()),
            {kind.count_name: counts[kind] for kind in COUNTED},
            tuple(waits),
            tuple(regions),
            work,
            count_accesses(access for read in functions.values() for access in read.accesses),
            module.attributes,
        )

    def _work(
        self, read: StageAccesses, regions: tuple[Region, ...], prefix: str, language: Format, *, exact: bool
    ) -> dict[str, RegionWork]:
        """What each region of a function does; what is known of its loops is kept for the end."""
        code, module = read.code, read.module
        stage, warps = module.stage, self.artifact.num_warps
        files = self.artifact.files
        last = not any(s.value in files for s in Stage if s.order > stage.order)
        # What staying in bounds costs is told by the first and the last stages; LLIR is on the way.
        told = stage is not Stage.LLIR or last
        checks = find_bounds_checks(code, read.accesses, language) if told else ()
        buffers = find_loop_buffers(code, regions, module, language, exact=exact)
        in_flight = find_in_flight(code, regions, module, language, self._threads(module.stage))
        work = {}
        for region in regions:
            name = prefix + region.id
            if region.id in buffers:
                self._buffers.setdefault(name, {})[stage] = buffers[region.id]
            if region.remains is not None:
                self._left_over.setdefault(stage, set()).add(name)
            issuers = self._warps.get(name, self._warps.get(prefix, warps))
            matrix = find_matrix_work(code, region, module, language, issuers)
            if stage.order <= Stage.TTGIR.order:
                self._warps[name] = warps_of(code, matrix, module, warps)
            blocks = region.blocks
            work[name] = RegionWork(
                in_flight[region.id],
                matrix,
                count_packed_dots(code, region) if last else 0,
                count_accesses(access for access in read.accesses if access.block in blocks),
                dict(Counter(found.check for found in checks if found.block in blocks)),
                find_conversions(code, region, module, language, self.artifact.triton_version)
                if stage is Stage.TTGIR
                else (),
                find_slots(code, region),
                find_issue(code, region),
            )
        if stage is Stage.TTGIR:
            # of regions that only later stages have
            every = [found for one in work.values() for found in one.matrix]
            self._warps[prefix] = warps_of(code, every, module, warps)
        return work

    def _threads(self, stage: Stage) -> int | None:
        """Threads that share what moves for a whole block; in tensor-level IR, for a cluster of them.

        None for a warp-specialised kernel: its partitions load for each other.
        """
        warps, target = self.artifact.num_warps, self.artifact.target
        tensor = self._functions.get(Stage.TTGIR, {})
        if warps is None or target is None or any(read.code.function.partitions for read in tensor.values()):
            return None
        blocks = self.artifact.metadata.get("num_ctas")
        together = blocks if stage.order <= Stage.TTGIR.order and isinstance(blocks, int) else 1
        return warps * target.warp_size * max(1, together)

    # -- all stages together -----------------------------------------------------------

    def _pipelines(self) -> dict[str, Pipeline]:
        pipelines = {}
        for name, buffers in self._buffers.items():
            facts = {
                stage: found
                for stage, read in self.stages.items()
                if (found := read.region(name)) is not None
            }
            pipeline = explain_pipeline(
                num_stages=self.artifact.num_stages,
                target=self.artifact.target,
                version=self.artifact.triton_version,
                facts=facts,
                buffers=buffers,
            )
            if pipeline is not None:
                pipelines[name] = pipeline
        return pipelines

    def _dots(self, *stages: Stage) -> dict[str, tuple[MatrixWork, ...]]:
        """The dots of each region, from the first of these stages that was read."""
        read = next((self.stages[stage] for stage in stages if stage in self.stages), None)
        return {} if read is None else {name: work.matrix for name, work in read.work.items()}

    def _identities(self, last: StageFacts) -> dict[str, Identity]:
        return check_identity(
            self._dots(Stage.TTGIR, Stage.TTIR),
            {name: work.matrix for name, work in last.work.items()},
            unrolled={region.id: region.unrolled_by for region in last.regions if region.unrolled_by > 1},
            left_over=self._left_over.get(last.stage, ()),
            parents={region.id: region.parent for region in last.regions},
        )

    def _generations(self, last: StageFacts) -> dict[str, Generation]:
        target, dots, asked = self.artifact.target, self._dots(Stage.TTGIR), self._dots(Stage.TTIR)
        if target is None:
            return {}
        everywhere = tuple(work for works in asked.values() for work in works)
        found = {}
        for region in last.regions:
            name = region.id
            work = last.work.get(name)
            if work is not None and (work.matrix or dots.get(name)):
                found[name] = describe_generation(
                    target,
                    work.matrix,
                    region.fused,
                    dots=dots.get(name, ()),
                    asked=asked.get(name) or everywhere,
                    packed=work.packed_dots,
                )
        return found

    def _widths(self, last: Stage) -> tuple[LoadWidth, ...]:
        layouts = self._functions.get(Stage.TTGIR, {})
        return tuple(
            width
            for name, first, read in self._first_and(last)
            for width in explain_widths(first, read, layouts.get(name), first.code.function.divisibility)
        )

    def _policies(self, last: Stage) -> tuple[Policy, ...]:
        return tuple(
            policy for _, first, read in self._first_and(last) for policy in find_policies(first, read)
        )

    def _first_and(self, last: Stage) -> Iterator[tuple[str, StageAccesses, StageAccesses]]:
        """The functions of the program at the first stage that tells loads, and at the last."""
        first = next((self._functions[s] for s in (Stage.TTIR, Stage.TTGIR) if s in self._functions), {})
        for name, read in first.items():
            if name in self._functions[last]:
                yield name, read, self._functions[last][name]

    def _bill(self) -> Bill | None:
        read = list(self._functions.get(Stage.TTGIR, {}).values())
        if not read:
            return None
        codes, artifact = [one.code for one in read], self.artifact
        return find_bill(
            codes, read[0].module, format_of(Stage.TTGIR), artifact.shared_bytes, artifact.triton_version
        )

    def _partitions(self) -> tuple[PartitionFacts, ...]:
        last = self._functions.get(Stage.PTX, {})
        return tuple(
            partition
            for name, read in self._functions.get(Stage.TTGIR, {}).items()
            for partition in find_partitions(
                read.code,
                read.module,
                format_of(Stage.TTGIR),
                last[name].code.function if name in last else None,
            )
        )

    def _contradictions(self, binary: Binary | None, bill: Bill | None) -> tuple[Contradiction, ...]:
        name = self.artifact.metadata.get("name")
        return find_contradictions(
            name if isinstance(name, str) else None,
            self.artifact.num_warps,
            {stage: next(iter(read.values())).module for stage, read in self._functions.items() if read},
            None if binary is None else (self._binary_suffix, binary.kernel),
            bill,
        )

    def _resources(self, binary: Binary | None) -> Resources:
        ptx, amdgcn = self.stages.get(Stage.PTX), self.stages.get(Stage.AMDGCN)
        return find_resources(
            self.artifact.target,
            self.artifact.metadata,
            ptx=None if ptx is None else ptx.attributes,
            amdgcn=None if amdgcn is None else amdgcn.attributes,
            binary=binary,
            unreadable=binary is None and self._binary_suffix != "",
        )

    @property
    def _binary_suffix(self) -> str:
        """`cubin` or `hsaco`, whichever is there; empty without either."""
        return next((suffix for suffix in _BINARY_OF.values() if suffix in self.artifact.files), "")

    def _read_remarks(self) -> tuple[CompilerRemark, ...] | None:
        try:
            text = read_remarks(self.artifact)
        except CacheError as error:
            self.problems.append(Problem(self.artifact.relative(REMARKS), error.message))
            return None
        return None if text is None else parse_remarks(text)

    def _binary(self) -> Binary | None:
        try:
            read = read_binary(self.artifact)
            if read is None:
                return None
            suffix, content = read
            return (read_cubin if suffix == "cubin" else read_hsaco)(content, self.artifact.name)
        except CacheError as error:
            path = self.artifact.relative(self._binary_suffix)
            self.problems.append(Problem(path, error.message.removeprefix(f"{path}: ")))
            return None


def _in_the_program(remark: CompilerRemark, ptx: Module) -> CompilerRemark:
    """A remark on a line of PTX with the line of the program that it comes from."""
    if remark.ptx_line is None or remark.source is not None:
        return remark
    place = None
    for function in ptx.functions:
        for instruction in function.instructions:
            if instruction.line <= remark.ptx_line and instruction.location:
                place = instruction.location
    if place is None:
        return remark
    source, *callers = (f"{PurePath(frame.file).name}:{frame.line}" for frame in place)
    return replace(remark, source=source, called_from=tuple(callers))


def _references(
    codes: Sequence[Code], language: Format, *, pipelined: bool
) -> dict[str, tuple[ReferenceRegion, ...]]:
    assert language.access is not None
    return {
        code.function.name: find_reference(
            code.function, code.flow, language.access, pipelined=pipelined, rounds=code.rounds
        )
        for code in codes
    }


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
