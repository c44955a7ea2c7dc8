"""Compile requests, in a form that can be sent as JSON, and their results."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.compiling.signature import SignatureEntry, parse_signature
from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model.text import parse_integer


@dataclass(frozen=True, slots=True)
class ConstantText:
    """A constant as the user typed it: a Python literal, a name in the kernel's file, or else a string."""

    text: str


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A request to compile one kernel for given launch arguments."""

    kernel_path: str
    """`FILE.py:KERNEL`, `module:KERNEL`, or the name of a reference kernel."""
    signature: str | Mapping[str, str] | None = None
    """Types of the arguments, in the notation of `triton.tools.compile` (`parse_signature`). Missing ones
    come from annotations and defaults. None for a reference kernel means its own signature."""
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    """Values of constants, Triton functions and types included; `ConstantText` ones are evaluated in the kernel's
    module."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Compiler options by Triton's names: num_warps, num_stages, num_ctas, maxnreg, waves_per_eu …"""
    configs: int | Literal["all"] | None = None
    """Number of autotuner configurations to compile, evenly spaced in its list; None for the first."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Overrides of the fields above, as typed: a parameter's value or type, or an option for any other name."""
    is_untrusted: bool = False
    """Arguments and options come from a record: the compile runs with limits on time, memory and files, and
    imports nothing from the working directory."""

    def as_json(self) -> dict[str, Any]:
        """The request in the format of the compiling process.

        Raises:
            UsageError: a signature or constant is invalid.
        """
        signature: list[SignatureEntry] | None = None
        if isinstance(self.signature, str):
            signature = list(parse_signature(self.signature))
        elif self.signature is not None:
            signature = [SignatureEntry(*entry) for entry in self.signature.items()]
        kernel_path = REFERENCE_KERNELS.get(self.kernel_path, self.kernel_path)
        if kernel_path.partition(":")[0].endswith(".py"):
            file, _, name = kernel_path.partition(":")
            kernel_path = f"{Path(file).absolute()}:{name}" if name else str(Path(file).absolute())
        return {
            "place": kernel_path, "signature": signature,
            "constexprs": {name: _constant_to_json(name, value) for name, value in self.constexprs.items()},
            "options": dict(self.options), "configs": self.configs, "changed": dict(self.overrides),
            "untrusted": self.is_untrusted
        }  # fmt: skip


def parse_configs(text: str) -> int | Literal["all"]:
    """Parse the value of `--configs`, the number of a kernel's own configurations.

    Raises:
        UsageError: it is neither `all` nor a positive number.

    Example:
        >>> parse_configs("all"), parse_configs("3")
        ('all', 3)
    """
    if text == "all":
        return "all"
    number = parse_integer(text)
    if number is None or number < 1:
        raise UsageError(f"--configs takes `all` or a number from 1, not {text[:40]!r}.")
    return number


def kernel_path_of(kernel: Any) -> str:
    """`FILE.py:KERNEL` of a Triton function, decorated or not, so that another process can import it.

    Raises:
        UsageError: the function is not at the top level of a file.
    """
    function = kernel
    while not inspect.isfunction(function):
        inner = getattr(function, "fn", None)
        if inner is None:
            remedy = "Pass a function under @triton.jit, or 'FILE.py:KERNEL'."
            raise UsageError(f"{kernel!r} is not a Triton kernel.", remedy)
        function = inner
    file = function.__code__.co_filename
    if "<locals>" in function.__qualname__ or not Path(file).is_file():
        raise UsageError(
            f"{function.__qualname__} cannot be imported by the compiling process.",
            "Define the kernel at the top level of a file.",
        )
    return f"{file}:{function.__qualname__}"


def _constant_to_json(name: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, ConstantText):
        return "text", value.text
    if value is None or isinstance(value, (bool, int, float, str)):
        return "value", value
    if isinstance(value, (list, tuple)):
        return "value", [_constant_to_json(name, member)[1] for member in value]
    if hasattr(value, "fn"):
        return "place", kernel_path_of(value)
    if (spelled := str(value)) and type(value).__module__.startswith("triton.language"):
        return "text", _dtype_name(value) if hasattr(value, "name") else f"tl.{spelled}"
    raise UsageError(
        f"The constant {name} is a {type(value).__name__}, which cannot be handed to the compiler.",
        "A constant is None, a bool, a number, a string, a tuple of these, a tl dtype or a Triton function.",
    )


def _dtype_name(value: Any) -> str:
    """`tl.float16` of the dtype that Triton itself calls fp16."""
    import triton.language as tl

    for name, dtype_names in vars(tl).items():
        if type(dtype_names) is type(value) and dtype_names == value:
            return f"tl.{name}"
    return f"tl.{value.name}"


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of compiling one kernel for one target."""

    kernel: str
    """Name of the reference kernel in `REFERENCE_KERNELS`, or of the Triton function."""
    target: Target
    seconds: float
    """Duration of the compile; 0 for a cache hit."""
    directory: Path | None
    """Directory of the cache entry; None if the compiler refused the kernel."""
    message: str | None
    """The compiler's error message; None if it compiled."""
    remedy: str | None = None
    """What to do about the error, if known."""
    kernel_path: str = ""
    """The kernel as requested: `FILE.py:KERNEL`, or the name of a reference kernel."""
    triton: str | None = None
    """Version of the Triton that compiled it."""
    config: str | None = None
    """The autotuner's configuration as text: `BLOCK=64 num_warps=4`."""
    is_cached: bool = False
    """Whether the entry was already in the cache."""
    is_usage_error: bool = False
    """Whether the error is in the request, not in the kernel."""
    types: tuple[str, ...] = ()
    """Signature entries of the arguments that are not constants."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options passed to Triton; the others have Triton's defaults."""
    details: str | None = None
    """Output of a compiler that refused the kernel: with an MLIR error, the whole module."""
