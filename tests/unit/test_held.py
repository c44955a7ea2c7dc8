"""Which tensors a captured program's launches find as they would on a GPU."""

from __future__ import annotations

import pytest

from artifact_inspector.compiling.capture.known_tensors import KnownTensors

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
