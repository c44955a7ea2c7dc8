"""Kinds of registers in machine code."""

from __future__ import annotations

from enum import Enum


class RegisterBank(Enum):
    """A register file, of which each thread or warp has a share."""

    VECTOR = "vector"
    """One value per lane: NVIDIA's R, AMD's v. Limits the number of resident warps."""
    ACCUMULATOR = "accumulator"
    """AMD's a; from gfx90a on in the same register file as the vector registers."""
    SCALAR = "scalar"
    """One value per warp: NVIDIA's UR, AMD's s, vcc, exec."""
    PREDICATE = "predicate"
    """One bit per lane or per warp: NVIDIA's P and UP."""
