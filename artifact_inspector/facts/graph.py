"""The graph of a kernel at one stage, found from its file when somebody asks for it."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_graph import FunctionGraph, find_graph
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel_reading import KernelReading
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage


def graph_of(
    artifact: Artifact,
    stage: Stage | None = None,
    region: str | None = None,
    disassemble: Disassemble | None = None,
) -> FunctionGraph:
    """Blocks, loads, computes and stores of one stage, with what goes from one to the other.

    Args:
        stage: the last that can be read, without one.
        region: id of a region with all that stands in it (`loop@81`); the whole stage without one.

    Raises:
        UsageError: the kernel has no such stage, or the stage no such region; the remedy lists those it has.
    """
    kernel = KernelReading(artifact, disassemble)
    stages = kernel.stages
    chosen = stages[-1] if stage is None and stages else stage
    if chosen is None or chosen not in stages:
        name = "stage" if chosen is None else f"stage {chosen.value!r}"
        have = ", ".join(one.value for one in stages) or "none"
        raise UsageError(f"{artifact.display_name} has no {name} that could be read.", f"It has {have}.")
    functions = kernel.at(chosen).order.functions
    found = []
    names: list[str] = []
    for one in functions:
        prefix = f"{one.name}/" if len(functions) > 1 else ""
        if region is None:
            everything = frozenset(range(len(one.code.function.blocks)))
            found.append(find_graph(one.code, one.code.indices(everything), prefix))
        for part in one.regions:
            name = one.prefix + part.id
            names.append(name)
            if name == region:
                indices = one.code.indices(part.enclosed_blocks) if part.residue is None else part.residue
                found.append(find_graph(one.code, indices, prefix))
    if not found:
        have = ", ".join(names) or "none"
        raise UsageError(f"{artifact.display_name} has no region {region!r} at {chosen.value}.", f"It has {have}.")
    return FunctionGraph(
        tuple(node for graph in found for node in graph.nodes),
        tuple(edge for graph in found for edge in graph.edges),
    )
