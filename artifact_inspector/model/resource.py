"""Resources that limit the number of resident blocks per multiprocessor."""

from __future__ import annotations

from artifact_inspector.model.string_enum import StringEnum


class Resource(StringEnum):
    """A resource that a multiprocessor has a fixed amount of, and blocks consume."""

    BLOCKS = "blocks"
    WARPS = "warps"
    REGISTERS = "registers"
    BARRIERS = "barriers"
    SHARED = "shared memory"
    TENSOR = "tensor memory"
