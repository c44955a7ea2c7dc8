"""`inspect-kernel cache verify|du|prune DIR`: damage, sizes and removal of entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.files.doctor import PruneRules

ACTIONS = ("verify", "du", "prune")


@command()
def cache(
    action: Annotated[str, options.argument("verify|du|prune", "Find damage, sum up sizes, or remove entries.")],
    directory: Path | None = options.argument("DIR", "A cache directory. Default: Triton's own.", None),
    older_than: float | None = options.option("--older-than DAYS", "prune: remove entries not used for so long.", None),
    keep_target: list[str] | None = options.option("--keep-target GPU", "prune: remove entries of other GPUs.", None),
    keep_triton: list[str] | None = options.option(
        "--keep-triton VERSION", "prune: remove entries of other versions of Triton.", None
    ),
    duplicates: bool = options.option("--duplicates", "prune: remove entries that repeat another one.", False),
    yes: bool = options.option("--yes", "prune: remove them; without it, only list them.", False),
    json: options.Json = False,
) -> None:
    """Check, measure or prune a cache directory. Exits with 1 if something is damaged."""
    from artifact_inspector.cli._exit import DIFFERENT
    from artifact_inspector.cli._output import print_json, print_report
    from artifact_inspector.files.cache import default_directory
    from artifact_inspector.files.doctor import PruneRules, examine, prune
    from artifact_inspector.report.health import DamageReport, PruneReport, SizeReport
    from artifact_inspector.report.json.health import HealthDocument

    if action not in ACTIONS:
        raise UsageError(f"Unknown action {action!r}.", f"Expected one of {', '.join(ACTIONS)}.")
    rules = _read_rules(older_than, keep_target, keep_triton, duplicates=duplicates)
    if action != "prune" and (yes or rules != PruneRules()):
        raise UsageError(f"These options belong to `cache prune`, not to `cache {action}`.")
    health = examine((directory or default_directory()).expanduser())
    pruned = prune(health, rules, is_dry_run=not yes) if action == "prune" else ()
    if json:
        print_json(HealthDocument(health=health, pruned=pruned))
    elif action == "prune":
        print_report(PruneReport(pruned, is_dry_run=not yes))
    else:
        print_report(DamageReport(health) if action == "verify" else SizeReport(health))
    if action == "verify" and (health.damage or health.unsearched):
        raise SystemExit(DIFFERENT)


def _read_rules(
    older_than: float | None, targets: list[str] | None, tritons: list[str] | None, *, duplicates: bool
) -> PruneRules:
    from artifact_inspector.facts.selection import parse_targets
    from artifact_inspector.files.doctor import PruneRules
    from artifact_inspector.model.text import split_option_values

    if older_than is not None and older_than < 1:
        raise UsageError(f"--older-than is {older_than:g}.", "Expected 1 or more days.")
    archs = frozenset(target.arch for target in parse_targets(targets or []))
    return PruneRules(older_than, archs, tuple(split_option_values(tritons or [])), duplicates)
