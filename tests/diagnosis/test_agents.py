"""A scripted agent without a model solves twenty tasks with the tools for agents: is what it needs in the answers?

Run with `-m exhaustive -s` to print the table of docs/lab/agents.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pairs
import pytest

pytest.importorskip("mcp")
pytest.importorskip("triton")

from artifact_inspector.compiling import capture_program
from artifact_inspector.compiling.ask.manifest import add_to_manifest
from artifact_inspector.serving.mcp import _tool_result
from artifact_inspector.serving.roots import AllowedDirectories
from artifact_inspector.serving.tool import CHARACTERS_PER_TOKEN, DEFAULT_TOKENS, ToolContext

TARGET = "sm_90"
SLOW = (
    "drained", "serial", "fp32-fma", "wide-dot", "chase", "banks", "columns", "redundant", "reduction", "division",
    "atomics", "spills", "layout",
)  # fmt: skip
BROKEN = (
    "add_without_mask", "store_without_mask", "gather_too_far", "sum_without_atomics", "count_without_atomics",
    "shift_in_place", "falsely_aligned_rows",
)  # fmt: skip
PROGRAM = Path(__file__).parents[1] / "cases" / "memory_errors.py"


class Agent:
    """Calls tools one after another, and counts what it reads."""

    def __init__(self, root: Path) -> None:
        self.context = ToolContext(AllowedDirectories([root]))
        self.root = root
        self.texts: list[str] = []

    def call(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """The items of the first answer only: what is on a later page is not in the chain."""
        result = _tool_result(self.context, tool, {"cache": str(self.root), **arguments})
        (content,) = result.content
        assert not result.is_error, content.text
        self.texts.append(content.text)
        items: list[dict[str, Any]] = json.loads(content.text)["items"]
        return items

    @property
    def tokens(self) -> list[int]:
        return [len(text) // CHARACTERS_PER_TOKEN for text in self.texts]


def solve_slow(name: str, directory: Path) -> Agent:
    """Names the planted problem with its line, and sees that the repaired kernel does not have it."""
    kinds, *variants = pairs.PAIRS[name]
    candidates = pairs.compile_variants(variants, TARGET, directory, pairs.FILE)
    launches = [
        {"hash": one.artifact.hash, "kernel": variant.kernel, "grid": list(one.request.grid), "args": variant.arguments}
        for variant, one in zip(variants, candidates, strict=True)
    ]
    add_to_manifest(directory, (), launches)
    agent = Agent(directory)
    listed = {item["hash"] for item in agent.call("list")}
    plant, twin = (one.artifact.hash[:12] for one in candidates)
    assert {plant, twin} <= listed
    first, *causes = agent.call("advise", kernel=plant)
    assert first["summary"]
    assert causes[0]["cause"] in kinds, (first, causes)
    assert causes[0]["line"] is None or re.search(r"\w+\.py:\d+", causes[0]["line"])
    _, *others = agent.call("advise", kernel=twin)
    assert not others or others[0]["cause"] not in kinds
    return agent


def bug_lines() -> Iterator[tuple[str, str, int]]:
    """Kernel, kind and line of each planted memory error."""
    kernel = ""
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        kernel = re.sub(r"def (\w+)\(.*", r"\1", line) if line.startswith("def ") else kernel
        if "# BUG " in line:
            yield kernel, line.partition("# BUG ")[2].strip(), number


def solve_broken(kernel: str, captured: Path) -> Agent:
    """Names the error and its line."""
    ((kind, line),) = [(kind, line) for name, kind, line in bug_lines() if name == kernel]
    agent = Agent(captured)
    agent.call("list", kernel=kernel)
    launch, problem, *_ = agent.call("check-memory", kernel=kernel)
    assert launch["status"] == "error"
    assert problem["check"] == kind
    assert f"memory_errors.py:{line}" in json.dumps(problem)
    return agent


def check(name: str, agent: Agent) -> None:
    print(f"| {name} | {len(agent.texts)} | {sum(agent.tokens)} | {max(agent.tokens)} |")
    assert max(agent.tokens) <= DEFAULT_TOKENS


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_kernel_is_diagnosed(name: str, tmp_path: Path) -> None:
    check(name, solve_slow(name, tmp_path))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("captured")
    capture_program([sys.executable, str(PROGRAM)], [TARGET], out)
    return out


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", BROKEN)
def test_a_broken_kernel_is_diagnosed(kernel: str, captured: Path) -> None:
    check(kernel, solve_broken(kernel, captured))
