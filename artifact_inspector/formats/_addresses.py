"""How instructions compute shared-memory addresses, and which barriers they initialise.

Triton uses one symbol for a block's shared memory, `global_smem`, in LLVM IR and in PTX. Tensor-level IR has
allocations and views of them.

Source: PTX ISA, `mbarrier.init`; LLVM Language Reference Manual, `getelementptr`.
"""

from __future__ import annotations

import re

from artifact_inspector.model import Instruction
from artifact_inspector.model.address import AddressRole, AddressStep, SharedPlace

_INTEGER = re.compile(r"(?<=, )-?\d{1,18}(?=,|$)")
_SHARED = re.compile(r"global_smem(?:, i\d+ (-?\d{1,18})|\+(\d{1,18}))?")
_INDEX = re.compile(r"getelementptr (?:inbounds |nuw |nusw )*(i\d+|\[8 x i8\]),.* i\d+ (-?\d{1,18}|%)[^,)]*$")
_ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "[8 x i8]": 8}
_INITIALISES = re.compile(r"mbarrier\.init\S* \[\s*([^\]\s]+)\s*\]")
_ALLOCATES = re.compile(r"\w+\.(?:local_alloc|alloc_mbarrier|alloc_tensor)$")
_VIEWS = re.compile(r"\b\w+\.(?:memdesc_|extract_slice)")
_SAME = re.compile(r"(?:mov|cvta?)\.|(?:bitcast|addrspacecast|ptrtoint|inttoptr|freeze|[sz]ext|trunc|phi)$")
_SUM = re.compile(r"(?:add|or|mad)\.|(?:add|or|getelementptr)$")


class _Addresses:
    """Shared-memory addresses of tensor-level IR, LLVM IR and PTX, whose spellings do not overlap."""

    def place(self, operand: str) -> SharedPlace | None:
        """The shared-memory location that an operand names; None for any other value."""
        found = _SHARED.search(operand)
        return None if found is None else _place(found, operand)

    def step(self, instruction: Instruction) -> AddressStep | None:
        """How an instruction computes an address; None for an instruction that computes none."""
        opcode, text = instruction.opcode, instruction.text
        if _ALLOCATES.match(opcode) is not None:
            return AddressStep(AddressRole.ALLOCATION)
        reads = instruction.operands.reads
        if _VIEWS.match(opcode) is not None:
            return AddressStep(AddressRole.SAME, reads[:1])
        places = tuple(_place(found, found[0]) for found in _SHARED.finditer(text))
        if _SAME.match(opcode) is not None:
            return AddressStep(AddressRole.SAME, reads, places)
        if _SUM.match(opcode) is None:
            return None
        return AddressStep(AddressRole.SUM, reads, places, _added(opcode, text))

    def initialised(self, instruction: Instruction) -> str | None:
        """The operand that names the barrier initialised by an instruction."""
        found = _INITIALISES.search(instruction.text)
        if found is None:
            return None
        # In inline assembly the operand is a number, and the barrier is the only address after it.
        shared = _SHARED.search(instruction.text, found.end())
        return found[1] if shared is None else shared[0]


def _place(found: re.Match[str], operand: str) -> SharedPlace:
    return SharedPlace(int(found[1] or found[2] or 0), "%" in operand)


def _added(opcode: str, text: str) -> int | None:
    """The constant bytes added by a sum."""
    if opcode == "getelementptr":
        found = _INDEX.search(text)
        size = None if found is None else _ELEMENT_BYTES.get(found[1])
        if found is None or size is None:
            return None
        return int(found[2]) * size if found[2] != "%" else 0
    return 0 if opcode.startswith("mad") else sum(int(number) for number in _INTEGER.findall(text))


ADDRESSES = _Addresses()
