"""Matches launch arguments to parameters of kernels from old Triton versions, which keep no names.

Before 3.5, TTIR names arguments `%arg0`, `%arg1` …. A launch has real names, so they are matched by order:
constants and specialized arguments are left out, and types and divisibility rule out wrong matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

from artifact_inspector.execution.kernel_loader import (
    PLACEHOLDER,
    KernelParameter,
    LoadedKernel,
    descriptor_parts_of_types,
)
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, resolve_launch


def match_launch(
    loaded: LoadedKernel, request: LaunchRequest, constants: Mapping[str, Any] = {}
) -> tuple[LoadedKernel, KernelLaunch]:
    """A kernel and a launch of it, with the same argument names in both.

    Args:
        loaded: the kernel; its parameters take the launch's names if they have none of their own.
        constants: what the kernel was compiled with, if known.

    Raises:
        UsageError: the grid cannot be computed.
    """
    parameter_names = {parameter.argument for parameter in loaded.parameters if parameter.type}
    if (
        parameter_names
        and all(map(PLACEHOLDER.fullmatch, parameter_names))
        and parameter_names.isdisjoint(request.arguments)
    ):
        argument_names = [*request.kernel_arguments(constants)]
        for parameters in (loaded.parameters, _with_descriptors(loaded.parameters)):
            matchable = {parameter.argument: parameter for parameter in reversed(parameters) if parameter.type}
            matching_names = _match_arguments([*reversed(matchable.values())], argument_names, request.arguments)
            if matching_names is not None:
                names = dict(zip(reversed(matchable), matching_names, strict=False))
                loaded = _rename_parameters(replace(loaded, parameters=parameters), names)
                matches = ", ".join(f"{parameter_name} is {name}" for parameter_name, name in names.items())
                caveat = "; numbers may be in another order: name them arg0, arg1 … to be sure"
                note = f"this Triton version keeps no argument names; they were matched by order: {matches}"
                note += caveat if len(matching_names) > len(matchable) else ""
                request = replace(request, notes=(*request.notes, note))
                break
    return loaded, resolve_launch(request, [parameter.argument for parameter in loaded.parameters], constants)


def _with_descriptors(parameters: tuple[KernelParameter, ...]) -> tuple[KernelParameter, ...]:
    """The parameters, with pointers turned into descriptors if the types of descriptor parts follow."""
    folded: list[KernelParameter] = []
    while len(folded) < len(parameters):
        first, *following = parameters[len(folded) :]
        folded.append(first)
        if first.type.startswith("*"):
            part_numbers = descriptor_parts_of_types([parameter.type for parameter in following])
            for parameter, part_number in zip(following, part_numbers, strict=False):
                name = f"{first.name}_{part_number}"
                folded.append(replace(parameter, name=name, argument=first.argument, descriptor_part=part_number))
    return tuple(folded)


def _match_arguments(
    parameters: Sequence[KernelParameter], argument_names: Sequence[str], values: Mapping[str, Any]
) -> list[str] | None:
    """The arguments in order, first those that match the parameters; None if they do not match.

    Constants that were also given come after the others. If a number contradicts the divisibility of its
    parameter, nothing matches.
    """
    count = len(parameters)
    numbers = [name for name in argument_names if not isinstance(values[name], (bool, str, NoneType))]
    ordered = [name for name in numbers if values[name] != 1]  # ones become constants by default
    if len(ordered) < count:
        ordered = numbers
    pairs = list(zip(parameters, (values[name] for name in ordered), strict=False))
    is_match = len(pairs) == count and all(_is_compatible(*pair) for pair in pairs)
    surplus_values = [values[name] for name in ordered[count:]]
    if not is_match or any(isinstance(value, Tensor) for value in surplus_values):
        return None
    return ordered if not surplus_values or all(_has_expected_divisibility(*pair) for pair in pairs) else None


def _is_compatible(parameter: KernelParameter, value: Any) -> bool:
    kind = parameter.type
    if not kind.startswith(("*", "!")):
        return isinstance(value, int) or (isinstance(value, float) and kind.startswith(("f", "bf")))
    return isinstance(value, Tensor) and parameter.element_bits in (None, value.bits)


def _has_expected_divisibility(parameter: KernelParameter, value: Any) -> bool:
    """Whether a number agrees with the divisibility by 16 that Triton assumed."""
    is_integer = isinstance(value, int) and parameter.type.startswith("i")
    return not is_integer or (parameter.divisibility > 1) == (value % 16 == 0)


def _rename_parameters(loaded: LoadedKernel, names: Mapping[str, str]) -> LoadedKernel:
    """The kernel with other names for its arguments and their parts."""
    parameters = []
    for parameter in loaded.parameters:
        name = names.get(parameter.argument)
        if name is not None:
            parameter = replace(parameter, name=name + parameter.name.removeprefix(parameter.argument), argument=name)
        parameters.append(parameter)
    tiles = {names.get(name, name): size for name, size in loaded.tile_bytes.items()}
    return replace(loaded, parameters=tuple(parameters), tile_bytes=tiles)
