"""Kinds of SASS's opcodes, Volta and later.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes without their semantics; each row was
checked with the PTX that it was compiled from.
"""

from __future__ import annotations

from functools import lru_cache

from artifact_inspector.formats._format import OpcodeTable
from artifact_inspector.model import EventKind

_BASE_OPCODES = {
    EventKind.GLOBAL_LOAD: "LD LDG LDGMC TEX TLD TLD4 TXD SULD",
    EventKind.ASYNC_COPY: "LDGSTS UTMALDG UBLKCP",
    EventKind.COMMIT: "LDGDEPBAR ARRIVES UTMACMDFLUSH UTCBAR SYNCS.ARRIVE",
    EventKind.WAIT: "DEPBAR SYNCS.PHASECHK WARPGROUP.DEPBAR",
    EventKind.SHARED_LOAD: "LDS LDSM",
    EventKind.SHARED_STORE: "STS STSM",
    EventKind.MATRIX: """
        HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA
    """,
    EventKind.FLOAT: """
        FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FHADD FHFMA FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSET FSETP FSWZADD MUFU
        HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 VHMNMX DADD DFMA DMUL DMNMX DSET DSETP IDP
        IDP4A QADD4 QFMA4 QMUL4 UFADD UFFMA UFMNMX UFMUL UFSET UFSETP
    """,
    EventKind.BARRIER: "BAR UCGABAR_WAIT",
    EventKind.GLOBAL_STORE: "ST STG SUST UTMASTG UBLKCP.G.S USTGR",
    EventKind.ATOMIC: """
        ATOM ATOMG ATOMS RED REDG REDAS REDS STAS SUATOM SURED UREDGR UTMAREDG UBLKRED
    """,
    EventKind.LOCAL_LOAD: "LDL",
    EventKind.LOCAL_STORE: "STL",
    EventKind.SCALAR_LOAD: "LDC LDCU ULDC",
    EventKind.SHUFFLE: "SHFL VOTE VOTEU MATCH REDUX CREDUX MOVM",
    EventKind.BRANCH: "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BPT RTT",
    EventKind.INTEGER: """
        BMSK BREV FLO IABS IADD IADD3 IADD32I IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3 LOP32I POPC
        SHF SHL SHR SGXT VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 PLOP3 PSETP QSPC UBMSK UBREV UCLEA UFLO UIABS
        UIADD3 UIMAD UIMNMX UISETP ULEA ULOP ULOP3 ULOP32I UPLOP3 UPOPC UPSETP USGXT USHF USHL USHR UVIADD UVIADDMNMX
        UVIMNMX UVIMNMX3
    """,
    EventKind.MOVE: """
        MOV MOV32I PRMT SEL FSEL P2R R2P S2R S2UR CS2R CS2UR R2UR UR2UP UP2UR UMOV UPRMT USEL UFSEL LEPC IMAD.MOV F2F
        F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP B2R R2B
        HADD2.F32.CONVERSION HFMA2.CONSTANT
    """,
    EventKind.OTHER: """
        NOP BSSY BSYNC BREAK BMOV WARPSYNC WARPSYNC.COLLECTIVE YIELD NANOSLEEP ELECT ENDCOLLECTIVE WARPGROUP
        WARPGROUPSET SYNCS SYNCS.ARRIVE.TRANS64.A1T0 SYNCS.ARRIVE.TRANS64.ART0 SYNCS.ARRIVE.TRANS64.RED.A1T0
        SYNCS.ARRIVE.TRANS64.RED.ART0 BAR.ARV UCGABAR_ARV MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL CCTLT UCCTL UTMACCTL
        UTMAPF UBLKPF USETMAXREG SETMAXREG UTCATOMSWS UTCCP UTCSHIFT LDT LDTM STT STTM UVIRTCOUNT UGETNEXTWORKID
        UMEMSETS ACQBULK PREEXIT PMTRIG SETCTAID GETLMEMBASE SETLMEMBASE RPCMOV TMML TXQ SETSMEMSIZE GENMETADATA
        SPMETADATA
    """,
}
OPCODES = OpcodeTable((kind, " ".join(f"{base}." for base in bases.split())) for kind, bases in _BASE_OPCODES.items())
"""Every prefix and every opcode looked up ends in a dot, so no name matches a longer one."""


@lru_cache(maxsize=4096)
def kind_of(opcode: str) -> EventKind | None:
    """The kind of an opcode; None if its operands decide."""
    return None if opcode.startswith(("HADD2.F32", "HFMA2", "FHADD")) else OPCODES.kind(f"{opcode}.")


@lru_cache(maxsize=4096)
def kind_by_operands(opcode: str, text: str) -> EventKind:
    """Additions of zero are conversions of a half; a product of zero plus an immediate is a constant."""
    operands = text.partition(opcode)[2].split(",")
    if opcode.startswith("HFMA2"):
        if [operand.strip().lstrip("-") for operand in operands[1:3]] == ["RZ", "RZ"]:
            return OPCODES.kind("HFMA2.CONSTANT.")
    elif any("RZ" in operand for operand in operands[1:]):
        return OPCODES.kind("HADD2.F32.CONVERSION.")
    return OPCODES.kind(f"{opcode}.")
