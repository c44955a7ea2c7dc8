"""The objects of `torch.cuda` without a GPU: device properties, streams, events, graphs, generators.

Source: torch/cuda/__init__.py, streams.py, graphs.py; torch/csrc/cuda/Module.cpp, `_CudaDeviceProperties`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from artifact_inspector.compiling.capture.devices import device_of
from artifact_inspector.hardware.targets import Target


def device_properties(target: Target) -> SimpleNamespace:
    """As `torch.cuda.get_device_properties`."""
    device = device_of(target)
    is_hip = target.backend == "hip"
    return SimpleNamespace(
        name=device.name,
        major=device.capability[0],
        minor=device.capability[1],
        multi_processor_count=device.multiprocessors,
        total_memory=device.memory_bytes,
        L2_cache_size=device.l2_bytes,
        warp_size=device.warp_size,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=device.threads_per_multiprocessor,
        max_threads_per_block=1024,
        shared_memory_per_block=min(device.shared_bytes, 48 * 1024) if not is_hip else device.shared_bytes,
        shared_memory_per_block_optin=device.shared_bytes,
        shared_memory_per_multiprocessor=device.shared_bytes + (0 if is_hip else 1024),
        is_integrated=0,
        is_multi_gpu_board=0,
        clock_rate=1_500_000,
        memory_clock_rate=1_500_000,
        memory_bus_width=5120,
        gcnArchName=f"{target.arch}:sramecc+:xnack-" if target.arch.is_cdna else target.arch,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


class _Inert:
    """An object whose constructor takes anything, and whose methods do nothing."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    def do_nothing(self, *_args: object, **_options: object) -> None:
        """Does nothing."""


class NullContext(_Inert):
    """A context manager for `torch.cuda.device`, `stream` and `graph` that does nothing."""

    idx = prev_idx = 0

    def __enter__(self) -> NullContext:
        return self

    __exit__ = _Inert.do_nothing


class CudaEvent(_Inert):
    """An event; any two are a millisecond apart."""

    record = wait = synchronize = _Inert.do_nothing

    def query(self) -> bool:
        """Whether all earlier work is done: always."""
        return True

    def elapsed_time(self, _: object) -> float:
        """Elapsed time in milliseconds."""
        return 1.0


class CudaGraph(_Inert):
    """A CUDA graph; its launches do nothing."""

    replay = capture_begin = capture_end = reset = enable_debug_mode = debug_dump = _Inert.do_nothing

    def pool(self) -> tuple[int, int]:
        """The handle of a memory pool."""
        return (0, 0)


class Generator:
    """A GPU's random number generator; its state is a seed and an offset."""

    def __init__(self, device: Any, torch: Any) -> None:
        self.device = device
        self._state = torch.zeros(16, dtype=torch.uint8)

    def get_state(self) -> Any:
        """The state as sixteen bytes."""
        return self._state

    def set_state(self, state: Any) -> None:
        """Ignored."""
        return

    def initial_seed(self) -> int:
        """Always zero."""
        return 0

    seed = initial_seed

    def manual_seed(self, _: int) -> Generator:
        """The generator itself."""
        return self


def stream_class(device: Any) -> type:
    """Create the class of a device's streams."""

    class Stream(NullContext):
        """A stream without work."""

        cuda_stream = device_index = stream_id = 0

        @property
        def device(self) -> Any:
            return device

        query = CudaEvent.query
        synchronize = wait_stream = wait_event = _Inert.do_nothing

        def record_event(self, event: CudaEvent | None = None) -> CudaEvent:
            return event or CudaEvent()

    return Stream
