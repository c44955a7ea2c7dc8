"""`inspect-kernel why`: in what the entries of one kernel differ, that each was compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, Targets
from artifact_inspector.cli._reading import inspect_kernels, open_or_advise
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.vocabulary.forms import Compiled


@app.command()
def why(
    cache: CacheDirectory = None,
    a: Annotated[
        str | None,
        typer.Argument(metavar="A", help="Part of a name or hash: of one entry, or of all."),
    ] = None,
    b: Annotated[
        str | None,
        typer.Argument(metavar="B", help="Another entry; without it, what makes all forms of one kernel."),
    ] = None,
    target: Targets = None,
    json: Json = False,
) -> None:
    """Say why a kernel was compiled again: what separates two entries, how many forms each cause makes."""
    with exit_codes(json=json):
        from artifact_inspector.comparison.why import find_causes, find_reasons
        from artifact_inspector.report.json.why import CausesDocument, ReasonsDocument
        from artifact_inspector.report.why import CausesReport, ReasonsReport

        found = open_or_advise(cache)
        forms = _forms(found, a, target or [])
        if b is None:
            name, causes = forms[0].artifact.display_name, find_causes(forms)
            if json:
                document = CausesDocument(name=name, causes=causes)
                print_json(document)
            else:
                print_report(CausesReport(name, causes))
            return
        sides = _one(forms, a or ""), _one(_forms(found, b, target or []), b)
        reasons, (ours, theirs) = find_reasons(*sides), (side.artifact for side in sides)
        if json:
            pair = ReasonsDocument(left=ours.hash, right=theirs.hash, reasons=reasons)
            print_json(pair)
        else:
            left, right = (f"{side.display_name} {side.hash[:8]}" for side in (ours, theirs))
            print_report(ReasonsReport((left, right), reasons))


def _forms(cache: Cache, name: str | None, words: list[str]) -> list[Compiled]:
    """The entries of one kernel.

    Raises:
        UsageError: there are none, or they are of several kernels.
    """
    from artifact_inspector.facts.selection import choose, parse_which
    from artifact_inspector.vocabulary.forms import Compiled

    chosen = choose(cache, name, parse_which(words))
    names = sorted({artifact.display_name for artifact in chosen})
    if len(names) != 1:
        raise UsageError(
            f"{len(names)} kernels fit, and the question is of one.",
            f"Give the whole name of one: {', '.join(names)}." if names else "Name a cache that has some.",
        )
    kernels = inspect_kernels(chosen, None, lambda kernel: kernel.program)
    return [Compiled(kernel.artifact, kernel.program) for kernel in kernels]


def _one(forms: list[Compiled], word: str) -> Compiled:
    from artifact_inspector.comparison.matching import Candidate

    if len(forms) != 1:
        known = "\n".join(f"  {Candidate(form.artifact)}" for form in forms[:12])
        raise UsageError(f"{word!r} fits {len(forms)} entries, and two are compared.", f"There are\n{known}")
    return forms[0]
