"""Find what each pass changed in a kernel, by comparing the dumps before and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.formats.amdgcn.machine_ir import machine_order
from artifact_inspector.model import Backend, Stage
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.passes.dump_facts import DumpFact, Topic, read_dump_facts
from artifact_inspector.passes.dumps import Dump, DumpLanguage, PassTimes
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS


class PassLevel(StringEnum):
    """Level of the compile that a pass works on."""

    TTIR = "ttir"
    TTGIR = "ttgir"
    LOWERING = "lowering"
    """Lowering from Triton's dialects to LLVM's in MLIR; the dumps mix both and are not parsed."""
    LLVM = "llir"
    BACK_END = "back end"
    """LLVM's code generator, in its passes over LLVM IR."""
    MACHINE = "machine"
    """LLVM's code generator, in its passes over machine code; only the order is read, and for AMD only."""
    ASSEMBLY = "assembly"
    """Output of the code generator: PTX or AMDGCN."""
    SASS = "sass"


_STAGE_OF_LEVEL = {
    PassLevel.TTIR: Stage.TTIR, PassLevel.TTGIR: Stage.TTGIR, PassLevel.LLVM: Stage.LLIR,
    PassLevel.BACK_END: Stage.LLIR,
}  # fmt: skip
_STAGE_NAME_OF_LEVEL = {
    **dict.fromkeys((PassLevel.LOWERING, PassLevel.LLVM), "llir"),
    **dict.fromkeys((PassLevel.BACK_END, PassLevel.MACHINE, PassLevel.ASSEMBLY), "assembly"),
    **{level: level.value for level in (PassLevel.TTIR, PassLevel.TTGIR, PassLevel.SASS)},
}
"""Level → the stage that its passes produce, by the name common to both vendors."""
MACHINE_ORDER = "machine.order"
CODE_GENERATOR = "LLVM's code generator as a whole"
PTXAS = "ptxas"
_DIALECTS_OF_TTGIR = ("ttg.", "triton_gpu.", "#ttg", "#triton_gpu")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact whose value differs before and after a pass."""

    topic: Topic
    key: str
    """Key of the fact: `loop1.verdict`, `loads.widths`."""
    label: str
    unit: str
    value_before: Value
    value_after: Value


@dataclass(frozen=True, slots=True)
class PassRun:
    """One run of a pass."""

    index: int
    """Position among all passes, from 1."""
    name: str
    """Pass name as the compiler prints it: `TritonAMDGPUReorderInstructions`."""
    argument: str | None
    """Pass name in pipelines: `tritonamdgpu-reorder-instructions`; null if the compiler does not print it."""
    level: PassLevel
    line: int
    """Line of its dump in the compiler's output."""
    changed_text: bool | None
    """Whether it changed the IR; null if its dumps are incomplete."""
    seconds: float | None
    """Duration by the compiler's timer; for LLVM's code generator, the sum of all passes of this name."""
    changes: tuple[FactChange, ...]


@dataclass(frozen=True, slots=True)
class PassTrace:
    """The passes of one compile, with their changes."""

    kernel: str
    target: str
    triton: str | None
    steps: tuple[PassRun, ...]
    final: tuple[DumpFact, ...]
    """The facts of the last dump."""
    notes: tuple[str, ...]
    """Limitations of this trace."""

    def last_change(self, keys: Collection[str], until: str | None = None) -> tuple[PassRun, FactChange] | None:
        """The last pass that changed one of the given facts, and the change; None if no pass did.

        Args:
            until: the last stage whose passes count, by the name common to both vendors; None for all.
        """
        end = len(STEPS) if until is None else STEPS.index(until)
        for step in reversed(self.steps):
            if STEPS.index(_STAGE_NAME_OF_LEVEL[step.level]) <= end:
                for change in step.changes:
                    if change.key in keys:
                        return step, change
        return None


ChangeCallback = Callable[[PassRun, PassLevel, str, str], None]
"""Called with each step that changed the IR: the step, its level, the dump before and the dump after."""


def trace_dumps(
    artifact: Artifact,
    dumps: Iterable[Dump],
    times: PassTimes,
    topics: Collection[Topic],
    on_change: ChangeCallback | None = None,
    disassemble: Disassemble | None = None,
) -> PassTrace:
    """Find what each pass changed, with one pair of dumps in memory at a time.

    Args:
        disassemble: disassembles a cubin, to include the changes by ptxas.
    """
    walk = _DumpTracer(artifact, frozenset(topics), times, on_change, disassemble)
    for dump in dumps:
        walk.add_dump(dump)
    return walk.end()


@dataclass(frozen=True, slots=True)
class _DumpState:
    level: PassLevel
    text: str
    facts: dict[str, DumpFact]


class _DumpTracer:
    def __init__(
        self,
        artifact: Artifact,
        topics: frozenset[Topic],
        times: PassTimes,
        on_change: ChangeCallback | None,
        disassemble: Disassemble | None,
    ) -> None:
        self.artifact, self.topics, self.times, self.on_change = artifact, topics, times, on_change
        self.disassemble = disassemble
        self.steps: list[PassRun] = []
        self.state: _DumpState | None = None
        """The last dump that was parsed as a stage."""
        self.machine: _DumpState | None = None
        self.open_dump: Dump | None = None
        """The open MLIR pass: the dump before it was read, the dump after it was not."""
        self.skipped_levels: Counter[PassLevel] = Counter()
        self.mlir_step_indices: list[int] = []
        """Indices of the steps of MLIR passes, which have individual times."""

    def add_dump(self, dump: Dump) -> None:
        """Process the next dump: in MLIR the one before a pass, in LLVM the one after it."""
        level = _level_of(dump, self.state)
        target, is_llvm = self.artifact.target, dump.language is DumpLanguage.LLVM
        is_amd = Stage.AMDGCN.value in self.artifact.files or (target is not None and target.backend is Backend.HIP)
        is_skipped = level is PassLevel.LOWERING or (level is PassLevel.MACHINE and not is_amd)
        self.skipped_levels[level] += is_skipped
        if is_skipped or (level is not PassLevel.MACHINE and is_llvm and "\ndefine " not in f"\n{dump.text}"):
            self._finish_mlir_pass(None, level)
            self._add_step(dump, level, None, ())
            return
        if dump.is_before:
            self._finish_mlir_pass(dump.text, level)
            self.open_dump = dump
        else:
            self._finish_mlir_pass(None, level)
            self._record_change(dump, level, dump.text)

    def end(self) -> PassTrace:
        self._finish_mlir_pass(None, PassLevel.LOWERING)
        seconds = self.times.mlir_seconds([self.steps[at].name for at in self.mlir_step_indices])
        for at, seconds_of_step in zip(self.mlir_step_indices, seconds, strict=True):
            self.steps[at] = replace(self.steps[at], seconds=seconds_of_step)
        self._add_final_steps()
        artifact, final = self.artifact, self.state.facts if self.state is not None else {}
        target = "" if artifact.target is None else str(artifact.target)
        version = None if artifact.triton_version is None else str(artifact.triton_version)
        limits, facts = tuple(self._describe_limits()), tuple(final.values())
        return PassTrace(artifact.display_name, target, version, tuple(self.steps), facts, limits)

    def _finish_mlir_pass(self, text: str | None, level: PassLevel) -> None:
        """Finish the open MLIR pass: the dump after it is the one before the next pass."""
        dump, self.open_dump = self.open_dump, None
        if text is None:
            if dump is not None:
                self._add_step(dump, self.state.level if self.state is not None else level, None, ())
            return
        if dump is None:
            # the first dump, or the first after dumps that are not parsed
            self.state = self._read_state(level, text)
            return
        self._record_change(dump, level, text)

    def _record_change(self, dump: Dump, level: PassLevel, text: str) -> None:
        previous_state = self.machine if level is PassLevel.MACHINE else self.state
        if previous_state is not None and previous_state.text == text:
            self._add_step(dump, level, False, ())
            return
        next_state = self._read_state(level, text)
        changes = () if previous_state is None else tuple(_compare_states(previous_state, next_state))
        step = self._add_step(dump, level, previous_state is None or previous_state.level is level or None, changes)
        if self.on_change is not None:
            self.on_change(step, level, "" if previous_state is None else previous_state.text, text)
        if level is PassLevel.MACHINE:
            self.machine = next_state
        else:
            self.state = next_state

    def _add_step(self, dump: Dump, level: PassLevel, changed: bool | None, changes: tuple[FactChange, ...]) -> PassRun:
        if dump.language is DumpLanguage.MLIR:
            self.mlir_step_indices.append(len(self.steps))
        seconds = self.times.total_seconds(dump.name)
        step = PassRun(len(self.steps) + 1, dump.name, dump.argument, level, dump.line, changed, seconds, changes)
        self.steps.append(step)
        return step

    def _read_state(self, level: PassLevel, text: str) -> _DumpState:
        if level is PassLevel.MACHINE:
            fact = DumpFact(Topic.ORDER, MACHINE_ORDER, "order in machine code", "", " ".join(machine_order(text)))
            return _DumpState(level, text, {MACHINE_ORDER: fact} if Topic.ORDER in self.topics else {})
        if level is PassLevel.TTIR and text.count("tt.func ") > 1:
            return _DumpState(level, text, {})  # calls are not yet inlined
        return _DumpState(level, text, read_dump_facts(self.artifact, _STAGE_OF_LEVEL[level], text, self.topics))

    def _add_final_steps(self) -> None:
        """Add steps for the whole code generator and for ptxas, by their output."""
        files = self.artifact.files
        for stage in (Stage.PTX, Stage.AMDGCN):
            if stage.value in files:
                facts = read_dump_facts(self.artifact, stage, None, self.topics)
                self._add_final_step(CODE_GENERATOR, _DumpState(PassLevel.ASSEMBLY, "", facts))
        if "cubin" in files and self.disassemble is not None:
            facts = read_dump_facts(self.artifact, Stage.SASS, None, self.topics, self.disassemble)
            self._add_final_step(PTXAS, _DumpState(PassLevel.SASS, "", facts))

    def _add_final_step(self, name: str, state: _DumpState) -> None:
        changes = () if self.state is None else tuple(_compare_states(self.state, state))
        self.steps.append(PassRun(len(self.steps) + 1, name, None, state.level, 0, True, None, changes))
        self.state = state

    def _describe_limits(self) -> Iterator[str]:
        for level, limitation in (
            (PassLevel.LOWERING, "lower Triton's dialects to LLVM's; their dumps mix both and are not parsed"),
            (PassLevel.MACHINE, "work on LLVM's machine code for NVIDIA, which is not parsed; PTX shows their result"),
        ):
            if self.skipped_levels[level]:
                yield f"{self.skipped_levels[level]} passes {limitation}"
        if not any(step.level is PassLevel.LLVM for step in self.steps):
            yield "this Triton wrote no dumps of LLVM's passes"
        if Stage.PTX.value in self.artifact.files:
            yield "ptxas writes no dumps of its passes; only its input (PTX) and output (SASS) are compared"


def _level_of(dump: Dump, state: _DumpState | None) -> PassLevel:
    if dump.language is DumpLanguage.MACHINE:
        return PassLevel.MACHINE
    if dump.language is DumpLanguage.LLVM:
        return PassLevel.LLVM if dump.argument is None else PassLevel.BACK_END
    if "llvm.func" in dump.text or "llvm.mlir." in dump.text:
        return PassLevel.LOWERING
    if any(mark in dump.text for mark in _DIALECTS_OF_TTGIR):
        return PassLevel.TTGIR
    return PassLevel.TTIR


def _compare_states(old_state: _DumpState, new_state: _DumpState) -> Iterator[FactChange]:
    """Yield the facts that differ; between two stages, only facts that both have are compared."""
    if not old_state.facts or not new_state.facts:
        return  # one of them could not be parsed
    old_stage, new_stage = (_STAGE_OF_LEVEL.get(state.level, state.level) for state in (old_state, new_state))
    is_other_stage = old_stage is not new_stage
    for key, fact in new_state.facts.items():
        old_fact = old_state.facts.get(key)
        if old_fact is None:
            if not is_other_stage:
                yield FactChange(fact.topic, key, fact.label, fact.unit, None, fact.value)
        elif old_fact.value != fact.value and (not is_other_stage or _is_comparable(old_fact, fact, new_state.level)):
            yield FactChange(fact.topic, key, fact.label, fact.unit, old_fact.value, fact.value)
    if not is_other_stage:
        for key, fact in old_state.facts.items():
            if key not in new_state.facts:
                yield FactChange(fact.topic, key, fact.label, fact.unit, fact.value, None)


def _is_comparable(old_fact: DumpFact, new_fact: DumpFact, level: PassLevel) -> bool:
    """Whether a fact is comparable between two languages: numbers of PTX and SASS are, opcodes are not."""
    if new_fact.topic in _COMPARABLE_TOPICS:
        return True
    is_figure = isinstance(old_fact.value, int) or (old_fact.value is None and new_fact.topic is Topic.REGISTERS)
    return level is PassLevel.SASS and is_figure and isinstance(new_fact.value, int)


_COMPARABLE_TOPICS = frozenset({Topic.ORDER, Topic.LOOPS})
"""Topics of facts that are comparable between all stages."""
