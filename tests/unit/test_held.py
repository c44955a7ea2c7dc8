"""Which tensors a captured program's launches find as they would on a GPU."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.compiling.arguments import describe_arguments, tensors_in
from artifact_inspector.compiling.capture.known_tensors import KnownTensors, UninitializedTensors
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors, separate_tensors

torch = pytest.importorskip("torch")
READS = "tt.func @k(%x: !tt.ptr<i32>) {\n tt.store %p, %v : tensor<8x!tt.ptr<f32>>\n}"
WRITES = "tt.func @k(%x: !tt.ptr<i32>) {\n tt.store %p, %v : tensor<8x!tt.ptr<i32>>\n}"
ANYWHERE = READS + "\n tt.int_to_ptr"


def numbers() -> object:
    return torch.arange(8, dtype=torch.int32)


@pytest.mark.parametrize(("text", "known"), [(READS, True), (WRITES, False), (ANYWHERE, False), (None, False)])
def test_what_a_kernel_may_have_written_is_unknown_from_then_on(text: str | None, known: bool) -> None:
    held, index = KnownTensors(), numbers()
    held.mark_written([index, torch.rand(4), 3], lambda: text)
    held.remember_tensors()
    assert held.is_known(index) is known
    later = numbers()
    assert not held.is_known(later)  # it may be made of what a kernel would have written


def test_objects_that_a_program_froze_are_remembered() -> None:
    held, index = KnownTensors(), numbers()
    gc.freeze()
    try:
        held.remember_tensors()
        assert held.is_known(index)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_what_a_program_writes_itself_is_unknown_after_its_first_launch() -> None:
    held, index, other = KnownTensors(), numbers(), numbers()
    assert held.is_known(index)
    held.remember_tensors()
    index[0] = 7
    assert not held.is_known(index)
    assert held.is_known(other)
    assert held.is_known(other[2:])
    held.mark_written([other], lambda: WRITES)
    assert not held.is_known(other)


def follow(tensors: KnownTensors) -> Any:
    class Follower(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            return tensors.follow(function, args, kwargs or {})

    return Follower()


def test_what_torch_computes_from_known_tensors_is_known() -> None:
    tensors, lengths, written = KnownTensors(), numbers(), numbers()
    tensors.mark_written([written], lambda: WRITES)
    tensors.remember_tensors()
    with follow(tensors):
        ends, later = lengths.cumsum(0), torch.tensor([3, 4])
        later[0] = 5
        mixed, empty = lengths + written, torch.empty(4, dtype=torch.int32)
        filled = torch.full((4,), 2)
        filled.copy_(written[:4])
        with torch.inference_mode():
            inferred = torch.arange(4)
        copied = inferred.clone()  # what has no version is not followed
    known = {"ends": ends, "later": later}
    unknown = {"mixed": mixed, "empty": empty, "filled": filled, "written": written, "copied": copied}
    assert {name for name, x in {**known, **unknown}.items() if tensors.is_known(x)} == known.keys()


@pytest.mark.parametrize(
    ("use", "known"),
    [
        (lambda known, written: torch.tensor([int(known.max())]), True),
        (lambda known, written: known[known > 2], True),
        (lambda known, written: torch.arange(len(written[written > 2])), False),
        (lambda known, written: torch.arange(written.nonzero().shape[0]), False),
        (lambda known, written: torch.arange(len(written[2:])), True),
    ],
)
def test_what_depends_on_a_value_that_a_kernel_wrote_is_unknown(use: Callable[..., Any], known: bool) -> None:
    tensors, lengths, written = KnownTensors(), numbers(), numbers()
    tensors.mark_written([written], lambda: WRITES)
    tensors.remember_tensors()
    with follow(tensors):
        made = use(lengths, written)
    assert tensors.is_known(made) is known
    tensors.note_read(written)  # as `item` does
    with follow(tensors):
        assert not tensors.is_known(torch.tensor([1]))


@pytest.mark.parametrize(("is_input_known", "runs"), [(True, True), (False, True), (True, False)])
def test_indices_that_a_kernel_writes_are_known_if_it_was_interpreted(is_input_known: bool, runs: bool) -> None:
    tensors, lengths, index = KnownTensors(), numbers(), numbers()
    tensors.remember_tensors()
    if not is_input_known:
        lengths += 1
    calls = []
    tensors.mark_written([lengths, index], lambda: WRITES, [lengths], lambda: calls.append(1) or runs)
    assert (tensors.is_known(index), len(calls)) == (is_input_known and runs, int(is_input_known))


@pytest.mark.parametrize(
    ("part", "name", "args", "is_first"),
    [
        (slice(None), "__setitem__", ((slice(None), -1), 0), True),
        (slice(None), "__setitem__", (torch.ones(4, 8) > 0, 0), True),
        (slice(2, None), "zero_", (), True),
        (0, "fill_", (1,), True),
        ((..., slice(3)), "copy_", (torch.ones(3),), True),
        (slice(None), "masked_fill_", (torch.ones(4, 8) > 0, 0), True),
        (slice(None), "zero_", (), False),  # replaces what the kernel wrote
        (slice(None), "__setitem__", (slice(None), torch.ones(4, 8)), False),
    ],
)
def test_a_part_that_the_program_fills_is_noted_once(part: Any, name: str, args: Any, is_first: bool) -> None:
    uninitialized, out = UninitializedTensors(), torch.empty(4, 8)
    uninitialized.add(torch.empty(3))
    uninitialized.add(out)
    assert uninitialized.note_fill(name, out[part], *args) == (1 if is_first else None)
    assert uninitialized.note_fill(name, out[part], *args) is None
    assert uninitialized.note_fill(name, torch.zeros(4, 8)[part], *args) is None


def test_a_tensor_is_initialized_once_the_program_or_a_kernel_may_have_written_it() -> None:
    uninitialized = UninitializedTensors()
    empty, filled, given, zeros = (torch.empty(8) for _ in range(4))
    for tensor in (empty, filled, given):
        uninitialized.add(tensor)
    filled[:4] = 1
    launch = {"x": empty, "part": empty[4:], "y": filled, "z": given, "zeros": zeros, "n": 3}
    assert uninitialized.find_initialized(launch, writes=False) == ["y", "zeros"]
    assert uninitialized.find_initialized({"z": given}, writes=True) == []
    assert uninitialized.find_initialized(launch, writes=True) == ["y", "z", "zeros"]
    assert uninitialized.number_storages(launch) == {"x": 0, "part": 0, "y": 1, "z": 2}


def test_tensors_of_one_storage_are_described_by_their_offsets() -> None:
    function = SimpleNamespace(arg_names=["q", "k", "out", "row", "n"], params=())
    both, rows = torch.zeros(4, 2, 8), torch.zeros(3, 8)
    args = (both[:, 0], both[:, 1], torch.zeros(4, 8), rows[1], 7)
    described = describe_arguments(function, args, {}, values=lambda _: False, addresses=False)
    places = {name: (row.get("storage"), row.get("offset")) for name, row in described.items() if name != "n"}
    assert places == {"q": (0, 0), "k": (0, 32), "out": (None, None), "row": (2, 32)}


def test_a_view_that_repeats_elements_ends_with_its_storage() -> None:
    """FlagGems' `gather` passes the first kind, and indexes the storage by the stride of the tensor behind it."""
    function = SimpleNamespace(arg_names=["restrided", "row", "column"], params=())
    matrix, row = torch.zeros(33, 100), torch.zeros(7)
    args = (matrix.as_strided((33, 7), (100, 0)), row.expand(33, 7), matrix[1:, 3])
    described = describe_arguments(function, args, {}, values=lambda _: False, addresses=False)
    layouts = {name: (one["shape"], one["stride"]) for name, one in described.items()}
    assert layouts == {"restrided": ([3300], [1]), "row": ([33, 7], [0, 1]), "column": ([32], [100])}


class FlippedView:
    """A view with a negative stride, which libraries pass to kernels and torch cannot make."""

    def __init__(self, base: torch.Tensor) -> None:
        self._base, self.dtype, self.shape = base, base.dtype, base.shape

    def data_ptr(self) -> int:
        return self._base.data_ptr() + (self._base.numel() - 1) * self._base.element_size()

    def stride(self) -> tuple[int, ...]:
        return (-1,)

    def untyped_storage(self) -> torch.UntypedStorage:
        return self._base.untyped_storage()


def test_a_view_of_a_library_has_the_storage_of_its_tensor_and_its_own_address() -> None:
    uninitialized, tensor = UninitializedTensors(), torch.empty(64)
    uninitialized.add(tensor)
    assert uninitialized.find_initialized({"x": FlippedView(tensor)}, writes=False) == []
    tensor.fill_(1.0)
    assert uninitialized.find_initialized({"x": FlippedView(tensor)}, writes=False) == ["x"]
    function = SimpleNamespace(arg_names=["x", "y"], params=())
    described = describe_arguments(function, (FlippedView(tensor), tensor), {}, values=lambda _: False, addresses=False)
    assert (described["x"]["stride"], described["x"]["offset"]) == ([-1], 252)
    assert described["x"]["storage"] == described["y"]["storage"]


def test_the_tensors_among_arguments_are_those_that_wrappers_hold() -> None:
    tensor, other = torch.zeros(4), torch.zeros(2)
    wrapped = SimpleNamespace(base=FlippedView(tensor))
    first, second, third = tensors_in([FlippedView(tensor), (other, 3, None), [wrapped], "text"])
    assert first is third is tensor
    assert second is other


def test_a_tensor_with_a_negative_stride_ends_at_its_pointer() -> None:
    flipped = Tensor((4, 8), "fp32", (8, -1))
    launch = place_tensors(KernelLaunch((1, 1, 1), {"x": flipped, "y": Tensor((4,), "fp32")}))
    x = launch.arguments["x"]
    assert isinstance(x, Tensor)
    assert x.pointer is not None
    assert x.bytes_before == 28
    (name, memory), _ = separate_tensors(launch)
    assert (name, memory.pointer, memory.bytes) == ("x", x.pointer - 28, 128)
