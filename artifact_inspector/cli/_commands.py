"""The commands by task, with the first sentence of their help: `--help` imports no command but the default one."""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_COMMAND = "inspect"
PYTHON_SOURCE = re.compile(r".+\.py(:\w+)?")
"""An argument to compile rather than to inspect: `FILE.py`, `FILE.py:KERNEL`."""
COMMAND_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Commands to get kernels": {
        "capture": "Run a program without a GPU and compile every kernel that it would launch, once per target.",
        "compile": "Compile Triton kernels for any GPU. No GPU needed.",
        "repro": "Write one Python file that compiles a kernel to the same key and launches it, for a bug report.",
        "demo": "Compile eight reference kernels for a T4 and an MI250X, and show them. No GPU needed.",
    },
    "Commands to read them": {
        "inspect": "Show the kernels of a cache, or one kernel in full. This is the default command.",
        "findings": "List likely performance and correctness problems of each kernel, or explain one.",
        "report": "Write an HTML page: a table of kernels, and the pictures and linked code of each.",
        "export": "Write the facts of a cache as a table: one row per kernel, region and launch.",
        "cache": "Check, measure or prune a cache directory. Exits with 1 if something is damaged.",
        "watch": "Show kernels as a program compiles them: a table on a terminal, one line each in a pipe.",
    },
    "Commands to compare them": {
        "diff": "Compare two kernels or two caches, and name the compiler stage where they first differ.",
        "regress": "List what got worse between two caches, releases or commits, with the cause of each kernel.",
        "matrix": "Compare all variants of one kernel: its targets, versions and configurations.",
        "try": "Check whether a source change or an option changes the compiled code, and print what changed.",
        "passes": "Compile a kernel, or read a log of MLIR_ENABLE_DUMP, and list what each compiler pass changed.",
        "bisect": "Find the Triton release in which a kernel changed, and the pass that changed it.",
    },
    "Commands to predict and measure": {
        "advise": "Name what takes the time of a launch, by source line, and what helps. No GPU needed.",
        "predict": "Predict what a launch executes, transfers and waits for, by simulation. No GPU needed.",
        "rank": "Rank launches or configurations by predicted time, fastest first. No GPU needed.",
        "bench": "Run kernels on this machine's GPU: check their results, measure their time, and report their code.",
    },
    "Commands to find errors": {
        "check-memory": "Find memory errors and races of launches by simulation. No GPU needed."
    },
    "Commands to guard against regressions": {
        "baseline": "Record facts and predicted times of kernels, for `check` to compare later caches with.",
        "check": "Compare a cache with a baseline; fail if a checked fact got worse.",
    },
    "Commands for editors and agents": {
        "lsp": "Serve editors through the Language Server Protocol on standard input and output.",
        "mcp": "Serve coding agents through the Model Context Protocol on standard input and output.",
    },
}
"""Heading of the help → command → first sentence of its docstring."""
COMMANDS = frozenset(name for group in COMMAND_GROUPS.values() for name in group)
"""All commands. A command name wins over a directory of the same name."""
