"""Make torch behave as with a GPU: tensors live on the CPU and report that they are on `cuda:0`.

Three parts are replaced: the device queries of `torch.cuda`, the creation and the reported device of tensors, and
operators that are registered for CUDA only. They are replaced for the whole process, because a torch function mode is
inactive inside backward passes and custom operators.

Source: torch/cuda/__init__.py; torch/library.py; torch/utils/_device.py.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from artifact_inspector.compiling.capture.devices import device_of
from artifact_inspector.compiling.capture.known_tensors import FILLS, KnownTensors
from artifact_inspector.compiling.capture.patches import Patches, replaced
from artifact_inspector.compiling.capture.recorder import Recorder, find_call_site
from artifact_inspector.compiling.capture.torch_cuda import (
    CudaEvent,
    CudaGraph,
    Generator,
    NullContext,
    device_properties,
    stream_class,
)
from artifact_inspector.hardware.targets import Target

_CUDA = re.compile(r"(cuda|hip)(:\d+)?")
_FACTORIES = (
    "arange", "asarray", "as_tensor", "bartlett_window", "blackman_window", "empty_permuted", "eye",
    "frombuffer", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace", "load",
    "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "scalar_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "tensor",
    "tril_indices", "triu_indices", "zeros", "zeros_like",
)  # fmt: skip
_METHODS = ("new_full", "new_ones", "new_tensor", "new_zeros")
_READS_OF_NUMBERS = ("item", "tolist", "numpy", "__int__", "__float__", "__index__")
_READS = (*_READS_OF_NUMBERS, "cpu", "__bool__")


class TorchStandIn:
    """Makes torch behave as with a GPU, from `install` to `remove`.

    Args:
        recorder: receives a note where the program reads back values that no kernel has written.
        tensors: receives the tensors that the program creates, writes and reads.
    """

    def __init__(self, target: Target, recorder: Recorder, tensors: KnownTensors) -> None:
        self.target = target
        self.recorder = recorder
        self._tensors = tensors
        self._patches = Patches()

    def install(self) -> None:
        """Install the replacements."""
        import torch

        self._device = torch.device("cuda", 0)
        self._cpu = torch.device("cpu")
        self._replace_device_queries(torch)
        self._report_tensors_on_gpu(torch)
        self._create_tensors_on_cpu(torch)
        self._dispatch_operators(torch)
        self._prepare_compile(torch)
        self._follow_tensors(torch)
        # values that are read back after a launch: no kernel has written them
        for owner, names in ((torch.Tensor, _READS), (torch, ("allclose", "equal"))):
            for name in names:
                self._patches.set(owner, name, self._note_reads(getattr(owner, name), name))

    def remove(self) -> None:
        """Restore torch."""
        self._patches.undo()

    def _follow_tensors(self, torch: Any) -> None:
        """Follow which tensors have known values, until the program compiles functions of torch."""
        tensors = self._tensors

        class Follower(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
                return tensors.follow(function, args, kwargs or {})

        follower = Follower()
        follower.__enter__()
        fills = {name: getattr(torch.Tensor, name) for name in FILLS}
        for name, function in fills.items():  # a mode does not see the backward pass
            self._patches.set(torch.Tensor, name, self._note_fills(function, name))

        def end() -> None:
            for name, function in fills.items():
                setattr(torch.Tensor, name, function)
            if vars(torch.overrides)["_get_current_function_mode"]() is follower:
                follower.__exit__(None, None, None)

        self._end_following = end
        self._patches.on_undo(end)
        data = torch._C.TensorBase.data  # what is written through it is not seen

        def written_data(tensor: Any) -> Any:
            tensors.uninitialized.discard(tensor)
            return data.__get__(tensor)

        self._patches.set(torch.Tensor, "data", property(written_data, data.__set__))

    def _replace_device_queries(self, torch: Any) -> None:
        """Replace the device queries of `torch.cuda`, `torch.version` and `torch.accelerator`."""
        device = device_of(self.target)
        is_hip = self.target.backend == "hip"
        properties = device_properties(self.target)
        newest = is_hip or device.capability >= (8, 0)
        answers: dict[str, Any] = {
            "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": True,
            "init": None, "_lazy_init": None, "set_device": None, "get_device_capability": device.capability,
            "get_device_name": device.name, "get_device_properties": properties, "synchronize": None,
            "empty_cache": None, "is_current_stream_capturing": False, "memory_allocated": 0,
            "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0, "memory_stats": {},
            "mem_get_info": (device.memory_bytes, device.memory_bytes), "is_bf16_supported": newest,
            "is_tf32_supported": newest, "can_device_access_peer": False, "manual_seed": None,
            "manual_seed_all": None, "reset_peak_memory_stats": None, "ipc_collect": None,
            "_maybe_exchange_device": 0, "_exchange_device": 0, "set_rng_state": None, "_is_compiled": True,
            "get_arch_list": [self.target.arch], "set_stream": None, "_device_count_nvml": 1,
            "_get_device_properties": properties,
        }  # fmt: skip
        cuda = torch.cuda
        self._answer_queries(cuda, answers)
        self._patches.set(cuda, "get_rng_state", lambda *_args, **_options: torch.zeros(16, dtype=torch.uint8))
        self._patches.set(cuda, "default_generators", (Generator(self._device, torch),))
        stream = stream_class(self._device)
        # torch.compile identifies these functions by identity: all must differ
        for name, base in {
            "Stream": stream, "ExternalStream": stream, "Event": CudaEvent, "CUDAGraph": CudaGraph,
            "device": NullContext, "device_of": NullContext, "_DeviceGuard": NullContext, "stream": NullContext,
            "StreamContext": NullContext, "graph": NullContext,
        }.items():  # fmt: skip
            self._patches.set(cuda, name, type(name, (base,), {"__module__": cuda.__name__}))
        for owner, name in ((cuda, "current_stream"), (cuda, "default_stream"), (torch.accelerator, "current_stream")):
            self._patches.set(owner, name, lambda *_: stream())
        self._patches.set(torch._C, "_cuda_getCurrentRawStream", lambda *_: 0)
        # Inductor's CUDA graphs and `torch._dynamo.reset` import these names from GPU builds
        for name, lacking in {
            "_cuda_CUDAAllocator_AllocatorState": type("AllocatorState", (), {}),
            "_set_cached_tensors_enabled": lambda _enabled: None,
        }.items():
            if not hasattr(torch._C, name):
                self._patches.set(torch._C, name, lacking)
        self._patches.set(torch.version, "hip", "6.4.43482" if is_hip else None)
        self._patches.set(torch.version, "cuda", None if is_hip else "12.9")
        self._patches.set(torch.backends.cuda, "is_built", lambda: True)
        accelerator = torch.accelerator
        accelerator_answers = {
            "current_accelerator": torch.device("cuda"), "is_available": True, "device_count": 1,
            "current_device_index": 0, "current_device_idx": 0, "synchronize": None, "set_device_index": None,
        }  # fmt: skip
        self._answer_queries(accelerator, accelerator_answers)
        if hasattr(accelerator, "device_index"):
            self._patches.set(accelerator, "device_index", NullContext)

    def _answer_queries(self, module: Any, answers: Mapping[str, Any]) -> None:
        for name, query_result in answers.items():
            if hasattr(module, name):
                self._patches.set(module, name, lambda *_args, _query_result=query_result, **_options: _query_result)

    def _report_tensors_on_gpu(self, torch: Any) -> None:
        """Let tensors on the CPU report that they are on the GPU; those on `meta` are unchanged."""
        tensor, device = torch.Tensor, self._device
        true_device = torch._C.TensorBase.device.__get__

        def reported_device(self: Any) -> Any:
            true = true_device(self)
            return device if true.type == "cpu" else true

        for name, value in {
            "device": property(reported_device),
            "is_cuda": property(lambda _: True),
            "is_cpu": property(lambda _: False),
            "get_device": lambda _: 0,
            "cuda": lambda tensor, *_args, **_options: tensor,
            "pin_memory": lambda tensor, *_args, **_options: tensor,
            "is_pinned": lambda *_args, **_options: True,
            "record_stream": lambda *_args: None,
        }.items():
            self._patches.set(tensor, name, value)
        self._patches.set(torch.nn.Module, "cuda", lambda module, *_args, **_options: module)

    def _create_tensors_on_cpu(self, torch: Any) -> None:
        """Create tensors on the CPU instead of the GPU; uninitialised memory is zeroed."""
        tensor = torch.Tensor
        for name in _FACTORIES:
            if hasattr(torch, name):
                self._patches.set(torch, name, self._wrap_for_cpu(getattr(torch, name)))
        for name in _METHODS:
            self._patches.set(tensor, name, self._wrap_for_cpu(getattr(tensor, name)))
        for owner in (tensor, torch.nn.Module):
            self._patches.set(owner, "to", self._wrap_for_cpu(owner.to, takes_index=True))
        # wrappers read back lengths and indices that no kernel has written: zeros are safe
        for owner, name in (
            (torch, "empty"), (torch, "empty_like"), (torch, "empty_strided"),
            (tensor, "new_empty"), (tensor, "new_empty_strided"),
        ):  # fmt: skip
            self._patches.set(owner, name, self._wrap_for_cpu(getattr(owner, name), zeroed=True))
        guards = torch._C._dynamo.guards
        if hasattr(guards, "_empty_strided_cuda"):
            strided = torch._C._dynamo.guards._empty_strided_cpu
            self._patches.set(guards, "_empty_strided_cuda", lambda *args: strided(*args).zero_())
        from torch.utils._device import DeviceContext as context  # noqa: N813

        init = context.__init__
        self._patches.set(context, "__init__", lambda self_, device: init(self_, self._replace_device(device)))
        autocast = torch.amp.autocast_mode.autocast
        begin = autocast.__init__

        def cast_on_cpu(self_: Any, device_type: str, dtype: Any = None, *args: Any, **options: Any) -> None:
            if device_type == "cuda":
                device_type, dtype = "cpu", torch.float16 if dtype is None else dtype
            begin(self_, device_type, dtype, *args, **options)

        self._patches.set(autocast, "__init__", cast_on_cpu)
        for name in ("is_autocast_enabled", "get_autocast_dtype"):
            requested_device = getattr(torch, name)
            self._patches.set(torch, name, lambda *_args, _requested_device=requested_device: _requested_device("cpu"))
        self._patches.set(torch, "get_autocast_gpu_dtype", lambda: torch.get_autocast_dtype("cpu"))
        generator = torch.Generator

        class CpuGenerator(generator):  # type: ignore[misc, valid-type]
            def __new__(cls, device: Any = None) -> Any:
                return generator.__new__(cls)

        self._patches.set(torch, "Generator", CpuGenerator)

    def _dispatch_operators(self, torch: Any) -> None:
        """Let operators that are registered for CUDA only accept tensors on the CPU."""
        library = torch.library
        implement, custom_op, register = library.Library.impl, library.custom_op, library.register_kernel

        for_gpu: set[tuple[str, str]] = set()

        def impl(self_: Any, name: Any, function: Any, dispatch_key: str = "", *args: Any, **options: Any) -> Any:
            operator = (self_.ns, str(name))
            if dispatch_key == "CPU" and operator in for_gpu:
                return None  # register the GPU kernel for the CPU as well
            if dispatch_key not in ("CUDA", "HIP"):
                return implement(self_, name, function, dispatch_key, *args, **options)
            for_gpu.add(operator)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns that it replaces the CPU kernel
                return implement(self_, name, function, "CPU", *args, **options)

        def for_any_device(name: Any, function: Any = None, /, *, device_types: Any = None, **options: Any) -> Any:
            return custom_op(name, function, device_types=None, **options)

        def for_cpu(operator: Any, device_types: Any, function: Any = None, /, **options: Any) -> Any:
            dispatch_keys = (device_types,) if isinstance(device_types, str) else device_types
            if dispatch_keys is not None and "cuda" in dispatch_keys and "cpu" not in dispatch_keys:
                device_types = "cpu"
            return register(operator, device_types, function, **options)

        self._patches.set(library.Library, "impl", impl)
        self._patches.set(library, "custom_op", for_any_device)
        self._patches.set(library, "register_kernel", for_cpu)

    def _prepare_compile(self, torch: Any) -> None:
        """Let `torch.compile` generate GPU kernels, in this process."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        # its fake tensors on the GPU are created without a GPU
        self._patches.set(FakeTensorMode, "avoid_device_init", property(lambda _: True))
        ready: list[bool] = []

        def after_preparing(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def prepare_and_call(*args: Any, **options: Any) -> Any:
                if not ready:
                    ready.append(True)
                    self._end_following()  # Dynamo would trace it
                    self._prepare_inductor(torch)  # importing it takes seconds
                return function(*args, **options)

            return prepare_and_call

        self._patches.set(torch, "compile", after_preparing(torch.compile))
        if hasattr(torch, "export"):  # before AOTInductor
            self._patches.set(torch.export, "export", after_preparing(torch.export.export))

    def _prepare_inductor(self, torch: Any) -> None:
        from torch._inductor import config
        from torch._inductor.fx_passes import misc_patterns

        # disable C++ launchers, processes without the stand-in, and caches in other directories
        for name, value in {"use_static_cuda_launcher": False, "compile_threads": 1}.items():
            if hasattr(config, name):
                self._patches.on_undo(functools.partial(setattr, config, name, getattr(config, name)))
                setattr(config, name, value)
        self._patches.on_undo(torch._dynamo.reset)  # forgets the compiled code that launches nothing
        self._replace_benchmarks()
        make_patterns = misc_patterns._misc_patterns_init

        def make_on_cpu(*args: Any, **options: Any) -> Any:
            # a CPU build of torch has no randperm for a GPU, not even for fake tensors
            with replaced(torch.cuda, "is_available", lambda: False):
                return make_patterns(*(self._cpu for _ in (*args, *options)))

        self._patches.set(misc_patterns, "_misc_patterns_init", make_on_cpu)

    def _replace_benchmarks(self) -> None:
        """Let Inductor's autotuning use the driver's constant time, as Triton's does."""
        try:
            from torch._inductor.runtime import benchmarking
        except ImportError:
            return  # older versions use Triton's benchmarker

        def constant_time(_: Any, call: Callable[[], object], *__: Any, **___: Any) -> float:
            from triton.runtime.driver import driver

            return float(driver.active.get_benchmarker()(call))

        for kind in list(vars(benchmarking).values()):
            if isinstance(kind, type) and "benchmark_gpu" in vars(kind):
                self._patches.set(kind, "benchmark_gpu", constant_time)

    def _note_fills(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def fill_and_note(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            if self.recorder.has_launched:
                number = self._tensors.uninitialized.note_fill(name, *args)
                if number is not None:
                    self.recorder.write_event("filled", storage=number)
            return result

        return fill_and_note

    def _note_reads(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def read_and_note(*args: Any, **options: Any) -> Any:
            if name == "numpy":  # writes into the array are not seen
                self._tensors.uninitialized.discard(args[0])
            if self.recorder.has_launched and not self._tensors.is_known(args[0] if args else None):
                if name in _READS_OF_NUMBERS:
                    self._tensors.note_read(args[0])
                what = f"Values are read back after a launch ({name.strip('_')})"
                text = f"{what}: no kernel ran, so what one would have written is zero, or what was there before."
                self.recorder.write_note(text, None, find_call_site().line)
            return function(*args, **options)

        return read_and_note

    def _replace_device(self, value: Any) -> Any:
        """Replace a GPU device by the CPU; other values are unchanged."""
        import torch

        if isinstance(value, torch.device):
            return self._cpu if value.type == "cuda" else value
        return "cpu" if isinstance(value, str) and _CUDA.fullmatch(value) else value

    def _wrap_for_cpu(
        self, function: Callable[..., Any], *, zeroed: bool = False, takes_index: bool = False
    ) -> Callable[..., Any]:
        """Wrap a function that creates or moves tensors, so that it uses the CPU in place of the GPU.

        Args:
            zeroed: the function leaves its result uninitialised, so that it is zeroed.
            takes_index: its first argument may be a GPU's number.
        """
        from torch.compiler import is_dynamo_compiling
        from torch.utils import _python_dispatch

        modes: Callable[[], int] = vars(_python_dispatch)["_len_torch_dispatch_stack"]

        @functools.wraps(function)
        def create_on_cpu(*args: Any, **options: Any) -> Any:
            if is_dynamo_compiling() or modes():  # fake tensors may be on a GPU
                return function(*args, **options)
            args = tuple(self._replace_device(value) for value in args)
            if takes_index and len(args) > 1 and type(args[1]) is int:
                args = (args[0], self._cpu, *args[2:])
            for name in ("device", "map_location"):
                if name in options:
                    value = options[name]
                    options[name] = self._cpu if type(value) is int else self._replace_device(value)
            options.pop("pin_memory", None)
            tensor = function(*args, **options)
            if zeroed and not tensor.is_meta and not tensor.requires_grad:
                self._tensors.forget(tensor.zero_())
            return tensor

        return create_on_cpu
