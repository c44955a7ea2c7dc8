"""`inspect-kernel bandwidth`: what a measured time of a matrix product amounts to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import Json
from artifact_inspector.cli._telling import print_json
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.hardware.peaks import Peaks


@app.command()
def bandwidth(
    product: Annotated[str, typer.Argument(metavar="MxK@KxN", help="The product, e.g. 1x4096@4096x7168.")],
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help="Of all three, or of a, b and the result.")
    ] = "fp16",
    time: Annotated[
        float | None, typer.Option("--time", metavar="SECONDS", help="How long one product took.")
    ] = None,
    peak: Annotated[
        str | None,
        typer.Option(
            "--peak", metavar="GPU", help="What can be reached: of a GPU (T4, 4090), or of a memory: 320GB/s."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Count what a matrix product moves and computes; with its time, the shares of the peaks reached."""
    with exit_codes(json=json):
        from artifact_inspector.analysis.access.traffic import parse_product
        from artifact_inspector.report.console import write_lines
        from artifact_inspector.report.json.traffic import traffic_document
        from artifact_inspector.report.traffic import describe_traffic

        most = None if peak is None else _peak(peak)
        if time is not None and not 0 < time < float("inf"):
            raise UsageError(f"--time is {time:g}.", "It must be greater than 0.")
        if peak is not None and time is None:
            raise UsageError("--peak says nothing without --time.", "Give the time of one product too.")
        types = dtype.split(",")
        traffic = parse_product(product, types)
        if json:
            document = traffic_document(traffic, types, time, most)
            print_json(document)
        else:
            write_lines("\n".join(describe_traffic(traffic, types, time, most)) + "\n", sys.stdout)


def _peak(word: str) -> Peaks:
    """The peaks of a GPU by its name or the number in it, or a memory's alone in GB/s.

    Raises:
        UsageError: it is neither, or no memory is as slow or as fast.
    """
    from artifact_inspector.hardware.peaks import MEMORIES, memory_of, name_peaks

    number = word.strip().lower().removesuffix("gb/s").strip()
    found = None if number != word.strip().lower() else name_peaks(word)
    if found is not None:
        return found
    try:
        bandwidth = float(number)
    except ValueError:
        raise UsageError(
            f"No peak is known for {word!r}.", "Name another GPU, or give the memory's: --peak 320GB/s."
        ) from None
    low, high = MEMORIES
    if not low <= bandwidth <= high:
        raise UsageError(
            f"No memory of a GPU moves {bandwidth:g} GB/s.", f"Peaks are between {low:g} and {high:g} GB/s."
        )
    return memory_of(bandwidth)
