"""`inspect-kernel bandwidth`: what a measured time of a matrix product amounts to."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import Json
from artifact_inspector.errors import UsageError


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
        typer.Option("--peak", metavar="GB/S", help="What the memory can move: 320, or a product: T4, H200."),
    ] = None,
    json: Json = False,
) -> None:
    """Count the bytes that a matrix product moves, and with its time give the effective bandwidth."""
    with exit_codes(json=json):
        from artifact_inspector.analysis.access.traffic import parse_product
        from artifact_inspector.report.console import write, write_lines
        from artifact_inspector.report.json import as_text
        from artifact_inspector.report.json.traffic import traffic_document
        from artifact_inspector.report.traffic import describe_traffic

        most = None if peak is None else _peak(peak)
        for name, value in (("--time", time), ("--peak", most)):
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{name} is {value:g}.", "It must be greater than 0.")
        if peak is not None and time is None:
            raise UsageError("--peak says nothing without --time.", "Give the time of one product too.")
        types = dtype.split(",")
        traffic = parse_product(product, types)
        if json:
            write(as_text(traffic_document(traffic, time, most), sys.stdout.encoding), sys.stdout)
        else:
            write_lines("\n".join(describe_traffic(traffic, types, time, most)) + "\n", sys.stdout)


def _peak(word: str) -> float:
    """GB/s of a number, or of a product by its name.

    Raises:
        UsageError: it is neither.
    """
    from artifact_inspector.hardware.peaks import find_peaks

    try:
        return float(word)
    except ValueError:
        found = find_peaks(word)
    if found is None:
        raise UsageError(f"No peak is known for {word!r}.", "Give it in GB/s: --peak 320.")
    return found.bandwidth / 1e9
