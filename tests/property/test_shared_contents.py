"""What lanes load from shared memory is what lanes stored there, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.cta_memory import CtaMemory

LANES = 8


def offsets(chance: np.random.Generator, rows: int, size: int) -> np.ndarray:
    """Addresses of all lanes: each CTA its own, of which lanes may have one, or all the same, as one row or as a broadcast one."""
    step = int(chance.choice([0, 1, 1, 2, 5])) * size
    one = (np.arange(LANES, dtype=np.int64) * step + int(chance.integers(0, 24))).reshape(1, -1)
    if chance.random() < 0.5:
        one = one // size * size
    match chance.integers(4):
        case 0:
            return one
        case 1:
            return np.broadcast_to(one, (rows, LANES))
        case 2:
            return np.broadcast_to(one[:, :1] + chance.integers(0, 3, (rows, 1)) * 4, (rows, LANES))
        case _:
            return one + chance.integers(0, 3, (rows, 1)) * 4


@pytest.mark.parametrize("seed", range(200))
def test_a_load_gets_the_bytes_that_were_stored_last(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = int(chance.choice([1, 2, 3]))
    memory, known = CtaMemory(), [dict[int, int]() for _ in range(rows)]
    for _ in range(int(chance.integers(2, 9))):
        size = int(chance.choice([1, 2, 4]))
        addresses = offsets(chance, rows, size)
        mask = chance.random((len(addresses) if chance.random() < 0.5 else 1, LANES)) < 0.7
        mask = np.broadcast_to(mask, addresses.shape) if len(mask) < len(addresses) else mask
        if chance.random() < 0.6:
            value = chance.integers(0, 1 << 8 * size, addresses.shape) if chance.random() < 0.8 else None
            memory.store(addresses, size, value, mask)
            for row, content in enumerate(known):
                at = row % len(addresses)
                for lane in np.flatnonzero(mask[at]).tolist():
                    for byte in range(size):
                        place = int(addresses[at, lane]) + byte
                        content.pop(place, None)
                        if value is not None:
                            content[place] = int(value[at, lane]) >> 8 * byte & 0xFF
        else:
            found = memory.load(addresses, size, mask)
            for row, content in enumerate(known):
                at = row % len(addresses)
                for lane in range(LANES):
                    stored = [content.get(int(addresses[at, lane]) + byte) for byte in range(size)]
                    is_known = bool(mask[at, lane]) and None not in stored
                    if found is None:
                        assert not is_known
                        continue
                    words, lanes = found
                    assert lanes[row % len(lanes), lane] == is_known
                    if is_known:
                        expected = sum(part << 8 * byte for byte, part in enumerate(stored) if part is not None)
                        assert words[row % len(words), lane] == expected
