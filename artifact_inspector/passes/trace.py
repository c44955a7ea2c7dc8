"""Find what each pass changed in a kernel, by comparing the dumps before and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.formats.amdgcn.machine import machine_order
from artifact_inspector.model import Stage
from artifact_inspector.model.word import Word
from artifact_inspector.passes.dumps import Dump, Language
from artifact_inspector.passes.observation import Observation, What, observe
from artifact_inspector.passes.timing import PassTimes
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS


class Level(Word):
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


_STAGE = {
    Level.TTIR: Stage.TTIR,
    Level.TTGIR: Stage.TTGIR,
    Level.LLVM: Stage.LLIR,
    Level.BACK_END: Stage.LLIR,
}
_STEP = {
    Level.TTIR: "ttir",
    Level.TTGIR: "ttgir",
    Level.LOWERING: "llir",
    Level.LLVM: "llir",
    Level.BACK_END: "assembly",
    Level.MACHINE: "assembly",
    Level.ASSEMBLY: "assembly",
    Level.SASS: "sass",
}
"""Level → the stage that its passes produce, by the name common to both vendors."""
MACHINE_ORDER = "machine.order"
CODE_GENERATOR = "LLVM's code generator as a whole"
PTXAS = "ptxas"
_DIALECTS_OF_TTGIR = ("ttg.", "triton_gpu.", "#ttg", "#triton_gpu")


@dataclass(frozen=True, slots=True)
class Change:
    """A fact whose value differs before and after a pass."""

    what: What
    key: str
    """Key of the fact: `loop1.verdict`, `loads.widths`."""
    label: str
    unit: str
    before: Value
    after: Value


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a pass."""

    index: int
    """Position among all passes, from 1."""
    name: str
    """Pass name as the compiler prints it: `TritonAMDGPUReorderInstructions`."""
    argument: str | None
    """Pass name in pipelines: `tritonamdgpu-reorder-instructions`; null if the compiler does not print it."""
    level: Level
    line: int
    """Line of its dump in the compiler's output."""
    changed_text: bool | None
    """Whether it changed the IR; null if its dumps are incomplete."""
    seconds: float | None
    """Duration by the compiler's timer; for LLVM's code generator, the sum of all passes of this name."""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class PassTrace:
    """The passes of one compile, with their changes."""

    kernel: str
    target: str
    triton: str | None
    steps: tuple[Step, ...]
    final: tuple[Observation, ...]
    """The facts of the last dump."""
    notes: tuple[str, ...]
    """Limitations of this trace."""

    def last_change(self, keys: Collection[str], until: str | None = None) -> tuple[Step, Change] | None:
        """The last pass that changed one of the given facts, and the change; None if no pass did.

        Args:
            keys: keys of the facts.
            until: the last stage whose passes count, by the name common to both vendors; None for all.
        """
        end = len(STEPS) if until is None else STEPS.index(until)
        for step in reversed(self.steps):
            if STEPS.index(_STEP[step.level]) > end:
                continue
            for change in step.changes:
                if change.key in keys:
                    return step, change
        return None


Keep = Callable[[Step, Level, str, str], None]
"""Called with each step that changed the IR: the step, its level, the dump before and the dump after."""


def trace(
    artifact: Artifact,
    dumps: Iterable[Dump],
    times: PassTimes,
    wanted: Collection[What],
    keep: Keep | None = None,
    disassemble: Disassemble | None = None,
) -> PassTrace:
    """Find what each pass changed, with one pair of dumps in memory at a time.

    Args:
        artifact: the cache entry of the compile.
        dumps: the dumps of the compile, in order.
        wanted: the topics of facts to follow.
        keep: called with the changed dumps.
        disassemble: disassembles a cubin, to include the changes by ptxas.
    """
    walk = _Walk(artifact, frozenset(wanted), times, keep, disassemble)
    for dump in dumps:
        walk.take(dump)
    return walk.end()


@dataclass(frozen=True, slots=True)
class _State:
    """A dump between two passes, with its facts."""

    level: Level
    text: str
    facts: dict[str, Observation]


class _Walk:
    def __init__(
        self,
        artifact: Artifact,
        wanted: frozenset[What],
        times: PassTimes,
        keep: Keep | None,
        disassemble: Disassemble | None,
    ) -> None:
        self.artifact, self.wanted, self.times, self.keep = artifact, wanted, times, keep
        self.disassemble = disassemble
        self.steps: list[Step] = []
        self.state: _State | None = None
        """The last dump that was parsed as a stage."""
        self.machine: _State | None = None
        self.given: Dump | None = None
        """The open MLIR pass: the dump before it was read, the dump after it was not."""
        self.unread: Counter[Level] = Counter()
        self.of_mlir: list[int] = []
        """Indices of the steps of MLIR passes, which have individual times."""

    def take(self, dump: Dump) -> None:
        """Process the next dump: in MLIR the one before a pass, in LLVM the one after it."""
        level = _level(dump, self.state)
        if level is Level.LOWERING or (level is Level.MACHINE and not self._is_amd):
            self._pass_over(dump, level)
            return
        if (
            level is not Level.MACHINE
            and dump.language is Language.LLVM
            and "\ndefine " not in f"\n{dump.text}"
        ):
            self._close(None, level)
            self._step(dump, level, None, ())
            return
        if dump.is_before:
            self._close(dump.text, level)
            self.given = dump
        else:
            self._close(None, level)
            self._advance(dump, level, dump.text)

    def end(self) -> PassTrace:
        self._close(None, Level.LOWERING)
        seconds = self.times.of_mlir([self.steps[at].name for at in self.of_mlir])
        for at, found in zip(self.of_mlir, seconds, strict=True):
            self.steps[at] = replace(self.steps[at], seconds=found)
        self._finish()
        target, final = self.artifact.target, self.state.facts if self.state is not None else {}
        return PassTrace(
            self.artifact.display_name,
            "" if target is None else str(target),
            None if self.artifact.triton_version is None else str(self.artifact.triton_version),
            tuple(self.steps),
            tuple(final.values()),
            tuple(self._notes()),
        )

    # -- one pass ----------------------------------------------------------------------

    def _pass_over(self, dump: Dump, level: Level) -> None:
        self._close(None, level)
        self.unread[level] += 1
        self._step(dump, level, None, ())

    def _close(self, text: str | None, level: Level) -> None:
        """Finish the open MLIR pass: the dump after it is the one before the next pass."""
        dump, self.given = self.given, None
        if text is None:
            if dump is not None:
                self._step(dump, self.state.level if self.state is not None else level, None, ())
            return
        if dump is None:
            # the first dump, or the first after dumps that are not parsed
            self.state = self._observed(level, text)
            return
        self._advance(dump, level, text)

    def _advance(self, dump: Dump, level: Level, text: str) -> None:
        """Record a pass with the dump after it."""
        before = self.machine if level is Level.MACHINE else self.state
        if before is not None and before.text == text:
            self._step(dump, level, False, ())
            return
        after = self._observed(level, text)
        changes = () if before is None else tuple(_changes(before, after))
        step = self._step(dump, level, before is None or before.level is level or None, changes)
        if self.keep is not None:
            self.keep(step, level, "" if before is None else before.text, text)
        if level is Level.MACHINE:
            self.machine = after
        else:
            self.state = after

    def _step(self, dump: Dump, level: Level, changed: bool | None, changes: tuple[Change, ...]) -> Step:
        if dump.language is Language.MLIR:
            self.of_mlir.append(len(self.steps))
        seconds = self.times.total_of(dump.name)
        step = Step(
            len(self.steps) + 1, dump.name, dump.argument, level, dump.line, changed, seconds, changes
        )
        self.steps.append(step)
        return step

    def _observed(self, level: Level, text: str) -> _State:
        if level is Level.MACHINE:
            found = {} if What.ORDER not in self.wanted else {MACHINE_ORDER: _machine_fact(text)}
            return _State(level, text, found)
        if level is Level.TTIR and text.count("tt.func ") > 1:
            return _State(level, text, {})  # calls are not yet inlined
        return _State(level, text, observe(self.artifact, _STAGE[level], text, self.wanted))

    @property
    def _is_amd(self) -> bool:
        return Stage.AMDGCN.value in self.artifact.files

    # -- after the last pass ------------------------------------------------------------

    def _finish(self) -> None:
        """Add steps for the whole code generator and for ptxas, by their output."""
        files = self.artifact.files
        for stage in (Stage.PTX, Stage.AMDGCN):
            if stage.value in files:
                after = _State(Level.ASSEMBLY, "", observe(self.artifact, stage, None, self.wanted))
                changes = () if self.state is None else tuple(_changes(self.state, after))
                number = len(self.steps) + 1
                self.steps.append(Step(number, CODE_GENERATOR, None, Level.ASSEMBLY, 0, True, None, changes))
                self.state = after
        if "cubin" in files and self.disassemble is not None:
            facts = observe(self.artifact, Stage.SASS, None, self.wanted, self.disassemble)
            after = _State(Level.SASS, "", facts)
            changes = () if self.state is None or not facts else tuple(_changes(self.state, after))
            self.steps.append(Step(len(self.steps) + 1, PTXAS, None, Level.SASS, 0, True, None, changes))
            self.state = after

    def _notes(self) -> Iterator[str]:
        for level, words in (
            (Level.LOWERING, "lower Triton's dialects to LLVM's; their dumps mix both and are not parsed"),
            (
                Level.MACHINE,
                "work on LLVM's machine code for NVIDIA, which is not parsed; PTX shows their result",
            ),
        ):
            if self.unread[level]:
                yield f"{self.unread[level]} passes {words}"
        if not any(step.level is Level.LLVM for step in self.steps):
            yield "this Triton wrote no dumps of LLVM's passes"
        if Stage.PTX.value in self.artifact.files:
            yield "ptxas writes no dumps of its passes; only its input (PTX) and output (SASS) are compared"


def _level(dump: Dump, state: _State | None) -> Level:
    if dump.language is Language.MACHINE:
        return Level.MACHINE
    if dump.language is Language.LLVM:
        return Level.LLVM if dump.argument is None else Level.BACK_END
    if "llvm.func" in dump.text or "llvm.mlir." in dump.text:
        return Level.LOWERING
    if any(mark in dump.text for mark in _DIALECTS_OF_TTGIR):
        return Level.TTGIR
    return Level.TTIR


def _changes(before: _State, after: _State) -> Iterator[Change]:
    """Yield the facts that differ; between two stages, only facts that both have are compared."""
    if not before.facts or not after.facts:
        return  # one of them could not be parsed
    is_other = _STAGE.get(before.level, before.level) is not _STAGE.get(after.level, after.level)
    for key, fact in after.facts.items():
        old = before.facts.get(key)
        if old is None:
            if not is_other:
                yield Change(fact.what, key, fact.label, fact.unit, None, fact.value)
        elif old.value != fact.value and (not is_other or _is_comparable(old, fact, after.level)):
            yield Change(fact.what, key, fact.label, fact.unit, old.value, fact.value)
    if not is_other:
        for key, fact in before.facts.items():
            if key not in after.facts:
                yield Change(fact.what, key, fact.label, fact.unit, fact.value, None)


def _is_comparable(before: Observation, after: Observation, level: Level) -> bool:
    """Whether a fact is comparable between two languages: numbers of PTX and SASS are, opcodes are not."""
    if after.what in _COMPARABLE:
        return True
    is_figure = isinstance(before.value, int) or (before.value is None and after.what is What.REGISTERS)
    return level is Level.SASS and is_figure and isinstance(after.value, int)


def _machine_fact(text: str) -> Observation:
    return Observation(What.ORDER, MACHINE_ORDER, "order in machine code", "", " ".join(machine_order(text)))


_COMPARABLE = frozenset({What.ORDER, What.LOOPS})
"""Topics of facts that are comparable between all stages."""
