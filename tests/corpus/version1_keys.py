"""Documents of schema version 1 in the keys of version 2, as docs/json-v1-v2.tsv lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from artifact_inspector.report.json.baseline_reading import upgrade_document

_OCCUPANCY: Mapping[str, str] = {"warps_at_most": "max_warps"}

_DIFFERENCE: Mapping[str, str] = {"what": "facet"}

_FACT_PAIR: Mapping[str, str] = {"why": "reason"}

_FACT_CHANGE: Mapping[str, str] = {"what": "topic", "before": "value_before", "after": "value_after"}

_REGION: Mapping[str, str] = {
    "in_program": "is_in_program",
    "readable": "named_signature",
    "unrolled_by": "unroll_factor",
    "copies_stand": "copy_position",
    "pairs[].f": "issued_before",
    "pairs[].g": "issued_after",
    "other": "unassigned",
    "fused": "fused_multiply_adds",
    "changed": "order_changed",
    "in_flight.compute_covered": "compute_overlap",
    "in_flight.waits[].pending_before": "in_flight_before",
    "in_flight.waits[].pending_after": "in_flight_after",
    "in_flight.waits[].always": "is_unconditional",
    "pipeline.why_not": "unpipelined_reason",
    "matrix_identity": "matrix_balance",
    "matrix_identity.found_flop": "actual_flop",
    "matrix_identity.holds": "is_balanced",
    "matrix_identity.words": "explanation",
    "conversions[].always": "is_unconditional",
    "conversions[].changes": "is_loop_variant",
    "conversions[].for_dots": "is_for_dots",
    "trips.passes": "trip_count",
    "matrix_generation.words": "description",
}


def _below(prefix: str, renamed: Mapping[str, str]) -> dict[str, str]:
    """The same names for objects at a longer path."""
    return {f"{prefix}.{path}": name for path, name in renamed.items()}


_KERNEL: Mapping[str, str] = {
    "place": "requested_kernel",
    **_below("resources.occupancy", _OCCUPANCY),
    **_below("resources.occupancy_on.*", _OCCUPANCY),
    **_below("resources.occupancy_compiled_on.*", _OCCUPANCY),
    "resources.contradictions[].sentence": "message",
    "resources.contradictions[].places": "locations",
    "shared_bill": "shared_allocations",
    "shared_accounted": "shared_usage",
    "shared_accounted.accounted": "is_accounted",
    "shared_accounted.unexplained": "unexplained_bytes",
    "cache_policies[].asked": "requested",
    "cache_policies[].found": "applied",
    "principal": "main_region",
    "stages.*.accesses.folded": "folded_masks",
    **_below("stages.*.regions[]", _REGION),
}

_CHANGE: Mapping[str, str] = {
    **_below("differences[]", _DIFFERENCE),
    "parting": "first_divergence",
    **_below("facts[]", _FACT_PAIR),
    "reason.words": "description",
}

_LAUNCH: Mapping[str, str] = {
    "cta_order.waves[].bytes_asked": "bytes_requested",
    "cta_order.waves[].tiles_asked": "tiles_requested",
    "cta_order.waves_in_all": "wave_count",
    "cta_order.bytes_asked": "bytes_requested",
    "cta_order.others": "alternatives",
    "not_understood": "unsupported_opcodes",
    "outside": "out_of_bounds",
    "outside[].lane": "thread",
    "outside[].near": "nearest_tensor",
    "outside_count": "out_of_bounds_lanes",
    "held_against_hardware": "is_validated_on_hardware",
}

_CAUSES: Mapping[str, str] = {
    "forms": "variant_count",
    "varying[].respect": "key_part",
    "varying[].makes": "variants_caused",
    "alike": "indistinguishable",
}

_PASS_OF_RELEASE: Mapping[str, str] = {**_below("[]", _FACT_CHANGE), **_below("[].changes[]", _FACT_CHANGE)}

RENAMED_KEYS: Mapping[str, Mapping[str, str]] = {
    "cache": {**_below("kernels[]", _KERNEL), "others": "other_files"},
    "watched": _below("kernel", _KERNEL),
    "pair": {
        **_below("differences[]", _DIFFERENCE),
        "parting": "first_divergence",
        **_below("options[]", _FACT_PAIR),
        **_below("facts[]", _FACT_PAIR),
        "regions[].principal": "is_main",
        "regions[].parting": "first_divergence",
        "regions[].turns": "verdict_changes",
    },
    "corpus": _below("kernels[]", _CHANGE),
    "check": _below("kernels[].change", _CHANGE),
    "matrix": {"forms": "variants", **_below("causes", _CAUSES)},
    "causes": _below("causes", _CAUSES),
    "reasons": {"reasons[].respect": "key_part"},
    "compiled": {"compiled[].place": "kernel_path"},
    "captured": {
        "captured[].launches[].place": "location",
        "captured[].launches[].times": "count",
        "captured[].benchmarked": "benchmark_launches",
        "captured[].defined": "kernel_path",
        "notes[].place": "location",
    },
    "bench": {"rows[].right": "is_correct"},
    "prediction": {**_LAUNCH, **_below("launches[]", _LAUNCH)},
    "ranking": {
        "rank[].binding": "bottleneck",
        "rank[].same_as": "identical_to",
        "rank[].unknown": "missing_inputs",
        "refused": "failed",
    },
    "pressure": {"kernels[].held": "live_at_peak", "kernels[].shed": "registers_to_free"},
    "timeline": {
        "lanes[].events[].times": "repetitions",
        "lanes[].loadings": "load_spans",
        "lanes[].loadings[].turns": "back_edges",
        "lanes[].loadings[].behind": "is_after_loop",
        "lanes[].loadings[].by_wait": "is_by_wait",
        "lanes[].loadings[].bounded": "is_bounded",
        "lanes[].stretches": "spans",
        "lanes[].stretches[].untold": "unknown_reason",
    },
    "passes": {**_below("passes.steps[].changes[]", _FACT_CHANGE), "passes.final[].what": "topic"},
    "bisection": {
        "bisection.what": "topics",
        "bisection.tried": "releases",
        "bisection.changed": "changed_between",
        "bisection.differences[].before": "older_value",
        "bisection.differences[].after": "newer_value",
        **{f"bisection.differences[].older_pass{path}": name for path, name in _PASS_OF_RELEASE.items()},
        **{f"bisection.differences[].newer_pass{path}": name for path, name in _PASS_OF_RELEASE.items()},
    },
    "index": {"place": "file"},
    "reach": {"answers": "results", "answers[].answer": "effect", **_below("answers[].facts[]", _FACT_PAIR)},
    "remedies": {
        "kernels[].tried": "trials",
        "kernels[].tried[].answer": "effect",
        "kernels[].tried[].is_gone": "is_resolved",
        **_below("kernels[].tried[].facts[]", _FACT_PAIR),
        "untried": "findings_without_switch",
    },
}
"""Document → path in version 1 → its key in version 2. Other keys are the same in both.

`[]` stands for every element of an array, `*` for every key of a mapping.
"""


@dataclass
class _Node:
    """The renamed keys at and below one path."""

    name: str | None = None
    children: dict[str, _Node] = field(default_factory=dict)

    def child(self, segment: str) -> _Node:
        """The node of a key; that of `*` for a key of a mapping."""
        return self.children.get(segment) or self.children.get("*") or _UNCHANGED


_UNCHANGED = _Node()


def upgrade_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of version 1 with the keys and the number of version 2; any other document as it is."""
    if document.get("schema_version") != 1:
        return dict(document)
    upgraded = _rename(document, _tree(RENAMED_KEYS.get(str(document.get("document")), {})))
    return upgrade_document({**upgraded, "schema_version": 1})


def path_in_version_2(document: str, path: str) -> str:
    """The path in version 2 of a path in version 1.

    Example:
        >>> path_in_version_2("matrix", "causes.varying[].respect.name")
        'causes.varying[].key_part.name'
    """
    node, names = _tree(RENAMED_KEYS.get(document, {})), []
    for segment in _segments(path):
        node = node.child(segment)
        names.append(node.name or segment)
    return ".".join(names).replace(".[]", "[]")


def _segments(path: str) -> Iterator[str]:
    return iter(path.replace("[]", ".[]").split("."))


def _tree(renamed: Mapping[str, str]) -> _Node:
    root = _Node()
    for path, name in renamed.items():
        node = root
        for segment in _segments(path):
            node = node.children.setdefault(segment, _Node())
        node.name = name
    return root


def _rename(value: Any, node: _Node) -> Any:
    if isinstance(value, Mapping):
        children = ((key, node.child(key), member) for key, member in value.items())
        return {child.name or key: _rename(member, child) for key, child, member in children}
    if isinstance(value, list):
        return [_rename(member, node.child("[]")) for member in value]
    return value
