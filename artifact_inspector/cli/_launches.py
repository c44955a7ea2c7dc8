"""From the options of launches to the launches, each with its compiled kernel."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.api.launches import find_launches, pair_launches
from artifact_inspector.cli._groups import LaunchOptions
from artifact_inspector.cli._loading import cached_lookup, make_disassembler
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.kernel_loader import example_arguments
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument, parse_document
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.files.reader import read_user_text

if TYPE_CHECKING:
    from artifact_inspector.api.pair_prices import PredictTime
    from artifact_inspector.comparison.pair_price import PairPrice

LaunchPair = tuple[Artifact, LaunchRequest]
"""A compiled kernel, and a launch of it."""


def requested_pairs(
    options: LaunchOptions,
    cache: Cache,
    name: str | None,
    filters: Sequence[KernelFilter] = (),
    *,
    all_variants: bool = False,
) -> list[LaunchPair]:
    """The requested launches, each with its compiled kernel."""
    requests = read_launches(options, cache, name, filters, all_variants=all_variants)
    return pair_launches(cache, name, filters, requests, all_variants=all_variants)


def read_launches(
    options: LaunchOptions,
    cache: Cache,
    name: str | None,
    filters: Sequence[KernelFilter] = (),
    *,
    all_variants: bool = False,
) -> tuple[LaunchRequest, ...]:
    """The requested launches: from a file, the command line, else recorded in the cache.

    Raises:
        UsageError: there is no launch, or one cannot be read.
    """
    arguments = dict(parse_argument(text) for text in options.arguments or ())
    from_file = None if options.launch is None else read_launch_file(options.launch)
    requests = find_launches(
        cache, name, filters, options.grid, arguments, all_variants=all_variants, given_launches=from_file
    )
    if not requests:
        raise UsageError(
            "No launch to simulate: this cache has none recorded, and no grid was given.",
            "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE. "
            "Caches made by `inspect-kernel capture` or `bench` have their launches recorded."
            f"{_example_arguments(cache, name, filters)}",
        )
    return requests


def launch_disassembler(pairs: Sequence[LaunchPair], nvdisasm: Path | None) -> Disassemble | None:
    """A function that disassembles the kernels of launches."""
    return make_disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)


def make_time_predictor(nvdisasm: Path | None) -> PredictTime:
    """Predicts the time of a launch; the result cache keeps it."""
    from artifact_inspector.api.pair_prices import predict_pair, recall_price  # half a second

    index = cached_lookup(None).index

    def predict(artifact: Artifact, request: LaunchRequest, gpu: str | None) -> PairPrice:
        pair = (artifact, artifact)

        def compute() -> PairPrice:
            disassemble = make_disassembler([artifact], nvdisasm, sass=True)
            return predict_pair(*pair, request, disassemble, (gpu, gpu), open_index=index, has_overlap=False)

        return recall_price(index, pair, request, compute, gpu)

    return predict


def read_launch_file(launch: Path) -> tuple[LaunchRequest, ...]:
    """The launches of a file.

    Raises:
        UsageError: it cannot be read, or has no launch.
    """
    try:
        return parse_document(read_user_text(launch), launch.name)
    except OSError as error:
        raise UsageError(f"{launch} cannot be read: {error.strerror or error}.") from None


def _example_arguments(cache: Cache, name: str | None, filters: Sequence[KernelFilter]) -> str:
    """Complete arguments of a command for the first matching kernel; empty if its arguments are unknown."""
    for entry in select_kernels(cache, name, filters)[:1]:
        example_texts = example_arguments(entry)
        if example_texts:
            words = [cache.title, entry.hash[:12], "--grid", "1"]
            words += [f"--arg={text}" for text in example_texts]
            return f" Complete arguments, for example: {shlex.join(words)}"
    return ""
