"""Standard input that ends when the process is asked to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from artifact_inspector.files.lifetime import end_workers

_SECONDS = 2.0
"""After which the process exits, if a call still runs."""


@contextmanager
def interruptible_input() -> Iterator[None]:
    """In the block, SIGINT, SIGTERM and SIGHUP end standard input, which ends a server; their handlers run after it.

    Libraries read it in threads, which Python waits for at its end: a client that keeps it open would keep the server.
    A thread waits for the signals: a handler runs late while an event loop waits, and one that raises in a loop can
    leave it cancelling tasks for ever.
    """
    if sys.platform == "win32":
        yield  # its signals wake no thread
        return
    source, (reader, writer), (signal_reader, signal_writer) = os.dup(0), os.pipe(), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    numbers = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]
    handlers = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    pending: list[int] = []
    threading.Thread(target=_copy, args=(source, writer), daemon=True).start()
    threading.Thread(target=_wait, args=(signal_reader, writer, [*handlers], pending), daemon=True).start()
    os.set_blocking(signal_writer, False)
    wakeup = signal.set_wakeup_fd(signal_writer)
    for number in handlers:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in pending[:1]:
            handlers[number](number, None)


def _wait(signal_reader: int, writer: int, numbers: list[int], pending: list[int]) -> None:
    with suppress(OSError):
        while not pending:
            pending += [number for number in os.read(signal_reader, 1) if number in numbers]
        os.close(writer)
    time.sleep(_SECONDS)
    end_workers()
    os._exit(128 + pending[0])


def _copy(source: int, writer: int) -> None:
    with suppress(OSError):
        while content := memoryview(os.read(source, 1 << 16)):
            while content:
                content = content[os.write(writer, content) :]
        os.close(writer)
