"""NVIDIA's occupancy calculator (a C header in Triton's wheel) and LLVM's own comments as judges."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from saved import saved_kernels
from waves import find_warps_per_partition

from artifact_inspector.analysis.resources.occupancy import find_occupancy
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Stage

# Reads one question a line: capability, what cudaDeviceProp says of such a device, and the launch.
PROGRAM = r"""
#include <stdio.h>
#include "cuda_occupancy.h"
int main(void) {
  int major, minor, threads, shared, optin, reserved, regs, dynamic, barriers, block;
  while (scanf("%d %d %d %d %d %d %d %d %d %d", &major, &minor, &threads, &shared, &optin, &reserved,
               &regs, &dynamic, &barriers, &block) == 10) {
    cudaOccDeviceProp device = {0};
    cudaOccFuncAttributes function = {0};
    cudaOccDeviceState state = {0};
    cudaOccResult result = {0};
    device.computeMajor = major; device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536; device.warpSize = 32;
    device.sharedMemPerBlock = 49152; device.sharedMemPerMultiprocessor = shared; device.numSms = 1;
    device.sharedMemPerBlockOptin = optin; device.reservedSharedMemPerBlock = reserved;
    function.maxThreadsPerBlock = 1024; function.numRegs = regs; function.numBlockBarriers = barriers;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; function.maxDynamicSharedSizeBytes = dynamic;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, dynamic);
    printf("%d %d %d %d %d\n", error, result.activeBlocksPerMultiprocessor, result.blockLimitRegs,
           result.blockLimitSharedMem, result.blockLimitWarps);
  }
  return 0;
}
"""
# CUDA C Programming Guide, Technical Specifications per Compute Capability: threads and KiB of shared
# memory per SM, KiB of shared memory per block, KiB reserved of each block's share.
DEVICES = {
    "sm_70": (7, 0, 2048, 96, 96, 0),
    "sm_75": (7, 5, 1024, 64, 64, 0),
    "sm_80": (8, 0, 2048, 164, 163, 1),
    "sm_86": (8, 6, 1536, 100, 99, 1),
    "sm_87": (8, 7, 1536, 164, 163, 1),
    "sm_89": (8, 9, 1536, 100, 99, 1),
    "sm_90": (9, 0, 2048, 228, 227, 1),
    "sm_100": (10, 0, 2048, 228, 227, 1),
    "sm_103": (10, 3, 2048, 228, 227, 1),
    "sm_120": (12, 0, 1536, 100, 99, 1),
    "sm_121": (12, 1, 1536, 100, 99, 1),
}
REGISTERS = (8, 16, 24, 31, 32, 40, 41, 56, 64, 72, 80, 96, 97, 128, 129, 160, 168, 200, 232, 255)
SHARED = (0, 1, 1024, 4096, 9000, 16384, 33000, 49152, 50000, 65536, 98304, 101376, 101377, 166912, 232448)
LAUNCHES = [*product(REGISTERS, SHARED, (1,), (1, 4, 8, 12)), *product((32,), (0, 9000), (0, 2, 4, 16), (1, 3, 4, 32))]


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    triton = pytest.importorskip("triton")
    headers = Path(triton.__file__).parent / "backends/nvidia/include"
    compiler = shutil.which("cc")
    if not (headers / "cuda_occupancy.h").is_file() or compiler is None:
        pytest.skip("no cuda_occupancy.h or no C compiler")
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "occupancy.c").write_text(PROGRAM, encoding="utf-8")
    made = folder / "occupancy"
    subprocess.run([compiler, "-w", "-I", headers, folder / "occupancy.c", "-o", made], check=True)
    return made


@pytest.mark.parametrize("arch", DEVICES)
def test_blocks_per_multiprocessor_are_those_of_the_occupancy_calculator(arch: str, calculator: Path) -> None:
    major, minor, threads, shared, optin, reserved = DEVICES[arch]
    device = f"{major} {minor} {threads} {shared << 10} {optin << 10} {reserved << 10}"
    questions = "\n".join(f"{device} {regs} {size} {bars} {32 * warps}" for regs, size, bars, warps in LAUNCHES)
    answers = subprocess.run(
        [calculator], input=questions, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(answers) == len(LAUNCHES) > 1000
    for (registers, size, barriers, warps), answer in zip(LAUNCHES, answers, strict=True):
        error, blocks, by_registers, by_shared, by_warps = map(int, answer.split())
        assert error == 0
        ours = find_occupancy(
            parse_target(arch), registers=registers, shared_bytes=size, warps_per_block=warps, barriers=barriers
        )
        question = (arch, registers, size, barriers, warps)
        assert (ours.blocks, question) == (blocks, question)
        theirs = (by_registers, by_shared, by_warps)
        # Where no shared memory is used the calculator says INT_MAX.
        shared_allows = ours.blocks_by_resource.get("shared memory", 2**31 - 1)
        assert (ours.blocks_by_resource["registers"], shared_allows, ours.blocks_by_resource["warps"]) == theirs


AMD = [kernel for kernel in saved_kernels() if Stage.AMDGCN in kernel.stages]


@pytest.mark.parametrize("kernel", AMD, ids=lambda kernel: kernel.path)
def test_waves_per_simd_are_those_that_llvm_prints(kernel) -> None:
    printed = re.findall(r"^; Occupancy: (\d+)", kernel.text(Stage.AMDGCN), re.MULTILINE)
    if not printed:
        pytest.skip("this LLVM printed no occupancy")
    attributes = kernel.module(Stage.AMDGCN).attributes
    ours = find_warps_per_partition(
        parse_target(kernel.target), int(attributes["vgpr_count"]), int(attributes["sgpr_count"])
    )
    assert str(ours) == printed[-1]
