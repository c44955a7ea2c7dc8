"""What a program holds can be kept and sent: pickled, and as JSON, and is the same when it is read."""

from __future__ import annotations

import json
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from saved import FIXTURES, saved

import artifact_inspector
from artifact_inspector import (
    CompileResult,
    Inspection,
    KernelRequest,
    UsageError,
    compile_and_inspect,
    from_json,
    inspect,
    open_cache,
    parse_target,
    to_json,
)
from artifact_inspector.compiling import ConstantText

A_KERNEL = "3.6.0/sm_80/masked_add"
RESULT = CompileResult(
    "k", parse_target("T4"), 0.5, Path("cache/AB"), None, types=("x=*fp16:16",), constants={"BLOCK": 64, "L": [1]}
)
REQUEST = KernelRequest("k.py:k", {"x": "*fp16"}, {"A": ConstantText("tl.float16"), "B": 1}, {"num_warps": 8}, "all")


def every() -> list[Any]:
    facts = saved(A_KERNEL).facts
    last = facts.last
    assert last is not None
    region = last.regions[0]
    return [
        facts, facts.artifact, last, region, region.rounds[0], last.work[region.id], facts.artifact.target,
        *inspect(FIXTURES / A_KERNEL).findings[:1], open_cache(FIXTURES / A_KERNEL), RESULT, REQUEST,
        *saved("3.6.0/sm_80/matmul_grouped").facts.last.waits[:1],
    ]  # fmt: skip


@pytest.mark.parametrize("value", every(), ids=lambda value: type(value).__name__)
def test_a_public_object_is_the_same_behind_json_and_pickle(value: Any) -> None:
    assert from_json(to_json(value)) == value
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("kernel", [A_KERNEL, "3.6.0/sm_90/flash_attention", "3.6.0/gfx942/flash_attention"])
def test_an_inspection_answers_as_before(kernel: str) -> None:
    before = inspect(FIXTURES / kernel)
    for after in (from_json(to_json(before)), pickle.loads(pickle.dumps(before))):
        assert isinstance(after, Inspection)
        assert after.details == before.details
        assert after.findings == before.findings
        assert after.report() == before.report()


def test_an_inspection_that_was_kept_does_not_know_the_costliest_line() -> None:
    before = inspect(FIXTURES / "3.6.0/sm_90/matmul_descriptor")
    assert "Costliest in the code: loop@39: the dot at matmul_descriptor.py:42" in before.report()
    assert "No finding says what limits this kernel." in from_json(to_json(before)).report()


def test_a_kernel_in_memory_keeps_its_files() -> None:
    directory = next((FIXTURES / A_KERNEL).iterdir())
    texts = {path.suffix[1:]: path.read_text() for path in directory.glob("masked_add.*") if path.suffix != ".cubin"}
    metadata = json.loads(texts.pop("json"))
    compiled = type("Compiled", (), {"asm": texts, "metadata": metadata, "src": None, "fn": None})()
    before = inspect(compiled)
    after = from_json(to_json(before))
    assert after.details.artifact.files == before.details.artifact.files
    assert after.verdict == before.verdict


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"form": 1}', "null", "1"])
def test_a_text_that_is_none_of_ours_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not written by to_json"):
        from_json(text)


@pytest.mark.parametrize("at", range(0, 400, 23))
def test_a_damaged_text_is_refused_or_another_object(at: int) -> None:
    text = to_json(saved(A_KERNEL).artifact.target)
    damaged = text[: at % len(text)] + "\u202e" + text[at % len(text) + 1 :]
    try:
        found = from_json(damaged)
    except UsageError:
        return
    assert type(found) is type(parse_target("T4"))


def test_what_cannot_be_kept_says_what_can() -> None:
    with pytest.raises(UsageError, match="A dict cannot be written as JSON"):
        to_json({})
    with pytest.raises(UsageError, match="Pickle it instead"):
        to_json(KernelRequest("k.py:k", None, {"A": object()}))


def test_every_public_name_is_there() -> None:
    for name in artifact_inspector.__all__:
        assert getattr(artifact_inspector, name) is not None


@pytest.mark.long
@pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")
def test_a_kernel_is_compiled_and_inspected_in_one_call(tmp_path: Path) -> None:
    found = compile_and_inspect("softmax", "gfx942", out_dir=tmp_path, num_warps=8)
    assert found.title == "softmax_kernel for gfx942"
    assert found.details.artifact.num_warps == 8
    with pytest.raises(UsageError, match="Unknown reference kernel 'sofmax'"):
        compile_and_inspect("sofmax", "gfx942", out_dir=tmp_path)
