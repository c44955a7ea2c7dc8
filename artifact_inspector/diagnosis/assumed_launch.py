"""A launch for a kernel without a recorded one: large tensors and a grid that fills the GPU."""

from __future__ import annotations

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.kernel_loader import example_arguments
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.files.cache import Artifact

ASSUMED_NUMBER = 4096
"""Value of every integer argument."""
ASSUMED_ELEMENTS = 1 << 26
"""Elements of every tensor."""
_CTAS_PER_MULTIPROCESSOR = 32


def assume_launch(artifact: Artifact) -> LaunchRequest:
    """A launch whose grid has many CTAs for each multiprocessor, with a note that says so.

    Raises:
        UsageError: the arguments are not pointers and numbers, or are unknown.
    """
    examples = example_arguments(artifact)
    if not examples:
        raise UsageError(
            f"No launch of {artifact.display_name} is recorded, and its arguments are unknown.",
            "Give --launch FILE, or --grid and --arg NAME=VALUE for each argument.",
        )
    arguments = {}
    for example in examples:
        name, value = parse_argument(example)
        is_tensor = isinstance(value, Tensor)
        arguments[name] = Tensor((ASSUMED_ELEMENTS,), value.dtype) if is_tensor else ASSUMED_NUMBER
    product = None if artifact.target is None else artifact.target.gpu.product
    ctas = _CTAS_PER_MULTIPROCESSOR * (128 if product is None else product.multiprocessors)
    note = (
        f"no launch is recorded: assumed {ctas} CTAs, {ASSUMED_NUMBER} for each number and "
        f"{ASSUMED_ELEMENTS:,} elements for each tensor"
    )
    return LaunchRequest((ctas,), arguments, None, (note,))
