"""Kinds of registers in machine code."""

from __future__ import annotations

from enum import Enum


class RegisterBank(Enum):
    """A file of registers that a thread, or a warp, has its share of."""

    VECTOR = "vector"
    """One number for each lane: NVIDIA's R, AMD's v. They bound how many warps fit."""
    ACCUMULATOR = "accumulator"
    """AMD's a; from gfx90a on they share the file of the vector registers."""
    SCALAR = "scalar"
    """One number for a warp: NVIDIA's UR, AMD's s, vcc, exec."""
    PREDICATE = "predicate"
    """One bit for each lane, or for a warp: NVIDIA's P and UP."""
