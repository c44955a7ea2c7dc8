"""A signature and constants say what a launch would have said of each argument."""

import pytest

from artifact_inspector.compiling.signature import (
    ParameterDeclaration,
    SignatureEntry,
    ValueUnknownError,
    bind_arguments,
    parse_signature,
)
from artifact_inspector.errors import UsageError

PARAMETERS = (ParameterDeclaration("x_ptr"), ParameterDeclaration("n"), ParameterDeclaration("BLOCK", constexpr=True))


def arguments(text, constants=None, parameters=PARAMETERS, **given):
    return bind_arguments("kernel", parameters, parse_signature(text), constants or {}, **given)


def test_entries_by_position_name_the_arguments_that_are_no_constexpr():
    found = arguments("*fp16:16, i32:16", {"BLOCK": 64})
    assert found.types == {"x_ptr": "*fp16", "n": "i32"}
    assert found.hints == {(0,): 16, (1,): 16}
    assert found.constants == {(2,): 64}
    assert found.format_entries(["x_ptr", "n", "BLOCK"]) == ("x_ptr=*fp16:16", "n=i32:16")


def test_a_literal_stands_for_a_constexpr_in_its_place_as_in_tritons_own_notation():
    assert arguments("*fp16, i32, 64").constants == {(2,): 64}
    between = (ParameterDeclaration("x"), ParameterDeclaration("BLOCK", constexpr=True), ParameterDeclaration("n"))
    assert arguments("*fp16, 64, i32", parameters=between).types == {"x": "*fp16", "n": "i32"}
    assert arguments("*fp16, i32", {"BLOCK": 64}, between).types == {"x": "*fp16", "n": "i32"}


def test_entries_by_name_go_with_entries_by_position():
    found = arguments("n=i64, *bf16", {"BLOCK": 1})
    assert found.types == {"x_ptr": "*bf16", "n": "i64"}


def test_an_integer_that_is_1_is_a_constant():
    found = arguments("*fp16, i32:1", {"BLOCK": 64})
    assert found.types == {"x_ptr": "*fp16"}
    assert found.constants == {(1,): 1, (2,): 64}


def test_an_argument_that_is_none_and_one_with_a_value_are_constants():
    assert arguments("None, i32", {"BLOCK": 64}).constants == {(0,): None, (2,): 64}
    assert arguments("*fp16", {"n": 4096, "BLOCK": 64}).constants == {(1,): 4096, (2,): 64}


def test_tuples_and_descriptors_keep_their_form():
    parameters = (ParameterDeclaration("strides"), ParameterDeclaration("desc"))
    found = arguments("(i32:16, 1, *fp8e4nv), tensordesc<float16[64,32]>", parameters=parameters)
    assert found.types == {"strides": ("i32", "constexpr", "*fp8e4nv"), "desc": "tensordesc<fp16[64, 32]>"}
    assert found.hints == {(0, 0): 16}
    assert found.constants == {(0, 1): 1}


@pytest.mark.parametrize(
    ("written", "type_"),
    [("float16", "fp16"), ("*torch.bfloat16", "*bf16"), ("*float8_e4m3fn", "*fp8e4nv"), ("**fp32", "**fp32")],
)
def test_the_names_of_torch_are_known(written, type_):
    assert arguments(f"{written}, i32", {"BLOCK": 1}).types["x_ptr"] == type_


def test_annotations_and_defaults_fill_in_what_a_launch_would_see():
    parameters = (
        ParameterDeclaration("a", type="*fp32"),
        ParameterDeclaration("b", default=None),
        ParameterDeclaration("c", default=1),
        ParameterDeclaration("d", default=32),
        ParameterDeclaration("e", default=32, specialised=False),
        ParameterDeclaration("f", default=2**40 + 1),
        ParameterDeclaration("g", default=True),
        ParameterDeclaration("h", default=0.5),
        ParameterDeclaration("i", type="i64", default=7),
        ParameterDeclaration("J", constexpr=True, default=8),
    )
    found = arguments("", parameters=parameters)
    assert found.types == {"a": "*fp32", "d": "i32", "e": "i32", "f": "i64", "g": "i1", "h": "fp32", "i": "i64"}
    assert found.constants == {(1,): None, (2,): 1, (9,): 8}
    assert found.hints == {(3,): 16}


def test_what_is_missing_is_named_with_an_example():
    with pytest.raises(UsageError) as refused:
        arguments("*fp16")
    assert refused.value.message == "kernel needs its arguments n, BLOCK."
    assert refused.value.remedy == (
        'Give types with --signature, by name (e.g. "n=i32") or by position and constants with --const BLOCK=64.'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*fp15, i32", r"'\*fp15' is not a type for x_ptr\. Did you mean \*fp16\?"),
        ("*FP16, i32", r"Did you mean \*fp16\?"),
        ("*fp16:8, i32", r"the hint of x_ptr is '8'"),
        ("*fp16:1, i32", r"only an integer can be 1"),
        ("*fp16, i32, i32, i32", r"2 more entries than kernel has arguments \(from 'i32' on\)"),
        ("*fp16, m=i32", r"no parameter 'm'"),
        ("(i32", r"unclosed bracket"),
        ("*fp16,,i32", r"an empty entry"),
        ("*fp16, i32, BLOCK=i32", r"BLOCK is a tl\.constexpr, and 'i32' is not a value"),
    ],
)
def test_a_wrong_signature_is_refused_in_words(text, message):
    with pytest.raises(UsageError, match=message):
        arguments(text, {} if "BLOCK" in text else {"BLOCK": 64})


def test_an_unknown_constant_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"no parameter 'BLOK'\. Did you mean BLOCK\?"):
        arguments("*fp16, i32", {"BLOK": 64})


def test_heuristics_see_constants_and_which_arguments_are_there():
    seen = {}

    def derive(known):
        seen.update(known)
        return {"BLOCK": 2 * known["n"]}

    found = arguments("*fp16", {"n": 64}, derive=derive)
    assert found.constants == {(1,): 64, (2,): 128}
    assert seen["x_ptr"] is not None
    for question in (bool, lambda x: x % 16, lambda x: x == 1, lambda x: x.shape, len):
        with pytest.raises(ValueUnknownError):
            question(seen["x_ptr"])


def test_an_entry_is_split_from_its_name_at_the_first_equals_sign():
    assert parse_signature("a=*fp16:16,i32") == (SignatureEntry("a", "*fp16:16"), SignatureEntry(None, "i32"))
    assert parse_signature("") == ()
