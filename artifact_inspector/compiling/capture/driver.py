"""A Triton driver for absent GPUs: it counts launches and runs nothing.

Source: triton/backends/driver.py, `DriverBase`; triton/backends/nvidia/driver.py, `CudaDriver`, `CudaUtils` and
    `CudaLauncher`; triton/compiler/compiler.py, `CompiledKernel`. Triton 3.2 to 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

from artifact_inspector.compiling.capture.devices import device_of
from artifact_inspector.compiling.gpu_target import from_gpu_target, to_gpu_target
from artifact_inspector.errors import InspectorError
from artifact_inspector.files.binaries import read_cubin, read_hsaco
from artifact_inspector.hardware.targets import Target

_MOST_THREADS = 1024
_FIRST_ARGUMENT = 9
"""Index of the kernel's arguments: after grid, stream, function, two kinds of metadata and two hooks."""


class DriverState(Protocol):
    """The state that the driver reports: its targets, and a counter of launches."""

    targets: tuple[Target, ...]
    index: int
    """The device number of the current target."""

    def count_launch(
        self, kernel: str, target: Target, grid: Sequence[int], function: Any, args: Sequence[Any]
    ) -> None:
        """Count a launch of a function by its launcher."""

    def benchmark(self, call: Callable[[], object], *args: object, **options: Any) -> Any:
        """Time a call for an autotuner."""


class Launcher:
    """The launcher object that Triton calls; it only counts."""

    launch_cooperative_grid = False
    launch_pdl = False
    global_scratch_size = 0
    profile_scratch_size = 0

    def __init__(self, stand_in: DriverState, metadata: Any, function: Any = None) -> None:
        self._count_launch, self._function = stand_in.count_launch, function
        self._kernel, self._target = metadata.hash, from_gpu_target(metadata.target)

    def __call__(self, *args: Any) -> None:
        """Count a launch; the arguments are those of Triton's launcher."""
        self._count_launch(self._kernel, self._target, args[:3], self._function, args[_FIRST_ARGUMENT:])


class RefusedKernel:
    """Replaces a kernel that did not compile."""

    n_regs = n_spills = 0
    n_max_threads = _MOST_THREADS
    function = module = packed_metadata = None

    def __init__(self, stand_in: DriverState, kernel: str, name: str, target: Target) -> None:
        self.hash, self.name = kernel, name
        self.asm: dict[str, str] = {}
        self.metadata = SimpleNamespace(hash=kernel, name=name, target=to_gpu_target(target), shared=0)
        self.run = Launcher(stand_in, self.metadata)

    def launch_metadata(self, *_: object) -> None:
        """Launch metadata for a profiler: empty."""
        return

    def _init_handles(self) -> None:
        return None

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        return lambda *_args, **_options: self.run(*grid, *(1,) * (3 - len(grid)))


class _DriverUtilities:
    """Replaces the driver utilities through which Triton queries a device."""

    def __init__(self, stand_in: DriverState, *, counts_threads: bool) -> None:
        self._stand_in, self._counts_threads = stand_in, counts_threads

    def get_device_properties(self, index: int) -> dict[str, Any]:
        targets = self._stand_in.targets
        device = device_of(target := targets[index] if index < len(targets) else targets[0])
        return {
            "max_shared_mem": device.shared_bytes, "max_num_regs": 65536,
            "multiprocessor_count": device.multiprocessors, "warpSize": device.warp_size, "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 1_500_000, "mem_bus_width": 5120, "arch": target.arch,
        }  # fmt: skip

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, ...]:
        handles = (1, 1, *read_registers(binary))
        return (*handles, _MOST_THREADS) if self._counts_threads else handles

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # descriptors, occupancy queries, printf buffers: no compile depends on them
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_options: 1


class _DriverMethods:
    """The methods of Triton's driver interface, for the targets of a stand-in."""

    stand_in: DriverState
    counts_threads: bool

    def __init__(self) -> None:
        self.utils = _DriverUtilities(self.stand_in, counts_threads=self.counts_threads)

    def launcher_cls(self, src: Any, metadata: Any) -> Launcher:
        return Launcher(self.stand_in, metadata, getattr(src, "fn", None))

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> Any:
        return to_gpu_target(self.stand_in.targets[self.stand_in.index])

    def get_current_device(self) -> int:
        return self.stand_in.index

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return device_of(self.stand_in.targets[self.stand_in.index]).capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        return "void*" if ty.startswith("*") else ty

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args

    def get_benchmarker(self) -> Any:
        return self.stand_in.benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.zeros(1, dtype=torch.int)

    def clear_cache(self, cache: Any) -> None:
        return None


def make_driver_class(stand_in: DriverState) -> type:
    """Create a class with Triton's driver interface for the targets of `stand_in`."""
    from triton.backends.driver import DriverBase
    from triton.compiler.compiler import CompiledKernel

    is_counted = "n_max_threads" in CompiledKernel._init_handles.__code__.co_names
    return type("Driver", (_DriverMethods, DriverBase), {"stand_in": stand_in, "counts_threads": is_counted})


def read_registers(binary: bytes) -> tuple[int, int]:
    """Registers per thread and spilled bytes, as the driver reports on load; 32 and 0 if unreadable."""
    try:
        if binary[18:20] == b"\xbe\x00":
            return read_cubin(binary).registers or 32, 0
        return read_hsaco(binary).figures.get("vgpr_count", 32), 0
    except InspectorError:
        return 32, 0
