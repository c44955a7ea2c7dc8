"""`predict --product`: bytes and FLOPs of a matrix product, and the share of a GPU's peaks reached."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from artifact_inspector.analysis.access.matrix_traffic import parse_product
from artifact_inspector.cli._output import print_json
from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.peaks import BANDWIDTH_RANGE, Peaks, bandwidth_only_peaks, peaks_of_product
from artifact_inspector.report.console import write_lines
from artifact_inspector.report.json.prediction import traffic_document
from artifact_inspector.report.traffic import describe_traffic


def print_product(product: str, types: Sequence[str], time: float | None, gpu: str | None, *, json: bool) -> None:
    """Print what a matrix product moves and computes.

    Args:
        time: measured, in seconds; adds bandwidth and throughput.
        gpu: a product, or the bandwidth of its memory (`320GB/s`); adds the share of its peaks.
    """
    peaks = None if gpu is None else _parse_peaks(gpu)
    if time is not None and not 0 < time < float("inf"):
        raise UsageError(f"--time is {time:g}.", "Expected seconds greater than 0.")
    if peaks is not None and time is None:
        raise UsageError("--gpu needs --time with --product.", "Give the measured time of one product: --time SECONDS.")
    traffic = parse_product(product, types)
    if json:
        print_json(traffic_document(traffic, types, time, peaks))
    else:
        write_lines("\n".join(describe_traffic(traffic, types, time, peaks)) + "\n", sys.stdout)


def _parse_peaks(text: str) -> Peaks:
    """The peaks of a GPU by its name or the number in it, or a memory bandwidth in GB/s.

    Raises:
        UsageError: it is neither, or no GPU has such a bandwidth.
    """
    number = text.strip().lower().removesuffix("gb/s").strip()
    peaks = None if number != text.strip().lower() else peaks_of_product(text)
    if peaks is not None:
        return peaks
    try:
        bandwidth = float(number)
    except ValueError:
        raise UsageError(
            f"No peaks are known for GPU {text!r}.", "Give another GPU, or its bandwidth: --gpu 320GB/s."
        ) from None
    low, high = BANDWIDTH_RANGE
    if not low <= bandwidth <= high:
        raise UsageError(f"No GPU has a memory bandwidth of {bandwidth:g} GB/s.", f"Expected {low:g} to {high:g} GB/s.")
    return bandwidth_only_peaks(bandwidth)
