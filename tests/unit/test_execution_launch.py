"""Launches as people write them, and what is wrong with some."""

from __future__ import annotations

import json
import struct

import pytest

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import _has_expected_divisibility
from artifact_inspector.execution.kernel_loader import KernelParameter, _descriptor_parts, _parameters
from artifact_inspector.execution.launch import (
    ELEMENT_BITS,
    TENSOR_SPACING,
    KernelLaunch,
    Tensor,
    encode_argument,
    evaluate_extent,
    place_tensors,
)
from artifact_inspector.execution.launch_requests import parse_argument, parse_document, parse_grid, resolve_launch
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M=2048", 2048),
        ("scale=0.125", 0.125),
        ("flag=True", True),
        ("bias=None", None),
        ("a=fp16[4,8]", Tensor((4, 8), "fp16")),
        ("a=torch.float16[4,8](1,4)", Tensor((4, 8), "float16", (1, 4))),
    ],
)
def test_an_argument_is_read(text: str, expected: object) -> None:
    assert parse_argument(text)[1] == expected


def test_the_bits_of_a_type_are_those_of_torch_and_triton() -> None:
    torch, language = pytest.importorskip("torch"), pytest.importorskip("triton.language")
    for name, bits in ELEMENT_BITS.items():
        kind, block = getattr(torch, name, None), getattr(language.core, "dtype", None)
        if isinstance(kind, torch.dtype):
            assert bits == 8 * kind.itemsize, name
        elif name in language.dtype.SINT_TYPES + language.dtype.UINT_TYPES + language.dtype.FP_TYPES:
            assert bits == {1: 8}.get(width := block(name).primitive_bitwidth, width), name
        else:
            assert name in ("i1", "u1", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), name
            assert bits == max(8, int(name[1:])), name


@pytest.mark.parametrize("text", ["M", "=3", "a=fp16[", "a=fp17[4]", "a=fp16[4,8](1)", "a=hello"])
def test_an_argument_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_argument(text)


def test_a_misspelled_type_names_the_nearest() -> None:
    with pytest.raises(UsageError) as refused:
        parse_argument("a=fp17[4]")
    assert refused.value.remedy.startswith("Did you mean fp1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", (1024,)),
        ("32,16", (32, 16)),
        ("cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)", ("cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)",)),
        ("(cdiv(M, 32), 2)", ("cdiv(M, 32)", 2)),
        ("32x16", (32, 16)),
    ],
)
def test_a_grid_is_read(text: str, expected: tuple[str | int, ...]) -> None:
    assert parse_grid(text) == expected


@pytest.mark.parametrize("text", ["__import__('os')", "M.real", "[M][0]", "lambda: 1", "M**M", "f(M)", "M if M else 1"])
def test_an_expression_that_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        evaluate_extent(text, {"M": 8})


def test_an_expression_names_what_it_lacks() -> None:
    with pytest.raises(UsageError, match="uses BLOCK_M"):
        evaluate_extent("cdiv(M, BLOCK_M)", {"M": 8})


def test_a_document_holds_one_launch_or_several() -> None:
    one = {"grid": [4], "args": {"x": {"shape": [8], "dtype": "torch.int32", "values": [1] * 8}, "M": 8, "b": None}}
    (request,) = parse_document(json.dumps(one), "launch.json")
    assert request.arguments["x"] == Tensor((8,), "int32", values=(1,) * 8)
    two = parse_document(json.dumps({"launches": [one, {**one, "hash": "abc"}]}), "launch.json")
    assert [request.kernel_hash for request in two] == [None, "abc"]


@pytest.mark.parametrize(
    "text", ["", "[]", "3", '{"args": {}}', '{"grid": [1], "args": 3}', '{"grid": [1], "args": {"x": {"shape": 3}}}']
)
def test_a_document_that_holds_no_launch_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_document(text, "launch.json")


def test_values_fill_the_tensor() -> None:
    document = {"grid": [1], "args": {"x": {"shape": [8], "dtype": "int32", "values": [1, 2]}}}
    with pytest.raises(UsageError, match="2 values"):
        parse_document(json.dumps(document), "launch.json")


def test_what_the_compiled_kernel_does_not_take_is_noted_and_options_are_not() -> None:
    request = parse_document('{"grid": ["cdiv(M,B)"], "args": {"M": 10, "B": 4, "num_warps": 4}}', "x")[0]
    launch = resolve_launch(request, ["M"], {})
    assert launch.grid == (3, 1, 1)
    assert len(launch.notes) == 1
    assert launch.notes[0].endswith(": B")


def test_a_dimension_of_a_grid_has_63_bits_and_a_grid_three_of_them() -> None:
    def resolved(*grid: int) -> tuple[int, ...]:
        return resolve_launch(parse_document(json.dumps({"grid": grid, "args": {}}), "x")[0], [], {}).grid

    assert resolved((1 << 63) - 1) == ((1 << 63) - 1, 1, 1)
    with pytest.raises(UsageError, match="too large"):
        resolved(1 << 63)
    assert resolved(1, 2, 3) == (1, 2, 3)
    with pytest.raises(UsageError, match="has 4 dimensions"):
        resolved(1, 2, 3, 4)


def test_constants_that_were_compiled_in_need_not_be_given() -> None:
    request = parse_document('{"grid": "cdiv(M,B)", "args": {"M": 10}}', "x")[0]
    assert resolve_launch(request, ["M"], {"B": 5}).grid == (2, 1, 1)


def test_tensors_without_an_address_stand_apart() -> None:
    launch = place_tensors(
        KernelLaunch((1, 1, 1), {"a": Tensor((4,), "fp16"), "b": Tensor((4,), "fp32", pointer=4096)})
    )
    assert launch.tensors["b"].pointer == 4096
    assert launch.tensors["a"].pointer % TENSOR_SPACING == 0


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        (Tensor((4, 8), "fp16"), 64),
        (Tensor((4, 8), "fp16", (16, 1)), 112),
        (Tensor((0, 8), "fp16"), 0),
        (Tensor((), "fp32"), 4),
    ],
)
def test_a_tensor_reaches_as_far_as_its_strides(tensor: Tensor, size: int) -> None:
    assert tensor.bytes == size


def test_an_argument_is_encoded_as_c_lays_it_out() -> None:
    assert encode_argument(-2, 4) == struct.pack("<i", -2)
    assert encode_argument(True, 1) == b"\x01"
    assert encode_argument(1.5, 4) == struct.pack("<f", 1.5)
    assert encode_argument(1.5, 8) == struct.pack("<d", 1.5)
    assert encode_argument(Tensor((4,), "fp16", pointer=0x7000_0000_0010), 8) == struct.pack("<Q", 0x7000_0000_0010)
    assert encode_argument(Tensor((4,), "fp16"), 8) is encode_argument(None, 4) is encode_argument(7, 128) is None


@pytest.mark.parametrize(
    ("kinds", "parts"),
    [
        (["!tt.tensordesc<64x32xf16>", "i32", "i32", "i64", "i64", "i32"], (0, 1, 2, 3)),
        (["*fp16", "i64", "i64", "i64", "i64", "i1", "i32", "i32", "i64", "i64"], (0, 1, 2, 3, -1, 0, 1, 2, 3)),
        (["*fp16", "i64", "i32"], ()),
        (["i32", "i64"], ()),
    ],
)
def test_what_follows_a_descriptor_are_its_extents_and_strides(kinds: list[str], parts: tuple[int, ...]) -> None:
    names = ["d", *(f"d_{at}" for at in range(len(kinds) - 1))]
    assert _descriptor_parts([*names, "other"], [*kinds, "i32"]) == parts
    kept = ["d", *(f"d.{'stride' if at % 2 else 'shape'}.{at // 2}_{at}" for at in range(len(kinds) - 1))]
    assert _descriptor_parts([*kept, "d2.shape.0"], [*kinds, "i64"]) == parts


def test_the_parts_of_a_descriptor_are_told_from_it_where_the_source_calls_them_as_one() -> None:
    parts = {"shape.0": "i64", "stride.0": "i64", "padding": "i1"}
    arguments = [
        '%d: !tt.ptr<f16> loc("d"(#loc))',
        *(f'%d.{name}: {kind} loc("d.{name}"(#loc1))' for name, kind in parts.items()),
        '%d.shape.0_0: i32 loc("d.shape.0"(#loc))',
        '%d.stride.0_1: i64 loc("d.stride.0"(#loc))',
        '%m_9: i32 loc("m_9"(#loc2))',
    ]
    text = f"""#loc = loc("k.py":1:0)
#loc1 = loc("d"(#loc))
#loc2 = loc("n"(#loc))
module {{
  tt.func public @k({", ".join(arguments)}) {{
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""
    module = format_of(Stage.TTIR).parse(SourceText("k.ttir", text), Stage.TTIR)
    found = [(part.argument, part.descriptor_part) for part in _parameters(module.functions[0])]
    assert found == [("d", None), ("d", 0), ("d", 1), ("d", -1), ("d", 0), ("d", 1), ("n", None)]


def test_an_expression_of_endless_length_is_refused_in_few_words() -> None:
    assert evaluate_extent("M" + "+1" * 499, {"M": 1}) == 500
    with pytest.raises(UsageError, match="longer than 1,000 characters") as refused:
        evaluate_extent("M" + "+1" * 500, {"M": 1})
    assert len(str(refused.value)) < 200
    with pytest.raises(UsageError) as refused:
        evaluate_extent("M", {f"N{n}": n for n in range(1000)})
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("value", "fits"), [(-(1 << 63), True), (-(1 << 63) - 1, False), ((1 << 64) - 1, True), (1 << 64, False)]
)
def test_a_value_has_64_bits_at_most(value: int, fits: bool) -> None:
    text = json.dumps({"grid": [1], "args": {"x": {"shape": [1], "dtype": "int64", "values": [value]}}})
    if fits:
        (request,) = parse_document(text, "launch")
        assert request.arguments["x"].values == (value,)
    else:
        with pytest.raises(UsageError, match="not numbers of at most 64 bits"):
            parse_document(text, "launch")


@pytest.mark.parametrize(
    ("interpreted", "expected"),
    [
        ({"ctas": 3, "problem": None}, (3, None)),
        ({"ctas": 0, "problem": "no tl.dot"}, (0, "no tl.dot")),
        ({"ctas": -4}, (0, None)),
        ({"ctas": "3"}, (0, None)),
        ("all", (0, None)),
    ],
)
def test_a_launch_says_how_much_of_it_was_interpreted(interpreted: object, expected: tuple[int, str | None]) -> None:
    (request,) = parse_document(json.dumps({"grid": [1], "args": {}, "interpreted": interpreted}), "launch")
    assert (request.interpreted_ctas, request.interpreter_problem) == expected


@pytest.mark.parametrize(
    ("divisibility", "value", "agrees"), [(16, 32, True), (16, 7, False), (1, 7, True), (1, 32, False), (16, 0.5, True)]
)
def test_a_number_agrees_with_the_divisibility_that_was_assumed(divisibility: int, value: float, agrees: bool) -> None:
    parameter = KernelParameter("n", "i32", divisibility=divisibility)
    assert _has_expected_divisibility(parameter, value) is agrees
