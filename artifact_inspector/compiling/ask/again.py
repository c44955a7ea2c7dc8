"""Saved tensor-level IR compiled again, each text with options of its own, all at the same time."""

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
    """What became of one text."""

    artifact: Artifact | None
    """None where the compiler refused it."""
    message: str | None


def compile_again(
    texts: Sequence[tuple[str, Mapping[str, Any]]], stem: str, target: Target, directory: Path
) -> list[Again]:
    """What the Triton that is installed here makes of saved texts; no code of the user's runs.

    Args:
        texts: of TTIR, each with the options of the compile.
        stem: what the kernel's files are called.
        target: the GPU.
        directory: an empty one, for the texts and the entries.

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
