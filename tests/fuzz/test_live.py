"""A cache that somebody writes to and deletes from is read all the same; `tests.fuzz.live` has the real one."""

from __future__ import annotations

import random
import shutil
import threading
import time
from pathlib import Path

from tests.fuzz.corpus import kernels
from tests.fuzz.live import scan


def test_files_that_come_and_go_are_read_or_told_of(tmp_path: Path) -> None:
    cache, over = tmp_path / "cache", threading.Event()
    cache.mkdir()
    small = sorted(kernels(), key=lambda path: -kernels()[path])[:4]

    def write() -> None:
        chance = random.Random(1)
        while not over.is_set():
            entry = cache / (whole := chance.choice(small)).name
            if entry.exists():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                shutil.copytree(whole, entry)

    writer, until = threading.Thread(target=write), time.monotonic() + 60
    writer.start()
    try:
        seen = {scan(cache, tmp_path / "index.sqlite3")[0] for _ in range(12)}
        while len(seen) == 1 and time.monotonic() < until:  # the writer waits on a busy machine
            seen.add(scan(cache, tmp_path / "index.sqlite3")[0])
    finally:
        over.set()
        writer.join()
    assert len(seen) > 1
