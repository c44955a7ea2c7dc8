"""What limits how many blocks of a kernel a multiprocessor holds."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Resource(Word):
    """What a multiprocessor has a certain amount of, and blocks take."""

    BLOCKS = "blocks"
    WARPS = "warps"
    REGISTERS = "registers"
    BARRIERS = "barriers"
    SHARED = "shared memory"
    TENSOR = "tensor memory"
