"""What a launch provides to SASS: constant banks and special registers.

**Source** offsets of constant bank 0: `.nv.info` of cubins that Triton 2.1 to 3.9 made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import DecodedProgram
from artifact_inspector.execution.interpreter.tensor_maps import PARAMETER_WINDOW, TensorDescriptor
from artifact_inspector.execution.interpreter.values import FULL, InputNames, IntArray, Value, Word
from artifact_inspector.execution.launch import Argument, KernelLaunch, encode_argument

_CLUSTER_ARCHS = (90,)
_CLUSTER_RECIPROCALS = 0x150
"""Offset of the reciprocals of the cluster dimensions, as float32."""
_STACK_ADDRESS = 0x00FF_F000
"""Address of the local memory stack, chosen by this tool."""
_TENSOR_COLUMN_ADDRESSES = (0x54, 0x58, 0x5C)
"""Shared memory addresses where code for sm_100 keeps the allocated columns of tensor memory, and where
Triton 3.7 keeps the flag that forbids further allocation, which traps."""


class _ConstantBankLayout:
    """Offsets in constant bank 0 by architecture, taken from cubins of Triton 2.1 to 3.9."""

    def __init__(self, arch: int) -> None:
        newest = arch >= 100
        self.parameters = 0x380 if newest else 0x210 if arch >= 90 else 0x160
        self.threads, self.grid = (0x360, 0x370) if newest else (0x0, 0xC)
        self.stack = 0x37C if newest else 0x28
        self.window = 0x348 if newest else 0x198
        """The address of the bank itself, for tensor maps among the parameters."""


def default_parameter_layout(arch: int, types: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Offset in constant bank 0 and bytes of each parameter without a cubin: in order, naturally aligned.

    Args:
        arch: 75, 90 …
        types: in Triton's spelling.
    """
    offset, layout = _ConstantBankLayout(arch).parameters, []
    for name in types:
        bits = (
            int("".join(letter for letter in name if letter.isdigit()) or 32) if not name.startswith(("!", "*")) else 64
        )
        size = 128 if name.startswith("!tt") else max(1, bits // 8)
        align = 64 if size == 128 else size
        offset = -(-offset // align) * align
        layout.append((offset, size))
        offset += size
    return tuple(layout)


class SassEnvironment:
    """Constants and special registers of one launch.

    Args:
        launch: with an address for every tensor.
        parameters: name and value of each parameter, in order; None if it was not given.
        descriptors: offset in constant bank 0 → its descriptor.
    """

    def __init__(
        self,
        program: DecodedProgram,
        launch: KernelLaunch,
        parameters: Sequence[tuple[str, Argument]],
        threads: int,
        names: InputNames,
        descriptors: Mapping[int, TensorDescriptor] | None = None,
    ) -> None:
        self.program, self.launch, self.names, self.descriptors = program, launch, names, descriptors or {}
        layout = _ConstantBankLayout(program.arch_number)
        self.first_parameter = layout.parameters
        """Offset of the first parameter in constant bank 0."""
        self._bank = bytearray(0x1000)
        self._missing_bytes: dict[int, str | None] = {}
        """Byte → None if it is known, otherwise the name of the missing input."""
        for axis, extent in enumerate((threads, 1, 1)):
            self._put(layout.threads + 4 * axis, extent, 4)
        for axis, extent in enumerate(launch.cta_grid):
            self._put(layout.grid + 4 * axis, extent, 4)
        if program.arch_number in _CLUSTER_ARCHS:
            for axis, extent in enumerate((launch.cluster_size, 1, 1)):
                self._put(_CLUSTER_RECIPROCALS + 4 * axis, 1 / extent, 4)
        self._put(layout.stack, _STACK_ADDRESS, 4)
        self._put(layout.window, PARAMETER_WINDOW, 8)
        for (offset, size), (name, argument) in zip(program.parameters, parameters, strict=False):
            self._put(offset, argument, size, name)

    def _put(self, offset: int, argument: Argument, size: int, name: str = "") -> None:
        encoded = encode_argument(argument, size)
        if encoded is not None:
            self._bank[offset : offset + size] = encoded
        self._missing_bytes |= dict.fromkeys(range(offset, offset + size), name if encoded is None else None)

    def initialize(self, machine: Machine) -> None:
        """Mark all columns of tensor memory as free, if the program allocates any."""
        if any(step.opcode.startswith("UTCATOMSWS") for step in machine.program.steps):
            zeros = np.zeros((machine.rows, len(_TENSOR_COLUMN_ADDRESSES)), np.int64)
            machine.shared_memory.store(zeros + np.array(_TENSOR_COLUMN_ADDRESSES), 4, zeros, zeros == 0)

    def constant(self, bank: int, offset: int, size: int) -> Value:
        """The value in a constant bank at an offset."""
        if bank == 0:
            for byte in range(offset, offset + size):
                missing_name = self._missing_bytes.get(byte, "")
                if missing_name is not None:
                    return self.names.unknown_value(missing_name or f"c[0x0][{offset:#x}]")
            return int.from_bytes(self._bank[offset : offset + size], "little")
        data = self.program.constants.get(bank)
        if data is None or offset + size > len(data):
            return self.names.unknown_value(f"constant bank {bank:#x}")
        return int.from_bytes(data[offset : offset + size], "little")

    def special(self, machine: Machine, name: str) -> Value:
        """The value of a special register."""
        x, y, _ = self.launch.cta_grid
        cluster, lane = self.launch.cluster_size, machine.lane_numbers
        ctas = machine.ctas.reshape(-1, 1)
        threads: IntArray = np.arange(machine.threads, dtype=np.int64).reshape(1, -1)

        def cta_in_cluster() -> Word:
            return ctas % cluster if cluster > 1 else 0

        special_values: Mapping[str, Callable[[], Word]] = {
            "SR_TID.X": lambda: threads, "SR_TID.Y": lambda: 0, "SR_TID.Z": lambda: 0,
            "SR_TID": lambda: threads, "SR_CTAID.X": lambda: ctas % x, "SR_CTAID.Y": lambda: ctas // x % y,
            "SR_CTAID.Z": lambda: ctas // (x * y), "SR_LANEID": lambda: lane,
            "SR_LTMASK": lambda: (1 << lane) - 1, "SR_LEMASK": lambda: (2 << lane) - 1,
            "SR_EQMASK": lambda: 1 << lane, "SR_GTMASK": lambda: FULL & ~((2 << lane) - 1),
            "SR_GEMASK": lambda: FULL & ~((1 << lane) - 1), "SR_CgaCtaId": cta_in_cluster,
            "SR_CgaSize": lambda: cluster, "SR_CLUSTER_CTAID.X": cta_in_cluster, "SR_SWINHI": lambda: 0
        }  # fmt: skip
        if name not in special_values:
            return self.names.unknown_value(f"special register {name}")
        value = special_values[name]()
        return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def environment_of(machine: Machine) -> SassEnvironment:
    """The environment of a machine that runs SASS."""
    assert isinstance(machine.environment, SassEnvironment)
    return machine.environment
