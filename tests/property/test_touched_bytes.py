"""The bytes, sectors and pairs of sectors that accesses touch are those of a set of addresses."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors

SECTOR, PAIR = 32, 64
TYPES = {"int8": 1, "fp16": 2, "fp32": 4, "fp64": 8}


class Naive:
    """Every byte of a tensor that is read, updated and written, one by one."""

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.updated: set[int] = set()
        self.written: set[int] = set()

    def touch(self, addresses: Iterable[int], size: int, *, is_write: bool, updates: bool) -> None:
        touched = {address + byte for address in addresses for byte in range(size)}
        if updates:
            self.updated |= touched
        if is_write:
            self.written |= touched
        else:
            self.read |= touched

    def counts(self) -> tuple[tuple[int, int], tuple[int, int], int, int]:
        """Bytes read and written; sectors fetched and written; bytes of fetched pairs; bytes of sectors to fill."""

        def parts(touched: set[int], size: int) -> set[int]:
            return {address // size for address in touched}

        fetched = self.read | self.updated
        whole = {
            sector
            for sector in parts(self.written, SECTOR)
            if all(sector * SECTOR + byte in self.written for byte in range(SECTOR))
        }
        partly = parts(self.written, SECTOR) - whole - parts(fetched, SECTOR)
        return (
            (len(self.read), len(self.written)),
            (len(parts(fetched, SECTOR)), len(parts(self.written, SECTOR))),
            len(parts(fetched, PAIR)) * PAIR,
            len(partly) * SECTOR,
        )


def lanes(chance: np.random.Generator, size: int, span: int) -> np.ndarray:
    """Offsets of 32 lanes: in sequence, with a stride, at random, or in two runs that overlap."""
    step = int(chance.choice([1, 1, 1, 2, 3, 8]))
    offsets = np.arange(32, dtype=np.int64) * step
    match chance.integers(4):
        case 1:
            offsets = chance.integers(0, 64, 32).astype(np.int64)
        case 2:
            offsets[16:] -= 8 * step
        case 3:
            offsets = offsets[::-1].copy()
    count = int(chance.integers(1, 33))
    return (offsets[:count] - offsets[:count].min()) * size % max(span - size, size)


@pytest.mark.parametrize("seed", range(120))
def test_what_is_touched_is_a_set_of_bytes(seed: int) -> None:
    chance = np.random.default_rng(seed)
    dtype, element = list(TYPES.items())[seed % len(TYPES)]
    launch = place_tensors(KernelLaunch((1, 1, 1), {"x": Tensor((8192 // element,), dtype)}))
    memory, naive = GlobalMemory(launch), Naive()
    (region,) = memory.regions
    for _ in range(int(chance.integers(1, 7))):
        size = int(chance.choice([one for one in (1, 2, 4, 8, 16) if one >= element]))
        is_write = bool(chance.integers(2))
        updates = is_write and bool(chance.integers(2))
        origin = region.start + int(chance.integers(0, 64)) * size
        addresses = origin + lanes(chance, size, 2048)
        if chance.random() < 0.25:  # not aligned to their size, but to elements
            addresses = addresses + element
        if chance.random() < 0.5:
            assert memory.touch(addresses, size, is_write=is_write, updates=updates).size == 0
            naive.touch(addresses.tolist(), size, is_write=is_write, updates=updates)
        else:
            shifts = np.arange(int(chance.integers(1, 9)), dtype=np.int64) * size * int(chance.choice([1, 4, 33]))
            if memory.touch_offsets(addresses, shifts, size, is_write=is_write, updates=updates):
                for shift in shifts.tolist():
                    naive.touch((addresses + shift).tolist(), size, is_write=is_write, updates=updates)
    sectors_read, sectors_written = memory.count_sectors()
    found = (
        memory.count_unique_bytes(),
        (sectors_read, sectors_written),
        memory.count_fetched()["x"],
        memory.count_filled()["x"],
    )
    assert found == naive.counts()


def test_lanes_outside_of_all_tensors_are_told_by_their_number() -> None:
    launch = place_tensors(KernelLaunch((1, 1, 1), {"x": Tensor((16,), "fp32"), "y": Tensor((16,), "fp32")}))
    memory = GlobalMemory(launch)
    x, y = memory.regions
    addresses = np.array([x.start, x.stop - 4, x.stop - 2, x.stop, y.start - 4, y.start, y.stop, 8], np.int64)
    assert memory.touch(addresses, 4, is_write=False).tolist() == [2, 3, 4, 6, 7]
    assert memory.count_unique_bytes() == (12, 0)
