"""How much of a stranger's file is read: every bound by name, and the way to another one.

A file beyond a bound is told of and not read; no bound is near what compilers write. An environment variable
named after the bound sets another: `ARTIFACT_INSPECTOR_MOST_FRAMES=1000`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_PREFIX = "ARTIFACT_INSPECTOR_MOST_"


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound."""

    name: str
    default: int
    what: str
    """What may be so many, as the end of a sentence."""

    @property
    def switch(self) -> str:
        """The environment variable that sets another."""
        return _PREFIX + self.name.upper()

    @property
    def most(self) -> int:
        """The bound in force; what is set to no number of at most nine digits is passed over."""
        said = os.environ.get(self.switch, "")
        return int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else self.default


MIB = Limit("mib", 64, "MiB of a file")
"""ptxas and LLVM print less for the largest kernels known here."""
METADATA = Limit("metadata_mib", 1, "MiB of a kernel's metadata")
"""Triton writes a few thousand bytes."""
DIGITS = Limit("digits", 18, "digits of a number")
"""So many fit into 64 bits. A number with more is not known."""
FRAMES = Limit("frames", 256, "callers of a source line, each inlined into the next")
"""A place with more is not known. Triton inlines every `@triton.jit` function: some tens of levels."""
NESTING = Limit("nesting", 1000, "loops and branches, each inside the one before")
RESULTS = Limit("results", 1024, "values that one operation defines")
EDGES = Limit("edges", 1_000_000, "ways between the blocks of a function")
CARRIED = Limit("carried", 1_000_000, "loads in flight that are carried over the branches of a function")
"""Kernels of libraries carry some hundred. Beyond it, what is in flight is not known."""
ASSEMBLY = Limit("assembly", 1000, "instructions of one piece of inline assembly")
"""Those of 685 kernels looked at have two at most."""
BUFFERS = Limit("buffers", 256, "buffers of shared memory of a function that are placed side by side")
"""Each is held against each, as Triton does it. The kernels known here have fewer than 40."""
ROUNDS = Limit("rounds", 4096, "rounds of a region below tensor-level IR that are told apart")
"""Each of them has its bit in what a register holds. Kernels of libraries have some tens."""
LAYOUT = Limit("layout", 1_000_000, "characters that the layouts of a file take from each other")
"""What is beyond is kept as it is written."""
PROBLEMS = Limit("problems", 100, "faults of one file that are told one by one")
CTAS = Limit("ctas", 1 << 22, "CTAs of a launch that is run on paper")
LAUNCHES = Limit("launches", 1000, "launches of one record that are run on paper")
"""As many as `capture` and `bench` keep of one directory."""
TOOL_SECONDS = Limit("tool_seconds", 60, "seconds of a disassembler or an assembler at one file")
"""The largest cubins known here take a disassembler under ten."""
TOOL_MIB = Limit("tool_mib", 8192, "MiB of address space of such a tool")
"""nvdisasm takes 1.5 GiB for the largest cubin that is read."""
TOOL_FILE_MIB = Limit("tool_file_mib", 1024, "MiB of a file that such a tool or a compile writes")
"""The text of all passes of one kernel is such a file."""
COMPILE_SECONDS = Limit("compile_seconds", 120, "seconds of processor time of one compile of a cache's entry")
"""All of `passes` takes 15 for the slowest reference kernel (attention_backward)."""
COMPILE_MIB = Limit("compile_mib", 2048, "MiB of memory that one compile of a cache's entry allocates")
"""A compile of that kernel takes 290 in all, the compiler itself included."""
LIMITS = tuple(one for one in list(globals().values()) if isinstance(one, Limit))
