"""The graph of a kernel at one stage, computed from its file on request."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_graph import FunctionGraph, find_graph
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel_reading import KernelReading
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage


def graph_of(
    artifact: Artifact, stage: Stage | None = None, region: str | None = None, disassemble: Disassemble | None = None
) -> FunctionGraph:
    """Blocks, loads, computes and stores of one stage, with the data flow between them.

    Args:
        stage: the last that can be read, without one.
        region: id of a region, with the regions inside it (`loop@81`); the whole stage without one.

    Raises:
        UsageError: the kernel has no such stage, or the stage no such region; the remedy lists those it has.
    """
    kernel = KernelReading(artifact, disassemble)
    stages = kernel.stages
    selected = stages[-1] if stage is None and stages else stage
    if selected is None or selected not in stages:
        name = "stage" if selected is None else f"stage {selected.value!r}"
        have = ", ".join(function.value for function in stages) or "none"
        raise UsageError(f"{artifact.display_name} has no readable {name}.", f"Expected one of {have}.")
    functions = kernel.at(selected).order.functions
    graphs = []
    names: list[str] = []
    for function in functions:
        prefix = f"{function.name}/" if len(functions) > 1 else ""
        if region is None:
            everything = frozenset(range(len(function.code.function.blocks)))
            graphs.append(find_graph(function.code, function.code.indices(everything), prefix))
        for candidate in function.regions:
            name = function.prefix + candidate.id
            names.append(name)
            if name == region:
                indices = (
                    function.code.indices(candidate.enclosed_blocks) if candidate.residue is None else candidate.residue
                )
                graphs.append(find_graph(function.code, indices, prefix))
    if not graphs:
        have = ", ".join(names) or "none"
        raise UsageError(f"{artifact.display_name} has no region {region!r} at {selected.value}.", f"It has {have}.")
    return FunctionGraph(
        tuple(node for graph in graphs for node in graph.nodes), tuple(edge for graph in graphs for edge in graph.edges)
    )
