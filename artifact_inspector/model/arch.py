"""The architecture of a GPU, by the name that compilers use; vendors, Triton backends, kinds of multiprocessors."""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.model.string_enum import StringEnum

_CUDA = re.compile(r"(?:cuda:)?(?:sm_?)?(\d{2,3})[af]?")
_HIP = re.compile(r"(?:hip:)?(gfx(?:\d{1,2}\d[0-9a-f]|\d{1,2}(?:-\d)*-generic))(?::[a-z]+[+-])*")
_GENERIC = re.compile(r"gfx(\d+)(?:-(\d))?")


class Vendor(StringEnum):
    """The vendor of a GPU."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


class Backend(StringEnum):
    """Triton's name for the part that compiles for a vendor."""

    CUDA = "cuda"
    HIP = "hip"


class MultiprocessorKind(StringEnum):
    """The hardware unit that a block of threads runs on."""

    SM = "SM"
    CU = "CU"
    WGP = "WGP"
    """A workgroup processor: two CUs of an RDNA GPU that share a block."""


class Arch(str):
    """An architecture: `sm_80`, `gfx942`. Suffix (`sm_90a`) and features (`:xnack-`) are removed.

    Example:
        >>> Arch.parse("sm_90a"), Arch.parse("cuda:80"), Arch.parse("gfx90a:sramecc+:xnack-")
        ('sm_90', 'sm_80', 'gfx90a')
        >>> Arch("sm_103").generation, Arch("gfx942").generation, Arch("gfx1100").generation
        (10, 9, 11)
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Arch | None:
        """The architecture in any spelling that users, caches and stages use; None for other text."""
        lowered = text.strip().lower()
        if match := _CUDA.fullmatch(lowered):
            return cls(f"sm_{match[1]}")
        return cls(match[1]) if (match := _HIP.fullmatch(lowered)) else None

    @property
    def backend(self) -> Backend:
        """The Triton backend that compiles for it."""
        return Backend.CUDA if self.startswith("sm_") else Backend.HIP

    @property
    def vendor(self) -> Vendor:
        """The vendor of the GPU."""
        return Vendor.NVIDIA if self.startswith("sm_") else Vendor.AMD

    @property
    def number(self) -> int:
        """80 for `sm_80`, 0x942 for `gfx942`: larger for newer architectures."""
        if self.startswith("sm_"):
            return int(self[3:])
        return int(self[3:], 16) if "-" not in self else self.version[0] << 8 | self.version[1] << 4

    @property
    def version(self) -> tuple[int, int]:
        """Compute capability, (8, 0) for `sm_80`. AMD: HIP's major and minor number, (9, 4) for `gfx942`."""
        return _version(str(self))

    @property
    def generation(self) -> int:
        """The major number: 8 for `sm_86`, 9 for `gfx90a` and `gfx942`, 11 for `gfx1100`."""
        return self.version[0]

    @property
    def is_cdna(self) -> bool:
        """True for AMD's gfx9 and older: 64 lanes per wavefront and no workgroup processors."""
        return self.vendor is Vendor.AMD and self.generation <= 9


@lru_cache(maxsize=256)
def _version(text: str) -> tuple[int, int]:
    if text.startswith("sm_"):
        return divmod(int(text[3:]), 10)
    if (match := _GENERIC.match(text)) is not None and "-" in text:
        return int(match[1]), int(match[2] or 0)
    return int(text[3:-2]), int(text[-2])
