"""A stand-in for `torch` where it is not installed, so that files with kernels can be imported.

A compile needs no torch, but most files with a kernel import it, and so does Triton 2.x. Every attribute of
the stand-in is a class that can serve as a base class, decorator, annotation or default value. It reports
that there is no GPU.
"""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("half", "float", "double", "short", "int", "long"),
)


def _stand_in_attribute(_: object, name: str) -> Any:
    """Any attribute is a stand-in class; those that Python itself looks up are missing."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _StandInMeta(name, (), {"__module__": __name__})


class _StandInMeta(type):
    """Metaclass of stand-in classes, whose every attribute is another stand-in class."""

    __getattr__ = _stand_in_attribute

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # as a decorator, it returns the decorated function
        if cls.__module__ == __name__ and len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        if cls.__module__ == __name__:
            return cls
        return super().__call__(*args, **kwargs)

    def __getitem__(cls, key: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __bool__(cls) -> bool:
        return cls.__module__ != __name__


class _TorchModule(types.ModuleType):
    """`torch` and every module below it."""

    __getattr__ = _stand_in_attribute


class _TorchFinder:
    """Import finder for every module below `torch`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.startswith("torch.") else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _TorchModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stand_in_for_torch() -> None:
    """Let `import torch` succeed where torch is not installed."""
    if "torch" in sys.modules or find_spec("torch") is not None:
        return
    torch: Any = _TorchModule("torch")
    torch.__path__ = []
    torch.__spec__ = ModuleSpec("torch", None, is_package=True)
    torch.__version__ = "0"
    torch.version = types.SimpleNamespace(hip=None, cuda="12.1")
    torch.cuda = _TorchModule("torch.cuda")
    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0
    torch.dtype = type("dtype", (), {})
    for name in _DTYPES:
        setattr(torch, name, torch.dtype())
    torch.autograd = _TorchModule("torch.autograd")
    torch.autograd.Function = type("Function", (), {"apply": None})
    torch.nn = _TorchModule("torch.nn")
    torch.nn.Module = type("Module", (), {})
    torch.Tensor = type("Tensor", (), {})
    sys.modules |= {"torch": torch, "torch.cuda": torch.cuda, "torch.nn": torch.nn, "torch.autograd": torch.autograd}
    sys.meta_path.append(_TorchFinder())


class _BenchmarkerDriver:
    """A driver with only the methods that an autotuner calls when it is constructed; it times nothing."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def get_benchmarker(self) -> Any:
        return lambda *_args, **_options: 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config.default, name)


def stand_in_for_driver() -> None:
    """Let a file with an autotuner be imported where there is no GPU.

    Source: triton/runtime/autotuner.py, `Autotuner.__init__`: 3.2 and 3.3 request the driver's benchmarker there.
    """
    try:
        from triton.runtime.driver import driver
    except ImportError:
        return  # 2.x has none
    if hasattr(type(driver), "set_active"):
        driver.set_active(_BenchmarkerDriver(driver))
