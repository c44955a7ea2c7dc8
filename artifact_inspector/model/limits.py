"""Limits on how much of an untrusted file is read.

A file beyond a limit is reported and not read. No limit is close to what compilers write. An environment
variable named after the limit changes it: `ARTIFACT_INSPECTOR_MOST_FRAMES=1000`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

_PREFIX = "ARTIFACT_INSPECTOR_MOST_"


class InputLimit(NamedTuple):
    """One limit."""

    name: str
    default: int
    subject: str
    """What is limited, as the end of a sentence."""

    @property
    def variable(self) -> str:
        """The environment variable that changes the limit."""
        return _PREFIX + self.name.upper()

    @property
    def value(self) -> int:
        """The limit in force. A setting that is not a number of at most nine digits is ignored."""
        setting = os.environ.get(self.variable, "")
        return int(setting) if setting.isascii() and setting.isdecimal() and len(setting) < 10 else self.default


FILE_MIB = InputLimit("mib", 64, "MiB of a file")
"""ptxas and LLVM print less for the largest kernels measured."""
METADATA = InputLimit("metadata_mib", 1, "MiB of a kernel's metadata")
"""Triton writes a few thousand bytes."""
DIGITS = InputLimit("digits", 18, "digits of a number")
"""18 digits fit into 64 bits. A longer number is unknown."""
FRAMES = InputLimit("frames", 256, "callers of a source line, each inlined into the next")
"""A location with more callers is unknown. Triton inlines every `@triton.jit` function: some tens of levels."""
NESTING = InputLimit("nesting", 1000, "loops and branches, each inside the one before")
RESULTS = InputLimit("results", 1024, "values that one operation defines")
EDGES = InputLimit("edges", 1_000_000, "edges between the blocks of a function")
LOADS_IN_FLIGHT = InputLimit("carried", 1_000_000, "loads in flight that are carried over the branches of a function")
"""Library kernels carry some hundred. Above the limit, the loads in flight are unknown."""
ASSEMBLY = InputLimit("assembly", 1000, "instructions of one piece of inline assembly")
"""The 685 kernels examined have two at most."""
BUFFERS = InputLimit("buffers", 256, "buffers of shared memory of a function that are allocated together")
"""Every pair is compared, as in Triton's allocator. The largest kernel measured has fewer than 40 buffers."""
ROUNDS = InputLimit("rounds", 4096, "rounds of a region below tensor-level IR that are distinguished")
"""Each round has one bit in the state of a register. Library kernels have some tens."""
LAYOUT = InputLimit("layout", 1_000_000, "characters of expanded layout aliases of a file")
"""Layouts above the limit are kept as written."""
PROBLEMS = InputLimit("problems", 100, "problems of one file that are reported one by one")
VALUES_MIB = InputLimit("values_mib", 1024, "MiB of recorded tensor values that one command reads")
"""A captured tensor has 0.5 MiB of values at most."""
ARCHIVE_MIB = InputLimit("archive_mib", 1024, "MiB that an archive or a trace is unpacked to")
ARCHIVE_RATIO = InputLimit("archive_ratio", 200, "bytes that one byte of an archive may become, from 64 MiB on")
"""IR and assembly become a tenth to a thirtieth."""
ARCHIVE_MEMBERS = InputLimit("archive_members", 500_000, "files of an archive")
"""31,693 kernels have 290,000."""
ARCHIVE_LAYERS = InputLimit("archive_layers", 4, "archives and compressed files, each inside the one before")
TRACE_LINE_MIB = InputLimit("trace_line_mib", 32, "MiB of one event of a trace")
"""A parsed event takes up to 25 times as much memory."""
CTAS = InputLimit("ctas", 1 << 22, "CTAs of a launch that is simulated")
LAUNCHES = InputLimit("launches", 1000, "launches of one record that are simulated")
"""`capture` and `bench` keep as many launches of one directory."""
SIMULATION_SECONDS = InputLimit("simulation_seconds", 300, "seconds of processor time of all simulations of a command")
"""The slowest launches of the reference kernels take 170."""
SIMULATION_MIB = InputLimit("simulation_mib", 12288, "MiB that each process of a simulation may have taken")
"""The largest launches measured take 7,800."""
TOOL_SECONDS = InputLimit("tool_seconds", 60, "seconds that a disassembler or an assembler may take for one file")
"""A disassembler takes less than ten seconds for the largest cubins measured."""
TOOL_MIB = InputLimit("tool_mib", 8192, "MiB of address space of a disassembler or an assembler")
"""nvdisasm takes 1.5 GiB for the largest cubin that is read."""
TOOL_FILE_MIB = InputLimit("tool_file_mib", 1024, "MiB of a file that a disassembler, an assembler or a compile writes")
"""The text of all passes of one kernel is such a file."""
COMPILE_SECONDS = InputLimit("compile_seconds", 120, "seconds of processor time of one compile of a cache's entry")
"""All of `passes` takes 15 for the slowest reference kernel (attention_backward)."""
COMPILE_MIB = InputLimit("compile_mib", 2048, "MiB of memory that one compile of a cache's entry allocates")
"""A compile of that kernel takes 290 in all, the compiler itself included."""
LIMITS = tuple(limit for limit in list(globals().values()) if isinstance(limit, InputLimit))
