"""`try --against CACHE` takes what the command line omits from the record of the cache."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.api.trial import complete_request
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Cache, open_cache

TYPES = ["x_ptr=*fp16:16", "y_ptr=*fp16:16", "n_cols=i32:16"]
REQUEST = KernelRequest("mine.py:softmax_kernel")


def row(directory: str, **changes: object) -> dict[str, object]:
    return {
        "kernel": "softmax_kernel", "place": "mine.py:softmax_kernel", "target": "sm_80", "triton": "3.6.0",
        "config": None, "types": TYPES, "constants": {"BLOCK": 1024}, "options": {"num_warps": 4},
        "directory": directory, "message": None, **changes,
    }  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Two entries of one kernel for the A100, with their record."""
    (entry,) = (FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir()
    for name in ("A" * 52, "B" * 52):
        shutil.copytree(entry, tmp_path / name)
    return open_cache(tmp_path)


def write(cache: Cache, *rows: dict[str, object], launches: tuple[dict[str, object], ...] = ()) -> None:
    (cache.root / "inspect-kernel.json").write_text(
        json.dumps({"schema_version": 1, "entries": rows, "launches": launches})
    )


def test_types_constants_options_and_the_gpu_are_those_on_record(cache: Cache) -> None:
    write(cache, row("A" * 52), row("B" * 52))
    request, targets, digest = complete_request(REQUEST, [], cache, None)
    assert (targets, digest) == (["sm_80"], cache.entries[0].hash)
    assert request.signature == {"x_ptr": "*fp16:16", "y_ptr": "*fp16:16", "n_cols": "i32:16"}
    assert {name: constant.text for name, constant in request.constexprs.items()} == {"BLOCK": "1024"}
    assert (request.options, request.is_untrusted) == ({"num_warps": 4}, True)


def test_the_command_line_takes_precedence(cache: Cache) -> None:
    write(cache, row("A" * 52), row("B" * 52))
    typed = KernelRequest("mine.py:softmax_kernel", constexprs={"BLOCK": 2048}, options={"num_warps": 8})
    request, targets, _ = complete_request(typed, ["sm_80"], cache, None)
    assert (request.constexprs, request.options, targets) == ({"BLOCK": 2048}, {"num_warps": 8}, ["sm_80"])


def test_several_variants_need_a_hash(cache: Cache) -> None:
    write(cache, row("A" * 52), row("B" * 52, constants={"BLOCK": 2048}))
    with pytest.raises(UsageError, match="2 variants of softmax_kernel on record"):
        complete_request(REQUEST, [], cache, None)


def test_a_cache_without_a_record_leaves_the_request_as_it_is(cache: Cache) -> None:
    assert complete_request(REQUEST, [], cache, None) == (REQUEST, ["sm_80"], None)
