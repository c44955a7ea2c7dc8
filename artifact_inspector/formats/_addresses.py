"""How instructions compute shared-memory addresses, and which barriers they initialise.

Triton uses one symbol for a block's shared memory, `global_smem`, in LLVM IR and in PTX. Tensor-level IR has
allocations and views of them.

Source: PTX ISA, `mbarrier.init`; LLVM Language Reference Manual, `getelementptr`.
"""

from __future__ import annotations

import re

from artifact_inspector.model import Instruction
from artifact_inspector.model.address import AddressRole, AddressStep, SharedLocation

_INTEGER = re.compile(r"(?<=, )-?\d{1,18}(?=,|$)")
_SHARED = re.compile(r"global_smem(?:, i\d+ (-?\d{1,18})|\+(\d{1,18}))?")
_INDEX = re.compile(r"getelementptr (?:inbounds |nuw |nusw )*(i\d+|\[8 x i8\]),.* i\d+ (-?\d{1,18}|%)[^,)]*$")
_ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "[8 x i8]": 8}
_INITIALISES = re.compile(r"mbarrier\.init\S* \[\s*([^\]\s]+)\s*\]")
_ALLOCATES = re.compile(r"\w+\.(?:local_alloc|alloc_mbarrier|alloc_tensor)$")
_VIEWS = re.compile(r"\b\w+\.(?:memdesc_|extract_slice)")
_SAME = re.compile(r"(?:mov|cvta?)\.|(?:bitcast|addrspacecast|ptrtoint|inttoptr|freeze|[sz]ext|trunc|phi)$")
_SUM = re.compile(r"(?:add|or|mad)\.|(?:add|or|getelementptr)$")


class _SharedAddresses:
    """Shared-memory addresses of tensor-level IR, LLVM IR and PTX, whose spellings do not overlap."""

    def shared_location(self, operand: str) -> SharedLocation | None:
        """The shared-memory location that an operand names; None for any other value."""
        match = _SHARED.search(operand)
        return None if match is None else _location_of_match(match, operand)

    def address_step(self, instruction: Instruction) -> AddressStep | None:
        """How an instruction computes an address; None for an instruction that computes none."""
        opcode, text = instruction.opcode, instruction.text
        if _ALLOCATES.match(opcode) is not None:
            return AddressStep(AddressRole.ALLOCATION)
        reads = instruction.operands.reads
        if _VIEWS.match(opcode) is not None:
            return AddressStep(AddressRole.SAME, reads[:1])
        locations = tuple(_location_of_match(match, match[0]) for match in _SHARED.finditer(text))
        if _SAME.match(opcode) is not None:
            return AddressStep(AddressRole.SAME, reads, locations)
        if _SUM.match(opcode) is None:
            return None
        return AddressStep(AddressRole.SUM, reads, locations, _added_bytes(opcode, text))

    def initialised_barrier(self, instruction: Instruction) -> str | None:
        """The operand that names the barrier initialised by an instruction."""
        match = _INITIALISES.search(instruction.text)
        if match is None:
            return None
        # In inline assembly the operand is a number, and the barrier is the only address after it.
        barrier = _SHARED.search(instruction.text, match.end())
        return match[1] if barrier is None else barrier[0]


def _location_of_match(match: re.Match[str], operand: str) -> SharedLocation:
    return SharedLocation(int(match[1] or match[2] or 0), "%" in operand)


def _added_bytes(opcode: str, text: str) -> int | None:
    """The constant bytes added by a sum."""
    if opcode == "getelementptr":
        match = _INDEX.search(text)
        size = None if match is None else _ELEMENT_BYTES.get(match[1])
        if match is None or size is None:
            return None
        return int(match[2]) * size if match[2] != "%" else 0
    return 0 if opcode.startswith("mad") else sum(int(number) for number in _INTEGER.findall(text))


ADDRESSES = _SharedAddresses()
