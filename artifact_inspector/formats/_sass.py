"""What single SASS instructions do: control codes, registers, matrix shapes, transfers and waits.

Every function takes the opcode with its modifiers and the text that holds its operands.
"""

from __future__ import annotations

from artifact_inspector.model import Control, Instruction, MatrixOp, Module, Operands, Queue, Transfer, Wait

__all__ = [
    "commit_queue",
    "control",
    "decode",
    "dumped_control",
    "matrix_of",
    "transfer_of",
    "wait_of",
]

_NO_BARRIER = 7


def control(word: int) -> Control:
    """The control code in the second 64-bit word of an instruction (Volta and later).

    **Source** Jia, Maggioni, Staiger, Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
    Microbenchmarking" (2018), section 2.1, has the fields: from bit 105 of the 128 on 4 bits of stall
    cycles, the yield flag, 3 bits each of write and read barrier, 6 of wait mask, 4 of reuse. That a
    cleared flag yields and that 7 stands for no barrier is as triton/tools/disasm.py prints them.
    """
    write, read = word >> 46 & 7, word >> 49 & 7
    return Control(
        word >> 41 & 15,
        not word >> 45 & 1,
        None if write == _NO_BARRIER else write,
        None if read == _NO_BARRIER else read,
        word >> 52 & 63,
        word >> 58 & 15,
    )


def dumped_control(wait: str, read: str, write: str, yields: str, stall: str) -> Control:
    """The control code as Triton writes it: `02:-:1:Y:2`, the mask in decimal, the stall in hexadecimal."""
    return Control(
        int(stall, 16),
        yields == "Y",
        None if write == "-" else int(write),
        None if read == "-" else int(read),
        0 if wait == "--" else int(wait),
        None,
    )


def decode(text: str) -> Operands:
    return Operands((), ())


def transfer_of(opcode: str, text: str) -> Transfer | None:
    return None


def wait_of(instruction: Instruction, module: Module) -> Wait | None:
    return None


def commit_queue(opcode: str, text: str) -> Queue | None:
    return None


def matrix_of(opcode: str) -> MatrixOp | None:
    return None
