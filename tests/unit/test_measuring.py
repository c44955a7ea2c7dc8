"""Measuring launches a kernel, checks what it wrote, and says of each configuration what became of it."""

import gc
import multiprocessing
import os
import pickle
import time
import types
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from measured import H200, a_measurement

from artifact_inspector.compiling.reference import Workload
from artifact_inspector.errors import DeviceError, UsageError
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.measuring import gpu_process, measure
from artifact_inspector.measuring.measure import plan_jobs

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="What a kernel writes is a tensor.")

MODULE = '''
import torch
from types import SimpleNamespace
from artifact_inspector import Workload

class Kernel:
    """As Triton's JITFunction is seen from here."""
    arg_names = ["x"]
    __name__ = "double"

double = Kernel()
tuned = SimpleNamespace(
    fn=double,
    arg_names=["x"],
    cache={},
    configs=[SimpleNamespace(kwargs={"BLOCK": b}, num_warps=4, num_stages=2) for b in (1, 2, 3, 4)],
)
x = torch.arange(4.0)
y = torch.empty(4)

def launch(FACTOR=2, **config):
    y.copy_(FACTOR * x)

def workload():
    return Workload(launch, y, lambda: 2 * x, 1e-6, configs=[{"FACTOR": f} for f in (2, 3)], flop=4, bytes=32)

def lazy_workload():
    return lambda: y[:2].copy_(2 * x[:2])

def forgetful():
    return Workload(lambda: y[:3].copy_(2 * x[:3]), y, lambda: 2 * x)

def adding():
    return dict(launch=lambda: y.add_(2 * x), result=y, expected=lambda: 2 * x, adds=True)

def failing():
    def launch(): raise RuntimeError("out of resource: shared memory\\n\\na long story")
    return Workload(launch)

def tuned_workload():
    return Workload(lambda: y.copy_(len(tuned.configs) * x), y, lambda: x)
'''


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """A measurement collects garbage before it starts the clock: not among what other tests hold."""
    gc.freeze()


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    return tmp_path / "mine.py"


def rows(file, kernel="double", **options):
    (job,) = plan_jobs([f"{file}:{kernel}"], file.parent / "out", **options)
    cache = os.environ.get("TRITON_CACHE_DIR")
    try:
        found = gpu_process.measure_rows(job, lambda launch, milliseconds: (2.0, 1.9, 2.1))
        return [pickle.loads(pickle.dumps(row)) for row in found]  # as they come over the pipe
    finally:
        if cache is None:
            os.environ.pop("TRITON_CACHE_DIR", None)
        else:
            os.environ["TRITON_CACHE_DIR"] = cache


@needs_torch
def test_a_right_result_has_a_time_and_next_to_no_deviation(file):
    (row,) = rows(file)
    assert (row.measurement.milliseconds, row.measurement.spread) == (2.0, (1.9, 2.1))
    assert (row.measurement.deviation, row.measurement.message, row.measurement.config) == (0.0, None, {})
    assert (row.function, row.measurement.flop, row.measurement.bytes) == ("double", 4, 32)


@needs_torch
def test_every_configuration_is_a_row_with_a_cache_directory_of_its_own(file):
    right, wrong = rows(file, configs="all")
    assert (right.measurement.config, right.measurement.deviation) == ({"FACTOR": 2}, 0.0)
    assert (wrong.measurement.config, wrong.measurement.deviation) == ({"FACTOR": 3}, 0.5)
    assert right.directory != wrong.directory


@needs_torch
def test_what_a_kernel_leaves_unwritten_is_no_result_of_the_launch_before(file):
    # the launch before wrote it all, and right
    rows(file)
    (row,) = rows(file, workload="forgetful")
    assert row.measurement.deviation == float("inf")


@needs_torch
def test_a_kernel_that_adds_starts_from_zero(file):
    (row,) = rows(file, workload="adding")
    assert row.measurement.deviation == 0.0


@needs_torch
def test_without_an_expected_result_nothing_is_checked(file):
    (row,) = rows(file, kernel="tuned", workload="lazy_workload")
    assert (row.measurement.deviation, row.measurement.tolerance, row.measurement.milliseconds) == (None, None, 2.0)


@needs_torch
def test_a_launch_that_fails_is_a_row_with_the_first_sentence(file):
    (row,) = rows(file, workload="failing")
    assert row.measurement.milliseconds is None
    assert row.measurement.message == "RuntimeError: out of resource: shared memory"


@needs_torch
def test_an_autotuner_is_left_with_the_configuration_that_is_measured(file):
    found = rows(file, kernel="tuned", configs="2")
    # spread over the four; and each launch saw one configuration, as the result says
    assert [row.measurement.config["BLOCK"] for row in found] == [1, 3]
    assert [row.measurement.deviation for row in found] == [0.0, 0.0]


@needs_torch
@pytest.mark.parametrize(
    ("kernel", "options", "said"),
    [
        ("nothing", {}, "has no kernel 'nothing'"),
        ("x", {}, "has no kernel 'x'"),
        ("double", {"workload": "nowhere"}, r"has no function nowhere\(\)"),
        ("double", {"workload": "launch"}, "returns a NoneType, not a Workload"),
        ("double", {"workload": "failing", "configs": "all"}, "no configurations to compare"),
    ],
)
def test_what_a_file_lacks_is_named(file, kernel, options, said):
    with pytest.raises(UsageError, match=said):
        rows(file, kernel=kernel, **options)


def test_a_mapping_with_a_wrong_key_is_named():
    module = SimpleNamespace(__file__="m.py", workload=lambda: {"launch": print, "flops": 1})
    with pytest.raises(UsageError, match="flops"):
        gpu_process.find_workload(module, "k", None)


def test_the_workload_named_after_the_kernel_comes_first():
    own, general = Workload(print), Workload(len)
    module = SimpleNamespace(__file__="m.py", workload=lambda: general, k_workload=lambda: own)
    assert gpu_process.find_workload(module, "k", None) is own
    assert gpu_process.find_workload(module, "other", None) is general


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        (["gemm"], {}, "Unknown reference kernel 'gemm'"),
        (["nowhere.py:k"], {}, r"no file nowhere\.py"),
        (["mine.py"], {}, "names a file but no kernel"),
        (["softmax"], {"configs": "some"}, "takes `all` or a number"),
        (["softmax"], {"configs": "0"}, "takes `all` or a number"),
        (["softmax"], {"workload": "w"}, r"is for a FILE\.py:KERNEL"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_runs(words, options, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        plan_jobs(words, tmp_path, **options)


def test_every_reference_kernel_is_planned_by_default(tmp_path):
    from artifact_inspector.compiling.reference import REFERENCE_KERNELS

    assert [job.kernel for job in plan_jobs([], tmp_path)] == list(REFERENCE_KERNELS)


@pytest.mark.long
def test_without_a_gpu_the_error_says_what_is_missing(tmp_path):
    if find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            pytest.skip("There is a GPU here.")
    with pytest.raises(DeviceError, match=r"No GPU that|Kernels cannot be launched here"):
        measure.measure(plan_jobs(["softmax"], tmp_path))


def _die(job, answers):
    answers.send(H200)
    os._exit(9)


def _hang(job, answers):
    answers.send(H200)
    time.sleep(60)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="Only a forked child sees it.")
@pytest.mark.parametrize(("serve", "said"), [(_die, "ended with 9"), (_hang, "took longer than 0.5 s")])
def test_a_process_that_dies_or_hangs_costs_its_own_row(serve, said, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_process, "run_job", serve)
    (job,) = plan_jobs(["softmax"], tmp_path)
    _, row = measure._run_job(multiprocessing.get_context("fork"), job, 0.5)
    assert said in row.measurement.message
    assert row.measurement.milliseconds is None


def test_the_share_is_that_of_what_takes_longer_at_its_peak():
    bound, share = a_measurement().share(H200.peaks)
    assert (bound, round(share, 3)) == ("memory", 0.5)
    product = a_measurement(flop=2 * 8192**3, bytes=3 * 2 * 8192**2, unit="fp16", milliseconds=2 * 8192**3 / 989.5e9)
    bound, share = product.share(H200.peaks)
    assert (bound, round(share, 3)) == ("fp16", 1.0)
    assert product.flops == pytest.approx(989.5e12)


def test_no_share_without_a_time_a_cost_or_a_known_device():
    assert a_measurement(milliseconds=None).share(H200.peaks) is None
    assert a_measurement(flop=None, bytes=None).share(H200.peaks) is None
    assert a_measurement().share(find_peaks("A GPU of tomorrow")) is None


@pytest.mark.parametrize("deviation", [3e-3, float("inf"), float("nan")])
def test_a_deviation_beyond_the_tolerance_is_wrong(deviation):
    assert a_measurement(deviation=deviation).is_wrong
    assert not a_measurement(deviation=2e-3).is_wrong
    assert not a_measurement(deviation=None).is_wrong


@needs_torch
def test_a_workload_draws_the_same_numbers_in_every_run():
    import torch

    drawn = []
    module = types.SimpleNamespace(workload=lambda: drawn.append(torch.rand(3)) or Workload(lambda: None))
    for _ in range(2):
        torch.rand(1)  # whatever was drawn before
        gpu_process.find_workload(module, "k", None)
    assert torch.equal(*drawn)
