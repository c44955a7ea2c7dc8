"""From options to the kernels that are to be compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from artifact_inspector.cli._groups import CompileOptions
from artifact_inspector.compiling import REFERENCE_KERNELS, ConstantText, KernelRequest
from artifact_inspector.compiling.ask.request import parse_configs
from artifact_inspector.compiling.signature import MISSING, parse_signature, read_literal
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import parse_targets


def read_requests(
    kernels: Sequence[str], options: CompileOptions | None = None, configs: str | None = None
) -> list[KernelRequest]:
    """The compile requests that the options describe.

    Raises:
        UsageError: the options contradict each other.
    """
    options = options or CompileOptions()
    for kernel in kernels:
        if re.fullmatch(r"[A-Za-z_]\w*=.*", kernel):
            raise UsageError(f"{kernel} is not a kernel.", f"Write --const {kernel}, or --option {kernel}.")
    if (options.signature is not None or options.const) and len(kernels) != 1:
        raise UsageError(
            f"--signature and --const describe one kernel; {len(kernels) or 'all'} are requested.",
            "Give one kernel, as FILE.py:KERNEL.",
        )
    number = None if configs is None else parse_configs(configs)
    pipeline_options = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    settings: dict[str, Any] = {name: value for name, value in pipeline_options.items() if value is not None}
    for name, text in parse_pairs("--option", options.option or ()):
        value = read_literal(text)
        settings[name] = text if value is MISSING else value
    constants = {name: ConstantText(text) for name, text in parse_pairs("--const", options.const or ())}
    names = list(dict.fromkeys(kernels)) or list(REFERENCE_KERNELS)
    return [KernelRequest(name, options.signature, constants, settings, number) for name in names]


def parse_pairs(option: str, texts: Sequence[str], example: str = "NAME=64") -> Iterator[tuple[str, str]]:
    """The pairs of repeated or comma-separated NAME=VALUE.

    Raises:
        UsageError: a text is no pair.
    """
    for text in texts:
        for name, value in parse_signature(text):
            if name is None:
                raise UsageError(f"{option} {text!r} is not NAME=VALUE.", f"Write for example {option} {example}.")
            yield name, value


def target_names(targets: Sequence[str] | None) -> list[str]:
    """The GPUs of repeated or comma-separated `--target`."""
    return [str(target) for target in parse_targets(targets or [])]
