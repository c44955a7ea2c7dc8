"""Whether data of shared memory decides anything, and that a simulation counts the same without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.sass.shared_data import data_decides
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

HEAD = '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'
COUNTERS = Path(__file__).parents[1] / "oracle" / "counters"


def decides(body: str) -> bool:
    lines = [HEAD]
    for line in map(str.strip, body.strip().splitlines()):
        lines.append(f"{line}\n" if line.endswith(":") else f"        /*{16 * len(lines):04x}*/   {line} ;\n")
    lines.append(f"        /*{16 * len(lines):04x}*/   EXIT ;\n")
    (function,) = format_of(Stage.SASS).parse(SourceText("k.sass", "".join(lines)), Stage.SASS).functions
    return data_decides(function)


HARMLESS = {
    "products": "LDSM.16.M88.4 R8, [R2]\nHMMA.16816.F32 R4, R8, R12, R4\nSTG.E.128 desc[UR4][R2.64], R4",
    "exchange": "STS [R2], R4\nLDS.64 R6, [R3]\nFADD R6, R6, R7\nSTG.E desc[UR4][R2.64], R6",
    "register used again": "LDS R2, [R3]\nSTG.E desc[UR4][R4.64], R2\nMOV R2, R9\nLDG.E R6, desc[UR4][R2.64]",
    "select": "LDS R6, [R3]\nISETP.GT.AND P0, PT, R6, RZ, PT\nSEL R6, R6, RZ, P0\nSTG.E desc[UR4][R2.64], R6",
}
DECIDING = {
    "address": "LDS R4, [R3]\nIMAD.WIDE R2, R4, 0x4, R6\nLDG.E R6, desc[UR4][R2.64]",
    "upper half of an address": "LDS R3, [R8]\nLDG.E R6, desc[UR4][R2.64]",
    "address of a store": "LDS R2, [R8]\nSTG.E desc[UR4][R2.64], R6",
    "guard": "LDS R4, [R3]\nISETP.GT.AND P0, PT, R4, RZ, PT\n@P0 STG.E desc[UR4][R2.64], R6",
    "branch": "LDS R4, [R3]\nISETP.GT.AND P0, PT, R4, RZ, PT\n@P0 BRA `(.L_1)\nNOP\n.L_1:\nNOP",
    "barrier": "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2",
    "kept under a guard": "LDS R2, [R3]\n@P1 MOV R2, R9\nLDG.E R6, desc[UR4][R2.64]",
    "next iteration": ".L_1:\nLDG.E R6, desc[UR4][R2.64]\nLDS R2, [R8]\n@P1 BRA `(.L_1)",
    "spilled": "LDS R4, [R3]\nSTL [R1], R4",
    "unknown opcode": "LDS R4, [R3]\nFOO R2, R4",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_only_stored_decides_nothing(name: str) -> None:
    assert not decides(HARMLESS[name])


@pytest.mark.parametrize("name", DECIDING)
def test_what_reaches_an_address_or_a_guard_decides(name: str) -> None:
    assert decides(DECIDING[name])


def test_a_product_counts_the_same_with_and_without_the_content_of_shared_memory() -> None:
    (entry,) = [entry for entry in open_cache(COUNTERS / "matmul").entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    assert not loaded.program.shared_data_decides
    (request,) = parse_document((COUNTERS / "matmul" / "launch.json").read_text(), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    keeping = replace(loaded, program=replace(loaded.program, shared_data_decides=True))
    found, expected = (
        predict_counters(simulate_launch(kernel, launch, ctas=np.arange(4)), 50 << 20) for kernel in (loaded, keeping)
    )
    assert found == expected
