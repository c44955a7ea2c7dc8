"""`python -m tests.fuzz.kills --count 500`: commands killed at random moments leave no process and no directory.

Each command runs in its own session with a private TMPDIR, cache home and output directory. After a random delay it
receives one of five signals, each command each signal equally often. Every process that it started has the mark of the
run in its environment; none may run five seconds later. The next command in the same TMPDIR, or else the same command
to its end, removes what is left.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
MARK = "INSPECTOR_KILL_MARK"
_PAPER = "tests/oracle/counters/softmax"
_SOFTMAX = "--arg x_ptr=fp16[8,1000] --arg y_ptr=fp16[8,1000] --arg stride_x=1000 --arg stride_y=1000 --arg n_cols=1000 --grid 8"
_TRY = "try kernels/softmax.py:softmax_kernel -t sm_80 -c BLOCK_SIZE=1024 "
_TRY += "-S x_ptr=*fp16:16,y_ptr=*fp16:16,stride_x=i32,stride_y=i32,n_cols=i32"
COMMANDS = {
    "list": ("fixtures/3.6.0 --no-index", 3.0),
    "json": ("fixtures/3.6.0/sm_80 --json --no-index", 4.0),
    "assemble": ("fixtures/3.6.0/sm_90 --assemble --no-index", 4.0),
    "report": ("report fixtures/3.6.0/sm_75 -o OUT/report.html", 4.0),
    "diff": ("diff fixtures/3.6.0/sm_75 fixtures/3.6.0/gfx90a", 2.0),
    "baseline": ("baseline fixtures/3.6.0/sm_80 -o OUT/facts.json", 2.0),
    "predict": (f"predict {_PAPER} softmax {_SOFTMAX}", 3.0),
    "rank": (f"rank {_PAPER} softmax {_SOFTMAX}", 4.0),
    "check-memory": (f"check-memory {_PAPER} softmax {_SOFTMAX}", 4.0),
    "advise": (f"advise {_PAPER} softmax", 8.0),
    "compile": ("compile kernels/softmax.py -t sm_80 -t gfx942 -o OUT/cache", 6.0),
    "capture": ("capture -t sm_80 -o OUT/cache -- PYTHON kernels/softmax.py", 6.0),
    "passes": ("passes softmax -t sm_80", 5.0),
    "try": (f"{_TRY} --with num_warps=8", 5.0),
    "try --against": (f"{_TRY} --against HEAD~1 --with num_warps=8", 6.0),
    "regress": ("regress fixtures/3.2.0/sm_80 fixtures/3.6.0/sm_80", 4.0),
    "repro": ("repro OUT/compiled --kernel kernels/gemv_loads_first.py:gemv_loads_first -o OUT/repro.py", 3.0),
    "export": ("export fixtures/3.6.0/sm_80 --parquet OUT/facts.parquet", 4.0),
    "export --sqlite": ("export fixtures/3.6.0/sm_75 --sqlite OUT/facts.db", 3.0),
    "cache verify": ("cache verify fixtures/3.6.0/sm_80", 1.5),
    "cache prune": ("cache prune OUT/copied --duplicates --older-than 0 --yes", 1.5),
    "bisect": ("bisect fixtures/3.6.0/sm_80 copy --between 3.5.1,3.6.0", 5.0),
    "watch": ("watch fixtures/3.6.0/sm_80 --all --every 0.1", 4.0),
    "findings --try": ("findings OUT/compiled --try", 6.0),
    "demo": ("demo -o OUT/demo", 8.0),
    "mcp": ("mcp --root fixtures", 6.0),
    "lsp": ("lsp --cache fixtures/3.6.0/sm_80", 6.0),
    "archive": ("OUT/archive.tar.gz --no-index", 2.0),
}
"""Command line, and seconds that it takes at most."""


class Kill(NamedTuple):
    """A command that was killed, and what it left."""

    command: str
    signal: str
    processes: int
    """That ran five seconds later."""
    directories: tuple[str, ...]
    """That the next run did not remove."""


def marked_processes(mark: str) -> list[int]:
    """Process IDs of running processes whose environment has the mark."""
    pids = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            is_marked = f"{MARK}={mark}".encode() in (directory / "environ").read_bytes().split(b"\0")
            if is_marked and (directory / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                pids.append(int(directory.name))
        except OSError:
            continue
    return pids


@cache
def compiled_cache() -> Path:
    """A cache with the record of a compile, and a finding with an option to try."""
    directory = Path(tempfile.mkdtemp(prefix="kills-compiled-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    words = ["compile", "kernels/gemv_loads_first.py", "-t", "sm_80", "-o", str(directory / "cache")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "artifact_inspector", *words], cwd=ROOT, env=environment, check=True, stdout=2
    )
    return directory / "cache"


def leftovers(temporary: Path) -> list[Path]:
    """Temporary files and directories below a TMPDIR; a lock stays for the next process."""
    left = [path for path in temporary.iterdir() if path.name not in ("out", "home")]
    hidden = (path for name in ("out", "home") for path in (temporary / name).rglob(".*"))
    return left + [path for path in hidden if not path.name.endswith(".lock")]


def kill_command(name: str, number: signal.Signals, delay: float) -> Kill:
    """Start a command, send it a signal after a delay in seconds, and look for what is left."""
    words, _ = COMMANDS[name]
    temporary = Path(tempfile.mkdtemp(prefix="kills-"))
    out, home = temporary / "out", temporary / "home" / "artifact-inspector"
    out.mkdir()
    home.mkdir(parents=True)
    installed = Path.home() / ".cache" / "artifact-inspector" / "triton"
    if installed.is_dir():
        (home / "triton").symlink_to(installed, target_is_directory=True)
    if "OUT/copied" in words:
        shutil.copytree(ROOT / "fixtures/3.6.0/sm_75", out / "copied")
        for path in (out / "copied").rglob("*"):
            os.utime(path, (0, 0))
    if "OUT/compiled" in words:
        shutil.copytree(compiled_cache(), out / "compiled")
    if "OUT/archive" in words:
        shutil.make_archive(str(out / "archive"), "gztar", ROOT / "fixtures/3.6.0/sm_80")
    mark = temporary.name
    command = [word.replace("OUT", str(temporary / "out")).replace("PYTHON", sys.executable) for word in words.split()]
    environment = {
        **os.environ, MARK: mark, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(home.parent),
    }  # fmt: skip
    program = [sys.executable, "-m", "artifact_inspector", *command]
    process = subprocess.Popen(
        program, cwd=ROOT, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE,
    )  # fmt: skip
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    process.wait(60)
    end = time.monotonic() + 5
    while (alive := marked_processes(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    sweep = "from artifact_inspector.files.scratch import scratch_directory\nwith scratch_directory(): pass"
    subprocess.run([sys.executable, "-c", sweep], env=environment, check=True)
    if leftovers(temporary):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=120, input=b"")
    left = leftovers(temporary)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(temporary, ignore_errors=True)
    return Kill(name, number.name, len(alive), tuple(sorted(path.name for path in left)))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", choices=COMMANDS)
    arguments = options.parse_args()
    chance = random.Random(arguments.seed)
    for number in set(SIGNALS) - {signal.SIGKILL}:
        signal.signal(number, signal.SIG_DFL)  # under nohup, or in the background of a shell, they are ignored
    outcomes: Counter[str] = Counter()
    names = [arguments.only] if arguments.only else list(COMMANDS)
    cells = [(name, number) for number in SIGNALS for name in names]
    for index in range(arguments.count):
        name, number = cells[index % len(cells)]
        kill = kill_command(name, number, chance.uniform(0.05, COMMANDS[name][1]))
        is_clean = not kill.processes and not kill.directories
        outcomes["clean" if is_clean else "left something"] += 1
        if not is_clean or index % 50 == 49:
            print(index, dict(outcomes) if is_clean else kill, flush=True)
    print(dict(outcomes))
    sys.exit(1 if outcomes["left something"] else 0)


if __name__ == "__main__":
    main()
