"""`python -m tests.fuzz.kills --count 500`: commands killed at random moments leave no process and no directory.

Each command runs in its own session with a private TMPDIR and output directory. After a random delay it receives one of five
signals. Every process that it started has the mark of the run in its environment; none may run five seconds later.
A scratch directory of the next command in the same TMPDIR removes what is left of it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
MARK = "INSPECTOR_KILL_MARK"
_PAPER = "tests/oracle/counters/softmax"
_SOFTMAX = "--arg x_ptr=fp16[8,1000] --arg y_ptr=fp16[8,1000] --arg stride_x=1000 --arg stride_y=1000 --arg n_cols=1000 --grid 8"
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
    "try": ("try kernels/softmax.py:softmax_kernel -t sm_80 --with num_warps=8", 8.0),
    "regress": ("regress fixtures/3.2.0/sm_80 fixtures/3.6.0/sm_80", 4.0),
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


def kill_command(name: str, number: signal.Signals, delay: float) -> Kill:
    """Start a command, send it a signal after a delay in seconds, and look for what is left."""
    words, _ = COMMANDS[name]
    temporary = Path(tempfile.mkdtemp(prefix="kills-"))
    (temporary / "out").mkdir()
    mark = temporary.name
    command = [word.replace("OUT", str(temporary / "out")).replace("PYTHON", sys.executable) for word in words.split()]
    environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "artifact_inspector", *command], cwd=ROOT, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
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
    sweep += "\nfrom pathlib import Path\nfrom artifact_inspector.compiling.publishing import remove_stale_staging\n"
    sweep += f"remove_stale_staging(Path({str(temporary / 'out' / 'cache')!r}))"
    subprocess.run([sys.executable, "-c", sweep], env=environment, check=True)
    left = [path for path in temporary.iterdir() if path.name != "out"]
    left += [path for path in (temporary / "out").rglob("*") if path.name.startswith((".compiling-", ".writing-"))]
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
    outcomes: Counter[str] = Counter()
    for index in range(arguments.count):
        name = arguments.only or chance.choice(list(COMMANDS))
        kill = kill_command(name, chance.choice(SIGNALS), chance.uniform(0.05, COMMANDS[name][1]))
        is_clean = not kill.processes and not kill.directories
        outcomes["clean" if is_clean else "left something"] += 1
        if not is_clean:
            print(index, kill, flush=True)
    print(dict(outcomes))
    sys.exit(1 if outcomes["left something"] else 0)


if __name__ == "__main__":
    main()
