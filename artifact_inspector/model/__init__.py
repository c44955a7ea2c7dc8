"""The values that every format parses into, and the enumerations used to describe them.

Above this package, nothing depends on the language that an instruction was written in.
"""

from artifact_inspector.model.arch import Arch, Backend, MultiprocessorKind, Vendor
from artifact_inspector.model.instruction import ControlInfo, Instruction, Operands, RegisterBank
from artifact_inspector.model.kind import COMPUTES, LOADS, SINKS, EventKind
from artifact_inspector.model.language import LanguageSemantics
from artifact_inspector.model.location import Frame, Location, SourceLine
from artifact_inspector.model.matrix import Issuer, MatrixOp, MatrixUnit
from artifact_inspector.model.memory import AccessOperands, PointerUse, Queue, Transfer, WaitOp, WaitPurpose
from artifact_inspector.model.module import BasicBlock, Flow, Function, Module, Partition
from artifact_inspector.model.region import PipelineKind, RegionKind, SlotKind
from artifact_inspector.model.remark import CompilerTool, Consequence, RemarkKind, Severity
from artifact_inspector.model.resource import Resource
from artifact_inspector.model.stage import Stage
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.model.tensor import TensorType
from artifact_inspector.model.trait import Trait
from artifact_inspector.model.verdict import Basis, CopyPosition, OrderVerdict, PairOrder
from artifact_inspector.model.version import Release, TritonVersion

__all__ = [
    "COMPUTES", "LOADS", "SINKS", "AccessOperands", "Arch", "Backend", "BasicBlock", "Basis", "CompilerTool",
    "Consequence", "ControlInfo", "CopyPosition", "EventKind", "Flow", "Frame", "Function", "Instruction", "Issuer",
    "LanguageSemantics", "Location", "MatrixOp", "MatrixUnit", "Module", "MultiprocessorKind", "Operands",
    "OrderVerdict", "PairOrder", "Partition", "PipelineKind", "PointerUse", "Queue", "RegionKind", "RegisterBank",
    "Release", "RemarkKind", "Resource", "Severity", "SlotKind", "SourceLine", "Stage", "StringEnum", "TensorType",
    "Trait", "Transfer", "TritonVersion", "Vendor", "WaitOp", "WaitPurpose",
]  # fmt: skip
