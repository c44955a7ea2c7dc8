"""What parts of the simulator do, next to the same done lane by lane: accesses of CTAs, registers of further iterations,
sectors of copies, chosen CTAs, and how much work is done."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved import ROOT

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.amdgcn.operands import read_mask, write_mask
from artifact_inspector.execution.interpreter.access_counting import l1_bypass_request_unit
from artifact_inspector.execution.interpreter.affine import AffineValue, pair_operands
from artifact_inspector.execution.interpreter.barriers import wait_at_barrier
from artifact_inspector.execution.interpreter.counters import STEPS_PER_CHECK, StepCounters
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses
from artifact_inspector.execution.interpreter.lane_partition import LanePartition, LaneSubset, as_array_value
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.memory_access import load_local, store_local
from artifact_inspector.execution.interpreter.state_changes import predict_lane_sets, predict_register
from artifact_inspector.execution.interpreter.tensor_maps import TensorDescriptor, _boxes_inside
from artifact_inspector.execution.interpreter.values import InputNames
from artifact_inspector.execution.interpreter.wavefronts import count_l1_bypass_wavefronts, lanes_served_together
from artifact_inspector.execution.kernel_loader import KernelParameter, load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_requests import parse_document, parse_document_of, resolve_launch
from artifact_inspector.execution.pointer_origin import _move_tensors
from artifact_inspector.execution.sass.operands import build_move
from artifact_inspector.execution.sass.semantics import _AFFINE_OPCODES
from artifact_inspector.execution.timing import sampling
from artifact_inspector.execution.timing.sampling import choose_ctas, sample_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats.sass.statement import parse_statement

LANES = 8
numbers = st.integers(0, 2**32 - 1)
flags = st.lists(st.booleans(), min_size=LANES, max_size=LANES)


def a_machine(ctas: int = 1, threads: int = 64, registers: dict[str, Any] | None = None) -> Machine:
    """A machine at the first step of a program that is not run."""
    step = SimpleNamespace(index=0, kind="other", address=0)
    program: Any = SimpleNamespace(
        steps=[step] * 4, warp_size=32, entry_step=0, reconvergence_steps={}, step_by_address={}, request_bytes=128
    )
    memory = GlobalMemory(KernelLaunch((ctas, 1, 1), {}))
    environment: Any = SimpleNamespace()
    machine = Machine(program, np.arange(ctas), threads, memory, StepCounters(4, 1000), InputNames(), environment)
    machine.step = machine.program.steps[0]
    machine.registers.update(registers or {})
    return machine


# -- lanes that access memory ----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=LANES, max_size=LANES),
    st.none() | flags,
    st.lists(st.none() | st.integers(0, 300), min_size=1, max_size=5).filter(any),
    st.sampled_from([32, 128]),
)
def test_accesses_of_ctas_at_offsets_are_those_of_each_lane_of_each_cta(
    lanes: list[int], mask: list[bool] | None, offsets: list[int | None], modulus: int
) -> None:
    """An offset of None stands for a CTA that accesses nothing."""
    taking_part = [offset is not None for offset in offsets]
    accesses = LaneAccesses(
        np.array([lanes]),
        None if mask is None else np.array([mask]),
        1,
        np.array([offset for offset in offsets if offset is not None]),
        None if all(taking_part) else np.array(taking_part),
    )
    each = sorted(
        offset + address
        for offset in offsets
        if offset is not None
        for address, is_on in zip(lanes, mask or [True] * LANES, strict=True)
        if is_on
    )
    expanded = accesses.expanded
    assert sorted(expanded.active_addresses.tolist()) == each
    assert expanded.multiplicity == 1
    assert (len(expanded.addresses), expanded.expanded) == (len(offsets), expanded)
    assert accesses.participating(np.arange(len(offsets))).tolist() == np.flatnonzero(taking_part).tolist()
    alike = accesses.representatives(modulus)
    assert sum(one.multiplicity for one in alike) == sum(taking_part)
    found = [a % modulus for one in alike for a in one.active_addresses.tolist() * one.multiplicity]
    assert sorted(found) == sorted(address % modulus for address in each)


@pytest.mark.parametrize("first", [(100, 1), (1, 64), (100, 64), (1, 1)])
@pytest.mark.parametrize("second", [(100, 1), (1, 64), (100, 64), (1, 1)])
def test_numbers_of_ctas_and_numbers_of_lanes_are_paired_as_a_sum_and_others_stay(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    left, right = np.arange(np.prod(first)).reshape(first) * 3, np.arange(np.prod(second)).reshape(second) * 7
    pair = pair_operands(left, right)
    assert np.array_equal(as_array_value(pair[0] + pair[1]), left + right)
    is_mixed = {first, second} == {(100, 1), (1, 64)}
    assert sum(isinstance(one, AffineValue) for one in pair) == is_mixed
    if is_mixed:  # the one of CTAs, so that no array of all lanes results
        assert isinstance(pair[first != (100, 1)], AffineValue)
        assert isinstance(pair[0] + pair[1], AffineValue)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_boxes_are_inside_of_a_tensor_that_has_all_their_elements(rank: int) -> None:
    shape, block = (5, 9, 16)[-rank:], (2, 3, 8)[-rank:]
    descriptor = TensorDescriptor("x", Tensor(shape, "fp16"), block, is_whole_block=True)
    starts = np.array(list(product(*(range(-1, extent + 1) for extent in shape)))).T
    elements = set(product(*map(range, shape)))
    expected = [
        all(box in elements for box in product(*(range(at, at + size) for at, size in zip(start, block, strict=True))))
        for start in starts.T.tolist()
    ]
    assert _boxes_inside(descriptor, starts).tolist() == expected


def test_tensors_that_are_moved_leave_others_of_their_size_where_they_were() -> None:
    """An address that is computed from an old pointer is then of a tensor by name; null pointers move, too."""
    tensors = {"x": Tensor((8,), "fp16", pointer=4096), "y": Tensor((4, 4), "fp32", pointer=1 << 40)}
    launch = KernelLaunch((1, 1, 1), {**tensors, "n": 7, "null": None, "flag": None})
    parameters = [KernelParameter(name, "*fp16", name) for name in ("x", "y", "null")]
    moved = _move_tensors(launch, [*parameters, KernelParameter("flag", "i32", "flag")]).arguments
    distance = moved["x"].pointer - 4096
    assert abs(distance) > max(tensor.bytes for tensor in tensors.values())
    for name, tensor in tensors.items():
        assert moved[name] == replace(tensor, pointer=(tensor.pointer or 0) + distance)
    others = [one for name, one in moved.items() if isinstance(one, Tensor) and name not in tensors]
    assert others == list(tensors.values())
    assert (moved["n"], moved["flag"]) == (7, None)
    assert moved["null"] is not None


# -- registers of further iterations ---------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_register_of_further_iterations_is_what_adding_again_and_again_gives(data: st.DataObject) -> None:
    ctas, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    rows = np.array(data.draw(st.lists(numbers, min_size=ctas, max_size=ctas)))[:, None]
    lanes = np.array([data.draw(st.lists(numbers, min_size=4, max_size=4))])
    shape = data.draw(st.sampled_from([(1, 1), (ctas, 1), (1, 4), (ctas, 4)]))
    changes = [
        np.array(data.draw(st.lists(numbers, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))).reshape(
            shape
        )
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    value: Any = data.draw(st.sampled_from([AffineValue(rows, lanes), (rows + lanes) & 0xFFFFFFFF]))
    now, each = (rows + lanes) % 2**32, []
    for iteration in range(count + 1):
        each.append(now)
        now = (now + changes[iteration % len(changes)]) % 2**32
    by_lanes = predict_lane_sets(value, changes, count, (ctas, 4))
    assert (by_lanes is None) is (shape[0] > 1 or shape[1] == 1)
    for predicted in filter(None, (predict_register(value, changes, count, ctas), by_lanes)):
        every = np.broadcast_to(as_array_value(predicted.all_values), ((count + 1) * ctas, 4))
        assert every.tolist() == np.concatenate(each).tolist()
        assert np.broadcast_to(as_array_value(predicted.final_value), (ctas, 4)).tolist() == each[-1].tolist()


def test_a_counter_of_one_warp_needs_no_array_of_all_lanes_in_further_iterations() -> None:
    is_elected = np.arange(64)[None] < 32
    counts = np.where(is_elected, 5, 0)
    predicted = predict_lane_sets(counts, [np.where(is_elected, 1, 0)], 6, (100, 64))
    assert predicted is not None
    assert isinstance(predicted.all_values, LanePartition)
    assert max(np.size(as_array_value(part.value)) for part in predicted.all_values.subsets) == 7 * 100
    assert predict_lane_sets(counts, [np.arange(64)[None]], 6, (100, 64)) is None  # each lane counts by itself


def test_a_copy_in_all_lanes_keeps_a_lane_partition() -> None:
    is_elected = np.arange(64)[None] < 32
    partition = LanePartition((LaneSubset(is_elected, np.arange(3)[:, None]), LaneSubset(~is_elected, 0)))
    machine = SimpleNamespace(registers={"UR6": partition}, active_mask=True, undecided_lanes=None)
    machine.copy_register = partial(Machine.copy_register, machine)
    build_move(parse_statement("IMAD.U32 R10, RZ, RZ, UR6"), 3)(machine)  # type: ignore[arg-type]
    assert machine.registers["R10"] is partition


@pytest.mark.parametrize("ctas", [1, 3])
def test_registers_of_further_iterations_are_sums_of_ctas_and_lanes_as_long_as_lanes_gain_the_same(ctas: int) -> None:
    rows, lanes = np.arange(ctas)[:, None] * 1000, np.arange(4)[None] ** 2
    alike = predict_register(AffineValue(rows, lanes), [4, rows + 7], 5, ctas).all_values
    assert isinstance(alike, AffineValue)
    assert (alike.rows.size, alike.lanes.size) == (6 * ctas, 4)
    assert isinstance(predict_register(AffineValue(rows, lanes), [4, lanes], 5, ctas).all_values, np.ndarray)


# -- copies past the L1 ----------------------------------------------------------------------------------


def wavefronts_one_by_one(writes: list[int], reads: list[int | None], size: int) -> int:
    """Lanes that are served together share a wavefront if all of what the hardware looks at is the same."""
    total, together = 0, lanes_served_together(size)
    for first in range(0, len(writes), together):
        kinds = set()
        for lane in range(first, first + together):
            read, other = reads[lane], reads[lane ^ 1]
            if read is None:
                continue
            fills = other is not None and (read // 32, writes[lane] // 32) == (other // 32, writes[lane ^ 1] // 32)
            unit = 32 if fills else size
            distance = (writes[lane] // unit * unit - read // unit * unit) % 64
            kinds.add((read // 128, writes[lane] // 128, distance, "both" if fills else read // size % 2))
        total += len(kinds)
    return total


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_copies_past_the_l1_take_the_wavefronts_that_their_lanes_need_one_by_one(data: st.DataObject) -> None:
    places = st.lists(st.integers(0, 31), min_size=32, max_size=32)
    step, far = data.draw(st.sampled_from([(0, 1), (1, 0), (1, 1)])), data.draw(st.integers(0, 5))
    writes = [16 * (step[0] * lane + step[1] * at) for lane, at in enumerate(data.draw(places))]
    reads = [16 * (lane * data.draw(st.sampled_from([1, 1, 1, 2])) + far) for lane in range(32)]
    on = data.draw(st.lists(st.sampled_from([True, True, True, False]), min_size=32, max_size=32))
    found = count_l1_bypass_wavefronts(np.array([writes]), 16, np.array([on]), np.array([reads]))
    assert found[0] == wavefronts_one_by_one(writes, [at if a else None for at, a in zip(reads, on, strict=True)], 16)
    assert found[1] == -(-sum(on) * 16 // 128)


@pytest.mark.parametrize(("apart", "masked", "lanes"), [(16, False, 2), (32, False, 8), (32, True, 2), (16, True, 2)])
def test_copies_past_the_l1_are_counted_by_eight_where_two_lanes_in_different_sectors_both_copy(
    apart: int, masked: bool, lanes: int
) -> None:
    machine = a_machine()
    machine.counters.counts_requests = True
    threads = np.arange(64)[None]
    if masked:  # of two neighbours one
        machine.active_mask = threads % 2 == 0
    addresses = threads // 2 * 64 + threads % 2 * apart
    assert l1_bypass_request_unit(machine, addresses)[0] == lanes


# -- how much work is done -------------------------------------------------------------------------------


def test_lanes_that_are_off_neither_branch_nor_exit_nor_change_groups() -> None:
    machine = a_machine()
    for off in (False, np.zeros((1, 64), bool)):
        machine.active_mask = off
        assert machine.exit_lanes() is False
        assert machine.branch(True, 3) is False
    assert (machine.exited, len(machine.groups), machine.group.pc) == (False, 1, 0)
    machine.active_mask = np.arange(64)[None] < 32
    assert machine.exit_lanes() is True
    assert [group.lanes for group in machine.groups] == [32]


def test_spilled_sums_of_ctas_and_lanes_stay_sums() -> None:
    machine = a_machine(ctas=100)
    ctas, lanes = np.arange(100)[:, None] * 64, np.arange(64)[None]
    even = lanes % 2 == 0
    store_local(machine, 8, [AffineValue(ctas, lanes)])
    machine.active_mask = even
    store_local(machine, 8, [AffineValue(ctas + 1, lanes)])
    (word,) = load_local(machine, 8, 1, "nothing")
    assert isinstance(word, AffineValue)
    assert np.array_equal(word.to_array(), ctas + lanes + even)
    assert {"LDL", "STL"} <= _AFFINE_OPCODES
    machine._adopt(machine.fork(np.array([3])))
    assert np.array_equal(machine.local_memory.lane_words[8], [(192 + lanes + even)[0]])


def test_a_mask_of_all_lanes_or_of_none_is_one_boolean() -> None:
    machine = a_machine(ctas=100)
    machine.warp_size, lanes = 64, np.arange(64)[None]
    for mask, expected in ((lanes >= 0, True), (lanes < 0, False), (np.ones((100, 64), bool), True)):
        write_mask(machine, ("vcc_lo", "vcc_hi"), mask)
        assert read_mask(machine, ("vcc_lo", "vcc_hi")) is expected
    write_mask(machine, ("vcc_lo", "vcc_hi"), lanes < 40)
    assert np.array_equal(np.atleast_2d(read_mask(machine, ("vcc_lo", "vcc_hi"))), lanes < 40)


def test_all_lanes_pass_a_barrier_that_none_entered() -> None:
    machine = a_machine()
    assert wait_at_barrier(machine, "B0") is False
    assert (len(machine.groups), machine.waiting) == (1, [])


def test_a_budget_is_asked_once_in_a_while() -> None:
    asked = []
    counters, steps = StepCounters(4, 10**9), 3 * STEPS_PER_CHECK + 10
    budget: Any = SimpleNamespace(is_spent=lambda: bool(asked.append(None)))
    counters.budget, counters._next_check = budget, 0  # as where one is set when the counters are made
    step: Any = SimpleNamespace(index=0)
    for _ in range(steps):
        counters.spend_step(step)
    assert 3 <= len(asked) <= 4


def test_a_sample_of_ctas_counts_accesses_and_marks_no_byte_of_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of touched bytes cost as much as the tensors are large; a sample needs none."""
    memories: list[GlobalMemory] = []
    monkeypatch.setattr(sampling, "reclassify_unknown_pointers", lambda setup: memories.append(setup.memory))
    case = ROOT / "tests" / "oracle" / "counters" / "gemv"
    (entry,) = [entry for entry in open_cache(case).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    (request,) = parse_document((case / "launch.json").read_text(), "launch.json")
    sample = sample_launch(loaded, resolve_launch(request, [one.argument for one in loaded.parameters]), 1)
    assert (len(sample.ctas), sum(sample.accesses) > 0) == (1, True)
    assert sample.traffic.regions
    (memory,) = memories
    for region in memory.regions:
        region.mark_pending()
    assert not any(region.read_marks.any() or region.written_marks.any() for region in memory.regions)


# -- which CTAs run, and where tensors lie ---------------------------------------------------------------


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2)])
def test_chosen_ctas_fill_each_two_axes_of_a_grid(axes: tuple[int, int]) -> None:
    """64 CTAs of a grid in which two axes have 64 each: of its 16 squares, each has some."""
    x, y, _ = grid = tuple(64 if axis in axes else 1 for axis in range(3))
    ctas = choose_ctas((grid[0], grid[1], grid[2]), 64)
    assert len(ctas) == 64
    places = np.stack([ctas % x, ctas // x % y, ctas // (x * y)])[list(axes)]
    squares = {(int(a) // 16, int(b) // 16) for a, b in places.T}
    assert len(squares) == 16


@pytest.mark.parametrize(("end", "fits"), [(2**48, True), (2**48 + 2, False), (2**49, False)])
def test_a_tensor_may_end_where_48_bits_of_address_end(end: int, fits: bool) -> None:
    argument = {"shape": [8], "dtype": "fp16", "pointer": end - 16}
    document = {"kernel": "k", "grid": [1], "args": {"x": argument}}
    if fits:
        assert parse_document_of(document, "x")
    else:
        with pytest.raises(UsageError, match="outside of the"):
            parse_document_of(document, "x")
