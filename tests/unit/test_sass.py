"""SASS: statements, control codes, registers and blocks as NVIDIA's tools print them."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.errors import ParseError
from artifact_inspector.formats._cache_modifiers import has_cache_modifier
from artifact_inspector.formats.sass.parser import FORMAT, parse
from artifact_inspector.model import (
    ControlInfo,
    EventKind,
    Function,
    Instruction,
    MatrixOp,
    Module,
    Queue,
    Stage,
    Transfer,
    WaitOp,
)
from artifact_inspector.model.text import SourceText

NOTHING = Module(Stage.SASS, "k.sass", (), {})
HEAD = """\t.target\tsm_90a
\t.section\t.text.k,"ax",@progbits
        .type           k,@function
        .size           k,(.L_x_9 - k)
k:
.text.k:
"""
END = ["EXIT"]


def written(*statements: str, second: str = "000fe200000001ff") -> str:
    """Statements as `nvdisasm -hex` prints them, marks and labels as they are."""
    address, rows = 0, []
    for statement in statements:
        if statement.startswith("//") or statement.endswith(":"):
            rows.append(f"\t{statement}" if statement.startswith("//") else statement)
        else:
            rows.append(f"        /*{address:04x}*/                   {statement} ;   /* 0x0000000000007918 */")
            rows.append(f"                                            /* 0x{second} */")
            address += 16
    return "\n".join(rows)


def module(*statements: str) -> Module:
    text = f"{HEAD}{written(*statements, *END)}\n.L_x_9:\n"
    return parse(SourceText("k.sass", text), Stage.SASS)


def function(*statements: str) -> Function:
    (only,) = module(*statements).functions
    return only


def one(statement: str) -> Instruction:
    return function(statement).instructions[0]


def edges(found: Function) -> list[tuple[int, ...]]:
    return [block.successors for block in found.blocks]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("LDG.E.EF.128.SYS R24, [R24]", EventKind.GLOBAL_LOAD),
        ("LD.E.64 R2, [R2.64]", EventKind.GLOBAL_LOAD),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R36+0x40], [R38.64], !P2", EventKind.ASYNC_COPY),
        ("UTMALDG.2D [UR4], [UR10]", EventKind.ASYNC_COPY),
        ("UBLKCP.S.G [UR4], [UR10], UR6", EventKind.ASYNC_COPY),
        ("UBLKCP.G.S [UR4], [UR10], UR6", EventKind.GLOBAL_STORE),
        ("LDGDEPBAR", EventKind.COMMIT),
        ("SYNCS.ARRIVE.TRANS64 RZ, [UR12+0x6008], R3", EventKind.COMMIT),  # expects bytes
        ("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ", EventKind.OTHER),  # expects none
        ("SYNCS.EXCH.64 URZ, [UR19], UR4", EventKind.OTHER),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x10], R3", EventKind.WAIT),
        ("DEPBAR.LE SB0, 0x4", EventKind.WAIT),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", EventKind.WAIT),
        ("WARPGROUP.ARRIVE", EventKind.OTHER),
        ("LDSM.16.MT88.4 R20, [R2+UR5+0x200]", EventKind.SHARED_LOAD),
        ("STSM.16.M88.4 [R2], R4", EventKind.SHARED_STORE),
        ("QMMA.16832.F32.E4M3.E4M3 R4, R8, R12, R4", EventKind.MATRIX),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X R4, R8, R12, R4, R1, R2", EventKind.MATRIX),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR17], tmem[UR10], idesc[UR11], !UPT", EventKind.MATRIX),
        ("FFMA2 R96, R28.F32, R22.F32x2.HI_LO, R100.F32x2.HI_LO", EventKind.FLOAT),
        ("MUFU.EX2 R0, R0", EventKind.FLOAT),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", EventKind.BARRIER),
        ("BAR.ARV 0x1, 0x80", EventKind.OTHER),
        ("WARPSYNC.ALL", EventKind.OTHER),
        ("REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R6", EventKind.ATOMIC),
        ("LDL.LU R0, [R1+0x36b0]", EventKind.LOCAL_LOAD),
        ("STL [R1+0x36b0], R61", EventKind.LOCAL_STORE),
        ("ULDC.64 UR8, c[0x0][0x210]", EventKind.SCALAR_LOAD),
        ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", EventKind.MOVE),
        ("IMAD.WIDE R2, R0, R5, c[0x0][0x168]", EventKind.INTEGER),
        ("FSEL R61, -R3, R3, !P1", EventKind.MOVE),
        ("SHFL.BFLY PT, R13, R12, 0x10, 0x1f", EventKind.SHUFFLE),
    ],
)
def test_an_opcode_has_its_kind(statement: str, kind: EventKind) -> None:
    assert one(statement).kind is kind


@pytest.mark.parametrize("opcode", ["LDGX.E", "HMMAX", "FROB"])
def test_an_opcode_that_only_begins_like_one_in_the_table_is_unknown(opcode: str) -> None:
    assert one(f"{opcode} R1, R2").kind is EventKind.UNKNOWN


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("HADD2.F32 R8, -RZ, R4.reuse.H0_H0", EventKind.MOVE),
        ("HADD2.F32 R8, R4.H1_H1, -RZ.H0_H0", EventKind.MOVE),
        ("HADD2.F32 R8, R4.H1_H1, R5.H0_H0", EventKind.FLOAT),
        ("HFMA2.MMA R4, -RZ, RZ, -INF , -INF ", EventKind.MOVE),
        ("HFMA2 R4, R5, R6, -RZ", EventKind.FLOAT),
    ],
)
def test_adding_nothing_to_a_half_is_a_conversion(statement: str, kind: EventKind) -> None:
    assert one(statement).kind is kind


def test_what_never_runs_is_no_load() -> None:
    # ptxas fills places on sm_75 with this one.
    filler = one("@!PT LDS RZ, [RZ]")
    assert (filler.kind, filler.guard) == (EventKind.OTHER, "!PT")


# The upper 23 bits of the second word, cut by hand into reuse (4), wait mask (6), read barrier (3), write
# barrier (3), yield flag (1), stall (4); barrier 111 is none, and a flag of 0 yields. Words of fixtures
# and of the reference kernels, compiled for the architecture named.
HAND = [
    # sm_75
    ("000ee600001ee500", "0000 000000 111 011 1 0011", ControlInfo(3, False, 3, None, 0, 0)),  # LDG.E.U16.SYS
    ("000eae0000001c00", "0000 000000 111 010 1 0111", ControlInfo(7, False, 2, None, 0, 0)),  # LDS.U.128
    ("0c4fe20000000000", "0011 000100 111 111 1 0001", ControlInfo(1, False, None, None, 4, 3)),  # FFMA
    ("0081e2000010e900", "0000 001000 000 111 1 0001", ControlInfo(1, False, None, 0, 8, 0)),  # STG.E.SYS
    ("001e240000001000", "0000 000001 111 000 1 0010", ControlInfo(2, False, 0, None, 1, 0)),  # MUFU.RCP
    ("000fee0000000000", "0000 000000 111 111 1 0111", ControlInfo(7, False, None, None, 0, 0)),  # BAR.SYNC
    # sm_80
    ("0023e2000d101d48", "0000 000010 001 111 1 0001", ControlInfo(1, False, None, 1, 2, 0)),  # LDGSTS
    ("000e2a0000000000", "0000 000000 111 000 1 0101", ControlInfo(5, False, 0, None, 0, 0)),  # LDGDEPBAR
    ("044ff00000001808", "0001 000100 111 111 1 1000", ControlInfo(8, False, None, None, 4, 1)),  # HMMA.16816
    ("000fc20008004200", "0000 000000 111 111 0 0001", ControlInfo(1, True, None, None, 0, 0)),  # LDSM.16.MT88.4
    ("000fe80000000000", "0000 000000 111 111 1 0100", ControlInfo(4, False, None, None, 0, 0)),  # DEPBAR.LE
    ("000fc80003f24070", "0000 000000 111 111 0 0100", ControlInfo(4, True, None, None, 0, 0)),  # ISETP.GT
    # sm_90
    ("000fe60008000818", "0000 000000 111 111 1 0011", ControlInfo(3, False, None, None, 0, 0)),  # HGMMA
    ("0003220008000100", "0000 000000 001 100 1 0001", ControlInfo(1, False, 4, 1, 0, 0)),  # SYNCS.EXCH.64
    ("000e300000000800", "0000 000000 111 000 1 1000", ControlInfo(8, False, 0, None, 0, 0)),  # LDC
    ("001fe200000001ff", "0000 000001 111 111 1 0001", ControlInfo(1, False, None, None, 1, 0)),  # HFMA2.MMA
    ("0007e20008008000", "0000 000000 011 111 1 0001", ControlInfo(1, False, None, 3, 0, 0)),  # UTMALDG.2D
    # sm_100
    ("006fe20008a00000", "0000 000110 111 111 1 0001", ControlInfo(1, False, None, None, 6, 0)),  # LDTM
    ("002e640008000800", "0000 000010 111 001 1 0010", ControlInfo(2, False, 1, None, 2, 0)),  # LDCU
    ("0009e2000b80000d", "0000 000000 100 111 1 0001", ControlInfo(1, False, None, 4, 0, 0)),  # UTCHMMA
    ("000fc80000200000", "0000 000000 111 111 0 0100", ControlInfo(4, True, None, None, 0, 0)),  # FADD2
]


@pytest.mark.parametrize(("word", "bits", "expected"), HAND, ids=[word for word, _, _ in HAND])
def test_a_control_code_stands_in_the_second_word(word: str, bits: str, expected: ControlInfo) -> None:
    assert f"{int(word, 16) >> 41:021b}" == bits.replace(" ", "")
    text = f"{HEAD}{written('NOP', *END, second=word)}\n.L_x_9:\n"
    (only,) = parse(SourceText("k", text), Stage.SASS).functions
    assert only.control_codes == (expected, expected)


def test_text_without_encodings_has_no_control_codes() -> None:
    text = HEAD + "        /*0000*/                   EXIT ;\n.L_x_9:\n"
    (only,) = parse(SourceText("k", text), Stage.SASS).functions
    assert (only.control_codes, len(only.instructions)) == ((), 1)


DUMPED = "Function:copy\n--:-:0:-:1\tS2R R0, SR_TID.X;\n02:-:-:Y:b\t@P0 BRA LBB0;\n--:0:5:-:2\tLDG.E.64 R6, [R4.64];\nLBB0:\n48:-:-:-:5\tEXIT;\n\n"  # fmt: skip


def test_the_text_that_triton_dumps_is_read() -> None:
    (found,) = parse(SourceText("copy.sass", DUMPED), Stage.SASS).functions
    assert (found.name, [x.line for x in found.instructions]) == ("copy", [2, 3, 4, 6])
    # Triton writes the mask in decimal (48 is scoreboards 4 and 5) and the stall in hexadecimal.
    assert found.control_codes == (
        ControlInfo(1, False, 0, None, 0, None),
        ControlInfo(11, True, None, None, 2, None),
        ControlInfo(2, False, 5, 0, 0, None),
        ControlInfo(5, False, None, None, 48, None),
    )
    assert edges(found) == [(2, 1), (2,), ()]


CUOBJDUMP = """
\tcode for sm_80
\t\tFunction : k
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   NOP ;                        /* 0x0000000000007918 */
                                                                /* 0x000fc00000000000 */
        /*0010*/              @!P0 BRA 0x0 ;                    /* 0x0000000000007918 */
                                                                /* 0x000fc00000000000 */
        /*0020*/                   EXIT ;                       /* 0x0000000000007918 */
                                                                /* 0x000fc00000000000 */
\t\t..........
"""


def test_a_branch_to_an_address_makes_a_block_there() -> None:
    found = parse(SourceText("k", CUOBJDUMP), Stage.SASS)
    assert (found.attributes, found.problems) == ({"target": "sm_80"}, ())
    assert edges(found.functions[0]) == [(0, 1), ()]


@pytest.mark.parametrize(
    ("jump", "goes"),
    [
        ("BRA `(.L_x_1)", (2,)),
        ("@P0 BRA `(.L_x_1)", (2, 1)),
        ("@PT BRA `(.L_x_1)", (2,)),
        ("@!PT BRA `(.L_x_1)", (1,)),
        ("BRA.U !UP0, `(.L_x_1)", (2, 1)),
        ("BRA.DIV UR4, `(.L_x_1)", (2, 1)),
        ("@!P3 CALL.REL.NOINC `(.L_x_1)", (2, 1)),  # how ptxas leaves a loop
        ("EXIT", ()),
        ("@P3 EXIT", (1,)),
        ("RET.REL.NODEC R2 `(k)", ()),
        ('BRX R2 -0x1a0   (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)', (2, 3)),
    ],
)
def test_a_jump_ends_a_block(jump: str, goes: tuple[int, ...]) -> None:
    assert edges(function(jump, "NOP", ".L_x_1:", "NOP", ".L_x_2:"))[0] == goes


def test_a_call_and_the_barriers_of_a_warp_end_no_block() -> None:
    text = ["BSSY B0, `(.L_x_1)", "CALL.REL.NOINC `($__internal_0_$trap)", "BSYNC B0", ".L_x_1:", "NOP"]
    assert edges(function(*text))[0] == (1,)


@pytest.mark.parametrize("label", [".L_x_", ".L_"])
def test_what_stands_behind_a_loop_that_a_call_leaves_runs_behind_it(label: str) -> None:
    """Without its own data flow (`-ndf`), `nvdisasm` names labels `.L_1`."""
    loop = (f"{label}1:", "NOP", f"@!P3 CALL.REL.NOINC `({label}2)", f"BRA `({label}1)")
    after = (f"{label}2:", "FADD R0, R1, R2", f"{label}3:", "FMUL R0, R1, R2")
    found = function(f"@P0 BRA `({label}3)", *loop, *after)
    flow = find_control_flow(found)
    places = [flow.position[i] for i, x in enumerate(found.instructions) if x.opcode in ("FADD", "FMUL")]
    assert places == sorted(places)
    assert [sorted(loop.blocks) for loop in flow.loops] == [[1, 2]]


def test_a_jump_to_nowhere_is_a_problem() -> None:
    assert module("BRA `(.L_x_7)").problems == ("line 7: no label .L_x_7 in function k",)
    assert module("BRX R2 -0x1a0").problems == ("line 7: target of BRX is unknown",)


def test_functions_of_one_section_are_told_apart() -> None:
    inner = "        .type           $__internal_0_$trap,@function\n$__internal_0_$trap:\n"
    more = "        /*0020*/                   RET.REL.NODEC R2 `(k) ;\n"
    text = f"{HEAD}{written('NOP', 'EXIT')}\n{inner}{more}.L_x_9:\n"
    found = parse(SourceText("k", text), Stage.SASS).functions
    assert [(x.name, x.line, len(x.instructions)) for x in found] == [("k", 5, 2), ("$__internal_0_$trap", 12, 1)]


def test_marks_of_inlined_calls_make_a_chain_innermost_first() -> None:
    found = function(
        '//## File "/s/standard.py", line 43 inlined at "/s/helper.py", line 7',
        '//## File "/s/helper.py", line 7 inlined at "/s/k.py", line 84',
        '//## File "/s/k.py", line 84',
        "NOP",
        "FADD R0, R1, R2",
        '//## File "/s/k.py", line 90',
        "NOP",
    )
    chains = [[(f.file, f.line) for f in x.location or ()] for x in found.instructions[:3]]
    inlined = [("/s/standard.py", 43), ("/s/helper.py", 7), ("/s/k.py", 84)]
    assert chains == [inlined, inlined, [("/s/k.py", 90)]]


@pytest.mark.parametrize(
    ("statement", "results", "reads"),
    [
        ("@!P1 LDG.E.128 R4, desc[UR8][R12.64+0x10]", "R4 R5 R6 R7", "P1 UR8 UR9 R12 R13"),
        ("LDG.E.SYS R0, [R2]", "R0", "R2 R3"),  # .E: the address has 64 bits
        ("LDS.U.128 R16, [R21+UR4+0x4230]", "R16 R17 R18 R19", "R21 UR4"),
        ("STG.E.64 [R2.64], R6", "", "R2 R3 R6 R7"),
        ("LDGSTS.E.BYPASS.128 [R80+0x10], desc[UR18][R4.64], !P0", "", "R80 UR18 UR19 R4 R5 P0"),
        ("LDSM.16.MT88.2 R20, [R2]", "R20 R21", "R2"),
        # m16n8k16: 256 halves of a, 128 of b, 128 floats of c and d over 32 threads
        ("HMMA.16816.F32 R8, R36.reuse, R4, RZ", "R8 R9 R10 R11", "R36 R37 R38 R39 R4 R5"),
        ("DMMA.8x8x4 R4, R8, R10, R4", "R4 R5 R6 R7", "R8 R9 R10 R11 R4 R5 R6 R7"),
        ("IMAD.WIDE.U32 R2, P0, R0, R5, R8", "R2 R3 P0", "R0 R5 R8 R9"),
        ("IADD3 R4, P0, P1, R2, c[0x0][0x160], RZ", "R4 P0 P1", "R2"),
        ("IADD3.X R5, RZ, R5, RZ, P0, !PT", "R5", "R5 P0"),
        ("ISETP.GE.AND P1, PT, R0.reuse, UR7, !P3", "P1", "R0 UR7 P3"),
        ("LOP3.LUT P3, RZ, R16, 0x1f, RZ, 0xc0, !PT", "P3", "R16"),
        ("SHFL.IDX PT, R3, R2, R4, 0x1f", "R3", "R2 R4"),
        ("DMUL R2, |R4|, -c[0x2][0x0]", "R2 R3", "R4 R5"),
        ("FFMA2 R96, R28.F32, R22.F32x2.HI_LO, R94.F32x2.HI_LO", "R96 R97", "R28 R22 R23 R94 R95"),
        ("F2F.F32.F64 R0, R2", "R0", "R2 R3"),
        ("I2F.F64.S64 R2, R4", "R2 R3", "R4 R5"),
        ("CS2R R4, SRZ", "R4 R5", ""),
        ("R2P PR, R0, 0x3", "P0 P1", "R0"),
        ("R2P PR, R0, 0x7f", "P0 P1 P2 P3 P4 P5 P6", "R0"),
        ("P2R R1, PR, R0, 0x7f", "R1", "P0 P1 P2 P3 P4 P5 P6 R0"),
        ("UTMALDG.2D [UR8], [UR4]", "", "UR8 UR9 UR10 UR11 UR4 UR5"),
        ("UTMASTG.2D [UR8], [UR4]", "", "UR8 UR9 UR10 UR4 UR5"),
        ("UBLKCP.S.G [UR4], [UR8], UR6", "", "UR4 UR5 UR8 UR9 UR6"),
        ("UBLKCP.G.S [UR8], [UR4], UR6", "", "UR8 UR9 UR4 UR6"),
        ("LDG.E.ENL2.256 R8, R20, desc[UR10][R2.64]", "R8 R9 R10 R11 R20 R21 R22 R23", "UR10 UR11 R2 R3"),
        ("MOVM.U4TO8.M832 R28, R37", "R28 R29", "R37"),
        ("LDC.64 R2, c[0x2][R4]", "R2 R3", "R4"),
        ("BRA `(.L_x_9)", "", ""),
        ("DEPBAR.LE SB0, 0x1, {5,4}", "", ""),
    ],
)
def test_registers_are_spelled_out_one_by_one(statement: str, results: str, reads: str) -> None:
    found = one(statement).operands
    assert (found.results, found.reads) == (tuple(results.split()), tuple(reads.split()))


def test_a_warpgroup_product_reads_and_writes_its_share_of_the_tile() -> None:
    found = one("HGMMA.64x128x16.F32 R24, R4, gdesc[UR8].tnspB, R24, gsb0").operands
    tile = tuple(f"R{number}" for number in range(24, 88))  # 64 × 128 floats over 128 threads
    # a in registers: 64 × 16 halves over 128 threads
    assert found.results == tile
    assert found.reads == ("R4", "R5", "R6", "R7", "UR8", "UR9", "UR10", "UR11", *tile)


@pytest.mark.parametrize("word", ["EF", "EL", "LU", "EU", "NA", "STRONG.GPU", "STRONG.SYS", "WEAK", "CONSTANT", "MMIO"])
def test_the_policy_of_an_access_is_the_word_of_its_opcode(word: str) -> None:
    transfer = FORMAT.transfer(one(f"LDG.E.{word}.128 R4, [R2.64]"), NOTHING)
    assert transfer is not None
    assert transfer.cache == (word,)
    policies = {"EF": ["evict_first", "cs"], "EL": ["evict_last"], "STRONG.GPU": ["cg"]}
    requested = [name for name in ("evict_first", "evict_last", "cs", "cg") if has_cache_modifier(name, transfer.cache)]
    assert sorted(requested) == sorted(policies.get(word, []))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("LDG.E.EF.128.SYS R24, [R24]", Transfer(16, Queue.USE, ("EF",))),
        ("LDG.E.U16.CONSTANT R4, [R2.64]", Transfer(2, Queue.USE, ("CONSTANT",))),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R3], [R4.64]", Transfer(16, Queue.GROUP, ("BYPASS", "LTC128B"))),
        ("UTMALDG.2D [UR8], [UR4]", Transfer(None, Queue.PHASE, is_per_block=True)),
        ("UTMASTG.2D [UR8], [UR4]", Transfer(None, Queue.STORES, is_per_block=True)),
        ("STG.E [R2.64], R4", Transfer(4, None)),
        ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R8", Transfer(16, None, ("STRONG.GPU",))),
        ("REDG.E.ADD.BF16x8.RN.STRONG.GPU desc[UR4][R2.64], R8", Transfer(16, None, ("STRONG.GPU",))),
        ("REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R6", Transfer(8, None, ("STRONG.GPU",))),
        ("ATOMG.E.ADD.64.STRONG.GPU PT, R2, [R4.64], R6", Transfer(8, Queue.USE, ("STRONG.GPU",))),
        ("ATOMS.OR RZ, [UR4], R2", None),
        ("LDS R2, [R4]", None),
    ],
)
def test_a_memory_operation_says_what_it_moves(statement: str, expected: Transfer | None) -> None:
    assert FORMAT.transfer(one(statement), NOTHING) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("HMMA.16816.F32 R8, R4, R2, R8", MatrixOp("HMMA", "mma", 16, 8, 16, 1, "f16×f16→f32", "warp")),
        ("HMMA.1688.F32.TF32 R8, R4, R2, R8", MatrixOp("HMMA", "mma", 16, 8, 8, 1, "tf32×tf32→f32", "warp")),
        ("HMMA.884.F16.F16.STEP1 R8, R4, R2, R8", MatrixOp("HMMA", "mma", 8, 8, 4, 2, "f16×f16→f16", "warp")),
        ("IMMA.16832.S8.S8.SAT R8, R4.ROW, R2.COL, R8", MatrixOp("IMMA", "mma", 16, 8, 32, 1, "s8×s8→s32", "warp")),
        ("DMMA.884 R8, R4, R2, R8", MatrixOp("DMMA", "mma", 8, 8, 4, 1, "f64×f64→f64", "warp")),
        (
            "QGMMA.64x64x32.F32.E5M2.E5M2 R24, gdesc[UR4], R24",
            MatrixOp("QGMMA", "wgmma", 64, 64, 32, 1, "e5m2×e5m2→f32", "warpgroup"),
        ),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR17], tmem[UR10], idesc[UR11], !UPT", None),
    ],
)
def test_a_matrix_operation_says_its_shape_and_types(statement: str, expected: MatrixOp | None) -> None:
    assert FORMAT.matrix(one(statement), NOTHING) == expected


def test_a_wait_on_a_scoreboard_waits_for_what_was_committed_to_it() -> None:
    text = f"{HEAD}{written('LDGDEPBAR', second='000e2a0000000000')}\n"  # write barrier 0
    text += written("UTMACMDFLUSH", second="0003e20000000000") + "\n"  # read barrier 1
    text += written("DEPBAR.LE SB0, 0x4", "DEPBAR.LE SB1, 0x0", "DEPBAR.LE SB2, 0x0", *END) + "\n.L_x_9:\n"
    found = parse(SourceText("k", text), Stage.SASS)
    waits = [FORMAT.wait(x, found) for x in found.functions[0].instructions if x.kind is EventKind.WAIT]
    assert waits == [WaitOp("DEPBAR.LE", 4, Queue.GROUP), WaitOp("DEPBAR.LE", 0, Queue.STORES), None]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", WaitOp("WARPGROUP.DEPBAR.LE", 1, Queue.MATRIX)),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x10], R3", WaitOp("SYNCS.PHASECHK", None, Queue.PHASE, "UR4+0x10")),
        ("DEPBAR {5,4,3,2,1,0}", None),
    ],
)
def test_a_wait_says_what_it_waits_for(statement: str, expected: WaitOp | None) -> None:
    assert FORMAT.wait(one(statement), NOTHING) == expected


@pytest.mark.parametrize(
    ("statement", "queue"),
    [
        ("LDGDEPBAR", Queue.GROUP),
        ("UTMACMDFLUSH", Queue.STORES),
        ("UTCBAR [UR4], URZ", Queue.MATRIX),
        ("SYNCS.ARRIVE.TRANS64 RZ, [UR12+0x6008], R3", Queue.PHASE),
        ("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR12], RZ", None),
        ("HGMMA.64x32x16.F32 R24, gdesc[UR12], R24, gsb0", Queue.MATRIX),
        ("HGMMA.64x32x16.F32 R24, gdesc[UR12], R24", None),
    ],
)
def test_a_commit_closes_a_group_of_its_queue(statement: str, queue: Queue | None) -> None:
    assert FORMAT.commit(one(statement)) is queue


def test_json_is_read_as_the_listing_that_it_stands_for() -> None:
    # Cut from what nvdisasm 13.1 printed for a copy loop on sm_90.
    said = """[{"ELF":{},"SM":{"version":{"major":9,"minor":0}}},[{"function-name":"k","start":0,"length":80,
      "sass-instructions":[{"opcode":"LDG.E.128","operands":"R8desc[UR8][R8.64]"},
      {"predicate":"@!P0","opcode":"BRA","operands":"0x0","other-attributes":{"control-flow":"True"}},
      {"opcode":"LDGSTS.E.64","operands":"desc[UR8][R2.64],!P1[R38+0x800]"},
      {"opcode":"LDGSTS.E.BYPASS.128","operands":"P5[R85][R8.64]"},
      {"opcode":"EXIT","other-attributes":{"control-flow":"True"}}]}]]"""
    listing = FORMAT.listing(said)
    assert "/*0010*/                   @!P0 BRA 0x0 ;" in listing
    found = parse(SourceText("k.sass", listing), Stage.SASS)
    (function,) = found.functions
    assert found.attributes == {"target": "sm_90"}
    assert function.name == "k"
    assert [x.text for x in function.instructions] == [
        "LDG.E.128 R8, desc[UR8][R8.64]", "@!P0 BRA 0x0", "LDGSTS.E.64 [R38+0x800], desc[UR8][R2.64], !P1",
        "LDGSTS.E.BYPASS.128 [R85], [R8.64], P5", "EXIT",
    ]  # fmt: skip
    assert [block.successors for block in function.blocks] == [(0, 1), ()]
    assert function.control_codes == ()


@pytest.mark.parametrize("text", ["[1, {}]", '[[{"sass-instructions": 3}]]', "[" * 100_000, "[{", "  .text"])
def test_what_is_no_json_of_a_disassembly_is_left_as_it_is(text: str) -> None:
    assert FORMAT.listing(text) == text


def test_a_file_that_is_cut_off_is_not_whole() -> None:
    text = f"{HEAD}{written('NOP', *END, 'NOP', 'FADD R0, R1, R2')}"
    assert not parse(SourceText("k", text), Stage.SASS).is_complete
    text = f"{HEAD}{written('NOP', *END)}"  # ends in an exit, but before the label that `.size` names
    assert not parse(SourceText("k", text), Stage.SASS).is_complete
    assert module("NOP").is_complete


def test_a_line_that_is_no_instruction_is_named() -> None:
    text = f"{HEAD}        /*0000*/    what is this\n{written(*END)}\n.L_x_9:\n"
    found = parse(SourceText("k", text), Stage.SASS)
    assert found.problems == ("line 7: not an instruction: '/*0000*/    what is this'",)


def test_a_file_without_an_instruction_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"^k\.sass:1:1: no SASS instruction"):
        parse(SourceText("k.sass", "nvdisasm fatal : no"), Stage.SASS)


@pytest.mark.parametrize("text", [HEAD + "\t.headerflags\t@\"EF_CUDA_SM90\"\n", CUOBJDUMP, DUMPED])  # fmt: skip
def test_a_disassembly_is_recognised_by_its_head(text: str) -> None:
    assert FORMAT.sniff(text)
    assert not FORMAT.sniff(".version 8.4\n.target sm_80\n")


@pytest.mark.parametrize(
    "statement",
    ["HGMMA.64x99999999x16.F32 R24, gdesc[UR4], R24", f"FADD R{'9' * 5000}, R1, R2", "DEPBAR.LE SB0, " + "9" * 5000],
)
def test_a_number_beyond_all_sense_names_nothing(statement: str) -> None:
    odd = one(statement)
    assert len(odd.operands.results) <= 1
    assert FORMAT.matrix(odd, NOTHING) is None
    assert FORMAT.wait(odd, NOTHING) is None
