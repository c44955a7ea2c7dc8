"""Compile saved TTIR texts again, concurrently, each with its own options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS, count_processors
from artifact_inspector.compiling.ask.process import current_interpreter, run_requests
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.writer import write_text
from artifact_inspector.hardware.targets import Target


class Recompilation(NamedTuple):
    """The result of compiling one text."""

    artifact: Artifact | None
    """None if the compiler refused the text."""
    message: str | None


def recompile_texts(
    texts: Sequence[tuple[str, Mapping[str, Any]]], stem: str, target: Target, directory: Path
) -> list[Recompilation]:
    """Compile saved texts with the installed Triton; no user code runs.

    Args:
        texts: TTIR texts, each with its compile options.
        stem: file name of the kernel without a suffix.
        directory: an empty directory for the texts and the entries.

    Returns:
        One result for each text, in order.

    Raises:
        CompileError: Triton cannot be used here.
    """
    requests = []
    for number, (text, options) in enumerate(texts):
        ttir_path = directory / f"saved{number}" / f"{stem}.ttir"
        ttir_path.parent.mkdir(parents=True)
        write_text(ttir_path, text)
        request: dict[str, Any] = {
            "place": str(ttir_path),
            "signature": None,
            "constexprs": {},
            "options": dict(options),
        }
        request |= {"configs": None, "targets": [str(target)], "out": str(directory / f"made{number}")}
        requests.append({**request, "environment": {}, "untrusted": True})
    recompilations: dict[int, Recompilation] = {}
    for row in run_requests(current_interpreter(), requests, workers=count_processors(), time_limit=TIME_LIMIT_SECONDS):
        entry_directory = row.get("directory")
        artifact = None if entry_directory is None else open_cache(Path(entry_directory)).entries[0]
        recompilations[row["ask"]] = Recompilation(artifact, row.get("message"))
    return [recompilations[number] for number in range(len(texts))]
