"""Steps that also inform a watch of barriers and waits, and of asynchronous copies and matrix products.

Their opcodes are NVIDIA's, but for `s_barrier`. A wait for an mbarrier blocks its warps until the phase completes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.observation import AccessObserver
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.interpreter.state import LaneGroup
from artifact_inspector.execution.interpreter.values import UnknownValue, broadcast_value
from artifact_inspector.execution.sass.memory import local_address
from artifact_inspector.execution.sass.operands import Reader, register_after, word_reader
from artifact_inspector.execution.sass.tma import SHARED_WINDOW
from artifact_inspector.execution.sass.warpgroup_products import operand_units
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement, parse_statement
from artifact_inspector.memory_checks.mbarriers import Mbarriers
from artifact_inspector.memory_checks.shared_state import CAPACITY, LARGEST_CELL, TENSOR_COLUMNS, AsyncKind, SharedState

_Lanes: TypeAlias = NDArray[np.int64]
_Run: TypeAlias = Callable[[Machine], "bool | None"]

MBARRIER_WAIT = "an mbarrier"
"""Where a group waits that waits for an mbarrier."""
COPY_QUEUE, _PRODUCT_QUEUE = "SB0", "gsb0"
_TENSOR_QUEUE = "tensor memory"
"""Products in tensor memory of one warp, which run in order."""
_UNIT = 16
"""Granularity of matrix operands in bytes."""
_WARPGROUP = 128
_ZERO_COUNT = 1 << 20
"""An mbarrier counts up to this; its arrivals are encoded as the difference."""


class CtasDiffer(Exception):  # noqa: N818 - no error: each CTA is then observed separately
    """CTAs that are observed together do not behave alike."""


class StepWatch(AccessObserver):
    """What the steps of one CTA's run observe, or of several that behave alike."""

    observes_shared = True

    def __init__(self, threads: int, warp_size: int, ctas: int = 1) -> None:
        self.warp_size, self.ctas = warp_size, ctas
        self.state = SharedState(threads, warp_size)
        self.mbarriers = Mbarriers(self.state)
        self.copy_barriers: dict[int, int] = {}
        """Thread → mbarrier of the tensor copy that it starts."""
        self.waits: dict[int, int] = {}
        """Step → the mbarrier for which it waits."""
        self.missing_inputs: dict[int, int] = {}
        """Step with an unknown operand → the inputs that it depends on."""

    def warps_of(self, threads: _Lanes) -> _Lanes:
        """The warps of some threads."""
        return np.unique(threads // self.warp_size)

    def threads_of(self, machine: Machine) -> _Lanes:
        """The active threads, of each CTA.

        Raises:
            CtasDiffer: they differ.
        """
        if machine.rows != self.ctas:
            raise CtasDiffer
        return np.flatnonzero(self.common_row(machine.active_mask, machine.shape))

    @staticmethod
    def common_row(values: Any, shape: tuple[int, int]) -> NDArray[Any]:
        """The row that all CTAs have in common.

        Raises:
            CtasDiffer: they differ.
        """
        rows: NDArray[Any] = np.broadcast_to(values, shape)
        if any(not np.array_equal(rows[0], other) for other in rows[1:]):
            raise CtasDiffer
        row: NDArray[Any] = rows[0]
        return row

    def read(self, machine: Machine, reader: Reader, threads: _Lanes) -> _Lanes | None:
        """An operand of some threads; None if it is unknown, which is noted."""
        value = machine.resolve_active(reader(machine))
        if isinstance(value, UnknownValue):
            self.missing_inputs[machine.step.index] = value.missing_inputs
            return None
        values: _Lanes = broadcast_value(value, machine.shape)[:, threads]
        return self.common_row(values, values.shape)

    def read_word(self, machine: Machine, register: str, thread: int) -> int | None:
        """A register of one thread; None if it is unknown, which is noted."""
        values = self.read(machine, word_reader(SassOperand(SassOperandKind.REGISTER, register)), np.array([thread]))
        return None if values is None else int(values[0])

    def access(
        self, step: ProgramStep, thread: int, at: _Lanes, size: int, agent: int | None, *, is_store: bool
    ) -> None:
        """Record an access of one thread, or of an agent that it started, to several places."""
        agents = None if agent is None else np.full(len(at), agent)
        (self.state.store if is_store else self.state.load)(step.index, np.full(len(at), thread), at, size, agents)


def observed(step: ProgramStep, watch: StepWatch) -> ProgramStep:
    """The step; if it is one of those, its run also informs the watch."""
    build = _builder_of(step.opcode)
    return step if build is None else replace(step, run=build(step, watch))


@cache
def _builder_of(opcode: str) -> Callable[[ProgramStep, StepWatch], _Run] | None:
    return next((build for pattern, build in _BUILDERS if re.match(pattern, f"{opcode} ")), None)


def _observing(step: ProgramStep, watch: StepWatch, observe: Callable[[Machine, _Lanes], None]) -> _Run:
    """The run of a step, before which the watch observes its active threads."""

    def run(machine: Machine) -> bool | None:
        observe(machine, watch.threads_of(machine))
        return step.run(machine)

    return run


# ── Barriers and waits of groups ─────────────────────────────────────────────────────────────────


def _build_barrier(step: ProgramStep, watch: StepWatch) -> _Run:
    numbers = [int(text, 0) for text in re.findall(r"0x[0-9a-f]+|\b\d+\b", step.text.partition("BAR")[2])]
    name, count = f"barrier {numbers[0] if numbers else 0}", numbers[1] if len(numbers) > 1 else None
    waits = ".ARV" not in step.opcode

    def observe(machine: Machine, threads: _Lanes) -> None:
        exited = int(watch.common_row(machine.exited, machine.shape).sum())
        needed = machine.threads - exited if count is None else count
        watch.state.arrive(name, watch.warps_of(threads), len(threads), needed, waits=waits)

    return _observing(step, watch, observe)


def _build_commit(step: ProgramStep, watch: StepWatch) -> _Run:
    return _observing(step, watch, lambda _, threads: watch.state.commit(COPY_QUEUE, watch.warps_of(threads)))


def _build_group_wait(step: ProgramStep, watch: StepWatch) -> _Run:
    match = re.search(r"DEPBAR\.LE (SB0|gsb0), (0x[0-9a-f]+|\d+)", step.text)
    if match is None:
        return step.run
    queue, pending = match[1], int(match[2], 0)
    return _observing(step, watch, lambda _, threads: watch.state.wait(queue, watch.warps_of(threads), pending))


# ── mbarriers ────────────────────────────────────────────────────────────────────────────────────


def _build_sync(step: ProgramStep, watch: StepWatch) -> _Run:
    statement = parse_statement(step.text)
    address_reader, last = local_address(statement), statement.operands[-1]
    data_reader = word_reader(last) if last.kind is SassOperandKind.REGISTER else lambda _: 0
    form = re.search(r"\.A([01R])T([0R])$", step.opcode)
    arrivals, byte_counts = form.groups() if form is not None else ("1", "R")

    def run(machine: Machine) -> bool | None:
        threads = watch.threads_of(machine)
        addresses, data = (watch.read(machine, reader, threads) for reader in (address_reader, data_reader))
        if addresses is None or data is None:
            return step.run(machine)
        addresses = addresses & SHARED_WINDOW
        if "PHASECHK" in step.opcode:
            return _wait_for_phase(watch, statement, machine, threads, addresses, data >> 31 & 1)
        warps = threads // watch.warp_size
        for warp, address in sorted(set(zip(warps.tolist(), addresses.tolist(), strict=True))):
            values = data[(warps == warp) & (addresses == address)]
            if "ARRIVE" in step.opcode:
                count = int(values.sum()) if arrivals == "R" else len(values) * int(arrivals)
                byte_count = int(values.sum()) if byte_counts == "R" else 0
                watch.mbarriers.arrive(step.index, address, warp, count, byte_count)
            elif "EXCH" in step.opcode:
                watch.mbarriers.initialize(step.index, address, _ZERO_COUNT - (int(values[0]) >> 1), warp)
            else:
                watch.mbarriers.invalidate(step.index, address, warp)
        _wake(machine)
        return step.run(machine)

    return run


def _wait_for_phase(
    watch: StepWatch, statement: SassStatement, machine: Machine, threads: _Lanes, addresses: _Lanes, parities: _Lanes
) -> bool | None:
    """A wait for a phase, after which its lanes go on, or block and try again."""
    step, passes = machine.step, np.ones(len(threads), bool)
    for address, parity in sorted(set(zip(addresses.tolist(), parities.tolist(), strict=True))):
        lanes = (addresses == address) & (parities == parity)
        warps = watch.warps_of(threads[lanes])
        barrier = watch.mbarriers.valid_barrier(step.index, address, int(warps[0]))
        if barrier is not None:
            passes[lanes] = barrier.is_complete(parity)
            if passes[lanes].all():
                watch.mbarriers.wait(address, warps)
    waits, mask = statement.has_modifier("TRYWAIT"), machine.active_mask
    passing, failing = (_mask_of(machine, threads[lanes]) for lanes in (passes, ~passes))
    machine.active_mask = passing if waits else passing | failing
    if machine.active_mask.any():
        machine.write_register(statement.operands[0].name, passing)
    machine.active_mask = mask
    if not waits or passes.all():
        return None
    group = machine.group
    others = watch.common_row(group.mask, machine.shape)[None] & ~failing
    watch.waits[step.index] = int(addresses[~passes][0])
    machine.groups.remove(group)
    machine.groups += [LaneGroup(group.pc, others, machine)] if others.any() else []
    machine.waiting.append(LaneGroup(step.index, failing, machine, MBARRIER_WAIT))
    return True


def _mask_of(machine: Machine, threads: _Lanes) -> NDArray[np.bool_]:
    mask = np.zeros((1, machine.threads), bool)
    mask[0, threads] = True
    return mask


def _wake(machine: Machine) -> None:
    """Let the groups that wait for an mbarrier try again."""
    machine.groups += [group for group in machine.waiting if group.barrier == MBARRIER_WAIT]
    machine.waiting = [group for group in machine.waiting if group.barrier != MBARRIER_WAIT]


def _build_tensor_load(step: ProgramStep, watch: StepWatch) -> _Run:
    first = _address_register(parse_statement(step.text))
    barrier = SassOperand(SassOperandKind.REGISTER, register_after(first))

    def run(machine: Machine) -> bool | None:
        threads = watch.threads_of(machine)
        addresses = watch.read(machine, word_reader(barrier), threads)
        watch.copy_barriers = {} if addresses is None else dict(zip(threads.tolist(), addresses.tolist(), strict=True))
        step.run(machine)
        _wake(machine)
        return None

    return run


def _address_register(statement: SassStatement) -> str:
    operand = next(operand for operand in statement.operands if operand.kind is SassOperandKind.ADDRESS)
    return operand.address_registers[0][0]


def _build_next_work(step: ProgramStep, watch: StepWatch) -> _Run:
    """UGETNEXTWORKID: 16 bytes arrive at the address in the first operand, and complete at an mbarrier."""
    target_register, barrier_register = (
        operand.address_registers[0][0] for operand in parse_statement(step.text).operands[:2]
    )

    def observe(machine: Machine, threads: _Lanes) -> None:
        for warp in watch.warps_of(threads).tolist():
            first = warp * watch.warp_size
            target, barrier = (watch.read_word(machine, name, first) for name in (target_register, barrier_register))
            if target is not None and barrier is not None:
                agent = watch.mbarriers.copy(step.index, barrier & SHARED_WINDOW, warp, _UNIT)
                watch.access(step, first, np.array([target & SHARED_WINDOW]), _UNIT, agent, is_store=True)
        _wake(machine)

    return _observing(step, watch, observe)


# ── Matrix products of a warpgroup ───────────────────────────────────────────────────────────────


def _build_product(step: ProgramStep, watch: StepWatch) -> _Run:
    match = re.search(r"GMMA\.64x(\d+)x.*gdesc\[(UR\d+)\]([.\w]*)", step.text)
    operands = []
    if match is not None:
        # the second pair of registers describes B, even if A is in registers
        operands.append((register_after(match[2], 2), int(match[1]), "tnspB" in match[3]))
        if parse_statement(step.text).operands[1].kind is not SassOperandKind.REGISTER:
            operands.append((match[2], 64, "tnspA" in match[3]))

    def observe(machine: Machine, threads: _Lanes) -> None:
        for first in (np.unique(threads // _WARPGROUP) * _WARPGROUP).tolist():
            warps = watch.warps_of(np.arange(first, first + _WARPGROUP))
            agent = watch.state.enqueue(_PRODUCT_QUEUE, AsyncKind.PRODUCT, warps)
            for register, rows, is_transposed in operands:
                _load_operand(watch, machine, agent, first, register, rows, is_transposed=is_transposed)
            if _PRODUCT_QUEUE in step.text:
                watch.state.commit(_PRODUCT_QUEUE, warps)

    return _observing(step, watch, observe)


def _load_operand(
    watch: StepWatch, machine: Machine, agent: int, thread: int, register: str, rows: int, *, is_transposed: bool
) -> None:
    """Let an agent read an operand of a product, whose matrix descriptor is in a pair of registers."""
    words = [watch.read_word(machine, name, thread) for name in (register, register_after(register))]
    if words[0] is not None and words[1] is not None:
        is_blackwell = machine.program.arch_number >= 100
        at = operand_units(words[0] | words[1] << 32, rows, is_transposed=is_transposed, is_blackwell=is_blackwell)
        watch.access(machine.step, thread, at, _UNIT, agent, is_store=False)


# ── Products in tensor memory ────────────────────────────────────────────────────────────────────


def _build_tensor_product(step: ProgramStep, watch: StepWatch) -> _Run:
    """UTCHMMA, UTCCP: operands come from shared or tensor memory, results go to tensor memory."""
    is_copy = step.opcode.startswith("UTCCP")
    operands = re.findall(r"(gdesc|tmem|idesc)\[(UR\d+)(?:\+(0x[0-9a-f]+))?\]", step.text)
    (target, offset), sources = operands[0 if is_copy else 2][1:], operands[1:2] if is_copy else operands[:2]
    shape_register = next((name for space, name, _ in operands if space == "idesc"), None)

    def observe(machine: Machine, threads: _Lanes) -> None:
        for warp in watch.warps_of(threads).tolist():
            thread = warp * watch.warp_size
            agent = watch.state.enqueue(_TENSOR_QUEUE, AsyncKind.PRODUCT, np.array([warp]))
            shape = 0 if shape_register is None else watch.read_word(machine, shape_register, thread)
            column = watch.read_word(machine, target, thread)
            if column is None or shape is None:
                continue
            rows = (128, 8) if is_copy else (16 * (shape >> 24 & 31), 8 * (shape >> 17 & 63))
            for number, (space, register, _) in enumerate(sources):
                if space == "gdesc":
                    is_transposed = bool(shape >> 15 + number & 1)
                    _load_operand(watch, machine, agent, thread, register, rows[number], is_transposed=is_transposed)
                elif (first := watch.read_word(machine, register, thread)) is not None:
                    at = _cells(first, 8, _product_parts(first, rows[0]))
                    watch.access(step, thread, at, LARGEST_CELL, agent, is_store=False)
            at = _cells(column + int(offset or "0", 0), rows[1], _product_parts(column, rows[0]))
            watch.access(step, thread, at, LARGEST_CELL, agent, is_store=True)

    return _observing(step, watch, observe)


def _cells(address: int, columns: int, parts: _Lanes) -> _Lanes:
    """Where the cells of some columns of tensor memory are tracked, each in some parts of 16 lanes."""
    columns_used = ((address & 0xFFFF) + np.arange(columns)) % TENSOR_COLUMNS
    return np.asarray(CAPACITY + LARGEST_CELL * (parts[:, None] * TENSOR_COLUMNS + columns_used).ravel(), np.int64)


def _product_parts(address: int, rows: int) -> _Lanes:
    """The parts of 16 lanes that a product with some rows uses: all, or every other one."""
    return np.arange(8) if rows > 64 else np.arange(address >> 20 & 1, 8, 2)


def _build_tensor_access(step: ProgramStep, watch: StepWatch) -> _Run:
    """LDTM, STTM: each warp accesses the 32 lanes of its own, or 16 of any."""
    match = re.search(
        r"(?:LDTM|STTM)(?:\.16dp(\d+)bit\w*)?(?:\.x(\d+))? .*tmem\[(UR\d+)(?:\+(0x[0-9a-f]+))?\]", step.text
    )
    if match is None:
        return step.run
    columns, register, offset = int(match[2] or 1) * int(match[1] or 32) // 32, match[3], int(match[4] or "0", 0)

    def observe(machine: Machine, threads: _Lanes) -> None:
        for warp in watch.warps_of(threads).tolist():
            thread = warp * watch.warp_size
            column = watch.read_word(machine, register, thread)
            if column is not None:
                lane = (column + offset) >> 16 & 127
                parts = 2 * (warp % 4) + np.arange(2) if match[1] is None else np.array([lane // 16])
                at = _cells(column + offset, columns, parts)
                watch.access(step, thread, at, LARGEST_CELL, None, is_store=step.opcode.startswith("STTM"))

    return _observing(step, watch, observe)


def _build_tensor_commit(step: ProgramStep, watch: StepWatch) -> _Run:
    reader = local_address(parse_statement(step.text))

    def observe(machine: Machine, threads: _Lanes) -> None:
        addresses = watch.read(machine, reader, threads)
        if addresses is None:
            return
        for warp in watch.warps_of(threads).tolist():
            address = int(addresses[threads // watch.warp_size == warp][0]) & SHARED_WINDOW
            agent = watch.state.enqueue(_TENSOR_QUEUE, AsyncKind.PRODUCT, np.array([warp]))
            watch.mbarriers.commit(step.index, address, warp, agent)
        _wake(machine)

    return _observing(step, watch, observe)


_BUILDERS: tuple[tuple[str, Callable[[ProgramStep, StepWatch], _Run]], ...] = (
    (r"BAR[. ]|s_barrier(?!_signal)", _build_barrier), (r"LDGDEPBAR|UTMACMDFLUSH", _build_commit),
    (r"(WARPGROUP\.)?DEPBAR\.LE", _build_group_wait), (r"SYNCS", _build_sync), (r"UTMALDG", _build_tensor_load),
    (
        r"FENCE\.VIEW\.ASYNC",
        lambda step, watch: _observing(step, watch, lambda _, threads: watch.state.fence(watch.warps_of(threads))),
    ),
    (r"UGETNEXTWORKID", _build_next_work), (r"[HIQ]GMMA", _build_product),
    (r"UTC([HQ]MMA|CP)", _build_tensor_product), (r"UTCBAR", _build_tensor_commit),
    (r"(LDTM|STTM)", _build_tensor_access),
)  # fmt: skip
