"""What SASS instructions compute, one by one: a few lines of code, run over one warp."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.launch_values import LaunchValues
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import InputNames, UnknownValue, join_words
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.sass import semantics
from artifact_inspector.execution.sass.double import _multiply_add
from artifact_inspector.execution.sass.environment import SassEnvironment
from artifact_inspector.execution.sass.semantics import read_program
from artifact_inspector.execution.simulation import UnfinishedCtas, run_machines
from artifact_inspector.formats import format_of
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.memory_checks.divergence import find_diverged_warps
from artifact_inspector.memory_checks.problems import Check
from artifact_inspector.model import Stage
from artifact_inspector.model.float_formats import FLOAT64, NEAREST, Rounding
from artifact_inspector.model.text import SourceText

HEAD = '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'


def run(
    code: str,
    threads: int = 32,
    ctas: int = 1,
    tensors: dict[str, Tensor] | None = None,
    constants: dict[int, bytes] | None = None,
    content: np.ndarray | None = None,
    **given: int,
) -> tuple[Machine, StepCounters, list[UnfinishedCtas]]:
    """The machine after some statements, one on each line, labels ending in a colon."""
    lines, at = [HEAD], 0
    for line in code.strip().splitlines():
        text = line.strip()
        if text.endswith(":") or text.startswith(".type"):
            lines.append(text + "\n")
        else:
            lines.append(f"        /*{at:04x}*/                   {text} ;\n")
            at += 16
    lines.append(f"        /*{at:04x}*/                   EXIT ;\n")
    module = format_of(Stage.SASS).parse(SourceText("k.sass", "".join(lines)), Stage.SASS)
    arguments = {**(tensors or {}), **given}
    parameters = [(0x210 + 8 * n, 8) for n in range(len(arguments))]
    program = read_program(module, "k", parameters=parameters, constants=constants)
    launch = place_tensors(KernelLaunch((ctas, 1, 1), arguments))
    names, counts = InputNames(), StepCounters(len(program.steps), 10_000)
    values = [(name, launch.arguments[name]) for name in arguments]
    environment = SassEnvironment(program, launch, values, threads, names)
    memory = GlobalMemory(launch)
    if content is not None:
        memory.regions[0].content = content.view(np.uint8)
        memory.values = LaunchValues(memory.regions, NEAREST)
    machine = Machine(program, np.arange(ctas), threads, memory, counts, names, environment)
    environment.initialize(machine)
    ended = run_machines(machine)
    return machine, counts, ended


@pytest.mark.parametrize("low", [1, np.array([[1, 2]])])
def test_two_registers_join_to_a_number_below_nought(low: object) -> None:
    assert np.ravel(join_words(low, 0xFFFFFFFE))[0] == 1 - (2 << 32)


def value(machine: Machine, name: str) -> object:
    found = machine.read_register(name)
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("MOV R0, 0x5\nIADD3 R1, R0, -0x7, RZ", 0xFFFFFFFE),
        ("MOV R0, 0x5\nIADD3 R1, P0, R0, -R0, RZ\nSEL R1, R0, RZ, P0", 5),  # 5 + ~5 + 1 carries
        ("IADD3 R1, P0, RZ, -RZ, RZ\nSEL R1, 0x1, RZ, P0", 1),  # 0 - 0 carries
        ("MOV R0, 0xffffffff\nIADD3 R2, P0, R0, 0x1, RZ\nIADD3.X R1, RZ, 0x4, RZ, P0, !PT", 5),
        ("MOV R0, 0xffffffff\nIADD3 R2, P0, R0, 0x1, RZ\nIMAD.X R1, RZ, RZ, 0x4, P0", 5),
        ("MOV R0, 0xffffffff\nMOV R1, 0x3\nIMAD R1, R0, R1, 0x5", 2),
        ("MOV R0, 0xffffffff\nIMAD.WIDE R4, R0, 0x2, RZ\nMOV R1, R5", 0xFFFFFFFF),
        ("MOV R0, 0xffffffff\nIMAD.WIDE.U32 R4, R0, R0, RZ\nMOV R1, R5", 0xFFFFFFFE),
        ("MOV R0, 0x80000000\nIMAD.HI.U32 R1, R0, 0x4, RZ", 2),
        ("MOV R0, 0x7\nMOV R2, RZ\nMOV R3, 0x9\nIMAD.HI.U32 R1, R0, 0x4, R2", 9),  # the high word is added
        ("MOV R0, 0xf0\nSHF.R.U32.HI R1, RZ, 0x4, R0", 0xF),
        ("MOV R0, 0xffffff00\nSHF.R.S32.HI R1, RZ, 0x1f, R0", 0xFFFFFFFF),
        ("MOV R0, 0x3\nSHF.L.U32 R1, R0, 0x4, RZ", 0x30),
        ("MOV R0, 0x80000001\nMOV R2, 0x1\nSHF.L.U64.HI R1, R0, 0x1, R2", 3),
        ("MOV R0, 0x10\nMOV R2, 0x1\nSHF.R.U64 R1, R0, 0x4, R2", 0x10000001),
        ("MOV R0, 0xffffffe1\nSHF.R.S32.HI R2, RZ, 0x1f, R0\nLEA.HI R1, R2, R0, RZ, 0x5", 0),
        ("MOV R0, 0x5\nLEA R1, R0, 0x100, 0x2", 0x114),
        ("MOV R0, 0xffffffff\nLEA.HI.X.SX32 R1, R0, 0x7, 0x1, PT", 7),
        ("MOV R0, 0xf0f0\nMOV R2, 0xff00\nLOP3.LUT R1, R0, R2, RZ, 0xc0, !PT", 0xF000),
        ("MOV R0, 0xf0f0\nMOV R2, 0xff00\nMOV R3, 0x3\nLOP3.LUT R1, R0, R2, R3, 0x96, !PT", 0x0FF3),
        ("LOP3.LUT P0, RZ, RZ, 0x1, RZ, 0xfc, !PT\nSEL R1, 0x9, RZ, P0", 9),
        ("MOV R0, 0x44332211\nPRMT R1, R0, 0x7610, RZ", 0x2211),
        ("MOV R0, 0x80\nPRMT R1, R0, 0x8880, RZ", 0xFFFFFF80),
        ("MOV R0, 0xfffffffb\nIABS R1, R0", 5),
        ("MOV R0, 0xf\nSGXT R1, R0, 0x4", 0xFFFFFFFF),
        ("MOV R0, 0x1f\nSGXT.U32 R1, R0, 0x4", 0xF),
        ("MOV R0, 0xfffffffb\nVIMNMX R1, R0, 0x3, PT", 0xFFFFFFFB),
        ("MOV R0, 0xfffffffb\nVIMNMX.U32 R1, R0, 0x3, PT", 3),
        ("MOV R0, 0x5\nVIADDMNMX R1, R0, 0x3, 0x6, PT", 6),
        ("MOV R0, 0xff\nPOPC R1, R0", 8),
        ("MOV R0, 0x100\nFLO.U32 R1, R0", 8),
        ("MOV R0, 0x1\nBREV R1, R0", 0x80000000),
        ("BMSK R1, 0x4, 0x3", 0x70),
        ("HFMA2.MMA R1, -RZ, RZ, 1.875, 0", 0x3F800000),
        ("HFMA2.MMA R1, -RZ, RZ, 0, -0.0", 0x8000),
        ("FADD R1, -RZ, -0", 0x80000000),
        ("HFMA2.MMA R1, -RZ, RZ, 0, 5.9604644775390625e-08", 1),
        ("MOV R0, 0x7\nI2F.RP R2, R0\nF2I.FTZ.U32.TRUNC.NTZ R1, R2", 7),
        ("MOV R0, 0x40000000\nFSETP.GE.AND P0, PT, R0, 105615, PT\nSEL R1, 0x1, 0x2, P0", 2),  # 2.0 is less
        ("MOV R0, 0x2ff\nI2F.U8 R1, R0", 0x437F0000),  # 255
        ("MOV R0, 0x2ff\nI2F.U8 R1, R0.B1", 0x40000000),
        ("MOV R0, 0x3\nI2F.F16 R1, R0", 0x4200),
        ("FSET.BF.LT.AND R1, RZ, 1, PT", 0x3F800000),
        ("FSET.LT.AND R1, RZ, 1, PT", 0xFFFFFFFF),
        ("FSET.BF.GT.AND R1, RZ, 1, PT", 0),
        ("ISETP.LT.AND P1, PT, RZ, 0x1, PT\nP2R.B1 R1, PR, RZ, 0x2", 0x200),
        ("MOV R0, 0x44332211\nMOV R2, 0x88776655\nPRMT R1, R0, 0x4732, R2", 0x55884433),
        ("MOV R0, 0x7fc00000\nFSETP.NE.AND P0, PT, R0, 1, PT\nSEL R1, 0x1, 0x2, P0", 2),  # NaN: unordered
        ("MOV R0, 0x7fc00000\nFSETP.NEU.AND P0, P1, R0, 1, PT\nSEL R1, 0x1, 0x2, P1", 2),
        ("FSETP.LT.XOR P0, PT, RZ, 1, PT\nSEL R1, 0x1, 0x2, P0", 2),
        ("FSETP.GT.OR P0, P1, RZ, 1, !PT\nSEL R1, 0x1, 0x2, P1", 1),
        ("MOV R4, 0x0\nMOV R5, 0x40000000\nDSETP.GT.AND P0, PT, R4, 1.5, PT\nSEL R1, 0x1, 0x2, P0", 1),  # 2.0
        ("PRMT R0, RZ, 0x7610, R0\nHADD2.F32 R1, -RZ, R0.H0_H0", 0),  # the high half was never written
        ("MOV R0, 0x3c00\nPRMT R0, R0, 0x7610, R2\nHADD2 R0, R0, R0\nPRMT R1, R0, 0x1010, RZ", 0x40004000),
        (
            "MOV R4, 0x1\nMOV R5, 0x3ff00000\nMOV R6, 0xfffffffe\nMOV R7, 0x3fefffff\nDFMA R2, R4, R6, -1\n"
            "MOV R1, R3",
            0xB9700000,  # -2⁻¹⁰⁴, which a rounded product loses
        ),
        ("MOV R4, 0x0\nMOV R5, 0x40000000\nDFMA R2, R4, -R4, 1\nMOV R1, R3", 0xC0080000),  # -3
        ("MOV R0, 0x3c004000\nHSETP2.LT.AND P0, P1, R0, 1.5, 1.5, PT\nP2R R1, PR, RZ, 0x3", 2),  # 2 and, high, 1
        ("MOV R0, 0x3c004000\nHMNMX2 R1, R0, 1.5, 1.5, PT", 0x3C003E00),
        ("MOV R0, 0x3c007e00\nHMNMX2 R1, R0, 1.5, 1.5, !PT", 0x3E003E00),  # NaN: the other
        ("MOV R0, 0x3c007e00\nHMNMX2.NAN R1, R0, 1.5, 1.5, !PT", 0x3E007E00),
        ("MOV R0, 0x40000000\nFMNMX3 R1, R0, -R0, 1, !PT", 0x40000000),
        ("MOV R4, 0x3f800000\nMOV R5, 0x40000000\nFADD2 R2, R4.F32x2.HI_LO, R4.F32\nMOV R1, R3", 0x40400000),
        ("MOV R5, 0x40000000\nFFMA2.FTZ R2, R4.F32x2.HI_LO, R4.F32x2.HI_LO, -1\nMOV R1, R3", 0x40400000),
        ("MOV R0, 0x40000000\nFADD R1, R0, -1", 0x3F800000),
        ("FSEL R1, 2, 0x7, PT", 0x40000000),
        ("MOV R0, 0x7fc00000\nFSETP.NAN.AND P0, PT, R0, R0, PT\nSEL R1, 0x1, 0x2, P0", 1),
        ("MOV R0, 0x7fc00000\nFSETP.NUM.AND P0, PT, R0, R0, PT\nSEL R1, 0x1, 0x2, P0", 2),
        ("MOV R0, 0x3f800000\nFSETP.NAN.AND P0, PT, R0, R0, PT\nSEL R1, 0x1, 0x2, P0", 2),
        ("MOV R0, 0x3f800000\nFSETP.NUM.AND P0, PT, R0, -R0, PT\nSEL R1, 0x1, 0x2, P0", 1),
        ("MOV R0, 0x3f800001\nMOV R2, 0x3d7ffffe\nFFMA R1, R0, R2, 1048576.125", 0x49800001),  # rounded once
        ("MOV R0, 0x1\nFADD.FTZ R1, R0, R0", 0),
        ("MOV R0, 0x1\nFADD R1, R0, R0", 2),
        ("ISETP.LT.AND P1, PT, RZ, 0x1, PT\nP2R R1, PR, RZ, 0x2", 2),
        ("MOV R0, 0x4\nR2P PR, R0, 0x6\nSEL R1, 0x1, 0x2, P2", 1),
        ("MOV R0, 0x5\nUMOV UR4, 0x3\nR2UR UR5, R0\nUIADD3 UR4, UR4, UR5, URZ\nMOV R1, UR4", 8),
        ("MOV R0, 0x5\nSTL [R9+0x8], R0\nLDL R1, [R9+0x8]", 5),
        ("MOV R0, 0xffdd9981\nSTL [R9+0x8], R0\nLDL.U8 R1, [R9+0x8]", 0x81),
        ("MOV R0, 0xffdd9981\nSTL [R9+0x8], R0\nLDL.U8 R1, [R9+0x9]", 0x99),
        ("MOV R0, 0xfedc9881\nSTL [R9+0x8], R0\nLDL.U16 R1, [R9+0xa]", 0xFEDC),
        ("MOV R0, 0xfedd9881\nSTL [R9+0x8], R0\nLDL.U16 R1, [R9+0x8]", 0x9881),
        ("MOV R0, 0x7f38b4\nF2FP.F16.E4M3.UNPACK_B R1, R0", 0x3C00BA00),  # 1 and -0.75
        ("MOV R0, 0xc438b400\nF2FP.F16.E4M3.UNPACK_B R1, R0.H1", 0xC2003C00),  # -3 and 1
        ("MOV R0, 0xc23c\nF2FP.F16.E5M2.UNPACK_B R1, R0", 0xC2003C00),
        ("S2R R0, SR_CTAID.X\nIADD3 R1, R0, 0x1, RZ", 1),
    ],
)  # fmt: skip
def test_an_instruction_computes_what_hardware_does(code: str, expected: int) -> None:
    machine, _, ended = run("MOV R9, 0x100\n" + code)
    assert not ended
    assert value(machine, "R1") == expected


@pytest.mark.parametrize("at", range(4))
def test_a_word_of_which_a_byte_is_stored_is_unknown(at: int) -> None:
    code = (
        f"MOV R9, 0x100\nMOV R0, 0xfedc9881\nSTL.64 [R9], R0\nSTL.U8 [R9+{at:#x}], R0\nLDL R1, [R9]\nLDL R2, [R9+0x4]"
    )
    machine, _, _ = run(code.replace("STL.64", "MOV R1, R0\nSTL.64"))
    assert isinstance(machine.read_register("R1"), UnknownValue)
    assert machine.read_register("R2") == 0xFEDC9881


def test_doubles_are_rounded_once_and_at_random_to_a_neighbour() -> None:
    """a·b + c and sums against fractions; the exact ones have no neighbour."""
    numbers = np.random.default_rng(3)
    a, b, c = (numbers.standard_normal(200) * 2.0 ** numbers.integers(-30, 30, 200) for _ in range(3))
    c[:50] = -a[:50] * b[:50]  # the error of the product remains
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    nearest = Rounding().to_format(_multiply_add(a, b, c), FLOAT64).astype(np.float64)
    assert nearest.tolist() == [float(one) for one in exact]
    samples = [Rounding(seed).to_format(_multiply_add(a, b, c), FLOAT64).astype(np.float64) for seed in range(8)]
    assert all((abs(one - nearest) <= np.spacing(abs(nearest))).all() for one in samples)
    assert (np.ptp(samples, axis=0) > 0).any() == (np.finfo(np.longdouble).nmant > 52)
    assert not np.ptp(
        [Rounding(s).to_format(_multiply_add(a, 2.0 + 0 * a, 0 * a), FLOAT64) for s in (1, 2)], axis=0
    ).any()


@pytest.mark.parametrize(
    ("vector", "dtype", "words", "added"),
    [
        ("F32x4", np.float32, (0x3F800000, 0x40000000, 0xC0400000, 0x40800000), (1, 2, -3, 4)),
        ("F32x2", np.float32, (0x3F800000, 0x40000000), (1, 2)),
        ("F16x8", np.float16, (0x40003C00, 0xC2003C00, 0x3C003C00, 0x44003C00), (1, 2, 1, -3, 1, 1, 1, 4)),
    ],
)
def test_an_atomic_on_a_vector_updates_each_element(
    vector: str, dtype: type[np.floating], words: tuple[int, ...], added: tuple[int, ...]
) -> None:
    before = np.arange(32 * len(added)).astype(dtype)
    moves = "\n".join(f"MOV R{8 + number}, {word:#x}" for number, word in enumerate(words))
    machine, _, ended = run(
        f"S2R R0, SR_TID.X\nMOV R2, c[0x0][0x210]\nMOV R3, c[0x0][0x214]\nIMAD.WIDE.U32 R2, R0, {4 * len(words):#x}, R2\n"
        f"{moves}\nREDG.E.ADD.{vector}.RN.STRONG.GPU desc[UR4][R2.64], R8",
        tensors={"x": Tensor(before.shape, before.dtype.name)},
        content=before,
    )
    assert not ended
    assert machine.memory.values is not None
    after, known, _ = machine.memory.values.stored(machine.memory.regions[0].start, before.nbytes)
    assert known.all()
    assert after.view(dtype).tolist() == (before + np.tile(added, 32).astype(dtype)).tolist()


@pytest.mark.parametrize("mask", [1 << number for number in range(7)] + [0, 0x55, 0x7F])
def test_a_mask_of_predicates_moves_each_of_the_seven_both_ways(mask: int) -> None:
    """P2R writes the bits of the mask, of predicates that are all true; R2P writes the predicates of the mask."""
    packed, _, _ = run(f"MOV R0, 0x7f\nR2P PR, R0, 0x7f\nMOV R2, RZ\nP2R R1, PR, R2, {mask:#x}")
    assert value(packed, "R1") == mask
    unpacked, _, _ = run(f"R2P PR, RZ, 0x7f\nMOV R0, 0x7f\nR2P PR, R0, {mask:#x}")
    assert [bool(value(unpacked, f"P{number}")) for number in range(7)] == [bool(mask >> n & 1) for n in range(7)]


def divide(a: int, b: int) -> str:
    """ptxas' unsigned division, as it stands in the matmul's program order."""
    return f"""
    MOV R8, {a:#x}
    MOV R7, {b:#x}
    I2F.U32.RP R0, R7
    MUFU.RCP R0, R0
    VIADD R2, R0, 0xffffffe
    F2I.FTZ.U32.TRUNC.NTZ R3, R2
    IMAD.MOV.U32 R2, RZ, RZ, RZ
    IMAD.MOV R6, RZ, RZ, -R3
    IMAD R9, R6, R7, RZ
    IMAD.HI.U32 R3, R3, R9, R2
    IMAD.HI.U32 R3, R3, R8, RZ
    IMAD.MOV R10, RZ, RZ, -R3
    IMAD R0, R7, R10, R8
    ISETP.GE.U32.AND P0, PT, R0, R7, PT
    @P0 IMAD.IADD R0, R0, 0x1, -R7
    @P0 VIADD R3, R3, 0x1
    ISETP.GE.U32.AND P1, PT, R0, R7, PT
    @P1 VIADD R3, R3, 0x1
    """


@pytest.mark.parametrize(("a", "b"), [(1000, 7), (0xFFFFFFFF, 3), (5, 9), (123456789, 1), (2**31, 65537)])
def test_integers_are_divided_by_way_of_floats_exactly(a: int, b: int) -> None:
    machine, _, _ = run(divide(a, b))
    assert value(machine, "R3") == a // b


@pytest.mark.parametrize(
    ("opcode", "barriers", "has_error"),
    [
        ("LDSM.16.M88.4 R4, [R9]", 0, True),
        ("SHFL.BFLY PT, R4, R1, 0x1, 0x1f", 0, True),
        ("LDSM.16.M88.4 R4, [R9]", 1, False),
        ("SHFL.BFLY PT, R4, R1, 0x1, 0x1f", 1, False),
        ("IADD3 R4, R1, 0x1, RZ", 0, False),
    ],
)
def test_a_warp_that_runs_a_matrix_load_or_a_shuffle_in_parts_is_an_error(
    opcode: str, barriers: int, has_error: bool
) -> None:
    begin, end = ("BSSY B0, `(.L_x_1)", "BSYNC B0") if barriers else ("NOP", "NOP")
    machine, counters, ended = run(f"""
        MOV R9, 0x100
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x8, PT
        {begin}
        @P0 BRA `(.L_x_1)
        MOV R1, 0x1
        .L_x_1:
        {end}
        {opcode}
        """)
    assert not ended
    launch = SimpleNamespace(loaded=SimpleNamespace(program=machine.program), counters=counters)
    problems = find_diverged_warps(launch)
    assert [(problem.check, problem.site.opcode) for problem in problems] == [
        (Check.DIVERGED, opcode.split()[0])
    ] * has_error
    assert all("BRA at line" in problem.message for problem in problems)


def test_a_value_that_is_the_same_in_all_lanes_is_one_number() -> None:
    machine, _, _ = run("S2R R0, SR_CTAID.X\nMOV R1, 0x4\nIMAD R2, R0, R1, RZ", ctas=1)
    assert isinstance(machine.read_register("R2"), int)
    machine, _, _ = run("S2R R0, SR_TID.X\nIADD3 R1, R0, 0x1, RZ", ctas=8)
    assert machine.read_register("R1").shape == (1, 32)


def test_lanes_that_part_run_both_sides_and_join_at_their_barrier() -> None:
    machine, counts, _ = run("""
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x8, PT
        BSSY B0, `(.L_x_1)
        @P0 BRA `(.L_x_0)
        MOV R1, 0x1
        BRA `(.L_x_1)
        .L_x_0:
        MOV R1, 0x2
        .L_x_1:
        BSYNC B0
        IADD3 R1, R1, 0x1, RZ
    """)
    assert value(machine, "R1") == [[2] * 8 + [3] * 24]
    assert counts.warps_executed == [1, 1, 1, 1, 1, 1, 1, 2, 1, 1]  # BSYNC once for each side
    assert counts.divergent_warps[3] == 1


def test_warps_that_part_do_not_diverge() -> None:
    _, counts, _ = run("""
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x20, PT
        @P0 BRA `(.L_x_0)
        MOV R1, 0x1
        .L_x_0:
        MOV R2, 0x2
    """, threads=64)  # fmt: skip
    assert counts.warps_executed == [2, 2, 2, 1, 2, 2]
    assert sum(counts.divergent_warps) == 0


def test_ctas_loop_as_often_as_their_own_numbers_say() -> None:
    _, counts, _ = run("""
        S2R R0, SR_CTAID.X
        .L_x_0:
        IADD3 R0, R0, -0x1, RZ
        ISETP.GE.AND P0, PT, R0, RZ, PT
        @P0 BRA `(.L_x_0)
        MOV R1, 0x1
    """, ctas=5)  # fmt: skip
    assert counts.warps_executed == [5, 15, 15, 15, 5, 5]  # 1 + 2 + 3 + 4 + 5 rounds


def test_a_uniform_register_keeps_apart_warps_that_went_different_ways() -> None:
    machine, _, _ = run("""
        S2R R0, SR_TID.X
        UMOV UR4, 0x1
        ISETP.GE.AND P0, PT, R0, 0x20, PT
        @P0 BRA `(.L_x_0)
        UMOV UR4, 0x7
        .L_x_0:
        MOV R1, UR4
    """, threads=64)  # fmt: skip
    assert value(machine, "R1") == [[7] * 32 + [1] * 32]


def test_an_endless_loop_ends_at_the_limit() -> None:
    _, _, ended = run(".L_x_0:\nMOV R1, 0x1\nBRA `(.L_x_0)")
    assert "10000 steps" in ended[0].reasons[0]


SWAP_LOOP = """
LDC.64 R8, c[0x0][0x210]
S2R R0, SR_TID.X
SHF.R.U32.HI R1, RZ, {shift}, R0
IMAD.WIDE.U32 R2, R1, 0x4, R8
LDG.E R5, desc[UR4][R2.64]
.L_x_1:
FADD R6, R5, R5
ATOMG.E.CAS.STRONG.GPU PT, R7, desc[UR4][R2.64], R5, R6
ISETP.NE.U32.AND P0, PT, {compared}, R5, PT
IMAD.MOV.U32 R5, RZ, RZ, R7
@P0 BRA `(.L_x_1)
"""


@pytest.mark.parametrize(("shift", "attempts"), [(0, 1), (1, 2), (5, 32)])
def test_lanes_of_a_warp_that_share_a_word_swap_one_after_the_other(shift: int, attempts: int) -> None:
    code = SWAP_LOOP.format(shift=hex(shift), compared="R7")
    _, counts, ended = run(code, threads=64, tensors={"x": Tensor((64,), "i32")})
    assert ended == []
    assert counts.warps_executed[6] == 2 * attempts
    lanes_by_attempt = [32 - 32 // (1 << shift) * attempt for attempt in range(attempts)]
    assert counts.threads_executed[6] == 2 * sum(lanes_by_attempt)


def test_a_comparison_with_another_register_than_the_swapped_is_not_assumed() -> None:
    assert run(SWAP_LOOP.format(shift="0x0", compared="R6"), tensors={"x": Tensor((64,), "i32")})[2]


def test_a_branch_on_data_that_was_not_given_is_undecided_by_name() -> None:
    _, _, ended = run(
        "LDC.64 R2, c[0x0][0x210]\nLDG.E R4, desc[UR4][R2.64]\nISETP.NE.AND P0, PT, R4, RZ, PT\n"
        "@P0 BRA `(.L_x_0)\nMOV R1, 0x1\n.L_x_0:\nMOV R2, 0x2",
        tensors={"x": Tensor((32,), "i32")},
    )
    assert ended[0].reasons == ("values of x",)


def test_a_table_of_constants_is_read_by_lanes_that_are_on_alone() -> None:
    code = (
        "S2R R0, SR_TID.X\nIMAD.SHL.U32 R4, R0, 0x4, RZ\nISETP.LT.U32.AND P0, PT, R0, 0x2, PT\n"
        "MOV R5, 0x63\n@P0 LDC R5, c[0x2][R4]"
    )
    machine, _, _ = run(code, constants={2: bytes((7, 0, 0, 0, 9, 0, 0, 0))})
    assert value(machine, "R5") == [[7, 9] + [0x63] * 30]


ADDRESS = "LDC.64 R2, c[0x0][0x210]\nS2R R0, SR_TID.X\nIMAD.WIDE R2, R0, 0x4, R2\nIMAD.SHL.U32 R7, R0, 0x4, RZ\n"


@pytest.mark.parametrize(
    "through",
    [
        "LDG.E R4, desc[UR4][R2.64]\nSTS [R7], R4\nLDS R5, [R7]",
        "MOV R4, 0x1\nSTS [R7], R4\nLDG.E R4, desc[UR4][R2.64]\nSTS [R4], R7\nLDS R5, [R7]",  # it may be anywhere
        "STS [R7], R0\nLDG.E R4, desc[UR4][R2.64]\nISETP.NE.AND P0, PT, R4, RZ, PT\n@P0 STS [R7], R7\nLDS R5, [R7]",
        "LDGSTS.E [R7], desc[UR4][R2.64]\nLDS R5, [R7]",
    ],
)
def test_what_goes_through_shared_memory_keeps_its_reason(through: str) -> None:
    machine, _, _ = run(ADDRESS + through, tensors={"x": Tensor((32,), "i32")})
    found = machine.read_register("R5")
    assert isinstance(found, UnknownValue)
    assert isinstance(found, UnknownValue)
    assert machine.input_names.names_in(found.missing_inputs) == ("values of x",)


def test_a_copy_writes_zeros_in_lanes_that_read_nothing() -> None:
    code = "ISETP.LT.AND P0, PT, R0, 0x2, PT\nLDGSTS.E [R7], desc[UR4][R2.64], P0\nLDS R5, [R7]"
    x = Tensor((32,), "i32", values=tuple(range(10, 42)))
    machine, _, _ = run(ADDRESS + code, tensors={"x": x})
    assert value(machine, "R5") == [[10, 11] + [0] * 30]


def test_data_that_is_given_is_followed() -> None:
    machine, _, ended = run(
        "LDC.64 R2, c[0x0][0x210]\nS2R R0, SR_TID.X\nIMAD.WIDE R2, R0, 0x4, R2\n"
        "LDG.E R4, desc[UR4][R2.64]\nIADD3 R1, R4, 0x1, RZ",
        tensors={"x": Tensor((32,), "i32", values=tuple(range(10, 42)))},
    )
    assert not ended
    assert value(machine, "R1") == [[n + 11 for n in range(32)]]


def test_an_access_beyond_a_tensor_is_told_with_its_lane() -> None:
    _, counts, _ = run(
        "LDC.64 R2, c[0x0][0x210]\nS2R R0, SR_TID.X\nIMAD.WIDE R2, R0, 0x4, R2\nLDG.E R4, desc[UR4][R2.64]",
        tensors={"x": Tensor((30,), "i32")},
    )
    assert [(found.thread, found.nearest_tensor) for found in counts.out_of_bounds] == [
        (30, "just past the end of x"),
        (31, "4 bytes past the end of x"),
    ]


def test_an_access_that_begins_in_a_tensor_and_ends_past_it_goes_across_its_end() -> None:
    _, counts, _ = run(
        "LDC.64 R2, c[0x0][0x210]\nS2R R0, SR_TID.X\nIMAD.WIDE R2, R0, 0x8, R2\nLDG.E.64 R4, desc[UR4][R2.64]",
        tensors={"x": Tensor((63,), "i32")},
    )
    assert [(found.thread, found.nearest_tensor) for found in counts.out_of_bounds] == [(31, "across the end of x")]


def test_an_opcode_without_semantics_spoils_its_result_by_name() -> None:
    machine, _, _ = run("MOV R0, 0x1\nVABSDIFF4 R1, R0, R0, RZ\nIADD3 R2, R1, 0x1, RZ\nMOV R3, 0x1")
    found = machine.read_register("R2")
    assert isinstance(found, UnknownValue)
    assert isinstance(found, UnknownValue)
    assert machine.input_names.names_in(found.missing_inputs) == ("unsupported opcode VABSDIFF4",)
    assert value(machine, "R3") == 1
    assert machine.program.unsupported_opcodes == ("VABSDIFF4",)


def test_a_bit_that_no_unknown_bit_touches_stays_known() -> None:
    machine, _, _ = run("CS2R R0, SR_CLOCKLO\nLOP3.LUT R1, R0, RZ, RZ, 0xc0, !PT\nLOP3.LUT R2, R0, 0xff, RZ, 0xfc, !PT")
    assert value(machine, "R1") == 0
    found = machine.read_register("R2")
    assert isinstance(found, UnknownValue)
    assert (int(found.unknown_bits) & 0xFF, int(found.data) & 0xFF) == (0, 0xFF)


def test_a_lane_reads_another_lanes_register() -> None:
    machine, _, _ = run("S2R R0, SR_TID.X\nSHFL.BFLY PT, R1, R0, 0x1, 0x1f\nSHFL.IDX PT, R2, R0, 0x3, 0x1f")
    assert value(machine, "R1") == [[lane ^ 1 for lane in range(32)]]
    assert value(machine, "R2") == [[3] * 32]


def test_shared_memory_hands_numbers_on_between_lanes() -> None:
    machine, counts, _ = run("""
        S2R R0, SR_TID.X
        SHF.L.U32 R1, R0, 0x2, RZ
        STS [R1], R0
        LOP3.LUT R2, R1, 0x7c, RZ, 0x3c, !PT
        LDS R3, [R2]
    """)
    assert value(machine, "R3") == [[31 - lane for lane in range(32)]]
    assert counts.wavefronts[2] == counts.wavefronts[4] == 1


def test_lanes_that_meet_in_a_bank_take_turns() -> None:
    _, counts, _ = run("S2R R0, SR_TID.X\nSHF.L.U32 R1, R0, 0x7, RZ\nSTS [R1], R0\nLDS R2, [RZ]")
    assert (counts.wavefronts[2], counts.wavefronts_ideal[2]) == (32, 1)
    assert counts.wavefronts[3] == 1  # the same word for all


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("REDUX.SUM UR4, R0", 496),
        ("REDUX.MAX.S32 UR4, R0", 31),
        ("REDUX.MIN UR4, R0", 0),
        ("REDUX.OR UR4, R0", 31),
        ("REDUX.XOR UR4, R0", 0),
        ("REDUX UR4, R0", 0),
    ],
)
def test_a_reduction_over_a_warp_is_of_all_its_lanes(opcode: str, expected: int) -> None:
    machine, _, _ = run(f"S2R R0, SR_LANEID\n{opcode}")
    assert value(machine, "UR4") == expected


def test_a_reduction_leaves_out_the_lanes_that_are_off() -> None:
    machine, _, _ = run("S2R R0, SR_LANEID\nISETP.GT.U32.AND P0, PT, R0, 0x1d, PT\n@P0 REDUX.MIN UR4, R0")
    assert value(machine, "UR4") == [[30] * 32]


def test_a_match_tells_the_lanes_that_hold_the_same() -> None:
    machine, _, _ = run("S2R R0, SR_LANEID\nLOP3.LUT R1, R0, 0x1, RZ, 0xc0, !PT\nMATCH.ANY R2, R1")
    assert value(machine, "R2") == [[0x55555555, 0xAAAAAAAA] * 16]
    machine, _, _ = run("S2R R0, SR_LANEID\nMATCH.ALL P1, R2, R0\nMATCH.ALL P2, R3, RZ")
    assert value(machine, "R2") == [[0] * 32]
    assert value(machine, "R3") == [[0xFFFFFFFF] * 32]


CALLED = """
    S2R R0, SR_TID.X
    ISETP.GE.AND P0, PT, R0, 0x20, PT
    MOV R1, 0x1
    @P0 BRA `(.L_other)
    MOV R6, 0x70
    CALL.REL.NOINC `($k$helper)
    BRA `(.L_end)
    BRA `(.L_end)
.L_other:
    MOV R6, 0x60
    CALL.REL.NOINC `($k$helper)
.L_end:
    IADD3 R1, R1, 0x100, RZ
    EXIT
    .type $k$helper,@function
$k$helper:
    IADD3 R1, R1, 0x10, RZ
    RET.REL.NODEC R6 `(k)
"""


def test_a_function_is_called_and_returns_to_who_called_it() -> None:
    machine, counts, ended = run(CALLED, threads=64)
    assert not ended
    assert value(machine, "R1") == [[0x111] * 64]
    assert counts.warps_executed[12:14] == [2, 2]  # a call of each warp, though they returned to different places
    assert counts.warps_executed[6:8] == [1, 1]


def test_a_defect_of_a_builder_is_no_malformed_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(statement: SassStatement) -> None:
        return statement.oprands  # type: ignore[attr-defined]

    monkeypatch.setattr(semantics, "SEMANTICS", {"IADD3": build})
    with pytest.raises(AttributeError):
        run("IADD3 R1, R1, 0x1, RZ")


DIVIDED = """
    DMNMX R4, R2, R2
    ISETP.GE.AND P0, PT, R4, 0x1, PT
    ISETP.GE.AND P2, PT, R5, 0x1, PT
    MOV R1, 0x1
    BRANCH
    MOV R6, 0x80
    CALL.REL.NOINC `($k$HELPER)
    BRA `(.L_end)
    NOP
.L_end:
    IADD3 R1, R1, 0x100, RZ
    EXIT
    .type $k$HELPER,@function
$k$HELPER:
    IADD3 R1, R1, 0x10, RZ
    RET.REL.NODEC R6 `(k)
"""


@pytest.mark.parametrize("branch", ["@P0 BRA `(.L_end)", "@P0 BRA P2, `(.L_end)", "BRA P2, `(.L_end)"])
@pytest.mark.parametrize(
    ("helper", "is_slow_path"),
    [("__cuda_sm20_div_rn_f64_full", True), ("__cuda_sm3x_div_rn_noftz_f32_slowpath", True), ("__cuda_sm20_div_u64", False)],
)  # fmt: skip
def test_unknown_operands_of_a_division_take_its_usual_path(branch: str, helper: str, is_slow_path: bool) -> None:
    """The slow path is of operands near the ends of the exponent's range; a 64-bit integer has no usual path."""
    machine, _, ended = run(DIVIDED.replace("BRANCH", branch).replace("HELPER", helper))
    assert bool(ended) is not is_slow_path
    assert ended or value(machine, "R1") == 0x101


PARTS = """
    S2R R0, SR_TID.X
    ISETP.GE.AND P0, PT, R0, 0x10, PT
    BSSY B0, `(.L_end)
    @P0 BRA `(.L_end)
    MOV R1, 0x1
.L_end:
    BSYNC B0
    WARPSYNC.ALL
"""


def test_parts_of_a_warp_are_told_that_a_barrier_joins() -> None:
    """What the hardware's counter has twice and ncu's source page once, in 16 launches on an H200."""
    _, counts, _ = run(PARTS, threads=64)
    assert counts.warps_executed[5:7] == [3, 2]  # the first warp comes in two parts, the second whole
    assert counts.reconverged_parts[6] == 1


ELSEWHERE = """
    S2R R0, SR_TID.X
    ISETP.GE.AND P0, PT, R0, 0x20, PT
    @P0 BRA `(.L_end)
    IADD3 R2, R0, 0x1, RZ
    SHFL.UP PT, R1, R2, 0x1, RZ
    SHFL.IDX P1, R3, R2, 0x1e, 0x1f
.L_end:
"""


def test_what_other_warps_did_not_write_hides_nothing_from_a_shuffle() -> None:
    machine, _, ended = run(ELSEWHERE, threads=64)
    assert not ended
    found, last = machine.read_register("R1"), machine.read_register("R3")
    assert isinstance(found, UnknownValue)
    assert isinstance(last, UnknownValue)
    assert found.data[0, :32].tolist() == [1, *range(1, 32)]
    assert not found.unknown_bits[0, :32].any()
    assert found.unknown_bits[0, 32:].all()
    assert last.data[0, :32].tolist() == [31] * 32


SPECIALISED = """
    S2R R0, SR_TID.X
    ISETP.GE.AND P1, PT, R0, 0x20, PT
    @P1 USETMAXREG.DEALLOC.CTAPOOL 0x18
.L_ask:
    USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8
    PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0
    @!P0 BRA `(.L_ask)
.L_wait:
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R5
    @!P0 BRA `(.L_wait)
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R5
    @!P0 BRA `(.L_wait)
"""


def test_a_warp_that_others_load_for_waits_anew_at_first() -> None:
    _, counts, ended = run(SPECIALISED, threads=64)
    assert not ended
    assert counts.warps_executed[3:6] == [3, 3, 3]  # the warp that gave registers away is served at once
    assert counts.warps_executed[6:10] == [6, 6, 2, 2]


def test_a_call_may_go_to_a_label() -> None:
    machine, _, ended = run("CALL.REL.NOINC `(.L_far)\nEXIT\n.L_far:\nMOV R1, 0x7")
    assert not ended
    assert value(machine, "R1") == 7


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("16.M88", list(range(32))),
        (
            "16.MT88",
            [0 if lane // 4 % 2 else 8 * (lane % 4) + lane // 8 + (8 * (lane % 4) + 4 + lane // 8 << 16)
             for lane in range(32)],
        ),
    ],
)  # fmt: skip
def test_a_matrix_through_shared_memory_keeps_what_is_known(opcode: str, expected: list[int]) -> None:
    """Word n of 8 rows of 16 bytes holds n; transposed, a lane has two halves out of one column."""
    lanes = (
        "S2R R0, SR_TID.X\nSHF.L.U32 R1, R0, 0x2, RZ\nSHF.L.U32 R2, R0, 0x4, RZ\nLOP3.LUT R2, R2, 0x7f, RZ, 0xc0, !PT\n"
    )
    machine, _, _ = run(f"{lanes}STS [R1], R0\nLDSM.{opcode} R3, [R2]")
    assert value(machine, "R3") == [expected]
    machine, _, _ = run(f"{lanes}STSM.{opcode} [R2], R0\nLDSM.{opcode} R3, [R2]\nLDS R4, [R1]")
    assert value(machine, "R3") == [list(range(32))]
    assert (value(machine, "R4") == [list(range(32))]) is (opcode == "16.M88")


def test_a_branch_of_whole_warps_is_taken_by_none_whose_lanes_disagree() -> None:
    _, counts, _ = run("""
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x28, PT
        @P0 BRA.U `(.L_x_0)
        MOV R1, 0x1
        .L_x_0:
        MOV R2, 0x2
    """, threads=96)  # fmt: skip
    assert counts.warps_executed == [3, 3, 3, 2, 3, 3]  # of warp 1 some lanes hold the guard, and all go on
    assert sum(counts.divergent_warps) == 0


def test_the_address_of_a_table_that_the_program_brings_is_unknown() -> None:
    machine, counts, _ = run("ULDC.64 UR6, c[0x4][0x10]\nMOV R2, UR6\nMOV R3, UR7\nLDG.E R1, desc[UR4][R2.64]")
    found = machine.read_register("R2")
    assert isinstance(found, UnknownValue)
    assert machine.input_names.names_in(found.missing_inputs) == ("constant bank 0x4",)
    assert not counts.out_of_bounds


def test_parts_of_a_warp_join_at_a_warpsync_of_all() -> None:
    machine, counts, _ = run("""
        S2R R0, SR_TID.X
        UMOV UR4, 0x3
        ISETP.GE.AND P0, PT, R0, 0x8, PT
        @P0 BRA `(.L_x_0)
        MOV R1, 0x1
        .L_x_0:
        WARPSYNC.ALL
        UIADD3 UR4, UR4, UR4, URZ
        MOV R2, UR4
    """)
    assert counts.warps_executed[5:8] == [2, 1, 1]
    assert value(machine, "R2") == 6  # twice three, not twice six


TENSOR_MEMORY = """
    UMOV UR4, 0x40
    LDS.U8 R8, [UR4+0x1c]
    ISETP.NE.AND P2, PT, R8, RZ, PT
    @P2 BRA `(.L_x_0)
    UMOV UR7, 0x1
    MOV R3, 0x1
    UTCATOMSWS.FIND_AND_SET.ALIGN UP1, UR5, UR7
    S2R R0, SR_TID.X
    ISETP.EQ.AND P0, PT, R0, RZ, PT
    SHF.L.U32 R3, R3, UR5, RZ
    @P0 ATOMS.OR RZ, [UR4+0x14], R3
    LDS R4, [UR4+0x14]
    ISETP.NE.AND P1, PT, R4, 0x1, PT
    @P1 BRA `(.L_x_0)
    EXIT
    .L_x_0:
    MOV R9, 0x1
"""


def test_columns_of_tensor_memory_are_free_until_they_are_taken() -> None:
    """As kernels for sm_100 ask before they end, and stop where it does not hold."""
    _, counts, ended = run(TENSOR_MEMORY)
    assert not ended
    assert counts.warps_executed[15] == 0


def test_a_guard_that_is_unknown_in_lanes_that_are_off_costs_nothing() -> None:
    code = """
        LDC.64 R2, c[0x0][0x210]
        S2R R0, SR_TID.X
        ISETP.GE.AND P1, PT, R0, 0x10, PT
        @!P1 ISETP.GE.AND P5, PT, R0, 0x4, PT
        @!P1 LDGSTS.E [R0], desc[UR4][R2.64], P5
    """
    _, counts, _ = run(code, tensors={"x": Tensor((32,), "i32")})
    assert not counts.missing_inputs
    _, counts, _ = run(code.replace("@!P1 LDGSTS", "LDGSTS"), tensors={"x": Tensor((32,), "i32")})
    assert counts.missing_inputs


def test_lanes_read_a_table_of_constants_each_at_its_own_place() -> None:
    """As warps that do different work find where to branch, on sm_100."""
    code = "S2R R0, SR_TID.X\nSHF.R.U32.HI R0, RZ, 0x3, R0\nSHF.L.U32 R0, R0, 0x2, RZ\nMOV R1, c[0x2][R0]"
    machine, _, _ = run(code, constants={2: bytes(range(16))})
    words = [0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C]
    assert value(machine, "R1") == [[word for word in words for _ in range(8)]]
    machine, _, _ = run(code, constants={2: bytes(range(8))})
    assert isinstance(machine.read_register("R1"), UnknownValue)


def test_what_runs_before_a_spin_is_counted_and_what_may_run_after_it_is_not() -> None:
    code = """
        LDC.64 R2, c[0x0][0x210]
        ISETP.NE.AND P1, PT, RZ, RZ, PT
        @P1 BRA `(.L_x_1)
        .L_x_1:
        LDG.E R4, desc[UR4][R2.64]
        .L_x_0:
        LDG.E.STRONG.GPU R5, desc[UR4][R2.64]
        ISETP.NE.AND P0, PT, R5, 0x1, PT
        @P0 BRA `(.L_x_0)
        STG.E desc[UR4][R2.64], R4
    """
    _, counts, ended = run(code, ctas=3, tensors={"x": Tensor((32,), "int32")})
    assert ended[0].reasons == ("values of x",)
    assert ended[0].uncounted_steps == {4, 5, 6, 7, 8}
    assert counts.warps_executed[:4] == [3, 3, 3, 3]
    _, _, ended = run(code.replace("STG.E desc[UR4][R2.64], R4", "BRX R4 -0x10"), tensors={"x": Tensor((32,), "int32")})
    assert ended[0].uncounted_steps == set(range(9))  # a branch to anywhere
