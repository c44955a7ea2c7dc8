"""Standard input that ends when the process is asked to end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def interruptible_input() -> Iterator[None]:
    """In the block, SIGINT, SIGTERM and SIGHUP end standard input before their own handlers run.

    Libraries read it in threads, which Python waits for at its end: a client that keeps it open would keep the server.
    """
    source, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    threading.Thread(target=_copy, args=(source, writer), daemon=True).start()

    def end_input(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.close(writer)
        handler = handlers[number]
        if callable(handler):
            handler(number, frame)

    numbers = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]
    handlers = {number: signal.getsignal(number) for number in numbers}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, end_input)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _copy(source: int, writer: int) -> None:
    with suppress(OSError):
        while content := memoryview(os.read(source, 1 << 16)):
            while content:
                content = content[os.write(writer, content) :]
        os.close(writer)
