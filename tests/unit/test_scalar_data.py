"""Scalar loads of data and of the kernel's arguments, in machine code of AMD's GPUs."""

from __future__ import annotations

import pytest
from handwritten import amdgcn

from artifact_inspector.analysis.order.round_locator import find_scalar_data


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # the address of the arguments is given in s[0:1]
        ("s_load_dwordx2 s[2:3], s[0:1], 0x0\ns_load_dword s4, s[2:3], 0x0", [1]),
        ("s_load_dword s4, s[0:1], 0x10\ns_load_dword s5, s[0:1], 0x14", []),
        ("s_load_dwordx2 s[0:1], s[0:1], 0x0\ns_load_dword s4, s[0:1], 0x0", [1]),
        ("v_mov_b32_e32 v0, 0", []),
    ],
)
def test_data_is_what_an_address_that_the_kernel_made_points_to(body: str, found: list[int]) -> None:
    assert sorted(find_scalar_data(amdgcn(*body.split("\n")).code)) == found
