"""Compare a kernel's result with the expected result, which is computed without the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from artifact_inspector.compiling.reference import Workload


def fill_with_poison(workload: Workload) -> None:
    """Fill the result with values that a launch must overwrite, or with zeros if the kernel adds to it."""
    for tensor in _as_tensors(workload.result):
        if workload.adds:
            tensor.zero_()
        elif tensor.is_floating_point():
            tensor.fill_(float("nan"))
        else:
            tensor.fill_(-1 if tensor.is_signed() else 1)


def relative_error(workload: Workload, expected: Any) -> float:
    """The relative error ‖result − expected‖ / ‖expected‖; the largest of several results.

    It is infinite if a result has NaNs or another shape.
    """
    import torch

    largest_error = 0.0
    actual, expected_tensors = _as_tensors(workload.result), _as_tensors(expected)
    if [tensor.shape for tensor in actual] != [tensor.shape for tensor in expected_tensors]:
        return float("inf")
    for ours, theirs in zip(actual, expected_tensors, strict=True):
        difference = torch.linalg.vector_norm(ours.double() - theirs.to(ours.device).double())
        size = torch.linalg.vector_norm(theirs.double())
        ratio = float(difference / size) if size else float(difference)
        # a comparison with NaN is false, and would pass
        largest_error = max(largest_error, ratio if ratio == ratio else float("inf"))
    return largest_error


def _as_tensors(value: torch.Tensor | Sequence[torch.Tensor] | None) -> list[torch.Tensor]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]  # type: ignore[list-item]
