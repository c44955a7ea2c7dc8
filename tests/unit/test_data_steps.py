"""Which instructions decide nothing, and that a simulation counts the same without their results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.reconvergence import block_ranges
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.sass.data_steps import DataSteps, find_data_steps
from artifact_inspector.execution.sass.semantics import read_program
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

HEAD = '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'
COUNTERS = Path(__file__).parents[1] / "oracle" / "counters"


def data_steps(body: str) -> DataSteps:
    lines = [HEAD]
    for line in map(str.strip, body.strip().splitlines()):
        lines.append(f"{line}\n" if line.endswith(":") else f"        /*{16 * len(lines):04x}*/   {line} ;\n")
    lines.append(f"        /*{16 * len(lines):04x}*/   EXIT ;\n")
    (function,) = format_of(Stage.SASS).parse(SourceText("k.sass", "".join(lines)), Stage.SASS).functions
    return find_data_steps(function.instructions, block_ranges(function, ("EXIT",)))


HARMLESS = {
    "products": "LDSM.16.M88.4 R8, [R2]\nHMMA.16816.F32 R4, R8, R12, R4\nSTG.E.128 desc[UR4][R2.64], R4",
    "exchange": "STS [R2], R4\nLDS.64 R6, [R3]\nFADD R6, R6, R7\nSTG.E desc[UR4][R2.64], R6",
    "register used again": "LDS R2, [R3]\nSTG.E desc[UR4][R4.64], R2\nMOV R2, R9\nLDG.E R6, desc[UR4][R2.64]",
    "spilled": "IADD3 R1, R1, -0x20, RZ\nLDS R4, [R3]\nSTL [R1+0x8], R4\nLDL R6, [R1+0x8]\nSTG.E [R2], R6",
    "spilled word used again": "LDS R4, [R3]\nSTL [R1], R4\nSTL [R1], R9\nLDL R2, [R1]\nLDG.E R6, desc[UR4][R2.64]",
    "address under a guard": "LDS R2, [R3]\nSTG.E [R4], R2\n@P1 MOV R2, R9\n@P1 LDG.E R6, desc[UR4][R2.64]",
    "select": "LDS R6, [R3]\nISETP.GT.AND P0, PT, R6, RZ, PT\nSEL R6, R6, RZ, P0\nSTG.E desc[UR4][R2.64], R6",
}
DECIDING = {
    "address": "LDS R4, [R3]\nIMAD.WIDE R2, R4, 0x4, R6\nLDG.E R6, desc[UR4][R2.64]",
    "upper half of an address": "LDS R3, [R8]\nLDG.E R6, desc[UR4][R2.64]",
    "address of a store": "LDS R2, [R8]\nSTG.E desc[UR4][R2.64], R6",
    "guard": "LDS R4, [R3]\nISETP.GT.AND P0, PT, R4, RZ, PT\n@P0 STG.E desc[UR4][R2.64], R6",
    "branch": "LDS R4, [R3]\nISETP.GT.AND P0, PT, R4, RZ, PT\n@P0 BRA `(.L_1)\nNOP\n.L_1:\nNOP",
    "barrier": "LDS R2, [R3]\nSYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2",
    "kept under a guard": "LDS R2, [R3]\n@P1 MOV R2, R9\nLDG.E R6, desc[UR4][R2.64]",
    "kept under another guard": "LDS R2, [R3]\n@P1 MOV R2, R9\n@!P1 LDG.E R6, desc[UR4][R2.64]",
    "kept under a guard that changes": "LDS R2, [R3]\n@P1 MOV R2, R9\nISETP.GT.AND P1, PT, R7, RZ, PT\n@P1 STG.E [R2], R6",
    "exchanged under a guard": "LDS R2, [R3]\n@P1 MOV R2, R9\n@P1 SHFL.IDX PT, R4, R2, R5, 0x1f\n@P1 STG.E [R4], R6",
    "next iteration": ".L_1:\nLDG.E R6, desc[UR4][R2.64]\nLDS R2, [R8]\n@P1 BRA `(.L_1)",
    "spilled to an address": "LDS R4, [R3]\nSTL [R1+0x8], R4\nLDL R2, [R1+0x8]\nLDG.E R6, desc[UR4][R2.64]",
    "half of a spilled pair": "LDS R5, [R8]\nSTL.64 [R1], R4\nLDL R3, [R1+0x4]\nLDG.E R6, desc[UR4][R2.64]",
    "kept in a spilled word under a guard": "LDS R4, [R3]\nSTL [R1], R4\n@P1 STL [R1], R9\nLDL R2, [R1]\nSTG.E [R2], R6",
    "spilled by index": "LDS R4, [R3]\nSTL [R1+R5], R4\nLDL R6, [R1]",
    "spilled bytes": "LDS R4, [R3]\nSTL.U8 [R1], R4\nLDL R6, [R1]",
    "stack pointer moved between": "LDS R4, [R3]\nSTL [R1], R4\nIADD3 R1, R1, 0x8, RZ\nLDL R6, [R1+0x8]",
    "stack pointer moved in a loop": ".L_1:\nIADD3 R1, R1, 0x8, RZ\nLDS R4, [R3]\nSTL [R1], R4\n@P1 BRA `(.L_1)",
    "behind a loop that a call leaves": "LDS R2, [R3]\n.L_1:\nNOP\n@P0 CALL.REL.NOINC `(.L_2)\nBRA `(.L_1)\n.L_2:\nLDG.E R6, [R2]",
    "unknown opcode": "LDS R4, [R3]\nFOO R2, R4",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_only_stored_decides_nothing(name: str) -> None:
    assert not data_steps(HARMLESS[name]).shared_data_decides


@pytest.mark.parametrize("name", DECIDING)
def test_what_reaches_an_address_or_a_guard_decides(name: str) -> None:
    assert data_steps(DECIDING[name]).shared_data_decides


def test_only_what_reaches_an_address_or_a_guard_is_computed() -> None:
    body = """
        S2R R0, SR_TID.X
        IMAD.WIDE R2, R0, 0x4, R8
        LDG.E R4, desc[UR4][R2.64]
        FADD R5, R4, R4
        ISETP.GT.AND P0, PT, R0, 0x7, PT
        @P0 MOV R5, R0
        MOV R0, R5
        STG.E desc[UR4][R2.64], R0
    """
    assert data_steps(body).unneeded == {2, 3, 5, 6}


def test_data_of_shared_memory_is_computed_where_it_decides() -> None:
    stored = "FADD R5, R4, R4\nSTS [R1], R5"
    assert data_steps(stored).unneeded == {0}
    assert not data_steps(f"{stored}\nLDS R2, [R3]\nLDG.E R6, desc[UR4][R2.64]").unneeded & {0, 1, 2}


def test_a_call_to_an_address_inside_of_a_block_leaves_the_way_unknown() -> None:
    """A listing of `cuobjdump` has no labels: the block at 0x30 begins there because of the branch."""
    body = (
        "MOV R49, R4",
        "@P0 CALL.REL.NOINC 0x30",
        "BRA 0x10",
        "ISETP.EQ.U32.AND P0, PT, R49, RZ, PT",
        "@!P0 BRA 0x30",
    )
    lines = [f"        /*{16 * at:04x}*/   {text} ;\n" for at, text in enumerate((*body, "EXIT"))]
    module = format_of(Stage.SASS).parse(SourceText("k.sass", HEAD + "".join(lines)), Stage.SASS)
    assert read_program(module, "k").counting is None


def test_a_product_counts_the_same_with_and_without_data() -> None:
    (entry,) = [entry for entry in open_cache(COUNTERS / "matmul").entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    assert loaded.program.counting is not None
    assert not loaded.program.counting.keeps_shared_data
    (request,) = parse_document((COUNTERS / "matmul" / "launch.json").read_text(), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    keeping = replace(loaded, program=replace(loaded.program, counting=None))
    found, expected = (
        predict_counters(simulate_launch(kernel, launch, ctas=np.arange(4)), 50 << 20) for kernel in (loaded, keeping)
    )
    assert found == expected
