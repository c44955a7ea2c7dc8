"""PTX is assembled for the target that it names, and one that names none is told so."""

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.execution.tensor_maps import parse_block
from artifact_inspector.files.assembly import assemble


@pytest.mark.parametrize("named", ["", ".target sm_", ".target gfx942", f".target sm_{'9' * 5000}"])
def test_without_a_target_nothing_is_assembled(named: str) -> None:
    with pytest.raises(CacheError, match="names no target"):
        assemble(f".version 8.7\n{named}\n.address_size 64\n")


def test_the_block_of_a_descriptor_with_an_extent_that_no_compiler_writes_is_not_known() -> None:
    assert parse_block(f"!tt.tensordesc<tensor<{'9' * 5000}x64xf16>>") == ()
