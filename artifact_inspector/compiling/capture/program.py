"""Install the stand-ins inside a captured program, when it imports Triton and torch."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from artifact_inspector.compiling.capture.known_tensors import KnownTensors
from artifact_inspector.compiling.capture.recorder import Recorder, event_writer
from artifact_inspector.errors import CompileError
from artifact_inspector.files.lifetime import kill_with_parent
from artifact_inspector.hardware.targets import parse_target

UNSUPPORTED = 3


def install_import_hooks(settings: Mapping[str, Any]) -> None:
    """Install the stand-ins at the end of the imports of Triton and torch.

    Args:
        settings: `targets`, `directory`, `configs`, `time_limit`, `launches` as in `capture_program`, and
            `events`, the file to append events to.
    """
    recorder = Recorder(event_writer(Path(settings["events"])), settings.get("launches"), Path(settings["directory"]))
    tensors = KnownTensors()
    recorder.write_event("started", process=os.getpid())
    if os.getppid() == settings.get("parent"):  # not the processes that the program starts
        kill_with_parent(settings["parent"])
    targets = [parse_target(text) for text in settings["targets"]]

    # the stand-ins take a quarter of the time to import: most processes of a program launch nothing
    def install_triton() -> None:
        from artifact_inspector.compiling.capture.triton_stand_in import TritonStandIn  # see above

        directory = Path(settings["directory"])
        TritonStandIn(
            targets,
            recorder,
            directory,
            settings["configs"],
            settings["time_limit"],
            tensors,
            interprets=settings.get("interprets", False),
        ).install()

    def install_torch() -> None:
        from artifact_inspector.compiling.capture.torch_stand_in import TorchStandIn  # see above

        TorchStandIn(targets[0], recorder, tensors).install()

    sys.meta_path.insert(0, _ImportCallback({"triton": install_triton, "torch": install_torch}, recorder))
    atexit.register(recorder.finish)
    show = sys.excepthook

    def record_failure(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError):
            recorder.write_event("uncaught", module=(error.name or "").partition(".")[0])
        show(kind, error, trace)

    sys.excepthook = record_failure


class _ImportCallback(MetaPathFinder):
    def __init__(self, functions: Mapping[str, Callable[[], None]], recorder: Recorder) -> None:
        self._functions = dict(functions)
        self._recorder = recorder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        function = self._functions.pop(name, None)
        if function is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            self._recorder.write_event("missing", module=name, python=sys.executable)
            self._functions[name] = function
            return None
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._recorder.write_event("imported", module=name, version=getattr(module, "__version__", "?"))
            try:
                function()
            except CompileError as error:
                self._recorder.write_event("failed", message=error.message, remedy=error.remedy)
                sys.exit(UNSUPPORTED)

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec
