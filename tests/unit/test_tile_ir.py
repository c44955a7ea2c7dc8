"""Tile IR of cuTile, as `tileirdisasm` prints it: a matrix product, softmax, a walk along a list, a gather."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import StageFacts
from artifact_inspector.files.cache import open_file
from artifact_inspector.files.tile_ir import TILE_IR
from artifact_inspector.model import Stage

PRINTED = Path(__file__).parent / "tile_ir"
NAMES = sorted(path.stem for path in PRINTED.glob("*.txt"))
COUNTS = {
    "global_load": r"\bload_\w+_tko\b",
    "global_store": r"\bstore_\w+_tko\b",
    "matrix": r"\bmmaf\b",
    "atomic": r"\batomic_\w+_tko\b",
}


def read(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> StageFacts:
    path = directory / "nvidia" / "cu13" / "bin" / "tileirdisasm"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{tool}\n")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "path", [str(directory), *sys.path])
    bytecode = directory / f"{name}.tileirbc"
    bytecode.write_bytes(TILE_IR + b"\x0d\x01")
    (kernel,) = inspect_cache(open_file(bytecode))
    return kernel.stages[Stage.TTIR]


@pytest.mark.parametrize("name", NAMES)
def test_operations_are_counted_as_they_are_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(name, tmp_path, monkeypatch, f"cat '{PRINTED / name}.txt'")
    printed = (PRINTED / f"{name}.txt").read_text(encoding="utf-8")
    expected = {kind: len(re.findall(pattern, printed)) for kind, pattern in COUNTS.items()}
    assert {kind: facts.counts.get(kind, 0) for kind in COUNTS} == expected
    assert not facts.unknown


def test_a_loop_loads_twice_and_then_multiplies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read("matmul", tmp_path, monkeypatch, f"cat '{PRINTED / 'matmul'}.txt'")
    region = facts.region("loop@7")
    assert region is not None
    assert (region.verdict, region.signature) == ("serial", "L2 M1")


def test_content_that_the_tool_rejects_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CacheError, match="rejects it"):
        read("matmul", tmp_path, monkeypatch, "exit 1")
