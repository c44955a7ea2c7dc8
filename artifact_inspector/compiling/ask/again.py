"""Compile saved TTIR texts again, concurrently, each with its own options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS, processors
from artifact_inspector.compiling.ask.process import answers, this_interpreter
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.writing import write_text
from artifact_inspector.hardware.targets import Target


class Again(NamedTuple):
    """The result of compiling one text."""

    artifact: Artifact | None
    """None if the compiler refused the text."""
    message: str | None


def compile_again(
    texts: Sequence[tuple[str, Mapping[str, Any]]], stem: str, target: Target, directory: Path
) -> list[Again]:
    """Compile saved texts with the installed Triton; no user code runs.

    Args:
        texts: TTIR texts, each with its compile options.
        stem: file name of the kernel without a suffix.
        target: the GPU.
        directory: an empty directory for the texts and the entries.

    Returns:
        One result for each text, in order.

    Raises:
        CompileError: Triton cannot be used here.
    """
    asks = []
    for number, (text, options) in enumerate(texts):
        place = directory / f"saved{number}" / f"{stem}.ttir"
        place.parent.mkdir(parents=True)
        write_text(place, text)
        asks.append(
            {
                "place": str(place),
                "signature": None,
                "constexprs": {},
                "options": dict(options),
                "configs": None,
                "targets": [str(target)],
                "out": str(directory / f"made{number}"),
                "environment": {},
                "untrusted": True,
            }
        )
    found: dict[int, Again] = {}
    for row in answers(this_interpreter(), asks, workers=processors(), time_limit=TIME_LIMIT_SECONDS):
        made = row.get("directory")
        artifact = None if made is None else open_cache(Path(made)).entries[0]
        found[row["ask"]] = Again(artifact, row.get("message"))
    return [found[number] for number in range(len(texts))]
