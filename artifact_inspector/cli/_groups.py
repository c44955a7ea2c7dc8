"""Options that go together. A command with a parameter of such a type has an option for each field.

Does not import typer: a list of kernels runs without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artifact_inspector.cli import _options as options

MAX_STEPS = 50_000_000


@dataclass(frozen=True)
class Selection:
    """The kernels of a cache that a command reads."""

    cache: options.CacheDirectory = None
    name: options.KernelName = None
    target: options.ReadTargets = None
    properties: options.Where = None


@dataclass(frozen=True)
class MachineCode:
    """Whether machine code is a stage."""

    sass: options.Sass = False
    nvdisasm: options.Nvdisasm = None


@dataclass(frozen=True)
class AssembledCode(MachineCode):
    """Whether machine code is a stage, also of kernels without a binary."""

    assemble: options.Assemble = False


@dataclass(frozen=True)
class ListOptions:
    """What the default command prints of the selected kernels."""

    json: options.Json = False
    stage: options.StageNames = None
    region: options.RegionName = None
    ir: options.ShowIr = False
    context: options.Context = None
    on: options.OtherGpus = None
    sort: options.Sort = None
    newest: options.Newest = False
    finding: options.FindingFilter = None
    verdict: options.VerdictFilter = None
    severity: options.SeverityFilter = None
    limit: options.Limit = None
    full: options.Full = False
    scheduler: options.Scheduler = None
    legend: options.Legend = False
    no_index: options.NoIndex = False


@dataclass(frozen=True)
class LaunchOptions:
    """The launches that a command simulates."""

    arguments: options.Arguments = None
    grid: options.Grid = None
    launch: options.LaunchFile = None
    steps: options.Steps = MAX_STEPS
    nvdisasm: options.Nvdisasm = None

    @property
    def is_recorded(self) -> bool:
        """Whether the launches are those that the cache has on record."""
        return self.grid is None and self.launch is None and not self.arguments


@dataclass(frozen=True)
class CompileOptions:
    """How one kernel is compiled."""

    signature: options.Signature = None
    const: options.Const = None
    num_warps: options.Warps = None
    num_stages: options.Stages = None
    option: options.TritonOptions = None
