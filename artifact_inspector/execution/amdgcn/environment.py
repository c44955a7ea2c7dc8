"""What a launch provides to AMDGCN: kernel arguments and initial registers.

**Source** LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import DecodedProgram
from artifact_inspector.execution.interpreter.values import FULL, InputNames, Value
from artifact_inspector.execution.launch import Argument, KernelLaunch, encode_argument
from artifact_inspector.formats.amdgcn.kernel import InitialState

ARGUMENT_SEGMENT = 0x6000_0000_0000
"""Base address of the kernel argument segment, chosen below every tensor."""


class AmdgcnEnvironment:
    """Kernel arguments and initial registers of a kernel.

    Args:
        beginning: initial state of the kernel.
        launch: with an address for every tensor.
        parameters: name and value of each parameter, in order; None if it was not given.
    """

    def __init__(
        self,
        program: DecodedProgram,
        beginning: InitialState,
        launch: KernelLaunch,
        parameters: Sequence[tuple[str, Argument]],
        threads: int,
        names: InputNames,
    ) -> None:
        self.program, self.beginning, self.launch, self.names = program, beginning, launch, names
        size = max((a.offset + a.size for a in beginning.arguments), default=0)
        self._bytes = bytearray(size)
        self._missing_bytes = dict.fromkeys(range(size), "hidden arguments from the runtime")
        self._argument_bytes = {at for a in beginning.arguments for at in range(a.offset, a.offset + a.size)}
        parameter_values = iter(parameters)
        for argument in beginning.arguments:
            if argument.is_hidden:
                self._put_hidden(argument.kind, argument.offset, argument.size, threads)
            else:
                self._put(argument.offset, argument.size, *next(parameter_values, ("an argument", None)))

    def _put_hidden(self, kind: str, offset: int, size: int, threads: int) -> None:
        axis = "xyz".find(kind[-1])
        if kind.startswith("hidden_block_count_"):
            self._put(offset, size, kind, self.launch.grid[axis])
        elif kind.startswith("hidden_group_size_"):
            self._put(offset, size, kind, threads if axis == 0 else 1)
        elif kind.startswith(("hidden_remainder_", "hidden_global_offset_", "hidden_dynamic_lds_size")):
            self._put(offset, size, kind, 0)

    def _put(self, offset: int, size: int, name: str, value: Argument) -> None:
        encoded = encode_argument(value, size)
        if encoded is None:
            self._missing_bytes.update(dict.fromkeys(range(offset, offset + size), name))
        else:
            self._bytes[offset : offset + size] = encoded
            self._missing_bytes = {at: n for at, n in self._missing_bytes.items() if not offset <= at < offset + size}

    def arguments(self, address: int, size: int) -> list[Value] | None:
        """Words of the kernel argument segment; None if the address is outside of it.

        Bytes between arguments and after the last one are padding; nothing depends on them.
        """
        start = address - ARGUMENT_SEGMENT
        if not 0 <= start < max(len(self._bytes), 1):
            return None
        return [self._argument_word(at) for at in range(start, start + max(size, 4), 4)]

    def _argument_word(self, offset: int) -> Value:
        missing = [byte for byte in range(offset, offset + 4) if byte in self._missing_bytes]
        if any(byte in self._argument_bytes for byte in missing):
            return self.names.unknown_value(self._missing_bytes[missing[0]])
        return int.from_bytes(self._bytes[offset : offset + 4].ljust(4, b"\0"), "little")

    def initialize(self, machine: Machine) -> None:
        """Set the registers that the hardware initializes, and the entry point."""
        registers, beginning = machine.registers, self.beginning
        registers["exec_lo"], registers["exec_hi"] = FULL, FULL if machine.warp_size == 64 else 0
        registers["scc"] = False
        threads = np.arange(machine.threads, dtype=np.int64).reshape(1, -1)
        registers["v0"] = threads
        if beginning.kernarg_register is not None:
            registers[f"s{beginning.kernarg_register}"] = ARGUMENT_SEGMENT & FULL
            registers[f"s{beginning.kernarg_register + 1}"] = ARGUMENT_SEGMENT >> 32
        count, first, at = beginning.preloaded_arguments
        for word_index in range(count):
            registers[f"s{at + word_index}"] = self._argument_word(4 * (first + word_index))
        x, y, _ = self.launch.grid
        ctas = machine.ctas.reshape(-1, 1)
        coordinates = [
            int(values[0, 0]) if len(values) == 1 else values for values in (ctas % x, ctas // x % y, ctas // (x * y))
        ]
        for axis, name in beginning.workgroup_registers.items():
            registers[name] = coordinates[axis]
        registers["ttmp9"] = coordinates[0]
        registers["ttmp8"] = threads // machine.warp_size << 25  # wave number in its workgroup; no other bits are used
        registers["ttmp7"] = coordinates[1] | coordinates[2] << 16
        machine.group.pc = machine.program.entry_step
