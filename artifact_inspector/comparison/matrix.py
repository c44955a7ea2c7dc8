"""All variants of a kernel in a cache: its targets, versions and configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.comparison.variant_causes import Causes, find_causes
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model.tile import Tile
from artifact_inspector.vocabulary.fact import Absent, FactColumn, Value
from artifact_inspector.vocabulary.names import step_of
from artifact_inspector.vocabulary.rows import Summary, columns, figure_of, summarise, verdict_words
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms, tile_of


def shown_columns() -> tuple[FactColumn, ...]:
    """Columns by which variants can be listed and sorted."""
    return tuple(fact.column for fact in columns() if fact.column is not None)


@dataclass(frozen=True, slots=True)
class Variant:
    """One compilation of the kernel."""

    kernel: KernelFacts
    label: str
    """What distinguishes its configuration from the others."""
    summary: Summary
    regions: Mapping[str, RegionFacts]
    """Step → the main loop there."""
    figures: Mapping[str, Value]
    """By column name; absent if it does not apply, None if unknown."""

    @property
    def verdicts(self) -> dict[str, str | None]:
        """Step → verdict of the main loop; None if unknown, absent without the stage."""
        return {step: verdict_words(region) for step, region in self.regions.items()}

    @property
    def configuration(self) -> tuple[str, int | None, int | None]:
        """Tile, warps and stages."""
        artifact = self.kernel.artifact
        return tile_of(self.kernel.program) or "?", artifact.num_warps, artifact.num_stages


@dataclass(frozen=True, slots=True)
class Matrix:
    """All variants of one kernel."""

    name: str
    variants: tuple[Variant, ...]
    causes: Causes
    """Why it was compiled so often."""
    options: tuple[str, ...]
    """Options besides warps and stages in which variants of one target and version differ."""


def find_matrix(kernels: Iterable[KernelFacts], sort: Sequence[str] = ()) -> Matrix:
    """The variants of one kernel, in the order of targets, versions and configurations, or sorted.

    Args:
        sort: column names, each with `-` in front for the greatest first; unknown values come last.

    Raises:
        UsageError: no kernel, kernels of several names, or no such column.
    """
    kernel_list = list(kernels)
    names = sorted({kernel.artifact.display_name for kernel in kernel_list})
    if len(names) != 1:
        raise UsageError(
            f"{len(names)} kernels match, but a matrix shows one.",
            f"Give the full name of one: {', '.join(names)}." if names else "Name a cache that has kernels.",
        )
    compiled = [Compiled(kernel.artifact, kernel.program) for kernel in kernel_list]
    labels = label_forms(compiled, find_varying(form.artifact for form in compiled))
    forms = sorted((_make_variant(*pair) for pair in zip(kernel_list, labels, strict=True)), key=_natural)
    for sort_key in reversed(sort):
        forms = _sorted(forms, sort_key)
    return Matrix(names[0], tuple(forms), find_causes(compiled), _options(forms))


def _options(forms: Sequence[Variant]) -> tuple[str, ...]:
    values: dict[tuple[str | None, str | None, str], set[Value]] = {}
    for form in forms:
        for name, value in form.summary.options.items():
            if name not in ("num_warps", "num_stages"):
                values.setdefault((form.summary.target, form.summary.triton, name), set()).add(value)
    return tuple(dict.fromkeys(name for (_, _, name), option_values in values.items() if len(option_values) > 1))


def _make_variant(kernel: KernelFacts, label: str) -> Variant:
    figures: dict[str, Value] = {}
    for fact in columns():
        value = figure_of(fact, kernel)
        if fact.column is not None and value is not Absent.ABSENT:
            figures[fact.column.name] = value
    regions = {
        step_of(stage): region
        for stage, facts in kernel.stages.items()
        if (region := facts.region(kernel.principal or "")) is not None
    }
    return Variant(kernel, label, summarise(kernel), regions, figures)


def _natural(form: Variant) -> tuple[str, ...]:
    tiles, warps, stages = form.configuration
    artifact = form.kernel.artifact
    target = "" if artifact.target is None else f"{len(artifact.target.arch):02}{artifact.target.arch}"
    return (
        # 256 comes before 1024
        " ".join(f"{extent:08}" for extent in Tile(tiles).extents) or tiles,
        f"{warps or 0:04}",
        f"{stages or 0:04}",
        "" if artifact.target is None else artifact.target.backend,
        target,
        artifact.triton_version or "",
        artifact.hash,
    )


_SORT_KEYS: Mapping[str, Callable[[Variant], Value]] = {
    "verdict": lambda form: form.kernel.verdict,
    "target": lambda form: form.summary.target,
    "triton": lambda form: form.summary.triton,
    "warps": lambda form: form.kernel.artifact.num_warps,
    "stages": lambda form: form.kernel.artifact.num_stages,
}


def _sorted(forms: Sequence[Variant], sort_key: str) -> list[Variant]:
    name = sort_key.lstrip("-")
    columns_by_name = (*(column.name for column in shown_columns()), *_SORT_KEYS)
    if name not in columns_by_name:
        raise UsageError(f"Unknown column {name!r} for --sort.", f"Expected one of {', '.join(columns_by_name)}.")
    values = {id(f): _SORT_KEYS[name](f) if name in _SORT_KEYS else f.figures.get(name) for f in forms}
    with_value = [form for form in forms if values[id(form)] is not None]
    without_value = [form for form in forms if values[id(form)] is None]
    with_value.sort(key=lambda form: values[id(form)], reverse=sort_key.startswith("-"))  # type: ignore[arg-type, return-value]
    return with_value + without_value
