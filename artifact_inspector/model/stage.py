"""The compilation stages in order, and the compiler component that produces each."""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """A compilation stage, in compilation order."""

    TTIR = "ttir"
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    AMDGCN = "amdgcn"
    SASS = "sass"

    # Members are singletons. Enum's own hash is a Python call, and facts are looked up by stage.
    __hash__ = object.__hash__

    @property
    def order(self) -> int:
        """Position in the compilation; PTX and AMDGCN are alternatives and share one."""
        return _STAGE_ORDER[self]

    @property
    def producer(self) -> str:
        """The compiler component whose output this stage is, as used in a sentence."""
        return _STAGE_PRODUCER[self]

    @property
    def component(self) -> str:
        """The component by one name for both vendors."""
        return _COMPONENTS[self.order]


_STAGE_ORDER = {Stage.TTIR: 0, Stage.TTGIR: 1, Stage.LLIR: 2, Stage.PTX: 3, Stage.AMDGCN: 3, Stage.SASS: 4}
_COMPONENTS = ("front end", "Triton GPU passes", "Triton lowering + LLVM middle end", "LLVM back end", "ptxas")
_STAGE_PRODUCER = {
    Stage.TTIR: "Triton's front end",
    Stage.TTGIR: "Triton's GPU passes",
    Stage.LLIR: "Triton's lowering and LLVM's middle end",
    Stage.PTX: "LLVM's NVPTX back end",
    Stage.AMDGCN: "LLVM's AMDGPU back end",
    Stage.SASS: "ptxas",
}
