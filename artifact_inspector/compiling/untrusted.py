"""How a kernel was compiled, as a cache says it: the only way from a record or metadata to a compile.

A cache may come from anyone. Nothing it says chooses code to import, a file to read or write, or an option
that a tool interprets. `UntrustedRecord` keeps what passes, and names what it dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from artifact_inspector.compiling.ask.manifest import CAPTURED_PREFIX
from artifact_inspector.compiling.ask.request import ConstantText
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import UsageError

_INTEGER_OPTIONS = frozenset(
    {
        *("num_warps", "num_stages", "num_ctas", "maxnreg", "warp_size", "min_shared_mem"),
        *("waves_per_eu", "matrix_instr_nonkdim", "kpack", "max_num_imprecise_acc_default"),
        *("num_buffers_warp_spec", "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer"),
    }
)
_BOOLEAN_OPTIONS = frozenset(
    {
        *("enable_fp_fusion", "allow_flush_denorm", "enable_reflect_ftz", "sanitize_overflow", "debug"),
        *("enable_warp_specialization", "enable_persistent", "optimize_epilogue", "sched4reg", "clc"),
        *("launch_pdl", "launch_cooperative_grid", "max_num_imprecise_acc_default"),
    }
)
_WORD_OPTIONS = frozenset({"schedule_hint", "instruction_sched_variant", "default_dot_input_precision"})
_LIST_OPTIONS = frozenset(
    {
        *("cluster_dims", "supported_fp8_dtypes", "deprecated_fp8_dtypes"),
        *("deprecated_fp8_dot_operand_dtypes", "allowed_dot_input_precisions"),
    }
)
_WORD_PATTERN = re.compile(r"[\w,-]{0,64}", re.ASCII)

_DTYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
    **{name: name for name in ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
"""Triton's name of a dtype, as a record has it → its name in `triton.language`."""


@dataclass(frozen=True, slots=True)
class UntrustedRecord:
    """What a record says about one compile, with only the options that a record may choose."""

    kernel_path: str
    """Printed and compared, never imported; `resolve_kernel_path` says what is."""
    target: str
    types: Mapping[str, str]
    constants: Mapping[str, ConstantText]
    """Every one a literal, or a type of Triton by its name: any other name is a string, and looks nothing up."""
    options: Mapping[str, Any]
    dropped_options: tuple[str, ...]
    """Names of the options that are not passed on, sorted."""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> UntrustedRecord:
        """The record of one row of a manifest, as `read_manifest` gives it."""
        options, dropped = allowed_options(row.get("options", {}))
        types = dict(text.split("=", 1) for text in row.get("types", ()))
        constants = {
            name: ConstantText(f"tl.{_DTYPES[value]}" if isinstance(value, str) and value in _DTYPES else repr(value))
            for name, value in row.get("constants", {}).items()
            if name not in types
        }
        return cls(row.get("place", ""), row.get("target", "unknown"), types, constants, options, dropped)

    def resolve_kernel_path(self, kernel: str, named_path: str | None) -> str:
        """What to import for this record: the place that the user named, or a kernel of this package.

        Args:
            named_path: `FILE.py:KERNEL` of the command line; None where there is none.

        Raises:
            UsageError: the record names a file or module, and the user did not.
        """
        if named_path is not None:
            return named_path
        if self.kernel_path in REFERENCE_KERNELS:
            return self.kernel_path
        if self.kernel_path.startswith(CAPTURED_PREFIX):
            problem = f"{kernel} was {self.kernel_path}: its record names no file to import."
        else:
            problem = f"{kernel} was compiled from {self.kernel_path}. A file named only in a record is not imported."
        raise UsageError(problem, "Name the kernel on the command line: --kernel FILE.py:KERNEL.")


def allowed_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The options that a record may choose, and the names of the others.

    An option passes by its name and the type of its value: numbers, booleans, and words without a path.
    Options that are command lines (`ptx_options`), name files (`ir_override`, `extern_libs`) or load code do
    not pass. An option that is empty is not among the others.

    Example:
        >>> allowed_options({"num_warps": 8, "ptx_options": "-o /tmp/x", "ir_override": None})
        ({'num_warps': 8}, ('ptx_options',))
    """
    allowed = {name: value for name, value in options.items() if _is_allowed(name, value)}
    dropped = sorted(str(name) for name, value in options.items() if name not in allowed and value)
    return allowed, tuple(dropped)


def describe_dropped(dropped: tuple[str, ...]) -> str:
    """The sentence that reports dropped options."""
    return f"compiled without {', '.join(dropped)}: options of a cache that reach files or tools are not used"


def _is_allowed(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return name in _BOOLEAN_OPTIONS
    if isinstance(value, int):
        return name in _INTEGER_OPTIONS and -(2**31) <= value < 2**31
    if isinstance(value, str):
        return name in _WORD_OPTIONS and _WORD_PATTERN.fullmatch(value) is not None
    if isinstance(value, list | tuple):
        are_members = (type(x) is int or (isinstance(x, str) and bool(_WORD_PATTERN.fullmatch(x))) for x in value)
        return name in _LIST_OPTIONS and len(value) < 64 and all(are_members)
    return value is None and name in _INTEGER_OPTIONS
