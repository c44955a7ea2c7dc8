"""Launches have names, and the texts of an old Triton have none: what stands where, by order, type and divisor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.api.launches import predict_launches
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import KernelParameter, load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.execution.simulation import parameter_values
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.objdump import binary_disassembler

FIXTURES = Path(__file__).parents[2] / "fixtures"
GEMV = {
    "a_ptr": Tensor((1024,), "fp16"),
    "b_ptr": Tensor((1024, 2048), "fp16"),
    "c_ptr": Tensor((2048,), "fp32"),
    "stride_bk": 2048,
}
MATMUL = {
    **{f"{name}_ptr": Tensor((256, 256), "fp16") for name in "abc"},
    "M": 240,
    "N": 256,
    "K": 224,
    "stride_am": 256,
    "stride_ak": 1,
    "stride_bk": 256,
    "stride_bn": 1,
    "stride_cm": 256,
    "stride_cn": 1,
    "BLOCK_M": 64,
    "BLOCK_N": 64,
    "BLOCK_K": 32,
    "GROUP_M": 8,
}


def prediction(place: str, arguments: Mapping[str, Any], *grid: int) -> Prediction:
    (entry,) = open_cache(FIXTURES / place).entries
    if "amdgcn" not in entry.files and find_disassembler() is None:
        pytest.skip("nvdisasm is not at hand")
    return predict_launches([(entry, LaunchRequest(grid, arguments))], binary_disassembler())[0]


@pytest.mark.parametrize(
    "place",
    [
        "3.2.0/gfx942",
        "3.6.0/sm_80",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("2.1.0/sm_75", "3.3.1/gfx942", "3.6.0/gfx942")),
    ],
)
def test_a_launch_reads_the_same_bytes_whichever_release_compiled_the_kernel(place: str) -> None:
    counters = prediction(f"{place}/gemv_splitk", GEMV, 8, 8).counters
    assert counters.unique_bytes_read == 2 * 1024 + 2 * 1024 * 2048
    assert counters.unique_bytes_written == 4 * 2048


def test_it_says_how_arguments_were_taken() -> None:
    told = prediction("3.2.0/gfx942/gemv_splitk", GEMV, 8, 8).notes
    assert any(note.endswith("arg0 is a_ptr, arg1 is b_ptr, arg2 is c_ptr, arg3 is stride_bk") for note in told)


@pytest.mark.long
def test_constants_may_be_given_and_ones_were_specialised_away() -> None:
    whole = prediction("3.2.0/gfx942/matmul_grouped", MATMUL, 16)
    (note,) = [note for note in whole.notes if "arg0 is a_ptr" in note]
    assert "arg5 is K" in note
    assert "stride_ak" not in note
    assert "BLOCK" not in note
    assert "to be sure" in note
    few = {name: given for name, given in MATMUL.items() if not name.startswith(("BLOCK", "GROUP"))}
    assert prediction("3.2.0/gfx942/matmul_grouped", few, 16).counters == whole.counters


def test_where_numbers_could_stand_otherwise_it_says_so() -> None:
    given = {**GEMV, "BLOCK_N": 256}
    (note,) = [note for note in prediction("3.2.0/gfx942/gemv_splitk", given, 8, 8).notes if "arg3" in note]
    assert "arg3 is stride_bk" in note
    assert "to be sure" in note


def test_arguments_that_cannot_stand_there_are_refused() -> None:
    with pytest.raises(UsageError, match="arg0"):
        prediction("3.2.0/gfx942/gemv_splitk", {**GEMV, "c_ptr": Tensor((2048,), "fp16")}, 8, 8)
    with pytest.raises(UsageError, match="arg0"):
        prediction("3.2.0/gfx942/gemv_splitk", {**GEMV, "more": Tensor((8,), "fp32")}, 8, 8)


@pytest.mark.long
def test_a_constant_amid_the_arguments_is_taken_for_none_of_them() -> None:
    given = {"a_ptr": GEMV["a_ptr"], "TURNS": 3, **GEMV}
    with pytest.raises(UsageError, match=r"Missing arguments of .*arg0") as refused:
        prediction("3.2.0/gfx942/gemv_splitk", given, 8, 8)
    assert "without constants" in (refused.value.remedy or "")
    few = {name: value for name, value in MATMUL.items() if not name.startswith(("BLOCK", "GROUP"))}
    with pytest.raises(UsageError, match=r"Missing arguments of .*arg0"):
        prediction("3.2.0/gfx942/matmul_grouped", {**few, "M": 250, "GROUP_M": 8}, 16)
    odd = prediction("3.2.0/gfx942/matmul_grouped", {**few, "M": 250}, 16)
    assert any("arg3 is M" in note for note in odd.notes)


def test_a_misspelled_argument_is_told_beside_the_missing_one() -> None:
    misspelled = {("strde_bk" if name == "stride_bk" else name): value for name, value in GEMV.items()}
    with pytest.raises(UsageError, match=r"Missing arguments of .*: stride_bk") as refused:
        prediction("3.6.0/sm_80/gemv_splitk", misspelled, 8, 8)
    assert "Is strde_bk meant to be stride_bk?" in (refused.value.remedy or "")


@pytest.mark.long
def test_own_names_may_be_given_instead() -> None:
    own = {f"arg{at}": given for at, given in enumerate(GEMV.values())}
    found = prediction("3.2.0/gfx942/gemv_splitk", own, 8, 8)
    assert found.counters == prediction("3.2.0/gfx942/gemv_splitk", GEMV, 8, 8).counters
    assert not any("matched by order" in note for note in found.notes)


@pytest.mark.parametrize("flags", [[], ["i1"]], ids=["3.4", "3.5"])
def test_a_descriptor_without_names_is_told_by_the_types_of_its_parts(flags: list[str]) -> None:
    (entry,) = open_cache(FIXTURES / "3.2.0/gfx942/gemv_splitk").entries
    kinds = ["*fp16", "i64", "i64", "i64", "i64", *flags, "i32", "i32", "i64", "i64", "*fp32", "i32"]
    parameters = tuple(KernelParameter(f"arg{n}", kind, f"arg{n}") for n, kind in enumerate(kinds))
    loaded = replace(load_kernel(entry, None), parameters=parameters)
    given = {"a_desc": Tensor((48, 80), "fp16"), "c_ptr": Tensor((9,), "fp32"), "K": 80}
    found, launch = match_launch(loaded, LaunchRequest((1,), given))
    shape = [48, 80, 80, 1]
    told = [value for _, value in parameter_values(found, launch)]
    assert told == [given["a_desc"], *shape, *([0] if flags else []), *shape, given["c_ptr"], 80]


def test_parts_of_a_descriptor_belong_to_it_though_their_places_have_its_name(tmp_path: Path) -> None:
    parts = ["shape.0", "shape.1", "stride.0", "stride.1", "padding"]
    kinds = ["i64"] * 4 + ["i1"]
    again = ["i32", "i32", "i64", "i64"]
    given = [f'%a_desc.{part}: {kind} loc("a_desc.{part}"(#loc1))' for part, kind in zip(parts, kinds, strict=True)]
    given += [
        f'%a_desc.{p}_{n}: {k} loc("a_desc.{p}"(#loc))' for n, (p, k) in enumerate(zip(parts, again, strict=False))
    ]
    arguments = ", ".join(['%a_desc: !tt.ptr<f16> loc("a_desc"(#loc))', *given])
    place = tmp_path / "k"
    shutil.copytree(FIXTURES / "3.2.0/gfx942/gemv_splitk", place)
    (text,) = place.rglob("*.ttir")
    text.write_text(
        f'#loc = loc("k.py":1:0)\nmodule {{\n  tt.func public @gemv_splitk({arguments}) {{\n    tt.return loc(#loc)\n  }} loc(#loc)\n'
        '} loc(#loc)\n#loc1 = loc("a_desc"(#loc))\n'
    )
    (entry,) = open_cache(place).entries
    told = [(part.argument, part.descriptor_part) for part in load_kernel(entry, None).parameters if part.type]
    assert told == [("a_desc", part) for part in (None, 0, 1, 2, 3, -1, 0, 1, 2, 3)]
