"""Instructions that need all lanes of a warp, and ran with a part of them."""

from __future__ import annotations

from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, site_of


def find_diverged_warps(run: SimulatedLaunch) -> list[MemoryProblem]:
    """Each instruction on matrices, and each shuffle, that a warp ran in parts after a branch.

    Lanes that took different sides of a branch run apart until a convergence barrier (BSYNC, WARPSYNC). If a compiler
    loses the barrier before such an instruction, each part reads the registers of lanes that are elsewhere.
    """
    program, counters = run.loaded.program, run.counters
    branches = [step for step in program.steps if counters.divergent_warps[step.index]]
    exits = [step for step in program.steps if step.opcode.startswith("EXIT")]
    if not branches or any(counters.threads_executed[step.index] % program.warp_size for step in exits):
        return []
    # where a shuffle may be reached in parts, ptxas lets the parts meet
    meets = any(step.opcode.startswith("WARPSYNC.COLLECTIVE") for step in program.steps)
    problems = []
    for step in program.steps:
        before = [branch for branch in branches if branch.index < step.index]
        missing = counters.warps_executed[step.index] * program.warp_size - counters.threads_executed[step.index]
        if missing > 0 and before and _needs_all_lanes(step, has_shuffles=not meets):
            message = f"a warp runs it in parts: its lanes parted at {site_of(before[-1])} and did not converge"
            remedy = "The compiler lost the point where the warp reconverges: try another release."
            problems.append(MemoryProblem(Check.DIVERGED, message, site_of(step), suggestion=remedy))
    return problems


def _needs_all_lanes(step: ProgramStep, *, has_shuffles: bool) -> bool:
    is_matrix = step.kind in ("matrix_load", "matrix_store") or step.matrix_types is not None
    is_matrix = (is_matrix or step.opcode.startswith("MOVM")) and not step.opcode.startswith("U")
    return step.guard is None and (is_matrix or (has_shuffles and step.opcode.startswith("SHFL")))
